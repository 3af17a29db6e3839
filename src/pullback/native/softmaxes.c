/* The compiled kernels of kernels/softmaxes.py. */
#include "functions.h"
#include "rows.h"

typedef enum { SOFTMAX, LOG_SOFTMAX, LOGSUMEXP, SOFTMAX_GRAD, LOG_SOFTMAX_GRAD } SoftmaxOperation;

typedef struct {
    SoftmaxOperation operation;
    Layout layout;
    const void *first, *second; /* the input; of gradients, the incoming gradient and the operation's result */
    void *output;
} SoftmaxLoop;

#define LOOPS "softmax_loops.h"
#include "for_each_real.h"

/* An exponential is worth about eight elements of a cheap loop. */
#define EXPONENTIAL_WORK 8

static void run_softmax(SoftmaxLoop *loop, int type)
{
    Layout layout = loop->layout;
    int lanes = type == NPY_FLOAT ? 32 : 16, is_rows = layout.inner == 1;
    ptrdiff_t items = is_rows ? layout.outer : layout.outer * ((layout.inner + lanes - 1) / lanes);
    ptrdiff_t elements = is_rows ? layout.count : layout.count * (layout.inner < lanes ? layout.inner : lanes);
    run_items(items, elements * EXPONENTIAL_WORK, FOR_TYPE(type, softmax_block), loop);
}

static PyObject *map_input(SoftmaxOperation operation, PyObject *input, PyObject *dim)
{
    long along;
    if (!is_real_array(input) || !size_of(input) ||
        !read_integer(dim, 0, PyArray_NDIM((PyArrayObject *)input) - 1, &along))
        return DECLINE;
    PyObject *plain = row_major(input);
    PyObject *result = plain ? new_like(plain) : NULL;
    if (result) {
        SoftmaxLoop loop = {operation, layout_along(plain, (int)along), data_of(plain), NULL, data_of(result)};
        run_softmax(&loop, type_of(plain));
    }
    Py_XDECREF(plain);
    return result;
}

static PyObject *softmax(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim");
    return map_input(SOFTMAX, slots[0], slots[1]);
}

static PyObject *log_softmax(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim");
    return map_input(LOG_SOFTMAX, slots[0], slots[1]);
}

static PyObject *map_gradient(SoftmaxOperation operation, PyObject *grad, PyObject *values, PyObject *dim)
{
    long along;
    if (!is_real_array(values) || !is_real_array_of(grad, type_of(values)) || !same_shape(grad, values) ||
        !size_of(values) || !read_integer(dim, 0, PyArray_NDIM((PyArrayObject *)values) - 1, &along))
        return DECLINE;
    PyObject *first = row_major(grad), *second = row_major(values);
    PyObject *result = first && second ? new_like(second) : NULL;
    if (result) {
        Layout layout = layout_along(second, (int)along);
        SoftmaxLoop loop = {operation, layout, data_of(first), data_of(second), data_of(result)};
        run_softmax(&loop, type_of(second));
    }
    Py_XDECREF(first);
    Py_XDECREF(second);
    return result;
}

static PyObject *softmax_grad(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "grad", "result", "dim");
    return map_gradient(SOFTMAX_GRAD, slots[0], slots[1], slots[2]);
}

static PyObject *log_softmax_grad(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "grad", "result", "dim");
    return map_gradient(LOG_SOFTMAX_GRAD, slots[0], slots[1], slots[2]);
}

/* Over the last dimension of a row-major array; other dimensions are the reference's. */
static PyObject *logsumexp(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "keepdim");
    PyObject *input = slots[0];
    int keepdim;
    long along;
    if (!input || !is_plain(input) || !size_of(input) || !slots[1] || !PyTuple_CheckExact(slots[1]) ||
        PyTuple_GET_SIZE(slots[1]) != 1 || !read_flag(slots[2], 0, &keepdim))
        return DECLINE;
    int ndim = PyArray_NDIM((PyArrayObject *)input);
    if (!read_integer(PyTuple_GET_ITEM(slots[1], 0), ndim - 1, ndim - 1, &along) || !ndim)
        return DECLINE;
    npy_intp shape[NPY_MAXDIMS];
    for (int i = 0; i < ndim - 1; i++)
        shape[i] = PyArray_DIM((PyArrayObject *)input, i);
    shape[ndim - 1] = 1;
    PyObject *result = new_array(keepdim ? ndim : ndim - 1, shape, type_of(input));
    if (result) {
        SoftmaxLoop loop = {LOGSUMEXP, layout_along(input, ndim - 1), data_of(input), NULL, data_of(result)};
        run_softmax(&loop, type_of(input));
    }
    return result;
}

const KernelEntry softmaxes_kernels[] = {
    {"softmax", softmax},
    {"softmax_grad", softmax_grad},
    {"log_softmax", log_softmax},
    {"log_softmax_grad", log_softmax_grad},
    {"logsumexp", logsumexp},
    {NULL},
};
