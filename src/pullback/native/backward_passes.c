/* The marks of backward passes, by which graphs that stay in memory are noticed. See Note [Leak sentinel] in
 * engine/leaks.py. The interpreter's lock guards the table. */
#define PY_SSIZE_T_CLEAN
#include "source_lines.h"

#include <structmember.h>

#define KEPT 16   /* passes of a thread */
#define THREADS 8 /* threads whose passes are kept: the one that was idle for longest makes way for another */
#define FIRST (~0ULL)
#define GROWN 64  /* one in so many passes that keep their graphs is looked at: does the graph grow? */

typedef struct {
    unsigned long thread;
    unsigned long long used; /* a count: larger is later; 0: empty */
    PyObject *marks[KEPT];   /* weak references, a ring */
    int next;                /* the place of the oldest */
    unsigned long long recorded;
    unsigned long long kept[KEPT]; /* of passes that keep their graphs: how many nodes there were then, a ring */
    unsigned long kept_count;
} Passes;

static Passes table[THREADS];
static unsigned long long uses;
static PyTypeObject *pass_type;
static PyObject *leaked, *grown, *no_arguments, *sequence_nr_name;
static Py_ssize_t line_offset;

static Passes *passes_of_this_thread(void)
{
    unsigned long thread = PyThread_get_thread_ident();
    Passes *oldest = table;
    for (Passes *passes = table; passes < table + THREADS; passes++) {
        if (passes->used && passes->thread == thread) {
            passes->used = ++uses;
            return passes;
        }
        if (passes->used < oldest->used)
            oldest = passes;
    }
    Passes former = *oldest;
    *oldest = (Passes){.thread = thread, .used = ++uses};
    for (int i = 0; i < KEPT; i++)
        Py_XDECREF(former.marks[i]);
    return oldest;
}

static int is_alive(PyObject *mark)
{
    PyObject *found = mark ? referent_of(mark) : NULL;
    int answer = found && found != Py_None;
    Py_XDECREF(found);
    return answer;
}

/* Where the marks of all passes that are kept are alive, tell of it. */
static int look_at(const Passes *passes)
{
    for (int i = 0; i < KEPT; i++)
        if (!is_alive(passes->marks[(passes->next + i) % KEPT])) /* the oldest first: mostly it is dead */
            return 0;
    PyObject *marks = PyTuple_New(KEPT);
    for (int i = 0; marks && i < KEPT; i++)
        PyTuple_SET_ITEM(marks, i, Py_NewRef(passes->marks[i]));
    PyObject *told = marks ? PyObject_CallOneArg(leaked, marks) : NULL;
    Py_XDECREF(marks);
    Py_XDECREF(told);
    return told ? 0 : -1;
}

/* The number of the node at which a pass begins; FIRST where that says nothing. */
static unsigned long long root_number(PyObject *edges)
{
    PyObject *edge = PyList_CheckExact(edges) && PyList_GET_SIZE(edges) ? PyList_GET_ITEM(edges, 0) : NULL;
    if (!edge || !PyTuple_Check(edge) || !PyTuple_GET_SIZE(edge))
        return FIRST;
    PyObject *number = PyObject_GetAttr(PyTuple_GET_ITEM(edge, 0), sequence_nr_name);
    unsigned long long root = number ? PyLong_AsUnsignedLongLong(number) : FIRST;
    Py_XDECREF(number);
    PyErr_Clear();
    return root;
}

/* Note a pass that keeps its graph; now and then, have looked at whether that graph goes on from those before. */
static int note_kept(Passes *passes, PyObject *edges, unsigned long long root, unsigned long long recorded)
{
    if (passes->kept_count && recorded < passes->kept[(passes->kept_count - 1) % KEPT])
        passes->kept_count = 0; /* a new thread, with the number of one that has ended */
    if (root == FIRST || (passes->kept_count && root < passes->kept[(passes->kept_count - 1) % KEPT]))
        return 0; /* recorded before the last pass ran */
    passes->kept[passes->kept_count++ % KEPT] = recorded;
    unsigned long count = passes->kept_count;
    if (count % GROWN)
        return 0;
    PyObject *marks = PyTuple_New(KEPT);
    for (int i = 0; marks && i < KEPT; i++) {
        PyObject *number = PyLong_FromUnsignedLongLong(passes->kept[(count + i) % KEPT]); /* the oldest first */
        if (!number)
            Py_CLEAR(marks);
        else
            PyTuple_SET_ITEM(marks, i, number);
    }
    PyObject *told = marks ? PyObject_CallFunctionObjArgs(grown, edges, marks, NULL) : NULL;
    Py_XDECREF(marks);
    Py_XDECREF(told);
    return told ? 0 : -1;
}

