/* What kernels over windows share: how they read sizes and arrays. */
#ifndef PULLBACK_WINDOWS_H
#define PULLBACK_WINDOWS_H

#include "rows.h"

#define WINDOW_DIMS 3 /* spatial dimensions; fewer are led by ones */

/* A whole number of at least `least`, as sizes are. */
INLINE int read_size(PyObject *object, ptrdiff_t least, ptrdiff_t *value)
{
    long number;
    if (!read_integer(object, (long)least, 1 << 30, &number))
        return 0;
    *value = number;
    return 1;
}

/* Numbers for each of `dims` dimensions, put last: the dimensions before them get `otherwise`. */
INLINE int read_sizes(PyObject *object, int dims, ptrdiff_t least, ptrdiff_t otherwise, ptrdiff_t *sizes)
{
    if (!object || !PyTuple_CheckExact(object) || PyTuple_GET_SIZE(object) != dims)
        return 0;
    for (int d = 0; d < WINDOW_DIMS - dims; d++)
        sizes[d] = otherwise;
    for (int d = 0; d < dims; d++)
        if (!read_size(PyTuple_GET_ITEM(object, d), least, &sizes[WINDOW_DIMS - dims + d]))
            return 0;
    return 1;
}

INLINE void copy_sizes(PyObject *array, ptrdiff_t *sizes)
{
    int dims = NDIM(array) - 2;
    for (int d = 0; d < WINDOW_DIMS; d++)
        sizes[d] = d < WINDOW_DIMS - dims ? 1 : DIM(array, 2 + d - (WINDOW_DIMS - dims));
}

/* A float32 or float64 array of the type that is not empty, in any layout. */
INLINE int is_array_of(PyObject *object, int type) { return is_real_array_of(object, type) && size_of(object) > 0; }

#endif
