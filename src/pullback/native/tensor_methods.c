/* Methods of Tensor that are compiled functions: an object of its own per method, which knows the call that it is in.

A compiled function leaves no frame behind, and a function and the method of its name would be one object. A Method calls
its function as it is called itself, and while it does, `called_method` gives its name and what it was given. */
#include "wrapped_functions.h"

typedef struct {
    WRAPPED(attached_as, name, qualified_name) /* the name as it is told: PyTorch's `__pow__` is called "pow" */
} Method;

typedef struct {
    Method *method;
    PyObject *const *arguments;
    Py_ssize_t count;   /* of those given by position */
    PyObject *keywords; /* the names of those that follow, or NULL */
} MethodCall;

#ifdef _MSC_VER
static __declspec(thread) MethodCall called;
#else
static _Thread_local MethodCall called;
#endif

static PyObject *method_call(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *keywords)
{
    MethodCall outer = called;
    called = (MethodCall){(Method *)self, arguments, PyVectorcall_NARGS(flags), keywords};
    PyObject *result = PyObject_Vectorcall(((Method *)self)->function, arguments, flags, keywords);
    called = outer;
    return result;
}

static PyObject *method_repr(PyObject *self)
{
    PyObject *name = ((Method *)self)->qualified_name;
    return PyUnicode_FromFormat("<function %S at %p>", name ? name : Py_None, self);
}

static PyMemberDef members[] = {
    {"__name__", T_OBJECT, offsetof(Method, name), 0, NULL},
    {"__qualname__", T_OBJECT, offsetof(Method, qualified_name), 0, NULL},
    {NULL},
};

static PyTypeObject MethodType = {
    WRAPPED_TYPE(Method),
    .tp_flags = WRAPPED_FLAGS | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_descr_get = bound_to,
    .tp_members = members,
    .tp_repr = method_repr,
};

static PyObject *new_method(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2 || !PyUnicode_Check(arguments[0]))
        return PyErr_Format(PyExc_TypeError, "a name and a function are needed");
    PyObject *qualified_name = PyUnicode_FromFormat("Tensor.%U", arguments[0]), *method = NULL;
    if (qualified_name)
        method = new_wrapped(&MethodType, method_call, arguments[1], arguments[0], arguments[0], qualified_name);
    Py_XDECREF(qualified_name);
    return method;
}

/* The name, the arguments by position, and those by name, of the method that runs. */
static PyObject *called_method(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing))
{
    if (!called.method)
        Py_RETURN_NONE;
    PyObject *operands = PyTuple_New(called.count), *named = PyDict_New();
    for (Py_ssize_t i = 0; operands && i < called.count; i++)
        PyTuple_SET_ITEM(operands, i, Py_NewRef(called.arguments[i]));
    Py_ssize_t count = called.keywords ? PyTuple_GET_SIZE(called.keywords) : 0;
    for (Py_ssize_t i = 0; named && i < count; i++)
        if (PyDict_SetItem(named, PyTuple_GET_ITEM(called.keywords, i), called.arguments[called.count + i]))
            Py_CLEAR(named);
    if (!operands || !named) {
        Py_XDECREF(operands);
        Py_XDECREF(named);
        return NULL;
    }
    return Py_BuildValue("ONN", called.method->attached_as, operands, named);
}

PyMethodDef method_methods[] = {
    {"new_method", (PyCFunction)(void (*)(void))new_method, METH_FASTCALL,
     "new_method(name, function): the method of Tensor that calls a compiled function."},
    {"called_method", called_method, METH_NOARGS,
     "The name of the innermost such method that runs, its arguments by position and those by name; or None."},
    {NULL},
};
