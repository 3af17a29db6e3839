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
    int ndim = kind ? NDIM(first) : 0;
    long along;
    if (!ndim || !size_of(first) || !read_integer(dim, ndim - 1, ndim - 1, &along) ||
        (second && (half_kind(second) != kind || !same_shape(first, second))))
        return DECLINE;
    PyObject *result = new_of_type(first, operation == LOGSUMEXP ? ndim - 1 : ndim, SHAPE(first));
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

/* (input, dim), or of gradients (grad, result, dim) */
static PyObject *map_reals(PyObject *const *slots, const KernelEntry *entry)
{
    int is_grad = entry->kind >= SOFTMAX_GRAD;
    PyObject *values = slots[is_grad], *result = new_like(values);
    if (result) {
        SoftmaxLoop loop = {(SoftmaxOperation)entry->kind, layout_along(values, dim_of(slots[1 + is_grad])), data_of(slots[0]),
                            is_grad ? data_of(values) : NULL, data_of(result)};
        run_softmax(&loop, type_of(values));
    }
    return result;
}

static PyObject *map_any(PyObject *const *slots, const KernelEntry *entry)
{
    int is_grad = entry->kind >= SOFTMAX_GRAD;
    if (half_kind(slots[is_grad]))
        return map_halves((SoftmaxOperation)entry->kind, slots[0], is_grad ? slots[1] : NULL, slots[1 + is_grad]);
    KernelEntry of_reals = {entry->name, map_reals, is_grad ? "rRd" : "rd", entry->kind};
    return call_prepared(&of_reals, slots, 2 + is_grad);
}

/* Over the last dimension of a row-major array; other dimensions are the reference's. */
static PyObject *logsumexp(PyObject *const *slots, const KernelEntry *entry)
{
    PyObject *input = slots[0];
    int ndim = NDIM(input);
    long along;
    if (!ndim || !PyTuple_CheckExact(slots[1]) || PyTuple_GET_SIZE(slots[1]) != 1 ||
        !read_integer(PyTuple_GET_ITEM(slots[1], 0), ndim - 1, ndim - 1, &along))
        return DECLINE;
    npy_intp shape[NPY_MAXDIMS];
    for (int i = 0; i < ndim - 1; i++)
        shape[i] = DIM(input, i);
    shape[ndim - 1] = 1;
    PyObject *result = new_array(slots[2] == Py_True ? ndim : ndim - 1, shape, type_of(input));
    if (result) {
        SoftmaxLoop loop = {LOGSUMEXP, layout_along(input, ndim - 1), data_of(input), NULL, data_of(result)};
        run_softmax(&loop, type_of(input));
    }
    return result;
}

const KernelEntry softmaxes_kernels[] = {
    {"softmax", map_any, .kind = SOFTMAX},
    {"softmax_grad", map_any, .kind = SOFTMAX_GRAD},
    {"log_softmax", map_any, .kind = LOG_SOFTMAX},
    {"log_softmax_grad", map_any, .kind = LOG_SOFTMAX_GRAD},
    {"logsumexp", logsumexp, "p.f"},
    {NULL},
};
