/* The compiled kernels of kernels/grid_sampling.py.
 *
 * For a block of points the pixels around each and their weights are worked out once; then threads share out channels,
 * or for the gradient of the grid the points.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "rows.h"
#include "views.h"

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
    if (NDIM(grid) != dims + 2 || !size_of(grid) || DIM(grid, dims + 1) != dims ||
        !read_integer(options[0], 0, dims == 2 ? 2 : 1, &mode) || !read_integer(options[1], 0, 2, &padding))
        return 0;
    s->align = options[2] == Py_True;
    s->dims = dims;
    s->mode = (int)mode;
    s->padding = (int)padding;
    s->taps = mode == CUBIC ? 4 : mode == NEAREST ? 1 : 2;
    s->all_taps = s->taps * s->taps * (dims == 3 ? s->taps : 1);
    s->points = size_of(grid) / dims / DIM(grid, 0);
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
        if (s->sizes[axis] < 1 || s->sizes[axis] >= INT32_MAX / s->plane)
            return 0;
        s->plane *= s->sizes[axis];
    }
    return s->samples == DIM(grid, 0) && s->channels > 0;
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

/* Run the loop over all blocks; items of `work` elements for each point are channels, or points for the grid. Gives the
 * result back, or gives it up where memory runs out. */
static PyObject *run_blocks_of_points(Sampling *s, PyObject *grid, PyObject *result, BlockFunction body)
{
    int type = type_of(grid);
    if (!result || !make_room(s, type)) {
        Py_XDECREF(result);
        return NULL;
    }
    s->grid = data_of(grid);
    s->output = data_of(result);
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
    return result;
}

/* (input, grid, interpolation_mode, padding_mode, align_corners) */
static PyObject *grid_sampler(PyObject *const *slots, const KernelEntry *entry)
{
    int dims = entry->kind;
    Sampling s = {.sets = 1, .input = data_of(slots[0])};
    if (NDIM(slots[0]) != dims + 2 || !read_sampling(slots[1], slots + 2, dims, &s) ||
        !set_image(&s, SHAPE(slots[0]), slots[1]))
        return DECLINE;
    npy_intp shape[5] = {s.samples, s.channels};
    for (int d = 0; d < dims; d++)
        shape[2 + d] = DIM(slots[1], 1 + d);
    PyObject *result = new_array(dims + 2, shape, type_of(slots[0]));
    return run_blocks_of_points(&s, slots[1], result, LOOP_FOR(entry, slots[0]));
}

/* Whether the gradient of the result fits the image and the grid. */
static int fits_grad(const Sampling *s, PyObject *grad, PyObject *grid)
{
    if (NDIM(grad) != s->dims + 2 || DIM(grad, 0) != s->samples || DIM(grad, 1) != s->channels)
        return 0;
    for (int d = 0; d < s->dims; d++)
        if (DIM(grad, 2 + d) != DIM(grid, 1 + d))
            return 0;
    return 1;
}

/* (grad, input_shape, grid, mode, padding_mode, align_corners) */
static PyObject *grid_sample_back_input(PyObject *const *slots, const KernelEntry *entry)
{
    Sampling s = {.sets = 1, .grad = data_of(slots[0])};
    npy_intp shape[NPY_MAXDIMS];
    int ndim = read_shape(slots[1], shape);
    if (ndim < 4 || ndim > 5 || !read_sampling(slots[2], slots + 3, ndim - 2, &s) || !set_image(&s, shape, slots[2]) ||
        !fits_grad(&s, slots[0], slots[2]))
        return DECLINE;
    PyObject *result = PyArray_Zeros(ndim, shape, PyArray_DescrFromType(type_of(slots[0])), 0);
    return run_blocks_of_points(&s, slots[2], result, LOOP_FOR(entry, slots[0]));
}

/* (grad, input, grid, mode, padding_mode, align_corners) */
static PyObject *grid_sample_back_grid(PyObject *const *slots, const KernelEntry *entry)
{
    int dims = NDIM(slots[1]) - 2;
    Sampling s = {.sets = dims, .for_grid = 1, .grad = data_of(slots[0]), .input = data_of(slots[1])};
    if (dims < 2 || dims > 3 || !read_sampling(slots[2], slots + 3, dims, &s) || s.mode == NEAREST ||
        !set_image(&s, SHAPE(slots[1]), slots[2]) || !fits_grad(&s, slots[0], slots[2]))
        return DECLINE;
    return run_blocks_of_points(&s, slots[2], new_like(slots[2]), LOOP_FOR(entry, slots[0]));
}

const KernelEntry grid_sampling_kernels[] = {
    {"grid_sampler_2d", grid_sampler, "rr..f", 2, LOOP_PAIR(sample_channels)},
    {"grid_sampler_3d", grid_sampler, "rr..f", 3, LOOP_PAIR(sample_channels)},
    {"grid_sample_back_input", grid_sample_back_input, "r.r..f", LOOP_PAIR(add_channels)},
    {"grid_sample_back_grid", grid_sample_back_grid, "rrr..f", LOOP_PAIR(slope_points)},
    {NULL},
};
