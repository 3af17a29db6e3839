/* Note [Programs]
 *
 * A compiled program is data: a list of instructions over a table of places in memory. An instruction calls a loop that was
 * compiled for it (equal loops are compiled once, however often they are called), or multiplies matrices. Places
 * are inputs, fresh arrays that become outputs, constants, and parts of one arena that lives as long as the call.
 * Inputs are compared with what the program was made for; where they differ, `otherwise` is called in its place.
 */
#include "kernel.h"

#include <stdlib.h>
#include <structmember.h>
#include <time.h>

#include "products.h"

#if defined(__GNUC__) && !defined(_WIN32)

typedef void (*LoopOfProgram)(char *const *places, const int32_t *at, const double *numbers, ptrdiff_t begin,
                              ptrdiff_t end);

enum { LOOP, PRODUCT };
enum { FROM_INPUT, FROM_FRESH, FROM_ARENA, FROM_CONSTANT };

/* As compiling/programs.py writes it: numbers of 64 bits. */
typedef struct {
    int64_t kind, address, count, smallest, first; /* `first` of the indices of its places */
    int64_t wide, rows, columns, depth, a_row, a_column, b_row, b_column, result_row;
    int64_t batch, a_batch, b_batch, result_batch; /* in elements */
} Instruction;

typedef struct {
    int64_t origin, index, offset;
} Place;

typedef struct {
    int64_t is_number, type, ndim, dims;  /* `dims`: where its sizes and strides begin */
} Input;

typedef struct {
    int64_t origin, index, offset, type, ndim, dims;
} Output;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Instruction *instructions;
    Place *places;
    Input *inputs;
    Output *fresh, *outputs;
    int64_t *dims, *written;
    int32_t *at;
    Py_ssize_t instruction_count, place_count, input_count, fresh_count, output_count, written_count;
    int64_t arena_bytes, work;
    PyObject *constants, *otherwise, *library;
    void *spare; /* the arena of the last call, for the next */
} ProgramObject;

typedef struct {
    char *const *places;
    const int32_t *at;
    const double *numbers;
    LoopOfProgram loop;
} LoopCall;

static void run_part(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const LoopCall *call = context;
    call->loop(call->places, call->at, call->numbers, begin, end);
}

typedef struct {
    Product product;
    Way way;
    const Instruction *i;
} Batch;

static void multiply_batch(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Batch *b = context;
    ptrdiff_t item = b->product.wide ? 8 : 4;
    for (ptrdiff_t n = begin; n < end; n++) {
        Product p = b->product;
        p.a.data += n * b->i->a_batch * item;
        p.b.data += n * b->i->b_batch * item;
        p.result += n * b->i->result_batch * item;
        multiply(&p, b->way);
    }
}

static Product product_of(const Instruction *i, char *const *places, const int32_t *at)
{
    Product p = {{places ? places[at[0]] : NULL, i->rows, i->depth, i->a_row, i->a_column},
                 {places ? places[at[1]] : NULL, i->depth, i->columns, i->b_row, i->b_column},
                 NULL, 0, places ? places[at[2]] : NULL, i->result_row, (int)i->wide};
    return p;
}

