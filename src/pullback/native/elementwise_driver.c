/* The driver of elementwise kernels. See Note [Elementwise calls].
 *
 * Note [Elementwise calls]
 * A loop sees contiguous memory only. Operands of one shape, row-major, are handed to it as they are. Otherwise the
 * result, laid out as PyTorch would (the first operand's order of dimensions), is cut into pieces of at most PIECE elements:
 * parts of one row where rows are long, several whole rows where they are short. For each piece, operands that are not
 * contiguous there are gathered into a buffer that stays in the first cache; what is the same in every piece (a number,
 * a 0-dim array, a row that is repeated) is gathered once. Pieces are what threads share.
 */
#include "elementwise_driver.h"

#include "casts.h"

#include <numpy/arrayscalars.h>
#include <string.h>

#define MOST_DIMS 16
#define PIECE 1024
/* Rows shorter than this are gathered several at a time. */
#define SHORT_ROW 256
/* Up to this many elements no walk is made. */
#define SMALL 64

typedef struct {
    const char *data;
    npy_intp strides[MOST_DIMS]; /* 0 where it is broadcast */
    int size;                    /* of an element, in bytes */
} Source;

typedef struct {
    const Elementwise *kernel;
    Arguments given;
    PyObject *operands[MOST_PARAMETERS]; /* by operand; NULL for a number or None */
    double constants[MOST_PARAMETERS];   /* the numbers among the operands, stored in the float type */
    int count;                           /* of operands */
    int type;                            /* NPY_FLOAT, NPY_DOUBLE or that of 16 bits; -1 while unknown */
    PyArrayObject *lead;                 /* an array of the most dimensions; NULL if there is none */
    int owned;                           /* whether the first operand may be overwritten */
} Call;

typedef struct {
    ElementwiseLoop loop;
    const double *numbers;
    Source sources[MOST_PARAMETERS];
    int count;
    char *result;
    int result_size;
    int ndim;
    npy_intp shape[MOST_DIMS];
    npy_intp total, row, piece, pieces_per_row; /* pieces_per_row is 0 where a piece has several rows */
} Walk;

typedef union {
    double align;
    char bytes[PIECE * sizeof(double)];
} Buffer;

static int intern_names(const Elementwise *kernel)
{
    for (int i = 0; i < kernel->count; i++) {
        kernel->names[i] = PyUnicode_InternFromString(kernel->parameters[i].name);
        if (!kernel->names[i]) {
            kernel->names[0] = NULL;
            PyErr_Clear();
            return 0;
        }
    }
    return 1;
}

/* An operand that is one number: its value in the common type is stored when that type is known. */
static int take_constant(Call *call, double value)
{
    call->operands[call->count] = NULL;
    call->constants[call->count++] = value;
    return 1;
}

static int take_array(Call *call, PyObject *object)
{
    PyArrayObject *array = (PyArrayObject *)object;
    int type = type_of(object);
    if (UNLIKELY(call->type != type)) {
        if (call->type >= 0 || float_kind(PyArray_DESCR(array)) == NO_FLOAT)
            return 0;
        call->type = type;
    }
    if (!PyArray_ISBEHAVED_RO(array))
        return 0;
    if (!call->lead || PyArray_NDIM(array) > PyArray_NDIM(call->lead))
        call->lead = array;
    call->operands[call->count++] = object;
    return 1;
}

/* NumPy's own scalars, as which gradients of 0-dim arrays may come, are typed as arrays are. */
static int take_scalar(Call *call, PyObject *object)
{
    int type = PyArray_IsScalar(object, Float) ? NPY_FLOAT : NPY_DOUBLE;
    if (call->type >= 0 && call->type != type)
        return 0;
    call->type = type;
    double value = type == NPY_FLOAT ? PyArrayScalar_VAL(object, Float) : PyArrayScalar_VAL(object, Double);
    return take_constant(call, value);
}

static int take_mask(Call *call, PyObject *object)
{
    if (!PyArray_CheckExact(object) || type_of(object) != NPY_BOOL)
        return 0;
    PyArrayObject *array = (PyArrayObject *)object;
    if (!call->lead || PyArray_NDIM(array) > PyArray_NDIM(call->lead))
        call->lead = array;
    call->operands[call->count++] = object;
    return 1;
}

static int take_operand(Call *call, ParameterKind kind, int index, PyObject *object)
{
    double value;
    if (LIKELY(PyArray_CheckExact(object)))
        return take_array(call, object);
    if (kind == ARRAY_OR_NUMBER && read_number(object, &value))
        return take_constant(call, value);
    if (Py_TYPE(object) == &PyFloatArrType_Type || Py_TYPE(object) == &PyDoubleArrType_Type)
        return take_scalar(call, object);
    if (kind == OPTIONAL_ARRAY && object == Py_None) {
        call->given.absent |= 1u << index;
        return take_constant(call, 0.0);
    }
    return 0;
}

