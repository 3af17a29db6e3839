/* The driver of elementwise kernels. See Note [Elementwise calls].
 *
 * Note [Elementwise calls]
 * A loop sees contiguous memory only. Operands of one shape, row-major, are handed to it as they are. Otherwise the
 * result, laid out as PyTorch would (the first operand's order of dimensions), is cut into pieces of at most PIECE elements:
 * parts of one row where rows are long, several whole rows where they are short. For each piece, operands that are not
 * contiguous there are gathered into a buffer that stays in the first cache; what is the same in every piece (a number,
 * a 0-dim array, a row that is repeated) is gathered once. Pieces are what threads share.
 *
 * Pieces of 16-bit floats are widened to float32, go through the float32 loop, and are rounded once: as PyTorch computes
 * them. Python's numbers are float32, but for the kernels for which PyTorch rounds them to 16 bits first.
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
    int size, loop_size;         /* of an element, in bytes, and of one that the loop sees */
    FloatKind kind;              /* of the 16 bits that are widened; else NO_FLOAT */
} Source;

typedef struct {
    const Elementwise *kernel;
    Arguments given;
    PyObject *operands[MOST_PARAMETERS]; /* by operand; NULL for a number or None */
    double constants[MOST_PARAMETERS];   /* the numbers among the operands, stored in the float type */
    int count;                           /* of operands */
    int type;                            /* NPY_FLOAT, NPY_DOUBLE or that of 16 bits; -1 while unknown */
    FloatKind kind;                      /* of 16 bits; else NO_FLOAT */
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
    FloatKind kind; /* of a result of 16 bits; else NO_FLOAT */
    int room;       /* whether pieces are computed beside the result, and copied */
    int ndim;
    npy_intp shape[MOST_DIMS];
    npy_intp total, row, piece, pieces_per_row; /* pieces_per_row is 0 where a piece has several rows */
} Walk;

typedef union {
    double align;
    char bytes[PIECE * sizeof(double)];
} Buffer;

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
        FloatKind kind = float_kind(PyArray_DESCR(array));
        if (call->type >= 0 || kind == NO_FLOAT)
            return 0;
        call->type = type;
        call->kind = kind >= HALF ? kind : NO_FLOAT;
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

static int take_argument(Call *call, ParameterKind kind, int index, PyObject *object)
{
    switch (kind) {
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
        return take_operand(call, kind, index, object);
    }
}

static void store(char *target, double value, int type)
{
    if (type == NPY_DOUBLE)
        *(double *)(void *)target = value;
    else
        *(float *)(void *)target = (float)value; /* in which floats of 16 bits are computed, too */
}

/* Fill a buffer, which is aligned, with one element, or gather elements that lie `stride` apart. */
#define FOR_SIZE(size, DO)                                                                                            \
    if (size == 4)                                                                                                    \
        DO(float)                                                                                                     \
    else if (size == 8)                                                                                               \
        DO(double)                                                                                                    \
    else if (size == 2)                                                                                               \
        DO(uint16_t)                                                                                                  \
    else                                                                                                              \
        DO(char)
#define REPEAT(type)                                                                                                  \
    {                                                                                                                 \
        type value = *(const type *)(const void *)element, *restrict target = (type *)(void *)buffer;                 \
        for (npy_intp i = 0; i < count; i++)                                                                          \
            target[i] = value;                                                                                        \
    }
#define GATHER(type)                                                                                                  \
    {                                                                                                                 \
        type *restrict target = (type *)(void *)buffer;                                                               \
        for (npy_intp i = 0; i < count; i++)                                                                          \
            target[i] = *(const type *)(const void *)(data + i * stride);                                             \
    }

MULTIVERSIONED static void repeat(char *restrict buffer, const char *restrict element, int size, npy_intp count)
{
    FOR_SIZE(size, REPEAT)
}

