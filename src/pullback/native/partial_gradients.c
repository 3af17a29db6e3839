/* Gradients added to arrays that are owned; of part of an array, placed among zeros or added to the gradient of the whole:
 * see PartialGradient.
 *
 * The whole is row-major: `outer` blocks of `size` rows of `inner` elements, of which the part has `count` in each block.
 */
#include <string.h>

#include "rows.h"
#include "views.h"

/* Runs of fewer elements are not worth a call. */
#define SHORT_RUN 32

typedef struct {
    npy_intp outer, size, inner, start, step, count;
} Place;

/* Read (dim, start, end, step) for a whole of this shape and check that the part fits; a step of 0 is one position, which
 * the part has no dimension for. */
static int find_place(PyObject *const *arguments, int ndim, const npy_intp *shape, PyObject *part, Place *place)
{
    int dim;
    npy_intp end;
    if (!read_dim(arguments[0], ndim, &dim) || !read_size(arguments[1], &place->start) ||
        !read_size(arguments[2], &end) || !read_size(arguments[3], &place->step) || place->step < 0)
        return 0;
    int is_one = place->step == 0;
    place->size = shape[dim];
    if (is_one) {
        place->start += place->start < 0 ? place->size : 0;
        place->count = place->step = 1;
        if (place->start < 0 || place->start >= place->size)
            return 0;
    } else {
        place->count = PySlice_AdjustIndices(place->size, &place->start, &end, place->step);
    }
    PyArrayObject *array = (PyArrayObject *)part;
    if (PyArray_NDIM(array) != ndim - is_one)
        return 0;
    place->outer = place->inner = 1;
    for (int i = 0, j = 0; i < ndim; i++) {
        if (i != dim && PyArray_DIM(array, j) != shape[i])
            return 0;
        if (i == dim && !is_one && PyArray_DIM(array, j) != place->count)
            return 0;
        j += i != dim || !is_one;
        if (i < dim)
            place->outer *= shape[i];
        else if (i > dim)
            place->inner *= shape[i];
    }
    return 1;
}

#define DEFINE_PARTS(REAL, NAME)                                                                                      \
    INLINE void clear_run_of_##NAME(REAL *target, npy_intp count)                                                     \
    {                                                                                                                 \
        if (count >= SHORT_RUN)                                                                                       \
            memset(target, 0, (size_t)count * sizeof *target);                                                        \
        else                                                                                                          \
            for (npy_intp i = 0; i < count; i++)                                                                      \
                target[i] = 0;                                                                                        \
    }                                                                                                                 \
    INLINE void copy_run_of_##NAME(REAL *restrict target, const REAL *restrict source, npy_intp count)                \
    {                                                                                                                 \
        if (count >= SHORT_RUN)                                                                                       \
            memcpy(target, source, (size_t)count * sizeof *target);                                                   \
        else                                                                                                          \
            for (npy_intp i = 0; i < count; i++)                                                                      \
                target[i] = source[i];                                                                                \
    }                                                                                                                 \
    static void place_part_of_##NAME(const Place *place, REAL *whole, const REAL *part)                               \
    {                                                                                                                 \
        npy_intp run = place->step == 1 ? place->count * place->inner : place->inner;                                 \
        npy_intp runs = place->step == 1 ? (place->count > 0) : place->count;                                         \
        npy_intp distance = place->step * place->inner, block = place->size * place->inner;                           \
        for (npy_intp outer = 0; outer < place->outer; outer++, whole += block) {                                     \
            npy_intp done = 0;                                                                                        \
            for (npy_intp i = 0; i < runs; i++, part += run) {                                                        \
                npy_intp begin = place->start * place->inner + i * distance;                                          \
                clear_run_of_##NAME(whole + done, begin - done);                                                      \
                copy_run_of_##NAME(whole + begin, part, run);                                                         \
                done = begin + run;                                                                                   \
            }                                                                                                         \
            clear_run_of_##NAME(whole + done, block - done);                                                          \
        }                                                                                                             \
    }                                                                                                                 \
    MULTIVERSIONED void add_zeros_to_##NAME(REAL *target, npy_intp count)                                             \
    {                                                                                                                 \
        for (npy_intp i = 0; i < count; i++)                                                                          \
            target[i] += 0;                                                                                           \
    }                                                                                                                 \
    MULTIVERSIONED void add_run_of_##NAME(REAL *restrict target, const REAL *restrict source, npy_intp count)         \
    {                                                                                                                 \
        for (npy_intp i = 0; i < count; i++)                                                                          \
            target[i] += source[i];                                                                                   \
    }                                                                                                                 \
    static void add_part_of_##NAME(const Place *place, REAL *whole, const REAL *part)                                 \
    {                                                                                                                 \
        npy_intp run = place->step == 1 ? place->count * place->inner : place->inner;                                 \
        npy_intp runs = place->step == 1 ? (place->count > 0) : place->count;                                         \
        npy_intp distance = place->step * place->inner, block = place->size * place->inner;                           \
        whole += place->start * place->inner;                                                                         \
        for (npy_intp outer = 0; outer < place->outer; outer++, whole += block)                                       \
            for (npy_intp i = 0; i < runs; i++, part += run) {                                                        \
                if (run >= SHORT_RUN)                                                                                 \
                    add_run_of_##NAME(whole + i * distance, part, run);                                               \
                else                                                                                                  \
                    for (npy_intp j = 0; j < run; j++)                                                                \
                        whole[i * distance + j] += part[j];                                                           \
            }                                                                                                         \
    }
