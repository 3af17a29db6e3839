/* Steps of optimizers: the kernels of kernels/optimizer_steps.py, in one pass over memory.
 *
 * A step takes rows of arrays (a parameter, its gradient, its state) and numbers. Its loops are rendered from the Python
 * text; what brings the rows to them is here.
 */
#include "functions.h"
#include "rows.h"

#define MOST_ARRAYS 5
#define MOST_NUMBERS 12
#define GRADIENT 1 /* its place in a row; it is only read */

/* What a row lacks is NULL. */
typedef struct {
    const double *numbers;
    void *const *arrays;
} StepRow;

#define LOOPS "optimizer_step_loops.h"
#include "for_each_real.h"

/* How many arrays a row may have and how many numbers follow, in the kind of an entry. */
#define SIZES(fewest, most, numbers) ((fewest) | (most) << 8 | (numbers) << 16)
INLINE int fewest_of(const KernelEntry *entry) { return entry->kind & 255; }
INLINE int most_of(const KernelEntry *entry) { return entry->kind >> 8 & 255; }
INLINE int numbers_of(const KernelEntry *entry) { return entry->kind >> 16; }

/* The rows of one call: arrays that are not row-major are copied, and copied back when they are released. */
typedef struct {
    ptrdiff_t count, elements;
    int width;
    PyObject **held; /* `width` for each row, NULL for None */
    void **data;     /* MOST_ARRAYS for each row */
} Rows;

typedef struct {
    const Rows *rows;
    BlockFunction loop;
    double numbers[MOST_NUMBERS];
} Call;

/* Also what inherits from a float, as NumPy's float64 does. */
static int read_step_number(PyObject *object, double *value)
{
    if (PyFloat_Check(object)) {
        *value = PyFloat_AS_DOUBLE(object);
        return 1;
    }
    return read_number(object, value);
}

static int read_numbers(const KernelEntry *entry, PyObject *const *slots, double *numbers)
{
    for (int i = 0; i < numbers_of(entry); i++)
        if (slots[i] == Py_True || slots[i] == Py_False)
            numbers[i] = slots[i] == Py_True;
        else if (!read_step_number(slots[i], &numbers[i]))
            return 0;
    return 1;
}

/* Whether the arrays of a row are what a step takes: of one type and shape, from place `fewest` on also None. */
static int is_row(PyObject *const *arrays, const KernelEntry *entry, int width, int type)
{
    PyObject *param = arrays[0];
    for (int i = 0; i < width; i++) {
        if (arrays[i] == Py_None && i >= fewest_of(entry))
            continue;
        if (!is_real_array_of(arrays[i], type) || !same_shape(arrays[i], param) ||
            (i != GRADIENT && !PyArray_ISWRITEABLE((PyArrayObject *)arrays[i])))
            return 0;
    }
    return 1;
}

/* The type of the arrays, all of one; -1 where the rows are not lists of such. Counts rows and elements. */
static int survey(PyObject *list, const KernelEntry *entry, Rows *rows)
{
    if (!list || !PyList_CheckExact(list) || !(rows->count = PyList_GET_SIZE(list)))
        return -1;
    int type = -1;
    for (ptrdiff_t i = 0; i < rows->count; i++) {
        PyObject *row = PyList_GET_ITEM(list, i);
        if (!PyList_CheckExact(row))
            return -1;
        PyObject **arrays = PySequence_Fast_ITEMS(row);
        if (!i) {
            rows->width = (int)PyList_GET_SIZE(row);
            if (rows->width < fewest_of(entry) || rows->width > most_of(entry) || !is_real_array(arrays[0]))
                return -1;
            type = type_of(arrays[0]);
        }
        if (PyList_GET_SIZE(row) != rows->width || !is_row(arrays, entry, rows->width, type))
            return -1;
        rows->elements += size_of(arrays[0]);
    }
    return type;
}

/* Writes copies back; -1 with an exception where that fails. */
static int release(Rows *rows)
{
    int failed = 0;
    for (ptrdiff_t i = 0; i < rows->count * rows->width; i++) {
        PyObject *array = rows->held[i];
        if (array && PyArray_ResolveWritebackIfCopy((PyArrayObject *)array) < 0)
            failed = -1;
        Py_XDECREF(array);
    }
    PyMem_Free(rows->held);
    return failed;
}

/* -1 with an exception where memory runs out. */
static int hold(PyObject *list, Rows *rows)
{
    ptrdiff_t count = rows->count * rows->width;
    rows->held = PyMem_Calloc(count + rows->count * MOST_ARRAYS, sizeof(void *));
    if (!rows->held) {
        PyErr_NoMemory();
        return -1;
    }
    rows->data = (void **)(rows->held + count);
    for (ptrdiff_t i = 0; i < count; i++) {
        ptrdiff_t row = i / rows->width, place = i % rows->width;
        PyObject *array = PyList_GET_ITEM(PyList_GET_ITEM(list, row), place);
        if (array == Py_None)
            continue;
        int needs = place == GRADIENT ? NPY_ARRAY_IN_ARRAY : NPY_ARRAY_CARRAY | NPY_ARRAY_WRITEBACKIFCOPY;
        rows->held[i] = is_plain(array) ? Py_NewRef(array) : PyArray_FromArray((PyArrayObject *)array, NULL, needs);
        if (!rows->held[i]) {
            release(rows);
            return -1;
        }
        rows->data[row * MOST_ARRAYS + place] = data_of(rows->held[i]);
    }
    return 0;
}

/* Items are parts of every row, so that a row given twice is done twice by one thread, in order. */
#define PARTS 64

static void do_parts(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Call *call = context;
    const Rows *rows = call->rows;
    for (ptrdiff_t i = 0; i < rows->count; i++) {
        ptrdiff_t size = size_of(rows->held[i * rows->width]);
        StepRow row = {call->numbers, rows->data + i * MOST_ARRAYS};
        call->loop(&row, size * begin / PARTS, size * end / PARTS);
    }
}

static PyObject *do_step(PyObject *const *slots, const KernelEntry *entry)
{
    Rows rows = {0};
    Call call = {.rows = &rows};
    if (!read_numbers(entry, slots + 1, call.numbers))
        return DECLINE;
    int type = survey(slots[0], entry, &rows);
    if (type < 0)
        return DECLINE;
    if (hold(slots[0], &rows) < 0)
        return NULL;
    call.loop = type == NPY_FLOAT ? entry->of_float : entry->of_double;
    run_items(PARTS, rows.elements / PARTS + 1, do_parts, &call);
    if (release(&rows) < 0)
        return NULL;
    Py_RETURN_NONE;
}

#define ENTRY(name, fewest, most, numbers) {#name, do_step, .kind = SIZES(fewest, most, numbers), LOOP_PAIR(name)},
const KernelEntry optimizer_step_kernels[] = {STEPS(ENTRY) {NULL}};
