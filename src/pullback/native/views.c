/* Views in another shape: kernels of kernels/shape.py and kernels/indexing.py. NumPy's own ways to a view cost between
 * 0.2 and 2 microseconds, of which making the view is 0.1. Arrays without elements are left to the references.
 */
#include "views.h"

#define LONGEST_STEP ((npy_intp)1 << 30) /* longer ones, of which at most one element is taken, could overflow a stride */

static int is_viewable(PyObject *array) { return PyArray_CheckExact(array) && PyArray_SIZE((PyArrayObject *)array) > 0; }

static PyObject *permuted(PyObject *input, const int *dims)
{
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    for (int i = 0; i < NDIM(input); i++) {
        shape[i] = SHAPE(input)[dims[i]];
        strides[i] = STRIDES(input)[dims[i]];
    }
    return new_view(input, NDIM(input), shape, strides, 0);
}

static PyObject *transpose(PyObject *const *arguments, const KernelEntry *entry)
{
    int first, second, dims[NPY_MAXDIMS];
    if (!is_viewable(arguments[0]) ||
        !read_dim(arguments[1], NDIM(arguments[0]), &first) || !read_dim(arguments[2], NDIM(arguments[0]), &second))
        return DECLINE;
    for (int i = 0; i < NDIM(arguments[0]); i++)
        dims[i] = i == first ? second : i == second ? first : i;
    return permuted(arguments[0], dims);
}

static PyObject *t(PyObject *const *arguments, const KernelEntry *entry)
{
    static const int exchanged[] = {1, 0};
    if (!is_viewable(arguments[0]) || NDIM(arguments[0]) != 2)
        return DECLINE;
    return permuted(arguments[0], exchanged);
}

static PyObject *permute(PyObject *const *arguments, const KernelEntry *entry)
{
    npy_intp wanted[NPY_MAXDIMS];
    int dims[NPY_MAXDIMS], is_taken[NPY_MAXDIMS] = {0};
    if (!is_viewable(arguments[0]) || !NDIM(arguments[0]) || read_shape(arguments[1], wanted) != NDIM(arguments[0]))
        return DECLINE;
    for (int i = 0; i < NDIM(arguments[0]); i++) {
        if (wanted[i] < 0 || wanted[i] >= NDIM(arguments[0]) || is_taken[wanted[i]]++)
            return DECLINE;
        dims[i] = (int)wanted[i];
    }
    return permuted(arguments[0], dims);
}

static PyObject *select_position(PyObject *const *arguments, const KernelEntry *entry)
{
    int dim;
    npy_intp index, shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    if (!is_viewable(arguments[0]) ||
        !read_dim(arguments[1], NDIM(arguments[0]), &dim) || !read_size(arguments[2], &index))
        return DECLINE;
    PyObject *input = arguments[0];
    npy_intp size = SHAPE(input)[dim];
    if (index < -size || index >= size)
        return DECLINE;
    for (int i = 0; i < NDIM(input) - 1; i++) {
        shape[i] = SHAPE(input)[i < dim ? i : i + 1];
        strides[i] = STRIDES(input)[i < dim ? i : i + 1];
    }
    return new_view(input, NDIM(input) - 1, shape, strides, (index < 0 ? index + size : index) * STRIDES(input)[dim]);
}

static PyObject *slice_view(PyObject *const *arguments, const KernelEntry *entry)
{
    int dim;
    npy_intp start, end, step, shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    if (!is_viewable(arguments[0]) ||
        !read_dim(arguments[1], NDIM(arguments[0]), &dim) || !read_size(arguments[2], &start) ||
        !read_size(arguments[3], &end) || !read_size(arguments[4], &step) || step <= 0 || step > LONGEST_STEP)
        return DECLINE;
    PyObject *input = arguments[0];
    npy_intp length = PySlice_AdjustIndices(SHAPE(input)[dim], &start, &end, step);
    if (length <= 0)
        return DECLINE;
    memcpy(shape, SHAPE(input), NDIM(input) * sizeof *shape);
    memcpy(strides, STRIDES(input), NDIM(input) * sizeof *strides);
    shape[dim] = length;
    strides[dim] *= step;
    return new_view(input, NDIM(input), shape, strides, start * STRIDES(input)[dim]);
}

