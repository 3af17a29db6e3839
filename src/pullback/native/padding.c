/* The compiled kernels of kernels/padding.py, for up to three padded dimensions. */
#include <string.h>

#include "windows.h"

/* How one dimension is padded: where each place of the result is taken from (-1 for the constant). */
typedef struct {
    ptrdiff_t size, result, before;
    ptrdiff_t begin, end; /* of the middle, which lies as it was */
    ptrdiff_t *source;
} PadAxis;

typedef struct {
    const void *input;
    void *output;
    double value;
    PadAxis axes[WINDOW_DIMS];
    ptrdiff_t *memory;
} Padding;

#define LOOPS "padding_loops.h"
#include "for_each_real.h"

typedef enum { CONSTANT, REFLECT, REPLICATE, CIRCULAR } Mode;

static int read_mode(PyObject *object, Mode *mode)
{
    static const char *const names[] = {"", "reflect", "replicate", "circular"};
    for (int i = REFLECT; object && PyUnicode_CheckExact(object) && i <= CIRCULAR; i++)
        if (!PyUnicode_CompareWithASCIIString(object, names[i])) {
            *mode = (Mode)i;
            return 1;
        }
    return 0;
}

static ptrdiff_t source_of(ptrdiff_t place, ptrdiff_t size, Mode mode)
{
    if (place >= 0 && place < size)
        return place;
    if (mode == REPLICATE)
        return place < 0 ? 0 : size - 1;
    if (mode == CIRCULAR)
        return (place % size + size) % size;
    if (mode == REFLECT)
        return place < 0 ? -place : 2 * (size - 1) - place;
    return -1;
}

/* Fill in one dimension's table; 0 where an edge would be taken from beyond the input. */
static int list_sources(PadAxis *axis, Mode mode)
{
    axis->begin = axis->before > 0 ? axis->before : 0;
    axis->end = axis->before + axis->size < axis->result ? axis->before + axis->size : axis->result;
    if (axis->end < axis->begin)
        return 0;
    for (ptrdiff_t i = 0; i < axis->result; i++) {
        axis->source[i] = source_of(i - axis->before, axis->size, mode);
        if (axis->source[i] >= axis->size || (mode != CONSTANT && axis->source[i] < 0))
            return 0;
    }
    return 1;
}

/* Read `pad`, (before, after) from the last dimension on, for these last sizes, which become those of `padded` (NULL where
 * they are not known); the number of padded dimensions, or 0. */
static int read_padding(PyObject *pad, int ndim, const npy_intp *shape, const npy_intp *padded, Mode mode, Padding *p)
{
    Py_ssize_t count = pad && PyTuple_CheckExact(pad) ? PyTuple_GET_SIZE(pad) : 0;
    int dims = (int)count / 2;
    ptrdiff_t total = 0;
    if (count % 2 || dims < 1 || dims > WINDOW_DIMS || dims > ndim)
        return 0;
    for (int d = 0; d < WINDOW_DIMS; d++) {
        int from_last = WINDOW_DIMS - 1 - d;
        long before = 0, after = 0, least = mode == CONSTANT ? -(1 << 30) : 0;
        if (from_last < dims && (!read_integer(PyTuple_GET_ITEM(pad, 2 * from_last), least, 1 << 30, &before) ||
                                 !read_integer(PyTuple_GET_ITEM(pad, 2 * from_last + 1), least, 1 << 30, &after)))
            return 0;
        ptrdiff_t size = from_last < dims ? shape[ndim - 1 - from_last] : 1;
        p->axes[d] = (PadAxis){.size = size, .result = size + before + after, .before = before};
        if (size < 1 || p->axes[d].result < 1)
            return 0;
        if (padded && from_last < dims && p->axes[d].result != padded[ndim - 1 - from_last])
            return 0;
        total += p->axes[d].result;
    }
    p->memory = PyMem_RawMalloc((size_t)total * sizeof(ptrdiff_t));
    ptrdiff_t *next = p->memory;
    for (int d = 0; next && d < WINDOW_DIMS; next += p->axes[d++].result) {
        p->axes[d].source = next;
        if (!list_sources(&p->axes[d], mode)) {
            PyMem_RawFree(p->memory);
            return 0;
        }
    }
    return p->memory ? dims : 0;
}

static PyObject *pad(PyObject *input, PyObject *amounts, Mode mode, double value)
{
    Padding p = {.value = value};
    int ndim = NDIM(input), type = type_of(input);
    int dims = read_padding(amounts, ndim, SHAPE(input), NULL, mode, &p);
    if (!dims)
        return DECLINE;
    npy_intp shape[NPY_MAXDIMS];
    for (int d = 0; d < ndim; d++)
        shape[d] = d < ndim - dims ? DIM(input, d) : p.axes[WINDOW_DIMS - (ndim - d)].result;
    PyObject *result = new_array(ndim, shape, type);
    if (result) {
        p.input = data_of(input);
        p.output = data_of(result);
        run_items(size_of(result) / p.axes[2].result, p.axes[2].result, FOR_TYPE(type, pad_rows), &p);
    }
    PyMem_RawFree(p.memory);
    return result;
}

static PyObject *constant_pad_nd(PyObject *const *slots, const KernelEntry *entry)
{
    return pad(slots[0], slots[1], CONSTANT, number_of(slots[2]));
}

static PyObject *edge_pad(PyObject *const *slots, const KernelEntry *entry)
{
    Mode mode;
    return read_mode(slots[2], &mode) ? pad(slots[0], slots[1], mode, 0) : DECLINE;
}

static PyObject *edge_pad_back(PyObject *const *slots, const KernelEntry *entry)
{
    Mode mode;
    Padding p = {.value = 0};
    npy_intp shape[NPY_MAXDIMS];
    PyObject *grad = slots[0], *sizes = slots[1];
    if (!PyTuple_Check(sizes) || !read_mode(slots[3], &mode))
        return DECLINE;
    int ndim = NDIM(grad), given = (int)PyTuple_GET_SIZE(sizes), type = type_of(grad);
    for (int d = 0; d < ndim; d++) {
        long padded = (long)DIM(grad, d), size = padded;
        int place = d - (ndim - given);
        if (given > ndim || (place >= 0 && !read_integer(PyTuple_GET_ITEM(sizes, place), 1, padded, &size)))
            return DECLINE;
        shape[d] = size;
    }
    int dims = read_padding(slots[2], ndim, shape, SHAPE(grad), mode, &p), fits = 1;
    if (!dims)
        return DECLINE;
    for (int d = 0; d < ndim - dims; d++)
        fits = fits && DIM(grad, d) == shape[d];
    if (!fits) {
        PyMem_RawFree(p.memory);
        return DECLINE;
    }
    PyObject *result = new_array(ndim, shape, type);
    if (result) {
        ptrdiff_t plane = p.axes[0].size * p.axes[1].size * p.axes[2].size;
        p.input = data_of(grad);
        p.output = data_of(result);
        run_items(size_of(result) / plane, plane, FOR_TYPE(type, add_planes), &p);
    }
    PyMem_RawFree(p.memory);
    return result;
}

const KernelEntry padding_kernels[] = {
    {"constant_pad_nd", constant_pad_nd, "r.n"},
    {"edge_pad", edge_pad, "r"},
    {"edge_pad_back", edge_pad_back, "r"},
    {NULL},
};
