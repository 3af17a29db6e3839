/* The compiled kernels of kernels/pooling.py. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pooling.h"

#define LOOPS "pooling_loops.h"
#include "for_each_real.h"

/* Windows of the last `dims` dimensions of an array of this shape, as many as pooled_sizes of pooling.py finds. */
static int read_windows(PyObject *const *steps, int dims, const npy_intp *sizes, PyObject *dilations, int ceil_mode,
                        PoolAxis *axes)
{
    ptrdiff_t kernel[WINDOW_DIMS], stride[WINDOW_DIMS], padding[WINDOW_DIMS], dilation[WINDOW_DIMS] = {1, 1, 1};
    if (!read_sizes(steps[0], dims, 1, 1, kernel) || !read_sizes(steps[1], dims, 1, 1, stride) ||
        !read_sizes(steps[2], dims, 0, 0, padding) || (dilations && !read_sizes(dilations, dims, 1, 1, dilation)))
        return 0;
    for (int d = 0; d < WINDOW_DIMS; d++) {
        int axis = d - (WINDOW_DIMS - dims);
        PoolAxis *a = &axes[d];
        *a = (PoolAxis){axis < 0 ? 1 : sizes[axis], 0, kernel[d], stride[d], padding[d], dilation[d]};
        ptrdiff_t span = a->size + 2 * a->padding - a->dilation * (a->kernel - 1) - 1;
        if (span < 0)
            return 0;
        a->count = (ceil_mode ? (span + a->stride - 1) / a->stride : span / a->stride) + 1;
        if (ceil_mode && (a->count - 1) * a->stride >= a->size + a->padding)
            a->count--;
    }
    return 1;
}

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
    for (int d = 0; d < PyArray_NDIM((PyArrayObject *)array) - dims; d++)
        planes *= PyArray_DIM((PyArrayObject *)array, d);
    return planes;
}

/* A new array with the leading dimensions of another and these last ones. */
static PyObject *new_planes(PyObject *like, int dims, const ptrdiff_t *sizes, int type)
{
    npy_intp shape[NPY_MAXDIMS];
    int ndim = PyArray_NDIM((PyArrayObject *)like);
    for (int d = 0; d < ndim; d++)
        shape[d] = d < ndim - dims ? PyArray_DIM((PyArrayObject *)like, d) : sizes[d - (ndim - dims)];
    return new_array(ndim, shape, type);
}

static int is_pooled(PyObject *input, int dims)
{
    return is_real_array(input) && size_of(input) > 0 && PyArray_NDIM((PyArrayObject *)input) >= dims;
}

static const npy_intp *last_sizes(PyObject *array, int dims)
{
    return PyArray_DIMS((PyArrayObject *)array) + PyArray_NDIM((PyArrayObject *)array) - dims;
}

static PyObject *no_memory(PyObject *result)
{
    Py_XDECREF(result);
    return PyErr_NoMemory();
}

static PyObject *max_pool(PyObject *const *slots, int dims)
{
    Pool pool = {0};
    int ceil_mode;
    if (!is_pooled(slots[0], dims) || !slots[4] || !slots[5] || !read_flag(slots[5], 0, &ceil_mode) ||
        !read_windows(slots + 1, dims, last_sizes(slots[0], dims), slots[4], ceil_mode, pool.axes) ||
        has_empty_window(pool.axes) || elements_of(pool.axes) > INT32_MAX / 2)
        return DECLINE;
    int type = type_of(slots[0]);
    ptrdiff_t counts[WINDOW_DIMS], window = 1;
    for (int d = 0; d < WINDOW_DIMS; d++) {
        counts[d] = pool.axes[d].count;
        window *= pool.axes[d].kernel;
    }
    PyObject *plain = row_major(slots[0]), *result = NULL;
    PyObject *values = plain ? new_planes(plain, dims, counts + WINDOW_DIMS - dims, type) : NULL;
    PyObject *indices = values ? new_planes(plain, dims, counts + WINDOW_DIMS - dims, NPY_INT64) : NULL;
    if (indices) {
        pool.planes = planes_before(plain, dims);
        pool.input = data_of(plain);
        pool.output = data_of(values);
        pool.indices = data_of(indices);
        pool.is_two_by_two = is_two_by_two(pool.axes);
        run_items(pool.planes, windows_of(pool.axes) * window, FOR_TYPE(type, max_pool_block), &pool);
        result = pool.failed ? PyErr_NoMemory() : PyTuple_Pack(2, values, indices);
    }
    Py_XDECREF(plain);
    Py_XDECREF(values);
    Py_XDECREF(indices);
    return result;
}

