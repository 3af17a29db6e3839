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
    if (!PyTuple_CheckExact(shape))
        return 0;
    int count = (int)PyTuple_GET_SIZE(shape), lead = NDIM(input) - count;
    ptrdiff_t length = 1;
    for (int i = 0; lead >= 0 && i < count; i++) {
        long size;
        if (!read_integer(PyTuple_GET_ITEM(shape, i), 1, LONG_MAX, &size) || size != DIM(input, lead + i))
            return 0;
        length *= size;
    }
    return lead >= 0 && count ? length : 0;
}

static PyObject *native_layer_norm(PyObject *const *slots, const KernelEntry *entry)
{
    PyObject *input = slots[0];
    ptrdiff_t count = row_length(input, slots[1]);
    int type = type_of(input), ndim = NDIM(input);
    if (!count || !is_absent_or_plain(slots[2], type, count) || !is_absent_or_plain(slots[3], type, count))
        return DECLINE;
    npy_intp kept[NPY_MAXDIMS];
    int lead = ndim - (int)PyTuple_GET_SIZE(slots[1]);
    for (int i = 0; i < ndim; i++)
        kept[i] = i < lead ? DIM(input, i) : 1;
    PyObject *results[3] = {new_like(input), new_array(ndim, kept, type), new_array(ndim, kept, type)};
    if (all_made(results, 3)) {
        Normalization loop = {
            .input = data_of(input), .factor = data_or_null(slots[2]), .shift = data_or_null(slots[3]),
            .output = data_of(results[0]), .mean = data_of(results[1]), .scale = data_of(results[2]),
            .count = count, .eps = number_of(slots[4]), .centered = 1,
        };
        run_items(size_of(input) / count, 4 * count, FOR_TYPE(type, normalize_rows), &loop);
    }
    return pack(3, results);
}

/* An eps, or the spacing of numbers at 1, which divides where none is given. */
static double eps_of(PyObject *given, int type)
{
    return given != Py_None ? number_of(given) : type == NPY_FLOAT ? 1.1920928955078125e-7 : 2.220446049250313e-16;
}

static PyObject *rms_norm_fused(PyObject *const *slots, const KernelEntry *entry)
{
    PyObject *input = slots[0];
    int type = type_of(input);
    ptrdiff_t count = row_length(input, slots[1]);
    if (!count || !is_absent_or_plain(slots[2], type, count))
        return DECLINE;
    PyObject *result = new_like(input);
    if (result) {
        Normalization loop = {.input = data_of(input), .factor = data_or_null(slots[2]), .output = data_of(result),
                              .count = count, .eps = eps_of(slots[3], type)};
        run_items(size_of(input) / count, 3 * count, FOR_TYPE(type, normalize_rows), &loop);
    }
    return result;
}

/* The gradients of input, factor and (where there is a mean) shift of rows of this shape; else they were only scaled. */
static PyObject *back_through_rows(PyObject *grad, PyObject *input, PyObject *mean, PyObject *scale, PyObject *weight,
                                   PyObject *row_shape, double eps)
{
    npy_intp shape[NPY_MAXDIMS];
    int type = type_of(input), row_ndim = (int)PyTuple_GET_SIZE(row_shape);
    ptrdiff_t count = 1;
    for (int i = 0; i < row_ndim; i++)
        count *= shape[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(row_shape, i));
    ptrdiff_t rows = size_of(input) / count, parts = (rows + PART_ROWS - 1) / PART_ROWS;
    void *partials = PyMem_RawMalloc((size_t)(2 * parts * count) * (size_t)ITEM(input));
    if (!partials)
        return PyErr_NoMemory();
    PyObject *results[3] = {
        new_like(input),
        is_none(weight) ? Py_NewRef(Py_None) : new_array(row_ndim, shape, type),
        new_array(row_ndim, shape, type),
    };
    if (all_made(results, 3)) {
        Normalization loop = {
            .input = data_of(input), .grad = data_of(grad), .factor = data_or_null(weight),
            .output = data_of(results[0]), .mean = mean ? data_of(mean) : NULL, .scale = mean ? data_of(scale) : NULL,
            .partials = partials, .rows = rows, .count = count, .eps = eps, .centered = mean != NULL,
        };
        run_items(parts, 4 * count * (rows < PART_ROWS ? rows : PART_ROWS), FOR_TYPE(type, back_rows), &loop);
        FOR_TYPE(type, join_columns)(partials, parts, count, data_or_null(results[1]), data_of(results[2]));
    }
    PyMem_RawFree(partials);
    if (!mean)
        Py_XDECREF(results[2]);
    return pack(mean ? 3 : 2, results);
}

