/* The compiled kernels of kernels/extrema.py that say where an extremum is. */
#include "reduction.h"

#include <math.h>
#include <stdint.h>

typedef struct {
    Layout layout;
    const void *input;
    void *values; /* NULL where only places are asked for */
    int64_t *places;
} Extrema;

/* As wide as the numbers that it is chosen by. */
#define PLACES TYPED(places)
typedef int32_t places_float;
typedef int64_t places_double;

#define LOOPS "extremum_loops.h"
#include "for_each_real.h"

static void find(Operation operation, Extrema *loop, int type)
{
    Layout layout = loop->layout;
    ptrdiff_t lanes = type == NPY_FLOAT ? 32 : 16, groups = (layout.inner + lanes - 1) / lanes;
    ptrdiff_t items = layout.outer * groups, work = 2 * layout.count * (layout.inner < lanes ? layout.inner : lanes);
    run_items(items, work, operation == LARGEST ? FOR_TYPE(type, find_largest) : FOR_TYPE(type, find_smallest), loop);
}

/* The values (where they are wanted) and places along a dimension; `dim` is -1 for the flattened array. */
static PyObject *extrema_along(Operation operation, PyObject *input, int dim, int keepdim, int with_values)
{
    PyArrayObject *array = (PyArrayObject *)input;
    Layout layout = dim < 0 ? (Layout){1, size_of(input), 1} : layout_along(input, dim);
    if (layout.count > INT32_MAX)
        return DECLINE;
    npy_intp shape[NPY_MAXDIMS];
    int ndim = 0;
    for (int i = 0; i < PyArray_NDIM(array); i++)
        if (i != dim && dim >= 0)
            shape[ndim++] = PyArray_DIM(array, i);
        else if (keepdim)
            shape[ndim++] = 1;
    PyObject *plain = row_major(input), *places = new_array(ndim, shape, NPY_INT64);
    PyObject *values = with_values ? new_array(ndim, shape, type_of(input)) : NULL, *result = NULL;
    if (plain && places && (values || !with_values)) {
        Extrema loop = {layout, data_of(plain), values ? data_of(values) : NULL, data_of(places)};
        find(operation, &loop, type_of(input));
        result = with_values ? PyTuple_Pack(2, values, places) : Py_NewRef(places);
    }
    Py_XDECREF(plain);
    Py_XDECREF(values);
    Py_XDECREF(places);
    return result;
}

static PyObject *select_along(Operation operation, PyObject *const *slots)
{
    long dim;
    int keepdim;
    if (!is_real_array(slots[0]) || !size_of(slots[0]) || !read_flag(slots[2], 0, &keepdim) ||
        !read_integer(slots[1], 0, PyArray_NDIM((PyArrayObject *)slots[0]) - 1, &dim))
        return DECLINE;
    return extrema_along(operation, slots[0], (int)dim, keepdim, 1);
}

static PyObject *place_along(Operation operation, PyObject *const *slots)
{
    long dim = -1;
    int keepdim;
    if (!is_real_array(slots[0]) || !size_of(slots[0]) || !read_flag(slots[2], 0, &keepdim) ||
        (!is_none(slots[1]) && !read_integer(slots[1], 0, PyArray_NDIM((PyArrayObject *)slots[0]) - 1, &dim)))
        return DECLINE;
    return extrema_along(operation, slots[0], (int)dim, keepdim, 0);
}

static PyObject *max_dim(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "keepdim");
    return select_along(LARGEST, slots);
}

static PyObject *min_dim(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "keepdim");
    return select_along(SMALLEST, slots);
}

static PyObject *argmax(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "keepdim");
    return place_along(LARGEST, slots);
}

static PyObject *argmin(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "keepdim");
    return place_along(SMALLEST, slots);
}

const KernelEntry extrema_kernels[] = {
    {"max_dim", max_dim},
    {"min_dim", min_dim},
    {"argmax", argmax},
    {"argmin", argmin},
    {NULL},
};
