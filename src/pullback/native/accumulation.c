/* Adding gradients up: into an array that is owned, and over the dimensions along which an input was broadcast.
 *
 * float32 is summed in float64, float64 in several lanes. Which elements a partial sum takes does not depend on the
 * number of threads.
 */
#include <string.h>

#include "kernel.h"

#define MOST_DIMS 16
#define LANES 16
/* Columns that are summed together, and elements of a whole sum that are: both stay in the first cache. */
#define COLUMNS 512
#define BLOCK 65536
#define SHARE 65536

/* ---- total += value ---- */

typedef struct {
    char *total;
    const char *value;
    int type;
} Addition;

MULTIVERSIONED void add_floats(float *total, const float *value, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++)
        total[i] += value[i];
}

MULTIVERSIONED void add_doubles(double *total, const double *value, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++)
        total[i] += value[i];
}

static void add_range(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Addition *addition = context;
    if (addition->type == NPY_FLOAT)
        add_floats((float *)(void *)addition->total + begin, (const float *)(const void *)addition->value + begin,
                   end - begin);
    else
        add_doubles((double *)(void *)addition->total + begin, (const double *)(const void *)addition->value + begin,
                    end - begin);
}

static PyObject *add_in_place(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    if (keywords || positional != 2 || !is_plain(arguments[0]) || !is_plain_of(arguments[1], type_of(arguments[0])) ||
        !PyArray_ISWRITEABLE((PyArrayObject *)arguments[0]) || !same_shape(arguments[0], arguments[1]))
        return DECLINE;
    PyArrayObject *total = (PyArrayObject *)arguments[0];
    Addition addition = {PyArray_BYTES(total), PyArray_BYTES((PyArrayObject *)arguments[1]), type_of(arguments[0])};
    npy_intp count = PyArray_SIZE(total), distance = addition.value - addition.total;
    if (distance && distance < PyArray_NBYTES(total) && distance > -PyArray_NBYTES(total))
        return DECLINE; /* they overlap */
    run_unlocked((double)count, count, SHARE, add_range, &addition);
    return Py_NewRef(arguments[0]);
}

/* ---- sums ---- */

/* An array seen as `outer` blocks of `kept` groups of `inner` elements; the sums run over outer and inner. */
typedef struct {
    const char *data;
    char *result;
    double *partial; /* of a sum over everything, by block */
    npy_intp outer, kept, inner;
    int type;
} Sum;

#define DEFINE_SUMS(REAL, NAME)                                                                                       \
    MULTIVERSIONED double sum_row_of_##NAME(const REAL *row, npy_intp count)                                          \
    {                                                                                                                 \
        double lanes[LANES] = {0}, total = 0;                                                                         \
        npy_intp i = 0;                                                                                               \
        for (; i + LANES <= count; i += LANES)                                                                        \
            for (int k = 0; k < LANES; k++)                                                                           \
                lanes[k] += (double)row[i + k];                                                                       \
        for (; i < count; i++)                                                                                        \
            total += (double)row[i];                                                                                  \
        for (int width = LANES / 2; width; width /= 2)                                                                \
            for (int k = 0; k < width; k++)                                                                           \
                lanes[k] += lanes[k + width];                                                                         \
        return total + lanes[0];                                                                                      \
    }                                                                                                                 \
    MULTIVERSIONED void sum_columns_of_##NAME(const REAL *data, REAL *result, npy_intp rows, npy_intp step,           \
                                              npy_intp columns)                                                       \
    {                                                                                                                 \
        double totals[COLUMNS] = {0};                                                                                 \
        for (npy_intp row = 0; row < rows; row++, data += step)                                                       \
            for (npy_intp i = 0; i < columns; i++)                                                                    \
                totals[i] += (double)data[i];                                                                         \
        for (npy_intp i = 0; i < columns; i++)                                                                        \
            result[i] = (REAL)totals[i];                                                                              \
    }                                                                                                                 \
    static void sum_group_of_##NAME(const Sum *sum, npy_intp group)                                                   \
    {                                                                                                                 \
        const REAL *data = (const REAL *)(const void *)sum->data + group * sum->inner;                                \
        double total = 0;                                                                                             \
        for (npy_intp i = 0; i < sum->outer; i++, data += sum->kept * sum->inner)                                     \
            if (sum->inner >= LANES)                                                                                  \
                total += sum_row_of_##NAME(data, sum->inner);                                                         \
            else /* a call would cost more than the row */                                                            \
                for (npy_intp j = 0; j < sum->inner; j++)                                                             \
                    total += (double)data[j];                                                                         \
        ((REAL *)(void *)sum->result)[group] = (REAL)total;                                                           \
    }                                                                                                                 \
    static void sum_chunk_of_##NAME(const Sum *sum, npy_intp chunk)                                                   \
    {                                                                                                                 \
        npy_intp begin = chunk * COLUMNS, left = sum->kept - begin;                                                   \
        sum_columns_of_##NAME((const REAL *)(const void *)sum->data + begin, (REAL *)(void *)sum->result + begin,     \
                              sum->outer, sum->kept, left < COLUMNS ? left : COLUMNS);                                \
    }                                                                                                                 \
    static void sum_block_of_##NAME(const Sum *sum, npy_intp block)                                                   \
    {                                                                                                                 \
        npy_intp begin = block * BLOCK, left = sum->inner - begin;                                                    \
        sum->partial[block] = sum_row_of_##NAME((const REAL *)(const void *)sum->data + begin,                        \
                                                left < BLOCK ? left : BLOCK);                                         \
    }

