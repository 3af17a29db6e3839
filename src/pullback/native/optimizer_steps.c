/* Steps of optimizers: the kernels of kernels/optimizer_steps.py, in one pass over memory. */
#include "rows.h"

#include <math.h>

typedef struct {
    void *param, *momentum_buffer;
    const void *grad;
    double lr, momentum, dampening, weight_decay, sign;
    int nesterov, is_first;
} SgdStep;

typedef struct {
    void *param, *exp_avg, *exp_avg_sq, *max_exp_avg_sq;
    const void *grad;
    double shrink, weight_decay, sign, beta1, beta2, root_correction, eps, step_size;
} AdamStep;

typedef struct {
    void *param, *square_avg, *momentum_buffer, *grad_avg;
    const void *grad;
    double lr, alpha, eps, weight_decay, momentum, sign;
} RmspropStep;

typedef struct {
    void *param, *total;
    const void *grad;
    double lr, eps, weight_decay, sign;
} AdagradStep;

/* Elements do not wait for each other, even where an array is given twice. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

#define SQUARE_ROOT(x) (sizeof(REAL) == sizeof(float) ? (REAL)sqrtf((float)(x)) : (REAL)sqrt((double)(x)))

#define LOOPS "optimizer_step_loops.h"
#include "for_each_real.h"

/* Reads as many numbers as there are pointers; 0 where one is missing or no number. */
static int read_numbers(PyObject *const *slots, double *const *values, int count)
{
    for (int i = 0; i < count; i++)
        if (!slots[i] || !read_number(slots[i], values[i]))
            return 0;
    return 1;
}

/* The arrays of a step, each row-major: those that are not are copied, and copied back when they are released. */
#define MOST_ARRAYS 5
#define GRADIENT 1 /* its place; it is only read */

/* Whether these are what a step takes: arrays of one type and shape, from place `optional` on also None. */
static int are_step_arrays(PyObject *const *arrays, int count, int optional)
{
    PyObject *param = arrays[0];
    if (!is_real_array(param))
        return 0;
    for (int i = 0; i < count; i++) {
        if (is_none(arrays[i]) && i >= optional)
            continue;
        if (!is_real_array_of(arrays[i], type_of(param)) || !same_shape(arrays[i], param) ||
            (i != GRADIENT && !PyArray_ISWRITEABLE((PyArrayObject *)arrays[i])))
            return 0;
    }
    return 1;
}

static int release(PyObject **held, int count)
{
    int failed = 0;
    for (int i = 0; i < count; i++) {
        if (held[i] && PyArray_ResolveWritebackIfCopy((PyArrayObject *)held[i]) < 0)
            failed = -1;
        Py_XDECREF(held[i]);
    }
    return failed;
}

/* Fills `held` and `data`, with NULL for None; -1 with an exception where memory runs out. */
static int hold(PyObject *const *arrays, int count, PyObject **held, void **data)
{
    for (int i = 0; i < count; i++) {
        int needs = i == GRADIENT ? NPY_ARRAY_IN_ARRAY : NPY_ARRAY_CARRAY | NPY_ARRAY_WRITEBACKIFCOPY;
        held[i] = is_none(arrays[i])      ? NULL
                  : is_plain(arrays[i])   ? Py_NewRef(arrays[i])
                                          : PyArray_FromArray((PyArrayObject *)arrays[i], NULL, needs);
        if (!held[i] && !is_none(arrays[i])) {
            release(held, i);
            return -1;
        }
        data[i] = held[i] ? data_of(held[i]) : NULL;
    }
    return 0;
}

