/* The compiled kernels `im2col` and `col2im` of kernels/folding.py. */
#include <string.h>

#include "windows.h"

typedef struct {
    void *images, *columns;
    ptrdiff_t size[WINDOW_DIMS], kernel[WINDOW_DIMS], dilation[WINDOW_DIMS], padding[WINDOW_DIMS], stride[WINDOW_DIMS];
    ptrdiff_t count[WINDOW_DIMS]; /* of windows */
} Folding;

#define LOOPS "folding_loops.h"
#include "for_each_real.h"

/* Kernel, dilation, padding and stride, which stand side by side, for images of the sizes that are set. */
static int read_folding(PyObject *const *slots, Folding *f)
{
    if (!read_sizes(slots[0], 2, 1, 1, f->kernel) || !read_sizes(slots[1], 2, 1, 1, f->dilation) ||
        !read_sizes(slots[2], 2, 0, 0, f->padding) || !read_sizes(slots[3], 2, 1, 1, f->stride))
        return 0;
    for (int d = 1; d < WINDOW_DIMS; d++) {
        ptrdiff_t span = f->size[d] + 2 * f->padding[d] - f->dilation[d] * (f->kernel[d] - 1) - 1;
        if (span < 0)
            return 0;
        f->count[d] = span / f->stride[d] + 1;
    }
    return 1;
}

static PyObject *im2col(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "kernel_size", "dilation", "padding", "stride");
    Folding f;
    if (!is_real_array(slots[0]) || !size_of(slots[0]) || PyArray_NDIM((PyArrayObject *)slots[0]) < 3 ||
        PyArray_NDIM((PyArrayObject *)slots[0]) > 4)
        return DECLINE;
    int ndim = PyArray_NDIM((PyArrayObject *)slots[0]), type = type_of(slots[0]);
    const npy_intp *shape = PyArray_DIMS((PyArrayObject *)slots[0]);
    f.size[1] = shape[ndim - 2];
    f.size[2] = shape[ndim - 1];
    if (!read_folding(slots + 1, &f))
        return DECLINE;
    ptrdiff_t taps = f.kernel[1] * f.kernel[2], windows = f.count[1] * f.count[2];
    npy_intp result_shape[3] = {shape[0], shape[ndim - 3] * taps, windows};
    PyObject *plain = row_major(slots[0]);
    PyObject *result = plain ? new_array(ndim - 1, result_shape + (4 - ndim), type) : NULL;
    if (result) {
        f.images = data_of(plain);
        f.columns = data_of(result);
        run_items(size_of(plain) / (f.size[1] * f.size[2]), taps * windows, FOR_TYPE(type, unfold_planes), &f);
    }
    Py_XDECREF(plain);
    return result;
}

static PyObject *col2im(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "output_size", "kernel_size", "dilation", "padding", "stride");
    Folding f;
    if (!is_real_array(slots[0]) || !size_of(slots[0]) || PyArray_NDIM((PyArrayObject *)slots[0]) < 2 ||
        PyArray_NDIM((PyArrayObject *)slots[0]) > 3 || !read_sizes(slots[1], 2, 1, 1, f.size) || !read_folding(slots + 2, &f))
        return DECLINE;
    int ndim = PyArray_NDIM((PyArrayObject *)slots[0]), type = type_of(slots[0]);
    const npy_intp *shape = PyArray_DIMS((PyArrayObject *)slots[0]);
    ptrdiff_t taps = f.kernel[1] * f.kernel[2], windows = f.count[1] * f.count[2];
    if (shape[ndim - 2] % taps || shape[ndim - 1] != windows)
        return DECLINE;
    npy_intp result_shape[4] = {shape[0], shape[ndim - 2] / taps, f.size[1], f.size[2]};
    PyObject *plain = row_major(slots[0]);
    PyObject *result = plain ? new_array(ndim + 1, result_shape + (3 - ndim), type) : NULL;
    if (result) {
        f.columns = data_of(plain);
        f.images = data_of(result);
        run_items(size_of(result) / (f.size[1] * f.size[2]), taps * windows, FOR_TYPE(type, fold_planes), &f);
    }
    Py_XDECREF(plain);
    return result;
}

const KernelEntry folding_kernels[] = {
    {"im2col", im2col},
    {"col2im", col2im},
    {NULL},
};