static PyObject *max_pool2d_with_indices(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "kernel_size", "stride", "padding", "dilation", "ceil_mode");
    return max_pool(slots, 2);
}

static PyObject *max_pool3d_with_indices(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "kernel_size", "stride", "padding", "dilation", "ceil_mode");
    return max_pool(slots, 3);
}

static int is_indices(PyObject *object)
{
    return object && PyArray_CheckExact(object) && type_of(object) == NPY_INT64 &&
           PyArray_ISCARRAY_RO((PyArrayObject *)object);
}

/* Planes of `sizes` elements, and as many indices into each as the array of indices has in its last dimensions. */
static void set_planes(Pool *pool, PyObject *indices, int dims, const ptrdiff_t *sizes)
{
    const npy_intp *counts = last_sizes(indices, dims);
    for (int d = 0; d < WINDOW_DIMS; d++) {
        int axis = d - (WINDOW_DIMS - dims);
        pool->axes[d].size = axis < 0 ? 1 : sizes[axis];
        pool->axes[d].count = axis < 0 ? 1 : counts[axis];
    }
    pool->planes = planes_before(indices, dims);
    pool->indices = data_of(indices);
}

/* Run a loop that moves numbers between planes and places in them; NULL without an exception for places beyond. */
static PyObject *move(Pool *pool, PyObject *input, PyObject *result, BlockFunction body)
{
    PyObject *plain = result ? row_major(input) : NULL;
    if (!plain) {
        Py_XDECREF(result);
        return NULL;
    }
    pool->input = data_of(plain);
    pool->output = data_of(result);
    run_items(pool->planes, elements_of(pool->axes) + windows_of(pool->axes), body, pool);
    Py_DECREF(plain);
    if (pool->failed)
        Py_CLEAR(result);
    return result;
}

static PyObject *put_in_planes(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "indices", "sizes");
    ptrdiff_t sizes[WINDOW_DIMS];
    Pool pool = {0};
    int dims = slots[2] && PyTuple_CheckExact(slots[2]) ? (int)PyTuple_GET_SIZE(slots[2]) : 0;
    if (dims < 1 || dims > WINDOW_DIMS || !is_pooled(slots[0], dims) || !is_indices(slots[1]) ||
        !same_shape(slots[0], slots[1]) || !read_sizes(slots[2], dims, 1, 1, sizes))
        return DECLINE;
    int type = type_of(slots[0]);
    set_planes(&pool, slots[1], dims, sizes + WINDOW_DIMS - dims);
    PyObject *result = new_planes(slots[0], dims, sizes + WINDOW_DIMS - dims, type);
    return move(&pool, slots[0], result, FOR_TYPE(type, put_block));
}

static PyObject *take_from_planes(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "indices", "dims");
    long dims;
    Pool pool = {0};
    if (!read_integer(slots[2], 1, WINDOW_DIMS, &dims) || !is_pooled(slots[0], (int)dims) || !is_indices(slots[1]) ||
        !size_of(slots[1]) || PyArray_NDIM((PyArrayObject *)slots[0]) != PyArray_NDIM((PyArrayObject *)slots[1]))
        return DECLINE;
    for (int d = 0; d < PyArray_NDIM((PyArrayObject *)slots[0]) - dims; d++)
        if (PyArray_DIM((PyArrayObject *)slots[0], d) != PyArray_DIM((PyArrayObject *)slots[1], d))
            return DECLINE;
    int type = type_of(slots[0]);
    ptrdiff_t sizes[WINDOW_DIMS];
    for (int d = 0; d < dims; d++)
        sizes[d] = last_sizes(slots[0], (int)dims)[d];
    set_planes(&pool, slots[1], (int)dims, sizes);
    PyObject *result = new_array(PyArray_NDIM((PyArrayObject *)slots[1]), PyArray_DIMS((PyArrayObject *)slots[1]), type);
    return move(&pool, slots[0], result, FOR_TYPE(type, take_block));
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

