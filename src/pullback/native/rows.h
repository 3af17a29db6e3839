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

/* Place the arguments of a call in the order of `words`; `names` keeps them interned from the first call on. */
INLINE int place(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords, const char *const *words,
                 PyObject **names, Py_ssize_t count, PyObject **slots)
{
    if (!keywords) {
        if (positional > count)
            return 0;
        for (Py_ssize_t i = 0; i < count; i++)
            slots[i] = i < positional ? arguments[i] : NULL;
        return 1;
    }
    for (Py_ssize_t i = count; i-- && !names[i];)
        if (!(names[i] = PyUnicode_InternFromString(words[i]))) {
            PyErr_Clear();
            return 0;
        }
    return place_arguments(arguments, positional, keywords, names, count, slots);
}

/* Declare `slots` and fill them from the arguments of the kernel that this stands in, or decline. */
#define PLACE(slots, ...)                                                                                              \
    static const char *const words_of_##slots[] = {__VA_ARGS__};                                                       \
    enum { count_of_##slots = sizeof words_of_##slots / sizeof *words_of_##slots };                                    \
    static PyObject *names_of_##slots[count_of_##slots];                                                               \
    PyObject *slots[count_of_##slots];                                                                                 \
    if (UNLIKELY(!place(arguments, positional, keywords, words_of_##slots, names_of_##slots, count_of_##slots, slots))) \
        return DECLINE

/* What is not given is None here, as the defaults of optional arguments are. */
INLINE int is_none(PyObject *object) { return !object || object == Py_None; }

/* A truth value; 0 where it is none (nothing is raised). */
INLINE int read_flag(PyObject *object, int fallback, int *value)
{
    *value = object ? object == Py_True : fallback;
    return !object || object == Py_True || object == Py_False;
}

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
