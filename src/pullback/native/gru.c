/* Whole recurrent layers: the GRU and the plain one of kernels/recurrent.py, for sequences of one length. */
#include "recurrent.h"

#include "functions.h"

#if defined(__GNUC__)

/* The rows of one step. Backward, `hidden` and `output` are the gradients of these and `part` that of what came from the
 * state. */
typedef struct {
    ptrdiff_t count, size;
    char *gates, *hidden, *output, *recurrent_n, *part;
    const char *before;
    char *from_input;
    int is_tanh;
} GruRows;

#define LOOPS "gru_loops.h"
#include "for_each_real.h"

enum { OUTPUT, HIDDEN, GATES, RECURRENT_N, BEFORE, GRU_RESULTS };

/* input, h0, weight_ih, weight_hh, bias_ih, bias_hh */
static void run_gru(const Sizes *s, PyObject *const *a, PyObject *const *made, char *room)
{
    ptrdiff_t rows = s->steps * s->batch, state = s->batch * s->size * s->item, gates = 3 * s->size;
    char *bias = room + recurrent_bytes(s), *part = bias + 2 * gates * s->item;
    Matrix weight = recurrent_matrix(s, a[3], room);
    char *hidden = data_of(made[HIDDEN]);
    add_biases(s, a[4], NULL, bias);
    add_biases(s, a[5], NULL, bias + gates * s->item);
    put_product(s->type, plain_matrix(data_of(a[0]), rows, s->width),
                transposed(plain_matrix(data_of(a[2]), gates, s->width)), bias, data_of(made[GATES]));
    memcpy(hidden, data_of(a[1]), state);
    for (ptrdiff_t n = 0; n < s->steps; n++) {
        ptrdiff_t t = s->reverse ? s->steps - 1 - n : n;
        memcpy((char *)data_of(made[BEFORE]) + t * state, hidden, state);
        put_product(s->type, plain_matrix(hidden, s->batch, s->size), weight, bias + gates * s->item, part);
        GruRows step = {s->batch, s->size, (char *)data_of(made[GATES]) + 3 * t * state, hidden,
                        (char *)data_of(made[OUTPUT]) + t * state, (char *)data_of(made[RECURRENT_N]) + t * state, part};
        FOR_TYPE(s->type, gru_step)(&step);
    }
}

static PyObject *gru_layer(PyObject *const *arguments, const KernelEntry *entry)
{
    Sizes s;
    if (!read_weights(arguments, 1, 3, arguments[6], arguments[7], &s))
        return DECLINE;
    ptrdiff_t rows = s.steps * s.batch;
    PyObject *made[GRU_RESULTS] = {
        new_matrix(&s, s.steps, s.batch, s.size), new_matrix(&s, 0, s.batch, s.size), new_matrix(&s, 0, rows, 3 * s.size),
        new_matrix(&s, 0, rows, s.size),          new_matrix(&s, 0, rows, s.size),
    };
    char *room = malloc(recurrent_bytes(&s) + 3 * s.size * (2 + s.batch) * s.item);
    if (!room) {
        for (int i = 0; i < GRU_RESULTS; i++)
            Py_XDECREF(made[i]);
        return PyErr_NoMemory();
    }
    if (all_made(made, GRU_RESULTS)) {
        Py_BEGIN_ALLOW_THREADS
        run_gru(&s, arguments, made, room);
        Py_END_ALLOW_THREADS
    }
    free(room);
    return pack(GRU_RESULTS, made);
}

enum { TO_INPUT, TO_HIDDEN, TO_WEIGHT_IH, TO_WEIGHT_HH, TO_BIAS_IH, TO_BIAS_HH, TO_RESULTS };

/* New arrays for the gradients of a layer's arguments. */
static void make_gradients(const Sizes *s, PyObject *const *layer, PyObject **made)
{
    made[TO_INPUT] = new_matrix(s, s->steps, s->batch, s->width);
    made[TO_HIDDEN] = new_matrix(s, 0, s->batch, s->size);
    made[TO_WEIGHT_IH] = new_matrix(s, 0, s->gates * s->size, s->width);
    made[TO_WEIGHT_HH] = new_matrix(s, 0, s->gates * s->size, s->size);
    made[TO_BIAS_IH] = new_bias(s, layer[4]);
    made[TO_BIAS_HH] = new_bias(s, layer[5]);
}

