/* Rows and elements taken from positions and added at them: kernels of kernels/embeddings.py, kernels/indexing.py and
 * kernels/scattering.py, for row-major arrays and positions of int64. Positions are looked at first: where one is out of
 * range the reference is asked, which says so.
 */
#include "gathers.h"

MULTIVERSIONED int all_within(const int64_t *positions, ptrdiff_t count, int64_t least, int64_t extent)
{
    uint64_t wrong = 0, first = (uint64_t)least, last = (uint64_t)extent - 1;
    for (ptrdiff_t i = 0; i < count; i++)
        wrong |= ((uint64_t)positions[i] - first) | (last - (uint64_t)positions[i]);
    return !(wrong >> 63); /* a sign bit where a position is below `least` or not below `extent` */
}

/* Numbers of one size that follow one another. */
#define TAKE(type)                                                                                                     \
    for (ptrdiff_t k = 0; k < count; k++)                                                                              \
        ((type *)to)[k] = ((const type *)from)[positions[k]];

/* Rows are counted through all outer positions; those of one outer position follow one another. */
MULTIVERSIONED static void take_rows(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Take *take = context;
    ptrdiff_t outer = begin / take->count, first = begin % take->count;
    for (ptrdiff_t i = begin; i < end; outer++, first = 0) {
        ptrdiff_t count = take->count - first < end - i ? take->count - first : end - i;
        const int64_t *positions = take->positions + first;
        const char *from = take->from + outer * take->extent * take->bytes;
        char *to = take->to + i * take->bytes;
        if (take->bytes == 4) {
            TAKE(uint32_t)
        } else if (take->bytes == 8) {
            TAKE(uint64_t)
        } else {
            for (ptrdiff_t k = 0; k < count; k++)
                memcpy(to + k * take->bytes, from + positions[k] * take->bytes, take->bytes);
        }
        i += count;
    }
}

void take_positions(Take *take) { run_items(take->outer * take->count, take->bytes / 4 + 1, take_rows, take); }

/* `input` with the dimension `dim` replaced by those of `index`. */
static PyObject *take_along(PyObject *input, int dim, PyObject *index)
{
    npy_intp shape[NPY_MAXDIMS];
    int index_ndim = NDIM(index), ndim = NDIM(input) - 1 + index_ndim;
    Layout layout = layout_along(input, dim);
    if (ndim > NPY_MAXDIMS || !size_of(index) || !size_of(input) ||
        !all_within(data_of(index), size_of(index), 0, layout.count))
        return DECLINE;
    for (int i = 0; i < ndim; i++)
        shape[i] = i < dim                ? SHAPE(input)[i]
                   : i < dim + index_ndim ? SHAPE(index)[i - dim]
                                          : SHAPE(input)[i - index_ndim + 1];
    PyArray_Descr *descr = PyArray_DESCR((PyArrayObject *)input);
    Py_INCREF(descr);
    PyObject *result = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, NULL, NULL, 0, NULL);
    if (!result)
        return NULL;
    Take take = {data_of(index), size_of(index), layout.outer, layout.count, layout.inner * ITEM(input), data_of(input),
                 data_of(result)};
    take_positions(&take);
    return result;
}

static PyObject *embedding(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "weight", "indices", "padding_idx", "scale_grad_by_freq", "sparse");
    if (!is_plain_memory(slots[0]) || NDIM(slots[0]) != 2 || !are_positions(slots[1]))
        return DECLINE;
    return take_along(slots[0], 0, slots[1]);
}

static PyObject *index_select(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    int dim;
    if (positional != 3 || keywords || !is_plain_memory(arguments[0]) ||
        !read_dim(arguments[1], NDIM(arguments[0]), &dim) || !are_positions(arguments[2]) || NDIM(arguments[2]) != 1)
        return DECLINE;
    return take_along(arguments[0], dim, arguments[2]);
}

#define LOOPS "gather_loops.h"
#include "for_each_real.h"

/* Threads share the columns where there are many, or what is outside, so that every sum is in the order of the
 * positions. */
void add_at(int type, Addition *addition)
{
    if (addition->inner < 16 && addition->outer > 1)
        run_items(addition->outer, addition->inner * addition->count, FOR_TYPE(type, add_outer), addition);
    else
        run_items(addition->inner, addition->outer * addition->count, FOR_TYPE(type, add_columns), addition);
}

/* embedding_back(input, indices, rows, padding_idx, scale_grad_by_freq) */
static PyObject *embedding_back(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    npy_intp shape[2], padding;
    if (positional != 5 || keywords || !is_plain(arguments[0]) || !NDIM(arguments[0]) || !are_positions(arguments[1]) ||
        !read_size(arguments[2], &shape[0]) || !read_size(arguments[3], &padding) || arguments[4] != Py_False)
        return DECLINE;
    PyObject *grad = arguments[0], *indices = arguments[1];
    shape[1] = SHAPE(grad)[NDIM(grad) - 1];
    if (size_of(grad) != size_of(indices) * shape[1] || shape[0] <= 0 ||
        !all_within(data_of(indices), size_of(indices), 0, shape[0]))
        return DECLINE;
    PyObject *result = PyArray_ZEROS(2, shape, type_of(grad), 0);
    if (!result)
        return NULL;
    Addition addition = {data_of(indices), size_of(indices), 1, shape[0], shape[1], data_of(grad), data_of(result),
                         padding >= 0 ? padding : -1};
    add_at(type_of(grad), &addition);
    return result;
}

