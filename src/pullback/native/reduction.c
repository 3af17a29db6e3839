/* Note [Order of sums]
 *
 * The order in which numbers are added follows from the shape alone, never from the number of threads: results are the
 * same bits with one thread and with eight. A row is summed in LANES columns, which go to a float64 total after every
 * CHUNK; long rows and columns are cut into parts of a fixed size, whose float64 totals are added one after the other.
 */
#include "reduction.h"

#include <math.h>

#include "casts.h"

#define TILE 256          /* columns that are reduced together: their partial results stay in the first cache */
#define NARROW_TILE 64    /* fewer columns than a quarter of this are filled up with neighbouring rows */
#define BLOCK_OF_ROWS 129 /* rows added up in the array's own precision: one, and 32 times four */
#define PART 65536        /* elements that one part of a long reduction has at least */

typedef struct {
    Operation operation;
    Finish finish;
    double divisor;
    Layout layout;
    ptrdiff_t tiles, parts, part_size;
    const void *input;
    const double *means;
    void *output;
    int is_wide; /* whether the output is float64 */
} Reduction;

INLINE double finished(const Reduction *reduction, double total)
{
    if (reduction->operation == SUM || reduction->operation == WIDE_SUM || reduction->operation == NUMBERS)
        total += 0; /* a sum begins with the positive zero, and is one if all are negative zeros */
    switch (reduction->finish) {
    case DIVIDED: return total / reduction->divisor;
    case ROOT: return sqrt(total);
    case ROOT_OF_DIVIDED: return sqrt(total / reduction->divisor);
    default: return total;
    }
}

#define LOOPS "reduction_loops.h"
#include "for_each_real.h"

int read_dims(PyObject *dims, int ndim, uint64_t *reduced)
{
    uint64_t all = ndim ? ~(uint64_t)0 >> (64 - ndim) : 0;
    if (is_none(dims) || !ndim) {
        *reduced = all;
        return is_none(dims) || PyTuple_CheckExact(dims);
    }
    if (!PyTuple_CheckExact(dims))
        return 0;
    *reduced = PyTuple_GET_SIZE(dims) ? 0 : all;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(dims); i++) {
        long dim;
        if (!read_integer(PyTuple_GET_ITEM(dims, i), 0, ndim - 1, &dim) || *reduced >> dim & 1)
            return 0;
        *reduced |= (uint64_t)1 << dim;
    }
    return 1;
}

/* The dimensions in the order of memory, if the array fills its memory without gaps and the kept dimensions come in
 * their own order: then it can be reduced where it lies. */
