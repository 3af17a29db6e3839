/* What Kernel, Method and Guard have in common, and the last of them.
 *
 * A Guard is called to its end, whatever interrupts it. Python looks for signals where a function of Python begins: Ctrl-C
 * at the first instruction of an `__exit__` leaves what it should have undone. A Guard is not a function of Python. It calls
 * one, and where that raises, it calls the function that undoes it (of an `__exit__`: the same again, since one interrupt
 * comes once) before the exception goes on.
 */
#include "wrapped_functions.h"

/* What the object lacks is the function's. */
PyObject *attribute_of(PyObject *self, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return found;
    PyErr_Clear();
    return PyObject_GetAttr(((Wrapped *)self)->function, name);
}

static PyObject *of_function(PyObject *self, void *name)
{
    return PyObject_GetAttrString(((Wrapped *)self)->function, name);
}

PyGetSetDef properties_of_function[] = {
    {"__doc__", of_function, NULL, NULL, "__doc__"},
    {"__module__", of_function, NULL, NULL, "__module__"},
    {NULL},
};

PyObject *bound_to(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

int wrapped_traverse(PyObject *self, visitproc visit, void *arg)
{
    Wrapped *wrapped = (Wrapped *)self;
    Py_VISIT(wrapped->function);
    Py_VISIT(wrapped->second);
    Py_VISIT(wrapped->third);
    Py_VISIT(wrapped->fourth);
    return 0;
}

int wrapped_clear(PyObject *self)
{
    Wrapped *wrapped = (Wrapped *)self;
    Py_CLEAR(wrapped->function);
    Py_CLEAR(wrapped->second);
    Py_CLEAR(wrapped->third);
    Py_CLEAR(wrapped->fourth);
    return 0;
}

void wrapped_free(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    wrapped_clear(self);
    Py_TYPE(self)->tp_free(self);
}

void *new_wrapped(PyTypeObject *type, vectorcallfunc call, PyObject *function, PyObject *second, PyObject *third,
                  PyObject *fourth)
{
    Wrapped *wrapped = PyType_Ready(type) ? NULL : PyObject_GC_New(Wrapped, type);
    if (!wrapped)
        return NULL;
    memset(wrapped + 1, 0, (size_t)type->tp_basicsize - sizeof *wrapped);
    wrapped->vectorcall = call;
    wrapped->function = Py_NewRef(function);
    wrapped->second = Py_XNewRef(second);
    wrapped->third = Py_XNewRef(third);
    wrapped->fourth = Py_XNewRef(fourth);
    PyObject_GC_Track(wrapped);
    return wrapped;
}

typedef struct {
    WRAPPED(undo, unused, also_unused)
} Guard;

static PyTypeObject GuardType = {
    WRAPPED_TYPE(Guard),
    .tp_flags = WRAPPED_FLAGS | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_descr_get = bound_to,
};

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

static PyObject *new_guard(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "a function and the one that undoes it are needed");
    return new_wrapped(&GuardType, guard_call, arguments[0], arguments[1], NULL, NULL);
}

PyMethodDef guard_methods[] = {
    {"new_guard", (PyCFunction)(void (*)(void))new_guard, METH_FASTCALL,
     "new_guard(function, undo): calls the function and, where that raises, `undo` as well. See Note [Guards]."},
    {NULL},
};
