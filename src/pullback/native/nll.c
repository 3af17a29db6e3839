/* The negative log likelihood of classes and its adjoint: kernels of kernels/nll.py, for (N, C) and int64 targets.
 *
 * One number per row is touched, wherever it lies, so that there is nothing to vectorise. Sums are in float64.
 */
#include "rows.h"
#include "views.h"

#include <numpy/arrayscalars.h>

enum { MEAN = 1, SUM = 2 };

typedef struct {
    const int64_t *targets;
    const void *weight; /* NULL for ones */
    ptrdiff_t count, classes;
    int64_t ignored;
    int reduction, type;
} Loss;

INLINE double number_at(const void *data, ptrdiff_t i, int type)
{
    return type == NPY_DOUBLE ? ((const double *)data)[i] : ((const float *)data)[i];
}

INLINE void put_number(void *data, ptrdiff_t i, double value, int type)
{
    if (type == NPY_DOUBLE)
        ((double *)data)[i] = value;
    else
        ((float *)data)[i] = (float)value;
}

INLINE double weight_of(const Loss *loss, ptrdiff_t i)
{
    return loss->weight ? number_at(loss->weight, loss->targets[i], loss->type) : 1;
}

/* Reads target, weight, reduction and ignore_index for rows of `classes`; 0 where they are not served or a target is no
 * class. */
static int read_loss(PyObject *target, PyObject *weight, PyObject *reduction, PyObject *ignore_index, Loss *loss)
{
    long wanted = MEAN, ignored = -100;
    if (!target || !PyArray_CheckExact(target) || type_of(target) != NPY_INT64 ||
        !PyArray_ISCARRAY_RO((PyArrayObject *)target) || PyArray_NDIM((PyArrayObject *)target) != 1 ||
        size_of(target) != loss->count || !loss->count || !is_absent_or_plain(weight, loss->type, loss->classes) ||
        (reduction && !read_integer(reduction, 0, SUM, &wanted)) ||
        (ignore_index && !read_integer(ignore_index, -(1L << 30), 1L << 30, &ignored)))
        return 0;
    loss->targets = data_of(target);
    loss->weight = data_or_null(weight);
    loss->reduction = (int)wanted;
    loss->ignored = ignored;
    for (ptrdiff_t i = 0; i < loss->count; i++)
        if (loss->targets[i] != ignored && (loss->targets[i] < 0 || loss->targets[i] >= loss->classes))
            return 0;
    return 1;
}

static double total_weight(const Loss *loss)
{
    double total = 0;
    for (ptrdiff_t i = 0; i < loss->count; i++)
        if (loss->targets[i] != loss->ignored)
            total += weight_of(loss, i);
    return total;
}

static PyObject *nll_loss(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "target", "weight", "reduction", "ignore_index");
    if (!slots[0] || !is_plain(slots[0]) || PyArray_NDIM((PyArrayObject *)slots[0]) != 2)
        return DECLINE;
    npy_intp *shape = PyArray_DIMS((PyArrayObject *)slots[0]);
    Loss loss = {.count = shape[0], .classes = shape[1], .type = type_of(slots[0])};
    if (!read_loss(slots[1], slots[2], slots[3], slots[4], &loss))
        return DECLINE;
    PyObject *result = new_array(loss.reduction ? 0 : 1, shape, loss.type);
    if (!result)
        return NULL;
    double total = 0;
    for (ptrdiff_t i = 0; i < loss.count; i++) {
        int counts = loss.targets[i] != loss.ignored;
        double value = counts ? -number_at(data_of(slots[0]), i * loss.classes + loss.targets[i], loss.type) : 0;
        if (counts)
            value *= weight_of(&loss, i);
        if (!loss.reduction)
            put_number(data_of(result), i, value, loss.type);
        total += value;
    }
    if (loss.reduction)
        put_number(data_of(result), 0, loss.reduction == MEAN ? total / total_weight(&loss) : total, loss.type);
    return result;
}

/* A gradient: one number, as an array without dimensions or a float32 or float64 of NumPy's, or one for each row. */
static int read_gradient(PyObject *object, const Loss *loss, const void **each, double *one)
{
    *each = NULL;
    if (PyArray_CheckExact(object) && is_plain(object)) {
        if (loss->reduction ? PyArray_NDIM((PyArrayObject *)object) != 0 : size_of(object) != loss->count)
            return 0;
        *each = loss->reduction ? NULL : data_of(object);
        *one = number_at(data_of(object), 0, type_of(object));
        return 1;
    }
    if (!loss->reduction || PyArray_CheckExact(object))
        return 0;
    *one = PyArray_IsScalar(object, Float) ? PyArrayScalar_VAL(object, Float) : PyArrayScalar_VAL(object, Double);
    return 1;
}

/* nll_loss_grad(input, target, weight, shape, reduction, ignore_index); `input` is the gradient of the loss. */
static PyObject *nll_loss_grad(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    npy_intp shape[NPY_MAXDIMS];
    const void *each;
    double one;
    if (positional != 6 || keywords || read_shape(arguments[3], shape) != 2)
        return DECLINE;
    int is_array = PyArray_CheckExact(arguments[0]);
    if (!is_array && !PyArray_IsScalar(arguments[0], Float) && !PyArray_IsScalar(arguments[0], Double))
        return DECLINE;
    int type = is_array ? type_of(arguments[0]) : PyArray_IsScalar(arguments[0], Double) ? NPY_DOUBLE : NPY_FLOAT;
    Loss loss = {.count = shape[0], .classes = shape[1], .type = type};
    if (!read_loss(arguments[1], arguments[2], arguments[4], arguments[5], &loss) ||
        !read_gradient(arguments[0], &loss, &each, &one))
        return DECLINE;
    PyObject *result = PyArray_ZEROS(2, shape, type, 0);
    if (!result)
        return NULL;
    double divisor = loss.reduction == MEAN ? total_weight(&loss) : 1;
    for (ptrdiff_t i = 0; i < loss.count; i++)
        if (loss.targets[i] != loss.ignored) {
            double grad = each ? number_at(each, i, type) : one;
            put_number(data_of(result), i * loss.classes + loss.targets[i], -grad * weight_of(&loss, i) / divisor, type);
        }
    return result;
}

const KernelEntry nll_kernels[] = {
    {"nll_loss", nll_loss},
    {"nll_loss_grad", nll_loss_grad},
    {NULL},
};