static int take_text(Call *call, int index, PyObject *object)
{
    if (!PyUnicode_Check(object))
        return 0;
    call->given.texts[index] = PyUnicode_AsUTF8(object);
    if (!call->given.texts[index])
        PyErr_Clear();
    return call->given.texts[index] != NULL;
}

static int take_default(Call *call, const Parameter *parameter, int index)
{
    if (!parameter->has_default)
        return 0;
    switch (parameter->kind) {
    case NUMBER:
        call->given.numbers[index] = parameter->number;
        return 1;
    case ARRAY_OR_NUMBER:
        return take_constant(call, parameter->number);
    case TEXT:
        call->given.texts[index] = parameter->text;
        return 1;
    case OPTIONAL_NUMBER:
        call->given.absent |= 1u << index;
        return 1;
    case OWNED:
        return 1;
    case OPTIONAL_ARRAY:
        call->given.absent |= 1u << index;
        return take_constant(call, 0.0);
    default:
        return 0;
    }
}

static int take_argument(Call *call, const Parameter *parameter, int index, PyObject *object)
{
    if (!object)
        return take_default(call, parameter, index);
    switch (parameter->kind) {
    case MASK:
        return take_mask(call, object);
    case OPTIONAL_NUMBER:
        if (object == Py_None) {
            call->given.absent |= 1u << index;
            return 1;
        } /* fall through */
    case NUMBER:
        return read_number(object, &call->given.numbers[index]);
    case TEXT:
        return take_text(call, index, object);
    case OWNED:
        call->owned = object == Py_True;
        return 1;
    default:
        return take_operand(call, parameter->kind, index, object);
    }
}

/* Read all arguments; 0 where one is not what the loops can take. */
static int take_arguments(Call *call, PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    const Elementwise *kernel = call->kernel;
    PyObject *slots[MOST_PARAMETERS];
    if (keywords || positional != kernel->count) {
        if ((!kernel->names[0] && !intern_names(kernel)) ||
            !place_arguments(arguments, positional, keywords, kernel->names, kernel->count, slots))
            return 0;
        arguments = slots;
    }
    for (int i = 0; i < kernel->count; i++)
        if (!take_argument(call, &kernel->parameters[i], i, arguments[i]))
            return 0;
    return call->type >= 0;
}

static void store(char *target, double value, int type)
{
    if (type == NPY_DOUBLE)
        *(double *)(void *)target = value;
    else
        *(float *)(void *)target = (float)value; /* in which floats of 16 bits are computed, too */
}

/* Fill a buffer with one element; buffers are aligned. */
MULTIVERSIONED static void repeat(char *restrict buffer, const char *restrict element, int size, npy_intp count)
{
    if (size == 4) {
        float value = *(const float *)(const void *)element, *restrict target = (float *)(void *)buffer;
        for (npy_intp i = 0; i < count; i++)
            target[i] = value;
    } else if (size == 8) {
        double value = *(const double *)(const void *)element, *restrict target = (double *)(void *)buffer;
        for (npy_intp i = 0; i < count; i++)
            target[i] = value;
    } else {
        memset(buffer, *element, (size_t)count);
    }
}

MULTIVERSIONED static void gather_row(char *restrict buffer, const char *data, npy_intp stride, int size, npy_intp count)
{
    if (stride == size) {
        memcpy(buffer, data, (size_t)(count * size));
    } else if (stride == 0) {
        repeat(buffer, data, size, count);
    } else if (size == 4) {
        float *restrict target = (float *)(void *)buffer;
        for (npy_intp i = 0; i < count; i++)
            target[i] = *(const float *)(const void *)(data + i * stride);
    } else if (size == 8) {
        double *restrict target = (double *)(void *)buffer;
        for (npy_intp i = 0; i < count; i++)
            target[i] = *(const double *)(const void *)(data + i * stride);
    } else {
        for (npy_intp i = 0; i < count; i++)
            buffer[i] = data[i * stride];
    }
}

/* The first element of a row of the walk. */
static const char *row_start(const Walk *walk, const Source *source, npy_intp row)
{
    npy_intp offset = 0;
    for (int i = walk->ndim - 2; i > 0 && row; i--) {
        offset += (row % walk->shape[i]) * source->strides[i];
        row /= walk->shape[i];
    }
    return source->data + offset + (walk->ndim > 1 ? row * source->strides[0] : 0);
}

