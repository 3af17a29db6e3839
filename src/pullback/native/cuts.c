/* Where gradients end: the operations that were given a tensor that requires grad and made one that does not.
 *
 * A table with a place for each kind and line (and tensor, if it is a leaf), so that a loop does not drive out what happened
 * before it. It holds weak references alone. See Note [Cuts] in modes/cuts.py.
 */
#define PY_SSIZE_T_CLEAN
#include "source_lines.h"

#define CUTS 1024

typedef struct {
    PyObject *kind, *line, *source, *result, *recorded, *leaves;
    PyObject *leaf;            /* the source where that is a leaf, else NULL: borrowed of its reference, to compare */
    unsigned long long number; /* 0: empty */
    unsigned long hits;
} Cut;

static Cut cuts[CUTS];
static unsigned long long noted;
static PyObject *switches;  /* pullback.modes.switches.switches */
static PyObject *leaves_of; /* leaves_of(tensor, former): weak references to the leaves that the tensor depends on */
static PyObject *no_grad, *inference_mode, *requires_grad_name, *edge_name, *extra_name, *grad_fn_name,
    *inference_name, *source_name;

/* 1 where the attribute is there and true, 0 otherwise: what is no tensor does not matter here. */
static int is_true(PyObject *owner, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(owner, name);
    int answer = value ? PyObject_IsTrue(value) : 0;
    Py_XDECREF(value);
    if (PyErr_Occurred())
        PyErr_Clear();
    return answer > 0;
}

/* A new reference to a weak reference, or to None. */
static PyObject *weakly(PyObject *value)
{
    PyObject *reference = value == Py_None ? NULL : PyWeakref_NewRef(value, NULL);
    if (reference)
        return reference;
    if (PyErr_Occurred())
        PyErr_Clear();
    Py_RETURN_NONE;
}

/* The line that recorded the tensor, or None: a new reference. Views are asked for their grad_fn, others for their edge. */
static PyObject *recorded_at(PyObject *tensor, int *is_leaf)
{
    PyObject *edge = PyObject_GetAttr(tensor, edge_name), *node = NULL, *line = NULL;
    if (edge && PyTuple_CheckExact(edge) && PyTuple_GET_SIZE(edge) == 2)
        node = Py_NewRef(PyTuple_GET_ITEM(edge, 0));
    else if (is_true(tensor, extra_name))
        node = PyObject_GetAttr(tensor, grad_fn_name);
    Py_XDECREF(edge);
    *is_leaf = !node || node == Py_None;
    if (!*is_leaf)
        line = PyObject_GetAttr(node, source_name);
    Py_XDECREF(node);
    if (line)
        return line;
    PyErr_Clear();
    Py_RETURN_NONE;
}

static void forget(Cut *cut)
{
    Cut former = *cut;
    memset(cut, 0, sizeof(Cut));
    Py_XDECREF(former.kind);
    Py_XDECREF(former.line);
    Py_XDECREF(former.source);
    Py_XDECREF(former.result);
    Py_XDECREF(former.recorded);
    Py_XDECREF(former.leaves);
}

static inline Cut *place_of(PyObject *kind, PyObject *line, PyObject *leaf)
{
    unsigned long long sum = (unsigned long long)(size_t)kind / 16 + (size_t)line * 31ULL + (size_t)leaf * 977ULL;
    return &cuts[(sum * 0x9E3779B97F4A7C15ULL >> 32) % CUTS];
}

static int put(PyObject *kind, PyObject *line, PyObject *result, PyObject *source)
{
    if (kind == no_grad) { /* where a model is only evaluated: each parameter, again and again */
        PyObject *reference = weakly(source);
        Cut *cut = place_of(kind, line, reference);
        Py_DECREF(reference);
        if (cut->number && cut->kind == kind && cut->line == line && cut->leaf == reference) {
            cut->number = ++noted;
            return 0;
        }
    }
    int is_leaf;
    PyObject *recorded = recorded_at(source, &is_leaf), *leaves = NULL;
    PyObject *reference = weakly(source), *leaf = is_leaf ? reference : NULL;
    Cut *cut = place_of(kind, line, leaf);
    unsigned long hits = 1;
    if (cut->number && cut->kind == kind && cut->line == line && cut->leaf == leaf) {
        hits = cut->hits + 1;
        leaves = Py_XNewRef(cut->leaves);
    }
    if (!is_leaf && (hits & (hits - 1)) == 0) { /* a walk through the graph: at hits 1, 2, 4, 8, ... */
        PyObject *found = PyObject_CallFunctionObjArgs(leaves_of, source, leaves ? leaves : Py_None, NULL);
        Py_XSETREF(leaves, found);
        if (!found) {
            Py_DECREF(recorded);
            Py_DECREF(reference);
            return -1;
        }
    }
    forget(cut);
    *cut = (Cut){Py_NewRef(kind), Py_NewRef(line), reference, weakly(kind == no_grad ? Py_None : result), recorded, leaves, leaf, ++noted, hits};
    return 0;
}

