/* Reducing dimensions of an array: the one machine behind sums, means, extrema, norms, variances and gradients of
 * broadcasting. See reduction.c. */
#ifndef PULLBACK_REDUCTION_H
#define PULLBACK_REDUCTION_H

#include "rows.h"

/* In the order of the table of loops in reduction_loops.h. */
typedef enum {
    SUM, PRODUCT, LARGEST, SMALLEST, SQUARES, SIZES, DEVIATIONS, NUMBERS, LARGEST_SIZE, SMALLEST_SIZE, WIDE_SUM
} Operation;

INLINE int is_largest(Operation operation) { return operation == LARGEST || operation == LARGEST_SIZE; }
INLINE int is_smallest(Operation operation) { return operation == SMALLEST || operation == SMALLEST_SIZE; }
INLINE int is_extremum(Operation operation) { return is_largest(operation) || is_smallest(operation); }

/* Those that work in float64 throughout. */
INLINE int is_wide(Operation operation)
{
    return operation == PRODUCT || operation == DEVIATIONS || operation == WIDE_SUM;
}

#define WIDE_LANES 32 /* the fewest elements of a row that these take side by side */

/* Combine two totals; NaN is larger and smaller than every number. */
INLINE double joined(Operation operation, double first, double second)
{
    if (is_largest(operation))
        return second > first || second != second ? second : first;
    if (is_smallest(operation))
        return second < first || second != second ? second : first;
    return operation == PRODUCT ? first * second : first + second;
}

/* What becomes of a total. */
typedef enum { AS_IT_IS, DIVIDED, ROOT, ROOT_OF_DIVIDED } Finish;

typedef struct {
    Operation operation;
    Finish finish;
    double divisor;
    const double *means; /* of DEVIATIONS: what each result's elements are measured from */
    int is_wide;         /* whether results are float64 whatever the array is; of a plan with one step */
} Task;

/* Neighbouring dimensions of one kind are merged; each step reduces one of them, from the last to the first. */
typedef struct {
    PyObject *array;                /* owned */
    Layout steps[NPY_MAXDIMS];
    int step_count;
    ptrdiff_t reduced_size;         /* how many elements one result is made of */
    npy_intp shape[NPY_MAXDIMS];    /* of the result */
    int ndim;
} Plan;

/* Bits of the dimensions to reduce: all for None and for (); 0 where that is not what the object says. */
int read_dims(PyObject *dims, int ndim, uint64_t *reduced);

/* Plan the reduction of a float array of any strides; 0 with an exception where memory runs out. */
int make_plan(PyObject *array, uint64_t reduced, int keepdim, Plan *plan);
void drop_plan(Plan *plan);

/* Run the plan into new memory of the result's shape; NULL with an exception where memory runs out. */
PyObject *run_plan(const Plan *plan, Task task);

/* Reduce the last dimensions of a row-major array of 16-bit floats, in float32 and rounded once; or decline. */
PyObject *reduce_halves(PyObject *input, uint64_t reduced, int keepdim, Operation operation, Finish finish);

/* The layout of a row-major array in which the dimensions in `reduced` are one; 0 where there are others between. */
int find_layout(PyObject *array, uint64_t reduced, Layout *layout);

/* Truth values, counts and sums of whole numbers, over `dims` as read_dims takes them; or decline. See whole_number_reductions.c. */
typedef enum { ANY, ALL, COUNT, TOTAL } CountKind;
PyObject *reduce_counts(PyObject *input, PyObject *dims, PyObject *keepdim, CountKind kind);

#endif
