/* Truth values and whole numbers reduced: any, all and count_nonzero of kernels/reductions.py, and sums of bools and int64,
 * for row-major arrays whose reduced dimensions are neighbours. */
#include <stdint.h>

#include "reduction.h"

typedef struct {
    Layout layout;
    const void *input;
    void *output;
} Counting;

/* Blocks after which it is looked whether the answer is known. */
#define BLOCK 4096

#define DEFINE_LOOPS(name, type)                                                                                       \
    MULTIVERSIONED static int64_t add_##name(const type *row, ptrdiff_t count)                                         \
    {                                                                                                                  \
        int64_t total = 0;                                                                                             \
        for (ptrdiff_t i = 0; i < count; i++)                                                                          \
            total += row[i];                                                                                           \
        return total;                                                                                                  \
    }                                                                                                                  \
    MULTIVERSIONED static int64_t count_##name(const type *row, ptrdiff_t count)                                       \
    {                                                                                                                  \
        int64_t total = 0;                                                                                             \
        for (ptrdiff_t start = 0; start < count; start += BLOCK) { /* 32 bits are as wide as what is compared */       \
            ptrdiff_t end = start + BLOCK < count ? start + BLOCK : count;                                             \
            int32_t part = 0;                                                                                          \
            for (ptrdiff_t i = start; i < end; i++)                                                                    \
                part += row[i] != 0;                                                                                   \
            total += part;                                                                                             \
        }                                                                                                              \
        return total;                                                                                                  \
    }                                                                                                                  \
    MULTIVERSIONED static void reduce_##name(CountKind kind, const Counting *loop)                                     \
    {                                                                                                                  \
        Layout layout = loop->layout;                                                                                  \
        for (ptrdiff_t outer = 0; outer < layout.outer; outer++) {                                                     \
            const type *input = (const type *)loop->input + outer * layout.count * layout.inner;                       \
            int64_t *numbers = (int64_t *)loop->output + outer * layout.inner;                                         \
            npy_bool *truths = (npy_bool *)loop->output + outer * layout.inner;                                        \
            if (layout.inner == 1) {                                                                                   \
                if (kind == COUNT || kind == TOTAL) {                                                                  \
                    *numbers = kind == TOTAL ? add_##name(input, layout.count) : count_##name(input, layout.count);    \
                    continue;                                                                                          \
                }                                                                                                      \
                *truths = kind == ALL;                                                                                 \
                for (ptrdiff_t start = 0; start < layout.count && *truths == (kind == ALL); start += BLOCK) {          \
                    ptrdiff_t size = layout.count - start < BLOCK ? layout.count - start : BLOCK;                      \
                    int64_t found = count_##name(input + start, size);                                                 \
                    *truths = kind == ALL ? found == size : found != 0;                                                \
                }                                                                                                      \
                continue;                                                                                              \
            }                                                                                                          \
            for (ptrdiff_t j = 0; j < layout.inner; j++)                                                               \
                if (kind == COUNT || kind == TOTAL)                                                                    \
                    numbers[j] = 0;                                                                                    \
                else                                                                                                   \
                    truths[j] = kind == ALL;                                                                           \
            for (ptrdiff_t k = 0; k < layout.count; k++, input += layout.inner)                                        \
                if (kind == COUNT)                                                                                     \
                    for (ptrdiff_t j = 0; j < layout.inner; j++)                                                       \
                        numbers[j] += input[j] != 0;                                                                   \
                else if (kind == TOTAL)                                                                                \
                    for (ptrdiff_t j = 0; j < layout.inner; j++)                                                       \
                        numbers[j] += input[j];                                                                        \
                else if (kind == ALL)                                                                                  \
                    for (ptrdiff_t j = 0; j < layout.inner; j++)                                                       \
                        truths[j] &= input[j] != 0;                                                                    \
                else                                                                                                   \
                    for (ptrdiff_t j = 0; j < layout.inner; j++)                                                       \
                        truths[j] |= input[j] != 0;                                                                    \
        }                                                                                                              \
    }
DEFINE_LOOPS(bool, npy_bool)
DEFINE_LOOPS(int64, int64_t)
DEFINE_LOOPS(float, float)
DEFINE_LOOPS(double, double)
#undef DEFINE_LOOPS

int find_layout(PyObject *array, uint64_t reduced, Layout *layout)
{
    PyArrayObject *a = (PyArrayObject *)array;
    *layout = (Layout){1, 1, 1};
    int stage = 0; /* before, in, or after the reduced dimensions */
    for (int i = 0; i < PyArray_NDIM(a); i++) {
        npy_intp size = PyArray_DIM(a, i);
        if (size == 1)
            continue;
        int is_reduced = reduced >> i & 1;
        if (is_reduced && stage == 2)
            return 0;
        stage = is_reduced ? 1 : stage ? 2 : 0;
        *(stage == 0 ? &layout->outer : stage == 1 ? &layout->count : &layout->inner) *= size;
    }
    return 1;
}

PyObject *reduce_counts(PyObject *input, PyObject *dims, PyObject *keeps, CountKind kind)
{
    uint64_t reduced;
    int keepdim;
    if (!input || !PyArray_CheckExact(input) || !PyArray_ISCARRAY_RO((PyArrayObject *)input) ||
        !PyArray_SIZE((PyArrayObject *)input) || !read_flag(keeps, 0, &keepdim))
        return DECLINE;
    PyArrayObject *array = (PyArrayObject *)input;
    int type = type_of(input), ndim = 0;
    Counting loop = {.input = PyArray_DATA(array)};
    if ((type != NPY_BOOL && type != NPY_INT64 && (kind == TOTAL || (type != NPY_FLOAT && type != NPY_DOUBLE))) ||
        !read_dims(dims, PyArray_NDIM(array), &reduced) || !find_layout(input, reduced, &loop.layout))
        return DECLINE;
    npy_intp shape[NPY_MAXDIMS];
    for (int i = 0; i < PyArray_NDIM(array); i++)
        if (!(reduced >> i & 1))
            shape[ndim++] = PyArray_DIM(array, i);
        else if (keepdim)
            shape[ndim++] = 1;
    PyObject *result = new_array(ndim, shape, kind == COUNT || kind == TOTAL ? NPY_INT64 : NPY_BOOL);
    if (!result)
        return NULL;
    loop.output = data_of(result);
    if (type == NPY_BOOL)
        reduce_bool(kind, &loop);
    else if (type == NPY_INT64)
        reduce_int64(kind, &loop);
    else if (type == NPY_FLOAT)
        reduce_float(kind, &loop);
    else
        reduce_double(kind, &loop);
    return result;
}

/* An empty tuple of dimensions reduces nothing here, unlike in a sum. */
static int is_empty(PyObject *dims) { return dims && PyTuple_CheckExact(dims) && !PyTuple_GET_SIZE(dims); }

static PyObject *reduce_truths(PyObject *const *slots, const KernelEntry *entry)
{
    return is_empty(slots[1]) ? DECLINE : reduce_counts(slots[0], slots[1], slots[2], (CountKind)entry->kind);
}

static PyObject *count_nonzero(PyObject *const *slots, const KernelEntry *entry)
{
    return reduce_counts(slots[0], slots[1], NULL, COUNT);
}

const KernelEntry whole_number_kernels[] = {
    {"any", reduce_truths, .kind = ANY},
    {"all", reduce_truths, .kind = ALL},
    {"count_nonzero", count_nonzero},
    {NULL},
};
