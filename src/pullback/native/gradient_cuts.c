/* Where gradients end: the operations that were given a tensor that requires grad and made one that does not.
 *
 * A table with a place for each kind and line (and tensor, if it is a leaf), so that a loop does not drive out what happened
 * before it. It holds weak references alone. See Note [Cuts] in modes/cuts.py.
 */
#define PY_SSIZE_T_CLEAN
#include "source_lines.h"

#define CUTS 4096 /* a power of two */
#define WAYS 4    /* the places in which a note may stand: the oldest of them makes way for another */

typedef struct {
    PyObject *kind, *line, *result, *leaves;
    PyObject *source;          /* a weak reference to the tensor where that is a leaf, else NULL */
    unsigned long long number; /* 0: empty */
    unsigned long hits;
} Cut;

static Cut cuts[CUTS];
static THREAD_LOCAL PyObject *excused; /* a tuple: what is not noted, since a node hands its gradient on; or NULL */
static unsigned long long noted;
static PyObject *switches;  /* pullback.modes.switches.switches */
static PyObject *leaves_of; /* leaves_of(tensor, former): weak references to the leaves that the tensor depends on */
static PyObject *no_grad, *inference_mode, *requires_grad_name, *edge_name, *extra_name, *grad_fn_name, *inference_name;

/* 1 where the attribute is there and true, 0 otherwise: what is not a tensor does not matter here. */
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

/* Make the weak reference at a place one to another value. One whose tensor is gone and that nobody else holds is filled
 * again, as PyWeakref_NewRef fills a new one: to make and free them took half of the time of a note. */
static inline void refer(PyObject **place, PyObject *value)
{
#if PY_VERSION_HEX < 0x030E0000 && !defined(Py_GIL_DISABLED)
    PyWeakReference *known = (PyWeakReference *)*place;
    Py_ssize_t offset = Py_TYPE(value)->tp_weaklistoffset;
    PyWeakReference **list = offset ? (PyWeakReference **)((char *)value + offset) : NULL;
    if (list && !*list && PyWeakref_CheckRefExact(*place) && Py_REFCNT(known) == 1 && known->wr_object == Py_None) {
        known->wr_object = value;
        known->hash = -1;
        *list = known;
        return;
    }
#endif
    Py_SETREF(*place, weakly(value));
}

/* Whether the tensor is not a leaf: its edge says it, of a view its grad_fn. */
static int is_recorded(PyObject *tensor)
{
    PyObject *found = PyObject_GetAttr(tensor, edge_name);
    if (found == Py_None && is_true(tensor, extra_name))
        Py_SETREF(found, PyObject_GetAttr(tensor, grad_fn_name));
    if (!found)
        PyErr_Clear();
    Py_XDECREF(found);
    return found && found != Py_None;
}

static void forget(Cut *cut)
{
    Cut former = *cut;
    memset(cut, 0, sizeof(Cut));
    Py_XDECREF(former.kind);
    Py_XDECREF(former.line);
    Py_XDECREF(former.source);
    Py_XDECREF(former.result);
    Py_XDECREF(former.leaves);
}

/* Whether the place has a note of this kind and line, and of this leaf (NULL: of a tensor that is none). */
static inline int is_of(const Cut *cut, PyObject *kind, PyObject *line, PyObject *leaf)
{
    if (!cut->number || cut->kind != kind || cut->line != line || !cut->source != !leaf)
        return 0;
    PyObject *source = leaf ? referent_of(cut->source) : NULL;
    Py_XDECREF(source);
    return source == leaf;
}

/* The place of such a note: the one that has it, or the one to put it. */
static inline Cut *place_of(PyObject *kind, PyObject *line, PyObject *leaf)
{
    unsigned long long sum = (unsigned long long)(size_t)kind / 16 + (size_t)line * 31ULL + (size_t)leaf * 977ULL;
    size_t first = sum * 0x9E3779B97F4A7C15ULL >> 32;
    Cut *oldest = &cuts[first % CUTS];
    for (int way = 0; way < WAYS; way++) {
        Cut *cut = &cuts[(first + way) % CUTS];
        if (!cut->number || is_of(cut, kind, line, leaf))
            return cut;
        if (cut->number < oldest->number)
            oldest = cut;
    }
    return oldest;
}

/* Note it at a place that has a note of the same kind and line. */
static inline void renew(Cut *cut, PyObject *result)
{
    cut->number = ++noted;
    if (cut->kind != no_grad && (result != Py_None || cut->result != Py_None))
        refer(&cut->result, result);
}

