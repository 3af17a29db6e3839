/* Row-major copies of arrays whose neighbours in memory are not neighbours in the last dimension, as transposed ones, or
 * that are expanded along it; and one value in all places.
 *
 * NumPy copies them row by row, one element of each cache line at a time; here a square block is copied at a time, whose
 * lines stay in the cache. Arrays whose last dimension lies together are left to NumPy, which copies whole rows.
 */
#include "boxes.h"
#include "casts.h"
#include "rows.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define BLOCK 32
#define LONG_ROW 65536

typedef struct {
    uint64_t first, second;
} Pair;

/* Rows of elements whose step in `from` is a constant, where it can be; the others in squares, whose lines stay in the cache. */
#define COPY_ROWS(WORD, name)                                                                                          \
    INLINE void copy_each_of_##name(const char *from, char *to, npy_intp rows, npy_intp columns, npy_intp row_from,    \
                                    npy_intp row_to, npy_intp step)                                                    \
    {                                                                                                                  \
        for (npy_intp i = 0; i < rows; i++) {                                                                          \
            const WORD *row = (const WORD *)(from + i * row_from), first = row[0];                                     \
            WORD *restrict target = (WORD *)(to + i * row_to);                                                         \
            for (npy_intp j = 0; j < columns; j++)                                                                     \
                target[j] = step ? row[j * step] : first;                                                              \
        }                                                                                                              \
    }                                                                                                                  \
    MULTIVERSIONED static void copy_rows_of_##name(const Box *b, const char *from, char *to, npy_intp rows,            \
                                                   npy_intp columns)                                                   \
    {                                                                                                                  \
        const npy_intp size = sizeof(WORD);                                                                            \
        if (b->step == 0)                                                                                              \
            copy_each_of_##name(from, to, rows, columns, b->row_from, b->row_to, 0);                                   \
        else if (b->step == -1)                                                                                        \
            copy_each_of_##name(from, to, rows, columns, b->row_from, b->row_to, -1);                                  \
        else                                                                                                           \
            for (npy_intp j = 0; j < columns; j += BLOCK)                                                              \
                copy_each_of_##name(from + j * b->step * size, to + j * size, rows,                                    \
                                    columns - j < BLOCK ? columns - j : BLOCK, size, b->row_to, b->step);              \
    }
COPY_ROWS(uint8_t, bytes)
COPY_ROWS(uint16_t, shorts)
COPY_ROWS(uint32_t, words)
COPY_ROWS(uint64_t, long_words)
COPY_ROWS(Pair, pairs)

static void copy_rows(const Box *box, const char *from, char *to, npy_intp rows, npy_intp columns)
{
    if (box->step == 1)
        for (npy_intp i = 0; i < rows; i++)
            memcpy(to + i * box->row_to, from + i * box->row_from, (size_t)(columns * box->item));
    else if (box->item == 1)
        copy_rows_of_bytes(box, from, to, rows, columns);
    else if (box->item == 2)
        copy_rows_of_shorts(box, from, to, rows, columns);
    else if (box->item == 4)
        copy_rows_of_words(box, from, to, rows, columns);
    else if (box->item == 8)
        copy_rows_of_long_words(box, from, to, rows, columns);
    else
        copy_rows_of_pairs(box, from, to, rows, columns);
}

/* An item is a part of the rows, or of the only one, at one place of the dimensions around them. */
static void copy_parts(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Box *box = context;
    int has_rows = box->rows > 1;
    npy_intp length = has_rows ? box->rows : box->columns, parts = (length + box->part - 1) / box->part;
    for (ptrdiff_t number = begin; number < end; number++) {
        npy_intp rest = number / parts, first = number % parts * box->part;
        npy_intp count = length - first < box->part ? length - first : box->part;
        const char *from = box->from + first * (has_rows ? box->row_from : box->step * box->item);
        char *to = box->to + first * (has_rows ? box->row_to : box->item);
        for (int i = box->ndim - 1; i >= 0; i--) {
            from += rest % box->shape[i] * box->from_steps[i];
            to += rest % box->shape[i] * box->to_steps[i];
            rest /= box->shape[i];
        }
        copy_rows(box, from, to, has_rows ? count : 1, has_rows ? box->columns : count);
    }
}

/* A block of memory, written again and again: the only thing to do where the outer steps are zero. */
#define TILE 4096

static void tile_part(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Box *box = context;
    size_t bytes = (size_t)(box->columns * box->item), tile;
    char *first = box->to + begin * bytes, *to = first, *stop = box->to + end * bytes;
    for (; to < stop && (size_t)(to - first) < TILE; to += bytes)
        memcpy(to, box->from, bytes);
    for (tile = (size_t)(to - first); to < stop; to += tile)
        memcpy(to, first, (size_t)(stop - to) < tile ? (size_t)(stop - to) : tile);
}

Box box_between(PyObject *from, PyObject *to)
{
    Box box; /* most of it is not used */
    box.from = data_of(from);
    box.to = data_of(to);
    box.item = ITEM(from);
    box.ndim = NDIM(from);
    memcpy(box.shape, SHAPE(from), sizeof(npy_intp) * (size_t)box.ndim);
    memcpy(box.from_steps, STRIDES(from), sizeof(npy_intp) * (size_t)box.ndim);
    memcpy(box.to_steps, STRIDES(to), sizeof(npy_intp) * (size_t)box.ndim);
    return box;
}

