/* The compiled kernels of kernels/normalization.py. */
#include "reduction.h"

#include <math.h>

/* Rows whose gradients of factor and shift are added up in one partial result. */
#define PART_ROWS 64

typedef struct {
    const void *input, *grad, *factor, *shift;
    void *output, *mean, *scale, *variance, *partials, *to_factor, *to_shift;
    ptrdiff_t rows, count;              /* samples or rows, and elements of a row */
    ptrdiff_t channels, inner, groups;  /* channels of a row, elements of a channel, rows of a sample */
    double eps;
    int centered;                       /* whether the mean is subtracted */
} Normalization;

#define LOOPS "normalization_loops.h"
#include "for_each_real.h"

/* The length of the rows that a tuple of last dimensions describes; 0 where the array does not end with them. */
static ptrdiff_t row_length(PyObject *input, PyObject *shape)
{
    if (!shape || !PyTuple_CheckExact(shape))
        return 0;
    PyArrayObject *array = (PyArrayObject *)input;
    int count = (int)PyTuple_GET_SIZE(shape), lead = PyArray_NDIM(array) - count;
    ptrdiff_t length = 1;
    for (int i = 0; lead >= 0 && i < count; i++) {
        long size;
        if (!read_integer(PyTuple_GET_ITEM(shape, i), 1, LONG_MAX, &size) || size != PyArray_DIM(array, lead + i))
            return 0;
        length *= size;
    }
    return lead >= 0 && count ? length : 0;
}

/* Close a kernel: pack the results (each given up) or drop them all where one is missing. */
static PyObject *pack(int count, PyObject **results)
{
    PyObject *packed = PyTuple_New(count);
    for (int i = 0; i < count; i++)
        if (!results[i])
            Py_CLEAR(packed);
    for (int i = 0; i < count; i++)
        if (packed)
            PyTuple_SET_ITEM(packed, i, results[i]);
        else
            Py_XDECREF(results[i]);
    return packed;
}

static PyObject *native_layer_norm(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "normalized_shape", "weight", "bias", "eps");
    PyObject *input = slots[0];
    double eps;
    if (!is_real_array(input) || !size_of(input) || !slots[4] || !read_number(slots[4], &eps))
        return DECLINE;
    ptrdiff_t count = row_length(input, slots[1]);
    int type = type_of(input), ndim = PyArray_NDIM((PyArrayObject *)input);
    if (!count || !is_absent_or_plain(slots[2], type, count) || !is_absent_or_plain(slots[3], type, count))
        return DECLINE;
    npy_intp kept[NPY_MAXDIMS];
    int lead = ndim - (int)PyTuple_GET_SIZE(slots[1]);
    for (int i = 0; i < ndim; i++)
        kept[i] = i < lead ? PyArray_DIM((PyArrayObject *)input, i) : 1;
    PyObject *plain = row_major(input);
    PyObject *results[3] = {plain ? new_like(plain) : NULL, new_array(ndim, kept, type), new_array(ndim, kept, type)};
    if (results[0] && results[1] && results[2]) {
        Normalization loop = {
            .input = data_of(plain), .factor = data_or_null(slots[2]), .shift = data_or_null(slots[3]),
            .output = data_of(results[0]), .mean = data_of(results[1]), .scale = data_of(results[2]),
            .count = count, .eps = eps, .centered = 1,
        };
        run_items(size_of(plain) / count, 4 * count, FOR_TYPE(type, normalize_rows), &loop);
    }
    Py_XDECREF(plain);
    return pack(3, results);
}

/* The spacing of numbers at 1, which divides where no eps is given. */
static double spacing(int type) { return type == NPY_FLOAT ? 1.1920928955078125e-7 : 2.220446049250313e-16; }

