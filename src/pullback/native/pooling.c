/* The compiled kernels of kernels/pooling.py and kernels/pooling_to_size.py. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pooling.h"

/* Windows that divide up the input: where each begins and ends. */
typedef struct {
    const void *input;
    void *output;
    npy_int64 *indices;
    ptrdiff_t sizes[WINDOW_DIMS], counts[WINDOW_DIMS];
    ptrdiff_t *begins[WINDOW_DIMS], *ends[WINDOW_DIMS];
} Adaptive;

#define LOOPS "pooling_loops.h"
#include "for_each_real.h"

/* Whether some window has no element inside the input: the reference knows what its maximum is. */
static int has_empty_window(const PoolAxis *axes)
{
    ptrdiff_t first, end;
    for (int d = 0; d < WINDOW_DIMS; d++)
        for (ptrdiff_t window = 0; window < axes[d].count; window++) {
            inside_of(&axes[d], window, &first, &end);
            if (first >= end)
                return 1;
        }
    return 0;
}

/* Windows of two by two elements, side by side and without padding. */
static int is_two_by_two(const PoolAxis *axes)
{
    for (int d = 0; d < WINDOW_DIMS; d++) {
        const PoolAxis *a = &axes[d];
        int is_two = a->kernel == 2 && a->stride == 2 && a->dilation == 1 && a->count * 2 <= a->size;
        if (a->padding || (d == 0 ? a->size != 1 : !is_two))
            return 0;
    }
    return 1;
}

/* How many planes the dimensions before the last `dims` make. */
static ptrdiff_t planes_before(PyObject *array, int dims)
{
    ptrdiff_t planes = 1;
    for (int d = 0; d < NDIM(array) - dims; d++)
        planes *= DIM(array, d);
    return planes;
}

/* A new array with the leading dimensions of another and these last ones. */
static PyObject *new_planes(PyObject *like, int dims, const ptrdiff_t *sizes, int type)
{
    npy_intp shape[NPY_MAXDIMS];
    int ndim = NDIM(like);
    for (int d = 0; d < ndim; d++)
        shape[d] = d < ndim - dims ? DIM(like, d) : sizes[d - (ndim - dims)];
    return new_array(ndim, shape, type);
}

static const npy_intp *last_sizes(PyObject *array, int dims)
{
    return SHAPE(array) + NDIM(array) - dims;
}

/* (input, kernel_size, stride, padding, dilation, ceil_mode) */
static PyObject *max_pool(PyObject *const *slots, const KernelEntry *entry)
{
    Pool pool = {0};
    int dims = entry->kind, type = type_of(slots[0]);
    if (NDIM(slots[0]) < dims ||
        !read_windows(slots + 1, dims, last_sizes(slots[0], dims), slots[4], slots[5] == Py_True, pool.axes) ||
        has_empty_window(pool.axes) || elements_of(pool.axes) > INT32_MAX / 2)
        return DECLINE;
    ptrdiff_t counts[WINDOW_DIMS], window = 1;
    for (int d = 0; d < WINDOW_DIMS; d++) {
        counts[d] = pool.axes[d].count;
        window *= pool.axes[d].kernel;
    }
    PyObject *results[2] = {new_planes(slots[0], dims, counts + WINDOW_DIMS - dims, type),
                            new_planes(slots[0], dims, counts + WINDOW_DIMS - dims, NPY_INT64)};
    if (all_made(results, 2)) {
        pool.planes = planes_before(slots[0], dims);
        pool.input = data_of(slots[0]);
        pool.output = data_of(results[0]);
        pool.indices = data_of(results[1]);
        pool.is_two_by_two = is_two_by_two(pool.axes);
        run_items(pool.planes, windows_of(pool.axes) * window, FOR_TYPE(type, max_pool_block), &pool);
        if (pool.failed) {
            Py_CLEAR(results[0]);
            PyErr_NoMemory();
        }
    }
    return pack(2, results);
}

/* What an average's sum is divided by: the elements of its window, those in the padding counted or not. */
static double divisor_along(const PoolAxis *axis, ptrdiff_t window, int count_padding)
{
    ptrdiff_t begin = window * axis->stride - axis->padding, end = begin + axis->kernel;
    ptrdiff_t most = count_padding ? axis->size + axis->padding : axis->size;
    if (!count_padding && begin < 0)
        begin = 0;
    return (double)((end < most ? end : most) - begin);
}

/* What the sums of all windows are divided by; NULL to decline. */
static double *find_divisors(const PoolAxis *axes, int count_padding, PyObject *divisor_override)
{
    ptrdiff_t override = 0;
    if (divisor_override != Py_None && !read_size(divisor_override, 1, &override))
        return NULL;
    double *divisors = malloc((size_t)windows_of(axes) * sizeof(double)), *next = divisors;
    for (ptrdiff_t z = 0; divisors && z < axes[0].count; z++)
        for (ptrdiff_t y = 0; y < axes[1].count; y++) {
            double rows = divisor_along(&axes[0], z, count_padding) * divisor_along(&axes[1], y, count_padding);
            for (ptrdiff_t x = 0; x < axes[2].count; x++)
                *next++ = override ? (double)override : rows * divisor_along(&axes[2], x, count_padding);
        }
    return divisors;
}