/* Whether the elements lie one after the other in the order of the walk. */
static int is_flat(const Walk *walk, const Source *source)
{
    npy_intp expected = source->size;
    for (int i = walk->ndim - 1; i >= 0; i--) {
        if (source->strides[i] != expected)
            return 0;
        expected *= walk->shape[i];
    }
    return 1;
}

/* Whether every row is the same memory. */
static int repeats_rows(const Walk *walk, const Source *source)
{
    for (int i = 0; i < walk->ndim - 1; i++)
        if (source->strides[i])
            return 0;
    return 1;
}

/* Rows at equal distances, of a length that the compiler knows where it is inlined with one. */
#define GATHER_EVEN_ROWS(type)                                                                                        \
    INLINE void gather_even_rows_of_##type(type *restrict target, const char *data, npy_intp rows, npy_intp distance, \
                                           npy_intp length, npy_intp stride)                                          \
    {                                                                                                                 \
        for (npy_intp row = 0; row < rows; row++, data += distance)                                                   \
            for (npy_intp i = 0; i < length; i++)                                                                     \
                *target++ = *(const type *)(const void *)(data + i * stride);                                         \
    }                                                                                                                 \
    /* Contiguous rows of `half` to twice as many: the first and the last `half` elements, which may overlap. */      \
    INLINE void copy_even_rows_of_##type(type *restrict target, const char *data, npy_intp rows, npy_intp distance,   \
                                         npy_intp length, size_t half)                                                \
    {                                                                                                                 \
        size_t last = ((size_t)length - half) * sizeof(type);                                                         \
        for (npy_intp row = 0; row < rows; row++, data += distance, target += length) {                               \
            memcpy(target, data, half * sizeof(type));                                                                \
            memcpy((char *)target + last, data + last, half * sizeof(type));                                          \
        }                                                                                                             \
    }                                                                                                                 \
    /* The same for rows of one element that is repeated. */                                                          \
    INLINE void repeat_even_rows_of_##type(type *restrict target, const char *data, npy_intp rows, npy_intp distance, \
                                           npy_intp length, npy_intp half)                                            \
    {                                                                                                                 \
        for (npy_intp row = 0; row < rows; row++, data += distance, target += length) {                               \
            type element = *(const type *)(const void *)data, *end = target + (length - half);                        \
            for (npy_intp i = 0; i < half; i++)                                                                       \
                target[i] = element;                                                                                  \
            for (npy_intp i = 0; i < half; i++)                                                                       \
                end[i] = element;                                                                                     \
        }                                                                                                             \
    }                                                                                                                 \
    static void gather_short_rows_of_##type(void *buffer, const char *data, npy_intp rows, npy_intp distance,         \
                                            npy_intp length, npy_intp stride)                                         \
    {                                                                                                                 \
        if (length == 2)                                                                                              \
            gather_even_rows_of_##type(buffer, data, rows, distance, 2, stride);                                      \
        else if (length == 3)                                                                                         \
            gather_even_rows_of_##type(buffer, data, rows, distance, 3, stride);                                      \
        else if (stride == sizeof(type) && length >= 8)                                                               \
            copy_even_rows_of_##type(buffer, data, rows, distance, length, 8);                                        \
        else if (stride == sizeof(type) && length >= 4)                                                               \
            copy_even_rows_of_##type(buffer, data, rows, distance, length, 4);                                        \
        else if (stride == 0 && length >= 8)                                                                          \
            repeat_even_rows_of_##type(buffer, data, rows, distance, length, 8);                                      \
        else if (stride == 0 && length >= 4)                                                                          \
            repeat_even_rows_of_##type(buffer, data, rows, distance, length, 4);                                      \
        else                                                                                                          \
            gather_even_rows_of_##type(buffer, data, rows, distance, length, stride);                                 \
    }
GATHER_EVEN_ROWS(float)
GATHER_EVEN_ROWS(double)

/* Up to this length rows are copied without a call. */
#define TINY_ROW 16

/* Rows of one block of the outer dimensions lie at equal distances: they are gathered together. */
static void gather_rows(const Walk *walk, const Source *source, npy_intp first, npy_intp count, char *buffer)
{
    int inner = walk->ndim - 1;
    npy_intp stride = source->strides[inner], bytes = walk->row * source->size;
    npy_intp block = inner ? walk->shape[inner - 1] : 1, distance = inner ? source->strides[inner - 1] : 0;
    while (count > 0) {
        npy_intp left = block - first % block, rows = left < count ? left : count;
        const char *data = row_start(walk, source, first);
        if (walk->row <= TINY_ROW && source->size == 4)
            gather_short_rows_of_float(buffer, data, rows, distance, walk->row, stride);
        else if (walk->row <= TINY_ROW && source->size == 8)
            gather_short_rows_of_double(buffer, data, rows, distance, walk->row, stride);
        else
            for (npy_intp row = 0; row < rows; row++)
                gather_row(buffer + row * bytes, data + row * distance, stride, source->size, walk->row);
        buffer += rows * bytes;
        first += rows;
        count -= rows;
    }
}

