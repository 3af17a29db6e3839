/* The compiled kernels of kernels/grid_sampling.py.
 *
 * For a block of points the pixels around each and their weights are worked out once; then threads share out channels,
 * or for the gradient of the grid the points.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "rows.h"

#define BLOCK_POINTS 2048

enum { LINEAR, NEAREST, CUBIC };
enum { ZEROS, BORDER, REFLECTION };

typedef struct {
    const void *input, *grid, *grad;
    void *output;
    ptrdiff_t samples, channels, plane, points, sizes[3]; /* sizes from the last dimension on, as coordinates are */
    int dims, mode, padding, align, for_grid;
    int taps, all_taps, sets; /* taps of an axis and of all; sets of weights */
    ptrdiff_t sample, first, count; /* the block */
    int32_t *positions, *indices;
    void *weights, *room, *rates;
} Sampling;

#define FLOOR(x) (REAL_IS_FLOAT ? (REAL)floorf((float)(x)) : (REAL)floor((double)(x)))
#define RINT(x) (REAL_IS_FLOAT ? (REAL)rintf((float)(x)) : (REAL)rint((double)(x)))
/* Some position inside for one that is not. */
#define INSIDE(position) ((position) & ~((position) >> 31))
#define LOOPS "grid_loops.h"
#include "for_each_real.h"

static int read_sampling(PyObject *grid, PyObject *const *options, int dims, Sampling *s)
{
    long mode, padding;
    if (!is_real_array(grid) || !size_of(grid) || PyArray_NDIM((PyArrayObject *)grid) != dims + 2 ||
        PyArray_DIM((PyArrayObject *)grid, dims + 1) != dims || !read_integer(options[0], 0, dims == 2 ? 2 : 1, &mode) ||
        !read_integer(options[1], 0, 2, &padding) || !options[2] || !read_flag(options[2], 0, &s->align))
        return 0;
    s->dims = dims;
    s->mode = (int)mode;
    s->padding = (int)padding;
    s->taps = mode == CUBIC ? 4 : mode == NEAREST ? 1 : 2;
    s->all_taps = s->taps * s->taps * (dims == 3 ? s->taps : 1);
    s->points = size_of(grid) / dims / PyArray_DIM((PyArrayObject *)grid, 0);
    return 1;
}

/* Take the sizes of an image (N, C, *sizes) that fits the grid. */
static int set_image(Sampling *s, const npy_intp *shape, PyObject *grid)
{
    s->samples = shape[0];
    s->channels = shape[1];
    s->plane = 1;
    for (int axis = 0; axis < s->dims; axis++) {
        s->sizes[axis] = shape[1 + s->dims - axis];
        s->plane *= s->sizes[axis];
    }
    return s->samples == PyArray_DIM((PyArrayObject *)grid, 0) && s->channels > 0 && s->plane > 0 && s->plane < INT32_MAX;
}

static int make_room(Sampling *s, int type)
{
    size_t item = type == NPY_FLOAT ? sizeof(float) : sizeof(double);
    s->positions = PyMem_RawMalloc((size_t)(s->all_taps + 12) * BLOCK_POINTS * sizeof(int32_t));
    s->weights = PyMem_RawMalloc((size_t)(s->sets * s->all_taps + 29) * BLOCK_POINTS * item);
    if (!s->positions || !s->weights) {
        PyMem_RawFree(s->positions);
        PyMem_RawFree(s->weights);
        PyErr_NoMemory();
        return 0;
    }
    s->indices = s->positions + s->all_taps * BLOCK_POINTS;
    s->room = (char *)s->weights + (size_t)s->sets * s->all_taps * BLOCK_POINTS * item;
    s->rates = (char *)s->room + (size_t)26 * BLOCK_POINTS * item;
    return 1;
}

/* Run the loop over all blocks; items of `work` elements for each point are channels, or points for the grid. */
static void run_blocks_of_points(Sampling *s, int type, BlockFunction body)
{
    Py_BEGIN_ALLOW_THREADS
    for (s->sample = 0; s->sample < s->samples; s->sample++)
        for (s->first = 0; s->first < s->points; s->first += BLOCK_POINTS) {
            s->count = s->points - s->first < BLOCK_POINTS ? s->points - s->first : BLOCK_POINTS;
            FOR_TYPE(type, prepare_points)(s, s->sample, s->first, s->count);
            ptrdiff_t items = s->for_grid ? s->count : s->channels;
            ptrdiff_t work = s->all_taps * (s->for_grid ? s->channels : s->count);
            run_blocks(items, THREAD_WORK / (work + 1) + 1, body, s);
        }
    Py_END_ALLOW_THREADS
    PyMem_RawFree(s->positions);
    PyMem_RawFree(s->weights);
}

