# How compiled modules read tensors and arrays: as fields of C structs, where Python reads attributes.
# tools/native_sources.py puts calls of these in place of `x._array`, `a.dtype` and so on.

from pullback.tensor.tensor_base cimport TensorBase

cdef extern from *:
    """
    #ifndef PULLBACK_NATIVE_ACCESS
    #define PULLBACK_NATIVE_ACCESS
    #define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
    #include <numpy/ndarraytypes.h>

    static PyTypeObject *pullback_array_type = NULL;

    static int pullback_find_array_type(void)
    {
        PyObject *numpy = PyImport_ImportModule("numpy");
        if (numpy) {
            pullback_array_type = (PyTypeObject *)PyObject_GetAttrString(numpy, "ndarray");
            Py_DECREF(numpy);
        }
        return pullback_array_type != NULL;
    }

    /* An array of NumPy itself: other libraries' arrays and NumPy's scalars are asked by attribute. */
    static inline int pullback_is_array(PyObject *value)
    {
        if (!pullback_array_type && !pullback_find_array_type())
            PyErr_Clear();
        return Py_TYPE(value) == pullback_array_type;
    }

    static inline PyObject *pullback_dtype_of(PyObject *array)
    {
        if (!pullback_is_array(array))
            return PyObject_GetAttrString(array, "dtype");
        return Py_NewRef((PyObject *)PyArray_DESCR((PyArrayObject *)array));
    }

    static inline PyObject *pullback_shape_of(PyObject *array)
    {
        if (!pullback_is_array(array))
            return PyObject_GetAttrString(array, "shape");
        int ndim = PyArray_NDIM((PyArrayObject *)array);
        const npy_intp *sizes = PyArray_DIMS((PyArrayObject *)array);
        PyObject *shape = PyTuple_New(ndim);
        for (int i = 0; shape && i < ndim; i++) {
            PyObject *size = PyLong_FromSsize_t(sizes[i]);
            if (!size)
                Py_CLEAR(shape);
            else
                PyTuple_SET_ITEM(shape, i, size);
        }
        return shape;
    }

    /* 1, 0, or -1 with an exception. */
    static inline int pullback_shapes_differ(PyObject *first, PyObject *second)
    {
        if (pullback_is_array(first) && pullback_is_array(second)) {
            PyArrayObject *a = (PyArrayObject *)first, *b = (PyArrayObject *)second;
            int ndim = PyArray_NDIM(a);
            if (ndim != PyArray_NDIM(b))
                return 1;
            for (int i = 0; i < ndim; i++)
                if (PyArray_DIMS(a)[i] != PyArray_DIMS(b)[i])
                    return 1;
            return 0;
        }
        PyObject *left = PyObject_GetAttrString(first, "shape");
        PyObject *right = left ? PyObject_GetAttrString(second, "shape") : NULL;
        int differ = right ? PyObject_RichCompareBool(left, right, Py_NE) : -1;
        Py_XDECREF(left);
        Py_XDECREF(right);
        return differ;
    }

    static inline PyObject *pullback_flag_of(PyObject *array, int flag, const char *name)
    {
        if (pullback_is_array(array))
            return PyBool_FromLong((PyArray_FLAGS((PyArrayObject *)array) & flag) == flag);
        PyObject *flags = PyObject_GetAttrString(array, "flags");
        PyObject *value = flags ? PyObject_GetAttrString(flags, name) : NULL;
        Py_XDECREF(flags);
        return value;
    }
    #define pullback_c_contiguous_of(array) pullback_flag_of(array, NPY_ARRAY_C_CONTIGUOUS, "c_contiguous")
    #define pullback_carray_of(array) pullback_flag_of(array, NPY_ARRAY_CARRAY, "carray")
    #define pullback_writeable_of(array) pullback_flag_of(array, NPY_ARRAY_WRITEABLE, "writeable")
    #endif
    """
    object c_contiguous_of "pullback_c_contiguous_of"(object array)
    object carray_of "pullback_carray_of"(object array)
    object writeable_of "pullback_writeable_of"(object array)
    object dtype_of "pullback_dtype_of"(object array)
    object shape_of "pullback_shape_of"(object array)
    bint shapes_differ_between "pullback_shapes_differ"(object first, object second) except -1


cdef inline object array_of(object value):
    # A class that overrides `_array` (a parameter without a shape yet, a lazy view) has nothing in the field.
    cdef object array
    if isinstance(value, TensorBase):
        array = (<TensorBase>value)._array
        if array is not None:
            return array
    return value._array


cdef inline object counter_of(object value):
    if isinstance(value, TensorBase):
        return (<TensorBase>value)._counter
    return value._counter
