/* Where in the user's program an operation runs: see source_lines.c. */
#ifndef PULLBACK_SOURCE_LINES_H
#define PULLBACK_SOURCE_LINES_H

#include <Python.h>

extern PyMethodDef source_line_methods[];

#endif
