/* Steps of optimizers: the kernels of kernels/optimizer_steps.py, in one pass over memory.
 *
 * A step takes rows of arrays (a parameter, its gradient, its state) and numbers. The numbers of each step are one table,
 * from which its struct and its reader are made; its arrays are in the order of the loop's first line.
 */
#include "rows.h"

#include <math.h>

#define MOST_ARRAYS 5
#define MOST_NUMBERS 12
#define GRADIENT 1 /* its place in a row; it is only read */

/* Each is a keyword of the step; NUMBER is read as it is, FLAG as 0 or 1. */
#define SGD_NUMBERS(NUMBER, FLAG)                                                                                      \
    NUMBER(lr) NUMBER(momentum) NUMBER(dampening) NUMBER(weight_decay) FLAG(nesterov) FLAG(maximize) FLAG(is_first)
#define ADAM_NUMBERS(NUMBER, FLAG)                                                                                     \
    NUMBER(beta1) NUMBER(beta2) NUMBER(eps) NUMBER(weight_decay) NUMBER(shrink) NUMBER(root_correction)                \
    NUMBER(step_size) FLAG(maximize)
#define NADAM_NUMBERS(NUMBER, FLAG)                                                                                    \
    NUMBER(beta1) NUMBER(beta2) NUMBER(eps) NUMBER(weight_decay) NUMBER(shrink) NUMBER(correction) NUMBER(of_grad)     \
    NUMBER(of_momentum) FLAG(maximize)
#define RADAM_NUMBERS(NUMBER, FLAG)                                                                                    \
    NUMBER(lr) NUMBER(beta1) NUMBER(beta2) NUMBER(eps) NUMBER(weight_decay) NUMBER(shrink) NUMBER(correction)          \
    NUMBER(root_correction) NUMBER(rectification) FLAG(is_rectified) FLAG(maximize)
#define ADAMAX_NUMBERS(NUMBER, FLAG)                                                                                   \
    NUMBER(beta1) NUMBER(beta2) NUMBER(eps) NUMBER(weight_decay) NUMBER(step_size) FLAG(maximize)
#define RMSPROP_NUMBERS(NUMBER, FLAG)                                                                                  \
    NUMBER(lr) NUMBER(alpha) NUMBER(eps) NUMBER(weight_decay) NUMBER(momentum) FLAG(maximize)
#define ADAGRAD_NUMBERS(NUMBER, FLAG) NUMBER(lr) NUMBER(eps) NUMBER(weight_decay) FLAG(maximize)
#define ADADELTA_NUMBERS(NUMBER, FLAG) NUMBER(lr) NUMBER(rho) NUMBER(eps) NUMBER(weight_decay) FLAG(maximize)
#define ASGD_NUMBERS(NUMBER, FLAG) NUMBER(eta) NUMBER(mu) NUMBER(lambd) NUMBER(weight_decay) FLAG(maximize)
#define RPROP_NUMBERS(NUMBER, FLAG)                                                                                    \
    NUMBER(shrink) NUMBER(grow) NUMBER(smallest) NUMBER(largest) FLAG(maximize)

#define MEMBER(name) double name;
typedef struct { SGD_NUMBERS(MEMBER, MEMBER) } SgdNumbers;
typedef struct { ADAM_NUMBERS(MEMBER, MEMBER) } AdamNumbers;
typedef struct { NADAM_NUMBERS(MEMBER, MEMBER) } NadamNumbers;
typedef struct { RADAM_NUMBERS(MEMBER, MEMBER) } RadamNumbers;
typedef struct { ADAMAX_NUMBERS(MEMBER, MEMBER) } AdamaxNumbers;
typedef struct { RMSPROP_NUMBERS(MEMBER, MEMBER) } RmspropNumbers;
typedef struct { ADAGRAD_NUMBERS(MEMBER, MEMBER) } AdagradNumbers;
typedef struct { ADADELTA_NUMBERS(MEMBER, MEMBER) } AdadeltaNumbers;
typedef struct { ASGD_NUMBERS(MEMBER, MEMBER) } AsgdNumbers;
typedef struct { RPROP_NUMBERS(MEMBER, MEMBER) } RpropNumbers;

/* Elements do not wait for each other, even where an array is given twice. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

#define SQUARE_ROOT(x) (sizeof(REAL) == sizeof(float) ? (REAL)sqrtf((float)(x)) : (REAL)sqrt((double)(x)))

#define LOOPS "optimizer_step_loops.h"
#include "for_each_real.h"

/* Does elements `begin` to `end` of one row; what a row lacks is NULL. */
typedef void (*RowLoop)(const void *numbers, void *const *row, ptrdiff_t begin, ptrdiff_t end);

typedef struct {
    int fewest, most; /* arrays in a row */
    RowLoop float_loop, double_loop;
    int count;
    const char *words[1 + MOST_NUMBERS]; /* the rows, then the numbers */
    char is_flag[MOST_NUMBERS];
    PyObject *names[1 + MOST_NUMBERS]; /* the words, interned at the first call */
} Step;