DEFINE_PARTS(float, floats)
DEFINE_PARTS(double, doubles)

/* place_part(part, shape, dim, start, end, step) */
static PyObject *place_part(PyObject *const *arguments, const KernelEntry *entry)
{
    Place place;
    npy_intp shape[NPY_MAXDIMS];
    if (!PyArray_CheckExact(arguments[0]))
        return DECLINE;
    int ndim = read_shape(arguments[1], shape);
    if (ndim < 0 || !find_place(arguments + 2, ndim, shape, arguments[0], &place))
        return DECLINE;
    PyObject *part = is_real_array(arguments[0]) ? row_major(arguments[0]) : NULL;
    PyObject *whole = part ? new_array(ndim, shape, type_of(part)) : NULL;
    if (whole) {
        if (type_of(part) == NPY_FLOAT)
            place_part_of_floats(&place, data_of(whole), data_of(part));
        else
            place_part_of_doubles(&place, data_of(whole), data_of(part));
    }
    Py_XDECREF(part);
    return whole;
}

/* add_part(whole, part, dim, start, end, step, first), which answers with the whole */
static PyObject *add_part(PyObject *const *arguments, const KernelEntry *entry)
{
    Place place;
    if (!is_plain(arguments[0]) || !PyArray_CheckExact(arguments[1]) ||
        type_of(arguments[0]) != type_of(arguments[1]) || !PyArray_ISWRITEABLE((PyArrayObject *)arguments[0]))
        return DECLINE;
    PyArrayObject *whole = (PyArrayObject *)arguments[0];
    if (!find_place(arguments + 2, PyArray_NDIM(whole), PyArray_DIMS(whole), arguments[1], &place))
        return DECLINE;
    PyObject *part = is_real_array(arguments[1]) ? row_major(arguments[1]) : NULL;
    if (!part)
        return NULL;
    int first = arguments[6] == Py_True; /* then adding takes the sign from negative zeros, as of a whole of zeros does */
    if (type_of(part) == NPY_FLOAT) {
        if (first)
            add_zeros_to_floats(PyArray_DATA(whole), PyArray_SIZE(whole));
        add_part_of_floats(&place, PyArray_DATA(whole), data_of(part));
    } else {
        if (first)
            add_zeros_to_doubles(PyArray_DATA(whole), PyArray_SIZE(whole));
        add_part_of_doubles(&place, PyArray_DATA(whole), data_of(part));
    }
    Py_DECREF(part);
    return Py_NewRef(arguments[0]);
}

/* Elements that are worth a thread. */
#define SHARE 65536

typedef struct {
    char *total;
    const char *value;
    int type;
} Addition;

static void add_range(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Addition *a = context;
    if (a->type == NPY_FLOAT)
        add_run_of_floats((float *)(void *)a->total + begin, (const float *)(const void *)a->value + begin, end - begin);
    else
        add_run_of_doubles((double *)(void *)a->total + begin, (const double *)(const void *)a->value + begin, end - begin);
}

/* add_in_place(total, value) */
static PyObject *add_in_place(PyObject *const *arguments, const KernelEntry *entry)
{
    if (!is_plain(arguments[0]) || !is_plain_of(arguments[1], type_of(arguments[0])) ||
        !PyArray_ISWRITEABLE(ARRAY(arguments[0])) || !same_shape(arguments[0], arguments[1]))
        return DECLINE;
    PyArrayObject *total = ARRAY(arguments[0]);
    Addition addition = {PyArray_BYTES(total), PyArray_BYTES(ARRAY(arguments[1])), type_of(arguments[0])};
    npy_intp count = PyArray_SIZE(total), distance = addition.value - addition.total;
    if (distance < PyArray_NBYTES(total) && distance > -PyArray_NBYTES(total) && count)
        return DECLINE; /* they overlap, or are the same */
    run_unlocked((double)count, count, SHARE, add_range, &addition);
    return Py_NewRef(arguments[0]);
}

const KernelEntry partial_gradient_kernels[] = {
    {"place_part", place_part},
    {"add_part", add_part},
    {"add_in_place", add_in_place},
    {NULL},
};