static PyObject *unsqueeze(PyObject *const *arguments, const KernelEntry *entry)
{
    npy_intp wanted, shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    if (!is_viewable(arguments[0]) || !read_size(arguments[1], &wanted))
        return DECLINE;
    PyObject *input = arguments[0];
    int ndim = NDIM(input);
    if (wanted < -ndim - 1 || wanted > ndim || ndim + 1 > NPY_MAXDIMS)
        return DECLINE;
    int dim = (int)(wanted < 0 ? wanted + ndim + 1 : wanted);
    for (int i = 0; i <= ndim; i++) {
        shape[i] = i == dim ? 1 : SHAPE(input)[i < dim ? i : i - 1];
        strides[i] = i != dim ? STRIDES(input)[i < dim ? i : i - 1]
                     : dim < ndim ? SHAPE(input)[dim] * STRIDES(input)[dim]
                                  : ITEM(input);
    }
    return new_view(input, ndim + 1, shape, strides, 0);
}

static PyObject *expand(PyObject *const *arguments, const KernelEntry *entry)
{
    npy_intp size[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    if (!is_viewable(arguments[0]))
        return DECLINE;
    PyObject *input = arguments[0];
    int ndim = read_shape(arguments[1], size), lead = ndim - NDIM(input);
    if (ndim < 0 || lead < 0)
        return DECLINE;
    for (int i = ndim - 1; i >= 0; i--) {
        npy_intp have = i >= lead ? SHAPE(input)[i - lead] : 1;
        npy_intp stride = i >= lead       ? STRIDES(input)[i - lead]
                          : i + 1 == ndim ? ITEM(input)
                                          : size[i + 1] * strides[i + 1];
        if (size[i] == -1 && i >= lead)
            size[i] = have;
        if (size[i] <= 0 || (have != size[i] && have != 1))
            return DECLINE;
        strides[i] = have == size[i] ? stride : 0;
    }
    return new_view(input, ndim, size, strides, 0);
}

/* The same row-major elements in another shape, in which one size may be -1. */
static PyObject *reshape(PyObject *const *arguments, const KernelEntry *entry)
{
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS], known = 1;
    if (!is_viewable(arguments[0]) || !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)arguments[0]))
        return DECLINE;
    npy_intp count = PyArray_SIZE((PyArrayObject *)arguments[0]), stride = ITEM(arguments[0]);
    int ndim = read_shape(arguments[1], shape), unknown = -1;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] == -1 && unknown < 0)
            unknown = i;
        else if (shape[i] <= 0 || shape[i] > count)
            return DECLINE;
        else
            known *= shape[i];
        if (known > count)
            return DECLINE;
    }
    if (ndim < 0 || (unknown < 0 ? known != count : count % known))
        return DECLINE;
    if (unknown >= 0)
        shape[unknown] = count / known;
    for (int i = ndim - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= shape[i];
    }
    return new_view(arguments[0], ndim, shape, strides, 0);
}

/* Where an array is: NumPy tells it in two microseconds, by way of a dictionary. Subclasses are as good as arrays here. */
static PyObject *data_address(PyObject *const *arguments, const KernelEntry *entry)
{
    if (!PyArray_Check(arguments[0]))
        return DECLINE;
    return PyLong_FromVoidPtr(PyArray_DATA((PyArrayObject *)arguments[0]));
}

static PyObject *memory_bounds(PyObject *const *arguments, const KernelEntry *entry)
{
    if (!PyArray_Check(arguments[0]) || !PyArray_SIZE((PyArrayObject *)arguments[0]))
        return DECLINE;
    size_t low = (size_t)PyArray_DATA((PyArrayObject *)arguments[0]);
    size_t high = low + (size_t)PyArray_ITEMSIZE((PyArrayObject *)arguments[0]);
    for (int i = 0; i < NDIM(arguments[0]); i++) {
        npy_intp reach = (SHAPE(arguments[0])[i] - 1) * STRIDES(arguments[0])[i];
        if (reach < 0)
            low += (size_t)reach;
        else
            high += (size_t)reach;
    }
    return Py_BuildValue("(NN)", PyLong_FromSize_t(low), PyLong_FromSize_t(high));
}

const KernelEntry view_kernels[] = {
    {"data_address", data_address},
    {"memory_bounds", memory_bounds},
    {"transpose", transpose},
    {"t", t},
    {"permute", permute},
    {"select", select_position},
    {"select_part", select_position},
    {"slice_view", slice_view},
    {"unsqueeze", unsqueeze},
    {"expand", expand},
    {"reshape", reshape},
    {"view", reshape},
    {"unsafe_view", reshape},
    {NULL},
};
