/* Making tensors that are not compiled classes, without the checks of `__new__` and without a call of Python: a small
 * operation makes one each time. See Note [Compiled classes] in tensor/tensor_base.py, and tensor/tensor.py for
 * `new_tensor` in Python. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyMethodDef tensor_methods[];

static PyTypeObject *base_type;   /* TensorBase */
static PyTypeObject *tensor_type; /* Tensor */
static PyObject *process, *switches, *no_arguments, *zero;
static PyObject *array_name, *made_in_name, *changed_name, *transform_name;

static PyObject *new_instance(PyObject *Py_UNUSED(module), PyObject *kind)
{
    if (!PyType_Check(kind) || !base_type || !PyType_IsSubtype((PyTypeObject *)kind, base_type))
        return PyErr_Format(PyExc_TypeError, "new_instance() takes a class of tensors");
    return base_type->tp_new((PyTypeObject *)kind, no_arguments, NULL);
}

/* As in Python: inside of a transform a tensor knows the innermost one. */
static int note_transform(PyObject *tensor)
{
    PyObject *transform = PyObject_GetAttr(switches, transform_name);
    int failed = !transform || PyObject_SetAttr(tensor, made_in_name, transform);
    Py_XDECREF(transform);
    return failed;
}

static PyObject *new_tensor(PyObject *Py_UNUSED(module), PyObject *array)
{
    if (!tensor_type)
        return PyErr_Format(PyExc_RuntimeError, "bind_tensor() was not called");
    PyObject *tensor = base_type->tp_new(tensor_type, no_arguments, NULL);
    if (!tensor)
        return NULL;
    PyObject *changed = PyObject_GetAttr(process, changed_name);
    if (!changed || PyObject_SetAttr(tensor, array_name, array) || (changed != zero && note_transform(tensor)))
        Py_CLEAR(tensor);
    Py_XDECREF(changed);
    return tensor;
}

static PyObject *new_alias(PyObject *Py_UNUSED(module), PyObject *source)
{
    PyObject *array = PyObject_GetAttr(source, array_name), *made_in = PyObject_GetAttr(source, made_in_name);
    PyObject *tensor = array && made_in ? base_type->tp_new(tensor_type, no_arguments, NULL) : NULL;
    if (tensor && (PyObject_SetAttr(tensor, array_name, array) ||
                   (made_in != Py_None && PyObject_SetAttr(tensor, made_in_name, made_in))))
        Py_CLEAR(tensor);
    Py_XDECREF(array);
    Py_XDECREF(made_in);
    return tensor;
}

static PyObject *bind_tensor_base(PyObject *Py_UNUSED(module), PyObject *base)
{
    if (!PyType_Check(base))
        return PyErr_Format(PyExc_TypeError, "bind_tensor_base() takes a class");
    if (!(no_arguments = PyTuple_New(0)) || !(zero = PyLong_FromLong(0)))
        return NULL;
    Py_XSETREF(base_type, (PyTypeObject *)Py_NewRef(base));
    Py_RETURN_NONE;
}

static PyObject *bind_tensor(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *tensor, *counts, *state;
    if (!PyArg_ParseTuple(arguments, "O!OO", &PyType_Type, &tensor, &counts, &state))
        return NULL;
    array_name = PyUnicode_InternFromString("_array");
    made_in_name = PyUnicode_InternFromString("_made_in");
    changed_name = PyUnicode_InternFromString("changed");
    transform_name = PyUnicode_InternFromString("transform");
    if (!array_name || !made_in_name || !changed_name || !transform_name)
        return NULL;
    Py_XSETREF(process, Py_NewRef(counts));
    Py_XSETREF(switches, Py_NewRef(state));
    Py_XSETREF(tensor_type, (PyTypeObject *)Py_NewRef(tensor));
    return PyBool_FromLong(base_type && base_type->tp_new == PyBaseObject_Type.tp_new);
}

PyMethodDef tensor_methods[] = {
    {"new_instance", new_instance, METH_O, "new_instance(kind): an instance of a class of tensors, without its __init__."},
    {"new_tensor", new_tensor, METH_O, "new_tensor(array): a Tensor around the array, without history."},
    {"new_alias", new_alias, METH_O, "new_alias(tensor): a Tensor around the same array, made in the same transform."},
    {"bind_tensor_base", bind_tensor_base, METH_O, "bind_tensor_base(TensorBase): the class whose instances are made."},
    {"bind_tensor", bind_tensor, METH_VARARGS,
     "bind_tensor(Tensor, process, switches): whether the class is not compiled, so that new_tensor is the quickest."},
    {NULL},
};
