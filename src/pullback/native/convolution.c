/* The kernel `convolution`: reads the arguments, plans, shares out the work.
 *
 * See Note [Staged convolution] in convolution.h.
 */
#include "convolution_calls.h"

/* The sizes of results along each dimension; 0 where there are none. */
static int find_result_sizes(Geometry *g, const ptrdiff_t *output_padding)
{
    for (int d = 0; d < DIMS; d++) {
        ptrdiff_t extent = g->dilation[d] * (g->kernel[d] - 1) + 1;
        g->result[d] = g->transposed
                           ? (g->input[d] - 1) * g->stride[d] + extent - 2 * g->padding[d] + output_padding[d]
                           : (g->input[d] + 2 * g->padding[d] - extent) / g->stride[d] + 1;
        if (g->result[d] < 1 || (!g->transposed && g->input[d] + 2 * g->padding[d] < extent))
            return 0;
    }
    return 1;
}

static int read_convolution(PyObject *const *slots, Geometry *g)
{
    PyObject *input = slots[0], *weight = slots[1], *bias = slots[2];
    if (!input || !PyArray_CheckExact(input))
        return 0;
    int type = type_of(input), dims = NDIM(input) - 2;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || dims < 1 || dims > DIMS)
        return 0;
    if (!is_array_of(input, type) || !is_array_of(weight, type) || NDIM(weight) != dims + 2)
        return 0;
    ptrdiff_t output_padding[DIMS];
    if (!read_steps(slots + 3, dims, g) || !read_sizes(slots[7], dims, 0, 0, output_padding) ||
        !read_size(slots[8], 1, &g->groups) || (slots[6] != Py_True && slots[6] != Py_False))
        return 0;
    g->transposed = slots[6] == Py_True;
    ptrdiff_t channels = DIM(input, 1);
    ptrdiff_t first = DIM(weight, 0), second = DIM(weight, 1);
    g->batch = DIM(input, 0);
    g->channels = channels / g->groups;
    g->out_channels = g->transposed ? second : first / g->groups;
    if (channels % g->groups || first % g->groups || (g->transposed ? first : second * g->groups) != channels)
        return 0;
    if (bias != Py_None && (!is_array_of(bias, type) || NDIM(bias) != 1 ||
                            size_of(bias) != g->out_channels * g->groups))
        return 0;
    copy_sizes(input, g->input);
    copy_sizes(weight, g->kernel);
    return find_result_sizes(g, output_padding);
}

/* A new array of a sample of such sizes for each of the batch. */
static PyObject *new_result(const Geometry *g, int dims, int type)
{
    npy_intp shape[2 + DIMS] = {g->batch, g->groups * g->out_channels};
    for (int d = 0; d < dims; d++)
        shape[2 + d] = g->result[DIMS - dims + d];
    return new_array(2 + dims, shape, type);
}

static PyObject *run_convolution(const Plan *plan, const ConvolutionLoops *loops, const Geometry *g,
                                 PyObject *const *arrays)
{
    int type = type_of(arrays[0]), dims = NDIM(arrays[0]) - 2;
    PyObject *result = new_result(g, dims, type);
    void *packed = malloc((size_t)PyArray_NBYTES((PyArrayObject *)arrays[1]));
    ConvolutionCall call = {
        .plan = plan,
        .input = data_of(arrays[0]),
        .bias = arrays[2] ? data_of(arrays[2]) : NULL,
        .packed = packed,
        .failed = !packed,
    };
    if (result && packed) {
        call.result = data_of(result);
        loops->pack(plan, data_of(arrays[1]), packed);
        ptrdiff_t parts = plan->unrolled ? (g->batch + plan->samples - 1) / plan->samples : g->batch * plan->boxes;
        share_out(parts * g->groups, products(g), loops->convolve, &call);
    }
    free(packed);
    if (result && call.failed) {
        Py_DECREF(result);
        return PyErr_NoMemory();
    }
    return result;
}

/* NULL without an exception where there is no plan. */
static PyObject *convolve_directly(const ConvolutionLoops *loops, const Geometry *g, PyObject *const *arrays)
{
    Plan plan;
    PyObject *result = NULL;
    if (plan_convolution(&plan, g, loops->lanes, type_of(arrays[0]) == NPY_DOUBLE ? 8 : 4, thread_count()))
        result = run_convolution(&plan, loops, g, arrays);
    free_plan(&plan);
    return result;
}

/* By squares; NULL without an exception where results are not finite. */
static PyObject *run_winograd(const Winograd *plan, const ConvolutionLoops *loops, const Geometry *g,
                              PyObject *const *arrays)
{
    int type = type_of(arrays[0]), dims = NDIM(arrays[0]) - 2;
    PyObject *result = new_result(g, dims, type);
    size_t size = (size_t)PyArray_NBYTES((PyArrayObject *)arrays[1]) / 9 * SQUARES;
    WinogradCall call = {
        .plan = plan,
        .input = data_of(arrays[0]),
        .bias = arrays[2] ? data_of(arrays[2]) : NULL,
        .weight = data_of(arrays[1]),
        .transformed = malloc(size),
        .is_finite = 1,
    };
    call.failed = !call.transformed;
    if (result && !call.failed) {
        call.result = data_of(result);
        ptrdiff_t blocks = (plan->units + plan->block - 1) / plan->block;
        ptrdiff_t parts = (g->out_channels + loops->most_channels - 1) / loops->most_channels;
        share_out(g->groups * parts, (double)size, loops->transform_weight, &call);
        share_out(g->groups * blocks, products(g), loops->convolve_squares, &call);
    }
    free(call.transformed);
    if (result && (call.failed || !call.is_finite))
        Py_CLEAR(result);
    return result || !call.failed ? result : PyErr_NoMemory();
}

