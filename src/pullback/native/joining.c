/* Arrays put together and taken apart: kernels of kernels/joining.py, for row-major arrays of any one dtype. */
#include "casts.h"
#include "views.h"

#define MOST_PARTS 64

/* Parts of a result, as rows of bytes: of each outer position every part has one. */
typedef struct {
    const char *data[MOST_PARTS];
    npy_intp bytes[MOST_PARTS];
    int count;
    npy_intp outer;
} Parts;

static int is_joinable(PyObject *array)
{
    return PyArray_CheckExact(array) && PyArray_ISCARRAY_RO((PyArrayObject *)array) &&
           !PyDataType_REFCHK(PyArray_DESCR((PyArrayObject *)array));
}

static npy_intp product(const npy_intp *sizes, int begin, int end)
{
    npy_intp result = 1;
    for (int i = begin; i < end; i++)
        result *= sizes[i];
    return result;
}

static void add_part(Parts *parts, PyObject *array, int dim)
{
    parts->data[parts->count] = PyArray_BYTES((PyArrayObject *)array);
    parts->bytes[parts->count++] =
        product(SHAPE(array), dim, NDIM(array)) * ITEM(array);
}

static PyObject *join(const Parts *parts, PyObject *like, int ndim, const npy_intp *shape)
{
    PyObject *result = new_of_type(like, ndim, shape);
    if (!result)
        return NULL;
    char *to = PyArray_BYTES((PyArrayObject *)result);
    for (npy_intp row = 0; row < parts->outer; row++)
        for (int i = 0; i < parts->count; i++) {
            memcpy(to, parts->data[i] + row * parts->bytes[i], parts->bytes[i]);
            to += parts->bytes[i];
        }
    return result;
}

/* Whether two arrays have the same dtype and, but for one dimension (-1 for none), the same shape. */
static int fit_together(PyObject *first, PyObject *second, int dim)
{
    if (PyArray_DESCR((PyArrayObject *)first) != PyArray_DESCR((PyArrayObject *)second) || NDIM(first) != NDIM(second))
        return 0;
    for (int i = 0; i < NDIM(first); i++)
        if (i != dim && SHAPE(first)[i] != SHAPE(second)[i])
            return 0;
    return 1;
}

/* The arrays of a list or tuple; NULL where it is none or has too few or too many. */
static PyObject **items_of(PyObject *sequence, Py_ssize_t *count)
{
    if (!PyList_CheckExact(sequence) && !PyTuple_CheckExact(sequence))
        return NULL;
    *count = PySequence_Fast_GET_SIZE(sequence);
    return *count > 0 && *count <= MOST_PARTS ? PySequence_Fast_ITEMS(sequence) : NULL;
}

/* A dimension, counted from the end where it is negative. */
static int read_any_dim(PyObject *given, int ndim, int *dim)
{
    npy_intp value;
    if (!read_size(given, &value))
        return 0;
    *dim = (int)(value < 0 ? value + ndim : value);
    return value >= -ndim && value < ndim;
}

static PyObject *cat(PyObject *const *arguments, const KernelEntry *entry)
{
    Py_ssize_t count = 0;
    int dim;
    PyObject **items = items_of(arguments[0], &count);
    if (!items || !PyArray_CheckExact(items[0]) || !NDIM(items[0]) || !read_any_dim(arguments[1], NDIM(items[0]), &dim))
        return DECLINE;
    Parts parts = {.outer = product(SHAPE(items[0]), 0, dim)};
    npy_intp shape[NPY_MAXDIMS];
    memcpy(shape, SHAPE(items[0]), NDIM(items[0]) * sizeof *shape);
    shape[dim] = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!is_joinable(items[i]) || !fit_together(items[0], items[i], dim) || !PyArray_SIZE((PyArrayObject *)items[i]))
            return DECLINE;
        add_part(&parts, items[i], dim);
        shape[dim] += SHAPE(items[i])[dim];
    }
    return join(&parts, items[0], NDIM(items[0]), shape);
}

static PyObject *stack(PyObject *const *arguments, const KernelEntry *entry)
{
    Py_ssize_t count = 0;
    int dim;
    PyObject **items = items_of(arguments[0], &count);
    if (!items || !PyArray_CheckExact(items[0]) || NDIM(items[0]) + 1 > NPY_MAXDIMS ||
        !read_any_dim(arguments[1], NDIM(items[0]) + 1, &dim))
        return DECLINE;
    Parts parts = {.outer = product(SHAPE(items[0]), 0, dim)};
    npy_intp shape[NPY_MAXDIMS];
    for (int i = 0; i <= NDIM(items[0]); i++)
        shape[i] = i == dim ? count : SHAPE(items[0])[i < dim ? i : i - 1];
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!is_joinable(items[i]) || !fit_together(items[0], items[i], -1))
            return DECLINE;
        add_part(&parts, items[i], dim);
    }
    return join(&parts, items[0], NDIM(items[0]) + 1, shape);
}