static PyObject *rms_norm_fused(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "normalized_shape", "weight", "eps");
    PyObject *input = slots[0];
    if (!is_real_array(input) || !size_of(input))
        return DECLINE;
    double eps = spacing(type_of(input));
    ptrdiff_t count = row_length(input, slots[1]);
    if (!count || (!is_none(slots[3]) && !read_number(slots[3], &eps)) ||
        !is_absent_or_plain(slots[2], type_of(input), count))
        return DECLINE;
    PyObject *plain = row_major(input);
    PyObject *result = plain ? new_like(plain) : NULL;
    if (result) {
        Normalization loop = {
            .input = data_of(plain), .factor = data_or_null(slots[2]), .output = data_of(result), .count = count, .eps = eps,
        };
        run_items(size_of(plain) / count, 3 * count, FOR_TYPE(type_of(plain), normalize_rows), &loop);
    }
    Py_XDECREF(plain);
    return result;
}

/* The gradients of input, factor and shift of normalized rows; without `mean` they were only scaled. */
static PyObject *back_through_rows(PyObject *grad, PyObject *input, PyObject *mean, PyObject *scale, PyObject *weight,
                                   ptrdiff_t count, npy_intp *row_shape, int row_ndim, double eps)
{
    int type = type_of(input);
    ptrdiff_t rows = size_of(input) / count, parts = (rows + PART_ROWS - 1) / PART_ROWS;
    PyObject *plain = row_major(input), *plain_grad = row_major(grad), *results[3] = {NULL};
    void *partials = PyMem_RawMalloc((size_t)(2 * parts * count) * (type == NPY_FLOAT ? sizeof(float) : sizeof(double)));
    if (!partials)
        PyErr_NoMemory();
    if (plain && plain_grad && partials) {
        results[0] = new_like(plain);
        results[1] = is_none(weight) ? Py_NewRef(Py_None) : new_array(row_ndim, row_shape, type);
        results[2] = new_array(row_ndim, row_shape, type);
    }
    if (results[0] && results[1] && results[2]) {
        Normalization loop = {
            .input = data_of(plain), .grad = data_of(plain_grad), .factor = data_or_null(weight),
            .output = data_of(results[0]), .mean = mean ? data_of(mean) : NULL, .scale = mean ? data_of(scale) : NULL,
            .partials = partials, .rows = rows, .count = count, .eps = eps, .centered = mean != NULL,
        };
        run_items(parts, 4 * count * (rows < PART_ROWS ? rows : PART_ROWS), FOR_TYPE(type, back_rows), &loop);
        FOR_TYPE(type, join_columns)(partials, parts, count, is_none(weight) ? NULL : data_of(results[1]), data_of(results[2]));
    }
    PyMem_RawFree(partials);
    Py_XDECREF(plain);
    Py_XDECREF(plain_grad);
    return pack(3, results);
}

/* Read a tuple that row_length() has accepted. */
static int read_row_shape(PyObject *shape, npy_intp *sizes)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); i++)
        sizes[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
    return (int)PyTuple_GET_SIZE(shape);
}

static PyObject *layer_norm_back(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "grad", "input", "mean", "rstd", "weight", "normalized_shape", "eps");
    PyObject *input = slots[1];
    if (!is_real_array(input) || !size_of(input))
        return DECLINE;
    int type = type_of(input);
    ptrdiff_t count = row_length(input, slots[5]), rows = count ? size_of(input) / count : 0;
    /* A row of one element has the gradient 0 exactly, which fused multiplications miss by a rounding: the reference. */
    if (count < 2 || !is_real_array_of(slots[0], type) || !same_shape(slots[0], input) || !slots[2] || !slots[3] ||
        !is_plain_of(slots[2], type) || !is_plain_of(slots[3], type) || size_of(slots[2]) != rows ||
        size_of(slots[3]) != rows || !is_absent_or_plain(slots[4], type, count))
        return DECLINE;
    npy_intp shape[NPY_MAXDIMS];
    int ndim = read_row_shape(slots[5], shape);
    return back_through_rows(slots[0], input, slots[2], slots[3], slots[4], count, shape, ndim, 0);
}

static PyObject *rms_norm_back(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "grad", "input", "normalized_shape", "weight", "eps");
    PyObject *input = slots[1];
    if (!is_real_array(input) || !size_of(input))
        return DECLINE;
    int type = type_of(input);
    double eps = spacing(type);
    ptrdiff_t count = row_length(input, slots[2]);
    if (!count || !is_real_array_of(slots[0], type) || !same_shape(slots[0], input) ||
        (!is_none(slots[4]) && !read_number(slots[4], &eps)) || !is_absent_or_plain(slots[3], type, count))
        return DECLINE;
    npy_intp shape[NPY_MAXDIMS];
    int ndim = read_row_shape(slots[2], shape);
    PyObject *triple = back_through_rows(slots[0], input, NULL, NULL, slots[3], count, shape, ndim, eps);
    if (!triple)
        return NULL;
    PyObject *pair = PyTuple_GetSlice(triple, 0, 2);
    Py_DECREF(triple);
    return pair;
}

