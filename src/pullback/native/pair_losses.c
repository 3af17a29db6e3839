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

typedef enum { SQUARED, HUBER, SMOOTH_L1, SOFT_MARGIN, CROSS_ENTROPY, LOGIT_CROSS_ENTROPY } PairLoss;

#define LOSS(name) {name##_each_float, name##_each_double}, {name##_sums_float, name##_sums_double}
static const struct {
    BlockFunction each[2], sums[2]; /* of float32 and float64 */
    int reduction;                  /* the place of this parameter */
    int work;                       /* how many simple steps one loss takes */
} losses[] = {
    [SQUARED] = {LOSS(squared), 2, 1},
    [HUBER] = {LOSS(rounded_distance), 2, 1},
    [SMOOTH_L1] = {LOSS(rounded_distance), 2, 1},
    [SOFT_MARGIN] = {LOSS(soft_margin), 2, 4},
    [CROSS_ENTROPY] = {LOSS(cross_entropy), 3, 4},
    [LOGIT_CROSS_ENTROPY] = {LOSS(logit_cross_entropy), 4, 4},
};

/* Losses of an input and a target, reduced as asked. */
static PyObject *pair_loss(PyObject *const *slots, const KernelEntry *entry)
{
    PairLoss loss = (PairLoss)entry->kind;
    int type = type_of(slots[0]), is_wide = type == NPY_DOUBLE, reduction = dim_of(slots[losses[loss].reduction]);
    double limit = loss == HUBER || loss == SMOOTH_L1 ? number_of(slots[3]) : 0;
    double factor = loss == SMOOTH_L1 ? 1 / limit : 1;
    ptrdiff_t count = size_of(slots[0]), parts = (count + PART - 1) / PART, work = losses[loss].work;
    if ((loss == SMOOTH_L1 && !(limit > 0)) ||
        (loss == CROSS_ENTROPY && !FOR_TYPE(type, are_probabilities)(data_of(slots[0]), count)))
        return DECLINE;
    Pairs pairs = {data_of(slots[0]), data_of(slots[1]), .count = count, .limit = limit, .factor = factor};
    if (!reduction) {
        PyObject *result = new_like(slots[0]);
        if (result) {
            pairs.output = data_of(result);
            run_items(count, work, losses[loss].each[is_wide], &pairs);
        }
        return result;
    }
    double first, total = 0;
    pairs.partials = parts == 1 ? &first : PyMem_RawMalloc(sizeof(double) * parts);
    if (!pairs.partials)
        return PyErr_NoMemory();
    run_items(parts, work * (count < PART ? count : PART), losses[loss].sums[is_wide], &pairs);
    for (ptrdiff_t part = 0; part < parts; part++)
        total += pairs.partials[part];
    if (parts > 1)
        PyMem_RawFree(pairs.partials);
    total *= factor;
    return store_number(reduction == 1 ? total / (double)count : total, type);
}

/* Slopes of a loss times the gradient, over the count where the reduction, which has this place, is the mean. */
static PyObject *find_slopes(PyObject *const *slots, const KernelEntry *entry, int place, Pairs pairs)
{
    PyObject *grad = slots[0], *input = slots[1];
    int type = type_of(input), reduction = dim_of(slots[place]);
    if (!is_real_array_of(grad, type) || (reduction ? NDIM(grad) != 0 : !same_shape(grad, input)))
        return DECLINE;
    ptrdiff_t count = size_of(input);
    PyObject *plain = row_major(grad), *result = plain ? new_like(input) : NULL;
    if (result) {
        double weight = !reduction ? 1 : type == NPY_FLOAT ? *(const float *)data_of(plain) : *(const double *)data_of(plain);
        pairs.input = data_of(input);
        pairs.target = data_of(slots[2]);
        pairs.grad = reduction ? NULL : data_of(plain);
        pairs.factor *= weight / (reduction == 1 ? (double)count : 1);
        pairs.output = data_of(result);
        run_items(count, 1, LOOP_FOR(entry, input), &pairs);
    }
    Py_XDECREF(plain);
    return result;
}

static PyObject *mse_loss_grad(PyObject *const *slots, const KernelEntry *entry)
{
    return find_slopes(slots, entry, 3, (Pairs){.scale = 1, .limit = (double)INFINITY, .factor = 2});
}

static PyObject *clamped_distance_grad(PyObject *const *slots, const KernelEntry *entry)
{
    Pairs pairs = {.scale = number_of(slots[4]), .limit = number_of(slots[5]), .factor = 1};
    return find_slopes(slots, entry, 3, pairs);
}

static PyObject *pair_loss_grad(PyObject *const *slots, const KernelEntry *entry)
{
    return find_slopes(slots, entry, entry->kind, (Pairs){.factor = 1});
}

const KernelEntry pair_loss_kernels[] = {
    {"mse_loss", pair_loss, "pP2", SQUARED, .in_order = 1},
    {"mse_loss_grad", mse_loss_grad, ".pP2", LOOP_PAIR(distance_slopes), .in_order = 1},
    {"huber_loss", pair_loss, "pP2n", HUBER, .in_order = 1},
    {"smooth_l1_loss", pair_loss, "pP2n", SMOOTH_L1, .in_order = 1},
    {"clamped_distance_grad", clamped_distance_grad, ".pP2nn", LOOP_PAIR(distance_slopes), .in_order = 1},
    {"soft_margin_loss", pair_loss, "pP2", SOFT_MARGIN, .in_order = 1},
    {"binary_cross_entropy", pair_loss, "pP-2", CROSS_ENTROPY},
    {"binary_cross_entropy_with_logits", pair_loss, "pP--2", LOGIT_CROSS_ENTROPY},
    {"soft_margin_loss_grad", pair_loss_grad, ".pP2", 3, LOOP_PAIR(margin_slopes)},
    {"binary_cross_entropy_grad", pair_loss_grad, ".pP-2", 4, LOOP_PAIR(cross_entropy_slopes)},
    {"logits_grad", pair_loss_grad, ".pP--2", 5, LOOP_PAIR(logit_slopes)},
    {NULL},
};
