/* The compiled kernels `im2col` and `col2im` of kernels/folding.py. */
#include <string.h>

#include "pooling.h"

typedef struct {
    void *images, *columns;
    PoolAxis axes[WINDOW_DIMS];
} Folding;

#define LOOPS "folding_loops.h"
#include "for_each_real.h"

/* Kernel, dilation, padding and stride stand side by side; read_windows takes them in another order. */
static int read_folding(PyObject *const *slots, const npy_intp *sizes, Folding *f)
{
    PyObject *const steps[] = {slots[0], slots[3], slots[2]};
    return read_windows(steps, 2, sizes, slots[1], 0, f->axes);
}

static PyObject *run_folding(Folding *f, PyObject *images, PyObject *columns, PyObject *result, const KernelEntry *entry)
{
    if (result) {
        f->images = data_of(images);
        f->columns = data_of(columns);
        run_items(size_of(images) / elements_of(f->axes), f->axes[1].kernel * f->axes[2].kernel * windows_of(f->axes),
                  LOOP_FOR(entry, result), f);
    }
    return result;
}

/* (input, kernel_size, dilation, padding, stride) */
static PyObject *im2col(PyObject *const *slots, const KernelEntry *entry)
{
    Folding f;
    int ndim = NDIM(slots[0]);
    const npy_intp *shape = SHAPE(slots[0]);
    if (ndim < 3 || ndim > 4 || !read_folding(slots + 1, shape + ndim - 2, &f))
        return DECLINE;
    npy_intp sizes[3] = {shape[0], shape[ndim - 3] * f.axes[1].kernel * f.axes[2].kernel, windows_of(f.axes)};
    PyObject *result = new_array(ndim - 1, sizes + (4 - ndim), type_of(slots[0]));
    return run_folding(&f, slots[0], result, result, entry);
}

/* (input, output_size, kernel_size, dilation, padding, stride) */
static PyObject *col2im(PyObject *const *slots, const KernelEntry *entry)
{
    Folding f;
    ptrdiff_t given[WINDOW_DIMS];
    int ndim = NDIM(slots[0]);
    const npy_intp *shape = SHAPE(slots[0]);
    if (ndim < 2 || ndim > 3 || !read_sizes(slots[1], 2, 1, 1, given) || !read_folding(slots + 2, given + 1, &f))
        return DECLINE;
    ptrdiff_t taps = f.axes[1].kernel * f.axes[2].kernel;
    if (shape[ndim - 2] % taps || shape[ndim - 1] != windows_of(f.axes))
        return DECLINE;
    npy_intp sizes[4] = {shape[0], shape[ndim - 2] / taps, given[1], given[2]};
    PyObject *result = new_array(ndim + 1, sizes + (3 - ndim), type_of(slots[0]));
    return run_folding(&f, result, slots[0], result, entry);
}

const KernelEntry folding_kernels[] = {
    {"im2col", im2col, "r", LOOP_PAIR(unfold_planes)},
    {"col2im", col2im, "r", LOOP_PAIR(fold_planes)},
    {NULL},
};
