/* The compiled kernels of kernels/reductions.py, norms.py, statistics.py and broadcasting.py, and the extrema that need
 * no indices. */
#include <float.h>
#include <math.h>

#include "casts.h"
#include "reduction.h"

static PyObject *reduce_dims(PyObject *input, uint64_t reduced, int keepdim, Operation operation, Finish finish)
{
    Plan plan;
    if (!make_plan(input, reduced, keepdim, &plan))
        return NULL;
    PyObject *result = run_plan(&plan, (Task){operation, finish, (double)plan.reduced_size, NULL});
    drop_plan(&plan);
    return result;
}

/* The arguments that reductions of any dimensions have, or decline. */
static PyObject *reduce_any(PyObject *input, PyObject *dim, PyObject *keepdim, Operation operation, Finish finish)
{
    uint64_t reduced;
    int keeps;
    if (half_kind(input) && operation != DEVIATIONS && read_flag(keepdim, 0, &keeps) &&
        read_dims(dim, PyArray_NDIM((PyArrayObject *)input), &reduced))
        return reduce_halves(input, reduced, keeps, operation, finish);
    if (!is_real_array(input) || !size_of(input) || !read_flag(keepdim, 0, &keeps) ||
        !read_dims(dim, PyArray_NDIM((PyArrayObject *)input), &reduced))
        return DECLINE;
    return reduce_dims(input, reduced, keeps, operation, finish);
}

/* Whether a dtype is not given or the array's own. */
static int is_own_dtype(PyObject *dtype, PyObject *input)
{
    return is_none(dtype) || (PyArray_DescrCheck(dtype) && (is_real_array(input) || half_kind(input)) &&
                              ((PyArray_Descr *)dtype)->type_num == type_of(input));
}

static PyObject *sum_all(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dtype");
    if (positional == 1 && is_none(slots[1]) && !is_real_array(slots[0]) && !half_kind(slots[0]))
        return reduce_counts(slots[0], NULL, NULL, TOTAL);
    if (positional > 1 || !is_own_dtype(slots[1], slots[0]))
        return DECLINE;
    return reduce_any(slots[0], NULL, NULL, SUM, AS_IT_IS);
}

static PyObject *sum(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "keepdim", "dtype");
    if (positional <= 3 && is_none(slots[3]) && !is_real_array(slots[0]) && !half_kind(slots[0]))
        return reduce_counts(slots[0], slots[1], slots[2], TOTAL);
    if (positional > 3 || !is_own_dtype(slots[3], slots[0]))
        return DECLINE;
    return reduce_any(slots[0], slots[1], slots[2], SUM, AS_IT_IS);
}

static PyObject *mean_all(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dtype");
    if (positional > 1 || !is_own_dtype(slots[1], slots[0]))
        return DECLINE;
    return reduce_any(slots[0], NULL, NULL, SUM, DIVIDED);
}

static PyObject *mean(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "keepdim", "dtype");
    if (positional > 3 || !is_own_dtype(slots[3], slots[0]))
        return DECLINE;
    return reduce_any(slots[0], slots[1], slots[2], SUM, DIVIDED);
}

static PyObject *prod_all(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dtype");
    if (positional > 1 || !is_own_dtype(slots[1], slots[0]))
        return DECLINE;
    return reduce_any(slots[0], NULL, NULL, PRODUCT, AS_IT_IS);
}

static PyObject *prod(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "keepdim", "dtype");
    long dim;
    int keepdim;
    if (positional > 3 || !is_real_array(slots[0]) || !size_of(slots[0]) || !is_own_dtype(slots[3], slots[0]) ||
        !read_integer(slots[1], 0, PyArray_NDIM((PyArrayObject *)slots[0]) - 1, &dim) ||
        !read_flag(slots[2], 0, &keepdim))
        return DECLINE;
    return reduce_dims(slots[0], (uint64_t)1 << dim, keepdim, PRODUCT, AS_IT_IS);
}

static PyObject *max_all(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input");
    return reduce_any(slots[0], NULL, NULL, LARGEST, AS_IT_IS);
}

static PyObject *min_all(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input");
    return reduce_any(slots[0], NULL, NULL, SMALLEST, AS_IT_IS);
}

