/* Functions that are called to their end, whatever interrupts them.

Python looks for signals where a function of Python begins: Ctrl-C at the first instruction of an `__exit__` leaves what it
should have undone. A Guard is not a function of Python. It calls one, and where that raises, it calls the function that
undoes it (of an `__exit__`: the same again, since one interrupt comes once) before the exception goes on. */
#include "kernel.h"

#include "interrupt_guards.h"
#include "wrapped_functions.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function; /* up to here as Wrapped */
    PyObject *undo;
} Guard;

static PyObject *guard_call(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *keywords)
{
    Guard *guard = (Guard *)self;
    PyObject *result = PyObject_Vectorcall(guard->function, arguments, flags, keywords);
    if (result)
        return result;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Py_XDECREF(PyObject_Vectorcall(guard->undo, arguments, flags, keywords));
    PyErr_Restore(type, value, traceback); /* what the second call may have raised is dropped */
    return NULL;
}

static PyGetSetDef properties[] = {
    {"__doc__", of_function, NULL, NULL, "__doc__"},
    {NULL},
};

static int guard_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Guard *)self)->function);
    Py_VISIT(((Guard *)self)->undo);
    return 0;
}

static int guard_clear(PyObject *self)
{
    Py_CLEAR(((Guard *)self)->function);
    Py_CLEAR(((Guard *)self)->undo);
    return 0;
}

static void guard_free(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    guard_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject GuardType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pullback.native.kernels.Guard",
    .tp_basicsize = sizeof(Guard),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_HAVE_GC,
    .tp_vectorcall_offset = offsetof(Guard, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = bound_to,
    .tp_getattro = attribute_of,
    .tp_getset = properties,
    .tp_traverse = guard_traverse,
    .tp_clear = guard_clear,
    .tp_dealloc = guard_free,
    .tp_free = PyObject_GC_Del,
};

int prepare_guards(void)
{
    return PyType_Ready(&GuardType);
}

PyObject *new_guard(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "a function and the one that undoes it are needed");
    Guard *guard = PyObject_GC_New(Guard, &GuardType);
    if (!guard)
        return NULL;
    guard->vectorcall = guard_call;
    guard->function = Py_NewRef(arguments[0]);
    guard->undo = Py_NewRef(arguments[1]);
    PyObject_GC_Track(guard);
    return (PyObject *)guard;
}
