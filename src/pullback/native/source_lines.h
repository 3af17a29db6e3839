/* Where in the user's program an operation runs: see source_lines.c. */
#ifndef PULLBACK_SOURCE_LINES_H
#define PULLBACK_SOURCE_LINES_H

#include <Python.h>

#ifdef _MSC_VER
#define THREAD_LOCAL __declspec(thread)
#else
#define THREAD_LOCAL _Thread_local
#endif

extern PyMethodDef source_line_methods[];
extern PyMethodDef cut_methods[];
extern PyMethodDef pass_methods[];

int lines_wanted(void);
unsigned long long recorded_by_this_thread(void); /* the number of its next node */
PyObject *current_line(void); /* a new reference to the SourceLine of the user's innermost frame, or to None */

/* What a weak reference refers to: a new reference; None or NULL where that is gone. */
static inline PyObject *referent_of(PyObject *reference)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *found = NULL;
    PyWeakref_GetRef(reference, &found);
    return found;
#else
    return Py_NewRef(PyWeakref_GET_OBJECT(reference));
#endif
}

#endif
