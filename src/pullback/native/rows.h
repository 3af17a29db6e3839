/* What kernels over rows share: how they read arguments, lay out dimensions, and run their loops on threads. */
#ifndef PULLBACK_ROWS_H
#define PULLBACK_ROWS_H

#include "kernel.h"

/* An array seen as [outer][count][inner] with the loop along `count`; rows are the case of inner = 1. */
typedef struct {
    ptrdiff_t outer, count, inner;
} Layout;

/* Elements of work below which a thread does not pay. */
#define THREAD_WORK 32768

/* What is not given is None here, as the defaults of optional arguments are. */
INLINE int is_none(PyObject *object) { return !object || object == Py_None; }

/* A truth value; 0 where it is none (nothing is raised). */
INLINE int read_flag(PyObject *object, int fallback, int *value)
{
    *value = object ? object == Py_True : fallback;
    return !object || object == Py_True || object == Py_False;
}

/* What call_prepared has looked at: a number, a dimension. */
INLINE double number_of(PyObject *object)
{
    double value = 0;
    read_number(object, &value);
    return value;
}

INLINE int dim_of(PyObject *object) { return (int)PyLong_AsLong(object); }

/* A small whole number in [least, most]. */
INLINE int read_integer(PyObject *object, long least, long most, long *value)
{
    if (!object || !PyLong_CheckExact(object))
        return 0;
    int overflow;
    *value = PyLong_AsLongAndOverflow(object, &overflow);
    return !overflow && *value >= least && *value <= most;
}

/* A float32 or float64 array (no subclass, not byte-swapped), of any strides. */
INLINE int is_real_array(PyObject *object)
{
    if (!object || !PyArray_CheckExact(object))
        return 0;
    int type = type_of(object);
    return (type == NPY_FLOAT || type == NPY_DOUBLE) && PyArray_ISBEHAVED_RO((PyArrayObject *)object);
}

INLINE int is_real_array_of(PyObject *object, int type) { return is_real_array(object) && type_of(object) == type; }

/* A new reference to the array itself where it is row-major, else to a row-major copy; NULL with an exception where
 * memory runs out. A copy is one more pass over memory, which the reference makes several times. */
INLINE PyObject *row_major(PyObject *array)
{
    if (LIKELY(PyArray_IS_C_CONTIGUOUS((PyArrayObject *)array)))
        return Py_NewRef(array);
    return PyArray_NewCopy((PyArrayObject *)array, NPY_CORDER);
}

INLINE void *data_of(PyObject *array) { return PyArray_DATA((PyArrayObject *)array); }

INLINE ptrdiff_t size_of(PyObject *array) { return PyArray_SIZE((PyArrayObject *)array); }

/* A new 0-dim array of one number. */
INLINE PyObject *store_number(double value, int type)
{
    PyObject *result = new_array(0, NULL, type);
    if (result && type == NPY_FLOAT)
        *(float *)data_of(result) = (float)value;
    else if (result)
        *(double *)data_of(result) = value;
    return result;
}

INLINE int all_made(PyObject *const *arrays, int count)
{
    for (int i = 0; i < count; i++)
        if (!arrays[i])
            return 0;
    return 1;
}

/* The results (each given up) as a tuple; NULL, and none of them, where one is missing. */
INLINE PyObject *pack(int count, PyObject **results)
{
    PyObject *packed = all_made(results, count) ? PyTuple_New(count) : NULL;
    for (int i = 0; i < count; i++)
        if (packed)
            PyTuple_SET_ITEM(packed, i, results[i]);
        else
            Py_XDECREF(results[i]);
    return packed;
}

/* The layout of a loop along the dimension `dim`. */
INLINE Layout layout_along(PyObject *array, int dim)
{
    PyArrayObject *a = (PyArrayObject *)array;
    const npy_intp *shape = PyArray_DIMS(a);
    Layout layout = {1, shape[dim], 1};
    for (int i = 0; i < dim; i++)
        layout.outer *= shape[i];
    for (int i = dim + 1; i < PyArray_NDIM(a); i++)
        layout.inner *= shape[i];
    return layout;
}

/* Whether an optional argument is None or a row-major vector-like array of `size` elements of this type. */
INLINE int is_absent_or_plain(PyObject *object, int type, ptrdiff_t size)
{
    return is_none(object) || (is_plain_of(object, type) && size_of(object) == size);
}

INLINE void *data_or_null(PyObject *object) { return is_none(object) ? NULL : data_of(object); }

/* Do `count` items of `work` elements each, on threads and without the interpreter's lock where that pays. */
INLINE void run_items(ptrdiff_t count, ptrdiff_t work, BlockFunction body, void *context)
{
    ptrdiff_t smallest = work >= THREAD_WORK ? 1 : THREAD_WORK / (work > 0 ? work : 1);
    run_unlocked((double)(count * work), count, smallest, body, context);
}

/* The compiled loop for an array's type, of the pair that for_each_real.h made. */
#define FOR_TYPE(type, name) ((type) == NPY_FLOAT ? name##_float : name##_double)

#endif
