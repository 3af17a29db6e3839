/* Functions that are called to their end; see interrupt_guards.c. */
#ifndef GUARDS_H
#define GUARDS_H

#include <Python.h>

int prepare_guards(void);
PyObject *new_guard(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

#endif
