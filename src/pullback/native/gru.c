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
static void run_gru(const Sizes *s, PyObject *const *a, int is_tanh, PyObject *const *made, char *room)
{
    (void)is_tanh;
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
    return run_layer(&s, arguments, 0, recurrent_bytes(&s) + 3 * s.size * (2 + s.batch) * s.item, run_gru, made, GRU_RESULTS);
}

/* `saved` are the gates, the recurrent part of n and the states before each step. */
static void run_gru_back(const Sizes *s, PyObject *const *grads, PyObject *const *layer, PyObject *const *saved,
                         int is_tanh, PyObject *const *made, char *from_input)
{
    (void)is_tanh;
    ptrdiff_t state = s->batch * s->size * s->item;
    char *hidden = data_of(made[1]), *from_state = from_input + 3 * s->steps * state;
    for (ptrdiff_t n = s->steps - 1; n >= 0; n--) {
        ptrdiff_t t = s->reverse ? s->steps - 1 - n : n;
        GruRows step = {s->batch, s->size, (char *)data_of(saved[0]) + 3 * t * state, hidden,
                        (char *)data_of(grads[0]) + t * state, (char *)data_of(saved[1]) + t * state,
                        from_state + 3 * t * state, (char *)data_of(saved[2]) + t * state, from_input + 3 * t * state};
        FOR_TYPE(s->type, gru_step_back)(&step);
        put_product(s->type, plain_matrix(step.part, s->batch, 3 * s->size),
                    plain_matrix(data_of(layer[3]), 3 * s->size, s->size), hidden, hidden);
    }
    sum_up_gradients(s, 1, from_input, from_state, layer, data_of(saved[2]), made);
}

/* gru_layer_back(grad_output, grad_hidden, input, ..., reverse, gates, recurrent_n, hidden_before) */
static PyObject *gru_layer_back(PyObject *const *arguments, const KernelEntry *entry)
{
    Sizes s;
    PyObject *const *layer = arguments + 2, *const *saved = arguments + 10;
    if (!read_weights(layer, 1, 3, layer[6], layer[7], &s))
        return DECLINE;
    ptrdiff_t rows = s.steps * s.batch;
    if (!is_shaped(saved[0], s.type, 2, rows, 3 * s.size, 0) || !is_shaped(saved[1], s.type, 2, rows, s.size, 0) ||
        !is_shaped(saved[2], s.type, 2, rows, s.size, 0))
        return DECLINE;
    return run_layer_back(&s, arguments, 1, saved, 0, 6 * rows * s.size * s.item, run_gru_back);
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
    return run_layer(&s, arguments, is_tanh, recurrent_bytes(&s) + s.size * s.item, run_rnn, made, 3);
}

/* `saved` are the output and the states before each step. */
static void run_rnn_back(const Sizes *s, PyObject *const *grads, PyObject *const *layer, PyObject *const *saved,
                         int is_tanh, PyObject *const *made, char *sums)
{
    ptrdiff_t state = s->batch * s->size * s->item;
    char *hidden = data_of(made[1]), *output = data_of(saved[0]);
    for (ptrdiff_t n = s->steps - 1; n >= 0; n--) {
        ptrdiff_t t = s->reverse ? s->steps - 1 - n : n;
        GruRows step = {.count = s->batch, .size = s->size, .gates = output + t * state, .hidden = hidden,
                        .output = (char *)data_of(grads[0]) + t * state, .part = sums + t * state, .is_tanh = is_tanh};
        FOR_TYPE(s->type, rnn_step_back)(&step);
        put_product(s->type, plain_matrix(step.part, s->batch, s->size),
                    plain_matrix(data_of(layer[3]), s->size, s->size), NULL, hidden);
    }
    sum_up_gradients(s, 1, sums, sums, layer, data_of(saved[1]), made);
}

/* rnn_layer_back(grad_output, grad_hidden, input, ..., nonlinearity, batch_sizes, reverse, output, hidden_before) */
static PyObject *rnn_layer_back(PyObject *const *arguments, const KernelEntry *entry)
{
    Sizes s;
    int is_tanh;
    PyObject *const *layer = arguments + 2, *const *saved = arguments + 11;
    if (!read_nonlinearity(layer[6], &is_tanh) || !read_weights(layer, 1, 1, layer[7], layer[8], &s) ||
        !is_shaped(saved[0], s.type, 3, s.steps, s.batch, s.size) ||
        !is_shaped(saved[1], s.type, 2, s.steps * s.batch, s.size, 0))
        return DECLINE;
    return run_layer_back(&s, arguments, 1, saved, is_tanh, s.steps * s.batch * s.size * s.item, run_rnn_back);
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