/* The rows of one call: arrays that are not row-major are copied, and copied back when they are released. */
typedef struct {
    ptrdiff_t count, elements;
    int width;
    PyObject **held; /* `width` for each row, NULL for None */
    void **data;     /* MOST_ARRAYS for each row */
} Rows;

typedef struct {
    const Rows *rows;
    RowLoop loop;
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

static int read_numbers(const Step *step, PyObject *const *slots, double *numbers)
{
    for (int i = 0; i < step->count; i++) {
        int flag = 0;
        if (!slots[i] || !(step->is_flag[i] ? read_flag(slots[i], 0, &flag) : read_step_number(slots[i], &numbers[i])))
            return 0;
        if (step->is_flag[i])
            numbers[i] = flag;
    }
    return 1;
}

/* Whether the arrays of a row are what a step takes: of one type and shape, from place `fewest` on also None. */
static int is_row(PyObject *const *arrays, const Step *step, int width, int type)
{
    PyObject *param = arrays[0];
    for (int i = 0; i < width; i++) {
        if (arrays[i] == Py_None && i >= step->fewest)
            continue;
        if (!is_real_array_of(arrays[i], type) || !same_shape(arrays[i], param) ||
            (i != GRADIENT && !PyArray_ISWRITEABLE((PyArrayObject *)arrays[i])))
            return 0;
    }
    return 1;
}

/* The type of the arrays, all of one; -1 where the rows are not lists of such. Counts rows and elements. */
static int survey(PyObject *list, const Step *step, Rows *rows)
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
            if (rows->width < step->fewest || rows->width > step->most || !is_real_array(arrays[0]))
                return -1;
            type = type_of(arrays[0]);
        }
        if (PyList_GET_SIZE(row) != rows->width || !is_row(arrays, step, rows->width, type))
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
        call->loop(call->numbers, rows->data + i * MOST_ARRAYS, size * begin / PARTS, size * end / PARTS);
    }
}

static PyObject *do_step(Step *step, PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PyObject *slots[1 + MOST_NUMBERS];
    Rows rows = {0};
    Call call = {.rows = &rows};
    if (positional != 1 ||
        !place(arguments, positional, keywords, step->words, step->names, 1 + step->count, slots) ||
        !read_numbers(step, slots + 1, call.numbers))
        return DECLINE;
    int type = survey(slots[0], step, &rows);
    if (type < 0)
        return DECLINE;
    if (hold(slots[0], &rows) < 0)
        return NULL;
    call.loop = type == NPY_FLOAT ? step->float_loop : step->double_loop;
    run_items(PARTS, rows.elements / PARTS + 1, do_parts, &call);
    if (release(&rows) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* The kernel `name`_step, whose rows have from `least` to `greatest` arrays. */
#define WORD(name) #name,
#define ZERO(name) 0,
#define ONE(name) 1,
#define PLUS_ONE(name) +1
#define STEP(name, numbers, least, greatest)                                                                           \
    static PyObject *name##_step(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)                \
    {                                                                                                                  \
        static Step step = {                                                                                           \
            .fewest = least,                                                                                           \
            .most = greatest,                                                                                          \
            .float_loop = name##_row_float,                                                                            \
            .double_loop = name##_row_double,                                                                          \
            .count = 0 numbers(PLUS_ONE, PLUS_ONE),                                                                    \
            .words = {"rows", numbers(WORD, WORD)},                                                                    \
            .is_flag = {numbers(ZERO, ONE)},                                                                           \
        };                                                                                                             \
        return do_step(&step, arguments, positional, keywords);                                                        \
    }

STEP(sgd, SGD_NUMBERS, 2, 3)
STEP(adam, ADAM_NUMBERS, 4, 5)
STEP(nadam, NADAM_NUMBERS, 4, 4)
STEP(radam, RADAM_NUMBERS, 4, 4)
STEP(adamax, ADAMAX_NUMBERS, 4, 4)
STEP(rmsprop, RMSPROP_NUMBERS, 3, 5)
STEP(adagrad, ADAGRAD_NUMBERS, 3, 3)
STEP(adadelta, ADADELTA_NUMBERS, 4, 4)
STEP(asgd, ASGD_NUMBERS, 3, 3)
STEP(rprop, RPROP_NUMBERS, 4, 4)

const KernelEntry optimizer_step_kernels[] = {
    {"sgd_step", sgd_step},
    {"adam_step", adam_step},
    {"nadam_step", nadam_step},
    {"radam_step", radam_step},
    {"adamax_step", adamax_step},
    {"rmsprop_step", rmsprop_step},
    {"adagrad_step", adagrad_step},
    {"adadelta_step", adadelta_step},
    {"asgd_step", asgd_step},
    {"rprop_step", rprop_step},
    {NULL},
};
