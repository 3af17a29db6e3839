/* The kernels `convolution` and `convolution_grad_weight`: reads the arguments, plans, shares out the work.
 *
 * See Note [Staged convolution] in convolution.h.
 */
#include "depthwise.h"
#include "windows.h"
#include "winograd.h"

/* Below this many products a thread of its own does not pay. */
#define PRODUCTS_PER_THREAD 400000.0

/* The loops for this processor. */
static const ConvolutionLoops *loops_for(int type)
{
    int number = type == NPY_DOUBLE;
#ifdef HAS_INSTRUCTION_SETS
    int version = instruction_set();
    if (version > 1)
        return version == 4 ? &convolution_v4[number] : &convolution_v3[number];
#endif
    return &convolution_base[number];
}

static double products(const Geometry *g)
{
    const ptrdiff_t *places = g->transposed ? g->input : g->result;
    return (double)g->batch * g->groups * g->channels * g->out_channels * g->kernel[0] * g->kernel[1] * g->kernel[2] *
           places[0] * places[1] * places[2];
}

/* Run the loop over `count` items, which together are so many products. */
static void share_out(ptrdiff_t count, double work, BlockFunction body, void *call)
{
    ptrdiff_t smallest = (ptrdiff_t)(PRODUCTS_PER_THREAD / (work / count)) + 1;
    if (work < 2 * PRODUCTS_PER_THREAD)
        smallest = count;
    if (work < UNLOCK_ABOVE) {
        run_blocks(count, smallest, body, call);
        return;
    }
    Py_BEGIN_ALLOW_THREADS;
    run_blocks(count, smallest, body, call);
    Py_END_ALLOW_THREADS;
}

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

/* Read stride, padding and dilation, which stand side by side. */
static int read_steps(PyObject *const *arguments, int dims, Geometry *g)
{
    return read_sizes(arguments[0], dims, 1, 1, g->stride) && read_sizes(arguments[1], dims, 0, 0, g->padding) &&
           read_sizes(arguments[2], dims, 1, 1, g->dilation);
}