static int memory_order(PyArrayObject *array, uint64_t reduced, int *order)
{
    int ndim = PyArray_NDIM(array);
    const npy_intp *shape = PyArray_DIMS(array), *strides = PyArray_STRIDES(array);
    for (int i = 0; i < ndim; i++) {
        int at = i;
        for (; at && strides[order[at - 1]] < strides[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    npy_intp expected = PyArray_ITEMSIZE(array);
    int last_kept = ndim;
    for (int at = ndim; at--;) {
        int dim = order[at];
        if (shape[dim] == 1)
            continue;
        if (strides[dim] != expected || (!(reduced >> dim & 1) && dim > last_kept))
            return 0;
        if (!(reduced >> dim & 1))
            last_kept = dim;
        expected *= shape[dim];
    }
    return 1;
}

int make_plan(PyObject *array, uint64_t reduced, int keepdim, Plan *plan)
{
    PyArrayObject *a = (PyArrayObject *)array;
    int ndim = PyArray_NDIM(a), order[NPY_MAXDIMS];
    const npy_intp *shape = PyArray_DIMS(a);
    if (PyArray_IS_C_CONTIGUOUS(a) || !memory_order(a, reduced, order)) {
        plan->array = row_major(array);
        if (!plan->array)
            return 0;
        for (int i = 0; i < ndim; i++)
            order[i] = i;
    } else
        plan->array = Py_NewRef(array);
    plan->ndim = plan->step_count = 0;
    plan->reduced_size = 1;
    for (int i = 0; i < ndim; i++)
        if (!(reduced >> i & 1))
            plan->shape[plan->ndim++] = shape[i];
        else if (keepdim)
            plan->shape[plan->ndim++] = 1;
    ptrdiff_t kept = 1, run = 1, outer = size_of(array); /* run: the size of the reduced dimensions that are merged */
    for (int at = ndim; at-- > -1;) {
        int is_reduced = at >= 0 && reduced >> order[at] & 1;
        ptrdiff_t size = at >= 0 ? shape[order[at]] : 0;
        if (size == 1)
            continue;
        if (is_reduced) {
            run *= size;
            continue;
        }
        if (run > 1) {
            outer /= run * kept;
            plan->steps[plan->step_count++] = (Layout){outer, run, kept};
            plan->reduced_size *= run;
            outer *= kept;
            run = 1;
        }
        kept *= size;
    }
    if (!plan->step_count)
        plan->steps[plan->step_count++] = (Layout){size_of(array), 1, 1};
    return 1;
}

void drop_plan(Plan *plan) { Py_DECREF(plan->array); }

/* Cut a reduction into tiles of columns and parts of rows. */
static void cut(Reduction *reduction)
{
    Layout layout = reduction->layout;
    reduction->tiles = (layout.inner + TILE - 1) / TILE;
    reduction->parts = 1;
    reduction->part_size = layout.count;
    ptrdiff_t width = layout.inner < TILE ? layout.inner : TILE, rows = PART / width;
    if (layout.outer * reduction->tiles < 16 && layout.count >= 2 * rows) {
        reduction->parts = layout.count / rows;
        reduction->part_size = rows;
    }
}

static int reduce(Reduction *reduction, int type)
{
    Layout layout = reduction->layout;
    cut(reduction);
    ptrdiff_t items = layout.outer * reduction->parts * reduction->tiles;
    ptrdiff_t work = reduction->part_size * (layout.inner < TILE ? layout.inner : TILE);
    BlockFunction loop = FOR_TYPE(type, reduction_loops)[reduction->operation];
    if (reduction->parts == 1) {
        run_items(items, work, loop, reduction);
        return 1;
    }
    Reduction pieces = *reduction; /* into [outer][part][inner] */
    double *partials = PyMem_RawMalloc(sizeof(double) * layout.outer * reduction->parts * layout.inner);
    if (!partials) {
        PyErr_NoMemory();
        return 0;
    }
    pieces.output = partials;
    pieces.is_wide = 1;
    pieces.finish = AS_IT_IS;
    run_items(items, work, loop, &pieces);
    FOR_TYPE(type, join_parts)(reduction, partials);
    PyMem_RawFree(partials);
    return 1;
}

PyObject *run_plan(const Plan *plan, Task task)
{
    int type = type_of(plan->array);
    PyObject *result = new_array(plan->ndim, plan->shape, task.is_wide ? NPY_DOUBLE : type);
    if (!result)
        return NULL;
    size_t item = type == NPY_FLOAT ? sizeof(float) : sizeof(double);
    const void *input = data_of(plan->array);
    void *between = NULL;
    for (int step = 0; step < plan->step_count; step++) {
        int is_last = step == plan->step_count - 1;
        Layout layout = plan->steps[step];
        void *output = is_last ? data_of(result) : PyMem_RawMalloc(item * layout.outer * layout.inner);
        Reduction reduction = {
            .operation = step && (task.operation == SQUARES || task.operation == SIZES) ? SUM : task.operation,
            .finish = is_last ? task.finish : AS_IT_IS,
            .divisor = task.divisor,
            .layout = layout,
            .input = input,
            .means = task.means,
            .output = output,
            .is_wide = task.is_wide,
        };
        int done = output && reduce(&reduction, type);
        PyMem_RawFree(between);
        between = is_last ? NULL : output;
        input = output;
        if (!done) {
            PyMem_RawFree(between);
            Py_DECREF(result);
            return PyErr_Occurred() ? NULL : PyErr_NoMemory();
        }
    }
    return result;
}

#define HALVES_AT_ONCE 4096

typedef struct {
    Reduction reduction; /* of a piece; its totals are joined */
    FloatKind kind;
    ptrdiff_t count;
    const char *input;
    char *output;
} HalfRows;

static double reduce_half_row(const HalfRows *rows, const char *row, float *buffer)
{
    Reduction piece = rows->reduction;
    double total = 0;
    piece.finish = AS_IT_IS;
    for (ptrdiff_t at = 0; at < rows->count; at += HALVES_AT_ONCE) {
        ptrdiff_t left = rows->count - at, size = left < HALVES_AT_ONCE ? left : HALVES_AT_ONCE;
        float part;
        widen_floats(rows->kind, row + 2 * at, buffer, size);
        piece.layout = (Layout){1, size, 1};
        piece.part_size = size;
        piece.input = buffer;
        piece.output = &part;
        reduction_loops_float[piece.operation](&piece, 0, 1);
        total = at ? joined(piece.operation, total, part) : part;
    }
    return finished(&rows->reduction, total);
}

static void reduce_half_rows(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const HalfRows *rows = context;
    float buffer[HALVES_AT_ONCE];
    for (ptrdiff_t row = begin; row < end; row++) {
        float value = (float)reduce_half_row(rows, rows->input + 2 * row * rows->count, buffer);
        narrow_floats(rows->kind, &value, rows->output + 2 * row, 1);
    }
}

PyObject *reduce_halves(PyObject *input, uint64_t reduced, int keepdim, Operation operation, Finish finish)
{
    PyArrayObject *array = (PyArrayObject *)input;
    int ndim = PyArray_NDIM(array), kept = ndim, result_ndim = 0;
    FloatKind kind = half_kind(input);
    npy_intp shape[NPY_MAXDIMS];
    while (kept && reduced >> (kept - 1) & 1)
        kept--;
    if (!kind || !PyArray_SIZE(array) || (kept && reduced & (~(uint64_t)0 >> (64 - kept))))
        return DECLINE;
    for (int i = 0; i < ndim; i++)
        if (i < kept || keepdim)
            shape[result_ndim++] = i < kept ? PyArray_DIM(array, i) : 1;
    PyObject *result = new_of_type(input, result_ndim, shape);
    if (!result)
        return NULL;
    ptrdiff_t outer = PyArray_SIZE((PyArrayObject *)result), count = PyArray_SIZE(array) / outer;
    HalfRows rows = {
        .reduction = {.operation = operation, .finish = finish, .divisor = (double)count, .tiles = 1, .parts = 1},
        .kind = kind,
        .count = count,
        .input = PyArray_BYTES(array),
        .output = PyArray_BYTES((PyArrayObject *)result),
    };
    run_items(outer, count, reduce_half_rows, &rows);
    return result;
}