/* Whether the result is written over one of the operands. */
static int overwrites(const Walk *walk, const char *result, void *const *operands, npy_intp count)
{
    for (int k = 0; k < walk->count; k++) {
        const char *data = operands[k];
        if (data < result + count * walk->result_size && result < data + count * walk->sources[k].size)
            return 1;
    }
    return 0;
}

/* Run the loop over whole vectors. What is left is the end of one more vector, some of whose elements are computed a second
 * time; where there are too few elements for that, or they are overwritten, it is copied to a vector filled up with zeros. */
static void run_loop(const Walk *walk, char *result, void *const *operands, npy_intp count)
{
    npy_intp whole = (npy_intp)WHOLE((size_t)count), rest = count - whole;
    void *ends[MOST_PARAMETERS];
    int twice = rest && whole && !overwrites(walk, result, operands, count);
    if (whole)
        walk->loop(result, operands, walk->numbers, (size_t)whole);
    if (!rest)
        return;
    if (twice) {
        for (int k = 0; k < walk->count; k++)
            ends[k] = (char *)operands[k] + (count - LANES) * walk->sources[k].size;
        walk->loop(result + (count - LANES) * walk->result_size, ends, walk->numbers, LANES);
        return;
    }
    double filled[MOST_PARAMETERS][LANES], last[LANES];
    for (int k = 0; k < walk->count; k++) {
        int size = walk->sources[k].size;
        memset(filled[k], 0, (size_t)(LANES * size));
        memcpy(filled[k], (char *)operands[k] + whole * size, (size_t)(rest * size));
        ends[k] = filled[k];
    }
    walk->loop(last, ends, walk->numbers, LANES);
    memcpy(result + whole * walk->result_size, last, (size_t)(rest * walk->result_size));
}

typedef enum { FLAT, ONCE, EACH_PIECE } Road;

static void do_pieces(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Walk *walk = context;
    Buffer buffers[MOST_PARAMETERS];
    Road roads[MOST_PARAMETERS];
    void *operands[MOST_PARAMETERS];
    npy_intp most = walk->piece < walk->total ? walk->piece : walk->total;
    for (int k = 0; k < walk->count; k++) {
        const Source *source = &walk->sources[k];
        roads[k] = EACH_PIECE;
        if (is_flat(walk, source)) {
            roads[k] = FLAT;
        } else if (repeats_rows(walk, source)) {
            if (source->strides[walk->ndim - 1] == 0) {
                repeat(buffers[k].bytes, source->data, source->size, most);
                roads[k] = ONCE;
            } else if (!walk->pieces_per_row) {
                gather_rows(walk, source, 0, most / walk->row, buffers[k].bytes);
                roads[k] = ONCE;
            }
        }
    }
    for (ptrdiff_t piece = begin; piece < end; piece++) {
        npy_intp row, skipped = 0, start, count;
        if (walk->pieces_per_row) {
            row = piece;
            if (walk->pieces_per_row > 1) {
                row /= walk->pieces_per_row;
                skipped = (piece % walk->pieces_per_row) * walk->piece;
            }
            start = row * walk->row + skipped;
            count = walk->row - skipped < walk->piece ? walk->row - skipped : walk->piece;
        } else {
            start = piece * walk->piece;
            row = start / walk->row;
            count = walk->total - start < walk->piece ? walk->total - start : walk->piece;
        }
        for (int k = 0; k < walk->count; k++) {
            const Source *source = &walk->sources[k];
            operands[k] = buffers[k].bytes;
            if (roads[k] == FLAT) {
                operands[k] = (char *)source->data + start * source->size;
            } else if (roads[k] == EACH_PIECE) {
                npy_intp stride = source->strides[walk->ndim - 1];
                if (!walk->pieces_per_row)
                    gather_rows(walk, source, row, count / walk->row, buffers[k].bytes);
                else if (stride == source->size)
                    operands[k] = (char *)row_start(walk, source, row) + skipped * stride;
                else
                    gather_row(buffers[k].bytes, row_start(walk, source, row) + skipped * stride, stride, source->size,
                               count);
            }
        }
        run_loop(walk, walk->result + start * walk->result_size, operands, count);
    }
}

/* All operands are contiguous and of one shape. Ranges are counted in vectors, so that none is cut. */
static void do_range(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Walk *walk = context;
    void *operands[MOST_PARAMETERS];
    begin *= LANES;
    end = end * LANES < walk->total ? end * LANES : walk->total;
    for (int k = 0; k < walk->count; k++)
        operands[k] = (char *)walk->sources[k].data + begin * walk->sources[k].size;
    run_loop(walk, walk->result + begin * walk->result_size, operands, end - begin);
}