static PyObject *begin_pass(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 3 || !pass_type)
        return PyErr_Format(PyExc_TypeError, "begin_pass() takes edges, whether the pass counts, and whether it keeps its graph");
    int keeps = PyObject_IsTrue(arguments[2]);
    if (keeps < 0)
        return NULL;
    PyObject *line = lines_wanted() ? current_line() : Py_NewRef(Py_None);
    if (!line || line == Py_None)
        return line;
    PyObject *begun = pass_type->tp_new(pass_type, no_arguments, NULL);
    if (!begun) {
        Py_DECREF(line);
        return NULL;
    }
    *(PyObject **)((char *)begun + line_offset) = line; /* the slot of an object that nobody else has seen yet: empty */
    if (arguments[1] != Py_True)
        return begun;
    Passes *passes = passes_of_this_thread();
    unsigned long long root = root_number(arguments[0]), recorded = recorded_by_this_thread();
    if (keeps) {
        if (!note_kept(passes, arguments[0], root, recorded))
            return begun;
        Py_DECREF(begun);
        return NULL;
    }
    if (recorded < passes->recorded)
        passes->recorded = 0; /* a new thread, with the number of one that has ended */
    if (root == FIRST || root < passes->recorded)
        return begun; /* recorded before the last pass ran: one of several losses of one forward */
    PyObject *mark = look_at(passes) ? NULL : PyWeakref_NewRef(begun, NULL);
    if (!mark) {
        Py_DECREF(begun);
        return NULL;
    }
    passes = passes_of_this_thread(); /* what was told may have run passes of its own */
    PyObject *former = passes->marks[passes->next];
    passes->marks[passes->next] = mark;
    passes->next = (passes->next + 1) % KEPT;
    passes->recorded = recorded;
    Py_XDECREF(former);
    return begun;
}

static PyObject *bind_passes(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *class, *tells, *looks;
    if (!PyArg_ParseTuple(arguments, "O!OO", &PyType_Type, &class, &tells, &looks))
        return NULL;
    PyObject *slot = PyObject_GetAttrString(class, "line");
    if (!slot || !Py_IS_TYPE(slot, &PyMemberDescr_Type)) {
        Py_XDECREF(slot);
        return PyErr_Format(PyExc_TypeError, "bind_passes() takes a class with a slot `line`");
    }
    line_offset = ((PyMemberDescrObject *)slot)->d_member->offset;
    Py_DECREF(slot);
    sequence_nr_name = PyUnicode_InternFromString("sequence_nr");
    if (!sequence_nr_name || !(no_arguments = PyTuple_New(0)))
        return NULL;
    Py_XSETREF(leaked, Py_NewRef(tells));
    Py_XSETREF(grown, Py_NewRef(looks));
    Py_XSETREF(pass_type, (PyTypeObject *)Py_NewRef(class));
    return PyLong_FromLong(KEPT);
}

PyMethodDef pass_methods[] = {
    {"begin_pass", (PyCFunction)(void (*)(void))begin_pass, METH_FASTCALL,
     "begin_pass(edges, counts, keeps_graph): the mark of a pass that begins, or None where lines are not wanted."},
    {"bind_passes", bind_passes, METH_VARARGS,
     "bind_passes(Pass, leaked, grown): how many passes are kept; `leaked(marks)` is called where all of them are alive,\n"
     "`grown(edges, numbers)` now and then where many passes kept their graphs."},
    {NULL},
};
