/* The kernel `convolution_grad_weight`: reads the arguments, plans, shares out the work.
 *
 * See Note [Staged convolution] in convolution.h.
 */
#include "convolution_calls.h"

void add_product(const void *grads, ptrdiff_t rows, ptrdiff_t grad_step, const void *inputs, ptrdiff_t columns,
                 ptrdiff_t input_step, ptrdiff_t width, void *result, ptrdiff_t result_step, int wide)
{
#if defined(__GNUC__)
    Product product = {
        .a = {grads, rows, width, grad_step, 1},
        .b = {inputs, width, columns, 1, input_step},
        .start = result,
        .start_step = result_step,
        .result = result,
        .result_step = result_step,
        .wide = wide,
    };
    multiply(&product, BY_ROWS);
#else
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t j = 0; j < columns; j++) {
            double sum = 0;
            for (ptrdiff_t k = 0; k < width; k++)
                sum += wide ? ((const double *)grads)[i * grad_step + k] * ((const double *)inputs)[j * input_step + k]
                            : (double)((const float *)grads)[i * grad_step + k] * ((const float *)inputs)[j * input_step + k];
            if (wide)
                ((double *)result)[i * result_step + j] += sum;
            else
                ((float *)result)[i * result_step + j] += (float)sum;
        }
#endif
}

static int read_weight_gradient(PyObject *const *slots, Geometry *g)
{
    PyObject *input = slots[0], *output_grad = slots[1];
    if (!input || !PyArray_CheckExact(input))
        return 0;
    int type = type_of(input), dims = NDIM(input) - 2;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || dims < 1 || dims > DIMS)
        return 0;
    if (!is_array_of(input, type) || !is_array_of(output_grad, type) || NDIM(output_grad) != dims + 2 ||
        !read_steps(slots + 3, dims, g) || !read_size(slots[6], 1, &g->groups))
        return 0;
    ptrdiff_t shape[2 + DIMS];
    if (!slots[2] || !PyTuple_CheckExact(slots[2]) || PyTuple_GET_SIZE(slots[2]) != dims + 2)
        return 0;
    for (int d = 0; d < dims + 2; d++)
        if (!read_size(PyTuple_GET_ITEM(slots[2], d), 1, &shape[d]))
            return 0;
    g->transposed = 0;
    g->batch = DIM(input, 0);
    g->channels = shape[1];
    g->out_channels = shape[0] / g->groups;
    if (shape[0] % g->groups || shape[1] * g->groups != DIM(input, 1) || shape[0] != DIM(output_grad, 1) ||
        g->batch != DIM(output_grad, 0))
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

PyObject *convolution_grad_weight(PyObject *const *slots, const KernelEntry *entry)
{
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
