/* Batch norms by given statistics: channels times a factor plus a shift, and the gradients of that. */
#include <math.h>

#include "rows.h"

typedef struct {
    const void *input, *grad, *mean, *factor, *shift;
    void *output;
    ptrdiff_t samples, channels, inner;
} Scaling;

#define LOOPS "channel_scaling_loops.h"
#include "for_each_real.h"

/* The sizes of (N, C, ...); 0 unless statistics are of its channels. */
static int read_scaling(PyObject *input, PyObject *weight, PyObject *variance, Scaling *loop)
{
    if (NDIM(input) < 2 || is_none(variance))
        return 0;
    loop->samples = DIM(input, 0);
    loop->channels = DIM(input, 1);
    loop->inner = size_of(input) / (loop->samples * loop->channels);
    int type = type_of(input);
    return is_absent_or_plain(weight, type, loop->channels) && is_absent_or_plain(variance, type, loop->channels);
}

static void run_scaling(Scaling *loop, int type)
{
    int one = loop->inner == 1;
    run_items(one ? loop->samples : loop->samples * loop->channels, one ? loop->channels : loop->inner,
              FOR_TYPE(type, scale_planes), loop);
}

/* The input times factors, plus shifts where a mean is given. */
static PyObject *scale(Scaling *loop, PyObject *input, PyObject *weight, PyObject *bias, PyObject *mean, PyObject *variance,
                       double eps)
{
    int type = type_of(input);
    char *room = PyMem_RawMalloc((size_t)(2 * loop->channels) * sizeof(double));
    PyObject *result = new_like(input);
    if (!room) {
        Py_CLEAR(result);
        PyErr_NoMemory();
    }
    if (result) {
        char *shift = mean ? room + loop->channels * sizeof(double) : NULL;
        loop->mean = mean ? data_of(mean) : NULL;
        if (type == NPY_FLOAT)
            find_factors_float(loop, data_of(variance), data_or_null(weight), data_or_null(bias), eps, (float *)room,
                               (float *)shift);
        else
            find_factors_double(loop, data_of(variance), data_or_null(weight), data_or_null(bias), eps, (double *)room,
                                (double *)shift);
        loop->input = data_of(input);
        loop->factor = room;
        loop->shift = shift;
        loop->output = data_of(result);
        run_scaling(loop, type);
    }
    PyMem_RawFree(room);
    return result;
}

static PyObject *batch_norm_evaluation(PyObject *const *slots, const KernelEntry *entry)
{
    Scaling loop;
    if (!read_scaling(slots[0], slots[1], slots[4], &loop) || is_none(slots[3]) ||
        !is_absent_or_plain(slots[2], type_of(slots[0]), loop.channels) ||
        !is_absent_or_plain(slots[3], type_of(slots[0]), loop.channels))
        return DECLINE;
    return scale(&loop, slots[0], slots[1], slots[2], slots[3], slots[4], number_of(slots[5]));
}

static PyObject *batch_norm_evaluation_back(PyObject *const *slots, const KernelEntry *entry)
{
    Scaling loop;
    if (!read_scaling(slots[0], slots[1], slots[2], &loop))
        return DECLINE;
    return scale(&loop, slots[0], slots[1], NULL, NULL, slots[2], number_of(slots[3]));
}

static PyObject *batch_norm_evaluation_weight_back(PyObject *const *slots, const KernelEntry *entry)
{
    Scaling loop;
    int type = type_of(slots[1]);
    if (!read_scaling(slots[1], NULL, slots[4], &loop) || is_none(slots[2]) || is_none(slots[3]) ||
        !is_absent_or_plain(slots[3], type, loop.channels))
        return DECLINE;
    npy_intp channels = loop.channels;
    double *factor = PyMem_RawMalloc((size_t)channels * sizeof(double)), eps = number_of(slots[5]);
    PyObject *result = factor ? new_array(1, &channels, type) : PyErr_NoMemory();
    if (result) {
        if (type == NPY_FLOAT)
            find_factors_float(&loop, data_of(slots[4]), NULL, NULL, eps, (float *)factor, NULL);
        else
            find_factors_double(&loop, data_of(slots[4]), NULL, NULL, eps, factor, NULL);
        loop.grad = data_of(slots[0]);
        loop.input = data_of(slots[1]);
        loop.mean = data_of(slots[3]);
        loop.factor = factor;
        loop.output = data_of(result);
        run_items(channels, 2 * loop.samples * loop.inner,
                  loop.inner == 1 ? FOR_TYPE(type, sum_columns) : FOR_TYPE(type, sum_planes), &loop);
    }
    PyMem_RawFree(factor);
    return result;
}

const KernelEntry channel_scaling_kernels[] = {
    {"batch_norm_evaluation", batch_norm_evaluation, "r....n"},
    {"batch_norm_evaluation_back", batch_norm_evaluation_back, "r..n"},
    {"batch_norm_evaluation_weight_back", batch_norm_evaluation_weight_back, "rRt..n"},
    {NULL},
};
