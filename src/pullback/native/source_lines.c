/* Where in the user's program an operation runs: the innermost frame that is not the package's, without making frame
 * objects. See Note [Source lines] in graph/source_lines.py, and modes/source_lines.py for these functions in Python.
 *
 * Two small tables make the common case two look-ups. The first knows of a code object whether its frames are passed
 * over; the second holds the SourceLine of a code object, an offset and a module path. Their entries hold references,
 * so no address is reused while an entry names it. The interpreter's lock guards them.
 */
#define PY_SSIZE_T_CLEAN
#include "source_lines.h"

/* The layout of frames is private to each version of Python: the versions that are not known here are asked through the
 * public interface, which makes an object of each frame. */
#if PY_VERSION_HEX < 0x030E0000 && !defined(PYPY_VERSION)
#define READS_FRAMES 1
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#if PY_VERSION_HEX >= 0x030D0000
#define CURRENT_FRAME(thread) ((thread)->current_frame)
#define CODE_OF(frame) ((frame)->f_executable)
#else
#define CURRENT_FRAME(thread) ((thread)->cframe->current_frame)
#define CODE_OF(frame) ((PyObject *)(frame)->f_code)
#endif
#else
#define READS_FRAMES 0
#endif
#include <structmember.h>

#define CODES 8192 /* powers of two */
#define LINES 8192
#define PATHS 1024
#define WAYS 4 /* the places in which an entry may stand: who meets another in all of them drives out the first */
#define WRITES_KEPT 32

static int wanted;                                /* of the process */
static THREAD_LOCAL int own_wish;                 /* of this thread: 0 as the process, 1 on, -1 off */
static THREAD_LOCAL PyObject *module_path;        /* the innermost nn.Module that this thread is in; or NULL */
static THREAD_LOCAL unsigned long long recorded_nodes;
static PyObject *line_type, *path_type, *is_hidden; /* given by graph/source_lines.py */
static PyObject *source_name;
static Py_ssize_t source_offset;                  /* of the slot in a node; 0 where nodes are compiled classes */
static Py_ssize_t value_offset, lines_offset;     /* of the slots of a VersionCounter */
static PyObject *counter_type, *count_other;      /* VersionCounter, and who counts where the class is another one */
static PyObject *bump_other, *mirrors;            /* given by graph/history.py: for what is not plain; mirrors to tell */
static PyObject *counter_name, *one;

static struct { PyObject *code; int hidden; } codes[CODES];
static struct { PyObject *code, *path, *line; int offset; } lines[LINES];
static struct { PyObject *parent, *reference, *path; } paths[PATHS];

/* A number that differs in its upper bits for addresses and offsets that are close to each other. */
static inline unsigned long long mixed(const void *first, const void *second, int offset)
{
    unsigned long long sum = (unsigned long long)(size_t)first / 16 + (unsigned long long)(size_t)second * 31 + offset * 977ULL;
    return sum * 0x9E3779B97F4A7C15ULL >> 32;
}

/* Whether frames of this code are passed over; -1 with an exception. */
static int passed_over(PyObject *code, PyObject *globals)
{
    size_t first = mixed(code, NULL, 0) % CODES, place = first;
    for (int way = 0; way < WAYS; way++) {
        place = (first + way) % CODES;
        if (codes[place].code == code)
            return codes[place].hidden;
        if (!codes[place].code)
            break;
    }
    if (codes[place].code)
        place = first;
    PyObject *answer = PyObject_CallFunctionObjArgs(is_hidden, code, globals, NULL);
    int hidden = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    if (hidden < 0)
        return -1;
    PyObject *former = codes[place].code;
    codes[place].code = Py_NewRef(code);
    codes[place].hidden = hidden;
    Py_XDECREF(former);
    return hidden;
}