static PyObject *amax(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "keepdim");
    return reduce_any(slots[0], slots[1], slots[2], LARGEST, AS_IT_IS);
}

static PyObject *amin(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "keepdim");
    return reduce_any(slots[0], slots[1], slots[2], SMALLEST, AS_IT_IS);
}

static PyObject *nansum(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "keepdim", "dtype");
    if (positional > 3 || !is_own_dtype(slots[3], slots[0]))
        return DECLINE;
    return reduce_any(slots[0], slots[1], slots[2], NUMBERS, AS_IT_IS);
}

/* aminmax(input, *, dim, keepdim): dim is one dimension or None. */
static PyObject *aminmax(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "keepdim");
    PyObject *input = slots[0];
    uint64_t reduced;
    long dim;
    int keepdim;
    if (positional > 1 || !is_real_array(input) || !size_of(input) || !read_flag(slots[2], 0, &keepdim))
        return DECLINE;
    if (is_none(slots[1]))
        read_dims(NULL, PyArray_NDIM((PyArrayObject *)input), &reduced);
    else if (read_integer(slots[1], 0, PyArray_NDIM((PyArrayObject *)input) - 1, &dim))
        reduced = (uint64_t)1 << dim;
    else
        return DECLINE;
    PyObject *least = reduce_dims(input, reduced, keepdim, SMALLEST, AS_IT_IS);
    PyObject *most = least ? reduce_dims(input, reduced, keepdim, LARGEST, AS_IT_IS) : NULL;
    PyObject *pair = most ? PyTuple_Pack(2, least, most) : NULL;
    Py_XDECREF(least);
    Py_XDECREF(most);
    return pair;
}

/* Whether every result is made of one element, whose square could overflow where its size does not. */
static int is_of_one_each(PyObject *input, PyObject *dim)
{
    uint64_t reduced;
    if (!PyArray_Check(input) || !read_dims(dim, PyArray_NDIM((PyArrayObject *)input), &reduced))
        return 0;
    for (int i = 0; i < PyArray_NDIM((PyArrayObject *)input); i++)
        if (reduced >> i & 1 && PyArray_DIM((PyArrayObject *)input, i) != 1)
            return 0;
    return 1;
}

/* The orders 1, 2, infinity and its negative. */
static PyObject *linalg_vector_norm(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "ord", "dim", "keepdim", "dtype");
    double order = 2;
    if (positional > 4 || !is_own_dtype(slots[4], slots[0]) || (slots[1] && !read_number(slots[1], &order)) ||
        (order != 1 && order != 2 && !isinf(order)))
        return DECLINE;
    if (order == 2 && is_of_one_each(slots[0], slots[2]))
        order = 1;
    Operation operation = order == 1 ? SIZES : order == 2 ? SQUARES : order > 0 ? LARGEST_SIZE : SMALLEST_SIZE;
    return reduce_any(slots[0], slots[2], slots[3], operation, order == 2 ? ROOT : AS_IT_IS);
}

/* Put the first value in place of a mean that differs from it by rounding: the variance of equal values is zero exactly.
 * Sums of equal float32 are exact in double precision. */
static void snap_to_first(const Plan *plan, PyObject *mean)
{
    if (type_of(plan->array) != NPY_DOUBLE)
        return;
    Layout layout = plan->steps[0];
    const double *input = data_of(plan->array);
    double *means = data_of(mean);
    for (ptrdiff_t outer = 0; outer < layout.outer; outer++)
        for (ptrdiff_t j = 0; j < layout.inner; j++) {
            double first = input[outer * layout.count * layout.inner + j], *at = means + outer * layout.inner + j;
            if (fabs(*at - first) <= 8 * DBL_EPSILON * fabs(first))
                *at = first;
        }
}