static void run_walk(Walk *walk, ptrdiff_t share)
{
    int flat = 1;
    for (int k = 0; flat && k < walk->count; k++)
        flat = is_flat(walk, &walk->sources[k]);
    ptrdiff_t items = (walk->total + LANES - 1) / LANES, smallest = share / LANES;
    if (!flat) {
        walk->row = walk->shape[walk->ndim - 1];
        if (walk->row >= SHORT_ROW) {
            walk->piece = PIECE;
            walk->pieces_per_row = (walk->row + PIECE - 1) / PIECE;
            items = walk->total / walk->row * walk->pieces_per_row;
        } else {
            walk->piece = PIECE / walk->row * walk->row;
            walk->pieces_per_row = 0;
            items = (walk->total + walk->piece - 1) / walk->piece;
        }
        smallest = share / PIECE;
    }
    run_unlocked((double)walk->total, items, smallest, flat ? do_range : do_pieces, walk);
}

/* Broadcast shapes together; 0 where they do not fit, which is for the reference to say. */
static int broadcast(Call *call, npy_intp *shape)
{
    int ndim = PyArray_NDIM(call->lead);
    for (int i = 0; i < ndim; i++)
        shape[i] = 1;
    for (int k = 0; k < call->count; k++) {
        PyArrayObject *array = (PyArrayObject *)call->operands[k];
        if (!array)
            continue;
        int skipped = ndim - PyArray_NDIM(array);
        for (int i = skipped; i < ndim; i++) {
            npy_intp size = PyArray_DIM(array, i - skipped);
            if (size == shape[i] || size == 1)
                continue;
            if (shape[i] != 1)
                return 0;
            shape[i] = size;
        }
    }
    return 1;
}

static void find_sources(const Call *call, int ndim, const npy_intp *shape, Walk *walk)
{
    for (int k = 0; k < call->count; k++) {
        Source *source = &walk->sources[k];
        PyArrayObject *array = (PyArrayObject *)call->operands[k];
        source->size = array ? (int)PyArray_ITEMSIZE(array) : call->type == NPY_FLOAT ? 4 : 8;
        source->data = array ? PyArray_BYTES(array) : (const char *)&call->constants[k];
        int skipped = ndim - (array ? PyArray_NDIM(array) : 0);
        for (int i = 0; i < ndim; i++) {
            int broadcast = i < skipped || (PyArray_DIM(array, i - skipped) == 1 && shape[i] != 1);
            source->strides[i] = broadcast ? 0 : PyArray_STRIDE(array, i - skipped);
        }
    }
}

/* Whether the first operand that can tell has the smaller steps along `first`, or equal ones along fewer elements: 1 or 0;
 * none can: -1. */
static int lies_inside(const Walk *walk, const npy_intp *shape, int first, int second)
{
    for (int k = 0; k < walk->count; k++) {
        npy_intp a = walk->sources[k].strides[first], b = walk->sources[k].strides[second];
        a = a < 0 ? -a : a;
        b = b < 0 ? -b : b;
        if (a && b && (a != b || shape[first] < shape[second]))
            return b >= a;
    }
    return -1;
}

/* The dimensions from outside in, as PyTorch orders them: by the first operand's strides where they tell, then by the
 * next one's, and as they are where all tie. (NumPy leaves them as they are where operands disagree.)
 * From the last one on, each changes places with those further inside in which it has the smaller steps. */
static void order_dimensions(const Walk *walk, int ndim, const npy_intp *shape, int *order)
{
    for (int i = ndim - 1; i >= 0; i--) {
        int place = i;
        order[i] = i;
        for (int j = i + 1; j < ndim; j++) {
            int inside = lies_inside(walk, shape, i, order[j]);
            if (inside == 0)
                break;
            if (inside > 0) {
                order[place] = order[j];
                order[j] = i;
                place = j;
            }
        }
    }
}

/* The strides of a new array whose dimensions lie in an order. */
static void strides_in_order(int ndim, const npy_intp *shape, const int *order, npy_intp size, npy_intp *strides)
{
    for (int i = ndim - 1; i >= 0; i--) {
        strides[order[i]] = size;
        size *= shape[order[i]] ? shape[order[i]] : 1;
    }
}

