/* The matrix product of the BLAS that NumPy loaded. See blas.c. */
#ifndef PULLBACK_BLAS_H
#define PULLBACK_BLAS_H

#include <stddef.h>
#include <stdint.h>

/* Look for the library; called once, when the module is imported. */
void find_blas(void);

/* Whether `blas_multiply` can be called. */
int has_blas(void);

/* result = a @ b + keep * result, row-major, of float (`wide` 0) or double; steps lie between rows, or with
 * `a_transposed`, `b_transposed` between columns. */
void blas_multiply(int wide, int a_transposed, int b_transposed, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t depth,
                   const void *a, ptrdiff_t a_step, const void *b, ptrdiff_t b_step, int keep, void *result,
                   ptrdiff_t result_step);

#endif
