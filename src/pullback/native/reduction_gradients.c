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
static PyObject *run_gradient(Gradient *loop, PyObject *grad, PyObject *input, BlockFunction of_float,
                              BlockFunction of_double)
{
    PyObject *plain = grad ? row_major(grad) : NULL, *result = grad && !plain ? NULL : new_like(input);
    if (!result) {
        Py_XDECREF(plain);
        return NULL;
    }
    loop->grad = plain ? data_of(plain) : NULL;
    loop->input = data_of(input);
    loop->output = data_of(result);
    Layout layout = loop->layout;
    run_items(items_of(layout), 2 * layout.count * (layout.inner < TILE ? layout.inner : TILE),
              type_of(input) == NPY_FLOAT ? of_float : of_double, loop);
    Py_XDECREF(plain);
    return result;
}

/* Whether an array holds one number for each result of the reduction, in their order. */
static int is_result(PyObject *array, PyObject *input, Layout layout)
{
    return is_real_array_of(array, type_of(input)) && size_of(array) == layout.outer * layout.inner;
}

/* extremum_grad(grad, input, extreme, dim, keepdim) */
static PyObject *extremum_grad(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "grad", "input", "extreme", "dim", "keepdim");
    uint64_t reduced;
    Gradient loop = {.factor = 1};
    PyObject *input = slots[1];
    if (!input || !is_plain(input) || !size_of(input) || !PyArray_NDIM((PyArrayObject *)input) ||
        !read_dims(slots[3], PyArray_NDIM((PyArrayObject *)input), &reduced) || !find_layout(input, reduced, &loop.layout) ||
        !is_result(slots[0], input, loop.layout) || !is_result(slots[2], input, loop.layout) ||
        !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)slots[2]))
        return DECLINE;
    loop.extreme = data_of(slots[2]);
    return run_gradient(&loop, slots[0], input, share_among_extrema_float, share_among_extrema_double);
}

/* var_grad(grad, input, dim, correction, keepdim) */
static PyObject *var_grad(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "grad", "input", "dim", "correction", "keepdim");
    uint64_t reduced;
    double correction;
    Gradient loop = {.unfit = 0};
    PyObject *input = slots[1];
    if (!input || !is_plain(input) || !size_of(input) || !PyArray_NDIM((PyArrayObject *)input) || !slots[3] ||
        !read_dims(slots[2], PyArray_NDIM((PyArrayObject *)input), &reduced) || !find_layout(input, reduced, &loop.layout) ||
        !is_result(slots[0], input, loop.layout) || !read_number(slots[3], &correction))
        return DECLINE;
    double freedom = (double)loop.layout.count - correction;
    loop.factor = freedom == 0 ? (double)NAN : 2 / freedom;
    return run_gradient(&loop, slots[0], input, spread_deviations_float, spread_deviations_double);
}

/* product_of_others(input, dim), where no product is zero or not finite. */
static PyObject *product_of_others(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim");
    long dim;
    PyObject *input = slots[0];
    if (!input || !is_plain(input) || !size_of(input) ||
        !read_integer(slots[1], 0, PyArray_NDIM((PyArrayObject *)input) - 1, &dim))
        return DECLINE;
    Gradient loop = {.layout = layout_along(input, (int)dim)};
    PyObject *result = run_gradient(&loop, NULL, input, divide_products_float, divide_products_double);
    if (result && loop.unfit)
        Py_CLEAR(result);
    return result;
}

const KernelEntry reduction_gradient_kernels[] = {
    {"extremum_grad", extremum_grad},
    {"var_grad", var_grad},
    {"product_of_others", product_of_others},
    {NULL},
};
