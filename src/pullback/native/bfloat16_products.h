/* Products of matrices of bfloat16 by the processor's own instructions for them. See bfloat16_products.c. */
#ifndef PULLBACK_BFLOAT16_PRODUCTS_H
#define PULLBACK_BFLOAT16_PRODUCTS_H

#include "products.h"

#include "instruction_set.h"

/* result = alpha * a @ b + beta * start, rounded once. `start` may be NULL, or one row for all (its step is 0); its rows and
 * the result's lie together. */
typedef struct {
    Matrix a, b;
    const uint16_t *start;
    ptrdiff_t start_step;
    float alpha, beta;
    uint16_t *result;
    int is_symmetric; /* by construction: one half is computed */
} Bfloat16Product;

/* Whether the processor has such instructions, and tests have not put them out of use. */
int multiplies_bfloat16(void);

/* How many bytes of memory a product needs while it is computed. */
size_t product_workspace(const Bfloat16Product *product);

void multiply_bfloat16(const Bfloat16Product *product, void *workspace);
void multiply_bfloat16_in_threads(const Bfloat16Product *product, void *workspace);

#endif
