/* Copies of elements of any one size between places in memory that lie in steps of their own. See copies.c. */
#ifndef PULLBACK_BOXES_H
#define PULLBACK_BOXES_H

#include "kernel.h"

/* Dimensions from outside in, with steps in bytes; in the last one, elements of `to` are neighbours. */
typedef struct {
    const char *from;
    char *to;
    npy_intp item;
    int ndim;
    npy_intp shape[NPY_MAXDIMS], from_steps[NPY_MAXDIMS], to_steps[NPY_MAXDIMS];
    npy_intp rows, columns;             /* of the inner part, which one loop goes over */
    npy_intp row_from, row_to, step; /* from row to row in bytes, and from element to element of `from` in elements */
    npy_intp part;                      /* rows, or columns of the only row, that are copied together */
} Box;

/* The copy of an array to a row-major one of its shape. */
Box box_between(PyObject *from, PyObject *to);

/* That of rows that lie at equal distances in both, of elements `step` apart in `from`. */
Box box_of_rows(const void *from, void *to, npy_intp item, npy_intp rows, npy_intp distance, npy_intp columns, npy_intp step);

/* Copy; 0 where the steps are not those that a loop has. */
int copy_box(Box *box);

/* Whether elements of this size are served. */
INLINE int is_copied_size(npy_intp item) { return item == 1 || item == 2 || item == 4 || item == 8 || item == 16; }

#endif
