/* What kernels share that take elements from positions and add them at positions. */
#ifndef PULLBACK_GATHERS_H
#define PULLBACK_GATHERS_H

#include <stdint.h>

#include "casts.h"
#include "rows.h"
#include "views.h"

/* Positions along the middle of [outer][extent][bytes]. */
typedef struct {
    const int64_t *positions;
    ptrdiff_t count, outer, extent, bytes;
    const char *from;
    char *to;
} Take;

/* Rows of `from`, [outer][count][inner], added to those of `to`, [outer][extent][inner]. */
typedef struct {
    const int64_t *positions;
    ptrdiff_t count, outer, extent, inner;
    const void *from;
    void *to;
    int64_t skipped; /* a position that is left out; -1 for none */
    int failed;      /* whether a position lies beyond the extent, where a loop looks */
} Addition;

INLINE int are_positions(PyObject *array)
{
    return array && PyArray_CheckExact(array) && type_of(array) == NPY_INT64 && PyArray_ISCARRAY_RO((PyArrayObject *)array);
}

INLINE int is_plain_memory(PyObject *array)
{
    return array && PyArray_CheckExact(array) && PyArray_ISCARRAY_RO((PyArrayObject *)array) &&
           !PyDataType_REFCHK(PyArray_DESCR((PyArrayObject *)array));
}

/* Whether all positions are from `least` up to below `extent`. */
int all_within(const int64_t *positions, ptrdiff_t count, int64_t least, int64_t extent);

/* Take the rows at positions that are all within the extent. */
void take_positions(Take *take);

/* Add the rows, each sum in the order of the positions. */
void add_at(int type, Addition *addition);

#endif