/* index_select_back(grad, shape, dim, index) */
static PyObject *index_select_back(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    npy_intp shape[NPY_MAXDIMS];
    int dim, ndim;
    if (positional != 4 || keywords || !is_plain(arguments[0]) || (ndim = read_shape(arguments[1], shape)) < 1 ||
        !read_dim(arguments[2], ndim, &dim) || !are_positions(arguments[3]) || NDIM(arguments[0]) != ndim)
        return DECLINE;
    PyObject *grad = arguments[0], *index = arguments[3];
    for (int i = 0; i < ndim; i++)
        if (SHAPE(grad)[i] != (i == dim ? size_of(index) : shape[i]))
            return DECLINE;
    if (shape[dim] <= 0 || !all_within(data_of(index), size_of(index), 0, shape[dim]))
        return DECLINE;
    PyObject *result = PyArray_ZEROS(ndim, shape, type_of(grad), 0);
    if (!result)
        return NULL;
    Layout layout = layout_along(result, dim);
    Addition addition = {data_of(index), size_of(index), layout.outer, layout.count, layout.inner, data_of(grad),
                         data_of(result), -1};
    add_at(type_of(grad), &addition);
    return result;
}

/* index_add(input, dim, index, source), with alpha left out or 1. */
static PyObject *index_add(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "index", "source", "alpha");
    int dim;
    double alpha = 1;
    if (!slots[0] || !slots[1] || !slots[3] || positional > 4 || !is_plain(slots[0]) ||
        !read_dim(slots[1], NDIM(slots[0]), &dim) || !are_positions(slots[2]) || NDIM(slots[2]) != 1 ||
        !is_plain_of(slots[3], type_of(slots[0])) || NDIM(slots[3]) != NDIM(slots[0]) ||
        (slots[4] && (!read_number(slots[4], &alpha) || alpha != 1)))
        return DECLINE;
    PyObject *input = slots[0], *index = slots[2], *source = slots[3];
    for (int i = 0; i < NDIM(input); i++)
        if (SHAPE(source)[i] != (i == dim ? size_of(index) : SHAPE(input)[i]))
            return DECLINE;
    if (!all_within(data_of(index), size_of(index), 0, SHAPE(input)[dim]))
        return DECLINE;
    PyObject *result = PyArray_NewCopy((PyArrayObject *)input, NPY_CORDER);
    if (!result)
        return NULL;
    Layout layout = layout_along(input, dim);
    Addition addition = {data_of(index), size_of(index), layout.outer, layout.count, layout.inner, data_of(source),
                         data_of(result), -1};
    add_at(type_of(input), &addition);
    return result;
}

/* Whether two arrays have the same shape but for one dimension. */
static int differ_only_in(PyObject *first, PyObject *second, int dim)
{
    if (NDIM(first) != NDIM(second))
        return 0;
    for (int i = 0; i < NDIM(first); i++)
        if (i != dim && SHAPE(first)[i] != SHAPE(second)[i])
            return 0;
    return 1;
}

/* The elements of `input` along `dim` that `index` names. */
static PyObject *gather_from(PyObject *input, PyObject *place, PyObject *index)
{
    int dim;
    if (!input || !place || !is_plain(input) || !NDIM(input) || !read_dim(place, NDIM(input), &dim) ||
        !are_positions(index) || !differ_only_in(input, index, dim) || !size_of(index) ||
        !all_within(data_of(index), size_of(index), 0, SHAPE(input)[dim]))
        return DECLINE;
    PyObject *result = new_array(NDIM(index), SHAPE(index), type_of(input));
    if (!result)
        return NULL;
    Layout from = layout_along(input, dim), to = layout_along(index, dim);
    Addition places = {data_of(index), to.count, from.outer, from.count, from.inner, data_of(input), data_of(result), -1};
    run_items(from.outer, to.count * to.inner, FOR_TYPE(type_of(input), gather_outer), &places);
    return result;
}

static PyObject *gather(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PLACE(slots, "input", "dim", "index", "sparse_grad");
    return gather_from(slots[0], slots[1], slots[2]);
}

/* take_along(input, indices, dim) */
static PyObject *take_along_dim(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    return positional == 3 && !keywords ? gather_from(arguments[0], arguments[2], arguments[1]) : DECLINE;
}

