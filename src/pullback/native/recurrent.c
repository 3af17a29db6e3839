/* Whole recurrent layers: the LSTM of kernels/recurrent.py, for sequences of one length. */
#include "recurrent.h"

#include "functions.h"

#if defined(__GNUC__)

/* The rows of one step. Backward, `hidden`, `cell` and `output` are the gradients of these. */
typedef struct {
    ptrdiff_t count, size;
    char *gates, *hidden, *cell, *output, *cell_before, *gate_grads;
} LstmRows;

#define LOOPS "recurrent_loops.h"
#include "for_each_real.h"

/* input, h0, c0, weight_ih, weight_hh, bias_ih, bias_hh, batch_sizes (None), reverse */
enum { OUTPUT, HIDDEN, CELL, GATES, HIDDEN_BEFORE, CELL_BEFORE, FORWARD_RESULTS };

static void run_lstm(const Sizes *s, PyObject *const *a, int is_tanh, PyObject *const *made, char *room)
{
    (void)is_tanh;
    ptrdiff_t rows = s->steps * s->batch, state = s->batch * s->size * s->item;
    char *bias = room + recurrent_bytes(s), *results[FORWARD_RESULTS];
    for (int i = 0; i < FORWARD_RESULTS; i++)
        results[i] = data_of(made[i]);
    Matrix weight = recurrent_matrix(s, a[4], room);
    add_biases(s, a[5], a[6], bias);
    put_product(s->type, plain_matrix(data_of(a[0]), rows, s->width),
                transposed(plain_matrix(data_of(a[3]), 4 * s->size, s->width)), bias, results[GATES]);
    memcpy(results[HIDDEN], data_of(a[1]), state);
    memcpy(results[CELL], data_of(a[2]), state);
    for (ptrdiff_t n = 0; n < s->steps; n++) {
        ptrdiff_t t = s->reverse ? s->steps - 1 - n : n;
        char *gates = results[GATES] + 4 * t * state;
        memcpy(results[HIDDEN_BEFORE] + t * state, results[HIDDEN], state);
        memcpy(results[CELL_BEFORE] + t * state, results[CELL], state);
        put_product(s->type, plain_matrix(results[HIDDEN], s->batch, s->size), weight, gates, gates);
        LstmRows step = {s->batch, s->size, gates, results[HIDDEN], results[CELL], results[OUTPUT] + t * state, NULL, NULL};
        FOR_TYPE(s->type, lstm_step)(&step);
    }
}

static PyObject *lstm_layer(PyObject *const *arguments, const KernelEntry *entry)
{
    Sizes s;
    if (!read_weights(arguments, 2, 4, arguments[7], arguments[8], &s))
        return DECLINE;
    ptrdiff_t rows = s.steps * s.batch;
    PyObject *made[FORWARD_RESULTS] = {
        new_matrix(&s, s.steps, s.batch, s.size), new_matrix(&s, 0, s.batch, s.size), new_matrix(&s, 0, s.batch, s.size),
        new_matrix(&s, 0, rows, 4 * s.size),      new_matrix(&s, 0, rows, s.size),    new_matrix(&s, 0, rows, s.size),
    };
    return run_layer(&s, arguments, 0, recurrent_bytes(&s) + 4 * s.size * s.item, run_lstm, made, FORWARD_RESULTS);
}

/* `saved` are the gates and the states before each step. */
static void run_lstm_back(const Sizes *s, PyObject *const *grads, PyObject *const *layer, PyObject *const *saved,
                          int is_tanh, PyObject *const *made, char *gate_grads)
{
    (void)is_tanh;
    ptrdiff_t state = s->batch * s->size * s->item;
    char *hidden = data_of(made[1]), *cell = data_of(made[2]);
    for (ptrdiff_t n = s->steps - 1; n >= 0; n--) {
        ptrdiff_t t = s->reverse ? s->steps - 1 - n : n;
        char *part = gate_grads + 4 * t * state;
        LstmRows step = {s->batch, s->size, (char *)data_of(saved[0]) + 4 * t * state, hidden, cell,
                         (char *)data_of(grads[0]) + t * state, (char *)data_of(saved[2]) + t * state, part};
        FOR_TYPE(s->type, lstm_step_back)(&step);
        put_product(s->type, plain_matrix(part, s->batch, 4 * s->size),
                    plain_matrix(data_of(layer[4]), 4 * s->size, s->size), NULL, hidden);
    }
    sum_up_gradients(s, 2, gate_grads, gate_grads, layer, data_of(saved[1]), made);
}

/* lstm_layer_back(grad_output, grad_hidden, grad_cell, input, ..., reverse, gates, hidden_before, cell_before) */
static PyObject *lstm_layer_back(PyObject *const *arguments, const KernelEntry *entry)
{
    Sizes s;
    PyObject *const *layer = arguments + 3, *const *saved = arguments + 12;
    if (!read_weights(layer, 2, 4, layer[7], layer[8], &s))
        return DECLINE;
    ptrdiff_t rows = s.steps * s.batch;
    if (!is_shaped(saved[0], s.type, 2, rows, 4 * s.size, 0) || !is_shaped(saved[1], s.type, 2, rows, s.size, 0) ||
        !is_shaped(saved[2], s.type, 2, rows, s.size, 0))
        return DECLINE;
    return run_layer_back(&s, arguments, 2, saved, 0, rows * 4 * s.size * s.item, run_lstm_back);
}

const KernelEntry recurrent_kernels[] = {
    {"lstm_layer", lstm_layer, "r"},
    {"lstm_layer_back", lstm_layer_back, "...r"},
    {NULL},
};

#else

const KernelEntry recurrent_kernels[] = {{NULL}};

#endif