MULTIVERSIONED static void gather_row(char *restrict buffer, const char *data, npy_intp stride, int size, npy_intp count)
{
    if (stride == size)
        memcpy(buffer, data, (size_t)(count * size));
    else if (stride == 0)
        repeat(buffer, data, size, count);
    else
        FOR_SIZE(size, GATHER)
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
        if (data < result + count * walk->result_size && result < data + count * walk->sources[k].loop_size)
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
            ends[k] = (char *)operands[k] + (count - LANES) * walk->sources[k].loop_size;
        walk->loop(result + (count - LANES) * walk->result_size, ends, walk->numbers, LANES);
        return;
    }
    double filled[MOST_PARAMETERS][LANES], last[LANES];
    for (int k = 0; k < walk->count; k++) {
        int size = walk->sources[k].loop_size;
        memset(filled[k], 0, (size_t)(LANES * size));
        memcpy(filled[k], (char *)operands[k] + whole * size, (size_t)(rest * size));
        ends[k] = filled[k];
    }
    walk->loop(last, ends, walk->numbers, LANES);
    memcpy(result + whole * walk->result_size, last, (size_t)(rest * walk->result_size));
}

typedef enum { FLAT, ONCE, EACH_PIECE } Road;

/* Where elements are gathered: in the buffer, or behind what they are widened to. */
INLINE char *room_for(const Source *source, Buffer *buffer)
{
    return buffer->bytes + (source->kind ? PIECE * sizeof(float) : 0);
}

/* Contiguous elements as the loop sees them. */
INLINE void *widened(const Source *source, const char *data, npy_intp count, Buffer *buffer)
{
    if (LIKELY(!source->kind))
        return (void *)data;
    widen_floats(source->kind, data, (float *)(void *)buffer->bytes, count);
    return buffer->bytes;
}