/* A gradient put, or added, at its indices into zeros: (input, indices, shape, dim). */
static PyObject *spread_along(PyObject *const *arguments, Py_ssize_t count, int adds)
{
    npy_intp shape[NPY_MAXDIMS];
    int ndim, dim, keepdim = 1;
    if (!is_real_array(arguments[0]) || !are_positions(arguments[1]) || !same_shape(arguments[0], arguments[1]) ||
        (ndim = read_shape(arguments[2], shape)) < 1 || !read_dim(arguments[3], ndim, &dim) ||
        (count == 5 && !read_flag(arguments[4], 0, &keepdim)) || NDIM(arguments[0]) != ndim - !keepdim ||
        !size_of(arguments[0]) || !all_within(data_of(arguments[1]), size_of(arguments[1]), 0, shape[dim]))
        return DECLINE;
    for (int i = 0; i < NDIM(arguments[0]); i++) {
        int at = i + (!keepdim && i >= dim);
        if (at != dim && SHAPE(arguments[0])[i] != shape[at])
            return DECLINE;
    }
    PyObject *grad = row_major(arguments[0]), *result = grad ? PyArray_ZEROS(ndim, shape, type_of(grad), 0) : NULL;
    if (result) {
        Layout to = layout_along(result, dim);
        ptrdiff_t taken = keepdim ? SHAPE(grad)[dim] : 1;
        Addition places = {data_of(arguments[1]), taken, to.outer, to.count, to.inner, data_of(grad), data_of(result), -1};
        int type = type_of(grad);
        run_items(to.outer, taken * to.inner, adds ? FOR_TYPE(type, scatter_outer) : FOR_TYPE(type, put_outer), &places);
    }
    Py_XDECREF(grad);
    return result;
}

static PyObject *put_along(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    return positional == 4 && !keywords ? spread_along(arguments, 4, 0) : DECLINE;
}

static PyObject *add_along(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    return positional == 4 && !keywords ? spread_along(arguments, 4, 1) : DECLINE;
}

/* put_reduced(input, indices, shape, dim, keepdim) */
static PyObject *put_reduced(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    return positional == 5 && !keywords ? spread_along(arguments, 5, 0) : DECLINE;
}

/* A copy of the input with elements of a source put, or added, at positions: (input, dim, index, src). */
static PyObject *scatter_into(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords, int adds)
{
    int dim;
    if (positional != 4 || keywords || !is_plain(arguments[0]) || !NDIM(arguments[0]) ||
        !read_dim(arguments[1], NDIM(arguments[0]), &dim) || !are_positions(arguments[2]) ||
        !differ_only_in(arguments[0], arguments[2], dim) || !is_plain_of(arguments[3], type_of(arguments[0])) ||
        !same_shape(arguments[2], arguments[3]) || !size_of(arguments[2]) ||
        !all_within(data_of(arguments[2]), size_of(arguments[2]), 0, SHAPE(arguments[0])[dim]))
        return DECLINE;
    PyObject *result = PyArray_NewCopy((PyArrayObject *)arguments[0], NPY_CORDER);
    if (!result)
        return NULL;
    Layout to = layout_along(result, dim), from = layout_along(arguments[2], dim);
    Addition places = {data_of(arguments[2]), from.count, to.outer, to.count, to.inner, data_of(arguments[3]), data_of(result), -1};
    int type = type_of(result);
    run_items(to.outer, from.count * from.inner, adds ? FOR_TYPE(type, scatter_outer) : FOR_TYPE(type, put_outer), &places);
    return result;
}

static PyObject *scatter(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    return scatter_into(arguments, positional, keywords, 0);
}

static PyObject *scatter_add(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    return scatter_into(arguments, positional, keywords, 1);
}

/* one_hot_rows(input, num_classes) */
static PyObject *one_hot_rows(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    npy_intp classes, shape[NPY_MAXDIMS];
    if (positional != 2 || keywords || !are_positions(arguments[0]) || !read_size(arguments[1], &classes) ||
        classes <= 0 || NDIM(arguments[0]) + 1 > NPY_MAXDIMS ||
        !all_within(data_of(arguments[0]), size_of(arguments[0]), 0, classes))
        return DECLINE;
    for (int i = 0; i < NDIM(arguments[0]); i++)
        shape[i] = SHAPE(arguments[0])[i];
    shape[NDIM(arguments[0])] = classes;
    PyObject *result = PyArray_ZEROS(NDIM(arguments[0]) + 1, shape, NPY_INT64, 0);
    if (!result)
        return NULL;
    const int64_t *positions = data_of(arguments[0]);
    int64_t *rows = data_of(result);
    for (ptrdiff_t i = 0; i < size_of(arguments[0]); i++)
        rows[i * classes + positions[i]] = 1;
    return result;
}

const KernelEntry gather_kernels[] = {
    {"add_along", add_along},
    {"embedding", embedding},
    {"embedding_back", embedding_back},
    {"gather", gather},
    {"index_add", index_add},
    {"index_select", index_select},
    {"index_select_back", index_select_back},
    {"one_hot_rows", one_hot_rows},
    {"put_along", put_along},
    {"put_reduced", put_reduced},
    {"scatter", scatter},
    {"scatter_add", scatter_add},
    {"take_along", take_along_dim},
    {NULL},
};
