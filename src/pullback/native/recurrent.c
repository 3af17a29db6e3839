/* Whole recurrent layers of kernels/recurrent.py, for sequences of one length: LSTM, GRU and the plain one. */
#include <stdlib.h>
#include <string.h>

#include "functions.h"
#include "products.h"
#include "rows.h"

#if defined(__GNUC__)

/* Up to so many sequences the recurrent weight is read as it lies: products by dots are then the faster ones. */
#define FEW_SEQUENCES 4
#define MOST_RESULTS 7

/* The kinds of layers: gates of a state's element, states, what is saved (results behind output and final states) and the
 * place among it of the states before each step. The plain layer's gates are its output. */
enum { LSTM, GRU, PLAIN };
static const struct {
    int gates, states, saved, before;
} forms[] = {[LSTM] = {4, 2, 3, 1}, [GRU] = {3, 1, 3, 2}, [PLAIN] = {1, 1, 1, 0}};

typedef struct {
    ptrdiff_t steps, batch, width, size, gates, state; /* gates of a state's element; bytes of the states of one step */
    int type, reverse, kind, is_tanh, states;
    int apart; /* what comes from the state is multiplied before it is added to what comes from the input */
    size_t item;
    BlockFunction step;
} Layer;

/* The rows of one step. Backward, `output`, `hidden` and `cell` are the gradients of these, `part` and `from_input` those of
 * what came from the state and from the input. */
typedef struct {
    ptrdiff_t size;
    int is_tanh;
    char *gates, *output, *hidden, *cell, *part, *from_input, *recurrent_n, *before, *cell_before;
} StepRows;

#define SIGMOID(x) (REAL_IS_FLOAT ? (REAL)fast_sigmoidf((float)(x)) : (REAL)fast_sigmoid((double)(x)))
#define TANH(x) (REAL_IS_FLOAT ? (REAL)fast_tanhf((float)(x)) : (REAL)fast_tanh((double)(x)))
#define LOOPS "recurrent_loops.h"
#include "for_each_real.h"

INLINE Matrix plain_matrix(const void *data, ptrdiff_t rows, ptrdiff_t columns)
{
    return (Matrix){data, rows, columns, columns, 1};
}

/* result = a @ b + start, row-major; `start` is NULL, the result, or one row for all. */
static void put_product(const Layer *l, Matrix a, Matrix b, const char *start, char *result)
{
    Product p = {a, b, start, start == result ? b.columns : 0, result, b.columns, l->type == NPY_DOUBLE};
    Way way = way_of(&p);
    multiply_in_threads(&p, way == NO_WAY ? BY_ROWS : way);
}

/* The matrix of [rows][columns] as [columns][step], in squares that stay in the cache. */
#define TRANSPOSE(REAL)                                                                         \
    for (ptrdiff_t i = 0; i < rows; i += 16)                                                    \
        for (ptrdiff_t j = 0; j < columns; j += 16)                                             \
            for (ptrdiff_t c = j; c < columns && c < j + 16; c++)                               \
                for (ptrdiff_t r = i; r < rows && r < i + 16; r++)                              \
                    ((REAL *)to)[c * step + r] = ((const REAL *)from)[r * columns + c]

/* Elements from a row of the transposed recurrent weight to the next: one line of the cache more than needed, since rows
 * that are powers of two apart would share a few sets of it. */
static ptrdiff_t recurrent_step(const Layer *l) { return l->gates * l->size + 64 / (ptrdiff_t)l->item; }

/* Bytes of the room for the transposed recurrent weight. */
static size_t recurrent_bytes(const Layer *l) { return (size_t)(recurrent_step(l) * l->size) * l->item; }

/* The recurrent weight [gates][size] as what a state is multiplied by: as it lies, or transposed into `to`. */
static Matrix recurrent_matrix(const Layer *l, const void *from, void *to)
{
    ptrdiff_t rows = l->gates * l->size, columns = l->size, step = recurrent_step(l);
    if (l->batch <= FEW_SEQUENCES)
        return transposed(plain_matrix(from, rows, columns));
    if (l->type == NPY_FLOAT)
        TRANSPOSE(float);
    else
        TRANSPOSE(double);
    return (Matrix){to, columns, rows, step, 1};
}

