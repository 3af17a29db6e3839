/* The compiled kernels of kernels/pooling_to_size.py: maxima of windows that divide up the input, and maxima put back. */
#include <string.h>

#include "windows.h"

typedef struct {
    const void *input;
    void *output;
    npy_int64 *indices;
    ptrdiff_t sizes[WINDOW_DIMS], counts[WINDOW_DIMS];
    ptrdiff_t *begins[WINDOW_DIMS], *ends[WINDOW_DIMS]; /* of windows */
} Adaptive;

typedef struct {
    const void *input;
    void *output;
    const npy_int64 *indices;
    ptrdiff_t count, plane; /* elements of a plane, before and after */
    int failed;
} Unpooling;

#define LOOPS "adaptive_loops.h"
#include "for_each_real.h"

/* Window i of a dimension takes the elements that the i-th of `counts` equal parts touches. */
static void list_windows(Adaptive *a, ptrdiff_t *room)
{
    for (int d = 0; d < WINDOW_DIMS; d++) {
        ptrdiff_t size = a->sizes[d], count = a->counts[d];
        a->begins[d] = room;
        a->ends[d] = room + count;
        room += 2 * count;
        for (ptrdiff_t i = 0; i < count; i++) {
            a->begins[d][i] = i * size / count;
            a->ends[d][i] = ((i + 1) * size + count - 1) / count;
        }
    }
}

static PyObject *_adaptive(PyObject *const *slots, const KernelEntry *entry)
{
    Adaptive a;
    int dims = PyTuple_CheckExact(slots[1]) ? (int)PyTuple_GET_SIZE(slots[1]) : 0;
    if (dims < 1 || dims > WINDOW_DIMS || NDIM(slots[0]) < dims || !read_sizes(slots[1], dims, 1, 1, a.counts))
        return DECLINE;
    npy_intp shape[NPY_MAXDIMS];
    int ndim = NDIM(slots[0]), type = type_of(slots[0]);
    ptrdiff_t plane = 1;
    for (int d = 0; d < WINDOW_DIMS; d++)
        a.sizes[d] = 1;
    for (int d = 0; d < ndim; d++) {
        int axis = d - (ndim - dims);
        shape[d] = axis < 0 ? DIM(slots[0], d) : a.counts[WINDOW_DIMS - dims + axis];
        if (axis >= 0)
            plane *= a.sizes[WINDOW_DIMS - dims + axis] = DIM(slots[0], d);
    }
    ptrdiff_t *room = PyMem_RawMalloc((size_t)(2 * (a.counts[0] + a.counts[1] + a.counts[2])) * sizeof(ptrdiff_t));
    if (!room)
        return PyErr_NoMemory();
    list_windows(&a, room);
    PyObject *results[2] = {new_array(ndim, shape, type), new_array(ndim, shape, NPY_INT64)};
    if (all_made(results, 2)) {
        a.input = data_of(slots[0]);
        a.output = data_of(results[0]);
        a.indices = data_of(results[1]);
        run_items(size_of(slots[0]) / plane, plane, FOR_TYPE(type, adaptive_planes), &a);
    }
    PyMem_RawFree(room);
    return pack(2, results);
}

static PyObject *_unpool(PyObject *const *slots, const KernelEntry *entry)
{
    ptrdiff_t sizes[WINDOW_DIMS];
    int dims = PyTuple_CheckExact(slots[2]) ? (int)PyTuple_GET_SIZE(slots[2]) : 0;
    if (dims < 1 || dims > WINDOW_DIMS || NDIM(slots[0]) < dims || !read_sizes(slots[2], dims, 1, 1, sizes))
        return DECLINE;
    npy_intp shape[NPY_MAXDIMS];
    int ndim = NDIM(slots[0]), type = type_of(slots[0]);
    Unpooling u = {.input = data_of(slots[0]), .indices = data_of(slots[1]), .count = 1,
                   .plane = sizes[0] * sizes[1] * sizes[2]};
    for (int d = 0; d < ndim; d++) {
        int axis = d - (ndim - dims);
        shape[d] = axis < 0 ? DIM(slots[0], d) : sizes[WINDOW_DIMS - dims + axis];
        if (axis >= 0)
            u.count *= DIM(slots[0], d);
    }
    PyObject *result = new_array(ndim, shape, type);
    if (result) {
        u.output = data_of(result);
        run_items(size_of(slots[0]) / u.count, u.plane, FOR_TYPE(type, unpool_planes), &u);
        if (u.failed) /* the reference says which index */
            Py_CLEAR(result);
    }
    return result;
}

const KernelEntry adaptive_pooling_kernels[] = {
    {"_adaptive", _adaptive, "r"},
    {"_unpool", _unpool, "pI"},
    {NULL},
};
