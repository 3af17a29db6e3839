/* Floats of 16 bits: which they are, and their way to float32 and back. */
#ifndef PULLBACK_CASTS_H
#define PULLBACK_CASTS_H

#include "kernel.h"

typedef enum { NO_FLOAT, SINGLE, WIDE, HALF, BFLOAT16 } FloatKind;

/* SINGLE is float32; float64 is WIDE. */
FloatKind float_kind(const PyArray_Descr *descr);
/* `kind` is HALF or BFLOAT16. */
void widen_floats(FloatKind kind, const void *from, float *to, ptrdiff_t count);
void narrow_floats(FloatKind kind, const float *from, void *to, ptrdiff_t count);

/* What kind of 16-bit floats a row-major array (no subclass) has; NO_FLOAT where it is another array, or none. */
INLINE FloatKind half_kind(PyObject *object)
{
    if (!object || !PyArray_CheckExact(object) || !PyArray_ISCARRAY_RO((PyArrayObject *)object))
        return NO_FLOAT;
    FloatKind kind = float_kind(PyArray_DESCR((PyArrayObject *)object));
    return kind >= HALF ? kind : NO_FLOAT;
}

/* A new row-major array of another array's type, which may be no type of NumPy. */
INLINE PyObject *new_of_type(PyObject *array, int ndim, const npy_intp *shape)
{
    PyArray_Descr *descr = PyArray_DESCR((PyArrayObject *)array);
    Py_INCREF(descr);
    return PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, NULL, NULL, 0, NULL);
}

#endif
