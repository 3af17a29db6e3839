/* Methods of Tensor that are compiled functions; see tensor_methods.c. */
#ifndef METHODS_H
#define METHODS_H

#include <Python.h>

int prepare_methods(void);
PyObject *new_method(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *called_method(PyObject *module, PyObject *nothing);

#endif
