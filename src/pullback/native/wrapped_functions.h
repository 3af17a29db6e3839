/* What objects share that are called in the place of a function of Python: Kernel, Method, Guard. */
#ifndef PULLBACK_WRAPPED_FUNCTIONS_H
#define PULLBACK_WRAPPED_FUNCTIONS_H

#include "kernel.h"

/* How each of them begins. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;
} Wrapped;

/* tp_descr_get of methods. */
INLINE PyObject *bound_to(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

/* tp_getattro: what the object lacks is the function's. */
INLINE PyObject *attribute_of(PyObject *self, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return found;
    PyErr_Clear();
    return PyObject_GetAttr(((Wrapped *)self)->function, name);
}

/* Of a property: the function's attribute of this name. */
INLINE PyObject *of_function(PyObject *self, void *name)
{
    return PyObject_GetAttrString(((Wrapped *)self)->function, name);
}

#endif
