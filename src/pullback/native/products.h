/* Products of matrices in plain memory, for kernels that need one inside of their own loops. See products.c. */
#ifndef PULLBACK_PRODUCTS_H
#define PULLBACK_PRODUCTS_H

#include "kernel.h"

/* Steps count elements. */
typedef struct {
    const char *data;
    ptrdiff_t rows, columns, row_step, column_step;
} Matrix;

/* result = a @ b + start; `start` may be NULL, the result itself, or one row for all (its step is 0). */
typedef struct {
    Matrix a, b;
    const char *start;
    ptrdiff_t start_step;
    char *result;
    ptrdiff_t result_step;
    int wide; /* double, not float */
} Product;

typedef enum { NO_WAY, BY_ROWS, BY_DOTS, BY_BLAS } Way;

/* How to do a product; NO_WAY where its layout fits none or nothing here would be faster than NumPy. */
Way way_of(const Product *product);

/* The same for a product among many, done by one of several threads: never BY_BLAS. */
Way way_without_blas(const Product *product);

void multiply(const Product *product, Way way);
void multiply_in_threads(const Product *product, Way way);

/* The matrix with rows and columns exchanged, in rows of `step` elements; its own rows lie together. */
void transpose(const Matrix *matrix, char *to, ptrdiff_t step, int wide);

/* The dot product of two vectors that lie together, and the sums of the columns of a matrix whose rows do. */
double dot_of(const char *a, const char *b, ptrdiff_t count, int wide);
void add_rows(const Matrix *matrix, char *result, int wide);

#define STEP(object, i) (PyArray_STRIDE((PyArrayObject *)(object), i) / PyArray_ITEMSIZE((PyArrayObject *)(object)))
#define DATA(object) PyArray_BYTES((PyArrayObject *)(object))

/* The last two dimensions of an array. A dimension of size one may have any stride: it gets a useful one. */
INLINE Matrix matrix_of(PyObject *array)
{
    int ndim = NDIM(array);
    Matrix m = {DATA(array), DIM(array, ndim - 2), DIM(array, ndim - 1), STEP(array, ndim - 2), STEP(array, ndim - 1)};
    if (m.columns == 1)
        m.column_step = m.row_step == 1 ? m.rows : 1;
    if (m.rows == 1)
        m.row_step = m.column_step == 1 ? m.columns : 1;
    return m;
}

INLINE Matrix transposed(Matrix m) { return (Matrix){m.data, m.columns, m.rows, m.column_step, m.row_step}; }

#endif