PyObject *in_operands_order(PyObject *result, PyObject *const *arguments, Py_ssize_t count)
{
    PyArrayObject *made = (PyArrayObject *)result;
    if (!PyArray_CheckExact(result) || PyArray_NDIM(made) < 2 || PyArray_NDIM(made) > MOST_DIMS)
        return result;
    int ndim = PyArray_NDIM(made), mixed = 0, order[MOST_DIMS];
    npy_intp *shape = PyArray_DIMS(made), strides[MOST_DIMS];
    Walk walk = {.count = 0};
    for (Py_ssize_t k = 0; k < count && walk.count < MOST_PARAMETERS; k++) {
        PyArrayObject *array = (PyArrayObject *)arguments[k];
        if (!PyArray_CheckExact(arguments[k]) || PyArray_NDIM(array) > ndim)
            continue;
        int skipped = ndim - PyArray_NDIM(array);
        mixed |= !PyArray_IS_C_CONTIGUOUS(array);
        for (int i = 0; i < ndim; i++)
            walk.sources[walk.count].strides[i] =
                i < skipped || PyArray_DIM(array, i - skipped) != shape[i] ? 0 : PyArray_STRIDE(array, i - skipped);
        walk.count++;
    }
    if (!mixed)
        return result;
    order_dimensions(&walk, ndim, shape, order);
    strides_in_order(ndim, shape, order, PyArray_ITEMSIZE(made), strides);
    int equal = 1;
    for (int i = 0; equal && i < ndim; i++)
        equal = shape[i] < 2 || strides[i] == PyArray_STRIDE(made, i);
    if (equal)
        return result;
    PyArray_Descr *dtype = PyArray_DESCR(made);
    Py_INCREF(dtype);
    PyObject *moved = PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, shape, strides, NULL, 0, NULL);
    if (moved && PyArray_CopyInto((PyArrayObject *)moved, made))
        Py_CLEAR(moved);
    Py_DECREF(result);
    return moved;
}

/* Put the dimensions in order, joining neighbours that all sources step through as one. */
static void join_dimensions(Walk *walk, int ndim, const npy_intp *shape, const int *order)
{
    npy_intp strides[MOST_PARAMETERS][MOST_DIMS];
    for (int k = 0; k < walk->count; k++)
        memcpy(strides[k], walk->sources[k].strides, sizeof strides[k]);
    int kept = 0;
    for (int i = 0; i < ndim; i++) {
        npy_intp size = shape[order[i]];
        if (size == 1)
            continue;
        int joined = kept > 0;
        for (int k = 0; joined && k < walk->count; k++)
            joined = walk->sources[k].strides[kept - 1] == strides[k][order[i]] * size;
        kept += !joined;
        walk->shape[kept - 1] = joined ? walk->shape[kept - 1] * size : size;
        for (int k = 0; k < walk->count; k++)
            walk->sources[k].strides[kept - 1] = strides[k][order[i]];
    }
    if (!kept) {
        kept = 1;
        walk->shape[0] = 1;
        for (int k = 0; k < walk->count; k++)
            walk->sources[k].strides[0] = walk->sources[k].size;
    }
    walk->ndim = kept;
}

/* Whether the first operand may be overwritten and has the result's shape and layout. */
static int takes_result(const Call *call, int ndim, const npy_intp *shape, const npy_intp *strides)
{
    PyArrayObject *array = (PyArrayObject *)call->operands[0];
    if (!call->owned || !array || PyArray_NDIM(array) != ndim || !PyArray_ISWRITEABLE(array))
        return 0;
    for (int i = 0; i < ndim; i++)
        if (PyArray_DIM(array, i) != shape[i] || (shape[i] != 1 && PyArray_STRIDE(array, i) != strides[i]))
            return 0;
    return 1;
}

/* Where the result is written: over a gradient that is dead, or into a new array, laid out in the order given. */
static PyObject *result_of(const Call *call, int ndim, const npy_intp *shape, const int *order)
{
    npy_intp strides[MOST_DIMS];
    strides_in_order(ndim, shape, order, call->type == NPY_FLOAT ? 4 : 8, strides);
    if (takes_result(call, ndim, shape, strides))
        return Py_NewRef(call->operands[0]);
    int type = call->type;
    return PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(type), ndim, shape, strides, NULL, 0, NULL);
}

/* Operands of several shapes or orders. */
static PyObject *run_broadcast(Call *call, const Variant *variant)
{
    int ndim = PyArray_NDIM(call->lead), order[MOST_DIMS];
    npy_intp shape[MOST_DIMS];
    if (ndim > MOST_DIMS || !broadcast(call, shape))
        return DECLINE;
    Walk walk = {.numbers = call->given.numbers, .count = call->count};
    find_sources(call, ndim, shape, &walk);
    if (call->kernel->row_major)
        for (int i = 0; i < ndim; i++)
            order[i] = i;
    else
        order_dimensions(&walk, ndim, shape, order);
    walk.loop = call->type == NPY_FLOAT ? variant->of_float : variant->of_double;
    walk.result_size = call->type == NPY_FLOAT ? 4 : 8;
    PyObject *result = result_of(call, ndim, shape, order);
    if (!result)
        return NULL;
    walk.result = PyArray_BYTES((PyArrayObject *)result);
    walk.total = PyArray_SIZE((PyArrayObject *)result);
    if (walk.total) {
        join_dimensions(&walk, ndim, shape, order);
        run_walk(&walk, variant->share);
    }
    return result;
}

