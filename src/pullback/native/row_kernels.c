/* Kernels along a dimension, and losses of a whole array. tools/codegen writes their loops, row_loops.h, from kernels/.
 *
 * Here operands are brought to the loops, for all of them. A letter says what each parameter takes, any other call is
 * declined:
 *
 *     e   an array of elements, all of one shape and type
 *     w   one number for each row that is reduced
 *     s   the gradient of losses: one for each where the whole number is 0, else one for all
 *     d   a dimension; D a tuple of dimensions that are neighbours, None or () for all; without either, all is one row
 *     k   whether reduced dimensions are kept
 *     n   a number; 2 a whole number from 0 to 2; - None
 *
 * A kernel gives elements or one number for each row; a loss elements where its reduction is 0.
 */
#include <math.h>

#include "casts.h"
#include "functions.h"
#include "reduction.h"
#include "special_functions.h"

#define MOST_OPERANDS 3
#define MOST_NUMBERS 3
#define BLOCK_OF_COLUMN 256 /* what is added up in the array's own precision */
#define PART 65536          /* elements of a whole array that make one partial sum: see Note [Order of sums] */
#define HALVES_AT_ONCE 2048

typedef struct {
    Layout layout;
    const void *operands[MOST_OPERANDS];
    void *results[1];
    double numbers[MOST_NUMBERS];
    unsigned of_rows; /* bits of operands that are one number for each row */
    int gives_rows;   /* whether the result is */
    int unfit;        /* set where something that is required does not hold */
    double *partials;
    const double *totals; /* of all parts, when these are done */
} RowLoop;

/* How arrays may lie: they are copied to be row-major, or must be since the reference lays out the result; the latter too
 * where all is one row. */
typedef enum { ROW_MAJOR, AS_IT_LIES, WHOLE } RowOrder;
typedef enum { ELEMENTS, ROWS, BY_REDUCTION } RowResult;

typedef struct RowKernel {
    const char *takes;
    int lead; /* the place of the first array of elements */
    RowOrder order;
    RowResult gives;
    int work; /* how many simple steps an element is worth */
} RowKernel;

#define LOOPS "row_forms.h"
#include "for_each_real.h"

/* A call: the loop, and what it needs to make a result. */
typedef struct {
    RowLoop loop;
    const KernelEntry *entry;
    PyObject *lead, *gradient;
    PyObject *owned[MOST_OPERANDS];
    int count, kept, type;
    uint64_t reduced;
    FloatKind half;
} RowCall;

INLINE int take_array(RowCall *call, PyObject *given, char letter)
{
    int is_row_major = 1;
    if (UNLIKELY(!is_plain_of(given, call->type))) {
        is_row_major = 0;
        if (call->half ? half_kind(given) != call->half : !is_real_array_of(given, call->type))
            return 0;
    }
    if (letter == 'e') {
        if (given != call->lead && !same_shape(given, call->lead))
            return 0;
        if (!is_row_major && !call->half && call->entry->rows->order != ROW_MAJOR)
            return 0;
    } else if (letter == 'w') {
        call->loop.of_rows |= 1u << call->count;
    } else
        call->gradient = given;
    PyObject *plain = row_major(given);
    call->owned[call->count] = plain;
    if (plain)
        call->loop.operands[call->count] = data_of(plain);
    call->count++;
    return plain != NULL;
}

/* 0 to decline, or with an exception where memory ran out. */
INLINE int prepare(RowCall *call, PyObject *const *slots)
{
    const RowKernel *kernel = call->entry->rows;
    PyObject *lead = slots[kernel->lead];
    RowLoop *loop = &call->loop;
    if (!is_real_array(lead)) {
        call->half = kernel->order == WHOLE ? NO_FLOAT : half_kind(lead);
        if (!call->half)
            return 0;
    }
    ptrdiff_t size = size_of(lead);
    if (!size)
        return 0;
    call->lead = lead;
    call->type = type_of(lead);
    loop->layout = (Layout){1, size, 1};
    int numbers = 0;
    long whole;
    PyObject *const *slot = slots;
    for (const char *letter = kernel->takes; *letter; letter++, slot++)
        switch (*letter) {
        case 'd':
            if (!read_integer(*slot, 0, NDIM(lead) - 1, &whole))
                return 0;
            loop->layout = layout_along(lead, (int)whole);
            call->reduced = (uint64_t)1 << whole;
            break;
        case 'D':
            if (!NDIM(lead) || !read_dims(*slot, NDIM(lead), &call->reduced) ||
                !find_layout(lead, call->reduced, &loop->layout))
                return 0;
            break;
        case 'k':
            if (!read_flag(*slot, 0, &call->kept))
                return 0;
            break;
        case 'n':
            if (!read_number(*slot, &loop->numbers[numbers++]))
                return 0;
            break;
        case '2':
            if (!read_integer(*slot, 0, 2, &whole))
                return 0;
            loop->numbers[numbers++] = (double)whole;
            break;
        case '-':
            if (*slot != Py_None)
                return 0;
            break;
        default:
            if (!take_array(call, *slot, *letter))
                return 0;
        }
    for (int i = 0; loop->of_rows && i < call->count; i++)
        if (loop->of_rows >> i & 1 && size_of(call->owned[i]) != loop->layout.outer * loop->layout.inner)
            return 0;
    if (call->gradient && (loop->numbers[0] != 0 ? NDIM(call->gradient) != 0 : !same_shape(call->gradient, lead)))
        return 0;
    loop->gives_rows = kernel->gives == ROWS || (kernel->gives == BY_REDUCTION && loop->numbers[0] != 0);
    return !call->half || loop->layout.inner == 1;
}