static void finish_gradients(const Sizes *s, const void *from_input, const void *from_state, PyObject *const *layer,
                             PyObject *before, PyObject *const *made)
{
    PyObject *const results[SUM_RESULTS] = {made[TO_INPUT], made[TO_WEIGHT_IH], made[TO_WEIGHT_HH], made[TO_BIAS_IH],
                                            made[TO_BIAS_HH]};
    sum_up_gradients(s, from_input, from_state, layer[0], layer[2], data_of(before), results);
}

/* `saved` are the gates, the recurrent part of n and the states before each step. */
static void run_gru_back(const Sizes *s, PyObject *const *grads, PyObject *const *layer, PyObject *const *saved,
                         PyObject *const *made, char *from_input, char *from_state)
{
    ptrdiff_t state = s->batch * s->size * s->item;
    char *hidden = data_of(made[TO_HIDDEN]);
    memcpy(hidden, data_of(grads[1]), state);
    for (ptrdiff_t n = s->steps - 1; n >= 0; n--) {
        ptrdiff_t t = s->reverse ? s->steps - 1 - n : n;
        GruRows step = {s->batch, s->size, (char *)data_of(saved[0]) + 3 * t * state, hidden,
                        (char *)data_of(grads[0]) + t * state, (char *)data_of(saved[1]) + t * state,
                        from_state + 3 * t * state, (char *)data_of(saved[2]) + t * state, from_input + 3 * t * state};
        FOR_TYPE(s->type, gru_step_back)(&step);
        put_product(s->type, plain_matrix(step.part, s->batch, 3 * s->size),
                    plain_matrix(data_of(layer[3]), 3 * s->size, s->size), hidden, hidden);
    }
    finish_gradients(s, from_input, from_state, layer, saved[2], made);
}

/* gru_layer_back(grad_output, grad_hidden, input, ..., reverse, gates, recurrent_n, hidden_before) */
static PyObject *gru_layer_back(PyObject *const *arguments, const KernelEntry *entry)
{
    Sizes s;
    PyObject *const *layer = arguments + 2, *const *saved = arguments + 10, *grads[2] = {NULL}, *made[TO_RESULTS] = {NULL};
    if (!read_weights(layer, 1, 3, layer[6], layer[7], &s))
        return DECLINE;
    ptrdiff_t rows = s.steps * s.batch;
    if (!is_shaped(saved[0], s.type, 2, rows, 3 * s.size, 0) || !is_shaped(saved[1], s.type, 2, rows, s.size, 0) ||
        !is_shaped(saved[2], s.type, 2, rows, s.size, 0))
        return DECLINE;
    PyObject *result = NULL;
    if (read_grads(&s, arguments, 2, grads)) {
        char *sums = malloc(6 * rows * s.size * s.item);
        make_gradients(&s, layer, made);
        if (sums && all_made(made, TO_RESULTS)) {
            Py_BEGIN_ALLOW_THREADS
            run_gru_back(&s, grads, layer, saved, made, sums, sums + 3 * rows * s.size * s.item);
            Py_END_ALLOW_THREADS
        } else if (!sums) {
            Py_CLEAR(made[0]);
            PyErr_NoMemory();
        }
        free(sums);
        result = pack(TO_RESULTS, made);
    }
    Py_XDECREF(grads[0]);
    Py_XDECREF(grads[1]);
    return result;
}

/* input, h0, weight_ih, weight_hh, bias_ih, bias_hh; the results are output, final state and the states before. */
static void run_rnn(const Sizes *s, PyObject *const *a, int is_tanh, PyObject *const *made, char *room)
{
    ptrdiff_t rows = s->steps * s->batch, state = s->batch * s->size * s->item;
    char *bias = room + recurrent_bytes(s), *hidden = data_of(made[HIDDEN]);
    Matrix weight = recurrent_matrix(s, a[3], room);
    add_biases(s, a[4], a[5], bias);
    put_product(s->type, plain_matrix(data_of(a[0]), rows, s->width),
                transposed(plain_matrix(data_of(a[2]), s->size, s->width)), bias, data_of(made[OUTPUT]));
    memcpy(hidden, data_of(a[1]), state);
    for (ptrdiff_t n = 0; n < s->steps; n++) {
        ptrdiff_t t = s->reverse ? s->steps - 1 - n : n;
        char *output = (char *)data_of(made[OUTPUT]) + t * state;
        memcpy((char *)data_of(made[2]) + t * state, hidden, state);
        put_product(s->type, plain_matrix(hidden, s->batch, s->size), weight, output, output);
        GruRows step = {.count = s->batch, .size = s->size, .hidden = hidden, .output = output, .is_tanh = is_tanh};
        FOR_TYPE(s->type, rnn_step)(&step);
    }
}

