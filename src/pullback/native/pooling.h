/* Windows over the last dimensions of arrays, of pooling and of folding. */
#ifndef PULLBACK_POOLING_H
#define PULLBACK_POOLING_H

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

/* Windows of the last `dims` dimensions of an array of this shape, as many as pooled_sizes of pooling.py finds. */
INLINE int read_windows(PyObject *const *steps, int dims, const npy_intp *sizes, PyObject *dilations, int ceil_mode,
                        PoolAxis *axes)
{
    ptrdiff_t kernel[WINDOW_DIMS], stride[WINDOW_DIMS], padding[WINDOW_DIMS], dilation[WINDOW_DIMS] = {1, 1, 1};
    if (!read_sizes(steps[0], dims, 1, 1, kernel) || !read_sizes(steps[1], dims, 1, 1, stride) ||
        !read_sizes(steps[2], dims, 0, 0, padding) || (dilations && !read_sizes(dilations, dims, 1, 1, dilation)))
        return 0;
    for (int d = 0; d < WINDOW_DIMS; d++) {
        int axis = d - (WINDOW_DIMS - dims);
        PoolAxis *a = &axes[d];
        *a = (PoolAxis){axis < 0 ? 1 : sizes[axis], 0, kernel[d], stride[d], padding[d], dilation[d]};
        ptrdiff_t span = a->size + 2 * a->padding - a->dilation * (a->kernel - 1) - 1;
        if (span < 0)
            return 0;
        a->count = (ceil_mode ? (span + a->stride - 1) / a->stride : span / a->stride) + 1;
        if (ceil_mode && (a->count - 1) * a->stride >= a->size + a->padding)
            a->count--;
    }
    return 1;
}

INLINE ptrdiff_t elements_of(const PoolAxis *axes) { return axes[0].size * axes[1].size * axes[2].size; }

INLINE ptrdiff_t windows_of(const PoolAxis *axes) { return axes[0].count * axes[1].count * axes[2].count; }

#endif