/* (N, C, ...) of a float type, not empty: the sizes of a loop over channels. */
static int read_channels(PyObject *input, Normalization *loop)
{
    if (!is_real_array(input) || !size_of(input) || PyArray_NDIM((PyArrayObject *)input) < 2)
        return 0;
    loop->rows = PyArray_DIM((PyArrayObject *)input, 0);
    loop->channels = PyArray_DIM((PyArrayObject *)input, 1);
    loop->inner = size_of(input) / (loop->rows * loop->channels);
    loop->groups = 1;
    return 1;
}

static void run_channels(Normalization *loop, int type, BlockFunction segments, BlockFunction columns)
{
    ptrdiff_t lanes = type == NPY_FLOAT ? 32 : 16, elements = 4 * loop->rows * loop->inner;
    if (loop->inner == 1)
        run_items((loop->channels + lanes - 1) / lanes, elements * lanes, columns, loop);
    else
        run_items(loop->channels, elements, segments, loop);
}

static PyObject *batch_norm_training(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "weight", "bias", "eps");
    Normalization loop = {.centered = 1};
    if (!read_channels(slots[0], &loop) || !slots[3] || !read_number(slots[3], &loop.eps))
        return DECLINE;
    int type = type_of(slots[0]);
    npy_intp channels = loop.channels;
    if (!is_absent_or_plain(slots[1], type, channels) || !is_absent_or_plain(slots[2], type, channels))
        return DECLINE;
    PyObject *plain = row_major(slots[0]), *results[4] = {plain ? new_like(plain) : NULL};
    for (int i = 1; i < 4; i++)
        results[i] = new_array(1, &channels, type);
    if (results[0] && results[1] && results[2] && results[3]) {
        loop.input = data_of(plain);
        loop.factor = data_or_null(slots[1]);
        loop.shift = data_or_null(slots[2]);
        loop.output = data_of(results[0]);
        loop.mean = data_of(results[1]);
        loop.scale = data_of(results[2]);
        loop.variance = data_of(results[3]);
        run_channels(&loop, type, FOR_TYPE(type, normalize_channels), FOR_TYPE(type, normalize_vectors));
    }
    Py_XDECREF(plain);
    return pack(4, results);
}

/* Fill in what gradients of channels and of groups read and write; the results in the order of the kernel's. */
static int prepare_back(Normalization *loop, PyObject *const *slots, PyObject *plain, PyObject *grad, PyObject **results)
{
    npy_intp channels = loop->channels * loop->groups;
    results[0] = plain && grad ? new_like(plain) : NULL;
    results[1] = new_array(1, &channels, type_of(slots[1]));
    results[2] = new_array(1, &channels, type_of(slots[1]));
    if (!results[0] || !results[1] || !results[2])
        return 0;
    loop->input = data_of(plain);
    loop->grad = data_of(grad);
    loop->mean = data_of(slots[2]);
    loop->scale = data_of(slots[3]);
    loop->factor = data_or_null(slots[4]);
    loop->output = data_of(results[0]);
    loop->to_factor = data_of(results[1]);
    loop->to_shift = data_of(results[2]);
    return 1;
}

/* Whether gradient, statistics and weight fit the input: the first arguments of gradients of channels and of groups. */
static int fits_back(PyObject *const *slots, ptrdiff_t statistics, ptrdiff_t channels)
{
    int type = type_of(slots[1]);
    return is_real_array_of(slots[0], type) && same_shape(slots[0], slots[1]) && slots[2] && slots[3] &&
           is_plain_of(slots[2], type) && is_plain_of(slots[3], type) && size_of(slots[2]) == statistics &&
           size_of(slots[3]) == statistics && is_absent_or_plain(slots[4], type, channels);
}

