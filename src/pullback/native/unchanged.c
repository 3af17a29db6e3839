/* Whether what a compiled program depends on is the very same as in its last call.
 *
 * Nearly always it is. Each thing is a row of a tuple: what kind of holder it is, the holder, and what it held. Everything
 * is compared by identity; where a row says no, compiling/matching.py looks at everything at length.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if PY_VERSION_HEX < 0x030D0000
#define Py_BEGIN_CRITICAL_SECTION(object) {
#define Py_END_CRITICAL_SECTION() }
#endif

/* As compiling/quick_guards.py writes them. */
enum { OF_DICT, OF_LIST, OF_ITEM, OF_CELL, OF_ATTRIBUTE, OF_NOTHING, OF_CALL };

/* The rows: (OF_DICT, dict, keys, values), (OF_LIST, list, values, None), (OF_ITEM, dict, key, value),
 * (OF_CELL, cell, value, None), (OF_ATTRIBUTE, object, name, value), (OF_NOTHING, an empty container, None, None),
 * (OF_CALL, function, None, None). */

static int has_entries(PyObject *dict, PyObject *keys, PyObject *values)
{
    Py_ssize_t place = 0, number = 0;
    int same = PyDict_GET_SIZE(dict) == PyTuple_GET_SIZE(keys);
    PyObject *key, *value;
    Py_BEGIN_CRITICAL_SECTION(dict);
    while (same && PyDict_Next(dict, &place, &key, &value)) {
        same = number < PyTuple_GET_SIZE(keys) && key == PyTuple_GET_ITEM(keys, number) &&
               value == PyTuple_GET_ITEM(values, number);
        number++;
    }
    Py_END_CRITICAL_SECTION();
    return same;
}

static int has_items(PyObject *list, PyObject *values)
{
    int same = PyList_GET_SIZE(list) == PyTuple_GET_SIZE(values);
    Py_BEGIN_CRITICAL_SECTION(list);
    for (Py_ssize_t n = 0; same && n < PyTuple_GET_SIZE(values); n++)
        same = n < PyList_GET_SIZE(list) && PyList_GET_ITEM(list, n) == PyTuple_GET_ITEM(values, n);
    Py_END_CRITICAL_SECTION();
    return same;
}

static int is_found(PyObject *found, PyObject *expected)
{
    Py_XDECREF(found); /* `expected` is held, so that another object cannot have its address */
    return found == expected;
}

/* 1, 0, or -1 where a call raised. */
static int holds(PyObject *row)
{
    PyObject *holder = PyTuple_GET_ITEM(row, 1), *first = PyTuple_GET_ITEM(row, 2), *second = PyTuple_GET_ITEM(row, 3);
    switch (PyLong_AsLong(PyTuple_GET_ITEM(row, 0))) {
    case OF_DICT:
        return has_entries(holder, first, second);
    case OF_LIST:
        return has_items(holder, first);
    case OF_ITEM:
        return is_found(Py_XNewRef(PyDict_GetItemWithError(holder, first)), second);
    case OF_CELL:
        return is_found(PyCell_Get(holder), first);
    case OF_ATTRIBUTE:
        return is_found(PyObject_GetAttr(holder, first), second);
    case OF_NOTHING:
        return PyObject_Size(holder) == 0;
    default: {
        PyObject *answer = PyObject_CallNoArgs(holder);
        int is_true = answer ? PyObject_IsTrue(answer) : -1;
        Py_XDECREF(answer);
        return is_true;
    }
    }
}

static PyObject *is_unchanged(PyObject *rows, PyObject *Py_UNUSED(none))
{
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(rows); n++) {
        int same = holds(PyTuple_GET_ITEM(rows, n));
        if (same > 0)
            continue;
        if (PyErr_Occurred()) { /* what is gone is not the same; what interrupts goes on */
            if (!PyErr_ExceptionMatches(PyExc_Exception))
                return NULL;
            PyErr_Clear();
        }
        Py_RETURN_FALSE;
    }
    Py_RETURN_TRUE;
}

static PyMethodDef unchanged_method = {"is_unchanged", is_unchanged, METH_NOARGS, "Whether everything is the very same."};

static int is_row(PyObject *row)
{
    if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) != 4 || !PyLong_Check(PyTuple_GET_ITEM(row, 0)))
        return 0;
    PyObject *holder = PyTuple_GET_ITEM(row, 1), *first = PyTuple_GET_ITEM(row, 2), *second = PyTuple_GET_ITEM(row, 3);
    switch (PyLong_AsLong(PyTuple_GET_ITEM(row, 0))) {
    case OF_DICT:
        return PyDict_Check(holder) && PyTuple_Check(first) && PyTuple_Check(second) &&
               PyTuple_GET_SIZE(first) == PyTuple_GET_SIZE(second);
    case OF_LIST:
        return PyList_Check(holder) && PyTuple_Check(first);
    case OF_ITEM:
        return PyDict_Check(holder);
    case OF_CELL:
        return PyCell_Check(holder);
    case OF_ATTRIBUTE:
        return PyUnicode_Check(first);
    case OF_NOTHING:
        return 1;
    case OF_CALL:
        return PyCallable_Check(holder);
    }
    return 0;
}

static PyObject *make_unchanged(PyObject *Py_UNUSED(module), PyObject *rows)
{
    int good = PyTuple_Check(rows);
    for (Py_ssize_t n = 0; good && n < PyTuple_GET_SIZE(rows); n++)
        good = is_row(PyTuple_GET_ITEM(rows, n));
    if (!good)
        return PyErr_Format(PyExc_TypeError, "make_unchanged() takes a tuple of rows");
    return PyCFunction_New(&unchanged_method, rows);
}

PyMethodDef unchanged_methods[] = {
    {"make_unchanged", make_unchanged, METH_O, "make_unchanged(rows): what says whether all of them hold."},
    {NULL},
};