static PyObject *run_step(PyObject **held, int count, BlockFunction body, void *context)
{
    run_items(size_of(held[0]), 1, body, context);
    if (release(held, count) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *sgd_step(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "param", "grad", "momentum_buffer", "lr", "momentum", "dampening", "weight_decay", "nesterov",
          "maximize", "is_first");
    SgdStep s;
    int maximize;
    double *numbers[] = {&s.lr, &s.momentum, &s.dampening, &s.weight_decay};
    if (positional > 3 || !are_step_arrays(slots, 3, 2) || !read_numbers(slots + 3, numbers, 4) || !slots[7] ||
        !slots[8] || !slots[9] ||
        !read_flag(slots[7], 0, &s.nesterov) || !read_flag(slots[8], 0, &maximize) ||
        !read_flag(slots[9], 0, &s.is_first))
        return DECLINE;
    PyObject *held[MOST_ARRAYS];
    void *data[MOST_ARRAYS];
    if (hold(slots, 3, held, data) < 0)
        return NULL;
    s.param = data[0];
    s.grad = data[1];
    s.momentum_buffer = data[2];
    s.sign = maximize ? -1 : 1;
    return run_step(held, 3, FOR_TYPE(type_of(slots[0]), sgd_block), &s);
}

static PyObject *adam_step(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "param", "grad", "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "lr", "beta1", "beta2", "eps",
          "weight_decay", "step", "maximize", "decoupled_weight_decay");
    AdamStep s;
    double lr, step;
    int maximize, is_decoupled;
    double *numbers[] = {&lr, &s.beta1, &s.beta2, &s.eps, &s.weight_decay, &step};
    if (positional > 5 || !are_step_arrays(slots, 5, 4) ||
        !read_numbers(slots + 5, numbers, 6) || !slots[11] || !slots[12] || !read_flag(slots[11], 0, &maximize) ||
        !read_flag(slots[12], 0, &is_decoupled) || !(step > 0) || !(s.beta1 < 1) || !(s.beta2 < 1))
        return DECLINE;
    PyObject *held[MOST_ARRAYS];
    void *data[MOST_ARRAYS];
    if (hold(slots, 5, held, data) < 0)
        return NULL;
    s.param = data[0];
    s.grad = data[1];
    s.exp_avg = data[2];
    s.exp_avg_sq = data[3];
    s.max_exp_avg_sq = data[4];
    s.sign = maximize ? -1 : 1;
    s.shrink = is_decoupled ? 1 - lr * s.weight_decay : 1;
    if (is_decoupled)
        s.weight_decay = 0;
    s.root_correction = sqrt(1 - pow(s.beta2, step));
    s.step_size = lr / (1 - pow(s.beta1, step));
    return run_step(held, 5, FOR_TYPE(type_of(slots[0]), adam_block), &s);
}

static PyObject *rmsprop_step(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "param", "grad", "square_avg", "momentum_buffer", "grad_avg", "lr", "alpha", "eps", "weight_decay",
          "momentum", "maximize");
    RmspropStep s;
    int maximize;
    double *numbers[] = {&s.lr, &s.alpha, &s.eps, &s.weight_decay, &s.momentum};
    if (positional > 5 || !are_step_arrays(slots, 5, 3) ||
        !read_numbers(slots + 5, numbers, 5) || !slots[10] || !read_flag(slots[10], 0, &maximize))
        return DECLINE;
    PyObject *held[MOST_ARRAYS];
    void *data[MOST_ARRAYS];
    if (hold(slots, 5, held, data) < 0)
        return NULL;
    s.param = data[0];
    s.grad = data[1];
    s.square_avg = data[2];
    s.momentum_buffer = data[3];
    s.grad_avg = data[4];
    s.sign = maximize ? -1 : 1;
    return run_step(held, 5, FOR_TYPE(type_of(slots[0]), rmsprop_block), &s);
}

static PyObject *adagrad_step(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "param", "grad", "total", "lr", "eps", "weight_decay", "maximize");
    AdagradStep s;
    int maximize;
    double *numbers[] = {&s.lr, &s.eps, &s.weight_decay};
    if (positional > 3 || !are_step_arrays(slots, 3, 3) || !read_numbers(slots + 3, numbers, 3) || !slots[6] ||
        !read_flag(slots[6], 0, &maximize))
        return DECLINE;
    PyObject *held[MOST_ARRAYS];
    void *data[MOST_ARRAYS];
    if (hold(slots, 3, held, data) < 0)
        return NULL;
    s.param = data[0];
    s.grad = data[1];
    s.total = data[2];
    s.sign = maximize ? -1 : 1;
    return run_step(held, 3, FOR_TYPE(type_of(slots[0]), adagrad_block), &s);
}

const KernelEntry optimizer_step_kernels[] = {
    {"sgd_step", sgd_step},
    {"adam_step", adam_step},
    {"rmsprop_step", rmsprop_step},
    {"adagrad_step", adagrad_step},
    {NULL},
};
