/* The compiled kernels of kernels/softmaxes.py. */
#include "casts.h"
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

/* Rows of 16-bit floats: widened in blocks that stay in the cache, and rounded once. */
typedef struct {
    SoftmaxLoop loop; /* its pointers are of 16-bit floats */
    FloatKind kind;
    int failed;
} HalfRows;

#define HALVES_AT_ONCE 2048

static void softmax_half_rows(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    HalfRows *rows = context;
    ptrdiff_t count = rows->loop.layout.count, at_once = count < HALVES_AT_ONCE ? HALVES_AT_ONCE / count : 1;
    ptrdiff_t results = rows->loop.operation == LOGSUMEXP ? 1 : count;
    float *buffer = PyMem_RawMalloc((size_t)(3 * at_once * count) * sizeof *buffer);
    if (!buffer) {
        rows->failed = 1;
        return;
    }
    float *first = buffer, *second = first + at_once * count, *output = second + at_once * count;
    for (ptrdiff_t row = begin; row < end; row += at_once) {
        ptrdiff_t some = end - row < at_once ? end - row : at_once;
        SoftmaxLoop loop = {rows->loop.operation, {some, count, 1}, first, second, output};
        widen_floats(rows->kind, (const char *)rows->loop.first + 2 * row * count, first, some * count);
        if (rows->loop.second)
            widen_floats(rows->kind, (const char *)rows->loop.second + 2 * row * count, second, some * count);
        softmax_block_float(&loop, 0, some);
        narrow_floats(rows->kind, output, (char *)rows->loop.output + 2 * row * results, some * results);
    }
    PyMem_RawFree(buffer);
}

/* Along the last dimension of row-major arrays, or decline. */
static PyObject *map_halves(SoftmaxOperation operation, PyObject *first, PyObject *second, PyObject *dim)
{
    FloatKind kind = half_kind(first);
    int ndim = kind ? PyArray_NDIM((PyArrayObject *)first) : 0;
    long along;
    if (!ndim || !size_of(first) || !read_integer(dim, ndim - 1, ndim - 1, &along) ||
        (second && (half_kind(second) != kind || !same_shape(first, second))))
        return DECLINE;
    PyObject *result = new_of_type(first, operation == LOGSUMEXP ? ndim - 1 : ndim, PyArray_DIMS((PyArrayObject *)first));
    if (!result)
        return NULL;
    Layout layout = layout_along(first, ndim - 1);
    HalfRows rows = {{operation, layout, data_of(first), second ? data_of(second) : NULL, data_of(result)}, kind, 0};
    run_items(layout.outer, layout.count * EXPONENTIAL_WORK, softmax_half_rows, &rows);
    if (!rows.failed)
        return result;
    Py_DECREF(result);
    return PyErr_NoMemory();
}

static PyObject *map_input(SoftmaxOperation operation, PyObject *input, PyObject *dim)
{
    long along;
    if (half_kind(input))
        return map_halves(operation, input, NULL, dim);
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
    if (half_kind(values))
        return map_halves(operation, grad, values, dim);
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
