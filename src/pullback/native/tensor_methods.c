/* Methods of Tensor that are compiled functions: an object of its own per method, which knows the call that it is in.

A compiled function leaves no frame behind, and a function and the method of its name would be one object. A Method calls
its function as it is called itself, and while it does, `called_method` gives its name and what it was given. */
#include "kernel.h"

#include <structmember.h>

#include "tensor_methods.h"
#include "wrapped_functions.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function; /* up to here as Wrapped */
    PyObject *attached_as;
    PyObject *name; /* as it is told: PyTorch's `__pow__` is called "pow" */
    PyObject *qualified_name;
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

static int method_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Method *)self)->function);
    return 0;
}

static int method_clear(PyObject *self)
{
    Method *method = (Method *)self;
    Py_CLEAR(method->function);
    Py_CLEAR(method->attached_as);
    Py_CLEAR(method->name);
    Py_CLEAR(method->qualified_name);
    return 0;
}

static void method_free(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    method_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyGetSetDef properties[] = {
    {"__doc__", of_function, NULL, NULL, "__doc__"},
    {"__module__", of_function, NULL, NULL, "__module__"},
    {NULL},
};

static PyMemberDef members[] = {
    {"__name__", T_OBJECT, offsetof(Method, name), 0, NULL},
    {"__qualname__", T_OBJECT, offsetof(Method, qualified_name), 0, NULL},
    {NULL},
};

static PyTypeObject MethodType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pullback.native.kernels.Method",
    .tp_basicsize = sizeof(Method),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_HAVE_GC,
    .tp_vectorcall_offset = offsetof(Method, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = bound_to,
    .tp_getattro = attribute_of,
    .tp_getset = properties,
    .tp_members = members,
    .tp_repr = method_repr,
    .tp_traverse = method_traverse,
    .tp_clear = method_clear,
    .tp_dealloc = method_free,
    .tp_free = PyObject_GC_Del,
};

int prepare_methods(void)
{
    return PyType_Ready(&MethodType);
}

PyObject *new_method(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2 || !PyUnicode_Check(arguments[0]))
        return PyErr_Format(PyExc_TypeError, "a name and a function are needed");
    PyObject *qualified_name = PyUnicode_FromFormat("Tensor.%U", arguments[0]);
    Method *method = qualified_name ? PyObject_GC_New(Method, &MethodType) : NULL;
    if (!method) {
        Py_XDECREF(qualified_name);
        return NULL;
    }
    method->vectorcall = method_call;
    method->function = Py_NewRef(arguments[1]);
    method->attached_as = Py_NewRef(arguments[0]);
    method->name = Py_NewRef(arguments[0]);
    method->qualified_name = qualified_name;
    PyObject_GC_Track(method);
    return (PyObject *)method;
}

/* The name, the arguments by position, and those by name, of the method that runs. */
PyObject *called_method(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing))
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
