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

static void run_lstm(const Sizes *s, PyObject *const *arguments, char *const *results, char *recurrent, char *bias)
{
    ptrdiff_t rows = s->steps * s->batch, state = s->batch * s->size * s->item;
    Matrix weight = recurrent_matrix(s, arguments[4], recurrent);
    add_biases(s, arguments[5], arguments[6], bias);
    put_product(s->type, plain_matrix(data_of(arguments[0]), rows, s->width),
                transposed(plain_matrix(data_of(arguments[3]), 4 * s->size, s->width)), bias, results[GATES]);
    memcpy(results[HIDDEN], data_of(arguments[1]), state);
    memcpy(results[CELL], data_of(arguments[2]), state);
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
    char *work = malloc(recurrent_bytes(&s) + 4 * s.size * s.item);
    if (!work) {
        for (int i = 0; i < FORWARD_RESULTS; i++)
            Py_XDECREF(made[i]);
        return PyErr_NoMemory();
    }
    if (all_made(made, FORWARD_RESULTS)) {
        char *results[FORWARD_RESULTS];
        for (int i = 0; i < FORWARD_RESULTS; i++)
            results[i] = data_of(made[i]);
        Py_BEGIN_ALLOW_THREADS
        run_lstm(&s, arguments, results, work, work + recurrent_bytes(&s));
        Py_END_ALLOW_THREADS
    }
    free(work);
    return pack(FORWARD_RESULTS, made);
}

enum { TO_INPUT, TO_HIDDEN, TO_CELL, TO_WEIGHT_IH, TO_WEIGHT_HH, TO_BIAS_IH, TO_BIAS_HH, BACKWARD_RESULTS };

/* `a` as read_weights takes it, `saved` the gates and the states before each step. */
static void run_lstm_back(const Sizes *s, PyObject *const *grads, PyObject *const *a, PyObject *const *saved,
                          char *const *results, char *gate_grads)
{
    ptrdiff_t rows = s->steps * s->batch, state = s->batch * s->size * s->item;
    memcpy(results[TO_HIDDEN], data_of(grads[1]), state);
    memcpy(results[TO_CELL], data_of(grads[2]), state);
    for (ptrdiff_t n = s->steps - 1; n >= 0; n--) {
        ptrdiff_t t = s->reverse ? s->steps - 1 - n : n;
        char *part = gate_grads + 4 * t * state;
        LstmRows step = {s->batch, s->size, (char *)data_of(saved[0]) + 4 * t * state, results[TO_HIDDEN],
                         results[TO_CELL], (char *)data_of(grads[0]) + t * state, (char *)data_of(saved[2]) + t * state, part};
        FOR_TYPE(s->type, lstm_step_back)(&step);
        put_product(s->type, plain_matrix(part, s->batch, 4 * s->size),
                    plain_matrix(data_of(a[4]), 4 * s->size, s->size), NULL, results[TO_HIDDEN]);
    }
    Matrix all = plain_matrix(gate_grads, rows, 4 * s->size);
    put_product(s->type, all, plain_matrix(data_of(a[3]), 4 * s->size, s->width), NULL, results[TO_INPUT]);
    put_product(s->type, transposed(all), plain_matrix(data_of(a[0]), rows, s->width), NULL, results[TO_WEIGHT_IH]);
    put_product(s->type, transposed(all), plain_matrix(data_of(saved[1]), rows, s->size), NULL, results[TO_WEIGHT_HH]);
    for (int bias = TO_BIAS_IH; bias <= TO_BIAS_HH; bias++)
        if (results[bias])
            add_rows(&all, results[bias], s->type == NPY_DOUBLE);
}

/* The gradients of the layer's arguments from row-major `grads` of its output and its final states. */
static PyObject *lstm_gradients(const Sizes *s, PyObject *const *grads, PyObject *const *layer, PyObject *const *saved)
{
    npy_intp gates = 4 * s->size;
    PyObject *made[BACKWARD_RESULTS] = {
        new_matrix(s, s->steps, s->batch, s->width), new_matrix(s, 0, s->batch, s->size), new_matrix(s, 0, s->batch, s->size),
        new_matrix(s, 0, gates, s->width),           new_matrix(s, 0, gates, s->size),
        is_none(layer[5]) ? Py_NewRef(Py_None) : new_array(1, &gates, s->type),
        is_none(layer[6]) ? Py_NewRef(Py_None) : new_array(1, &gates, s->type),
    };
    char *gate_grads = malloc(s->steps * s->batch * gates * s->item);
    if (!gate_grads) {
        for (int i = 0; i < BACKWARD_RESULTS; i++)
            Py_XDECREF(made[i]);
        return PyErr_NoMemory();
    }
    if (all_made(made, BACKWARD_RESULTS)) {
        char *results[BACKWARD_RESULTS];
        for (int i = 0; i < BACKWARD_RESULTS; i++)
            results[i] = made[i] == Py_None ? NULL : data_of(made[i]);
        Py_BEGIN_ALLOW_THREADS
        run_lstm_back(s, grads, layer, saved, results, gate_grads);
        Py_END_ALLOW_THREADS
    }
    free(gate_grads);
    return pack(BACKWARD_RESULTS, made);
}

/* lstm_layer_back(grad_output, grad_hidden, grad_cell, input, ..., reverse, gates, hidden_before, cell_before) */
static PyObject *lstm_layer_back(PyObject *const *arguments, const KernelEntry *entry)
{
    Sizes s;
    PyObject *const *layer = arguments + 3, *const *saved = arguments + 12, *grads[3] = {NULL}, *result = NULL;
    if (!read_weights(layer, 2, 4, layer[7], layer[8], &s))
        return DECLINE;
    ptrdiff_t rows = s.steps * s.batch;
    if (!is_shaped(saved[0], s.type, 2, rows, 4 * s.size, 0) || !is_shaped(saved[1], s.type, 2, rows, s.size, 0) ||
        !is_shaped(saved[2], s.type, 2, rows, s.size, 0))
        return DECLINE;
    for (int i = 0; i < 3; i++)
        if (!is_real_array_of(arguments[i], s.type) || NDIM(arguments[i]) != (i ? 2 : 3) ||
            size_of(arguments[i]) != (i ? s.batch : rows) * s.size)
            return DECLINE;
    /* The gradient of a sum is one number that is seen everywhere: such gradients are written out. */
    for (int i = 0; i < 3; i++)
        grads[i] = row_major(arguments[i]);
    if (all_made(grads, 3))
        result = lstm_gradients(&s, grads, layer, saved);
    for (int i = 0; i < 3; i++)
        Py_XDECREF(grads[i]);
    return result;
}

const KernelEntry recurrent_kernels[] = {
    {"lstm_layer", lstm_layer, "r"},
    {"lstm_layer_back", lstm_layer_back, "...r"},
    {NULL},
};

#else

const KernelEntry recurrent_kernels[] = {{NULL}};

#endif