static PyObject *new_result(const RowCall *call)
{
    if (!call->loop.gives_rows)
        return new_of_type(call->lead, NDIM(call->lead), SHAPE(call->lead));
    npy_intp shape[NPY_MAXDIMS];
    int ndim = 0;
    for (int i = 0; i < NDIM(call->lead) && call->entry->rows->order != WHOLE; i++)
        if (!(call->reduced >> i & 1))
            shape[ndim++] = DIM(call->lead, i);
        else if (call->kept)
            shape[ndim++] = 1;
    return new_of_type(call->lead, ndim, shape);
}

/* Rows of 16-bit floats: widened in blocks that stay in the cache, and rounded once. */
static void run_halves(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    RowCall *call = context;
    RowLoop loop = call->loop;
    ptrdiff_t count = loop.layout.count, at_once = count < HALVES_AT_ONCE ? HALVES_AT_ONCE / count : 1;
    float *buffer = PyMem_RawMalloc((size_t)((call->count + 1) * at_once * count) * sizeof *buffer);
    if (!buffer) {
        call->loop.unfit = 1;
        return;
    }
    for (ptrdiff_t row = begin; row < end; row += at_once) {
        ptrdiff_t some = end - row < at_once ? end - row : at_once, sizes[2] = {count, 1};
        for (int i = 0; i < call->count; i++) {
            ptrdiff_t size = sizes[loop.of_rows >> i & 1];
            float *room = buffer + i * at_once * count;
            widen_floats(call->half, (const char *)call->loop.operands[i] + 2 * row * size, room, some * size);
            loop.operands[i] = room;
        }
        loop.layout.outer = some;
        loop.results[0] = buffer + call->count * at_once * count;
        call->entry->of_float(&loop, 0, some);
        ptrdiff_t size = sizes[loop.gives_rows];
        narrow_floats(call->half, loop.results[0], (char *)call->loop.results[0] + 2 * row * size, some * size);
    }
    call->loop.unfit |= loop.unfit;
    PyMem_RawFree(buffer);
}

/* Losses of a whole array: each by itself, or the totals of its parts joined. */
static void run_flat(RowLoop *loop, BlockFunction body, int work)
{
    ptrdiff_t count = loop->layout.count, parts = (count + PART - 1) / PART;
    double first, total = 0;
    if (!loop->gives_rows) {
        run_items(count, work, body, loop);
        return;
    }
    loop->partials = parts == 1 ? &first : PyMem_RawMalloc(sizeof(double) * parts);
    if (!loop->partials) {
        loop->unfit = 1;
        return;
    }
    run_items(parts, work * (count < PART ? count : PART), body, loop);
    for (ptrdiff_t part = 0; part < parts; part++)
        total += loop->partials[part];
    if (parts > 1)
        PyMem_RawFree(loop->partials);
    loop->totals = &total;
    body(loop, 0, 0);
}

static void run_loop(RowCall *call)
{
    Layout layout = call->loop.layout;
    int work = call->entry->rows->work;
    BlockFunction body = call->type == NPY_DOUBLE ? call->entry->of_double : call->entry->of_float;
    ptrdiff_t lanes = 32, items = layout.outer, elements = layout.count;
    if (call->entry->rows->order == WHOLE) {
        run_flat(&call->loop, body, work);
        return;
    }
    if (layout.inner > 1) {
        items *= (layout.inner + lanes - 1) / lanes;
        elements *= layout.inner < lanes ? layout.inner : lanes;
    }
    run_items(items, elements * work, call->half ? run_halves : body, call->half ? (void *)call : &call->loop);
}

static PyObject *run_rows(PyObject *const *slots, const KernelEntry *entry)
{
    RowCall call = {.entry = entry};
    PyObject *result = DECLINE;
    if (prepare(&call, slots) && (result = new_result(&call))) {
        call.loop.results[0] = data_of(result);
        run_loop(&call);
        if (call.loop.unfit)
            Py_CLEAR(result);
    }
    for (int i = 0; i < call.count; i++)
        Py_XDECREF(call.owned[i]);
    return result;
}

#define DESCRIBED(name, in_order_, ...) static const RowKernel rows_of_##name = {__VA_ARGS__};
#define LISTED(name, in_order_, ...) {#name, run_rows, LOOP_PAIR(name), .rows = &rows_of_##name, .in_order = in_order_},
ROW_KERNELS(DESCRIBED)
const KernelEntry row_kernels[] = {
    ROW_KERNELS(LISTED)
    {NULL},
};
