/* Indices in several dimensions: kernels of kernels/indexing.py and kernels/scattering.py, for row-major arrays, neighbouring
 * dimensions, and positions of int64 of one shape. Positions become places in the flattened dimensions; where one is out of
 * range the reference is asked, which says so.
 */
#include "gathers.h"

typedef struct {
    const int64_t *positions;
    int64_t *made; /* what `positions` are in, where they had to be computed */
    ptrdiff_t count;
    Layout layout; /* of the indexed array: before, in and after the indexed dimensions */
    int first, number;
    PyObject *lead; /* one of the indices: all have its shape */
} Places;

/* Whether every index is of int64, of one shape, and within its dimension. */
static int indices_fit(PyObject *const *indices, int number, const npy_intp *sizes)
{
    for (int k = 0; k < number; k++)
        if (!are_positions(indices[k]) || !same_shape(indices[0], indices[k]) ||
            !all_within(data_of(indices[k]), size_of(indices[k]), -sizes[k], sizes[k]))
            return 0;
    return 1;
}

/* Read `indices` and `dims` for an array of this shape; 0 where they are not what is compiled, -1 with an exception. */
static int find_places(PyObject *indices, PyObject *dims, int ndim, const npy_intp *shape, Places *places)
{
    npy_intp along[NPY_MAXDIMS];
    int number = PyTuple_CheckExact(dims) ? read_shape(dims, along) : -1;
    if (number < 1 || !(PyList_CheckExact(indices) || PyTuple_CheckExact(indices)) ||
        PySequence_Fast_GET_SIZE(indices) != number || along[0] < 0 || along[0] > ndim - number)
        return 0;
    for (int k = 1; k < number; k++)
        if (along[k] != along[0] + k)
            return 0;
    PyObject *const *items = PySequence_Fast_ITEMS(indices);
    *places = (Places){.first = (int)along[0], .number = number, .lead = items[0], .layout = {1, 1, 1}};
    if (!indices_fit(items, number, shape + places->first) || !(places->count = size_of(items[0])))
        return 0;
    for (int i = 0; i < ndim; i++)
        *(i < places->first            ? &places->layout.outer
          : i < places->first + number ? &places->layout.count
                                       : &places->layout.inner) *= shape[i];
    if (number == 1 && all_within(data_of(items[0]), places->count, 0, shape[places->first])) {
        places->positions = data_of(items[0]);
        return 1;
    }
    int64_t *made = PyMem_RawCalloc((size_t)places->count, sizeof(int64_t));
    if (!made) {
        PyErr_NoMemory();
        return -1;
    }
    for (int k = 0; k < number; k++) {
        const int64_t *positions = data_of(items[k]);
        int64_t size = shape[places->first + k];
        for (ptrdiff_t i = 0; i < places->count; i++)
            made[i] = made[i] * size + positions[i] + (positions[i] < 0 ? size : 0);
    }
    places->positions = places->made = made;
    return 1;
}

/* The shape of what is taken: that of the array with the indexed dimensions replaced by the indices'. */
static int shape_taken(const Places *places, int ndim, const npy_intp *shape, npy_intp *taken)
{
    int made = 0, total = ndim - places->number + NDIM(places->lead);
    if (total > NPY_MAXDIMS)
        return -1;
    for (int i = 0; i < places->first; i++)
        taken[made++] = shape[i];
    for (int i = 0; i < NDIM(places->lead); i++)
        taken[made++] = SHAPE(places->lead)[i];
    for (int i = places->first + places->number; i < ndim; i++)
        taken[made++] = shape[i];
    return made;
}

/* index(input, indices, dims) */
static PyObject *index_array(PyObject *const *arguments, const KernelEntry *entry)
{
    Places places;
    npy_intp shape[NPY_MAXDIMS];
    if (!is_plain_memory(arguments[0]) || !size_of(arguments[0]))
        return DECLINE;
    PyObject *input = arguments[0];
    if (find_places(arguments[1], arguments[2], NDIM(input), SHAPE(input), &places) <= 0)
        return DECLINE;
    int ndim = shape_taken(&places, NDIM(input), SHAPE(input), shape);
    PyObject *result = ndim >= 0 ? new_of_type(input, ndim, shape) : NULL;
    if (result) {
        Layout layout = places.layout;
        Take take = {places.positions, places.count, layout.outer, layout.count, layout.inner * ITEM(input), data_of(input),
                     data_of(result)};
        take_positions(&take);
    }
    PyMem_RawFree(places.made);
    return result;
}

