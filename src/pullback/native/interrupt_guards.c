/* Functions that are called to their end, whatever interrupts them.

Python looks for signals where a function of Python begins: Ctrl-C at the first instruction of an `__exit__` leaves what it
should have undone. A Guard is not a function of Python. It calls one, and where that raises, it calls the function that
undoes it (of an `__exit__`: the same again, since one interrupt comes once) before the exception goes on. */
#include "kernel.h"

#include "interrupt_guards.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;
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

static PyObject *guard_get(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

static PyObject *guard_attribute(PyObject *self, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return found;
    PyErr_Clear();
    return PyObject_GetAttr(((Guard *)self)->function, name);
}

static PyObject *guard_doc(PyObject *self, void *Py_UNUSED(name))
{
    return PyObject_GetAttrString(((Guard *)self)->function, "__doc__");
}

static PyGetSetDef properties[] = {
    {"__doc__", guard_doc, NULL, NULL, NULL},
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
    .tp_descr_get = guard_get,
    .tp_getattro = guard_attribute,
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
