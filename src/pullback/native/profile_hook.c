/* Python's profiler hook in front of a function that wants few of its events: see compiling/effects.py.
 *
 * The hook of `sys.setprofile` calls a Python function for each event. Nine tenths of those of a recorded function are of
 * frames of this package, which tell nothing: here these cost a look into a dictionary.
 */
#define PY_SSIZE_T_CLEAN
#include "source_lines.h"

#include <frameobject.h>

static PyObject *event_names[8];

/* `watcher` is (callback, passed): events of frames whose code's address is a key of `passed` are not told. */
static int tell(PyObject *watcher, PyFrameObject *frame, int event, PyObject *argument)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    PyObject *address = PyLong_FromVoidPtr(code);
    Py_DECREF(code);
    int is_passed = address ? PyDict_Contains(PyTuple_GET_ITEM(watcher, 1), address) : -1;
    Py_XDECREF(address);
    if (is_passed)
        return is_passed < 0 ? -1 : 0;
    if (!event_names[event])
        return 0;
#if PY_VERSION_HEX < 0x030D0000 /* later ones write to variables at once */
    if (PyFrame_FastToLocalsWithError(frame))
        return -1;
#endif
    PyObject *answer = PyObject_CallFunctionObjArgs(PyTuple_GET_ITEM(watcher, 0), (PyObject *)frame, event_names[event],
                                                    argument ? argument : Py_None, NULL);
#if PY_VERSION_HEX < 0x030D0000
    PyFrame_LocalsToFast(frame, 1);
#endif
    Py_XDECREF(answer);
    return answer ? 0 : -1;
}

static PyObject *watch_frames(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *callback, *passed;
    if (!PyArg_ParseTuple(arguments, "OO!:watch_frames", &callback, &PyDict_Type, &passed))
        return NULL;
    if (!event_names[PyTrace_CALL]) {
        event_names[PyTrace_CALL] = PyUnicode_InternFromString("call");
        event_names[PyTrace_RETURN] = PyUnicode_InternFromString("return");
        event_names[PyTrace_C_CALL] = PyUnicode_InternFromString("c_call");
    }
    PyEval_SetProfile(tell, arguments); /* the tuple of both is what `tell` is given */
    Py_RETURN_NONE;
}

static PyObject *call_unwatched(PyObject *function, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    PyThreadState *state = PyThreadState_Get();
    PyThreadState_EnterTracing(state);
    PyObject *answer = PyObject_Vectorcall(function, arguments, (size_t)count, names);
    PyThreadState_LeaveTracing(state);
    return answer;
}

static PyMethodDef unwatched_definition = {"unwatched", (PyCFunction)(void (*)(void))call_unwatched,
                                           METH_FASTCALL | METH_KEYWORDS, "A function during whose calls no hook is told."};

static PyObject *unwatched(PyObject *Py_UNUSED(module), PyObject *function)
{
    return PyCFunction_NewEx(&unwatched_definition, function, NULL);
}

PyMethodDef profile_hook_methods[] = {
    {"unwatched", unwatched, METH_O,
     "unwatched(function): the function, during whose calls profilers and tracers are not told. Where there is one, the "
     "interpreter takes twice as long for each instruction."},
    {"watch_frames", watch_frames, METH_VARARGS,
     "watch_frames(callback, passed): as sys.setprofile, without frames whose code's id is a key of `passed`, and for calls, "
     "returns and calls of built-in functions alone."},
    {NULL},
};