static void add_biases(const Layer *l, PyObject *first, PyObject *second, void *sum)
{
    const void *a = data_or_null(first), *b = data_or_null(second);
    for (ptrdiff_t j = 0; j < l->gates * l->size; j++)
        if (l->type == NPY_DOUBLE)
            ((double *)sum)[j] = (a ? ((const double *)a)[j] : 0) + (b ? ((const double *)b)[j] : 0);
        else
            ((float *)sum)[j] = (a ? ((const float *)a)[j] : 0) + (b ? ((const float *)b)[j] : 0);
}

static int is_matrix(PyObject *array, int type, ptrdiff_t rows, ptrdiff_t columns)
{
    return is_plain_of(array, type) && NDIM(array) == 2 && DIM(array, 0) == rows && DIM(array, 1) == columns;
}

/* The input, the initial states, weight_ih, weight_hh, bias_ih, bias_hh, of the plain layer "tanh" or "relu", batch_sizes
 * (None) and reverse. */
static int read_layer(PyObject *const *a, const KernelEntry *entry, Layer *l)
{
    int states = forms[entry->kind].states, plain = entry->kind == PLAIN;
    PyObject *const *weights = a + 1 + states, *const *rest = weights + 4;
    if (!is_plain(a[0]) || NDIM(a[0]) != 3 || !size_of(a[0]) || !is_plain(weights[1]) || NDIM(weights[1]) != 2 ||
        !DIM(weights[1], 1) || rest[plain] != Py_None || !read_flag(rest[plain + 1], 0, &l->reverse))
        return 0;
    l->is_tanh = plain && PyUnicode_CheckExact(rest[0]) && !PyUnicode_CompareWithASCIIString(rest[0], "tanh");
    if (plain && !l->is_tanh && (!PyUnicode_CheckExact(rest[0]) || PyUnicode_CompareWithASCIIString(rest[0], "relu")))
        return 0;
    l->kind = entry->kind;
    l->states = states;
    l->apart = entry->kind == GRU;
    l->type = type_of(a[0]);
    l->item = (size_t)ITEM(a[0]);
    l->step = LOOP_FOR(entry, a[0]);
    l->gates = forms[entry->kind].gates;
    l->steps = DIM(a[0], 0);
    l->batch = DIM(a[0], 1);
    l->width = DIM(a[0], 2);
    l->size = DIM(weights[1], 1);
    l->state = l->batch * l->size * (ptrdiff_t)l->item;
    for (int i = 0; i < states; i++)
        if (!is_matrix(a[1 + i], l->type, l->batch, l->size))
            return 0;
    ptrdiff_t gates = l->gates * l->size;
    return is_matrix(weights[0], l->type, gates, l->width) && is_matrix(weights[1], l->type, gates, l->size) &&
           is_absent_or_plain(weights[2], l->type, gates) && is_absent_or_plain(weights[3], l->type, gates);
}

/* A new array of two dimensions, or of three where `steps` is not 0. */
static PyObject *new_matrix(const Layer *l, ptrdiff_t steps, ptrdiff_t rows, ptrdiff_t columns)
{
    npy_intp shape[] = {steps, rows, columns};
    return steps ? new_array(3, shape, l->type) : new_array(2, shape + 1, l->type);
}

