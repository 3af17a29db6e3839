/* The compiled kernel of topk in kernels/sorting.py: few elements of long rows. */
#include <stdint.h>

#include "rows.h"

#define MOST 64   /* elements that are kept; more are sorted faster */
#define BLOCK 32  /* elements that are looked at together */

typedef struct {
    Layout layout;
    ptrdiff_t kept;
    const void *input;
    void *values;
    int64_t *places;
} Selection;

#define LOOPS "selection_loops.h"
#include "for_each_real.h"

/* topk(input, k, dim, largest, sorted) along the last dimension; a NaN is larger than every number. */
static PyObject *topk(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "k", "dim", "largest", "sorted");
    PyObject *input = slots[0];
    long kept, dim;
    int largest;
    if (!input || !is_plain(input) || !size_of(input) || !PyArray_NDIM((PyArrayObject *)input) || !slots[2] ||
        !read_flag(slots[3], 1, &largest))
        return DECLINE;
    int last = PyArray_NDIM((PyArrayObject *)input) - 1;
    if (!read_integer(slots[2], last, last, &dim) ||
        !read_integer(slots[1], 1, PyArray_DIM((PyArrayObject *)input, last), &kept) || kept > MOST)
        return DECLINE;
    npy_intp shape[NPY_MAXDIMS];
    memcpy(shape, PyArray_DIMS((PyArrayObject *)input), sizeof(npy_intp) * (size_t)last);
    shape[last] = kept;
    PyObject *values = new_array(last + 1, shape, type_of(input)), *places = new_array(last + 1, shape, NPY_INT64);
    PyObject *result = NULL;
    if (values && places) {
        Selection loop = {layout_along(input, last), kept, data_of(input), data_of(values), data_of(places)};
        int type = type_of(input);
        run_items(loop.layout.outer, 2 * loop.layout.count,
                  largest ? FOR_TYPE(type, select_largest) : FOR_TYPE(type, select_smallest), &loop);
        result = PyTuple_Pack(2, values, places);
    }
    Py_XDECREF(values);
    Py_XDECREF(places);
    return result;
}

const KernelEntry selection_kernels[] = {
    {"topk", topk},
    {NULL},
};