static PyObject *batch_norm_training_back(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "grad", "input", "mean", "rstd", "weight", "eps");
    Normalization loop = {.centered = 1};
    if (!read_channels(slots[1], &loop) || !fits_back(slots, loop.channels, loop.channels))
        return DECLINE;
    int type = type_of(slots[1]);
    PyObject *plain = row_major(slots[1]), *grad = row_major(slots[0]), *results[3];
    if (prepare_back(&loop, slots, plain, grad, results))
        run_channels(&loop, type, FOR_TYPE(type, back_channels), FOR_TYPE(type, back_vectors));
    Py_XDECREF(plain);
    Py_XDECREF(grad);
    return pack(3, results);
}

static PyObject *native_group_norm(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "weight", "bias", "N", "C", "HxW", "group", "eps");
    Normalization loop = {.centered = 1};
    long sizes[3], group;
    if (!read_channels(slots[0], &loop) || !slots[7] || !read_number(slots[7], &loop.eps) ||
        !read_integer(slots[3], loop.rows, loop.rows, &sizes[0]) ||
        !read_integer(slots[4], loop.channels, loop.channels, &sizes[1]) ||
        !read_integer(slots[5], loop.inner, loop.inner, &sizes[2]) || !read_integer(slots[6], 1, loop.channels, &group) ||
        loop.channels % group)
        return DECLINE;
    int type = type_of(slots[0]);
    if (!is_absent_or_plain(slots[1], type, loop.channels) || !is_absent_or_plain(slots[2], type, loop.channels))
        return DECLINE;
    npy_intp shape[2] = {loop.rows, group};
    PyObject *plain = row_major(slots[0]);
    PyObject *results[3] = {plain ? new_like(plain) : NULL, new_array(2, shape, type), new_array(2, shape, type)};
    if (results[0] && results[1] && results[2]) {
        loop.groups = group;
        loop.channels /= group;
        loop.input = data_of(plain);
        loop.factor = data_or_null(slots[1]);
        loop.shift = data_or_null(slots[2]);
        loop.output = data_of(results[0]);
        loop.mean = data_of(results[1]);
        loop.scale = data_of(results[2]);
        run_items(loop.rows * group, 4 * loop.channels * loop.inner, FOR_TYPE(type, normalize_groups), &loop);
    }
    Py_XDECREF(plain);
    return pack(3, results);
}

static PyObject *group_norm_back(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "grad", "input", "mean", "rstd", "weight", "group", "eps");
    Normalization loop = {.centered = 1};
    long group;
    if (!read_channels(slots[1], &loop) || !read_integer(slots[5], 1, loop.channels, &group) || loop.channels % group ||
        !fits_back(slots, loop.rows * group, loop.channels))
        return DECLINE;
    int type = type_of(slots[1]);
    ptrdiff_t all = loop.channels;
    loop.groups = group;
    loop.channels /= group;
    loop.partials = PyMem_RawMalloc((size_t)(2 * loop.rows * all) * (type == NPY_FLOAT ? sizeof(float) : sizeof(double)));
    if (!loop.partials)
        return PyErr_NoMemory();
    PyObject *plain = row_major(slots[1]), *grad = row_major(slots[0]), *results[3];
    if (prepare_back(&loop, slots, plain, grad, results)) {
        run_items(loop.rows * group, 4 * loop.channels * loop.inner, FOR_TYPE(type, back_groups), &loop);
        FOR_TYPE(type, join_columns)(loop.partials, loop.rows, all, loop.to_factor, loop.to_shift);
    }
    PyMem_RawFree(loop.partials);
    Py_XDECREF(plain);
    Py_XDECREF(grad);
    return pack(3, results);
}

const KernelEntry normalization_kernels[] = {
    {"native_layer_norm", native_layer_norm},
    {"layer_norm_back", layer_norm_back},
    {"rms_norm_fused", rms_norm_fused},
    {"rms_norm_back", rms_norm_back},
    {"batch_norm_training", batch_norm_training},
    {"batch_norm_training_back", batch_norm_training_back},
    {"native_group_norm", native_group_norm},
    {"group_norm_back", group_norm_back},
    {NULL},
};