/* Run a loop of averages from planes of the input to planes of `sizes`. */
static PyObject *average(Pool *pool, PyObject *input, int dims, const ptrdiff_t *sizes, double *divisors,
                         BlockFunction body)
{
    PyObject *result = new_planes(input, dims, sizes, type_of(input));
    if (result) {
        pool->planes = planes_before(input, dims);
        pool->input = data_of(input);
        pool->output = data_of(result);
        pool->divisors = divisors;
        run_items(pool->planes, elements_of(pool->axes) + windows_of(pool->axes) * pool->axes[2].kernel, body, pool);
        if (pool->failed) {
            Py_CLEAR(result);
            PyErr_NoMemory();
        }
    }
    free(divisors);
    return result;
}

/* (input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) */
static PyObject *avg_pool(PyObject *const *slots, const KernelEntry *entry)
{
    Pool pool = {0};
    int dims = entry->kind;
    if (NDIM(slots[0]) < dims ||
        !read_windows(slots + 1, dims, last_sizes(slots[0], dims), NULL, slots[4] == Py_True, pool.axes))
        return DECLINE;
    double *divisors = find_divisors(pool.axes, slots[5] == Py_True, slots[6]);
    if (!divisors)
        return DECLINE;
    ptrdiff_t counts[WINDOW_DIMS] = {pool.axes[0].count, pool.axes[1].count, pool.axes[2].count};
    return average(&pool, slots[0], dims, counts + WINDOW_DIMS - dims, divisors, LOOP_FOR(entry, slots[0]));
}

/* (input, sizes, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) */
static PyObject *avg_pool_back(PyObject *const *slots, const KernelEntry *entry)
{
    ptrdiff_t sizes[WINDOW_DIMS];
    npy_intp given[WINDOW_DIMS];
    Pool pool = {0};
    int dims = PyTuple_CheckExact(slots[1]) ? (int)PyTuple_GET_SIZE(slots[1]) : 0;
    if (dims < 1 || dims > WINDOW_DIMS || NDIM(slots[0]) < dims || !read_sizes(slots[1], dims, 1, 1, sizes))
        return DECLINE;
    for (int d = 0; d < dims; d++)
        given[d] = sizes[WINDOW_DIMS - dims + d];
    if (!read_windows(slots + 2, dims, given, NULL, slots[5] == Py_True, pool.axes))
        return DECLINE;
    for (int d = 0; d < dims; d++)
        if (pool.axes[WINDOW_DIMS - dims + d].count != last_sizes(slots[0], dims)[d])
            return DECLINE;
    double *divisors = find_divisors(pool.axes, slots[6] == Py_True, slots[7]);
    if (!divisors)
        return DECLINE;
    return average(&pool, slots[0], dims, sizes + WINDOW_DIMS - dims, divisors, LOOP_FOR(entry, slots[0]));
}

/* Window i of a dimension takes the elements that the i-th of `counts` equal parts touches. */
static void list_windows(Adaptive *a, ptrdiff_t *room)
{
    for (int d = 0; d < WINDOW_DIMS; d++) {
        ptrdiff_t size = a->sizes[d], count = a->counts[d];
        a->begins[d] = room;
        a->ends[d] = room + count;
        room += 2 * count;
        for (ptrdiff_t i = 0; i < count; i++) {
            a->begins[d][i] = i * size / count;
            a->ends[d][i] = ((i + 1) * size + count - 1) / count;
        }
    }
}

static PyObject *_adaptive(PyObject *const *slots, const KernelEntry *entry)
{
    Adaptive a = {.sizes = {1, 1, 1}};
    int dims = PyTuple_CheckExact(slots[1]) ? (int)PyTuple_GET_SIZE(slots[1]) : 0, type = type_of(slots[0]);
    if (dims < 1 || dims > WINDOW_DIMS || NDIM(slots[0]) < dims || !read_sizes(slots[1], dims, 1, 1, a.counts))
        return DECLINE;
    ptrdiff_t planes = planes_before(slots[0], dims), *counts = a.counts + WINDOW_DIMS - dims;
    for (int d = 0; d < dims; d++)
        a.sizes[WINDOW_DIMS - dims + d] = last_sizes(slots[0], dims)[d];
    ptrdiff_t *room = PyMem_RawMalloc((size_t)(2 * (a.counts[0] + a.counts[1] + a.counts[2])) * sizeof(ptrdiff_t));
    if (!room)
        return PyErr_NoMemory();
    list_windows(&a, room);
    PyObject *results[2] = {new_planes(slots[0], dims, counts, type), new_planes(slots[0], dims, counts, NPY_INT64)};
    if (all_made(results, 2)) {
        a.input = data_of(slots[0]);
        a.output = data_of(results[0]);
        a.indices = data_of(results[1]);
        run_items(planes, size_of(slots[0]) / planes, FOR_TYPE(type, adaptive_planes), &a);
    }
    PyMem_RawFree(room);
    return pack(2, results);
}

const KernelEntry pooling_kernels[] = {
    {"max_pool2d_with_indices", max_pool, "r....f", 2},
    {"max_pool3d_with_indices", max_pool, "r....f", 3},
    {"_adaptive", _adaptive, "r"},
    {"avg_pool2d", avg_pool, "r...ff", 2, LOOP_PAIR(avg_pool_block)},
    {"avg_pool3d", avg_pool, "r...ff", 3, LOOP_PAIR(avg_pool_block)},
    {"avg_pool_back", avg_pool_back, "r....ff", LOOP_PAIR(avg_pool_back_block)},
    {NULL},
};
