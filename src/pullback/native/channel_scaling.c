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

/* (N, C, ...) of a float type, not empty, with statistics of its own type. */
static int read_scaling(PyObject *input, PyObject *weight, PyObject *variance, PyObject *eps, Scaling *loop, double *value)
{
    if (!is_real_array(input) || !size_of(input) || PyArray_NDIM((PyArrayObject *)input) < 2 || is_none(variance) || !eps ||
        !read_number(eps, value))
        return 0;
    loop->samples = PyArray_DIM((PyArrayObject *)input, 0);
    loop->channels = PyArray_DIM((PyArrayObject *)input, 1);
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
    PyObject *plain = row_major(input), *result = plain ? new_like(plain) : NULL;
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
        loop->input = data_of(plain);
        loop->factor = room;
        loop->shift = shift;
        loop->output = data_of(result);
        run_scaling(loop, type);
    }
    PyMem_RawFree(room);
    Py_XDECREF(plain);
    return result;
}

static PyObject *batch_norm_evaluation(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "weight", "bias", "running_mean", "running_var", "eps");
    Scaling loop;
    double eps;
    if (!read_scaling(slots[0], slots[1], slots[4], slots[5], &loop, &eps) || is_none(slots[3]) ||
        !is_absent_or_plain(slots[2], type_of(slots[0]), loop.channels) ||
        !is_absent_or_plain(slots[3], type_of(slots[0]), loop.channels))
        return DECLINE;
    return scale(&loop, slots[0], slots[1], slots[2], slots[3], slots[4], eps);
}

static PyObject *batch_norm_evaluation_back(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "grad", "weight", "running_var", "eps");
    Scaling loop;
    double eps;
    if (!read_scaling(slots[0], slots[1], slots[2], slots[3], &loop, &eps))
        return DECLINE;
    return scale(&loop, slots[0], slots[1], NULL, NULL, slots[2], eps);
}

static PyObject *batch_norm_evaluation_weight_back(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "grad", "input", "dtype", "running_mean", "running_var", "eps");
    Scaling loop;
    double eps;
    if (!read_scaling(slots[1], NULL, slots[4], slots[5], &loop, &eps) || is_none(slots[3]))
        return DECLINE;
    int type = type_of(slots[1]);
    if (!is_real_array_of(slots[0], type) || !same_shape(slots[0], slots[1]) ||
        !is_absent_or_plain(slots[3], type, loop.channels) || !slots[2] || !PyArray_DescrCheck(slots[2]) ||
        ((PyArray_Descr *)slots[2])->type_num != type)
        return DECLINE;
    npy_intp channels = loop.channels;
    double *factor = PyMem_RawMalloc((size_t)channels * sizeof(double));
    PyObject *grad = row_major(slots[0]), *plain = row_major(slots[1]);
    PyObject *result = grad && plain && factor ? new_array(1, &channels, type) : NULL;
    if (!factor)
        PyErr_NoMemory();
    if (result) {
        if (type == NPY_FLOAT)
            find_factors_float(&loop, data_of(slots[4]), NULL, NULL, eps, (float *)factor, NULL);
        else
            find_factors_double(&loop, data_of(slots[4]), NULL, NULL, eps, factor, NULL);
        loop.grad = data_of(grad);
        loop.input = data_of(plain);
        loop.mean = data_of(slots[3]);
        loop.factor = factor;
        loop.output = data_of(result);
        run_items(channels, 2 * loop.samples * loop.inner,
                  loop.inner == 1 ? FOR_TYPE(type, sum_columns) : FOR_TYPE(type, sum_planes), &loop);
    }
    PyMem_RawFree(factor);
    Py_XDECREF(grad);
    Py_XDECREF(plain);
    return result;
}

const KernelEntry channel_scaling_kernels[] = {
    {"batch_norm_evaluation", batch_norm_evaluation},
    {"batch_norm_evaluation_back", batch_norm_evaluation_back},
    {"batch_norm_evaluation_weight_back", batch_norm_evaluation_weight_back},
    {NULL},
};
