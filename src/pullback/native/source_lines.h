/* Where in the user's program an operation runs: see source_lines.c. */
#ifndef PULLBACK_SOURCE_LINES_H
#define PULLBACK_SOURCE_LINES_H

#include <Python.h>

extern PyMethodDef source_line_methods[];
extern PyMethodDef cut_methods[];

int lines_wanted(void);
PyObject *current_line(void); /* a new reference to the SourceLine of the user's innermost frame, or to None */

#endif
