/* What convolution_plan.c and convolution_vectors.c share. */
#ifndef PULLBACK_CONVOLUTION_PLAN_H
#define PULLBACK_CONVOLUTION_PLAN_H

#include "convolution.h"

static inline ptrdiff_t smaller(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }
static inline ptrdiff_t larger(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }
static inline ptrdiff_t divide_up(ptrdiff_t a, ptrdiff_t b) { return (a + b - 1) / b; }

/* Memory that free_plan frees; NULL where there is none. */
ptrdiff_t *allocate(Plan *plan, ptrdiff_t count);

/* How many vectors a row of these windows takes, and how many all of them, flat or row by row. */
ptrdiff_t width_of(const Plan *plan, const ptrdiff_t *windows);
ptrdiff_t flat_vectors(const Plan *plan, const ptrdiff_t *windows);
ptrdiff_t row_vectors(const Plan *plan, const ptrdiff_t *windows);

/* 1, or 0 where memory runs out. */
int list_vectors(Plan *plan, ResultPhase *phase);
int list_unrolled_vectors(Plan *plan, ResultPhase *phase);

#endif