/* Decide, plan and run by squares; NULL without an exception where direct sums have to serve. */
static PyObject *convolve_by_squares(const ConvolutionLoops *loops, const Geometry *g, PyObject *const *arrays)
{
    Winograd plan;
    if (!suits_winograd(g))
        return NULL;
    PyObject *result = NULL;
    if (plan_winograd(&plan, g, loops->lanes, type_of(arrays[0]) == NPY_DOUBLE ? 8 : 4, thread_count()))
        result = run_winograd(&plan, loops, g, arrays);
    free_winograd(&plan);
    return result;
}

/* One filter per channel. */
static PyObject *convolve_depthwise(const ConvolutionLoops *loops, const Geometry *g, PyObject *const *arrays)
{
    if (!suits_depthwise(g))
        return NULL;
    PyObject *result = new_result(g, NDIM(arrays[0]) - 2, type_of(arrays[0]));
    if (!result)
        return NULL;
    Depthwise plan;
    plan_depthwise(&plan, g, loops->lanes);
    DepthwiseCall call = {
        .plan = &plan,
        .input = data_of(arrays[0]),
        .weight = data_of(arrays[1]),
        .bias = arrays[2] ? data_of(arrays[2]) : NULL,
        .result = data_of(result),
    };
    share_out(g->batch * g->groups, 4 * products(g), loops->convolve_depthwise, &call);
    if (call.failed)
        Py_CLEAR(result);
    return result || !call.failed ? result : PyErr_NoMemory();
}

#if defined(__GNUC__)

/* Whether planes of one element are spread over as much as the kernel has: a product of two matrices. */
static int is_spread(const Geometry *g)
{
    for (int d = 0; d < DIMS; d++)
        if (g->input[d] != 1 || g->padding[d] || g->result[d] != g->kernel[d] || (g->dilation[d] != 1 && g->kernel[d] != 1))
            return 0;
    return g->transposed && g->groups == 1;
}

/* The bias of each element of a sample's result. */
static char *spread_bias(const Geometry *g, const void *bias, size_t item)
{
    ptrdiff_t plane = g->result[0] * g->result[1] * g->result[2];
    char *row = malloc((size_t)(g->out_channels * plane) * item);
    for (ptrdiff_t i = 0; row && i < g->out_channels * plane; i++)
        memcpy(row + i * item, (const char *)bias + i / plane * item, item);
    return row;
}

static PyObject *convolve_by_product(const Geometry *g, PyObject *const *arrays)
{
    if (!is_spread(g))
        return NULL;
    int type = type_of(arrays[0]);
    ptrdiff_t columns = g->out_channels * g->result[0] * g->result[1] * g->result[2];
    char *bias = arrays[2] ? spread_bias(g, data_of(arrays[2]), type == NPY_DOUBLE ? 8 : 4) : NULL;
    if (arrays[2] && !bias)
        return PyErr_NoMemory();
    PyObject *result = new_result(g, NDIM(arrays[0]) - 2, type);
    if (result) {
        Product product = {
            .a = {data_of(arrays[0]), g->batch, g->channels, g->channels, 1},
            .b = {data_of(arrays[1]), g->channels, columns, columns, 1},
            .start = bias,
            .result = data_of(result),
            .result_step = columns,
            .wide = type == NPY_DOUBLE,
        };
        Py_BEGIN_ALLOW_THREADS;
        multiply_in_threads(&product, BY_ROWS);
        Py_END_ALLOW_THREADS;
    }
    free(bias);
    return result;
}

#else

static PyObject *convolve_by_product(const Geometry *g, PyObject *const *arrays) { return NULL; }

#endif

static PyObject *convolution(PyObject *const *slots, const KernelEntry *entry)
{
    Geometry geometry;
    if (!slots[2] || !read_convolution(slots, &geometry))
        return DECLINE;
    PyObject *arrays[3] = {row_major(slots[0]), row_major(slots[1]), slots[2] == Py_None ? NULL : row_major(slots[2])};
    PyObject *result = NULL;
    if (arrays[0] && arrays[1] && (arrays[2] || slots[2] == Py_None)) {
        const ConvolutionLoops *loops = loops_for(type_of(slots[0]));
        result = convolve_by_product(&geometry, arrays);
        if (!result && !PyErr_Occurred())
            result = convolve_depthwise(loops, &geometry, arrays);
        if (!result && !PyErr_Occurred())
            result = convolve_by_squares(loops, &geometry, arrays);
        if (!result && !PyErr_Occurred())
            result = convolve_directly(loops, &geometry, arrays);
    }
    for (int i = 0; i < 3; i++)
        Py_XDECREF(arrays[i]);
    return result;
}

const KernelEntry convolution_kernels[] = {
    {"convolution", convolution},
    {"convolution_grad_weight", convolution_grad_weight},
    {NULL, NULL},
};
