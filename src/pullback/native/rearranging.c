/* Row-major arrays of any dtype with their elements in other places: kernels of kernels/rearranging.py. */
#include "gathers.h"

/* Rows of one item size, each taken from another row; the elements of a row in their order or the other way round. */
typedef struct {
    const char *from;
    char *to;
    int ndim; /* of what a row is in */
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS]; /* of the rows, in bytes; negative where reversed */
    ptrdiff_t count, item;
    int backward;
} Flip;

#define REVERSE(type)                                                                                                  \
    for (ptrdiff_t i = 0; i < flip->count; i++)                                                                        \
        ((type *)to)[i] = ((const type *)from)[flip->count - 1 - i];

MULTIVERSIONED static void flip_rows(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Flip *flip = context;
    ptrdiff_t bytes = flip->count * flip->item;
    for (ptrdiff_t row = begin; row < end; row++) {
        const char *from = flip->from;
        char *to = flip->to + row * bytes;
        ptrdiff_t left = row;
        for (int d = flip->ndim; d--; left /= flip->shape[d])
            from += left % flip->shape[d] * flip->strides[d];
        if (!flip->backward) {
            memcpy(to, from, bytes);
        } else if (flip->item == 4) {
            REVERSE(uint32_t)
        } else if (flip->item == 8) {
            REVERSE(uint64_t)
        } else {
            for (ptrdiff_t i = 0; i < flip->count; i++)
                memcpy(to + i * flip->item, from + (flip->count - 1 - i) * flip->item, flip->item);
        }
    }
}

/* flip(input, dims) */
static PyObject *flip(PyObject *const *arguments, const KernelEntry *entry)
{
    npy_intp dims[NPY_MAXDIMS];
    int count;
    if (!is_plain_memory(arguments[0]) || !size_of(arguments[0]) || !NDIM(arguments[0]) ||
        (count = read_shape(arguments[1], dims)) < 0)
        return DECLINE;
    PyObject *input = arguments[0];
    int ndim = NDIM(input), last = ndim - 1;
    Flip loop = {.from = data_of(input), .ndim = last, .count = SHAPE(input)[last], .item = ITEM(input)};
    for (int d = 0; d < last; d++) {
        loop.shape[d] = SHAPE(input)[d];
        loop.strides[d] = STRIDE(input, d);
    }
    for (int k = 0; k < count; k++) {
        if (dims[k] < 0 || dims[k] >= ndim || (dims[k] != last && loop.strides[dims[k]] < 0))
            return DECLINE;
        if (dims[k] == last) {
            loop.backward = 1;
        } else {
            loop.from += (loop.shape[dims[k]] - 1) * loop.strides[dims[k]];
            loop.strides[dims[k]] *= -1;
        }
    }
    PyObject *result = new_of_type(input, ndim, SHAPE(input));
    if (result) {
        loop.to = data_of(result);
        run_items(size_of(input) / loop.count, loop.count, flip_rows, &loop);
    }
    return result;
}

typedef struct {
    const char *from;
    char *to;
    ptrdiff_t whole, moved; /* bytes that are rolled together, and by how many */
} Roll;

static void roll_blocks(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Roll *roll = context;
    for (ptrdiff_t block = begin; block < end; block++) {
        const char *from = roll->from + block * roll->whole;
        char *to = roll->to + block * roll->whole;
        memcpy(to + roll->moved, from, roll->whole - roll->moved);
        memcpy(to, from + roll->whole - roll->moved, roll->moved);
    }
}

/* roll(input, shifts, dims) along one dimension, or of the flattened array where there are no dims. */
static PyObject *roll(PyObject *const *arguments, const KernelEntry *entry)
{
    npy_intp shifts[NPY_MAXDIMS], dims[NPY_MAXDIMS];
    if (!is_plain_memory(arguments[0]) || !size_of(arguments[0]) || !NDIM(arguments[0]) ||
        read_shape(arguments[1], shifts) != 1)
        return DECLINE;
    PyObject *input = arguments[0];
    int along = read_shape(arguments[2], dims);
    if (along < 0 || along > 1 || (along && (dims[0] < 0 || dims[0] >= NDIM(input))))
        return DECLINE;
    Layout layout = along ? layout_along(input, (int)dims[0]) : (Layout){1, size_of(input), 1};
    ptrdiff_t item = ITEM(input), moved = (shifts[0] % layout.count + layout.count) % layout.count;
    PyObject *result = new_of_type(input, NDIM(input), SHAPE(input));
    if (result) {
        Roll loop = {data_of(input), data_of(result), layout.count * layout.inner * item, moved * layout.inner * item};
        run_items(layout.outer, layout.count * layout.inner, roll_blocks, &loop);
    }
    return result;
}

typedef struct {
    const char *from;
    char *to;
    ptrdiff_t rows, columns, item, diagonal;
    int upper; /* the kind of the entry */
} Triangle;

static void keep_triangle(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Triangle *loop = context;
    ptrdiff_t bytes = loop->columns * loop->item;
    for (ptrdiff_t row = begin; row < end; row++) {
        const char *from = loop->from + row * bytes;
        char *to = loop->to + row * bytes;
        ptrdiff_t cut = row % loop->rows + loop->diagonal + !loop->upper; /* the first column of the upper part */
        ptrdiff_t before = (cut < 0 ? 0 : cut > loop->columns ? loop->columns : cut) * loop->item;
        if (loop->upper) {
            memset(to, 0, before);
            memcpy(to + before, from + before, bytes - before);
        } else {
            memcpy(to, from, before);
            memset(to + before, 0, bytes - before);
        }
    }
}

static PyObject *triangle(PyObject *const *slots, const KernelEntry *entry)
{
    long diagonal;
    PyObject *input = slots[0];
    if (!is_plain_memory(input) || NDIM(input) < 2 || !size_of(input) ||
        !read_integer(slots[1], -(1L << 40), 1L << 40, &diagonal))
        return DECLINE;
    PyObject *result = new_of_type(input, NDIM(input), SHAPE(input));
    if (result) {
        const npy_intp *sizes = SHAPE(input) + NDIM(input) - 2;
        Triangle loop = {data_of(input), data_of(result), sizes[0], sizes[1], ITEM(input), diagonal, entry->kind};
        run_items(size_of(input) / sizes[1], sizes[1], keep_triangle, &loop);
    }
    return result;
}

const KernelEntry rearranging_kernels[] = {
    {"flip", flip},
    {"roll", roll},
    {"tril", triangle},
    {"triu", triangle, .kind = 1},
    {NULL},
};