static PyObject *layer_norm_back(PyObject *const *slots, const KernelEntry *entry)
{
    PyObject *input = slots[1];
    ptrdiff_t count = row_length(input, slots[5]), rows = count ? size_of(input) / count : 0;
    /* A row of one element has the gradient 0 exactly, which fused multiplications miss by a rounding: the reference. */
    if (count < 2 || size_of(slots[2]) != rows || size_of(slots[3]) != rows ||
        !is_absent_or_plain(slots[4], type_of(input), count))
        return DECLINE;
    return back_through_rows(slots[0], input, slots[2], slots[3], slots[4], slots[5], 0);
}

static PyObject *rms_norm_back(PyObject *const *slots, const KernelEntry *entry)
{
    int type = type_of(slots[1]);
    ptrdiff_t count = row_length(slots[1], slots[2]);
    if (!count || !is_absent_or_plain(slots[3], type, count))
        return DECLINE;
    return back_through_rows(slots[0], slots[1], NULL, NULL, slots[3], slots[2], eps_of(slots[4], type));
}

/* The sizes of a loop over the channels of (N, C, ...). */
static int read_channels(PyObject *input, Normalization *loop)
{
    if (NDIM(input) < 2)
        return 0;
    loop->rows = DIM(input, 0);
    loop->channels = DIM(input, 1);
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

/* Fill in what normalizing channels and groups reads and writes. */
static int prepare(Normalization *loop, PyObject *const *slots, PyObject **results)
{
    loop->input = data_of(slots[0]);
    loop->factor = data_or_null(slots[1]);
    loop->shift = data_or_null(slots[2]);
    if (!results[0] || !results[1] || !results[2])
        return 0;
    loop->output = data_of(results[0]);
    loop->mean = data_of(results[1]);
    loop->scale = data_of(results[2]);
    return 1;
}

static PyObject *batch_norm_training(PyObject *const *slots, const KernelEntry *entry)
{
    Normalization loop = {.centered = 1, .eps = number_of(slots[3])};
    int type = type_of(slots[0]);
    if (!read_channels(slots[0], &loop) || !is_absent_or_plain(slots[1], type, loop.channels) ||
        !is_absent_or_plain(slots[2], type, loop.channels))
        return DECLINE;
    npy_intp size = loop.channels;
    PyObject *results[4] = {new_like(slots[0]), new_array(1, &size, type), new_array(1, &size, type), new_array(1, &size, type)};
    if (prepare(&loop, slots, results) && results[3]) {
        loop.variance = data_of(results[3]);
        run_channels(&loop, type, FOR_TYPE(type, normalize_channels), FOR_TYPE(type, normalize_vectors));
    }
    return pack(4, results);
}

/* Fill in what gradients of channels and of groups read and write; the results in the order of the kernel's. */
static int prepare_back(Normalization *loop, PyObject *const *slots, PyObject **results)
{
    npy_intp channels = loop->channels * loop->groups;
    results[0] = new_like(slots[1]);
    results[1] = new_array(1, &channels, type_of(slots[1]));
    results[2] = new_array(1, &channels, type_of(slots[1]));
    if (!all_made(results, 3))
        return 0;
    loop->grad = data_of(slots[0]);
    loop->input = data_of(slots[1]);
    loop->mean = data_of(slots[2]);
    loop->scale = data_of(slots[3]);
    loop->factor = data_or_null(slots[4]);
    loop->output = data_of(results[0]);
    loop->to_factor = data_of(results[1]);
    loop->to_shift = data_of(results[2]);
    return 1;
}

/* Whether statistics and weight fit the input: the first arguments of gradients of channels and of groups. */
static int fits_back(PyObject *const *slots, ptrdiff_t statistics, ptrdiff_t channels)
{
    return size_of(slots[2]) == statistics && size_of(slots[3]) == statistics &&
           is_absent_or_plain(slots[4], type_of(slots[1]), channels);
}

static PyObject *batch_norm_training_back(PyObject *const *slots, const KernelEntry *entry)
{
    Normalization loop = {.centered = 1};
    if (!read_channels(slots[1], &loop) || !fits_back(slots, loop.channels, loop.channels))
        return DECLINE;
    int type = type_of(slots[1]);
    PyObject *results[3];
    if (prepare_back(&loop, slots, results))
        run_channels(&loop, type, FOR_TYPE(type, back_channels), FOR_TYPE(type, back_vectors));
    return pack(3, results);
}

static PyObject *native_group_norm(PyObject *const *slots, const KernelEntry *entry)
{
    Normalization loop = {.centered = 1, .eps = number_of(slots[7])};
    long sizes[3], group;
    int type = type_of(slots[0]);
    if (!read_channels(slots[0], &loop) || !read_integer(slots[3], loop.rows, loop.rows, &sizes[0]) ||
        !read_integer(slots[4], loop.channels, loop.channels, &sizes[1]) ||
        !read_integer(slots[5], loop.inner, loop.inner, &sizes[2]) || !read_integer(slots[6], 1, loop.channels, &group) ||
        loop.channels % group || !is_absent_or_plain(slots[1], type, loop.channels) ||
        !is_absent_or_plain(slots[2], type, loop.channels))
        return DECLINE;
    npy_intp shape[2] = {loop.rows, group};
    PyObject *results[3] = {new_like(slots[0]), new_array(2, shape, type), new_array(2, shape, type)};
    loop.groups = group;
    loop.channels /= group;
    if (prepare(&loop, slots, results))
        run_items(loop.rows * group, 4 * loop.channels * loop.inner, FOR_TYPE(type, normalize_groups), &loop);
    return pack(3, results);
}

static PyObject *group_norm_back(PyObject *const *slots, const KernelEntry *entry)
{
    Normalization loop = {.centered = 1};
    long group;
    if (!read_channels(slots[1], &loop) || !read_integer(slots[5], 1, loop.channels, &group) || loop.channels % group ||
        !fits_back(slots, loop.rows * group, loop.channels))
        return DECLINE;
    int type = type_of(slots[1]);
    ptrdiff_t all = loop.channels;
    loop.groups = group;
    loop.channels /= group;
    loop.partials = PyMem_RawMalloc((size_t)(2 * loop.rows * all) * (size_t)ITEM(slots[1]));
    if (!loop.partials)
        return PyErr_NoMemory();
    PyObject *results[3];
    if (prepare_back(&loop, slots, results)) {
        run_items(loop.rows * group, 4 * loop.channels * loop.inner, FOR_TYPE(type, back_groups), &loop);
        FOR_TYPE(type, join_columns)(loop.partials, loop.rows, all, loop.to_factor, loop.to_shift);
    }
    PyMem_RawFree(loop.partials);
    return pack(3, results);
}

const KernelEntry normalization_kernels[] = {
    {"native_layer_norm", native_layer_norm, "r...n"},
    {"layer_norm_back", layer_norm_back, "rRpp"},
    {"rms_norm_fused", rms_norm_fused, "r..N"},
    {"rms_norm_back", rms_norm_back, "rR..N"},
    {"batch_norm_training", batch_norm_training, "r..n"},
    {"batch_norm_training_back", batch_norm_training_back, "rRpp"},
    {"native_group_norm", native_group_norm, "r......n"},
    {"group_norm_back", group_norm_back, "rRpp"},
    {NULL},
};
