/* What whole recurrent layers share: their sizes, products, and how they read and make arrays. */
#ifndef PULLBACK_RECURRENT_H
#define PULLBACK_RECURRENT_H

#include <stdlib.h>
#include <string.h>

#include "products.h"
#include "rows.h"

#define SIGMOID(x) (REAL_IS_FLOAT ? (REAL)fast_sigmoidf((float)(x)) : (REAL)fast_sigmoid((double)(x)))
#define TANH(x) (REAL_IS_FLOAT ? (REAL)fast_tanhf((float)(x)) : (REAL)fast_tanh((double)(x)))

/* Up to so many sequences the recurrent weight is read as it lies: products by dots are then the faster ones. */
#define FEW_SEQUENCES 4

typedef struct {
    ptrdiff_t steps, batch, width, size, gates; /* gates of a state's element */
    int type, reverse;
    size_t item;
} Sizes;

INLINE Matrix plain_matrix(const void *data, ptrdiff_t rows, ptrdiff_t columns)
{
    return (Matrix){data, rows, columns, columns, 1};
}

/* result = a @ b + start, row-major; `start` is NULL, the result, or one row for all. */
INLINE void put_product(int type, Matrix a, Matrix b, const char *start, char *result)
{
    Product p = {a, b, start, start == result ? b.columns : 0, result, b.columns, type == NPY_DOUBLE};
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

INLINE void transpose_into(const void *from, void *to, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t step, size_t item)
{
    if (item == sizeof(float))
        TRANSPOSE(float);
    else
        TRANSPOSE(double);
}

/* Elements from a row of the transposed recurrent weight to the next: one line of the cache more than needed, since rows
 * that are powers of two apart would share a few sets of it. */
INLINE ptrdiff_t recurrent_step(const Sizes *s) { return s->gates * s->size + 64 / (ptrdiff_t)s->item; }

/* Bytes of the room for the transposed recurrent weight. */
INLINE size_t recurrent_bytes(const Sizes *s) { return (size_t)(recurrent_step(s) * s->size) * s->item; }

/* The recurrent weight [gates][size] as what a state is multiplied by: as it lies, or transposed into `room`. */
INLINE Matrix recurrent_matrix(const Sizes *s, PyObject *weight, void *room)
{
    ptrdiff_t rows = s->gates * s->size;
    if (s->batch <= FEW_SEQUENCES)
        return transposed(plain_matrix(data_of(weight), rows, s->size));
    transpose_into(data_of(weight), room, rows, s->size, recurrent_step(s), s->item);
    return (Matrix){room, s->size, rows, recurrent_step(s), 1};
}

INLINE void add_biases(const Sizes *s, PyObject *first, PyObject *second, void *sum)
{
    for (ptrdiff_t j = 0; j < s->gates * s->size; j++)
        if (s->type == NPY_DOUBLE)
            ((double *)sum)[j] = (is_none(first) ? 0 : ((double *)data_of(first))[j]) +
                                 (is_none(second) ? 0 : ((double *)data_of(second))[j]);
        else
            ((float *)sum)[j] = (is_none(first) ? 0 : ((float *)data_of(first))[j]) +
                                (is_none(second) ? 0 : ((float *)data_of(second))[j]);
}

/* Whether `array` is row-major, of this type and of so many dimensions with these sizes. */
INLINE int is_shaped(PyObject *array, int type, int ndim, ptrdiff_t first, ptrdiff_t second, ptrdiff_t third)
{
    ptrdiff_t sizes[] = {first, second, third};
    if (!array || !is_plain_of(array, type) || NDIM(array) != ndim)
        return 0;
    for (int i = 0; i < ndim; i++)
        if (DIM(array, i) != sizes[i])
            return 0;
    return 1;
}

/* `states` initial states after the input, then weight_ih, weight_hh, bias_ih, bias_hh. */
INLINE int read_weights(PyObject *const *a, int states, ptrdiff_t gates, PyObject *batch_sizes, PyObject *reverse, Sizes *s)
{
    PyObject *const *weights = a + 1 + states;
    if (!is_plain(a[0]) || NDIM(a[0]) != 3 || !size_of(a[0]) || !is_plain(weights[1]) || NDIM(weights[1]) != 2 ||
        batch_sizes != Py_None || !read_flag(reverse, 0, &s->reverse))
        return 0;
    s->type = type_of(a[0]);
    s->item = s->type == NPY_DOUBLE ? sizeof(double) : sizeof(float);
    s->gates = gates;
    s->steps = DIM(a[0], 0);
    s->batch = DIM(a[0], 1);
    s->width = DIM(a[0], 2);
    s->size = DIM(weights[1], 1);
    for (int i = 0; i < states; i++)
        if (!is_shaped(a[1 + i], s->type, 2, s->batch, s->size, 0))
            return 0;
    return s->size > 0 && is_shaped(weights[0], s->type, 2, gates * s->size, s->width, 0) &&
           is_shaped(weights[1], s->type, 2, gates * s->size, s->size, 0) &&
           is_absent_or_plain(weights[2], s->type, gates * s->size) &&
           is_absent_or_plain(weights[3], s->type, gates * s->size);
}

/* A new array of two dimensions, or of three where `steps` is not 0. */
INLINE PyObject *new_matrix(const Sizes *s, ptrdiff_t steps, ptrdiff_t rows, ptrdiff_t columns)
{
    npy_intp shape[] = {steps, rows, columns};
    return steps ? new_array(3, shape, s->type) : new_array(2, shape + 1, s->type);
}

INLINE PyObject *new_bias(const Sizes *s, PyObject *bias)
{
    npy_intp size = s->gates * s->size;
    return is_none(bias) ? Py_NewRef(Py_None) : new_array(1, &size, s->type);
}

/* The gradients of a layer's output and final states in row-major arrays of its own (each to be given up); 0 to decline or
 * where memory runs out. The gradient of a sum is one number that is seen everywhere: such gradients are written out. */
INLINE int read_grads(const Sizes *s, PyObject *const *arguments, int count, PyObject **grads)
{
    for (int i = 0; i < count; i++)
        if (!is_real_array_of(arguments[i], s->type) || NDIM(arguments[i]) != (i ? 2 : 3) ||
            size_of(arguments[i]) != (i ? s->batch : s->steps * s->batch) * s->size)
            return 0;
    for (int i = 0; i < count; i++)
        grads[i] = row_major(arguments[i]);
    return all_made(grads, count);
}

/* The results of a layer's gradient: of the input, the `states` initial states, the weights and the biases. */
#define MOST_RESULTS 7

/* Of input, weights and biases, from the gradients of the sums that go into the gates, which may differ for what comes
 * from the input and what comes from the state. */
INLINE void sum_up_gradients(const Sizes *s, int states, const void *from_input, const void *from_state,
                             PyObject *const *layer, const void *hidden_before, PyObject *const *made)
{
    ptrdiff_t rows = s->steps * s->batch, gates = s->gates * s->size;
    PyObject *const *weights = made + 1 + states;
    Matrix to_input = plain_matrix(from_input, rows, gates), to_state = plain_matrix(from_state, rows, gates);
    put_product(s->type, to_input, plain_matrix(data_of(layer[1 + states]), gates, s->width), NULL, data_of(made[0]));
    put_product(s->type, transposed(to_input), plain_matrix(data_of(layer[0]), rows, s->width), NULL, data_of(weights[0]));
    put_product(s->type, transposed(to_state), plain_matrix(hidden_before, rows, s->size), NULL, data_of(weights[1]));
    if (weights[2] != Py_None)
        add_rows(&to_input, data_of(weights[2]), s->type == NPY_DOUBLE);
    if (weights[3] != Py_None)
        add_rows(&to_state, data_of(weights[3]), s->type == NPY_DOUBLE);
}

/* Computes a layer's results from its arguments, or their gradients from those of the results (`grads`, row-major) and
 * from what was saved; `room` is of so many bytes. */
typedef void (*RunLayer)(const Sizes *s, PyObject *const *layer, int is_tanh, PyObject *const *made, char *room);
typedef void (*RunLayerBack)(const Sizes *s, PyObject *const *grads, PyObject *const *layer, PyObject *const *saved,
                             int is_tanh, PyObject *const *made, char *room);

INLINE PyObject *run_layer(const Sizes *s, PyObject *const *layer, int is_tanh, size_t bytes, RunLayer run, PyObject **made,
                           int count)
{
    char *room = malloc(bytes);
    if (room && all_made(made, count)) {
        Py_BEGIN_ALLOW_THREADS
        run(s, layer, is_tanh, made, room);
        Py_END_ALLOW_THREADS
    } else if (!room) {
        Py_CLEAR(made[0]);
        PyErr_NoMemory();
    }
    free(room);
    return pack(count, made);
}

/* `arguments` are the gradients of the output and of the final states, then the layer's. */
INLINE PyObject *run_layer_back(const Sizes *s, PyObject *const *arguments, int states, PyObject *const *saved, int is_tanh,
                                size_t bytes, RunLayerBack run)
{
    PyObject *const *layer = arguments + 1 + states, *const *biases = layer + 3 + states;
    PyObject *grads[3] = {NULL}, *made[MOST_RESULTS] = {NULL}, *result = NULL;
    if (read_grads(s, arguments, 1 + states, grads)) {
        char *room = malloc(bytes);
        made[0] = new_matrix(s, s->steps, s->batch, s->width);
        for (int i = 1; i <= states; i++)
            made[i] = new_matrix(s, 0, s->batch, s->size);
        made[states + 1] = new_matrix(s, 0, s->gates * s->size, s->width);
        made[states + 2] = new_matrix(s, 0, s->gates * s->size, s->size);
        made[states + 3] = new_bias(s, biases[0]);
        made[states + 4] = new_bias(s, biases[1]);
        if (room && all_made(made, states + 5)) {
            for (int i = 1; i <= states; i++)
                memcpy(data_of(made[i]), data_of(grads[i]), s->batch * s->size * s->item);
            Py_BEGIN_ALLOW_THREADS
            run(s, grads, layer, saved, is_tanh, made, room);
            Py_END_ALLOW_THREADS
        } else if (!room) {
            Py_CLEAR(made[0]);
            PyErr_NoMemory();
        }
        free(room);
        result = pack(states + 5, made);
    }
    for (int i = 0; i <= states; i++)
        Py_XDECREF(grads[i]);
    return result;
}

#endif
