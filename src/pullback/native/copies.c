/* Row-major copies of arrays whose neighbours in memory are not neighbours in the last dimension, as transposed ones, or
 * that are expanded along it; and one value in all places.
 *
 * NumPy copies them row by row, one element of each cache line at a time; here a square block is copied at a time, whose
 * lines stay in the cache. Arrays whose last dimension lies together are left to NumPy, which copies whole rows.
 */
#include "rows.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define BLOCK 32

/* The dimension whose elements are neighbours in memory, [length], against the last, [columns]; the others are outer. */
typedef struct {
    const char *from;
    char *to;
    int outer_ndim;
    npy_intp outer_shape[NPY_MAXDIMS], outer_from[NPY_MAXDIMS], outer_to[NPY_MAXDIMS]; /* steps in bytes */
    npy_intp outer, length, columns, from_step, to_step; /* steps in elements: between columns, between rows */
    npy_intp item;
} TransposedCopy;

#define COPY_BLOCK(name, WORD)                                                                                         \
    MULTIVERSIONED static void name(const TransposedCopy *c, const char *source, char *target, npy_intp begin,          \
                                    npy_intp end)                                                                      \
    {                                                                                                                  \
        const WORD *from = (const WORD *)source;                                                                       \
        WORD *to = (WORD *)target;                                                                                     \
        for (npy_intp column = 0; column < c->columns; column += BLOCK) {                                              \
            npy_intp stop = column + BLOCK < c->columns ? column + BLOCK : c->columns;                                 \
            for (npy_intp i = begin; i < end; i++)                                                                     \
                for (npy_intp j = column; j < stop; j++)                                                               \
                    to[i * c->to_step + j] = from[i + j * c->from_step];                                               \
        }                                                                                                              \
    }

COPY_BLOCK(copy_block_1, uint8_t)
COPY_BLOCK(copy_block_2, uint16_t)
COPY_BLOCK(copy_block_4, uint32_t)
COPY_BLOCK(copy_block_8, uint64_t)

/* An item is BLOCK rows of the result in one of the outer positions. */
static void copy_blocks(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const TransposedCopy *c = context;
    npy_intp groups = (c->length + BLOCK - 1) / BLOCK;
    for (ptrdiff_t number = begin; number < end; number++) {
        npy_intp rest = number / groups, first = number % groups * BLOCK;
        const char *from = c->from;
        char *to = c->to;
        for (int i = c->outer_ndim - 1; i >= 0; i--) {
            from += rest % c->outer_shape[i] * c->outer_from[i];
            to += rest % c->outer_shape[i] * c->outer_to[i];
            rest /= c->outer_shape[i];
        }
        npy_intp last = first + BLOCK < c->length ? first + BLOCK : c->length;
        switch (c->item) {
        case 1: copy_block_1(c, from, to, first, last); break;
        case 2: copy_block_2(c, from, to, first, last); break;
        case 4: copy_block_4(c, from, to, first, last); break;
        default: copy_block_8(c, from, to, first, last);
        }
    }
}

/* Rows of [columns] elements, all of which have one value: copies of arrays that were expanded along the last dimension. */
typedef struct {
    const char *from;
    char *to;
    int outer_ndim;
    npy_intp outer_shape[NPY_MAXDIMS], outer_from[NPY_MAXDIMS]; /* steps in bytes */
    npy_intp columns, item;
} Repetition;

/* The first element of a row. */
INLINE const char *row_of(const Repetition *r, npy_intp number)
{
    const char *from = r->from;
    for (int i = r->outer_ndim - 1; i > 0; i--) {
        from += number % r->outer_shape[i] * r->outer_from[i];
        number /= r->outer_shape[i];
    }
    return r->outer_ndim ? from + number * r->outer_from[0] : from;
}

/* An item is an element of the only row, or a row. */
#define REPEAT(name, WORD)                                                                                             \
    MULTIVERSIONED static void name(const Repetition *r, ptrdiff_t begin, ptrdiff_t end)                               \
    {                                                                                                                  \
        WORD *to = (WORD *)r->to;                                                                                      \
        if (!r->outer_ndim) {                                                                                          \
            WORD value = *(const WORD *)r->from;                                                                       \
            for (ptrdiff_t i = begin; i < end; i++)                                                                    \
                to[i] = value;                                                                                         \
            return;                                                                                                    \
        }                                                                                                              \
        for (ptrdiff_t row = begin; row < end; row++) {                                                                \
            WORD value = *(const WORD *)row_of(r, row);                                                                \
            for (npy_intp i = 0; i < r->columns; i++)                                                                  \
                to[row * r->columns + i] = value;                                                                      \
        }                                                                                                              \
    }

