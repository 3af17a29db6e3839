/* The compiled kernels of kernels/losses.py: losses of an input and a target of one shape, and their gradients, each in
 * one pass with its reduction. `reduction` is 0 for none, 1 for the mean, 2 for the sum. */
#include <math.h>

#include "functions.h"
#include "rows.h"

/* Elements of one partial sum: the order of additions does not depend on the number of threads. */
#define PART 65536

typedef struct {
    const void *input, *target, *grad; /* grad: one for each pair, or NULL */
    ptrdiff_t count;
    double limit, scale, factor, *partials;
    void *output;
} Pairs;

#define LOOPS "pair_loss_loops.h"
#include "for_each_real.h"

typedef struct {
    BlockFunction each, sums;
} PairLoss;

#define LOSS_OF(type, name) ((type) == NPY_FLOAT ? (PairLoss){name##_each_float, name##_sums_float} : (PairLoss){name##_each_double, name##_sums_double})

/* Two plain arrays of one type and shape, not empty. */
static int fit_together(PyObject *first, PyObject *second)
{
    return first && second && is_plain(first) && is_plain_of(second, type_of(first)) && same_shape(first, second) &&
           size_of(first);
}

static PyObject *store_number(double value, int type)
{
    PyObject *result = new_array(0, NULL, type);
    if (result && type == NPY_FLOAT)
        *(float *)data_of(result) = (float)value;
    else if (result)
        *(double *)data_of(result) = value;
    return result;
}

/* The losses of pairs that fit together, each times `factor`, reduced as asked; `work` is how many simple steps one takes. */
static PyObject *find_losses(PyObject *input, PyObject *target, PyObject *how, double limit, double factor, PairLoss loss,
                             int work)
{
    long reduction = 1;
    if (how && !read_integer(how, 0, 2, &reduction))
        return DECLINE;
    ptrdiff_t count = size_of(input), parts = (count + PART - 1) / PART;
    Pairs pairs = {.input = data_of(input), .target = data_of(target), .count = count, .limit = limit, .factor = factor};
    if (!reduction) {
        PyObject *result = new_like(input);
        if (result) {
            pairs.output = data_of(result);
            run_items(count, work, loss.each, &pairs);
        }
        return result;
    }
    double first, total = 0;
    pairs.partials = parts == 1 ? &first : PyMem_RawMalloc(sizeof(double) * parts);
    if (!pairs.partials)
        return PyErr_NoMemory();
    run_items(parts, work * (count < PART ? count : PART), loss.sums, &pairs);
    for (ptrdiff_t part = 0; part < parts; part++)
        total += pairs.partials[part];
    if (parts > 1)
        PyMem_RawFree(pairs.partials);
    total *= factor;
    return store_number(reduction == 1 ? total / (double)count : total, type_of(input));
}

static PyObject *mse_loss(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "target", "reduction");
    if (!fit_together(slots[0], slots[1]))
        return DECLINE;
    return find_losses(slots[0], slots[1], slots[2], 0, 1, LOSS_OF(type_of(slots[0]), squared), 1);
}

static PyObject *huber_loss(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "target", "reduction", "delta");
    double delta = 1;
    if (!fit_together(slots[0], slots[1]) || (slots[3] && !read_number(slots[3], &delta)))
        return DECLINE;
    return find_losses(slots[0], slots[1], slots[2], delta, 1, LOSS_OF(type_of(slots[0]), rounded_distance), 1);
}

static PyObject *smooth_l1_loss(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "target", "reduction", "beta");
    double beta = 1;
    if (!fit_together(slots[0], slots[1]) || (slots[3] && !read_number(slots[3], &beta)) || !(beta > 0))
        return DECLINE;
    return find_losses(slots[0], slots[1], slots[2], beta, 1 / beta, LOSS_OF(type_of(slots[0]), rounded_distance), 1);
}

static PyObject *soft_margin_loss(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "target", "reduction");
    if (!fit_together(slots[0], slots[1]))
        return DECLINE;
    return find_losses(slots[0], slots[1], slots[2], 0, 1, LOSS_OF(type_of(slots[0]), soft_margin), 4);
}

static PyObject *binary_cross_entropy(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "target", "weight", "reduction");
    if (!fit_together(slots[0], slots[1]) || !is_none(slots[2]) ||
        !FOR_TYPE(type_of(slots[0]), are_probabilities)(data_of(slots[0]), size_of(slots[0])))
        return DECLINE;
    return find_losses(slots[0], slots[1], slots[3], 0, 1, LOSS_OF(type_of(slots[0]), cross_entropy), 4);
}

