/* Arrays on the memory of other arrays, of any dtype. */
#ifndef PULLBACK_VIEWS_H
#define PULLBACK_VIEWS_H

#include "kernel.h"

/* A view of `array` that begins `offset` bytes after its first element; NULL with an exception where memory runs out. */
INLINE PyObject *new_view(PyObject *array, int ndim, const npy_intp *shape, const npy_intp *strides, npy_intp offset)
{
    PyArrayObject *base = (PyArrayObject *)array;
    PyArray_Descr *descr = PyArray_DESCR(base);
    Py_INCREF(descr);
    PyObject *view = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, strides, PyArray_BYTES(base) + offset,
                                          PyArray_FLAGS(base) & (NPY_ARRAY_WRITEABLE | NPY_ARRAY_ALIGNED), NULL);
    if (view && PyArray_SetBaseObject((PyArrayObject *)view, Py_NewRef(array)) < 0)
        Py_CLEAR(view);
    return view;
}

/* Reads a whole number that fits; 0 where it is none (nothing is raised). */
INLINE int read_size(PyObject *object, npy_intp *value)
{
    if (!PyLong_CheckExact(object))
        return 0;
    *value = PyLong_AsSsize_t(object);
    if (*value == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

/* Reads a dimension that is already counted from the front. */
INLINE int read_dim(PyObject *object, int ndim, int *dim)
{
    npy_intp value;
    if (!read_size(object, &value) || value < 0 || value >= ndim)
        return 0;
    *dim = (int)value;
    return 1;
}

/* Reads a tuple of whole numbers; how many there are, or -1 where it is none or too long. */
INLINE int read_shape(PyObject *object, npy_intp *shape)
{
    if (!PyTuple_CheckExact(object) || PyTuple_GET_SIZE(object) > NPY_MAXDIMS)
        return -1;
    int count = (int)PyTuple_GET_SIZE(object);
    for (int i = 0; i < count; i++)
        if (!read_size(PyTuple_GET_ITEM(object, i), &shape[i]))
            return -1;
    return count;
}

#endif