REPEAT(repeat_1, uint8_t)
REPEAT(repeat_2, uint16_t)
REPEAT(repeat_4, uint32_t)
REPEAT(repeat_8, uint64_t)

static void repeat_items(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Repetition *r = context;
    switch (r->item) {
    case 1: repeat_1(r, begin, end); break;
    case 2: repeat_2(r, begin, end); break;
    case 4: repeat_4(r, begin, end); break;
    default: repeat_8(r, begin, end);
    }
}

#define SHORTEST_ROW 4

/* How many elements in a row have one value: all, or those of the last dimension; 0 where they are few or differ. */
static npy_intp repeated_columns(PyArrayObject *array)
{
    int last = PyArray_NDIM(array) - 1, all = 1;
    for (int i = 0; i <= last; i++)
        all &= PyArray_STRIDE(array, i) == 0 || PyArray_DIM(array, i) == 1;
    npy_intp columns = all ? PyArray_SIZE(array) : PyArray_STRIDE(array, last) ? 0 : PyArray_DIM(array, last);
    return columns < SHORTEST_ROW ? 0 : columns;
}

static void copy_repeated(PyArrayObject *input, PyArrayObject *result, npy_intp columns)
{
    Repetition r = {PyArray_BYTES(input), PyArray_BYTES(result), .columns = columns, .item = PyArray_ITEMSIZE(input)};
    npy_intp rows = PyArray_SIZE(input) / columns;
    for (int i = 0; rows > 1 && i < PyArray_NDIM(input) - 1; i++) {
        r.outer_shape[r.outer_ndim] = PyArray_DIM(input, i);
        r.outer_from[r.outer_ndim++] = PyArray_STRIDE(input, i);
    }
    if (r.outer_ndim)
        run_items(rows, columns, repeat_items, &r);
    else
        run_items(columns, 1, repeat_items, &r);
}

/* A block of memory, written again and again: copies of arrays that are expanded along their first dimensions. */
typedef struct {
    const char *from;
    char *to;
    size_t bytes;
} Tiling;

#define TILE 4096

static void tile_part(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Tiling *t = context;
    char *first = t->to + begin * t->bytes, *to = first, *stop = t->to + end * t->bytes;
    for (; to < stop && (size_t)(to - first) < TILE; to += t->bytes)
        memcpy(to, t->from, t->bytes);
    size_t tile = (size_t)(to - first);
    for (; to < stop; to += tile)
        memcpy(to, first, (size_t)(stop - to) < tile ? (size_t)(stop - to) : tile);
}

/* How many elements the dimensions have that follow the expanded first ones, and lie in row-major order; 0 otherwise. */
static npy_intp tiled_elements(PyArrayObject *array)
{
    npy_intp elements = 1, item = PyArray_ITEMSIZE(array);
    int i = PyArray_NDIM(array) - 1;
    for (; i >= 0 && (PyArray_DIM(array, i) == 1 || PyArray_STRIDE(array, i) == elements * item); i--)
        elements *= PyArray_DIM(array, i);
    int is_whole = i < 0;
    for (; i >= 0; i--)
        if (PyArray_STRIDE(array, i) && PyArray_DIM(array, i) > 1)
            return 0;
    return is_whole ? 0 : elements;
}

static void copy_tiled(PyArrayObject *input, PyArrayObject *result, npy_intp elements)
{
    Tiling t = {PyArray_BYTES(input), PyArray_BYTES(result), (size_t)(elements * PyArray_ITEMSIZE(input))};
    run_items(PyArray_SIZE(input) / elements, elements, tile_part, &t);
}

/* The dimension other than the last, of more than one element, whose elements are neighbours; -1 for none. */
static int neighbours_in(PyArrayObject *array)
{
    int last = PyArray_NDIM(array) - 1;
    if (PyArray_STRIDE(array, last) == PyArray_ITEMSIZE(array))
        return -1;
    for (int i = 0; i < last; i++)
        if (PyArray_STRIDE(array, i) == PyArray_ITEMSIZE(array) && PyArray_DIM(array, i) > 1)
            return i;
    return -1;
}

static int is_copyable(PyObject *object)
{
    if (!PyArray_CheckExact(object) || !PyArray_ISBEHAVED_RO((PyArrayObject *)object) || !size_of(object))
        return 0;
    PyArrayObject *array = (PyArrayObject *)object;
    npy_intp item = PyArray_ITEMSIZE(array);
    return (item == 1 || item == 2 || item == 4 || item == 8) && PyArray_NDIM(array) >= 1 &&
           !PyDataType_REFCHK(PyArray_DESCR(array));
}