static PyObject *binary_cross_entropy_with_logits(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "target", "weight", "pos_weight", "reduction");
    if (!fit_together(slots[0], slots[1]) || !is_none(slots[2]) || !is_none(slots[3]))
        return DECLINE;
    return find_losses(slots[0], slots[1], slots[4], 0, 1, LOSS_OF(type_of(slots[0]), logit_cross_entropy), 4);
}

/* The slopes of a loss times `factor` and `grad`, over the count where `reduction` is the mean. */
static PyObject *find_slopes(PyObject *grad, PyObject *input, PyObject *target, PyObject *how, Pairs pairs,
                             BlockFunction of_float, BlockFunction of_double)
{
    long reduction;
    if (!fit_together(input, target) || !read_integer(how, 0, 2, &reduction) || !is_real_array_of(grad, type_of(input)) ||
        (reduction ? PyArray_NDIM((PyArrayObject *)grad) != 0 : !same_shape(grad, input)))
        return DECLINE;
    int type = type_of(input);
    ptrdiff_t count = size_of(input);
    PyObject *plain = row_major(grad), *result = plain ? new_like(input) : NULL;
    if (result) {
        double weight = !reduction ? 1 : type == NPY_FLOAT ? *(const float *)data_of(plain) : *(const double *)data_of(plain);
        pairs.input = data_of(input);
        pairs.target = data_of(target);
        pairs.grad = reduction ? NULL : data_of(plain);
        pairs.factor *= weight / (reduction == 1 ? (double)count : 1);
        pairs.output = data_of(result);
        run_items(count, 1, type == NPY_FLOAT ? of_float : of_double, &pairs);
    }
    Py_XDECREF(plain);
    return result;
}

static PyObject *mse_loss_grad(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "grad", "input", "target", "reduction");
    return find_slopes(slots[0], slots[1], slots[2], slots[3], (Pairs){.scale = 1, .limit = (double)INFINITY, .factor = 2},
                       distance_slopes_float, distance_slopes_double);
}

static PyObject *clamped_distance_grad(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "grad", "input", "target", "reduction", "factor", "limit");
    double scale, limit;
    if (!slots[4] || !slots[5] || !read_number(slots[4], &scale) || !read_number(slots[5], &limit))
        return DECLINE;
    return find_slopes(slots[0], slots[1], slots[2], slots[3], (Pairs){.scale = scale, .limit = limit, .factor = 1},
                       distance_slopes_float, distance_slopes_double);
}

static PyObject *soft_margin_loss_grad(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "grad", "input", "target", "reduction");
    return find_slopes(slots[0], slots[1], slots[2], slots[3], (Pairs){.factor = 1}, margin_slopes_float,
                       margin_slopes_double);
}

static PyObject *binary_cross_entropy_grad(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "grad", "input", "target", "weight", "reduction");
    if (!is_none(slots[3]))
        return DECLINE;
    return find_slopes(slots[0], slots[1], slots[2], slots[4], (Pairs){.factor = 1}, cross_entropy_slopes_float,
                       cross_entropy_slopes_double);
}

static PyObject *logits_grad(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "grad", "input", "target", "weight", "pos_weight", "reduction");
    if (!is_none(slots[3]) || !is_none(slots[4]))
        return DECLINE;
    return find_slopes(slots[0], slots[1], slots[2], slots[5], (Pairs){.factor = 1}, logit_slopes_float,
                       logit_slopes_double);
}

const KernelEntry pair_loss_kernels[] = {
    {"mse_loss", mse_loss, NULL, 1},
    {"mse_loss_grad", mse_loss_grad, NULL, 1},
    {"huber_loss", huber_loss, NULL, 1},
    {"smooth_l1_loss", smooth_l1_loss, NULL, 1},
    {"clamped_distance_grad", clamped_distance_grad, NULL, 1},
    {"soft_margin_loss", soft_margin_loss, NULL, 1},
    {"binary_cross_entropy", binary_cross_entropy},
    {"binary_cross_entropy_with_logits", binary_cross_entropy_with_logits},
    {"soft_margin_loss_grad", soft_margin_loss_grad},
    {"binary_cross_entropy_grad", binary_cross_entropy_grad},
    {"logits_grad", logits_grad},
    {NULL},
};
