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

/* (input, kernel_size, dilation, padding, stride) */
static PyObject *im2col(PyObject *const *slots, const KernelEntry *entry)
{
    Folding f;
    int ndim = NDIM(slots[0]);
    const npy_intp *shape = SHAPE(slots[0]);
    if (ndim < 3 || ndim > 4)
        return DECLINE;
    f.size[1] = shape[ndim - 2];
    f.size[2] = shape[ndim - 1];
    if (!read_folding(slots + 1, &f))
        return DECLINE;
    ptrdiff_t taps = f.kernel[1] * f.kernel[2], windows = f.count[1] * f.count[2];
    npy_intp result_shape[3] = {shape[0], shape[ndim - 3] * taps, windows};
    PyObject *result = new_array(ndim - 1, result_shape + (4 - ndim), type_of(slots[0]));
    if (result) {
        f.images = data_of(slots[0]);
        f.columns = data_of(result);
        run_items(size_of(slots[0]) / (f.size[1] * f.size[2]), taps * windows, LOOP_FOR(entry, result), &f);
    }
    return result;
}

/* (input, output_size, kernel_size, dilation, padding, stride) */
static PyObject *col2im(PyObject *const *slots, const KernelEntry *entry)
{
    Folding f;
    int ndim = NDIM(slots[0]);
    const npy_intp *shape = SHAPE(slots[0]);
    if (ndim < 2 || ndim > 3 || !read_sizes(slots[1], 2, 1, 1, f.size) || !read_folding(slots + 2, &f))
        return DECLINE;
    ptrdiff_t taps = f.kernel[1] * f.kernel[2], windows = f.count[1] * f.count[2];
    if (shape[ndim - 2] % taps || shape[ndim - 1] != windows)
        return DECLINE;
    npy_intp result_shape[4] = {shape[0], shape[ndim - 2] / taps, f.size[1], f.size[2]};
    PyObject *result = new_array(ndim + 1, result_shape + (3 - ndim), type_of(slots[0]));
    if (result) {
        f.columns = data_of(slots[0]);
        f.images = data_of(result);
        run_items(size_of(result) / (f.size[1] * f.size[2]), taps * windows, LOOP_FOR(entry, result), &f);
    }
    return result;
}

const KernelEntry folding_kernels[] = {
    {"im2col", im2col, "r", LOOP_PAIR(unfold_planes)},
    {"col2im", col2im, "r", LOOP_PAIR(fold_planes)},
    {NULL},
};
