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

/* Of any dimensions, into the array's own dtype or one that is not given; or decline. */
static PyObject *reduce_any(PyObject *input, PyObject *dim, PyObject *keepdim, PyObject *dtype, Operation operation,
                            Finish finish)
{
    uint64_t reduced;
    int keeps, is_half = half_kind(input) != NO_FLOAT, is_real = is_real_array(input);
    if (!is_real && !is_half && is_none(dtype) && operation == SUM && finish == AS_IT_IS)
        return reduce_counts(input, dim, keepdim, TOTAL);
    if ((!is_real && !is_half) || (is_real && !size_of(input)) || !read_flag(keepdim, 0, &keeps) ||
        !(is_none(dtype) || (PyArray_DescrCheck(dtype) && ((PyArray_Descr *)dtype)->type_num == type_of(input))) ||
        !read_dims(dim, NDIM(input), &reduced))
        return DECLINE;
    return is_half ? reduce_halves(input, reduced, keeps, operation, finish)
                   : reduce_dims(input, reduced, keeps, operation, finish);
}

#define MEAN 32 /* beside SUM */

/* (input) or (input, dtype) */
static PyObject *reduce_all(PyObject *const *slots, const KernelEntry *entry)
{
    Operation operation = (Operation)(entry->kind & (MEAN - 1));
    PyObject *dtype = is_extremum(operation) ? NULL : slots[1];
    return reduce_any(slots[0], NULL, NULL, dtype, operation, entry->kind & MEAN ? DIVIDED : AS_IT_IS);
}

/* (input, dim, keepdim) or (input, dim, keepdim, dtype) */
static PyObject *reduce_some(PyObject *const *slots, const KernelEntry *entry)
{
    Operation operation = (Operation)(entry->kind & (MEAN - 1));
    PyObject *dtype = is_extremum(operation) ? NULL : slots[3];
    return reduce_any(slots[0], slots[1], slots[2], dtype, operation, entry->kind & MEAN ? DIVIDED : AS_IT_IS);
}

static PyObject *prod(PyObject *const *slots, const KernelEntry *entry)
{
    return reduce_dims(slots[0], (uint64_t)1 << dim_of(slots[1]), slots[2] == Py_True, PRODUCT, AS_IT_IS);
}

/* aminmax(input, *, dim, keepdim): dim is one dimension or None. */
static PyObject *aminmax(PyObject *const *slots, const KernelEntry *entry)
{
    uint64_t reduced;
    long dim;
    int keepdim = slots[2] == Py_True;
    if (is_none(slots[1]))
        read_dims(NULL, NDIM(slots[0]), &reduced);
    else if (read_integer(slots[1], 0, NDIM(slots[0]) - 1, &dim))
        reduced = (uint64_t)1 << dim;
    else
        return DECLINE;
    PyObject *least = reduce_dims(slots[0], reduced, keepdim, SMALLEST, AS_IT_IS);
    return pack(2, (PyObject *[]){least, least ? reduce_dims(slots[0], reduced, keepdim, LARGEST, AS_IT_IS) : NULL});
}

/* Whether every result is made of one element, whose square could overflow where its size does not. */
static int is_of_one_each(PyObject *input, PyObject *dim)
{
    uint64_t reduced;
    if (!PyArray_Check(input) || !read_dims(dim, NDIM(input), &reduced))
        return 0;
    for (int i = 0; i < NDIM(input); i++)
        if (reduced >> i & 1 && DIM(input, i) != 1)
            return 0;
    return 1;
}