DEFINE_SUMS(float, floats)
DEFINE_SUMS(double, doubles)

static void sum_groups(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Sum *sum = context;
    for (ptrdiff_t i = begin; i < end; i++)
        sum->type == NPY_FLOAT ? sum_group_of_floats(sum, i) : sum_group_of_doubles(sum, i);
}

static void sum_chunks(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Sum *sum = context;
    for (ptrdiff_t i = begin; i < end; i++)
        sum->type == NPY_FLOAT ? sum_chunk_of_floats(sum, i) : sum_chunk_of_doubles(sum, i);
}

static void sum_parts(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Sum *sum = context;
    for (ptrdiff_t i = begin; i < end; i++)
        sum->type == NPY_FLOAT ? sum_block_of_floats(sum, i) : sum_block_of_doubles(sum, i);
}

/* A sum over everything: the partial sums of blocks, in order. 0 where memory runs out. */
static int sum_everything(Sum *sum)
{
    npy_intp blocks = (sum->inner + BLOCK - 1) / BLOCK;
    sum->partial = PyMem_RawMalloc((size_t)(blocks + 1) * sizeof(double));
    if (!sum->partial)
        return 0;
    run_blocks(blocks, 1, sum_parts, sum);
    double total = 0;
    for (npy_intp i = 0; i < blocks; i++)
        total += sum->partial[i];
    PyMem_RawFree(sum->partial);
    if (sum->type == NPY_FLOAT)
        *(float *)(void *)sum->result = (float)total;
    else
        *(double *)(void *)sum->result = total;
    return 1;
}

static int run_sum(Sum *sum)
{
    npy_intp total = sum->outer * sum->kept * sum->inner;
    if (sum->kept == 1 && sum->outer == 1 && sum->inner > BLOCK)
        return sum_everything(sum);
    if (sum->inner == 1) {
        npy_intp chunks = (sum->kept + COLUMNS - 1) / COLUMNS;
        run_blocks(chunks, SHARE * chunks / (total + 1) + 1, sum_chunks, sum);
    } else {
        run_blocks(sum->kept, SHARE * sum->kept / (total + 1) + 1, sum_groups, sum);
    }
    return 1;
}

/* Read the wanted shape; 0 where it is not a tuple of small whole numbers. */
static int read_shape(PyObject *given, int *ndim, npy_intp *shape)
{
    if (!PyTuple_CheckExact(given) || PyTuple_GET_SIZE(given) > MOST_DIMS)
        return 0;
    *ndim = (int)PyTuple_GET_SIZE(given);
    for (int i = 0; i < *ndim; i++) {
        shape[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(given, i));
        if (shape[i] < 0) {
            PyErr_Clear();
            return 0;
        }
    }
    return 1;
}

/* Sort the dimensions into outer, kept and inner ones; 0 where kept and summed ones alternate more often. */
static int read_roles(PyArrayObject *grad, int ndim, const npy_intp *shape, Sum *sum)
{
    int extra = PyArray_NDIM(grad) - ndim, stage = 0;
    npy_intp *sizes[] = {&sum->outer, &sum->kept, &sum->inner};
    sum->outer = sum->kept = sum->inner = 1;
    for (int i = 0; i < PyArray_NDIM(grad); i++) {
        npy_intp size = PyArray_DIM(grad, i);
        if (size == 1) {
            if (i >= extra && shape[i - extra] != 1)
                return 0;
            continue;
        }
        int kept = i >= extra && shape[i - extra] == size;
        if (!kept && i >= extra && shape[i - extra] != 1)
            return 0;
        if (kept != (stage == 1))
            stage++;
        if (stage > 2)
            return 0;
        *sizes[stage] *= size;
    }
    if (sum->kept == 1) { /* everything is one row */
        sum->inner *= sum->outer;
        sum->outer = 1;
    }
    return 1;
}

static PyObject *sum_to_like(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    int ndim;
    npy_intp shape[MOST_DIMS];
    if (keywords || positional != 3 || !PyArray_CheckExact(arguments[0]) || !PyArray_DescrCheck(arguments[2]))
        return DECLINE;
    PyArrayObject *grad = (PyArrayObject *)arguments[0];
    if (PyArray_DESCR(grad) != (PyArray_Descr *)arguments[2] || !read_shape(arguments[1], &ndim, shape))
        return DECLINE;
    if (ndim == PyArray_NDIM(grad) && !memcmp(shape, PyArray_DIMS(grad), (size_t)ndim * sizeof *shape))
        return Py_NewRef(arguments[0]);
    Sum sum = {.type = type_of(arguments[0])};
    if (!is_plain(arguments[0]) || ndim > PyArray_NDIM(grad) || !read_roles(grad, ndim, shape, &sum))
        return DECLINE;
    PyObject *result = new_array(ndim, shape, sum.type);
    if (!result)
        return NULL;
    sum.data = PyArray_BYTES(grad);
    sum.result = PyArray_BYTES((PyArrayObject *)result);
    int done = 1;
    if (PyArray_SIZE(grad) < UNLOCK_ABOVE) {
        done = run_sum(&sum);
    } else {
        Py_BEGIN_ALLOW_THREADS
        done = run_sum(&sum);
        Py_END_ALLOW_THREADS
    }
    if (!done) {
        Py_DECREF(result);
        return PyErr_NoMemory();
    }
    return result;
}

const KernelEntry accumulation_kernels[] = {
    {"add_in_place", add_in_place},
    {"sum_to_like", sum_to_like},
    {NULL},
};