/* The SourceLine of a place: a new reference. */
static PyObject *line_at(PyObject *code, int offset)
{
    size_t first = mixed(code, module_path, offset) % LINES, place = first;
    for (int way = 0; way < WAYS; way++) {
        place = (first + way) % LINES;
        if (lines[place].code == code && lines[place].offset == offset && lines[place].path == module_path)
            return Py_NewRef(lines[place].line);
        if (!lines[place].code)
            break;
    }
    if (lines[place].code)
        place = first;
    PyObject *number = PyLong_FromLong(offset);
    PyObject *path = module_path ? module_path : Py_None;
    PyObject *line = number ? PyObject_CallFunctionObjArgs(line_type, code, number, path, NULL) : NULL;
    Py_XDECREF(number);
    if (!line)
        return NULL;
    PyObject *former = lines[place].line; /* holds the former code and path */
    lines[place].code = code;
    lines[place].path = module_path;
    lines[place].offset = offset;
    lines[place].line = Py_NewRef(line);
    Py_XDECREF(former);
    return line;
}

int lines_wanted(void)
{
    return (own_wish ? own_wish > 0 : wanted) && line_type;
}

PyObject *current_line(void)
{
#if READS_FRAMES
    for (_PyInterpreterFrame *frame = CURRENT_FRAME(PyThreadState_Get()); frame; frame = frame->previous) {
        if (_PyFrame_IsIncomplete(frame))
            continue; /* the interpreter's own: where C called Python, or an instance is made */
        PyObject *code = CODE_OF(frame);
        int hidden = passed_over(code, frame->f_globals);
        if (hidden < 0)
            return NULL;
        if (!hidden)
            return line_at(code, (int)sizeof(_Py_CODEUNIT) * _PyInterpreterFrame_LASTI(frame));
    }
    Py_RETURN_NONE;
#else
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    PyObject *found = NULL;
    while (frame && !found) {
        PyObject *code = (PyObject *)PyFrame_GetCode(frame), *globals = PyFrame_GetGlobals(frame);
        int hidden = passed_over(code, globals);
        if (hidden == 0)
            found = line_at(code, PyFrame_GetLasti(frame));
        Py_DECREF(code);
        Py_DECREF(globals);
        PyFrameObject *outer = hidden == 1 ? PyFrame_GetBack(frame) : NULL;
        Py_DECREF(frame);
        frame = outer;
        if (hidden < 0 || (hidden == 0 && !found))
            return NULL;
    }
    return found ? found : Py_NewRef(Py_None);
#endif
}

static PyObject *source_line(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing))
{
    return lines_wanted() ? current_line() : Py_NewRef(Py_None);
}

unsigned long long recorded_by_this_thread(void)
{
    return recorded_nodes;
}

static PyObject *next_sequence_nr(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing))
{
    return PyLong_FromUnsignedLongLong(recorded_nodes++);
}

static PyObject *recorded(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing))
{
    return PyLong_FromUnsignedLongLong(recorded_nodes);
}

static PyObject *new_node(PyObject *Py_UNUSED(module), PyObject *kind)
{
    static PyObject *no_arguments;
    if (!no_arguments && !(no_arguments = PyTuple_New(0)))
        return NULL;
    if (!PyType_Check(kind) || !((PyTypeObject *)kind)->tp_new)
        return PyErr_Format(PyExc_TypeError, "new_node() takes a class");
    PyObject *node = ((PyTypeObject *)kind)->tp_new((PyTypeObject *)kind, no_arguments, NULL);
    if (!node || !lines_wanted() || !source_name)
        return node;
    PyObject *line = current_line();
    if (!line) {
        Py_DECREF(node);
        return NULL;
    }
    if (source_offset) { /* the slot of a node that nobody else has seen yet: empty */
        *(PyObject **)((char *)node + source_offset) = line;
        return node;
    }
    if (PyObject_SetAttr(node, source_name, line))
        Py_CLEAR(node);
    Py_DECREF(line);
    return node;
}

/* The list with the current line added, None where lines are not wanted: a new reference. */
static PyObject *with_current_line(PyObject *noted)
{
    PyObject *line = lines_wanted() ? current_line() : Py_NewRef(Py_None);
    if (line == Py_None)
        return line;
    if (!line)
        return NULL;
    PyObject *list = noted && PyList_CheckExact(noted) ? Py_NewRef(noted) : PyList_New(0);
    /* At most half more than is kept: a list that is cut to less than half of its memory gives memory back. */
    if (list && (PyList_Append(list, line) || (PyList_GET_SIZE(list) > WRITES_KEPT + WRITES_KEPT / 2 &&
                                               PyList_SetSlice(list, 0, PyList_GET_SIZE(list) - WRITES_KEPT, NULL))))
        Py_CLEAR(list);
    Py_DECREF(line);
    return list;
}

