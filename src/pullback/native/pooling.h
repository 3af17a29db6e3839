/* What the loops over pooling windows need to know, worked out once per call. */
#ifndef PULLBACK_POOLING_H
#define PULLBACK_POOLING_H

#include "maxima.h"
#include "windows.h"

/* The windows along one dimension: they begin at window * stride - padding and read every `dilation`-th element. */
typedef struct {
    ptrdiff_t size, count; /* elements of the input, windows */
    ptrdiff_t kernel, stride, padding, dilation;
} PoolAxis;

typedef struct {
    PoolAxis axes[WINDOW_DIMS];
    const void *input;
    void *output;
    npy_int64 *indices;      /* of maxima, in their plane */
    const double *divisors;  /* of averages: for each window of a plane */
    ptrdiff_t planes;        /* of the whole array */
    int is_two_by_two;       /* windows of that size, side by side, in planes */
    int failed;              /* memory ran out, or an index lies beyond its plane */
} Pool;

/* The part of a window's elements that lies inside the input: the first one, and the one after the last. */
INLINE void inside_of(const PoolAxis *axis, ptrdiff_t window, ptrdiff_t *first, ptrdiff_t *end)
{
    ptrdiff_t begin = window * axis->stride - axis->padding;
    *first = begin < 0 ? (-begin + axis->dilation - 1) / axis->dilation : 0;
    ptrdiff_t room = axis->size - begin;
    *end = room <= 0 ? 0 : (room + axis->dilation - 1) / axis->dilation;
    if (*end > axis->kernel)
        *end = axis->kernel;
}

/* The windows whose element `offset` lies inside the input. */
INLINE void windows_with(const PoolAxis *axis, ptrdiff_t offset, ptrdiff_t *first, ptrdiff_t *end)
{
    ptrdiff_t place = offset * axis->dilation - axis->padding; /* of the first window */
    *first = place < 0 ? (-place + axis->stride - 1) / axis->stride : 0;
    *end = place >= axis->size ? 0 : (axis->size - 1 - place) / axis->stride + 1;
    if (*end > axis->count)
        *end = axis->count;
    if (*end < *first)
        *end = *first;
}

INLINE ptrdiff_t elements_of(const PoolAxis *axes) { return axes[0].size * axes[1].size * axes[2].size; }

INLINE ptrdiff_t windows_of(const PoolAxis *axes) { return axes[0].count * axes[1].count * axes[2].count; }

#endif
