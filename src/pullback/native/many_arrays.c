/* The kernels of kernels/many_arrays.py: what is done to every array of a list, in one call. */
#include "functions.h"
#include "rows.h"

#define LOOPS "many_array_loops.h"
#include "for_each_real.h"

typedef struct {
    PyObject *const *arrays;
    double factor;
    int finite;
} Scaling;

static void scale_some(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    Scaling *scaling = context;
    for (ptrdiff_t i = begin; i < end; i++) {
        PyObject *array = scaling->arrays[i];
        if (!FOR_TYPE(type_of(array), scale_elements)(data_of(array), size_of(array), scaling->factor))
            scaling->finite = 0;
    }
}

/* scale_arrays(arrays, factor) */
static PyObject *scale_arrays(PyObject *const *arguments, const KernelEntry *entry)
{
    Scaling scaling = {NULL, 1, 1};
    if (!PyList_CheckExact(arguments[0]) || !read_number(arguments[1], &scaling.factor))
        return DECLINE;
    ptrdiff_t count = PyList_GET_SIZE(arguments[0]);
    scaling.arrays = PySequence_Fast_ITEMS(arguments[0]);
    for (ptrdiff_t i = 0; i < count; i++) {
        PyObject *array = scaling.arrays[i];
        if (!is_plain(array) || !PyArray_ISWRITEABLE((PyArrayObject *)array))
            return DECLINE;
    }
    scale_some(&scaling, 0, count); /* with the lock held: the list could change meanwhile */
    return PyBool_FromLong(scaling.finite);
}

/* scale_into(targets, sources, factor) */
static PyObject *scale_into(PyObject *const *arguments, const KernelEntry *entry)
{
    double factor;
    if (!PyList_CheckExact(arguments[0]) || !PyList_CheckExact(arguments[1]) || !read_number(arguments[2], &factor) ||
        PyList_GET_SIZE(arguments[0]) != PyList_GET_SIZE(arguments[1]))
        return DECLINE;
    ptrdiff_t count = PyList_GET_SIZE(arguments[0]);
    PyObject **targets = PySequence_Fast_ITEMS(arguments[0]), **sources = PySequence_Fast_ITEMS(arguments[1]);
    for (ptrdiff_t i = 0; i < count; i++)
        if (!is_plain(targets[i]) || !PyArray_ISWRITEABLE((PyArrayObject *)targets[i]) ||
            !is_plain_of(sources[i], type_of(targets[i])) || !same_shape(targets[i], sources[i]))
            return DECLINE;
    for (ptrdiff_t i = 0; i < count; i++)
        FOR_TYPE(type_of(targets[i]), write_scaled)(data_of(targets[i]), data_of(sources[i]), size_of(sources[i]), factor);
    return Py_NewRef(Py_None);
}

const KernelEntry many_array_kernels[] = {
    {"scale_arrays", scale_arrays},
    {"scale_into", scale_into},
    {NULL},
};