/* Copy a few elements; a call of memcpy would take as long as the rest of a small kernel. */
INLINE void copy_few(void *restrict target, const void *restrict source, size_t bytes)
{
    char *restrict to = target;
    const char *restrict from = source;
    for (; bytes >= 8; bytes -= 8, to += 8, from += 8)
        memcpy(to, from, 8);
    if (bytes >= 4) {
        memcpy(to, from, 4);
        bytes -= 4, to += 4, from += 4;
    }
    while (bytes--)
        *to++ = *from++;
}

/* The common case, few elements in operands of one shape or of one element: no walk is made, and the loop runs over
 * copies filled up to whole vectors. NULL where it is not so. */
static PyObject *run_small(Call *call, const Variant *variant, npy_intp total)
{
    double buffers[MOST_PARAMETERS][SMALL], last[SMALL];
    void *operands[MOST_PARAMETERS];
    size_t count = (size_t)total, filled = WHOLE(count + LANES - 1);
    int size = call->type == NPY_FLOAT ? 4 : 8;
    for (int k = 0; k < call->count; k++) {
        PyArrayObject *array = (PyArrayObject *)call->operands[k];
        operands[k] = buffers[k];
        if (!array) {
            repeat((char *)buffers[k], (const char *)&call->constants[k], size, (npy_intp)filled);
        } else if (array == call->lead || same_shape((PyObject *)array, (PyObject *)call->lead)) {
            if (!PyArray_IS_C_CONTIGUOUS(array))
                return NULL;
            if (filled == count) {
                operands[k] = PyArray_DATA(array);
                continue;
            }
            size_t item = (size_t)PyArray_ITEMSIZE(array);
            memset((char *)buffers[k] + (filled - LANES) * item, 0, LANES * item);
            copy_few(buffers[k], PyArray_DATA(array), count * item);
        } else if (PyArray_SIZE(array) == 1) { /* of no more dimensions than the lead */
            repeat((char *)buffers[k], PyArray_BYTES(array), (int)PyArray_ITEMSIZE(array), (npy_intp)filled);
        } else {
            return NULL;
        }
    }
    PyObject *result = call->lead ? new_array(PyArray_NDIM(call->lead), PyArray_DIMS(call->lead), call->type)
                                  : new_array(0, NULL, call->type);
    if (result && count) {
        ElementwiseLoop loop = call->type == NPY_FLOAT ? variant->of_float : variant->of_double;
        void *data = PyArray_DATA((PyArrayObject *)result);
        loop(filled == count ? data : last, operands, call->given.numbers, filled);
        if (filled != count)
            copy_few(data, last, count * (size_t)size);
    }
    return result;
}

/* Read the arguments and choose a variant; NULL for none. */
static const Variant *begin_call(Call *call, const Elementwise *kernel, PyObject *const *arguments,
                                 Py_ssize_t positional, PyObject *keywords)
{
    call->kernel = kernel;
    call->given.absent = 0;
    call->count = 0;
    call->type = -1;
    call->lead = NULL;
    call->owned = 0;
    if (!take_arguments(call, arguments, positional, keywords))
        return NULL;
    int chosen = kernel->choose ? kernel->choose(&call->given) : 0;
    if (chosen < 0 || (call->type == NPY_DOUBLE && !kernel->variants[chosen].of_double))
        return NULL;
    for (int k = 0; k < call->count; k++)
        if (!call->operands[k])
            store((char *)&call->constants[k], call->constants[k], call->type);
    return &kernel->variants[chosen];
}

#include "elementwise_halves.h"

static int has_16_bits(const Call *call) { return call->type != NPY_FLOAT && call->type != NPY_DOUBLE; }

PyObject *run_elementwise(const Elementwise *kernel, PyObject *const *arguments, Py_ssize_t positional,
                          PyObject *keywords)
{
    Call call;
    const Variant *variant = begin_call(&call, kernel, arguments, positional, keywords);
    if (!variant)
        return DECLINE;
    if (UNLIKELY(has_16_bits(&call)))
        return kernel->declines_halves ? DECLINE : run_halves(&call, variant);
    npy_intp total = call.lead ? PyArray_SIZE(call.lead) : 1; /* NumPy's scalars alone make a 0-dim array */
    if (total <= SMALL) {
        PyObject *result = run_small(&call, variant, total);
        if (result || PyErr_Occurred())
            return result;
    }
    call.owned &= !variant->twice;
    return run_broadcast(&call, variant);
}