/* Note a tensor that is not a leaf. */
static int put_recorded(PyObject *kind, PyObject *line, PyObject *result, PyObject *source)
{
    Cut *cut = place_of(kind, line, NULL);
    if (!is_of(cut, kind, line, NULL)) {
        forget(cut);
        *cut = (Cut){Py_NewRef(kind), Py_NewRef(line), Py_NewRef(Py_None), NULL, NULL, 0, 0};
    }
    unsigned long hits = ++cut->hits;
    renew(cut, result);
    if (hits > 16 && hits & (hits - 1))
        return 0;
    /* A walk through the graph: at hits 1 to 16, 32, 64, ... */
    PyObject *former = cut->leaves ? Py_NewRef(cut->leaves) : Py_NewRef(Py_None);
    PyObject *found = PyObject_CallFunctionObjArgs(leaves_of, source, former, NULL);
    Py_DECREF(former);
    if (!found)
        return -1;
    if (is_of(cut, kind, line, NULL)) /* what ran meanwhile may have taken the place */
        Py_XSETREF(cut->leaves, found);
    else
        Py_DECREF(found);
    return 0;
}

static int put(PyObject *kind, PyObject *line, PyObject *result, PyObject *source)
{
    Cut *cut = place_of(kind, line, source);
    if (!is_of(cut, kind, line, source)) {
        if (is_recorded(source))
            return put_recorded(kind, line, result, source);
        PyObject *reference = PyWeakref_NewRef(source, NULL);
        if (!reference)
            return -1;
        forget(cut);
        *cut = (Cut){Py_NewRef(kind), Py_NewRef(line), Py_NewRef(Py_None), NULL, reference, 0, 0};
    }
    renew(cut, result); /* a leaf, again and again */
    return 0;
}

/* How many cuts a mode that records nothing made since the table was empty. */
static unsigned long met_in_modes;

/* Whether to leave this one out: an evaluation that goes on repeats lines that are known, and is told of now and then. */
static inline int is_left_out(PyObject *kind)
{
    return kind == Py_None && met_in_modes++ >= 4096 && met_in_modes % 64;
}

static inline int is_excused(PyObject *given)
{
    for (Py_ssize_t i = 0; excused && i < PyTuple_GET_SIZE(excused); i++)
        if (PyTuple_GET_ITEM(excused, i) == given)
            return 1;
    return 0;
}

/* Sets what is excused in this thread; the former tuple, or None. */
static PyObject *excuse(PyObject *Py_UNUSED(module), PyObject *tensors)
{
    if (tensors != Py_None && !PyTuple_Check(tensors))
        return PyErr_Format(PyExc_TypeError, "excuse() takes a tuple or None");
    PyObject *former = excused ? excused : Py_NewRef(Py_None); /* this thread's reference goes to the caller */
    excused = tensors == Py_None ? NULL : Py_NewRef(tensors);
    return former;
}

static PyObject *note_cut(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count < 3 || !switches)
        return PyErr_Format(PyExc_TypeError, "note_cut() takes a kind, a result and the inputs");
    if (!lines_wanted() || is_left_out(arguments[0]))
        Py_RETURN_FALSE;
    PyObject *line = current_line(), *kind = arguments[0];
    int failed = !line;
    for (Py_ssize_t i = 2; i < count && !failed; i++) {
        PyObject *given = arguments[i];
        /* Of one input the caller knows it. Numbers are asked for no attribute: an exception takes longer than the rest. */
        if (count > 3 && (given == Py_None || PyFloat_CheckExact(given) || PyLong_CheckExact(given) ||
                          !is_true(given, requires_grad_name)))
            continue;
        if (is_excused(given))
            continue;
        if (kind == Py_None)
            kind = is_true(switches, inference_name) ? inference_mode : no_grad;
        failed = put(kind, line, arguments[1], given);
    }
    Py_XDECREF(line);
    if (failed)
        return NULL;
    Py_RETURN_FALSE;
}

static PyObject *list_cuts(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing))
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < CUTS; i++) {
        if (!cuts[i].number)
            continue;
        PyObject *entry = Py_BuildValue("KOOOOO", cuts[i].number, cuts[i].kind, cuts[i].line,
                                        cuts[i].source ? cuts[i].source : Py_None, cuts[i].result,
                                        cuts[i].leaves ? cuts[i].leaves : Py_None);
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
    if (!no_grad || !inference_mode || !requires_grad_name || !edge_name || !extra_name || !grad_fn_name)
        return NULL;
    Py_XSETREF(switches, Py_NewRef(given));
    Py_XSETREF(leaves_of, Py_NewRef(walk));
    Py_RETURN_NONE;
}

PyMethodDef cut_methods[] = {
    {"note_cut", (PyCFunction)(void (*)(void))note_cut, METH_FASTCALL,
     "note_cut(kind, result, *inputs): note the one input, or those of several that require grad; kind None: recording is\n"
     "off. Always False."},
    {"excuse", excuse, METH_O, "excuse(tensors): a tuple of what is not noted in this thread, or None; the former one."},
    {"list_cuts", list_cuts, METH_NOARGS, "The fields of modes.cuts.Cut for each, in no order."},
    {"clear_cuts", clear_cuts, METH_NOARGS, "Forget all."},
    {"bind_cuts", bind_cuts, METH_VARARGS,
     "bind_cuts(switches, leaves_of): who says whether inference mode is on, and who finds the leaves behind a tensor."},
    {NULL},
};
