/* What every file of compiled kernels shares: NumPy's C interface, how a kernel is declared, how it reads its arguments.
 *
 * A compiled kernel serves the common case (plain float32 or float64 arrays) and declines everything else: it returns
 * NULL without setting an exception, and the NumPy kernel of the same name, its reference, answers instead.
 * See Note [Compiled kernels] in __init__.py.
 */
#ifndef PULLBACK_KERNEL_H
#define PULLBACK_KERNEL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL pullback_native_array_api
#ifndef IMPORTS_ARRAY_API
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include "threads.h"

typedef struct KernelEntry KernelEntry;

/* `slots` has a value for every parameter of the reference, in its order, defaults among them. */
typedef PyObject *(*KernelFunction)(PyObject *const *slots, const KernelEntry *entry);

struct KernelEntry {
    const char *name;
    KernelFunction function;           /* NULL for an elementwise kernel */
    const char *takes;                 /* a letter for each parameter, see arguments.c; NULL: the function looks itself */
    int kind;                          /* which of the kernels that share the function this is */
    BlockFunction of_float, of_double; /* or its loops, where these differ */
    const struct Elementwise *elementwise;
    const struct RowKernel *rows;
    int in_order; /* whether the result lies in the order of the operands' dimensions: see in_operands_order */
};

/* A pair of loops that for_each_real.h made, in an entry; and the one for an array. */
#define LOOP_PAIR(name) .of_float = name##_float, .of_double = name##_double
#define LOOP_FOR(entry, array) (type_of(array) == NPY_FLOAT ? (entry)->of_float : (entry)->of_double)

/* Each file of kernels exports one table, closed by an entry without a name; module.c lists the tables. */

/* Compile a loop for several instruction sets; the loader takes the best that the processor has. A build for the machine
 * it runs on names the one to compile for, which takes a third of the time; older compilers do not know its name. */
#if defined(ONLY_TARGET) && !defined(__clang__) && __GNUC__ < 11
#undef ONLY_TARGET
#endif
#if defined(ONLY_TARGET)
#define MULTIVERSIONED __attribute__((target(ONLY_TARGET)))
#elif defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define MULTIVERSIONED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MULTIVERSIONED
#endif

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#else
#define INLINE static inline
#define LIKELY(condition) (condition)
#define UNLIKELY(condition) (condition)
#endif

/* Before a loop whose result may be one of its operands: no element is read after another one was written. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#elif defined(_MSC_VER)
#define INDEPENDENT __pragma(loop(ivdep))
#else
#define INDEPENDENT
#endif

/* Before a loop of one step after the other, of which there are few: as it is, without a vector's beginning and end. */
#if defined(__GNUC__) && !defined(__clang__)
#define UNROLLED _Pragma("GCC unroll 4")
#else
#define UNROLLED
#endif

/* Below this many elements the interpreter's lock is kept: letting it go costs more than the work. */
#define UNLOCK_ABOVE 16384

/* Do `count` items that are so many elements together: at once where they are few, else without the interpreter's lock and
 * on threads, none of which gets fewer than `smallest` items. */
INLINE void run_unlocked(double elements, ptrdiff_t count, ptrdiff_t smallest, BlockFunction body, void *context)
{
    if (LIKELY(elements <= UNLOCK_ABOVE)) {
        body(context, 0, count);
        return;
    }
    Py_BEGIN_ALLOW_THREADS
    run_blocks(count, smallest, body, context);
    Py_END_ALLOW_THREADS
}

/* The answer of a kernel that leaves the work to its reference. */
#define DECLINE ((PyObject *)NULL)

#define ARRAY(object) ((PyArrayObject *)(object))
#define NDIM(object) PyArray_NDIM(ARRAY(object))
#define DIM(object, i) PyArray_DIM(ARRAY(object), i)
#define SHAPE(object) PyArray_DIMS(ARRAY(object))
#define STRIDE(object, i) PyArray_STRIDE(ARRAY(object), i)
#define STRIDES(object) PyArray_STRIDES(ARRAY(object))
#define ITEM(object) PyArray_ITEMSIZE(ARRAY(object))

INLINE int type_of(PyObject *array) { return PyArray_DESCR((PyArrayObject *)array)->type_num; }

/* An array (no subclass) of native float32 or float64, row-major and aligned, of any size. */
INLINE int is_plain(PyObject *object)
{
    if (!PyArray_CheckExact(object))
        return 0;
    PyArrayObject *array = (PyArrayObject *)object;
    int type = PyArray_DESCR(array)->type_num;
    return (type == NPY_FLOAT || type == NPY_DOUBLE) && PyArray_ISCARRAY_RO(array);
}

INLINE int is_plain_of(PyObject *object, int type)
{
    return PyArray_CheckExact(object) && type_of(object) == type && PyArray_ISCARRAY_RO((PyArrayObject *)object);
}

INLINE int same_shape(PyObject *first, PyObject *second)
{
    PyArrayObject *a = (PyArrayObject *)first, *b = (PyArrayObject *)second;
    int ndim = PyArray_NDIM(a);
    if (ndim != PyArray_NDIM(b))
        return 0;
    const npy_intp *left = PyArray_DIMS(a), *right = PyArray_DIMS(b);
    for (int i = 0; i < ndim; i++)
        if (left[i] != right[i])
            return 0;
    return 1;
}

/* A new row-major array; NULL with an exception where memory runs out. */
INLINE PyObject *new_array(int ndim, const npy_intp *shape, int type)
{
    return PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(type), ndim, shape, NULL, NULL, 0, NULL);
}

INLINE PyObject *new_like(PyObject *array)
{
    PyArrayObject *a = (PyArrayObject *)array;
    return new_array(PyArray_NDIM(a), PyArray_DIMS(a), type_of(array));
}

/* Read a Python number; 0 where it is none (nothing is raised). A bool is not a number here. */
INLINE int read_number(PyObject *object, double *value)
{
    if (PyFloat_CheckExact(object)) {
        *value = PyFloat_AS_DOUBLE(object);
        return 1;
    }
    if (PyLong_CheckExact(object)) {
        *value = PyLong_AsDouble(object);
        if (*value == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        return 1;
    }
    return 0;
}

#define MOST_SLOTS 24

/* Call the function of an entry with `count` arguments if they are what it takes. */
PyObject *call_prepared(const KernelEntry *entry, PyObject *const *arguments, Py_ssize_t count);

#endif