static PyObject *note_write(PyObject *Py_UNUSED(module), PyObject *noted)
{
    return with_current_line(noted);
}

static int count_one(PyObject *counter)
{
    PyObject **value = (PyObject **)((char *)counter + value_offset);
    PyObject **noted = (PyObject **)((char *)counter + lines_offset);
    PyObject *next = *value ? PyNumber_Add(*value, one) : NULL;
    if (!next) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_AttributeError, "value");
        return -1;
    }
    Py_SETREF(*value, next);
    PyObject *list = with_current_line(*noted);
    if (!list)
        return -1;
    Py_XSETREF(*noted, list);
    return 0;
}

static PyObject *count_write(PyObject *Py_UNUSED(module), PyObject *counter)
{
    if ((PyObject *)Py_TYPE(counter) != counter_type)
        return PyObject_CallOneArg(count_other, counter);
    return count_one(counter) ? NULL : Py_NewRef(Py_None);
}

static PyObject *bump_version(PyObject *Py_UNUSED(module), PyObject *tensor)
{
    PyObject *counter = PyObject_GetAttr(tensor, counter_name);
    if (!counter)
        return NULL;
    PyObject *done = (PyObject *)Py_TYPE(counter) != counter_type || PyDict_GET_SIZE(mirrors) > 0
        ? PyObject_CallOneArg(bump_other, tensor)
        : count_one(counter) ? NULL : Py_NewRef(Py_None);
    Py_DECREF(counter);
    return done;
}

static PyObject *enter_module(PyObject *Py_UNUSED(module), PyObject *entered)
{
    PyObject *former = module_path ? module_path : Py_None;
    if (!lines_wanted())
        return Py_NewRef(former);
    PyObject *reference = PyWeakref_NewRef(entered, NULL); /* the same object each time, while the module lives */
    if (!reference)
        return NULL;
    size_t place = mixed(reference, module_path, 0) % PATHS;
    if (paths[place].parent != module_path || paths[place].reference != reference) {
        PyObject *made = PyObject_CallFunctionObjArgs(path_type, reference, former, NULL);
        if (!made) {
            Py_DECREF(reference);
            return NULL;
        }
        PyObject *replaced = paths[place].path; /* holds the former reference and parent */
        paths[place].parent = module_path;
        paths[place].reference = reference;
        paths[place].path = made;
        Py_XDECREF(replaced);
    }
    Py_DECREF(reference);
    former = module_path ? module_path : Py_NewRef(Py_None); /* this thread's reference goes to the caller */
    module_path = Py_NewRef(paths[place].path);
    return former;
}

static PyObject *leave_module(PyObject *Py_UNUSED(module), PyObject *former)
{
    PyObject *left = module_path;
    module_path = former == Py_None ? NULL : Py_NewRef(former);
    Py_XDECREF(left);
    Py_RETURN_NONE;
}

static int as_number(PyObject *value, int *number)
{
    long given = PyLong_AsLong(value);
    *number = (int)given;
    return given == -1 && PyErr_Occurred() ? -1 : 0;
}

static PyObject *want_source_lines(PyObject *Py_UNUSED(module), PyObject *value)
{
    int former = wanted;
    return as_number(value, &wanted) ? NULL : PyLong_FromLong(former);
}

static PyObject *want_source_lines_here(PyObject *Py_UNUSED(module), PyObject *value)
{
    int former = own_wish, wish;
    if (as_number(value, &wish))
        return NULL;
    own_wish = wish;
    return PyLong_FromLong(former);
}

static PyObject *source_lines_wanted(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing))
{
    return PyBool_FromLong(lines_wanted());
}

