/* Gradients of reductions that look at the input again: of extrema, variances and products, for row-major arrays whose
 * reduced dimensions are neighbours. */
#include <math.h>

#include "reduction.h"

#define TILE 64 /* columns that are gone through together */

typedef struct {
    Layout layout;
    const void *grad, *input, *extreme; /* grad and extreme: one number for each result */
    double factor;
    void *output;
    int unfit; /* set where a product is zero or not finite */
} Gradient;

#define LOOPS "reduction_gradient_loops.h"
#include "for_each_real.h"

static ptrdiff_t items_of(Layout layout)
{
    return layout.inner == 1 ? layout.outer : layout.outer * ((layout.inner + TILE - 1) / TILE);
}

/* Run a loop over the results; NULL with an exception where memory runs out. `grad` may have any strides, or be NULL. */
static PyObject *run_gradient(Gradient *loop, PyObject *grad, PyObject *input, BlockFunction body)
{
    PyObject *plain = grad ? row_major(grad) : NULL, *result = grad && !plain ? NULL : new_like(input);
    if (result) {
        loop->grad = plain ? data_of(plain) : NULL;
        loop->input = data_of(input);
        loop->output = data_of(result);
        Layout layout = loop->layout;
        run_items(items_of(layout), 2 * layout.count * (layout.inner < TILE ? layout.inner : TILE), body, loop);
    }
    Py_XDECREF(plain);
    return result;
}

/* The layout of a reduction of `dims`; 0 unless `grad` has one number for each result. */
static int read_reduction(PyObject *grad, PyObject *input, PyObject *dims, Layout *layout)
{
    uint64_t reduced;
    return NDIM(input) && read_dims(dims, NDIM(input), &reduced) && find_layout(input, reduced, layout) &&
           is_real_array_of(grad, type_of(input)) && size_of(grad) == layout->outer * layout->inner;
}

/* extremum_grad(grad, input, extreme, dim, keepdim) */
static PyObject *extremum_grad(PyObject *const *slots, const KernelEntry *entry)
{
    Gradient loop = {.factor = 1, .extreme = data_of(slots[2])};
    if (!read_reduction(slots[0], slots[1], slots[3], &loop.layout) ||
        size_of(slots[2]) != loop.layout.outer * loop.layout.inner)
        return DECLINE;
    return run_gradient(&loop, slots[0], slots[1], LOOP_FOR(entry, slots[1]));
}

/* var_grad(grad, input, dim, correction, keepdim) */
static PyObject *var_grad(PyObject *const *slots, const KernelEntry *entry)
{
    Gradient loop = {.unfit = 0};
    if (!read_reduction(slots[0], slots[1], slots[2], &loop.layout))
        return DECLINE;
    double freedom = (double)loop.layout.count - number_of(slots[3]);
    loop.factor = freedom == 0 ? (double)NAN : 2 / freedom;
    return run_gradient(&loop, slots[0], slots[1], LOOP_FOR(entry, slots[1]));
}

/* product_of_others(input, dim), where no product is zero or not finite. */
static PyObject *product_of_others(PyObject *const *slots, const KernelEntry *entry)
{
    Gradient loop = {.layout = layout_along(slots[0], dim_of(slots[1]))};
    PyObject *result = run_gradient(&loop, NULL, slots[0], LOOP_FOR(entry, slots[0]));
    if (result && loop.unfit)
        Py_CLEAR(result);
    return result;
}

const KernelEntry reduction_gradient_kernels[] = {
    {"extremum_grad", extremum_grad, ".pp", LOOP_PAIR(share_among_extrema)},
    {"var_grad", var_grad, ".p.n", LOOP_PAIR(spread_deviations)},
    {"product_of_others", product_of_others, "pd", LOOP_PAIR(divide_products)},
    {NULL},
};