/* Variances: the sum of squared distances from the means, which are found first. */
static PyObject *moments(PyObject *const *slots, Finish finish, int with_mean)
{
    PyObject *input = slots[0];
    double correction = 1;
    uint64_t reduced;
    int keepdim;
    if (!is_real_array(input) || !size_of(input) || !read_dims(slots[1], PyArray_NDIM((PyArrayObject *)input), &reduced) ||
        (slots[2] && !read_number(slots[2], &correction)) || !read_flag(slots[3], 0, &keepdim))
        return DECLINE;
    Plan plan;
    if (!make_plan(input, reduced, keepdim, &plan))
        return NULL;
    PyObject *mean = NULL, *variance = NULL;
    if (plan.step_count == 1) { /* several would need the mean of all of them in the first */
        double count = (double)plan.reduced_size, freedom = count > correction ? count - correction : 0;
        mean = run_plan(&plan, (Task){WIDE_SUM, DIVIDED, count, NULL, 1});
        if (mean)
            snap_to_first(&plan, mean);
        if (mean)
            variance = run_plan(&plan, (Task){DEVIATIONS, finish, freedom, data_of(mean)});
    }
    drop_plan(&plan);
    if (!variance || !with_mean) {
        Py_XDECREF(mean);
        return variance;
    }
    PyObject *rounded = PyArray_Cast((PyArrayObject *)mean, type_of(variance));
    PyObject *pair = rounded ? PyTuple_Pack(2, variance, rounded) : NULL;
    Py_DECREF(variance);
    Py_DECREF(mean);
    Py_XDECREF(rounded);
    return pair;
}

static PyObject *var(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "correction", "keepdim");
    return moments(slots, DIVIDED, 0);
}

static PyObject *std(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "correction", "keepdim");
    return moments(slots, ROOT_OF_DIVIDED, 0);
}

static PyObject *var_mean(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "correction", "keepdim");
    return moments(slots, DIVIDED, 1);
}

static PyObject *std_mean(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "correction", "keepdim");
    return moments(slots, ROOT_OF_DIVIDED, 1);
}

/* Sum over the dimensions along which an input of `shape` was broadcast. */
static PyObject *undo_broadcasting(PyObject *grad, PyObject *shape)
{
    if (!is_real_array(grad) || !size_of(grad) || !shape || !PyTuple_CheckExact(shape))
        return DECLINE;
    PyArrayObject *array = (PyArrayObject *)grad;
    int ndim = PyArray_NDIM(array), wanted_ndim = (int)PyTuple_GET_SIZE(shape), extra = ndim - wanted_ndim;
    if (extra < 0)
        return DECLINE;
    uint64_t reduced = extra ? ~(uint64_t)0 >> (64 - extra) : 0;
    ptrdiff_t summed = 1;
    for (int i = 0; i < extra; i++)
        summed *= PyArray_DIM(array, i);
    npy_intp wanted[NPY_MAXDIMS];
    for (int i = 0; i < wanted_ndim; i++) {
        long size;
        npy_intp own = PyArray_DIM(array, extra + i);
        if (!read_integer(PyTuple_GET_ITEM(shape, i), 1, LONG_MAX, &size) || (size != own && size != 1))
            return DECLINE;
        wanted[i] = size;
        if (size != own) {
            reduced |= (uint64_t)1 << (extra + i);
            summed *= own;
        }
    }
    if (!reduced)
        return Py_NewRef(grad);
    if (summed == 1)
        return DECLINE;
    Plan plan;
    if (!make_plan(grad, reduced, 0, &plan))
        return NULL;
    plan.ndim = wanted_ndim;
    memcpy(plan.shape, wanted, sizeof(npy_intp) * wanted_ndim);
    PyObject *result = run_plan(&plan, (Task){SUM, AS_IT_IS, 1, NULL});
    drop_plan(&plan);
    return result;
}

static PyObject *sum_to(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "grad", "shape");
    return undo_broadcasting(slots[0], slots[1]);
}

const KernelEntry reductions_kernels[] = {
    {"sum_all", sum_all},
    {"sum", sum},
    {"mean_all", mean_all},
    {"mean", mean},
    {"prod_all", prod_all},
    {"prod", prod},
    {"max_all", max_all},
    {"min_all", min_all},
    {"amax", amax},
    {"amin", amin},
    {"nansum", nansum},
    {"aminmax", aminmax},
    {"linalg_vector_norm", linalg_vector_norm},
    {"var", var},
    {"std", std},
    {"var_mean", var_mean},
    {"std_mean", std_mean},
    {"sum_to", sum_to},
    {NULL},
};
