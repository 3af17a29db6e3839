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

static PyObject *_adaptive(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "counts");
    Adaptive a;
    int dims = slots[1] && PyTuple_CheckExact(slots[1]) ? (int)PyTuple_GET_SIZE(slots[1]) : 0;
    if (!is_real_array(slots[0]) || !size_of(slots[0]) || dims < 1 || dims > WINDOW_DIMS ||
        PyArray_NDIM((PyArrayObject *)slots[0]) < dims || !read_sizes(slots[1], dims, 1, 1, a.counts))
        return DECLINE;
    npy_intp shape[NPY_MAXDIMS];
    int ndim = PyArray_NDIM((PyArrayObject *)slots[0]), type = type_of(slots[0]);
    ptrdiff_t plane = 1;
    for (int d = 0; d < WINDOW_DIMS; d++)
        a.sizes[d] = 1;
    for (int d = 0; d < ndim; d++) {
        int axis = d - (ndim - dims);
        shape[d] = axis < 0 ? PyArray_DIM((PyArrayObject *)slots[0], d) : a.counts[WINDOW_DIMS - dims + axis];
        if (axis >= 0)
            plane *= a.sizes[WINDOW_DIMS - dims + axis] = PyArray_DIM((PyArrayObject *)slots[0], d);
    }
    ptrdiff_t *room = PyMem_RawMalloc((size_t)(2 * (a.counts[0] + a.counts[1] + a.counts[2])) * sizeof(ptrdiff_t));
    if (!room)
        return PyErr_NoMemory();
    list_windows(&a, room);
    PyObject *plain = row_major(slots[0]), *result = NULL;
    PyObject *values = plain ? new_array(ndim, shape, type) : NULL;
    PyObject *indices = values ? new_array(ndim, shape, NPY_INT64) : NULL;
    if (indices) {
        a.input = data_of(plain);
        a.output = data_of(values);
        a.indices = data_of(indices);
        run_items(size_of(plain) / plane, plane, FOR_TYPE(type, adaptive_planes), &a);
        result = PyTuple_Pack(2, values, indices);
    }
    PyMem_RawFree(room);
    Py_XDECREF(plain);
    Py_XDECREF(values);
    Py_XDECREF(indices);
    return result;
}

static PyObject *_unpool(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "indices", "sizes");
    ptrdiff_t sizes[WINDOW_DIMS];
    int dims = slots[2] && PyTuple_CheckExact(slots[2]) ? (int)PyTuple_GET_SIZE(slots[2]) : 0;
    if (!slots[0] || !is_plain(slots[0]) || !size_of(slots[0]) || !slots[1] || !PyArray_CheckExact(slots[1]) ||
        type_of(slots[1]) != NPY_INT64 || !PyArray_ISCARRAY_RO((PyArrayObject *)slots[1]) || !same_shape(slots[0], slots[1]) ||
        dims < 1 || dims > WINDOW_DIMS || PyArray_NDIM((PyArrayObject *)slots[0]) < dims ||
        !read_sizes(slots[2], dims, 1, 1, sizes))
        return DECLINE;
    npy_intp shape[NPY_MAXDIMS];
    int ndim = PyArray_NDIM((PyArrayObject *)slots[0]), type = type_of(slots[0]);
    Unpooling u = {.input = data_of(slots[0]), .indices = data_of(slots[1]), .count = 1,
                   .plane = sizes[0] * sizes[1] * sizes[2]};
    for (int d = 0; d < ndim; d++) {
        int axis = d - (ndim - dims);
        shape[d] = axis < 0 ? PyArray_DIM((PyArrayObject *)slots[0], d) : sizes[WINDOW_DIMS - dims + axis];
        if (axis >= 0)
            u.count *= PyArray_DIM((PyArrayObject *)slots[0], d);
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
    {"_adaptive", _adaptive},
    {"_unpool", _unpool},
    {NULL},
};