/* Read what the last three arguments of averages say, for windows that are known; NULL to decline. */
static double *find_divisors(const PoolAxis *axes, PyObject *count_include_pad, PyObject *divisor_override)
{
    int count_padding;
    ptrdiff_t override = 0;
    if (!count_include_pad || !read_flag(count_include_pad, 1, &count_padding) || !divisor_override ||
        (divisor_override != Py_None && !read_size(divisor_override, 1, &override)))
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
    PyObject *plain = row_major(input), *result = NULL;
    if (plain)
        result = new_planes(plain, dims, sizes, type_of(plain));
    if (result) {
        pool->planes = planes_before(plain, dims);
        pool->input = data_of(plain);
        pool->output = data_of(result);
        pool->divisors = divisors;
        run_items(pool->planes, elements_of(pool->axes) + windows_of(pool->axes) * pool->axes[2].kernel, body, pool);
        if (pool->failed)
            result = no_memory(result);
    }
    Py_XDECREF(plain);
    free(divisors);
    return result;
}

static PyObject *avg_pool(PyObject *const *slots, int dims)
{
    Pool pool = {0};
    int ceil_mode;
    if (!is_pooled(slots[0], dims) || !slots[4] || !read_flag(slots[4], 0, &ceil_mode) ||
        !read_windows(slots + 1, dims, last_sizes(slots[0], dims), NULL, ceil_mode, pool.axes))
        return DECLINE;
    double *divisors = find_divisors(pool.axes, slots[5], slots[6]);
    if (!divisors)
        return DECLINE;
    ptrdiff_t counts[WINDOW_DIMS] = {pool.axes[0].count, pool.axes[1].count, pool.axes[2].count};
    return average(&pool, slots[0], dims, counts + WINDOW_DIMS - dims, divisors,
                   FOR_TYPE(type_of(slots[0]), avg_pool_block));
}

static PyObject *avg_pool2d(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override");
    return avg_pool(slots, 2);
}

static PyObject *avg_pool3d(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override");
    return avg_pool(slots, 3);
}

static PyObject *avg_pool_back(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "sizes", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad",
          "divisor_override");
    ptrdiff_t sizes[WINDOW_DIMS];
    npy_intp given[WINDOW_DIMS];
    Pool pool = {0};
    int ceil_mode, dims = slots[1] && PyTuple_CheckExact(slots[1]) ? (int)PyTuple_GET_SIZE(slots[1]) : 0;
    if (dims < 1 || dims > WINDOW_DIMS || !is_pooled(slots[0], dims) || !read_sizes(slots[1], dims, 1, 1, sizes) ||
        !slots[5] || !read_flag(slots[5], 0, &ceil_mode))
        return DECLINE;
    for (int d = 0; d < dims; d++)
        given[d] = sizes[WINDOW_DIMS - dims + d];
    if (!read_windows(slots + 2, dims, given, NULL, ceil_mode, pool.axes))
        return DECLINE;
    for (int d = 0; d < dims; d++)
        if (pool.axes[WINDOW_DIMS - dims + d].count != last_sizes(slots[0], dims)[d])
            return DECLINE;
    double *divisors = find_divisors(pool.axes, slots[6], slots[7]);
    if (!divisors)
        return DECLINE;
    return average(&pool, slots[0], dims, sizes + WINDOW_DIMS - dims, divisors,
                   FOR_TYPE(type_of(slots[0]), avg_pool_back_block));
}

const KernelEntry pooling_kernels[] = {
    {"max_pool2d_with_indices", max_pool2d_with_indices},
    {"max_pool3d_with_indices", max_pool3d_with_indices},
    {"put_in_planes", put_in_planes},
    {"take_from_planes", take_from_planes},
    {"avg_pool2d", avg_pool2d},
    {"avg_pool3d", avg_pool3d},
    {"avg_pool_back", avg_pool_back},
    {NULL, NULL},
};