/* The views of a dimension that is cut at `sizes`. */
static PyObject *cut(PyObject *input, int dim, const npy_intp *sizes, Py_ssize_t count, int makes_list)
{
    PyObject *views = makes_list ? PyList_New(count) : PyTuple_New(count);
    npy_intp shape[NPY_MAXDIMS], offset = 0;
    memcpy(shape, SHAPE(input), NDIM(input) * sizeof *shape);
    for (Py_ssize_t i = 0; views && i < count; i++) {
        shape[dim] = sizes[i];
        PyObject *view = new_view(input, NDIM(input), shape, STRIDES(input), offset);
        offset += sizes[i] * STRIDE(input, dim);
        if (!view)
            Py_CLEAR(views);
        else if (makes_list)
            PyList_SET_ITEM(views, i, view);
        else
            PyTuple_SET_ITEM(views, i, view);
    }
    return views;
}

static PyObject *split(PyObject *const *arguments, const KernelEntry *entry)
{
    npy_intp split_size, sizes[MOST_PARTS];
    int dim;
    if (!PyArray_CheckExact(arguments[0]) || !PyArray_SIZE((PyArrayObject *)arguments[0]) ||
        !read_dim(arguments[2], NDIM(arguments[0]), &dim) || !read_size(arguments[1], &split_size) || split_size <= 0)
        return DECLINE;
    npy_intp extent = SHAPE(arguments[0])[dim], count = 0;
    for (npy_intp start = 0; start < extent; start += split_size) {
        if (count == MOST_PARTS)
            return DECLINE;
        sizes[count++] = extent - start < split_size ? extent - start : split_size;
    }
    return cut(arguments[0], dim, sizes, count, 0);
}

static PyObject *split_with_sizes(PyObject *const *arguments, const KernelEntry *entry)
{
    npy_intp sizes[NPY_MAXDIMS], total = 0;
    int dim;
    if (!PyArray_CheckExact(arguments[0]) ||
        !PyArray_SIZE((PyArrayObject *)arguments[0]) || !read_dim(arguments[2], NDIM(arguments[0]), &dim))
        return DECLINE;
    int count = read_shape(arguments[1], sizes);
    for (int i = 0; i < count; i++) {
        if (sizes[i] <= 0)
            return DECLINE;
        total += sizes[i];
    }
    return count > 0 && total == SHAPE(arguments[0])[dim] ? cut(arguments[0], dim, sizes, count, 0) : DECLINE;
}

/* cat_back(grad, shapes, dtypes, dim): a view of the gradient for each part, where all have the gradient's dtype. */
static PyObject *cat_back(PyObject *const *arguments, const KernelEntry *entry)
{
    npy_intp sizes[MOST_PARTS], shape[NPY_MAXDIMS], value, total = 0;
    Py_ssize_t count = 0, dtypes = 0;
    if (!PyArray_CheckExact(arguments[0]) || !read_size(arguments[3], &value))
        return DECLINE;
    PyObject *grad = arguments[0], **shapes = items_of(arguments[1], &count), **types = items_of(arguments[2], &dtypes);
    int ndim = NDIM(grad), dim = (int)(value < 0 ? value + ndim : value);
    if (!shapes || !types || count != dtypes || dim < 0 || dim >= ndim || !PyArray_SIZE((PyArrayObject *)grad))
        return DECLINE;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (types[i] != (PyObject *)PyArray_DESCR((PyArrayObject *)grad) || read_shape(shapes[i], shape) != ndim ||
            shape[dim] <= 0)
            return DECLINE;
        total += sizes[i] = shape[dim];
    }
    return total == SHAPE(grad)[dim] ? cut(grad, dim, sizes, count, 1) : DECLINE;
}

/* The gradients of a dimension's parts, one after another, where every part has one. */
static PyObject *join_gradients(PyObject *grads, PyObject *shape, PyObject *dtype, int dim)
{
    Py_ssize_t count = 0;
    npy_intp wanted[NPY_MAXDIMS], total = 0;
    PyObject **items = items_of(grads, &count);
    int ndim = read_shape(shape, wanted);
    if (!items || ndim <= dim || product(wanted, 0, ndim) <= 0)
        return DECLINE;
    Parts parts = {.outer = product(wanted, 0, dim)};
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!is_joinable(items[i]) || (PyObject *)PyArray_DESCR((PyArrayObject *)items[i]) != dtype ||
            NDIM(items[i]) != ndim)
            return DECLINE;
        for (int d = 0; d < ndim; d++)
            if (d != dim && SHAPE(items[i])[d] != wanted[d])
                return DECLINE;
        add_part(&parts, items[i], dim);
        total += SHAPE(items[i])[dim];
    }
    return total == wanted[dim] ? join(&parts, items[0], ndim, wanted) : DECLINE;
}

/* split_back(grads, shape, dtype, split_size, dim) and split_with_sizes_back(grads, shape, dtype, split_sizes, dim) */
static PyObject *split_back(PyObject *const *arguments, const KernelEntry *entry)
{
    npy_intp dim;
    if (!read_size(arguments[4], &dim) || dim < 0)
        return DECLINE;
    return join_gradients(arguments[0], arguments[1], arguments[2], (int)dim);
}

const KernelEntry joining_kernels[] = {
    {"cat", cat},
    {"cat_back", cat_back},
    {"stack", stack},
    {"split", split},
    {"split_with_sizes", split_with_sizes},
    {"split_back", split_back},
    {"split_with_sizes_back", split_back},
    {NULL},
};