/* The orders 1, 2, infinity and its negative. */
static PyObject *linalg_vector_norm(PyObject *const *slots, const KernelEntry *entry)
{
    double order;
    if (!read_number(slots[1], &order) || (order != 1 && order != 2 && !isinf(order)))
        return DECLINE;
    if (order == 2 && is_of_one_each(slots[0], slots[2]))
        order = 1;
    Operation operation = order == 1 ? SIZES : order == 2 ? SQUARES : order > 0 ? LARGEST_SIZE : SMALLEST_SIZE;
    return reduce_any(slots[0], slots[2], slots[3], slots[4], operation, order == 2 ? ROOT : AS_IT_IS);
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

enum { WITH_ROOT = 1, WITH_MEAN = 2 };

/* Variances (input, dim, correction, keepdim): the sum of squared distances from the means, which are found first. */
static PyObject *moments(PyObject *const *slots, const KernelEntry *entry)
{
    uint64_t reduced;
    Plan plan;
    if (!read_dims(slots[1], NDIM(slots[0]), &reduced))
        return DECLINE;
    if (!make_plan(slots[0], reduced, slots[3] == Py_True, &plan))
        return NULL;
    PyObject *mean = NULL, *variance = NULL;
    if (plan.step_count == 1) { /* several would need the mean of all of them in the first */
        double count = (double)plan.reduced_size, correction = number_of(slots[2]);
        double freedom = count > correction ? count - correction : 0;
        mean = run_plan(&plan, (Task){WIDE_SUM, DIVIDED, count, NULL, 1});
        if (mean)
            snap_to_first(&plan, mean);
        Finish finish = entry->kind & WITH_ROOT ? ROOT_OF_DIVIDED : DIVIDED;
        if (mean)
            variance = run_plan(&plan, (Task){DEVIATIONS, finish, freedom, data_of(mean)});
    }
    drop_plan(&plan);
    PyObject *rounded = variance && entry->kind & WITH_MEAN ? PyArray_Cast(ARRAY(mean), type_of(variance)) : NULL;
    Py_XDECREF(mean);
    return variance && entry->kind & WITH_MEAN ? pack(2, (PyObject *[]){variance, rounded}) : variance;
}

/* Sum over the dimensions along which an input of `shape` was broadcast. */
static PyObject *sum_to(PyObject *const *slots, const KernelEntry *entry)
{
    PyObject *grad = slots[0], *shape = slots[1];
    if (!PyTuple_CheckExact(shape))
        return DECLINE;
    int ndim = NDIM(grad), wanted_ndim = (int)PyTuple_GET_SIZE(shape), extra = ndim - wanted_ndim;
    if (extra < 0)
        return DECLINE;
    uint64_t reduced = extra ? ~(uint64_t)0 >> (64 - extra) : 0;
    ptrdiff_t summed = 1;
    for (int i = 0; i < extra; i++)
        summed *= DIM(grad, i);
    npy_intp wanted[NPY_MAXDIMS];
    for (int i = 0; i < wanted_ndim; i++) {
        long size;
        npy_intp own = DIM(grad, extra + i);
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
        return PyArray_Newshape(ARRAY(grad), &(PyArray_Dims){wanted, wanted_ndim}, NPY_CORDER);
    Plan plan;
    if (!make_plan(grad, reduced, 0, &plan))
        return NULL;
    plan.ndim = wanted_ndim;
    memcpy(plan.shape, wanted, sizeof(npy_intp) * wanted_ndim);
    PyObject *result = run_plan(&plan, (Task){SUM, AS_IT_IS, 1, NULL});
    drop_plan(&plan);
    return result;
}

static int has_shape(PyObject *array, PyObject *shape)
{
    if (!PyTuple_CheckExact(shape) || PyTuple_GET_SIZE(shape) != NDIM(array))
        return 0;
    for (int i = 0; i < NDIM(array); i++)
        if (PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i)) != DIM(array, i)) {
            PyErr_Clear();
            return 0;
        }
    return 1;
}

/* sum_to_like(grad, shape, dtype), where that is the gradient's own. */
static PyObject *sum_to_like(PyObject *const *slots, const KernelEntry *entry)
{
    if (!PyArray_CheckExact(slots[0]) || (PyObject *)PyArray_DESCR(ARRAY(slots[0])) != slots[2])
        return DECLINE;
    return has_shape(slots[0], slots[1]) ? Py_NewRef(slots[0]) : call_prepared(entry + 1, slots, 2);
}

const KernelEntry reductions_kernels[] = {
    {"sum_all", reduce_all, .kind = SUM},
    {"sum", reduce_some, .kind = SUM},
    {"mean_all", reduce_all, .kind = SUM | MEAN},
    {"mean", reduce_some, .kind = SUM | MEAN},
    {"prod_all", reduce_all, .kind = PRODUCT},
    {"prod", prod, "adft"},
    {"max_all", reduce_all, .kind = LARGEST},
    {"min_all", reduce_all, .kind = SMALLEST},
    {"amax", reduce_some, .kind = LARGEST},
    {"amin", reduce_some, .kind = SMALLEST},
    {"nansum", reduce_some, .kind = NUMBERS},
    {"aminmax", aminmax, "a.f"},
    {"linalg_vector_norm", linalg_vector_norm},
    {"var", moments, "a.nf"},
    {"std", moments, "a.nf", WITH_ROOT},
    {"var_mean", moments, "a.nf", WITH_MEAN},
    {"std_mean", moments, "a.nf", WITH_MEAN | WITH_ROOT},
    {"sum_to_like", sum_to_like},
    {"sum_to", sum_to, "a"}, /* follows the one that calls it */
    {NULL},
};