/* Whether an operand can be read while its neighbours' results are written: it is the target, or lies apart from it. */
static int is_readable_beside(PyArrayObject *array, PyArrayObject *target)
{
    const char *data = PyArray_BYTES(array), *written = PyArray_BYTES(target);
    return (data == written && PyArray_NBYTES(array) == PyArray_NBYTES(target)) ||
           data + PyArray_NBYTES(array) <= written || written + PyArray_NBYTES(target) <= data;
}

/* Describe the operands of a result in the memory of `target`; 0 unless each is contiguous there or one element. */
static int find_flat_sources(const Call *call, PyArrayObject *target, Walk *walk)
{
    int size = call->type == NPY_FLOAT ? 4 : 8;
    for (int k = 0; k < call->count; k++) {
        PyArrayObject *array = (PyArrayObject *)call->operands[k];
        Source *source = &walk->sources[k];
        source->size = array ? (int)PyArray_ITEMSIZE(array) : size;
        source->data = array ? PyArray_BYTES(array) : (const char *)&call->constants[k];
        source->strides[0] = walk->total == 1 ? source->size : 0;
        if (!array || array == target) {
            source->strides[0] = array ? source->size : source->strides[0];
            continue;
        }
        if (!is_readable_beside(array, target))
            return 0;
        if (same_shape((PyObject *)array, (PyObject *)target) && PyArray_IS_C_CONTIGUOUS(array))
            source->strides[0] = source->size;
        else if (PyArray_SIZE(array) != 1 || PyArray_NDIM(array) > PyArray_NDIM(target))
            return 0;
    }
    return 1;
}

/* Whether a loop must not write over its operands: it goes over them twice, or a further one is the target too. */
static int needs_room(const Walk *walk, const Variant *variant)
{
    int needs = variant->twice;
    for (int k = 1; k < walk->count; k++)
        needs |= walk->sources[k].data == walk->result;
    return needs;
}

/* With `piece` set, pieces are computed beside the target and then copied. */
static void overwrite_pieces(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Walk *walk = context;
    Buffer result, repeated[MOST_PARAMETERS];
    void *operands[MOST_PARAMETERS];
    npy_intp most = walk->total < PIECE ? walk->total : PIECE;
    npy_intp stop = end * PIECE < walk->total ? end * PIECE : walk->total, length = walk->piece ? PIECE : stop;
    for (int k = 0; k < walk->count; k++)
        if (!walk->sources[k].strides[0]) {
            repeat(repeated[k].bytes, walk->sources[k].data, walk->sources[k].size, most);
            length = PIECE;
        }
    for (npy_intp start = begin * PIECE; start < stop; start += length) {
        npy_intp count = stop - start < length ? stop - start : length;
        for (int k = 0; k < walk->count; k++)
            operands[k] = walk->sources[k].strides[0] ? (char *)walk->sources[k].data + start * walk->sources[k].size
                                                      : repeated[k].bytes;
        char *target = walk->result + start * walk->result_size;
        run_loop(walk, walk->piece ? result.bytes : target, operands, count);
        if (walk->piece)
            memcpy(target, result.bytes, (size_t)(count * walk->result_size));
    }
}

PyObject *overwrite_elementwise(const Elementwise *kernel, PyObject *const *arguments, Py_ssize_t positional,
                                PyObject *keywords)
{
    if (positional < 1 || !PyArray_CheckExact(arguments[0]))
        return DECLINE;
    PyArrayObject *target = (PyArrayObject *)arguments[0];
    Call call;
    if (!PyArray_ISCARRAY(target))
        return DECLINE;
    const Variant *variant = begin_call(&call, kernel, arguments, positional, keywords);
    if (!variant)
        return DECLINE;
    Walk walk = {.numbers = call.given.numbers, .count = call.count, .ndim = 1};
    walk.total = walk.shape[0] = PyArray_SIZE(target);
    if (call.type != type_of(arguments[0]) || has_16_bits(&call) || !find_flat_sources(&call, target, &walk))
        return DECLINE;
    walk.loop = call.type == NPY_FLOAT ? variant->of_float : variant->of_double;
    walk.result_size = call.type == NPY_FLOAT ? 4 : 8;
    walk.result = PyArray_BYTES(target);
    walk.piece = needs_room(&walk, variant);
    ptrdiff_t pieces = (walk.total + PIECE - 1) / PIECE;
    run_unlocked((double)walk.total, pieces, variant->share / PIECE, overwrite_pieces, &walk);
    Py_RETURN_TRUE;
}
