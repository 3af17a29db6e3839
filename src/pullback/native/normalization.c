/* The compiled kernels of kernels/normalization.py.
 *
 * What one mean is of is an item: a row, a group of channels, or a channel of all samples. An item has `channels` channels,
 * each of `segments` segments of `inner` elements that lie `stride` apart, and a factor and a shift for each channel, or
 * (where it is a row) for each element.
 */
#include "reduction.h"

#include <math.h>

/* Rows whose gradients of factor and shift are added up in one partial result. */
#define PART_ROWS 64

typedef struct {
    const void *input, *grad, *factor, *shift;
    void *output, *mean, *scale, *variance; /* an output that is NULL is not asked for, nor are statistics */
    void *to_factor, *to_shift;             /* their gradients, of parts whose numbers lie two times `factors` apart */
    ptrdiff_t items, step, count;           /* how far items lie apart, and elements of an item */
    ptrdiff_t channels, segments, inner, stride;
    ptrdiff_t factors;                      /* how many there are */
    double eps;
    int centered;                           /* whether the mean is subtracted */
} Normalization;

#define LOOPS "normalization_loops.h"
#include "for_each_real.h"

/* Items that are rows of the last dimensions in a tuple; 0 where the array does not end with them. */
static int read_rows(PyObject *input, PyObject *shape, Normalization *loop)
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
    *loop = (Normalization){.items = size_of(input) / length, .step = length, .count = length, .channels = 1,
                            .segments = 1, .inner = length, .factors = length, .centered = 1};
    return lead >= 0 && count;
}

/* Items that are channels of (N, C, ...), or `groups` groups of them in each sample. */
static int read_channels(PyObject *input, long groups, Normalization *loop)
{
    if (NDIM(input) < 2 || (groups && DIM(input, 1) % groups))
        return 0;
    ptrdiff_t samples = DIM(input, 0), all = DIM(input, 1), inner = size_of(input) / (samples * all);
    ptrdiff_t channels = groups ? all / groups : 1, segments = groups ? 1 : samples;
    *loop = (Normalization){.items = groups ? samples * groups : all, .step = channels * inner, .channels = channels,
                            .count = channels * segments * inner, .segments = segments, .inner = inner,
                            .stride = all * inner, .factors = all, .centered = 1};
    return 1;
}

/* Channels of single elements are columns. */
static int has_columns(const Normalization *loop) { return loop->segments > 1 && loop->inner == 1; }

static void run_channels(Normalization *loop, int type, BlockFunction items, BlockFunction columns)
{
    ptrdiff_t lanes = type == NPY_FLOAT ? 32 : 16;
    if (has_columns(loop))
        run_items((loop->items + lanes - 1) / lanes, 4 * loop->count * lanes, columns, loop);
    else
        run_items(loop->items, 4 * loop->count, items, loop);
}

/* Normalize; the result and as many statistics as are asked for: means, reciprocal deviations and variances. */
static PyObject *normalize(Normalization *loop, PyObject *input, PyObject *weight, PyObject *bias, int statistics, int ndim,
                           const npy_intp *shape, int by_channel)
{
    int type = type_of(input);
    if (!is_absent_or_plain(weight, type, loop->factors) || !is_absent_or_plain(bias, type, loop->factors))
        return DECLINE;
    PyObject *results[4] = {new_like(input)};
    for (int i = 1; i <= statistics; i++)
        results[i] = new_array(ndim, shape, type);
    if (all_made(results, 1 + statistics)) {
        void **to[] = {&loop->output, &loop->mean, &loop->scale, &loop->variance};
        for (int i = 0; i <= statistics; i++)
            *to[i] = data_of(results[i]);
        loop->input = data_of(input);
        loop->factor = data_or_null(weight);
        loop->shift = data_or_null(bias);
        if (by_channel)
            run_channels(loop, type, FOR_TYPE(type, normalize_channels), FOR_TYPE(type, normalize_vectors));
        else
            run_items(loop->items, (loop->centered ? 4 : 3) * loop->count, FOR_TYPE(type, normalize_rows), loop);
    }
    return statistics ? pack(1 + statistics, results) : results[0];
}

static PyObject *native_layer_norm(PyObject *const *slots, const KernelEntry *entry)
{
    Normalization loop;
    npy_intp kept[NPY_MAXDIMS];
    if (!read_rows(slots[0], slots[1], &loop))
        return DECLINE;
    int ndim = NDIM(slots[0]), lead = ndim - (int)PyTuple_GET_SIZE(slots[1]);
    for (int i = 0; i < ndim; i++)
        kept[i] = i < lead ? DIM(slots[0], i) : 1;
    loop.eps = number_of(slots[4]);
    return normalize(&loop, slots[0], slots[2], slots[3], 2, ndim, kept, 0);
}

/* An eps, or the spacing of numbers at 1, which divides where none is given. */
static double eps_of(PyObject *given, int type)
{
    return given != Py_None ? number_of(given) : type == NPY_FLOAT ? 1.1920928955078125e-7 : 2.220446049250313e-16;
}