static PyObject *bind_source_lines(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *line, *path, *hides;
    if (!PyArg_ParseTuple(arguments, "OOO", &line, &path, &hides))
        return NULL;
    Py_XSETREF(line_type, Py_NewRef(line));
    Py_XSETREF(path_type, Py_NewRef(path));
    Py_XSETREF(is_hidden, Py_NewRef(hides));
    return PyBool_FromLong(READS_FRAMES);
}

/* Where instances keep an attribute of `__slots__`; 0 where the class is compiled, -1 with an exception. */
static Py_ssize_t offset_of(PyObject *class, const char *name)
{
    PyObject *slot = PyObject_GetAttrString(class, name);
    if (!slot)
        return -1;
    Py_ssize_t offset = Py_IS_TYPE(slot, &PyMemberDescr_Type) ? ((PyMemberDescrObject *)slot)->d_member->offset : 0;
    Py_DECREF(slot);
    return offset;
}

static PyObject *bind_node(PyObject *Py_UNUSED(module), PyObject *node_class)
{
    source_offset = offset_of(node_class, "source");
    if (source_offset < 0 || (!source_name && !(source_name = PyUnicode_InternFromString("source"))))
        return NULL;
    Py_RETURN_NONE;
}

/* Whether the functions that write to the slots of the class serve it. */
static PyObject *bind_counter(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *class, *others;
    if (!PyArg_ParseTuple(arguments, "OO", &class, &others))
        return NULL;
    value_offset = offset_of(class, "value");
    lines_offset = offset_of(class, "lines");
    one = PyLong_FromLong(1);
    if (value_offset < 0 || lines_offset < 0 || !one)
        return NULL;
    Py_XSETREF(counter_type, Py_NewRef(class));
    Py_XSETREF(count_other, Py_NewRef(others));
    return PyBool_FromLong(value_offset > 0 && lines_offset > 0);
}

static PyObject *bind_bump(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *others, *living;
    if (!PyArg_ParseTuple(arguments, "OO!", &others, &PyDict_Type, &living))
        return NULL;
    if (!(counter_name = PyUnicode_InternFromString("_counter")))
        return NULL;
    Py_XSETREF(bump_other, Py_NewRef(others));
    Py_XSETREF(mirrors, Py_NewRef(living));
    return PyBool_FromLong(value_offset > 0 && lines_offset > 0);
}

PyMethodDef source_line_methods[] = {
    {"next_sequence_nr", next_sequence_nr, METH_NOARGS, "The next number of this thread; see Note [Sequence numbers]."},
    {"recorded_nodes", recorded, METH_NOARGS, "The number that next_sequence_nr will give next in this thread."},
    {"new_node", new_node, METH_O, "new_node(kind): an instance of the class, without a call of its __init__."},
    {"source_line", source_line, METH_NOARGS, "The SourceLine of the user's innermost frame; None where not wanted."},
    {"count_write", count_write, METH_O, "count_write(counter): one more write of a VersionCounter, and its line."},
    {"note_write", note_write, METH_O, "note_write(lines or None): the list with the current line added."},
    {"enter_module", enter_module, METH_O, "enter_module(module): the path before, for leave_module."},
    {"leave_module", leave_module, METH_O, "leave_module(path): put back the path that enter_module gave."},
    {"want_source_lines", want_source_lines, METH_O, "Turn them on (1) or off (0) in the process; the former value."},
    {"want_source_lines_here", want_source_lines_here, METH_O,
     "This thread's own wish: on (1), off (-1), or as the process (0); the former value."},
    {"source_lines_wanted", source_lines_wanted, METH_NOARGS, "Whether this thread notes source lines."},
    {"bind_source_lines", bind_source_lines, METH_VARARGS,
     "bind_source_lines(SourceLine, ModulePath, is_hidden): whether reading frames is cheap in this Python."},
    {"bump_version", bump_version, METH_O, "bump_version(tensor): one more write of the tensor's memory, and its line."},
    {"bind_counter", bind_counter, METH_VARARGS,
     "bind_counter(VersionCounter, count_other): whether count_write serves the class."},
    {"bind_bump", bind_bump, METH_VARARGS, "bind_bump(bump_other, mirrors): whether bump_version serves tensors."},
    {"bind_node", bind_node, METH_O, "bind_node(Node): the class whose instances have a slot `source`."},
    {NULL},
};
