/* What objects share that are called in the place of a function of Python: Kernel, Method, Guard. */
#ifndef PULLBACK_WRAPPED_FUNCTIONS_H
#define PULLBACK_WRAPPED_FUNCTIONS_H

#include "kernel.h"

#include <structmember.h>

/* How each of them begins: the function, and what else it holds, or NULL. */
#define WRAPPED(second, third, fourth)                                                                                 \
    PyObject_HEAD                                                                                                      \
    vectorcallfunc vectorcall;                                                                                         \
    PyObject *function, *second, *third, *fourth;

typedef struct {
    WRAPPED(second, third, fourth)
} Wrapped;

/* The slots of their types. */
#define WRAPPED_TYPE(Type)                                                                                             \
    PyVarObject_HEAD_INIT(NULL, 0)                                                                                     \
    .tp_name = "pullback.native.kernels." #Type, .tp_basicsize = sizeof(Type),                                         \
    .tp_vectorcall_offset = offsetof(Wrapped, vectorcall), .tp_call = PyVectorcall_Call, .tp_getattro = attribute_of,  \
    .tp_getset = properties_of_function, .tp_traverse = wrapped_traverse, .tp_clear = wrapped_clear,                   \
    .tp_dealloc = wrapped_free, .tp_free = PyObject_GC_Del
#define WRAPPED_FLAGS (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC)

extern PyGetSetDef properties_of_function[];
PyObject *attribute_of(PyObject *self, PyObject *name);
PyObject *bound_to(PyObject *self, PyObject *instance, PyObject *owner);
int wrapped_traverse(PyObject *self, visitproc visit, void *arg);
int wrapped_clear(PyObject *self);
void wrapped_free(PyObject *self);

/* A new object with zeros behind what all have; NULL with an exception. References are added to what it holds. */
void *new_wrapped(PyTypeObject *type, vectorcallfunc call, PyObject *function, PyObject *second, PyObject *third,
                  PyObject *fourth);

#endif