static PyObject *rms_norm_fused(PyObject *const *slots, const KernelEntry *entry)
{
    Normalization loop;
    if (!read_rows(slots[0], slots[1], &loop))
        return DECLINE;
    loop.centered = 0;
    loop.eps = eps_of(slots[3], type_of(slots[0]));
    return normalize(&loop, slots[0], slots[2], NULL, 0, 0, NULL, 0);
}

static PyObject *batch_norm_training(PyObject *const *slots, const KernelEntry *entry)
{
    Normalization loop;
    if (!read_channels(slots[0], 0, &loop))
        return DECLINE;
    npy_intp channels = loop.factors;
    loop.eps = number_of(slots[3]);
    return normalize(&loop, slots[0], slots[1], slots[2], 3, 1, &channels, 1);
}

static PyObject *native_group_norm(PyObject *const *slots, const KernelEntry *entry)
{
    Normalization loop;
    long groups, given;
    if (NDIM(slots[0]) < 2 || !read_integer(slots[6], 1, DIM(slots[0], 1), &groups) ||
        !read_channels(slots[0], groups, &loop) || !read_integer(slots[3], DIM(slots[0], 0), DIM(slots[0], 0), &given) ||
        !read_integer(slots[4], loop.factors, loop.factors, &given) || !read_integer(slots[5], loop.inner, loop.inner, &given))
        return DECLINE;
    npy_intp shape[2] = {DIM(slots[0], 0), groups};
    loop.eps = number_of(slots[7]);
    return normalize(&loop, slots[0], slots[1], slots[2], 2, 2, shape, 1);
}

/* The gradients of the input, the factor (None where rows have none) and, where the mean was subtracted, the shift, both of
 * this shape. */
static PyObject *go_back(Normalization *loop, PyObject *grad, PyObject *input, PyObject *mean, PyObject *scale,
                         PyObject *weight, int ndim, const npy_intp *shape, int by_channel)
{
    int type = type_of(input);
    ptrdiff_t parts = by_channel ? loop->items * loop->channels / loop->factors : (loop->items + PART_ROWS - 1) / PART_ROWS;
    if (!is_absent_or_plain(weight, type, loop->factors) ||
        (mean && (size_of(mean) != loop->items || size_of(scale) != loop->items)))
        return DECLINE;
    int has_parts = parts > 1 || (!by_channel && is_none(weight));
    char *partials = has_parts ? PyMem_RawMalloc((size_t)(2 * parts * loop->factors) * (size_t)ITEM(input)) : NULL;
    if (has_parts && !partials)
        return PyErr_NoMemory();
    PyObject *results[3] = {new_like(input),
                            by_channel || !is_none(weight) ? new_array(ndim, shape, type) : Py_NewRef(Py_None),
                            new_array(ndim, shape, type)};
    if (all_made(results, 3)) {
        loop->grad = data_of(grad);
        loop->input = data_of(input);
        loop->mean = mean ? data_of(mean) : NULL;
        loop->scale = mean ? data_of(scale) : NULL;
        loop->factor = data_or_null(weight);
        loop->output = data_of(results[0]);
        loop->to_factor = has_parts ? partials : data_of(results[1]);
        loop->to_shift = has_parts ? partials + loop->factors * ITEM(input) : data_of(results[2]);
        if (by_channel)
            run_channels(loop, type, FOR_TYPE(type, back_channels), FOR_TYPE(type, back_vectors));
        else
            run_items(parts, 4 * loop->count * (loop->items < PART_ROWS ? loop->items : PART_ROWS), FOR_TYPE(type, back_rows),
                      loop);
        if (has_parts)
            FOR_TYPE(type, join_columns)(partials, parts, loop->factors, data_or_null(results[1]), data_of(results[2]));
    }
    PyMem_RawFree(partials);
    if (!loop->centered)
        Py_XDECREF(results[2]);
    return pack(loop->centered ? 3 : 2, results);
}

/* The gradients of rows whose last dimensions have the sizes in a tuple, which was read. */
static PyObject *go_back_through_rows(Normalization *loop, PyObject *const *arrays, PyObject *mean, PyObject *scale,
                                      PyObject *weight, PyObject *sizes)
{
    npy_intp shape[NPY_MAXDIMS];
    for (int i = 0; i < PyTuple_GET_SIZE(sizes); i++)
        shape[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(sizes, i));
    return go_back(loop, arrays[0], arrays[1], mean, scale, weight, (int)PyTuple_GET_SIZE(sizes), shape, 0);
}

static PyObject *layer_norm_back(PyObject *const *slots, const KernelEntry *entry)
{
    Normalization loop;
    /* A row of one element has the gradient 0 exactly, which fused multiplications miss by a rounding: the reference. */
    if (!read_rows(slots[1], slots[5], &loop) || loop.count < 2)
        return DECLINE;
    return go_back_through_rows(&loop, slots, slots[2], slots[3], slots[4], slots[5]);
}

