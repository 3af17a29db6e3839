/* Row-major arrays of any dtype with their elements in other places: kernels of kernels/rearranging.py. */
#include "boxes.h"
#include "gathers.h"

/* flip(input, dims) */
static PyObject *flip(PyObject *const *arguments, const KernelEntry *entry)
{
    npy_intp dims[NPY_MAXDIMS];
    PyObject *input = arguments[0];
    int count;
    if (!is_plain_memory(input) || !size_of(input) || !NDIM(input) || !is_copied_size(ITEM(input)) ||
        (count = read_shape(arguments[1], dims)) < 0)
        return DECLINE;
    PyObject *result = new_of_type(input, NDIM(input), SHAPE(input));
    if (!result)
        return NULL;
    Box box = box_between(input, result);
    int fits = 1;
    for (int k = 0; fits && k < count; k++) {
        int dim = (int)dims[k];
        fits = dim >= 0 && dim < box.ndim && box.from_steps[dim] >= 0;
        if (fits) {
            box.from += (box.shape[dim] - 1) * box.from_steps[dim];
            box.from_steps[dim] *= -1;
        }
    }
    if (!fits || !copy_box(&box))
        Py_CLEAR(result);
    return result;
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
    PyObject *result = new_of_type(input, NDIM(input), SHAPE(input));
    if (!result)
        return NULL;
    ptrdiff_t bytes = layout.inner * ITEM(input), whole = layout.count * bytes;
    ptrdiff_t moved = (shifts[0] % layout.count + layout.count) % layout.count * bytes;
    ptrdiff_t cuts[] = {0, whole - moved, whole};
    for (int i = 0; i < 2; i++) {
        Box box = box_of_rows((char *)data_of(input) + cuts[i], (char *)data_of(result) + (i ? 0 : moved), 1, layout.outer,
                              whole, cuts[i + 1] - cuts[i], 1);
        if (box.shape[1])
            copy_box(&box);
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