/* `made` is the output, the final states, and what is saved. */
static void run_forward(const Layer *l, PyObject *const *a, PyObject *const *made, char *room)
{
    ptrdiff_t rows = l->steps * l->batch, gates = l->gates * l->size;
    PyObject *const *weights = a + 1 + l->states, *const *saved = made + 1 + l->states;
    PyObject *const *before = saved + forms[l->kind].before;
    char *bias = room + recurrent_bytes(l), *own_bias = bias + gates * l->item, *part = own_bias + gates * l->item;
    char *hidden = data_of(made[1]), *all_gates = data_of(l->kind == PLAIN ? made[0] : saved[0]);
    Matrix weight = recurrent_matrix(l, data_of(weights[1]), room);
    add_biases(l, weights[2], l->apart ? NULL : weights[3], bias);
    if (l->apart)
        add_biases(l, weights[3], NULL, own_bias);
    put_product(l, plain_matrix(data_of(a[0]), rows, l->width),
                transposed(plain_matrix(data_of(weights[0]), gates, l->width)), bias, all_gates);
    for (int i = 0; i < l->states; i++)
        memcpy(data_of(made[1 + i]), data_of(a[1 + i]), l->state);
    for (ptrdiff_t n = 0; n < l->steps; n++) {
        ptrdiff_t at = (l->reverse ? l->steps - 1 - n : n) * l->state;
        StepRows step = {.size = l->size, .is_tanh = l->is_tanh, .gates = all_gates + l->gates * at, .hidden = hidden,
                         .output = (char *)data_of(made[0]) + at, .cell = data_of(made[l->states]), .part = part,
                         .recurrent_n = l->apart ? (char *)data_of(saved[1]) + at : NULL};
        for (int i = 0; i < l->states; i++)
            memcpy((char *)data_of(before[i]) + at, data_of(made[1 + i]), l->state);
        put_product(l, plain_matrix(hidden, l->batch, l->size), weight, l->apart ? own_bias : step.gates,
                    l->apart ? part : step.gates);
        l->step(&step, 0, l->batch);
    }
}

static PyObject *layer(PyObject *const *arguments, const KernelEntry *entry)
{
    Layer l;
    if (!read_layer(arguments, entry, &l))
        return DECLINE;
    int count = 1 + l.states + forms[l.kind].saved;
    PyObject *made[MOST_RESULTS] = {new_matrix(&l, l.steps, l.batch, l.size)};
    for (int i = 1; i < count; i++) {
        int is_state = i <= l.states, is_gates = i == l.states + 1 && l.kind != PLAIN;
        made[i] = new_matrix(&l, 0, is_state ? l.batch : l.steps * l.batch, is_gates ? l.gates * l.size : l.size);
    }
    char *room = malloc(recurrent_bytes(&l) + l.gates * l.size * (2 + (l.apart ? l.batch : 0)) * l.item);
    if (room && all_made(made, count)) {
        Py_BEGIN_ALLOW_THREADS
        run_forward(&l, arguments, made, room);
        Py_END_ALLOW_THREADS
    } else if (!room) {
        Py_CLEAR(made[0]);
        PyErr_NoMemory();
    }
    free(room);
    return pack(count, made);
}

/* `grads` of the output and the final states; `made` those of the input, the initial states, the weights and the biases. */
static void run_backward(const Layer *l, PyObject *const *grads, PyObject *const *a, PyObject *const *saved,
                         PyObject *const *made, char *room)
{
    ptrdiff_t rows = l->steps * l->batch, gates = l->gates * l->size;
    PyObject *const *weights = a + 1 + l->states, *const *to_weights = made + 1 + l->states;
    PyObject *const *before = saved + forms[l->kind].before + (l->kind == PLAIN);
    char *hidden = data_of(made[1]), *from_input = l->apart ? room + rows * gates * l->item : room;
    for (int i = 1; i <= l->states; i++)
        memcpy(data_of(made[i]), data_of(grads[i]), l->state);
    for (ptrdiff_t n = l->steps - 1; n >= 0; n--) {
        ptrdiff_t at = (l->reverse ? l->steps - 1 - n : n) * l->state;
        StepRows step = {.size = l->size, .is_tanh = l->is_tanh, .gates = (char *)data_of(saved[0]) + l->gates * at,
                         .output = (char *)data_of(grads[0]) + at, .hidden = hidden, .cell = data_of(made[l->states]),
                         .part = room + l->gates * at, .from_input = from_input + l->gates * at,
                         .recurrent_n = (char *)data_of(saved[1]) + at, .before = (char *)data_of(before[0]) + at,
                         .cell_before = (char *)data_of(before[l->states - 1]) + at};
        l->step(&step, 0, l->batch);
        put_product(l, plain_matrix(step.part, l->batch, gates), plain_matrix(data_of(weights[1]), gates, l->size),
                    l->apart ? hidden : NULL, hidden);
    }
    Matrix to_input = plain_matrix(from_input, rows, gates), to_state = plain_matrix(room, rows, gates);
    put_product(l, to_input, plain_matrix(data_of(weights[0]), gates, l->width), NULL, data_of(made[0]));
    put_product(l, transposed(to_input), plain_matrix(data_of(a[0]), rows, l->width), NULL, data_of(to_weights[0]));
    put_product(l, transposed(to_state), plain_matrix(data_of(before[0]), rows, l->size), NULL, data_of(to_weights[1]));
    if (to_weights[2] != Py_None)
        add_rows(&to_input, data_of(to_weights[2]), l->type == NPY_DOUBLE);
    if (to_weights[3] != Py_None)
        add_rows(&to_state, data_of(to_weights[3]), l->type == NPY_DOUBLE);
}