static PyObject *rms_norm_back(PyObject *const *slots, const KernelEntry *entry)
{
    Normalization loop;
    if (!read_rows(slots[1], slots[2], &loop))
        return DECLINE;
    loop.centered = 0;
    loop.eps = eps_of(slots[4], type_of(slots[1]));
    return go_back_through_rows(&loop, slots, NULL, NULL, slots[3], slots[2]);
}

/* Of batch norms and of group norms, which have the number of groups in their place of eps. */
static PyObject *channels_back(PyObject *const *slots, const KernelEntry *entry)
{
    Normalization loop;
    long groups = 0;
    if (NDIM(slots[1]) < 2 || (entry->kind && !read_integer(slots[5], 1, DIM(slots[1], 1), &groups)) ||
        !read_channels(slots[1], groups, &loop))
        return DECLINE;
    npy_intp channels = loop.factors;
    return go_back(&loop, slots[0], slots[1], slots[2], slots[3], slots[4], 1, &channels, 1);
}

/* 1 / sqrt(variance + eps), times the weight, and the shift that goes with it and with a mean, in new memory; NULL with an
 * exception. */
static void *make_factors(const Normalization *loop, PyObject *weight, PyObject *bias, PyObject *mean, PyObject *variance,
                          PyObject *eps)
{
    void *room = PyMem_RawMalloc((size_t)(2 * loop->factors * ITEM(variance)));
    if (room)
        FOR_TYPE(type_of(variance), find_factors)(loop->factors, data_or_null(weight), data_or_null(bias),
                                                  data_or_null(mean), data_of(variance), number_of(eps), room);
    else
        PyErr_NoMemory();
    return room;
}

/* Channels by given statistics: (input, weight, bias, running_mean, running_var, eps), or (grad, weight, running_var, eps). */
static PyObject *batch_norm_evaluation(PyObject *const *slots, const KernelEntry *entry)
{
    Normalization loop;
    PyObject *bias = entry->kind ? NULL : slots[2], *mean = entry->kind ? NULL : slots[3];
    PyObject *variance = slots[entry->kind ? 2 : 4], *eps = slots[entry->kind ? 3 : 5];
    int type = type_of(slots[0]);
    if (!read_channels(slots[0], 0, &loop) || mean == Py_None || is_none(variance) ||
        !is_absent_or_plain(slots[1], type, loop.factors) || !is_absent_or_plain(bias, type, loop.factors) ||
        !is_absent_or_plain(mean, type, loop.factors) || !is_absent_or_plain(variance, type, loop.factors))
        return DECLINE;
    void *factors = make_factors(&loop, slots[1], bias, mean, variance, eps);
    PyObject *result = factors ? new_like(slots[0]) : NULL;
    if (result) {
        loop.input = data_of(slots[0]);
        loop.factor = factors;
        loop.shift = mean ? (char *)factors + loop.factors * ITEM(slots[0]) : NULL;
        loop.output = data_of(result);
        int one = loop.inner == 1;
        run_items(one ? loop.segments : loop.segments * loop.factors, one ? loop.factors : loop.inner,
                  FOR_TYPE(type, scale_planes), &loop);
    }
    PyMem_RawFree(factors);
    return result;
}

/* (grad, input, dtype, running_mean, running_var, eps) */
static PyObject *batch_norm_evaluation_weight_back(PyObject *const *slots, const KernelEntry *entry)
{
    Normalization loop;
    int type = type_of(slots[1]);
    if (!read_channels(slots[1], 0, &loop) || is_none(slots[2]) || is_none(slots[3]) || is_none(slots[4]) ||
        !is_absent_or_plain(slots[3], type, loop.factors) || !is_absent_or_plain(slots[4], type, loop.factors))
        return DECLINE;
    npy_intp channels = loop.factors;
    void *factors = make_factors(&loop, NULL, NULL, NULL, slots[4], slots[5]);
    PyObject *result = factors ? new_array(1, &channels, type) : NULL;
    if (result) {
        loop.grad = data_of(slots[0]);
        loop.input = data_of(slots[1]);
        loop.mean = data_of(slots[3]);
        loop.scale = factors;
        loop.to_factor = data_of(result);
        run_channels(&loop, type, FOR_TYPE(type, back_channels), FOR_TYPE(type, back_vectors));
    }
    PyMem_RawFree(factors);
    return result;
}

const KernelEntry normalization_kernels[] = {
    {"native_layer_norm", native_layer_norm, "r...n"},
    {"layer_norm_back", layer_norm_back, "rRpp"},
    {"rms_norm_fused", rms_norm_fused, "r..N"},
    {"rms_norm_back", rms_norm_back, "rR..N"},
    {"batch_norm_training", batch_norm_training, "r..n"},
    {"batch_norm_training_back", channels_back, "rRpp"},
    {"batch_norm_evaluation", batch_norm_evaluation, "r....n"},
    {"batch_norm_evaluation_back", batch_norm_evaluation, "r..n", 1},
    {"batch_norm_evaluation_weight_back", batch_norm_evaluation_weight_back, "rRt..n"},
    {"native_group_norm", native_group_norm, "r......n"},
    {"group_norm_back", channels_back, "rRpp", 1},
    {NULL},
};