Box box_of_rows(const void *from, void *to, npy_intp item, npy_intp rows, npy_intp distance, npy_intp columns, npy_intp step)
{
    Box box;
    box.from = from;
    box.to = to;
    box.item = item;
    box.ndim = 2;
    box.shape[0] = rows;
    box.shape[1] = columns;
    box.from_steps[0] = box.to_steps[0] = distance;
    box.from_steps[1] = step;
    box.to_steps[1] = item;
    return box;
}

/* Leave out dimensions of one element, and join neighbours that are one for both. */
static void join_dimensions(Box *box)
{
    int kept = 0;
    for (int i = 0; i < box->ndim; i++) {
        npy_intp size = box->shape[i], from = box->from_steps[i], to = box->to_steps[i];
        if (size == 1)
            continue;
        int joined = kept && box->from_steps[kept - 1] == from * size && box->to_steps[kept - 1] == to * size;
        kept += !joined;
        box->shape[kept - 1] = joined ? box->shape[kept - 1] * size : size;
        box->from_steps[kept - 1] = from;
        box->to_steps[kept - 1] = to;
    }
    box->ndim = kept;
}

/* Take a dimension out, into the inner part. */
static void take_rows(Box *box, int dim)
{
    box->rows = box->shape[dim];
    box->row_from = box->from_steps[dim];
    box->row_to = box->to_steps[dim];
    box->ndim--;
    for (int i = dim; i < box->ndim; i++) {
        box->shape[i] = box->shape[i + 1];
        box->from_steps[i] = box->from_steps[i + 1];
        box->to_steps[i] = box->to_steps[i + 1];
    }
}

int copy_box(Box *box)
{
    npy_intp items = 1, item = box->item;
    int fast = -1;
    join_dimensions(box);
    box->columns = box->step = box->rows = 1;
    if (box->ndim && box->to_steps[box->ndim - 1] == item) {
        npy_intp step = box->from_steps[--box->ndim];
        box->columns = box->shape[box->ndim];
        box->step = step / item;
        for (int i = 0; i < box->ndim; i++)
            fast = box->from_steps[i] == item ? i : fast;
        int in_rows = step == item || step == -item || (step == 0 && (box->columns >= 4 || fast < 0));
        if (step % item || (!in_rows && fast < 0))
            return 0;
        fast = in_rows ? -1 : fast;
    }
    if (box->step == 1 && box->ndim == 1 && !box->from_steps[0] && box->to_steps[0] == box->columns * item) {
        run_items(box->shape[0], box->columns, tile_part, box);
        return 1;
    }
    if (box->ndim)
        take_rows(box, fast >= 0 ? fast : box->ndim - 1);
    for (int i = 0; i < box->ndim; i++)
        items *= box->shape[i];
    box->part = box->rows == 1 ? LONG_ROW : fast >= 0 ? BLOCK : LONG_ROW / 4 / box->columns + 1;
    npy_intp length = box->rows > 1 ? box->rows : box->columns, part = length < box->part ? length : box->part;
    run_items(items * ((length + box->part - 1) / box->part), box->rows > 1 ? part * box->columns : part, copy_parts, box);
    return 1;
}

/* contiguous_copy(input), in row-major order; arrays whose last dimension lies together are left to NumPy. */
static PyObject *contiguous_copy(PyObject *const *arguments, const KernelEntry *entry)
{
    PyObject *input = arguments[0];
    if (!PyArray_CheckExact(input) || !PyArray_ISBEHAVED_RO(ARRAY(input)) || !size_of(input) || NDIM(input) < 1 ||
        !is_copied_size(ITEM(input)) || ITEM(input) > 8 || PyDataType_REFCHK(PyArray_DESCR(ARRAY(input))) ||
        !PyUnicode_Check(arguments[1]) || PyUnicode_CompareWithASCIIString(arguments[1], "contiguous_format"))
        return DECLINE;
    int i = NDIM(input) - 1, is_expanded = 0;
    while (i > 0 && DIM(input, i) == 1)
        i--;
    for (int d = 0; d <= i; d++)
        is_expanded |= STRIDE(input, d) == 0 && DIM(input, d) > 1;
    if (STRIDE(input, i) == ITEM(input) && !is_expanded)
        return DECLINE;
    PyObject *result = new_of_type(input, NDIM(input), SHAPE(input));
    if (result) {
        Box box = box_between(input, result);
        if (!copy_box(&box))
            Py_CLEAR(result);
    }
    return result;
}

/* Write the first element of a row-major array to all places. */
static void repeat(PyArrayObject *array)
{
    Pair first;
    npy_intp item = PyArray_ITEMSIZE(array);
    memcpy(&first, PyArray_DATA(array), (size_t)item);
    Box box = box_of_rows(&first, PyArray_DATA(array), item, 1, 0, PyArray_SIZE(array), 0);
    copy_box(&box);
}

/* repeat_first(array), in place. */
static PyObject *repeat_first(PyObject *const *arguments, const KernelEntry *entry)
{
    PyObject *array = arguments[0];
    if (!PyArray_CheckExact(array) || !size_of(array) || !PyArray_ISCARRAY(ARRAY(array)) ||
        PyDataType_REFCHK(PyArray_DESCR(ARRAY(array))) || !is_copied_size(ITEM(array)))
        return DECLINE;
    repeat(ARRAY(array));
    return Py_NewRef(array);
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