/* How many cuts a mode that records nothing made since the table was empty. */
static unsigned long met_in_modes;

/* Whether to leave this one out: an evaluation that goes on repeats lines that are known, and is told of now and then. */
static inline int is_left_out(PyObject *kind)
{
    return kind == Py_None && met_in_modes++ >= 4096 && met_in_modes % 64;
}

static PyObject *note_cut(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count < 3 || !switches)
        return PyErr_Format(PyExc_TypeError, "note_cut() takes a kind, a result and the inputs");
    if (!lines_wanted() || is_left_out(arguments[0]))
        Py_RETURN_FALSE;
    PyObject *line = NULL, *kind = arguments[0];
    for (Py_ssize_t i = 2; i < count; i++) {
        PyObject *given = arguments[i];
        if (given == Py_None || PyFloat_CheckExact(given) || PyLong_CheckExact(given) || !is_true(given, requires_grad_name))
            continue; /* numbers are asked for no attribute: an exception takes longer than the rest */
        if (!line && !(line = current_line()))
            return NULL;
        if (kind == Py_None)
            kind = is_true(switches, inference_name) ? inference_mode : no_grad;
        if (put(kind, line, arguments[1], arguments[i])) {
            Py_DECREF(line);
            return NULL;
        }
    }
    Py_XDECREF(line);
    Py_RETURN_FALSE;
}

static PyObject *list_cuts(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing))
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < CUTS; i++) {
        if (!cuts[i].number)
            continue;
        PyObject *entry = Py_BuildValue("KOOOOOO", cuts[i].number, cuts[i].kind, cuts[i].line, cuts[i].source,
                                        cuts[i].result, cuts[i].recorded, cuts[i].leaves ? cuts[i].leaves : Py_None);
        if (!entry || PyList_Append(list, entry))
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

static PyObject *clear_cuts(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing))
{
    for (int i = 0; i < CUTS; i++)
        forget(&cuts[i]);
    met_in_modes = 0;
    Py_RETURN_NONE;
}

static PyObject *bind_cuts(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *given, *walk;
    if (!PyArg_ParseTuple(arguments, "OO", &given, &walk))
        return NULL;
    no_grad = PyUnicode_InternFromString("no_grad");
    inference_mode = PyUnicode_InternFromString("inference_mode");
    inference_name = inference_mode;
    requires_grad_name = PyUnicode_InternFromString("_requires_grad");
    edge_name = PyUnicode_InternFromString("_edge");
    extra_name = PyUnicode_InternFromString("_extra");
    grad_fn_name = PyUnicode_InternFromString("grad_fn");
    source_name = PyUnicode_InternFromString("source");
    if (!no_grad || !inference_mode || !requires_grad_name || !edge_name || !extra_name || !grad_fn_name || !source_name)
        return NULL;
    Py_XSETREF(switches, Py_NewRef(given));
    Py_XSETREF(leaves_of, Py_NewRef(walk));
    Py_RETURN_NONE;
}

PyMethodDef cut_methods[] = {
    {"note_cut", (PyCFunction)(void (*)(void))note_cut, METH_FASTCALL,
     "note_cut(kind, result, *inputs): note those inputs that require grad; kind None: recording is off. Always False."},
    {"list_cuts", list_cuts, METH_NOARGS, "The fields of modes.cuts.Cut for each, in no order."},
    {"clear_cuts", clear_cuts, METH_NOARGS, "Forget all."},
    {"bind_cuts", bind_cuts, METH_VARARGS,
     "bind_cuts(switches, leaves_of): who says whether inference mode is on, and who finds the leaves behind a tensor."},
    {NULL},
};