/* Reads "tanh" or "relu". */
static int read_nonlinearity(PyObject *object, int *is_tanh)
{
    if (!PyUnicode_CheckExact(object))
        return 0;
    *is_tanh = !PyUnicode_CompareWithASCIIString(object, "tanh");
    return *is_tanh || !PyUnicode_CompareWithASCIIString(object, "relu");
}

static PyObject *rnn_layer(PyObject *const *arguments, const KernelEntry *entry)
{
    Sizes s;
    int is_tanh;
    if (!read_nonlinearity(arguments[6], &is_tanh) || !read_weights(arguments, 1, 1, arguments[7], arguments[8], &s))
        return DECLINE;
    PyObject *made[3] = {new_matrix(&s, s.steps, s.batch, s.size), new_matrix(&s, 0, s.batch, s.size),
                         new_matrix(&s, 0, s.steps * s.batch, s.size)};
    char *room = malloc(recurrent_bytes(&s) + s.size * s.item);
    if (!room) {
        for (int i = 0; i < 3; i++)
            Py_XDECREF(made[i]);
        return PyErr_NoMemory();
    }
    if (all_made(made, 3)) {
        Py_BEGIN_ALLOW_THREADS
        run_rnn(&s, arguments, is_tanh, made, room);
        Py_END_ALLOW_THREADS
    }
    free(room);
    return pack(3, made);
}

static void run_rnn_back(const Sizes *s, PyObject *const *grads, PyObject *const *layer, int is_tanh, PyObject *output,
                         PyObject *before, PyObject *const *made, char *sums)
{
    ptrdiff_t state = s->batch * s->size * s->item;
    char *hidden = data_of(made[TO_HIDDEN]);
    memcpy(hidden, data_of(grads[1]), state);
    for (ptrdiff_t n = s->steps - 1; n >= 0; n--) {
        ptrdiff_t t = s->reverse ? s->steps - 1 - n : n;
        GruRows step = {.count = s->batch, .size = s->size, .gates = (char *)data_of(output) + t * state, .hidden = hidden,
                        .output = (char *)data_of(grads[0]) + t * state, .part = sums + t * state, .is_tanh = is_tanh};
        FOR_TYPE(s->type, rnn_step_back)(&step);
        put_product(s->type, plain_matrix(step.part, s->batch, s->size),
                    plain_matrix(data_of(layer[3]), s->size, s->size), NULL, hidden);
    }
    finish_gradients(s, sums, sums, layer, before, made);
}

/* rnn_layer_back(grad_output, grad_hidden, input, ..., nonlinearity, batch_sizes, reverse, output, hidden_before) */
static PyObject *rnn_layer_back(PyObject *const *arguments, const KernelEntry *entry)
{
    Sizes s;
    int is_tanh;
    PyObject *const *layer = arguments + 2, *const *saved = arguments + 11, *grads[2] = {NULL}, *made[TO_RESULTS] = {NULL};
    if (!read_nonlinearity(layer[6], &is_tanh) || !read_weights(layer, 1, 1, layer[7], layer[8], &s) ||
        !is_shaped(saved[0], s.type, 3, s.steps, s.batch, s.size) ||
        !is_shaped(saved[1], s.type, 2, s.steps * s.batch, s.size, 0))
        return DECLINE;
    PyObject *result = NULL;
    if (read_grads(&s, arguments, 2, grads)) {
        char *sums = malloc(s.steps * s.batch * s.size * s.item);
        make_gradients(&s, layer, made);
        if (sums && all_made(made, TO_RESULTS)) {
            Py_BEGIN_ALLOW_THREADS
            run_rnn_back(&s, grads, layer, is_tanh, saved[0], saved[1], made, sums);
            Py_END_ALLOW_THREADS
        } else if (!sums) {
            Py_CLEAR(made[0]);
            PyErr_NoMemory();
        }
        free(sums);
        result = pack(TO_RESULTS, made);
    }
    Py_XDECREF(grads[0]);
    Py_XDECREF(grads[1]);
    return result;
}

const KernelEntry gru_kernels[] = {
    {"gru_layer", gru_layer, "r"},
    {"gru_layer_back", gru_layer_back, "..r"},
    {"rnn_layer", rnn_layer, "r"},
    {"rnn_layer_back", rnn_layer_back, "..r"},
    {NULL},
};

#else

const KernelEntry gru_kernels[] = {{NULL}};

#endif