/* index_back(grad, shape, indices, dims) */
static PyObject *index_back(PyObject *const *arguments, const KernelEntry *entry)
{
    Places places;
    npy_intp shape[NPY_MAXDIMS];
    int ndim;
    if (!is_real_array(arguments[0]) || (ndim = read_shape(arguments[1], shape)) < 1 ||
        find_places(arguments[2], arguments[3], ndim, shape, &places) <= 0)
        return DECLINE;
    Layout layout = places.layout;
    PyObject *result = NULL;
    if (size_of(arguments[0]) == layout.outer * places.count * layout.inner) {
        PyObject *grad = row_major(arguments[0]);
        result = grad ? PyArray_ZEROS(ndim, shape, type_of(grad), 0) : NULL;
        if (result) {
            Addition addition = {places.positions, places.count, layout.outer, layout.count, layout.inner, data_of(grad),
                                 data_of(result), -1};
            add_at(type_of(grad), &addition);
        }
        Py_XDECREF(grad);
    }
    PyMem_RawFree(places.made);
    return result;
}

/* Write rows of values, or one value everywhere, in the order of the positions. */
static void put_rows(const Places *places, char *to, const char *from, ptrdiff_t item, int repeated)
{
    Layout layout = places->layout;
    ptrdiff_t bytes = layout.inner * item;
    for (ptrdiff_t outer = 0; outer < layout.outer; outer++)
        for (ptrdiff_t i = 0; i < places->count; i++) {
            char *row = to + (outer * layout.count + places->positions[i]) * bytes;
            if (!repeated)
                memcpy(row, from + (outer * places->count + i) * bytes, bytes);
            else
                for (ptrdiff_t j = 0; j < layout.inner; j++)
                    memcpy(row + j * item, from, item);
        }
}

/* Whether values have the shape that is written to, but for dimensions of size 1 in front. */
static int values_fit(PyObject *values, int ndim, const npy_intp *shape)
{
    int skipped = ndim - NDIM(values);
    if (skipped < 0)
        return 0;
    for (int i = 0; i < ndim; i++)
        if (shape[i] != (i < skipped ? 1 : SHAPE(values)[i - skipped]))
            return 0;
    return 1;
}

/* index_put_into(target, indices, dims, values, accumulate): in place; None. */
static PyObject *index_put_into(PyObject *const *arguments, const KernelEntry *entry)
{
    Places places;
    npy_intp shape[NPY_MAXDIMS];
    int adds;
    if (!is_plain_memory(arguments[0]) || !is_plain_memory(arguments[3]) ||
        !PyArray_ISWRITEABLE((PyArrayObject *)arguments[0]) || type_of(arguments[0]) != type_of(arguments[3]) ||
        ITEM(arguments[0]) != ITEM(arguments[3]) || !read_flag(arguments[4], 0, &adds) || !NDIM(arguments[0]))
        return DECLINE;
    PyObject *target = arguments[0], *values = arguments[3];
    if (adds && !is_plain(target))
        return DECLINE;
    if (find_places(arguments[1], arguments[2], NDIM(target), SHAPE(target), &places) <= 0)
        return DECLINE;
    Layout layout = places.layout;
    int ndim = shape_taken(&places, NDIM(target), SHAPE(target), shape), repeated = size_of(values) == 1;
    int fits = ndim >= 0 && (values_fit(values, ndim, shape) || (repeated && !adds && NDIM(values) <= ndim));
    if (fits && adds) {
        Addition addition = {places.positions, places.count, layout.outer, layout.count, layout.inner, data_of(values),
                             data_of(target), -1};
        add_at(type_of(target), &addition);
    } else if (fits) {
        put_rows(&places, data_of(target), data_of(values), ITEM(target), repeated);
    }
    PyMem_RawFree(places.made);
    return fits ? Py_NewRef(Py_None) : DECLINE;
}

const KernelEntry indexing_kernels[] = {
    {"index", index_array},
    {"index_back", index_back},
    {"index_put_into", index_put_into},
    {NULL},
};
