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
    PyObject *result = new_of_type(input, ndim, shape);
    if (!result)
        return NULL;
    Take take = {data_of(index), size_of(index), layout.outer, layout.count, layout.inner * ITEM(input), data_of(input),
                 data_of(result)};
    take_positions(&take);
    return result;
}

static PyObject *embedding(PyObject *const *slots, const KernelEntry *entry)
{
    if (!is_plain_memory(slots[0]) || NDIM(slots[0]) != 2 || !are_positions(slots[1]))
        return DECLINE;
    return take_along(slots[0], 0, slots[1]);
}

static PyObject *index_select(PyObject *const *slots, const KernelEntry *entry)
{
    int dim;
    if (!is_plain_memory(slots[0]) || !read_dim(slots[1], NDIM(slots[0]), &dim) || !are_positions(slots[2]) ||
        NDIM(slots[2]) != 1)
        return DECLINE;
    return take_along(slots[0], dim, slots[2]);
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
static PyObject *embedding_back(PyObject *const *slots, const KernelEntry *entry)
{
    PyObject *grad = slots[0], *indices = slots[1];
    npy_intp shape[2], padding;
    if (!NDIM(grad) || !read_size(slots[2], &shape[0]) || !read_size(slots[3], &padding) || slots[4] != Py_False)
        return DECLINE;
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

/* Whether an array has this shape, but along `dim` as many elements as there are positions, all within it. */
static int fits_along(PyObject *array, int dim, PyObject *index, int ndim, const npy_intp *shape)
{
    for (int i = 0; NDIM(array) == ndim && i < ndim; i++)
        if (SHAPE(array)[i] != (i == dim ? size_of(index) : shape[i]))
            return 0;
    return NDIM(array) == ndim && shape[dim] > 0 && all_within(data_of(index), size_of(index), 0, shape[dim]);
}

/* Add a source at positions along a dimension of the result (NULL where memory ran out). */
static PyObject *add_source(PyObject *result, int dim, PyObject *index, PyObject *source)
{
    if (!result)
        return NULL;
    Layout layout = layout_along(result, dim);
    Addition addition = {data_of(index), size_of(index), layout.outer, layout.count, layout.inner, data_of(source),
                         data_of(result), -1};
    add_at(type_of(result), &addition);
    return result;
}

/* index_select_back(grad, shape, dim, index) */
static PyObject *index_select_back(PyObject *const *slots, const KernelEntry *entry)
{
    npy_intp shape[NPY_MAXDIMS];
    int dim, ndim = read_shape(slots[1], shape);
    if (ndim < 1 || !read_dim(slots[2], ndim, &dim) || !fits_along(slots[0], dim, slots[3], ndim, shape))
        return DECLINE;
    return add_source(PyArray_ZEROS(ndim, shape, type_of(slots[0]), 0), dim, slots[3], slots[0]);
}

/* index_add(input, dim, index, source), with alpha left out or 1. */
static PyObject *index_add(PyObject *const *slots, const KernelEntry *entry)
{
    int dim = dim_of(slots[1]);
    if (NDIM(slots[2]) != 1 || number_of(slots[4]) != 1 ||
        !fits_along(slots[3], dim, slots[2], NDIM(slots[0]), SHAPE(slots[0])))
        return DECLINE;
    return add_source(PyArray_NewCopy(ARRAY(slots[0]), NPY_CORDER), dim, slots[2], slots[3]);
}

/* Whether two arrays have the same shape but for one dimension, and the second names elements of the first along it. */
static int names_elements(PyObject *array, PyObject *index, int dim)
{
    if (!NDIM(array) || NDIM(array) != NDIM(index) || !size_of(index))
        return 0;
    for (int i = 0; i < NDIM(array); i++)
        if (i != dim && SHAPE(array)[i] != SHAPE(index)[i])
            return 0;
    return all_within(data_of(index), size_of(index), 0, SHAPE(array)[dim]);
}

/* The elements of `input` along `dim` that `index` names. */
static PyObject *gather_from(PyObject *input, int dim, PyObject *index)
{
    if (!names_elements(input, index, dim))
        return DECLINE;
    PyObject *result = new_array(NDIM(index), SHAPE(index), type_of(input));
    if (!result)
        return NULL;
    Layout from = layout_along(input, dim), to = layout_along(index, dim);
    Addition places = {data_of(index), to.count, from.outer, from.count, from.inner, data_of(input), data_of(result), -1};
    run_items(from.outer, to.count * to.inner, FOR_TYPE(type_of(input), gather_outer), &places);
    return result;
}

static PyObject *gather(PyObject *const *slots, const KernelEntry *entry)
{
    return gather_from(slots[0], dim_of(slots[1]), slots[2]);
}

static PyObject *take_along_dim(PyObject *const *slots, const KernelEntry *entry)
{
    return gather_from(slots[0], dim_of(slots[2]), slots[1]);
}

/* A gradient put, or added, at its indices into zeros: (input, indices, shape, dim) and, for reductions, keepdim. */
static PyObject *spread_along(PyObject *const *slots, const KernelEntry *entry)
{
    npy_intp shape[NPY_MAXDIMS];
    PyObject *grad = slots[0];
    int dim, ndim = read_shape(slots[2], shape), keepdim = !entry->kind || slots[4] == Py_True;
    if (ndim < 1 || !read_dim(slots[3], ndim, &dim) || NDIM(grad) != ndim - !keepdim ||
        !all_within(data_of(slots[1]), size_of(slots[1]), 0, shape[dim]))
        return DECLINE;
    for (int i = 0; i < NDIM(grad); i++) {
        int at = i + (!keepdim && i >= dim);
        if (at != dim && SHAPE(grad)[i] != shape[at])
            return DECLINE;
    }
    PyObject *result = PyArray_ZEROS(ndim, shape, type_of(grad), 0);
    if (result) {
        Layout to = layout_along(result, dim);
        ptrdiff_t taken = keepdim ? SHAPE(grad)[dim] : 1;
        Addition places = {data_of(slots[1]), taken, to.outer, to.count, to.inner, data_of(grad), data_of(result), -1};
        run_items(to.outer, taken * to.inner, LOOP_FOR(entry, grad), &places);
    }
    return result;
}

/* A copy of the input with elements of a source put, or added, at positions: (input, dim, index, src). */
static PyObject *scatter(PyObject *const *slots, const KernelEntry *entry)
{
    int dim = dim_of(slots[1]);
    if (!names_elements(slots[0], slots[2], dim) || !same_shape(slots[2], slots[3]))
        return DECLINE;
    PyObject *result = PyArray_NewCopy(ARRAY(slots[0]), NPY_CORDER);
    if (!result)
        return NULL;
    Layout to = layout_along(result, dim), from = layout_along(slots[2], dim);
    Addition places = {data_of(slots[2]), from.count, to.outer, to.count, to.inner, data_of(slots[3]), data_of(result), -1};
    run_items(to.outer, from.count * from.inner, LOOP_FOR(entry, result), &places);
    return result;
}

/* Places in planes: the last dimensions, flattened, which are zeros before something is put there. */
typedef struct {
    Addition places;
    BlockFunction loop;
    size_t zeroed; /* bytes */
} Planes;

static void go_over_planes(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    Planes *planes = context;
    for (ptrdiff_t plane = begin; plane < end; plane++) {
        if (planes->zeroed)
            memset((char *)planes->places.to + plane * planes->zeroed, 0, planes->zeroed);
        planes->loop(&planes->places, plane, plane + 1);
    }
}

/* Between `from` and `to`, of which one has planes of so many elements, the other the indices' last `dims` dimensions. */
static PyObject *move_in_planes(PyObject *from, PyObject *indices, PyObject *to, int dims, ptrdiff_t extent, int puts,
                                BlockFunction loop)
{
    ptrdiff_t outer = 1;
    if (!to)
        return NULL;
    for (int i = 0; i < NDIM(indices) - dims; i++)
        outer *= DIM(indices, i);
    Planes planes = {
        .places = {data_of(indices), size_of(indices) / outer, outer, extent, 1, data_of(from), data_of(to), -1, 0},
        .loop = loop,
        .zeroed = puts ? (size_t)(extent * ITEM(to)) : 0,
    };
    run_items(outer, planes.places.count + extent, go_over_planes, &planes);
    if (planes.places.failed)
        Py_CLEAR(to);
    return to;
}

/* (input, indices, sizes) */
static PyObject *put_in_planes(PyObject *const *slots, const KernelEntry *entry)
{
    npy_intp sizes[NPY_MAXDIMS], shape[NPY_MAXDIMS];
    ptrdiff_t extent = 1;
    int ndim = NDIM(slots[0]), dims = read_shape(slots[2], sizes), lead = ndim - dims;
    if (dims < 1 || lead < 0)
        return DECLINE;
    for (int i = 0; i < ndim; i++) {
        shape[i] = i < lead ? DIM(slots[0], i) : sizes[i - lead];
        extent *= i < lead ? 1 : shape[i];
        if (shape[i] < 1)
            return DECLINE;
    }
    PyObject *result = new_array(ndim, shape, type_of(slots[0]));
    return move_in_planes(slots[0], slots[1], result, dims, extent, 1, LOOP_FOR(entry, slots[0]));
}

/* (input, indices, dims) */
static PyObject *take_from_planes(PyObject *const *slots, const KernelEntry *entry)
{
    long dims;
    ptrdiff_t extent = 1;
    int ndim = NDIM(slots[0]);
    if (!read_integer(slots[2], 1, ndim, &dims) || !size_of(slots[1]) || ndim != NDIM(slots[1]))
        return DECLINE;
    for (int i = 0; i < ndim; i++)
        if (i >= ndim - dims)
            extent *= DIM(slots[0], i);
        else if (DIM(slots[0], i) != DIM(slots[1], i))
            return DECLINE;
    PyObject *result = new_array(ndim, SHAPE(slots[1]), type_of(slots[0]));
    return move_in_planes(slots[0], slots[1], result, (int)dims, extent, 0, LOOP_FOR(entry, slots[0]));
}

/* one_hot_rows(input, num_classes) */
static PyObject *one_hot_rows(PyObject *const *slots, const KernelEntry *entry)
{
    npy_intp classes, shape[NPY_MAXDIMS];
    int ndim = NDIM(slots[0]);
    if (!read_size(slots[1], &classes) || classes <= 0 || ndim + 1 > NPY_MAXDIMS ||
        !all_within(data_of(slots[0]), size_of(slots[0]), 0, classes))
        return DECLINE;
    for (int i = 0; i < ndim; i++) /* an array without dimensions has no shape to copy from */
        shape[i] = SHAPE(slots[0])[i];
    shape[ndim] = classes;
    PyObject *result = PyArray_ZEROS(ndim + 1, shape, NPY_INT64, 0);
    if (!result)
        return NULL;
    const int64_t *positions = data_of(slots[0]);
    int64_t *rows = data_of(result);
    for (ptrdiff_t i = 0; i < size_of(slots[0]); i++)
        rows[i * classes + positions[i]] = 1;
    return result;
}

const KernelEntry gather_kernels[] = {
    {"add_along", spread_along, "rI", LOOP_PAIR(scatter_outer)},
    {"embedding", embedding},
    {"embedding_back", embedding_back, "pi"},
    {"gather", gather, "pdi"},
    {"index_add", index_add, "pdipn"},
    {"index_select", index_select},
    {"index_select_back", index_select_back, "p..i"},
    {"one_hot_rows", one_hot_rows, "i"},
    {"put_in_planes", put_in_planes, "rI", LOOP_PAIR(scatter_within)},
    {"_unpool", put_in_planes, "rI", LOOP_PAIR(put_within)},
    {"take_from_planes", take_from_planes, "ri", LOOP_PAIR(gather_within)},
    {"put_along", spread_along, "rI", LOOP_PAIR(put_outer)},
    {"put_reduced", spread_along, "rI..f", 1, LOOP_PAIR(put_outer)},
    {"scatter", scatter, "pdip", LOOP_PAIR(put_outer)},
    {"scatter_add", scatter, "pdip", LOOP_PAIR(scatter_outer)},
    {"take_along", take_along_dim, "pid"},
    {NULL},
};
