/* The compiled kernels of the negative log likelihood in kernels/nll.py. `reduction` is 0 for none, 1 for the mean, 2 for the sum. */
#include "rows.h"
#include "views.h"

#include <stdint.h>

typedef struct {
    Layout layout; /* samples, classes, places of a sample */
    const void *input, *weight;
    const int64_t *target;
    int64_t ignored;
} Likelihood;

#define LOOPS "nll_loss_loops.h"
#include "for_each_real.h"

/* Whether every target is a class or ignored; what is neither is for the reference to name. */
static int targets_are_classes(const Likelihood *loop)
{
    int64_t classes = loop->layout.count, ignored = loop->ignored;
    int wrong = 0;
    for (ptrdiff_t t = 0; t < loop->layout.outer * loop->layout.inner; t++)
        wrong |= (uint64_t)loop->target[t] >= (uint64_t)classes && loop->target[t] != ignored;
    return !wrong;
}

/* Read targets, weights and the ignored index for an input of this shape; 0 where something does not fit. */
static int read_likelihood(int ndim, const npy_intp *shape, int type, PyObject *target, PyObject *weight, PyObject *ignored,
                           Likelihood *loop)
{
    if (ndim < 1 || !target || !PyArray_CheckExact(target) || type_of(target) != NPY_INT64 ||
        !PyArray_ISCARRAY_RO((PyArrayObject *)target) || NDIM(target) != ndim - 1)
        return 0;
    int axis = ndim == 1 ? 0 : 1;
    loop->layout = (Layout){1, shape[axis], 1};
    for (int i = 0, t = 0; i < ndim; i++) {
        if (i == axis)
            continue;
        if (DIM(target, t++) != shape[i])
            return 0;
        *(i < axis ? &loop->layout.outer : &loop->layout.inner) *= shape[i];
    }
    long index = -100;
    if ((ignored && !read_integer(ignored, LONG_MIN, LONG_MAX, &index)) ||
        !is_absent_or_plain(weight, type, loop->layout.count) || !size_of(target) || !loop->layout.count)
        return 0;
    loop->weight = data_or_null(weight);
    loop->target = data_of(target);
    loop->ignored = index;
    return targets_are_classes(loop);
}

static PyObject *nll_loss(PyObject *const *slots, const KernelEntry *entry)
{
    PyObject *input = slots[0];
    Likelihood loop;
    int type = type_of(input), reduction = dim_of(slots[3]);
    if (!read_likelihood(NDIM(input), SHAPE(input), type, slots[1], slots[2], slots[4], &loop))
        return DECLINE;
    loop.input = data_of(input);
    double total, divisor;
    PyObject *each = NULL;
    if (!reduction && !(each = new_array(NDIM(slots[1]), SHAPE(slots[1]), type)))
        return NULL;
    FOR_TYPE(type, likelihoods)(&loop, each ? data_of(each) : NULL, &total, &divisor);
    return each ? each : store_number(reduction == 1 ? total / divisor : total, type);
}

static PyObject *nll_loss_grad(PyObject *const *slots, const KernelEntry *entry)
{
    PyObject *grad = slots[0];
    npy_intp shape[NPY_MAXDIMS];
    int ndim = read_shape(slots[3], shape), type = type_of(grad), reduction = dim_of(slots[4]);
    Likelihood loop;
    if (!read_likelihood(ndim, shape, type, slots[1], slots[2], slots[5], &loop) ||
        (reduction ? size_of(grad) != 1 : !same_shape(grad, slots[1])))
        return DECLINE;
    PyObject *result = PyArray_ZEROS(ndim, shape, type, 0);
    if (!result)
        return NULL;
    double total, divisor = 1;
    loop.input = NULL;
    if (reduction == 1)
        FOR_TYPE(type, likelihoods)(&loop, NULL, &total, &divisor);
    FOR_TYPE(type, spread_likelihoods)(&loop, data_of(grad), !reduction, divisor, data_of(result));
    return result;
}

const KernelEntry nll_loss_kernels[] = {
    {"nll_loss", nll_loss, "p..2"},
    {"nll_loss2d", nll_loss, "p..2"},
    {"nll_loss_grad", nll_loss_grad, "p...2"},
    {NULL},
};