/* contiguous_copy(input), in row-major order. */
static PyObject *contiguous_copy(PyObject *const *arguments, const KernelEntry *entry)
{
    if (!is_copyable(arguments[0]) || !PyUnicode_Check(arguments[1]) ||
        PyUnicode_CompareWithASCIIString(arguments[1], "contiguous_format"))
        return DECLINE;
    npy_intp columns = repeated_columns((PyArrayObject *)arguments[0]);
    npy_intp elements = columns ? 0 : tiled_elements((PyArrayObject *)arguments[0]);
    int fast = neighbours_in((PyArrayObject *)arguments[0]);
    if (fast < 0 && !columns && !elements)
        return DECLINE;
    PyArrayObject *input = (PyArrayObject *)arguments[0];
    PyArray_Descr *descr = PyArray_DESCR(input);
    int last = PyArray_NDIM(input) - 1;
    Py_INCREF(descr);
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, descr, last + 1, PyArray_DIMS(input), NULL, NULL, 0, NULL);
    if (!made)
        return NULL;
    PyArrayObject *result = (PyArrayObject *)made;
    if (columns || elements) {
        columns ? copy_repeated(input, result, columns) : copy_tiled(input, result, elements);
        return made;
    }
    npy_intp item = PyArray_ITEMSIZE(input);
    TransposedCopy c = {.from = PyArray_BYTES(input), .to = PyArray_BYTES(result), .outer = 1, .item = item,
                        .length = PyArray_DIM(input, fast), .columns = PyArray_DIM(input, last),
                        .from_step = PyArray_STRIDE(input, last) / item, .to_step = PyArray_STRIDE(result, fast) / item};
    for (int i = 0; i < last; i++)
        if (i != fast) {
            c.outer_shape[c.outer_ndim] = PyArray_DIM(input, i);
            c.outer_from[c.outer_ndim] = PyArray_STRIDE(input, i);
            c.outer_to[c.outer_ndim++] = PyArray_STRIDE(result, i);
            c.outer *= PyArray_DIM(input, i);
        }
    run_items(c.outer * ((c.length + BLOCK - 1) / BLOCK), BLOCK * c.columns, copy_blocks, &c);
    return made;
}

/* Write the first element of a row-major array to all places. */
static void repeat(PyArrayObject *array)
{
    Repetition r = {PyArray_BYTES(array), PyArray_BYTES(array), .columns = PyArray_SIZE(array),
                    .item = PyArray_ITEMSIZE(array)};
    run_items(r.columns, 1, repeat_items, &r);
}

/* repeat_first(array), in place. */
static PyObject *repeat_first(PyObject *const *arguments, const KernelEntry *entry)
{
    if (!PyArray_CheckExact(arguments[0]) || !size_of(arguments[0]))
        return DECLINE;
    PyArrayObject *array = (PyArrayObject *)arguments[0];
    npy_intp item = PyArray_ITEMSIZE(array);
    if (!PyArray_ISCARRAY(array) || PyDataType_REFCHK(PyArray_DESCR(array)) || (item != 1 && item != 2 && item != 4 && item != 8))
        return DECLINE;
    repeat(array);
    Py_INCREF(arguments[0]);
    return arguments[0];
}

/* Write a number to every element. */
static void fill(PyArrayObject *array, double value)
{
    if (!PyArray_SIZE(array))
        return;
    if (type_of((PyObject *)array) == NPY_FLOAT)
        *(float *)PyArray_DATA(array) = (float)value;
    else
        *(double *)PyArray_DATA(array) = value;
    repeat(array);
}

static PyObject *write_value(PyObject *const *arguments, const KernelEntry *entry)
{
    double value;
    if (!is_plain(arguments[0]) || !PyArray_ISWRITEABLE((PyArrayObject *)arguments[0]))
        return DECLINE;
    PyArrayObject *target = (PyArrayObject *)arguments[0];
    if (read_number(arguments[1], &value)) {
        if (!(fabs(value) <= FLT_MAX))
            return DECLINE;
        fill(target, value);
        Py_RETURN_TRUE;
    }
    if (!is_plain_of(arguments[1], type_of(arguments[0])) || !same_shape(arguments[0], arguments[1]))
        return DECLINE;
    memmove(PyArray_DATA(target), data_of(arguments[1]), (size_t)PyArray_NBYTES(target));
    Py_RETURN_TRUE;
}

const KernelEntry copy_kernels[] = {
    {"contiguous_copy", contiguous_copy},
    {"repeat_first", repeat_first},
    {"write_value", write_value},
    {NULL},
};