static PyObject *new_bias(const Layer *l, PyObject *bias)
{
    npy_intp size = l->gates * l->size;
    return is_none(bias) ? Py_NewRef(Py_None) : new_array(1, &size, l->type);
}

/* The gradients of the output and of the final states, the layer's arguments, and what was saved (of the plain layer also the
 * output). The gradient of a sum is one number that is seen everywhere: such gradients are written out. */
static PyObject *layer_back(PyObject *const *arguments, const KernelEntry *entry)
{
    Layer l;
    int plain = entry->kind == PLAIN, states = forms[entry->kind].states;
    PyObject *const *a = arguments + 1 + states, *const *biases = a + 3 + states, *const *saved = biases + 4 + plain;
    PyObject *grads[3] = {NULL}, *made[MOST_RESULTS] = {NULL};
    if (!read_layer(a, entry, &l))
        return DECLINE;
    ptrdiff_t rows = l.steps * l.batch;
    for (int i = 0; i < forms[l.kind].saved + plain; i++)
        if (!is_plain_of(saved[i], l.type) || size_of(saved[i]) != rows * l.size * (i ? 1 : l.gates))
            return DECLINE;
    for (int i = 0; i <= states; i++)
        if (!is_real_array_of(arguments[i], l.type) || NDIM(arguments[i]) != (i ? 2 : 3) ||
            size_of(arguments[i]) != (i ? l.batch : rows) * l.size)
            return DECLINE;
    for (int i = 0; i <= states; i++) {
        grads[i] = row_major(arguments[i]);
        made[i] = i ? new_matrix(&l, 0, l.batch, l.size) : new_matrix(&l, l.steps, l.batch, l.width);
    }
    made[states + 1] = new_matrix(&l, 0, l.gates * l.size, l.width);
    made[states + 2] = new_matrix(&l, 0, l.gates * l.size, l.size);
    made[states + 3] = new_bias(&l, biases[0]);
    made[states + 4] = new_bias(&l, biases[1]);
    char *room = malloc((1 + l.apart) * rows * l.gates * l.size * l.item);
    if (room && all_made(made, states + 5) && all_made(grads, states + 1)) {
        Py_BEGIN_ALLOW_THREADS
        run_backward(&l, grads, a, saved, made, room);
        Py_END_ALLOW_THREADS
    } else {
        Py_CLEAR(made[0]);
        PyErr_NoMemory();
    }
    free(room);
    for (int i = 0; i <= states; i++)
        Py_XDECREF(grads[i]);
    return pack(states + 5, made);
}

const KernelEntry recurrent_kernels[] = {
    {"lstm_layer", layer, "r", LSTM, LOOP_PAIR(lstm_step)},
    {"lstm_layer_back", layer_back, "...r", LSTM, LOOP_PAIR(lstm_step_back)},
    {"gru_layer", layer, "r", GRU, LOOP_PAIR(gru_step)},
    {"gru_layer_back", layer_back, "..r", GRU, LOOP_PAIR(gru_step_back)},
    {"rnn_layer", layer, "r", PLAIN, LOOP_PAIR(rnn_step)},
    {"rnn_layer_back", layer_back, "..r", PLAIN, LOOP_PAIR(rnn_step_back)},
    {NULL},
};

#else

const KernelEntry recurrent_kernels[] = {{NULL}};

#endif