static PyObject *sample(PyObject *const *slots, int dims)
{
    Sampling s = {.sets = 1};
    PyObject *input = slots[0];
    if (!is_real_array(input) || PyArray_NDIM((PyArrayObject *)input) != dims + 2 ||
        !read_sampling(slots[1], slots + 2, dims, &s) || type_of(slots[1]) != type_of(input) ||
        !set_image(&s, PyArray_DIMS((PyArrayObject *)input), slots[1]))
        return DECLINE;
    npy_intp shape[5] = {s.samples, s.channels};
    for (int d = 0; d < dims; d++)
        shape[2 + d] = PyArray_DIM((PyArrayObject *)slots[1], 1 + d);
    int type = type_of(input);
    PyObject *plain = row_major(input), *grid = row_major(slots[1]);
    PyObject *result = plain && grid ? new_array(dims + 2, shape, type) : NULL;
    if (result && !make_room(&s, type))
        Py_CLEAR(result);
    if (result) {
        s.input = data_of(plain);
        s.grid = data_of(grid);
        s.output = data_of(result);
        run_blocks_of_points(&s, type, FOR_TYPE(type, sample_channels));
    }
    Py_XDECREF(plain);
    Py_XDECREF(grid);
    return result;
}

static PyObject *grid_sampler_2d(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "grid", "interpolation_mode", "padding_mode", "align_corners");
    return sample(slots, 2);
}

static PyObject *grid_sampler_3d(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "grid", "interpolation_mode", "padding_mode", "align_corners");
    return sample(slots, 3);
}

/* Whether the gradient of the result fits the image and the grid. */
static int fits_grad(const Sampling *s, PyObject *grad, PyObject *grid)
{
    if (!is_real_array_of(grad, type_of(grid)) || PyArray_NDIM((PyArrayObject *)grad) != s->dims + 2 ||
        PyArray_DIM((PyArrayObject *)grad, 0) != s->samples || PyArray_DIM((PyArrayObject *)grad, 1) != s->channels)
        return 0;
    for (int d = 0; d < s->dims; d++)
        if (PyArray_DIM((PyArrayObject *)grad, 2 + d) != PyArray_DIM((PyArrayObject *)grid, 1 + d))
            return 0;
    return 1;
}

static PyObject *grid_sample_back_input(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "grad", "input_shape", "grid", "mode", "padding_mode", "align_corners");
    Sampling s = {.sets = 1};
    npy_intp shape[5];
    if (!slots[1] || !PyTuple_Check(slots[1]) || PyTuple_GET_SIZE(slots[1]) < 4 || PyTuple_GET_SIZE(slots[1]) > 5)
        return DECLINE;
    int ndim = (int)PyTuple_GET_SIZE(slots[1]);
    for (int d = 0; d < ndim; d++) {
        long size;
        if (!read_integer(PyTuple_GET_ITEM(slots[1], d), 1, LONG_MAX, &size))
            return DECLINE;
        shape[d] = size;
    }
    if (!slots[2] || !read_sampling(slots[2], slots + 3, ndim - 2, &s) || !set_image(&s, shape, slots[2]) ||
        !fits_grad(&s, slots[0], slots[2]))
        return DECLINE;
    int type = type_of(slots[0]);
    PyObject *grad = row_major(slots[0]), *grid = row_major(slots[2]);
    PyObject *result = grad && grid ? PyArray_Zeros(ndim, shape, PyArray_DescrFromType(type), 0) : NULL;
    if (result && !make_room(&s, type))
        Py_CLEAR(result);
    if (result) {
        s.grad = data_of(grad);
        s.grid = data_of(grid);
        s.output = data_of(result);
        run_blocks_of_points(&s, type, FOR_TYPE(type, add_channels));
    }
    Py_XDECREF(grad);
    Py_XDECREF(grid);
    return result;
}

static PyObject *grid_sample_back_grid(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "grad", "input", "grid", "mode", "padding_mode", "align_corners");
    PyObject *input = slots[1];
    if (!is_real_array(input) || !slots[2])
        return DECLINE;
    int dims = PyArray_NDIM((PyArrayObject *)input) - 2, type = type_of(input);
    Sampling s = {.sets = dims, .for_grid = 1};
    if (dims < 2 || dims > 3 || !read_sampling(slots[2], slots + 3, dims, &s) || s.mode == NEAREST ||
        type_of(slots[2]) != type || !set_image(&s, PyArray_DIMS((PyArrayObject *)input), slots[2]) ||
        !fits_grad(&s, slots[0], slots[2]))
        return DECLINE;
    PyObject *grad = row_major(slots[0]), *plain = row_major(input), *grid = row_major(slots[2]);
    PyObject *result = grad && plain && grid ? new_like(grid) : NULL;
    if (result && !make_room(&s, type))
        Py_CLEAR(result);
    if (result) {
        s.grad = data_of(grad);
        s.input = data_of(plain);
        s.grid = data_of(grid);
        s.output = data_of(result);
        run_blocks_of_points(&s, type, FOR_TYPE(type, slope_points));
    }
    Py_XDECREF(grad);
    Py_XDECREF(plain);
    Py_XDECREF(grid);
    return result;
}

const KernelEntry grid_sampling_kernels[] = {
    {"grid_sampler_2d", grid_sampler_2d},
    {"grid_sampler_3d", grid_sampler_3d},
    {"grid_sample_back_input", grid_sample_back_input},
    {"grid_sample_back_grid", grid_sample_back_grid},
    {NULL},
};