static void do_pieces(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Walk *walk = context;
    Buffer buffers[MOST_PARAMETERS], made;
    Road roads[MOST_PARAMETERS];
    void *operands[MOST_PARAMETERS];
    npy_intp most = walk->piece < walk->total ? walk->piece : walk->total;
    for (int k = 0; k < walk->count; k++) {
        const Source *source = &walk->sources[k];
        char *room = room_for(source, &buffers[k]);
        roads[k] = EACH_PIECE;
        if (is_flat(walk, source)) {
            roads[k] = FLAT;
        } else if (repeats_rows(walk, source)) {
            if (source->strides[walk->ndim - 1] == 0) {
                repeat(room, source->data, source->size, most);
                roads[k] = ONCE;
            } else if (!walk->pieces_per_row) {
                gather_rows(walk, source, 0, most / walk->row, room);
                roads[k] = ONCE;
            }
        }
        if (roads[k] == ONCE)
            operands[k] = widened(source, room, most, &buffers[k]);
    }
    for (ptrdiff_t piece = begin; piece < end; piece++) {
        npy_intp row, skipped = 0, start, count;
        if (walk->pieces_per_row) {
            row = walk->ndim > 1 ? piece : 0;
            if (walk->ndim == 1) {
                skipped = piece * walk->piece;
            } else if (walk->pieces_per_row > 1) {
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
            if (roads[k] == FLAT) {
                operands[k] = widened(source, source->data + start * source->size, count, &buffers[k]);
            } else if (roads[k] == EACH_PIECE) {
                npy_intp stride = source->strides[walk->ndim - 1];
                char *data = room_for(source, &buffers[k]);
                if (!walk->pieces_per_row)
                    gather_rows(walk, source, row, count / walk->row, data);
                else if (stride == source->size)
                    data = (char *)row_start(walk, source, row) + skipped * stride;
                else
                    gather_row(data, row_start(walk, source, row) + skipped * stride, stride, source->size, count);
                operands[k] = widened(source, data, count, &buffers[k]);
            }
        }
        if (LIKELY(!walk->room)) {
            run_loop(walk, walk->result + start * walk->result_size, operands, count);
            continue;
        }
        run_loop(walk, made.bytes, operands, count);
        if (walk->kind)
            narrow_floats(walk->kind, (const float *)(const void *)made.bytes, walk->result + start * 2, count);
        else
            memcpy(walk->result + start * walk->result_size, made.bytes, (size_t)(count * walk->result_size));
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
    int flat = !walk->room;
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

INLINE Source *describe_source(const Call *call, int k, Walk *walk)
{
    PyArrayObject *array = (PyArrayObject *)call->operands[k];
    Source *source = &walk->sources[k];
    source->size = source->loop_size = array ? (int)PyArray_ITEMSIZE(array) : walk->result_size;
    source->data = array ? PyArray_BYTES(array) : (const char *)&call->constants[k];
    source->kind = NO_FLOAT;
    if (UNLIKELY(call->kind) && array && type_of((PyObject *)array) == call->type) {
        source->kind = call->kind;
        source->loop_size = 4;
    }
    return source;
}

/* Operands that are one number, or lie row-major in the result's shape, as of one dimension; 0 where some are otherwise. */
static int find_flat_sources(const Call *call, int ndim, const npy_intp *shape, Walk *walk)
{
    npy_intp total = PyArray_MultiplyList(shape, ndim);
    walk->ndim = 1;
    walk->shape[0] = total;
    for (int k = 0; k < call->count; k++) {
        PyArrayObject *array = (PyArrayObject *)call->operands[k];
        Source *source = describe_source(call, k, walk);
        npy_intp size = array ? PyArray_SIZE(array) : 1;
        source->strides[0] = size == total ? source->size : 0;
        if (size != 1 && (size != total || PyArray_NDIM(array) != ndim || !PyArray_IS_C_CONTIGUOUS(array)))
            return 0;
    }
    return 1;
}

static void find_sources(const Call *call, int ndim, const npy_intp *shape, Walk *walk)
{
    for (int k = 0; k < call->count; k++) {
        PyArrayObject *array = (PyArrayObject *)call->operands[k];
        Source *source = describe_source(call, k, walk);
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
        for (int i = 0; i < ndim; i++)
            strides[k][i] = walk->sources[k].strides[i];
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
    strides_in_order(ndim, shape, order, call->kind ? 2 : call->type == NPY_FLOAT ? 4 : 8, strides);
    if (takes_result(call, ndim, shape, strides))
        return Py_NewRef(call->operands[0]);
    int type = call->type;
    return PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(type), ndim, shape, strides, NULL, 0, NULL);
}

/* Walk over the operands to where the result lies, or to new memory; NULL with an exception where there is none. */
static PyObject *run_walk_to(PyObject *target, const Call *call, const Variant *variant, int ndim, const npy_intp *shape,
                             int needs_room)
{
    Walk walk;
    int order[MOST_DIMS];
    walk.numbers = call->given.numbers;
    walk.count = call->count;
    walk.kind = call->kind;
    walk.room = needs_room || call->kind;
    walk.loop = call->type == NPY_DOUBLE ? variant->of_double : variant->of_float;
    walk.result_size = call->type == NPY_DOUBLE ? 8 : 4;
    int flat = find_flat_sources(call, ndim, shape, &walk);
    if (!flat)
        find_sources(call, ndim, shape, &walk);
    if (flat || target || call->kernel->row_major)
        for (int i = 0; i < ndim; i++)
            order[i] = i;
    else
        order_dimensions(&walk, ndim, shape, order);
    PyObject *result = target ? Py_NewRef(target) : result_of(call, ndim, shape, order);
    if (!result)
        return NULL;
    walk.result = PyArray_BYTES((PyArrayObject *)result);
    walk.total = PyArray_SIZE((PyArrayObject *)result);
    if (walk.total) {
        if (!flat)
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

static double rounded_number(FloatKind kind, double value)
{
    float wide = (float)value;
    uint16_t narrow;
    narrow_floats(kind, &wide, &narrow, 1);
    widen_floats(kind, &narrow, &wide, 1);
    return wide;
}

static int is_beyond(FloatKind kind, double value)
{
    return isfinite(value) && isinf(rounded_number(kind, value));
}

/* To 16 bits, where PyTorch does so first; 0 where no array among the operands says that there are such, or where these
   cannot hold a number. */
static int round_numbers(Call *call)
{
    for (int k = 0; k < call->count; k++)
        if (!call->operands[k] && is_beyond(call->kind, call->constants[k]))
            return 0;
    for (int i = 0; i < call->kernel->count; i++)
        if (call->kernel->parameters[i] == NUMBER && is_beyond(call->kind, call->given.numbers[i]))
            return 0;
    for (int k = 0; call->kernel->rounds_numbers && k < call->count; k++)
        if (!call->operands[k])
            call->constants[k] = rounded_number(call->kind, call->constants[k]);
    for (int i = 0; call->kernel->rounds_numbers && i < call->kernel->count; i++)
        if (call->kernel->parameters[i] == NUMBER)
            call->given.numbers[i] = rounded_number(call->kind, call->given.numbers[i]);
    return call->lead != NULL;
}

/* Read the arguments and choose a variant; NULL for none. */
static const Variant *begin_call(Call *call, const Elementwise *kernel, PyObject *const *slots)
{
    call->kernel = kernel;
    call->given.absent = 0;
    call->count = 0;
    call->type = -1;
    call->kind = NO_FLOAT;
    call->lead = NULL;
    call->owned = 0;
    for (int i = 0; i < kernel->count; i++)
        if (!take_argument(call, kernel->parameters[i], i, slots[i]))
            return NULL;
    if (call->type < 0)
        return NULL;
    int chosen = kernel->choose ? kernel->choose(&call->given) : 0;
    if (chosen < 0 || (call->type == NPY_DOUBLE && !kernel->variants[chosen].of_double))
        return NULL;
    if (UNLIKELY(call->kind) && (kernel->declines_halves || !round_numbers(call)))
        return NULL;
    for (int k = 0; k < call->count; k++)
        if (!call->operands[k])
            store((char *)&call->constants[k], call->constants[k], call->type);
    return &kernel->variants[chosen];
}

PyObject *run_elementwise(const Elementwise *kernel, PyObject *const *slots)
{
    Call call;
    const Variant *variant = begin_call(&call, kernel, slots);
    if (!variant)
        return DECLINE;
    npy_intp total = call.lead ? PyArray_SIZE(call.lead) : 1; /* NumPy's scalars alone make a 0-dim array */
    if (total <= SMALL && !call.kind) {
        PyObject *result = run_small(&call, variant, total);
        if (result || PyErr_Occurred())
            return result;
    }
    call.owned &= !variant->twice;
    npy_intp shape[MOST_DIMS];
    if (PyArray_NDIM(call.lead) > MOST_DIMS || !broadcast(&call, shape))
        return DECLINE;
    return run_walk_to(NULL, &call, variant, PyArray_NDIM(call.lead), shape, 0);
}

/* Whether an operand can be read while its neighbours' results are written: it is the target, or lies apart from it. */
static int is_readable_beside(PyArrayObject *array, PyArrayObject *target)
{
    const char *data = PyArray_BYTES(array), *written = PyArray_BYTES(target);
    if (!PyArray_IS_C_CONTIGUOUS(array))
        return 0;
    return (data == written && same_shape((PyObject *)array, (PyObject *)target)) ||
           data + PyArray_NBYTES(array) <= written || written + PyArray_NBYTES(target) <= data;
}

PyObject *overwrite_elementwise(const Elementwise *kernel, PyObject *const *slots)
{
    if (!PyArray_CheckExact(slots[0]))
        return DECLINE;
    PyArrayObject *target = (PyArrayObject *)slots[0];
    int ndim = PyArray_NDIM(target);
    npy_intp shape[MOST_DIMS];
    Call call;
    if (!PyArray_ISCARRAY(target) || ndim > MOST_DIMS)
        return DECLINE;
    const Variant *variant = begin_call(&call, kernel, slots);
    if (!variant || call.type != type_of(slots[0]) || PyArray_NDIM(call.lead) != ndim || !broadcast(&call, shape))
        return DECLINE;
    for (int i = 0; i < ndim; i++)
        if (shape[i] != PyArray_DIM(target, i))
            return DECLINE;
    int needs_room = variant->twice; /* as where a further operand is the target too */
    for (int k = 0; k < call.count; k++) {
        if (call.operands[k] && call.operands[k] != slots[0] && !is_readable_beside(ARRAY(call.operands[k]), target))
            return DECLINE;
        needs_room |= k && call.operands[k] && PyArray_BYTES(ARRAY(call.operands[k])) == PyArray_BYTES(target);
    }
    Py_XDECREF(run_walk_to(slots[0], &call, variant, ndim, shape, needs_room));
    Py_RETURN_TRUE;
}