static int read_convolution(PyObject *const *slots, Geometry *g)
{
    PyObject *input = slots[0], *weight = slots[1], *bias = slots[2];
    if (!input || !PyArray_CheckExact(input))
        return 0;
    int type = type_of(input), dims = PyArray_NDIM((PyArrayObject *)input) - 2;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || dims < 1 || dims > DIMS)
        return 0;
    if (!is_array_of(input, type) || !is_array_of(weight, type) || PyArray_NDIM((PyArrayObject *)weight) != dims + 2)
        return 0;
    ptrdiff_t output_padding[DIMS];
    if (!read_steps(slots + 3, dims, g) || !read_sizes(slots[7], dims, 0, 0, output_padding) ||
        !read_size(slots[8], 1, &g->groups) || (slots[6] != Py_True && slots[6] != Py_False))
        return 0;
    g->transposed = slots[6] == Py_True;
    ptrdiff_t channels = PyArray_DIM((PyArrayObject *)input, 1);
    ptrdiff_t first = PyArray_DIM((PyArrayObject *)weight, 0), second = PyArray_DIM((PyArrayObject *)weight, 1);
    g->batch = PyArray_DIM((PyArrayObject *)input, 0);
    g->channels = channels / g->groups;
    g->out_channels = g->transposed ? second : first / g->groups;
    if (channels % g->groups || first % g->groups || (g->transposed ? first : second * g->groups) != channels)
        return 0;
    if (bias != Py_None && (!is_array_of(bias, type) || PyArray_NDIM((PyArrayObject *)bias) != 1 ||
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
    int type = type_of(arrays[0]), dims = PyArray_NDIM((PyArrayObject *)arrays[0]) - 2;
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
    int type = type_of(arrays[0]), dims = PyArray_NDIM((PyArrayObject *)arrays[0]) - 2;
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
    PyObject *result = new_result(g, PyArray_NDIM((PyArrayObject *)arrays[0]) - 2, type_of(arrays[0]));
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

static PyObject *convolution(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "weight", "bias", "stride", "padding", "dilation", "transposed", "output_padding", "groups");
    Geometry geometry;
    if (!slots[2] || !read_convolution(slots, &geometry))
        return DECLINE;
    PyObject *arrays[3] = {row_major(slots[0]), row_major(slots[1]), slots[2] == Py_None ? NULL : row_major(slots[2])};
    PyObject *result = NULL;
    if (arrays[0] && arrays[1] && (arrays[2] || slots[2] == Py_None)) {
        const ConvolutionLoops *loops = loops_for(type_of(slots[0]));
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

static int read_weight_gradient(PyObject *const *slots, Geometry *g)
{
    PyObject *input = slots[0], *output_grad = slots[1];
    if (!input || !PyArray_CheckExact(input))
        return 0;
    int type = type_of(input), dims = PyArray_NDIM((PyArrayObject *)input) - 2;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || dims < 1 || dims > DIMS)
        return 0;
    if (!is_array_of(input, type) || !is_array_of(output_grad, type) ||
        PyArray_NDIM((PyArrayObject *)output_grad) != dims + 2 || !read_steps(slots + 3, dims, g) ||
        !read_size(slots[6], 1, &g->groups))
        return 0;
    ptrdiff_t shape[2 + DIMS];
    if (!slots[2] || !PyTuple_CheckExact(slots[2]) || PyTuple_GET_SIZE(slots[2]) != dims + 2)
        return 0;
    for (int d = 0; d < dims + 2; d++)
        if (!read_size(PyTuple_GET_ITEM(slots[2], d), 1, &shape[d]))
            return 0;
    g->transposed = 0;
    g->batch = PyArray_DIM((PyArrayObject *)input, 0);
    g->channels = shape[1];
    g->out_channels = shape[0] / g->groups;
    if (shape[0] % g->groups || shape[1] * g->groups != PyArray_DIM((PyArrayObject *)input, 1) ||
        shape[0] != PyArray_DIM((PyArrayObject *)output_grad, 1) ||
        g->batch != PyArray_DIM((PyArrayObject *)output_grad, 0))
        return 0;
    for (int d = 0; d < DIMS; d++)
        g->kernel[d] = d < DIMS - dims ? 1 : shape[2 + d - (DIMS - dims)];
    copy_sizes(input, g->input);
    copy_sizes(output_grad, g->result);
    for (int d = 0; d < DIMS; d++)
        if ((g->result[d] - 1) * g->stride[d] + g->dilation[d] * (g->kernel[d] - 1) >= g->input[d] + 2 * g->padding[d])
            return 0;
    return 1;
}

/* Zeros of the shape, which was read before. */
static PyObject *new_weight(PyObject *shape, int type)
{
    npy_intp sizes[2 + DIMS];
    int ndim = (int)PyTuple_GET_SIZE(shape);
    for (int d = 0; d < ndim; d++)
        sizes[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, d));
    return PyArray_Zeros(ndim, sizes, PyArray_DescrFromType(type), 0);
}

static PyObject *run_weight_gradient(const Plan *plan, const ConvolutionLoops *loops, const Geometry *g,
                                     PyObject *const *arrays, PyObject *shape)
{
    PyObject *result = new_weight(shape, type_of(arrays[0]));
    if (!result)
        return NULL;
    ptrdiff_t threads = thread_count();
    WeightCall call = {
        .plan = plan,
        .input = data_of(arrays[0]),
        .output_grad = data_of(arrays[1]),
        .result = data_of(result),
        .share = g->groups >= threads     ? SHARE_GROUPS
                 : g->channels >= threads ? SHARE_CHANNELS
                                          : SHARE_OUT_CHANNELS,
    };
    ptrdiff_t items = call.share == SHARE_GROUPS     ? g->groups
                      : call.share == SHARE_CHANNELS ? g->channels
                                                     : g->out_channels;
    share_out(items, products(g), loops->weigh, &call);
    if (call.failed) {
        Py_DECREF(result);
        return PyErr_NoMemory();
    }
    return result;
}

/* The blocks of squares of one group, each transformed and then added to the sums. */
static void weigh_group(WinogradWeightCall *call, const ConvolutionLoops *loops, double work)
{
    const Winograd *plan = call->plan;
    const Geometry *g = &plan->geometry;
    for (call->first = 0; call->first < plan->units && !call->failed; call->first += plan->block) {
        ptrdiff_t left = plan->units - call->first;
        call->units = left < plan->block ? left : plan->block;
        double part = work * (double)call->units / (double)plan->units;
        share_out(g->channels + g->out_channels, part / 4, loops->transform_block, call);
        share_out(SQUARES, part, weigh_squares, call);
    }
    loops->finish_weight(call);
}

static PyObject *weigh_by_squares(const ConvolutionLoops *loops, const Geometry *g, PyObject *const *arrays,
                                  PyObject *shape)
{
    Winograd plan;
    if (!suits_winograd(g))
        return NULL;
    size_t item = type_of(arrays[0]) == NPY_DOUBLE ? 8 : 4, pairs = (size_t)(g->channels * g->out_channels);
    PyObject *result = NULL;
    WinogradWeightCall call = {.plan = &plan, .input = data_of(arrays[0]), .output_grad = data_of(arrays[1]),
                               .wide = item == 8, .is_finite = 1};
    if (plan_winograd_weight(&plan, g, loops->lanes, (int)item)) {
        size_t row = SQUARES * (size_t)plan.pitch * item, slack = (size_t)loops->lanes * item;
        call.inputs = malloc(row * (size_t)g->channels + slack);
        call.grads = malloc(row * (size_t)g->out_channels + slack);
        call.sums = malloc(SQUARES * pairs * item);
        result = call.inputs && call.grads && call.sums ? new_weight(shape, type_of(arrays[0])) : NULL;
    }
    if (result) {
        call.result = data_of(result);
        for (call.group = 0; call.group < g->groups; call.group++) {
            memset(call.sums, 0, SQUARES * pairs * item);
            weigh_group(&call, loops, products(g) / (double)g->groups);
        }
    }
    free(call.inputs);
    free(call.grads);
    free(call.sums);
    free_winograd(&plan);
    if (result && (call.failed || !call.is_finite))
        Py_CLEAR(result);
    return result;
}

static PyObject *weigh_depthwise(const ConvolutionLoops *loops, const Geometry *g, PyObject *const *arrays, PyObject *shape)
{
    ptrdiff_t width = g->kernel[2];
    if (!suits_depthwise(g) || (width != 3 && width != 5 && width != 7) || g->kernel[1] * width > MOST_TAPS)
        return NULL;
    for (int d = 1; d < DIMS; d++) /* all of what windows read is staged */
        if ((g->result[d] - 1) * g->stride[d] + (g->kernel[d] - 1) * g->dilation[d] + 1 > g->input[d] + 2 * g->padding[d])
            return NULL;
    PyObject *result = new_weight(shape, type_of(arrays[0]));
    if (!result)
        return NULL;
    Depthwise plan;
    plan_depthwise(&plan, g, loops->lanes);
    DepthwiseCall call = {
        .plan = &plan, .input = data_of(arrays[0]), .output_grad = data_of(arrays[1]), .result = data_of(result)};
    share_out(g->groups, 4 * products(g), loops->weigh_depthwise, &call);
    if (call.failed)
        Py_CLEAR(result);
    return result || !call.failed ? result : PyErr_NoMemory();
}

static PyObject *weigh_directly(const ConvolutionLoops *loops, const Geometry *g, PyObject *const *arrays, PyObject *shape)
{
    Plan plan;
    PyObject *result = NULL;
    if (plan_weight_gradient(&plan, g, loops->lanes, type_of(arrays[0]) == NPY_DOUBLE ? 8 : 4))
        result = run_weight_gradient(&plan, loops, g, arrays, shape);
    free_plan(&plan);
    return result;
}

static PyObject *convolution_grad_weight(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "output_grad", "weight_shape", "stride", "padding", "dilation", "groups");
    Geometry geometry;
    if (!read_weight_gradient(slots, &geometry))
        return DECLINE;
    PyObject *arrays[2] = {row_major(slots[0]), row_major(slots[1])}, *result = NULL;
    if (arrays[0] && arrays[1]) {
        const ConvolutionLoops *loops = loops_for(type_of(slots[0]));
        result = weigh_depthwise(loops, &geometry, arrays, slots[2]);
        if (!result && !PyErr_Occurred())
            result = weigh_by_squares(loops, &geometry, arrays, slots[2]);
        if (!result && !PyErr_Occurred())
            result = weigh_directly(loops, &geometry, arrays, slots[2]);
    }
    Py_XDECREF(arrays[0]);
    Py_XDECREF(arrays[1]);
    return result;
}

const KernelEntry convolution_kernels[] = {
    {"convolution", convolution},
    {"convolution_grad_weight", convolution_grad_weight},
    {NULL, NULL},
};
