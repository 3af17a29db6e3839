/* The compiled kernels of kernels/scans.py: running sums, products, extrema and logarithms of sums along a dimension.
 *
 * A running total waits for the one before it, so WIDTH columns, or rows, are taken side by side: their totals do not wait
 * for each other, and columns go into vectors. Totals are float64.
 */
#include "rows.h"
#include "functions.h"

#include <stdint.h>

#define WIDTH 8

typedef struct {
    Layout layout;
    const void *input, *gradient;
    void *output;
    int64_t *places;
} Scan;

/* Where the lanes of one item begin, how far they lie apart, and how far the steps of each. */
typedef struct {
    ptrdiff_t start, lane, step, count;
    int width;
} Lanes;

INLINE ptrdiff_t items_of(Layout layout)
{
    return layout.inner == 1 ? (layout.outer + WIDTH - 1) / WIDTH : layout.outer * ((layout.inner + WIDTH - 1) / WIDTH);
}

INLINE Lanes lanes_of(Layout layout, ptrdiff_t item)
{
    ptrdiff_t groups = layout.inner == 1 ? 1 : (layout.inner + WIDTH - 1) / WIDTH;
    ptrdiff_t outer = layout.inner == 1 ? item * WIDTH : item / groups, column = item % groups * WIDTH;
    ptrdiff_t left = layout.inner == 1 ? layout.outer - outer : layout.inner - column;
    return (Lanes){
        .start = outer * layout.count * layout.inner + column,
        .lane = layout.inner == 1 ? layout.count : 1,
        .step = layout.inner,
        .count = layout.count,
        .width = left < WIDTH ? (int)left : WIDTH,
    };
}

#define LOOPS "scan_loops.h"
#include "for_each_real.h"

/* What a scan along one dimension can be done on. */
static int fits(PyObject *input, PyObject *dim, long *place)
{
    return is_real_array(input) && size_of(input) && PyArray_NDIM((PyArrayObject *)input) &&
           read_integer(dim, 0, PyArray_NDIM((PyArrayObject *)input) - 1, place);
}

static PyObject *scan(PyObject *input, PyObject *dim, BlockFunction of_float, BlockFunction of_double)
{
    long place;
    if (!fits(input, dim, &place))
        return DECLINE;
    PyObject *plain = row_major(input), *result = plain ? new_like(plain) : NULL;
    if (result) {
        Scan loop = {.layout = layout_along(input, (int)place), .input = data_of(plain), .output = data_of(result)};
        run_items(items_of(loop.layout), WIDTH * loop.layout.count, type_of(input) == NPY_FLOAT ? of_float : of_double,
                  &loop);
    }
    Py_XDECREF(plain);
    return result;
}

static PyObject *scan_in_own_dtype(PyObject *const *slots, Py_ssize_t positional, BlockFunction of_float,
                                   BlockFunction of_double)
{
    if (positional > 2 || !is_real_array(slots[0]) ||
        !(is_none(slots[2]) || (PyArray_DescrCheck(slots[2]) && ((PyArray_Descr *)slots[2])->type_num == type_of(slots[0]))))
        return DECLINE;
    return scan(slots[0], slots[1], of_float, of_double);
}

static PyObject *cumsum(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "dtype");
    return scan_in_own_dtype(slots, positional, running_sum_float, running_sum_double);
}

static PyObject *cumprod(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "dtype");
    return scan_in_own_dtype(slots, positional, running_product_float, running_product_double);
}

static PyObject *reversed_cumsum(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim");
    return scan(slots[0], slots[1], reversed_sum_float, reversed_sum_double);
}

static PyObject *logcumsumexp(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim");
    return scan(slots[0], slots[1], running_logarithm_float, running_logarithm_double);
}

/* cumprod_grad(grad, input, dim) */
static PyObject *cumprod_grad(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "grad", "input", "dim");
    long place;
    if (!fits(slots[1], slots[2], &place) || !is_real_array_of(slots[0], type_of(slots[1])) ||
        !same_shape(slots[0], slots[1]))
        return DECLINE;
    PyObject *grad = row_major(slots[0]), *input = row_major(slots[1]), *result = input ? new_like(input) : NULL;
    if (grad && result) {
        Scan loop = {.layout = layout_along(input, (int)place), .input = data_of(input), .gradient = data_of(grad),
                     .output = data_of(result)};
        run_items(items_of(loop.layout), 2 * WIDTH * loop.layout.count, FOR_TYPE(type_of(input), product_gradient), &loop);
    }
    Py_XDECREF(input);
    if (!grad)
        Py_CLEAR(result);
    Py_XDECREF(grad);
    return result;
}

static PyObject *running_extremum(PyObject *const *slots, BlockFunction of_float, BlockFunction of_double)
{
    long place;
    PyObject *input = slots[0];
    if (!fits(input, slots[1], &place))
        return DECLINE;
    PyArrayObject *array = (PyArrayObject *)input;
    PyObject *plain = row_major(input), *values = plain ? new_like(plain) : NULL, *result = NULL;
    PyObject *places = new_array(PyArray_NDIM(array), PyArray_DIMS(array), NPY_INT64);
    if (values && places) {
        Scan loop = {.layout = layout_along(input, (int)place), .input = data_of(plain), .output = data_of(values),
                     .places = data_of(places)};
        run_items(items_of(loop.layout), 2 * WIDTH * loop.layout.count,
                  type_of(input) == NPY_FLOAT ? of_float : of_double, &loop);
        result = PyTuple_Pack(2, values, places);
    }
    Py_XDECREF(plain);
    Py_XDECREF(values);
    Py_XDECREF(places);
    return result;
}

static PyObject *cummax(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim");
    return running_extremum(slots, running_largest_float, running_largest_double);
}

static PyObject *cummin(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim");
    return running_extremum(slots, running_smallest_float, running_smallest_double);
}

const KernelEntry scan_kernels[] = {
    {"cumsum", cumsum},
    {"cumprod", cumprod},
    {"reversed_cumsum", reversed_cumsum},
    {"cumprod_grad", cumprod_grad},
    {"logcumsumexp", logcumsumexp},
    {"cummax", cummax},
    {"cummin", cummin},
    {NULL},
};