static void multiply_step(const Instruction *i, char *const *places, const int32_t *at)
{
    Batch b = {product_of(i, places, at), NO_WAY, i};
    b.way = way_of(&b.product);
    if (i->batch == 1) {
        if (i->rows * i->columns * i->depth <= 8 * UNLOCK_ABOVE)
            multiply(&b.product, b.way);
        else
            multiply_in_threads(&b.product, b.way);
        return;
    }
    ptrdiff_t work = i->rows * i->columns * i->depth + 1;
    if (b.way == BY_BLAS)
        multiply_batch(&b, 0, i->batch);
    else
        run_blocks(i->batch, (1L << 19) / work + 1, multiply_batch, &b);
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void run_instructions(const ProgramObject *self, char *const *places, const double *numbers, int64_t *times)
{
    for (Py_ssize_t n = 0; n < self->instruction_count; n++) {
        const Instruction *i = &self->instructions[n];
        const int32_t *at = self->at + i->first;
        int64_t begin = times ? now() : 0;
        if (i->kind == PRODUCT)
            multiply_step(i, places, at);
        else if (!i->smallest || i->count < 2 * i->smallest)
            ((LoopOfProgram)(intptr_t)i->address)(places, at, numbers, 0, i->count);
        else {
            LoopCall call = {places, at, numbers, (LoopOfProgram)(intptr_t)i->address};
            run_blocks(i->count, i->smallest, run_part, &call);
        }
        if (times)
            times[n] += now() - begin;
    }
}

/* Whether an array is laid out as the program expects; strides of dimensions of one element are of no matter. */
static int fits(const ProgramObject *self, const Input *expected, PyObject *object)
{
    if (!PyArray_CheckExact(object))
        return 0;
    PyArrayObject *array = (PyArrayObject *)object;
    int ndim = PyArray_NDIM(array);
    if (PyArray_DESCR(array)->type_num != expected->type || ndim != expected->ndim || !PyArray_ISALIGNED(array) ||
        PyArray_ISBYTESWAPPED(array))
        return 0;
    const int64_t *sizes = self->dims + expected->dims, *strides = sizes + ndim;
    const npy_intp *have = PyArray_DIMS(array), *steps = PyArray_STRIDES(array);
    for (int i = 0; i < ndim; i++)
        if (have[i] != sizes[i] || (steps[i] != strides[i] && sizes[i] != 1))
            return 0;
    return 1;
}

static void extent_of(PyArrayObject *array, char **low, char **high)
{
    *low = *high = PyArray_BYTES(array);
    for (int i = 0; i < PyArray_NDIM(array); i++) {
        npy_intp size = PyArray_DIM(array, i), reach = (size - 1) * PyArray_STRIDE(array, i);
        if (!size) {
            *high = *low;
            return;
        }
        *(reach < 0 ? low : high) += reach;
    }
    *high += PyArray_ITEMSIZE(array);
}

/* Whether what the program writes to can be told from its other inputs, and be written. */
static int can_write(const ProgramObject *self, PyObject *const *given)
{
    for (Py_ssize_t n = 0; n < self->written_count; n++) {
        PyArrayObject *target = (PyArrayObject *)given[self->written[n]];
        char *low, *high, *other_low, *other_high;
        if (!PyArray_ISWRITEABLE(target))
            return 0;
        extent_of(target, &low, &high);
        for (Py_ssize_t i = 0; i < self->input_count; i++) {
            if (i == self->written[n] || self->inputs[i].is_number)
                continue;
            extent_of((PyArrayObject *)given[i], &other_low, &other_high);
            if (other_low < high && low < other_high)
                return 0;
        }
    }
    return 1;
}

static PyObject *fresh_array(const ProgramObject *self, const Output *o)
{
    npy_intp sizes[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    for (int i = 0; i < o->ndim; i++) {
        sizes[i] = self->dims[o->dims + i];
        strides[i] = self->dims[o->dims + o->ndim + i];
    }
    return PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType((int)o->type), (int)o->ndim, sizes, strides, NULL,
                                0, NULL);
}

/* An output that is a part, or another form, of an array. */
static PyObject *window_on(const ProgramObject *self, const Output *o, PyObject *base)
{
    npy_intp sizes[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    for (int i = 0; i < o->ndim; i++) {
        sizes[i] = self->dims[o->dims + i];
        strides[i] = self->dims[o->dims + o->ndim + i];
    }
    int flags = PyArray_FLAGS((PyArrayObject *)base) & (NPY_ARRAY_WRITEABLE | NPY_ARRAY_ALIGNED);
    PyObject *made =
        PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType((int)o->type), (int)o->ndim, sizes, strides,
                             PyArray_BYTES((PyArrayObject *)base) + o->offset, flags, NULL);
    if (made && PyArray_SetBaseObject((PyArrayObject *)made, Py_NewRef(base)))
        Py_CLEAR(made);
    return made;
}

#define FEW 96

static PyObject *run_program(ProgramObject *self, PyObject *sequence, int64_t *times)
{
    PyObject *fast = PySequence_Fast(sequence, "a program takes its inputs as one sequence");
    if (!fast)
        return NULL;
    PyObject **given = PySequence_Fast_ITEMS(fast), *result = NULL;
    double few_numbers[FEW], *numbers = few_numbers;
    char *few_places[FEW], **places = few_places;
    PyObject *few_fresh[FEW], **fresh = few_fresh;
    void *arena = NULL;
    Py_ssize_t made = 0;
    if (self->input_count > FEW)
        numbers = PyMem_Malloc(self->input_count * sizeof *numbers);
    if (self->place_count > FEW)
        places = PyMem_Malloc(self->place_count * sizeof *places);
    if (self->fresh_count > FEW)
        fresh = PyMem_Malloc(self->fresh_count * sizeof *fresh);
    if (!numbers || !places || !fresh) {
        PyErr_NoMemory();
        goto done;
    }
    int right = PySequence_Fast_GET_SIZE(fast) == self->input_count;
    for (Py_ssize_t i = 0; right && i < self->input_count; i++)
        right = self->inputs[i].is_number ? read_number(given[i], &numbers[i]) : fits(self, &self->inputs[i], given[i]);
    if (!right || !can_write(self, given)) {
        result = PyObject_CallOneArg(self->otherwise, sequence);
        goto done;
    }
    for (; made < self->fresh_count; made++)
        if (!(fresh[made] = fresh_array(self, &self->fresh[made])))
            goto done;
    if (self->arena_bytes) {
        arena = self->spare;
        self->spare = NULL;
        if (!arena && posix_memalign(&arena, 64, self->arena_bytes)) {
            arena = NULL;
            PyErr_NoMemory();
            goto done;
        }
    }
    for (Py_ssize_t n = 0; n < self->place_count; n++) {
        const Place *p = &self->places[n];
        char *base = p->origin == FROM_INPUT   ? PyArray_BYTES((PyArrayObject *)given[p->index])
                     : p->origin == FROM_FRESH ? PyArray_BYTES((PyArrayObject *)fresh[p->index])
                     : p->origin == FROM_ARENA
                         ? (char *)arena
                         : PyArray_BYTES((PyArrayObject *)PyTuple_GET_ITEM(self->constants, p->index));
        places[n] = base + p->offset;
    }
    if (self->work <= 4 * UNLOCK_ABOVE)
        run_instructions(self, places, numbers, times);
    else {
        Py_BEGIN_ALLOW_THREADS
        run_instructions(self, places, numbers, times);
        Py_END_ALLOW_THREADS
    }
    result = PyList_New(self->output_count);
    for (Py_ssize_t n = 0; result && n < self->output_count; n++) {
        const Output *o = &self->outputs[n];
        PyObject *base = o->origin == FROM_INPUT   ? given[o->index]
                         : o->origin == FROM_FRESH ? fresh[o->index]
                                                   : PyTuple_GET_ITEM(self->constants, o->index);
        PyObject *output = o->ndim < 0 ? Py_NewRef(base) : window_on(self, o, base);
        if (!output)
            Py_CLEAR(result);
        else
            PyList_SET_ITEM(result, n, output);
    }
done:
    if (arena) {
        if (self->spare)
            free(arena);
        else
            self->spare = arena;
    }
    while (made)
        Py_DECREF(fresh[--made]);
    if (numbers != few_numbers)
        PyMem_Free(numbers);
    if (places != few_places)
        PyMem_Free(places);
    if (fresh != few_fresh)
        PyMem_Free(fresh);
    Py_DECREF(fast);
    return result;
}

static PyObject *program_call(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *keywords)
{
    if (PyVectorcall_NARGS(flags) != 1 || (keywords && PyTuple_GET_SIZE(keywords)))
        return PyErr_Format(PyExc_TypeError, "a program takes its inputs as one sequence");
    return run_program((ProgramObject *)self, arguments[0], NULL);
}

/* The nanoseconds that each instruction takes in one call. */
static PyObject *program_times(PyObject *object, PyObject *inputs)
{
    ProgramObject *self = (ProgramObject *)object;
    int64_t *times = PyMem_Calloc(self->instruction_count + 1, sizeof *times);
    PyObject *outputs = times ? run_program(self, inputs, times) : PyErr_NoMemory();
    PyObject *found = outputs ? PyList_New(self->instruction_count) : NULL;
    for (Py_ssize_t n = 0; found && n < self->instruction_count; n++)
        PyList_SET_ITEM(found, n, PyLong_FromLongLong(times[n]));
    Py_XDECREF(outputs);
    PyMem_Free(times);
    return found;
}

static void program_free(PyObject *object)
{
    ProgramObject *self = (ProgramObject *)object;
    PyObject_GC_UnTrack(object);
    free(self->spare);
    PyMem_Free(self->instructions);
    PyMem_Free(self->places);
    PyMem_Free(self->inputs);
    PyMem_Free(self->fresh);
    PyMem_Free(self->outputs);
    PyMem_Free(self->dims);
    PyMem_Free(self->written);
    PyMem_Free(self->at);
    Py_CLEAR(self->constants);
    Py_CLEAR(self->otherwise);
    Py_CLEAR(self->library);
    PyObject_GC_Del(object);
}

static int program_traverse(PyObject *object, visitproc visit, void *arg)
{
    ProgramObject *self = (ProgramObject *)object;
    Py_VISIT(self->constants);
    Py_VISIT(self->otherwise);
    Py_VISIT(self->library);
    return 0;
}

static int program_clear(PyObject *object)
{
    Py_CLEAR(((ProgramObject *)object)->otherwise);
    return 0;
}

static PyMethodDef program_methods[] = {
    {"times", program_times, METH_O, "times(inputs): run once; the nanoseconds of each instruction."},
    {NULL},
};

static PyTypeObject ProgramType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pullback.native.kernels.Program",
    .tp_basicsize = sizeof(ProgramObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC,
    .tp_vectorcall_offset = offsetof(ProgramObject, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_methods = program_methods,
    .tp_traverse = program_traverse,
    .tp_clear = program_clear,
    .tp_dealloc = program_free,
};

/* A copy of a table given as bytes, and how many rows it has; 0 with an exception. */
static int take_table(PyObject *bytes, size_t row, void **table, Py_ssize_t *count)
{
    if (!PyBytes_Check(bytes) || PyBytes_GET_SIZE(bytes) % row) {
        PyErr_SetString(PyExc_TypeError, "a table of a program is bytes of whole rows");
        return 0;
    }
    size_t size = PyBytes_GET_SIZE(bytes);
    *table = PyMem_Malloc(size + 1);
    if (!*table) {
        PyErr_NoMemory();
        return 0;
    }
    memcpy(*table, PyBytes_AS_STRING(bytes), size);
    *count = size / row;
    return 1;
}

PyObject *make_program(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *instructions, *at, *places, *inputs, *fresh, *outputs, *dims, *written, *constants, *otherwise, *library;
    long long arena_bytes, work;
    if (!PyArg_ParseTuple(arguments, "OOOOOOOOO!OOLL", &instructions, &at, &places, &inputs, &fresh, &outputs, &dims,
                          &written, &PyTuple_Type, &constants, &otherwise, &library, &arena_bytes, &work))
        return NULL;
    if (PyType_Ready(&ProgramType))
        return NULL;
    ProgramObject *self = PyObject_GC_New(ProgramObject, &ProgramType);
    if (!self)
        return NULL;
    memset((char *)self + sizeof(PyObject), 0, sizeof *self - sizeof(PyObject));
    self->vectorcall = program_call;
    self->arena_bytes = arena_bytes;
    self->work = work;
    self->constants = Py_NewRef(constants);
    self->otherwise = Py_NewRef(otherwise);
    self->library = Py_NewRef(library);
    PyObject_GC_Track(self);
    Py_ssize_t none;
    if (!take_table(instructions, sizeof(Instruction), (void **)&self->instructions, &self->instruction_count) ||
        !take_table(at, sizeof(int32_t), (void **)&self->at, &none) ||
        !take_table(places, sizeof(Place), (void **)&self->places, &self->place_count) ||
        !take_table(inputs, sizeof(Input), (void **)&self->inputs, &self->input_count) ||
        !take_table(fresh, sizeof(Output), (void **)&self->fresh, &self->fresh_count) ||
        !take_table(outputs, sizeof(Output), (void **)&self->outputs, &self->output_count) ||
        !take_table(dims, sizeof(int64_t), (void **)&self->dims, &none) ||
        !take_table(written, sizeof(int64_t), (void **)&self->written, &self->written_count)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

/* Whether a product of these sizes and steps (in elements) is one that an instruction can do. */
PyObject *can_multiply(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    long long wide, rows, columns, depth, a_row, a_column, b_row, b_column;
    if (!PyArg_ParseTuple(arguments, "LLLLLLLL", &wide, &rows, &columns, &depth, &a_row, &a_column, &b_row, &b_column))
        return NULL;
    Instruction i = {.wide = wide, .rows = rows, .columns = columns, .depth = depth, .a_row = a_row,
                     .a_column = a_column, .b_row = b_row, .b_column = b_column, .result_row = columns};
    Product p = product_of(&i, NULL, NULL);
    return PyBool_FromLong(way_of(&p) != NO_WAY);
}

#else

PyObject *make_program(PyObject *module, PyObject *arguments) { Py_RETURN_NONE; }
PyObject *can_multiply(PyObject *module, PyObject *arguments) { Py_RETURN_FALSE; }

#endif
