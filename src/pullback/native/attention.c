/* Scaled dot-product attention: the kernels of kernels/attention.py.
 *
 * A thread takes a head at a time, and of its queries BLOCK_ROWS at a time: their scores stay in the cache. With a causal
 * mask they are taken in groups of CAUSAL_ROWS, which do not touch the keys after the last of their queries.
 */
#include "products.h"
#include "rows.h"

#include <math.h>

#include "functions.h"

#if defined(__GNUC__)

#define BLOCK_ROWS 64
#define CAUSAL_ROWS 16
#define FEW_ROWS 16 /* below so many queries, copies of keys and values take longer than what they save */
#define LINE 64     /* bytes of a line of the caches */

typedef struct {
    char *data;
    ptrdiff_t rows, columns, step; /* the scores of `rows` queries against `columns` keys, whose rows are `step` apart */
    ptrdiff_t first_row;
    double scale;
    int is_causal, mask_is_bool;
    const char *mask; /* of the first row; NULL for none. Steps are in bytes. */
    ptrdiff_t mask_row_step, mask_step;
} Scores;

#define LOOPS "attention_loops.h"
#include "for_each_real.h"

/* An array of shape (N, H, rows, columns) whose rows lie together; steps count elements. */
typedef struct {
    char *data;
    ptrdiff_t batch_step, head_step, row_step, columns;
} Heads;

typedef struct {
    Heads query, key, value, result, grad, to_query, to_key, to_value;
    char *normalizer; /* (N, H, L) */
    ptrdiff_t heads, length, keys;
    const char *mask;
    ptrdiff_t mask_steps[4];
    int is_causal, mask_is_bool, type, failed;
    double scale;
} Attention;

static size_t item_of(const Attention *a) { return a->type == NPY_DOUBLE ? sizeof(double) : sizeof(float); }

static int reads_heads(PyObject *array, int type)
{
    return is_real_array_of(array, type) && NDIM(array) == 4 && size_of(array) > 0 &&
           (STEP(array, 3) == 1 || DIM(array, 3) == 1);
}

static Heads heads_of(PyObject *array)
{
    return (Heads){DATA(array), STEP(array, 0), STEP(array, 1), STEP(array, 2), DIM(array, 3)};
}

/* The rows from `row` on of one head. */
static Matrix rows_of_head(const Attention *a, const Heads *h, ptrdiff_t number, ptrdiff_t row, ptrdiff_t rows)
{
    ptrdiff_t place = number / a->heads * h->batch_step + number % a->heads * h->head_step + row * h->row_step;
    return (Matrix){h->data + place * item_of(a), rows, h->columns, h->row_step, 1};
}

/* One head. Its rows are copied where there are many: among those of other heads they would meet in few places of the
 * first-level cache. Transposes are there so that products read keys and values in the order of memory. */
typedef struct {
    Matrix query, key, value, grad, key_columns, value_columns;
    char *scores, *slopes; /* of a block of queries; what lies after the last key is there to be written over */
    ptrdiff_t step;
    char *copies; /* NULL where there are none */
    char *memory;
} Head;

/* How many elements rows of `columns` are apart that do not meet in the cache: an odd number of lines. */
static ptrdiff_t apart(ptrdiff_t columns, size_t item)
{
    ptrdiff_t lines = (columns * item + LINE - 1) / LINE;
    return (lines | 1) * (LINE / item);
}

static int make_head(const Attention *a, int with_gradients, Head *h)
{
    size_t item = item_of(a);
    ptrdiff_t columns = a->query.columns > a->value.columns ? a->query.columns : a->value.columns;
    ptrdiff_t longest = a->length > a->keys ? a->length : a->keys;
    h->step = apart(a->keys + LINE, item);
    size_t block = BLOCK_ROWS * h->step * item, copy = longest * apart(columns, item) * item, turned = columns * h->step * item;
    size_t copies = a->length < FEW_ROWS ? 0 : 4 * copy + 2 * turned;
    h->memory = malloc(LINE + (with_gradients ? 2 : 1) * block + copies);
    if (!h->memory)
        return 0;
    h->scores = h->memory + (LINE - (size_t)h->memory % LINE);
    h->slopes = with_gradients ? h->scores + block : NULL;
    h->copies = copies ? h->scores + (with_gradients ? 2 : 1) * block : NULL;
    return 1;
}

static Matrix copied(Matrix m, char **place, size_t item)
{
    Matrix copy = {*place, m.rows, m.columns, apart(m.columns, item), 1};
    if (item == sizeof(float))
        copy_rows_float(m.data, m.row_step, *place, copy.row_step, m.rows, m.columns);
    else
        copy_rows_double(m.data, m.row_step, *place, copy.row_step, m.rows, m.columns);
    *place += m.rows * copy.row_step * item;
    return copy;
}

static Matrix turned(Matrix m, ptrdiff_t step, char **place, size_t item)
{
    Matrix result = {*place, m.columns, m.rows, step, 1};
    transpose(&m, *place, step, item == sizeof(double));
    *place += m.columns * step * item;
    return result;
}

static Matrix rows_from(Matrix m, ptrdiff_t row, ptrdiff_t rows, size_t item)
{
    return (Matrix){m.data + row * m.row_step * item, rows, m.columns, m.row_step, m.column_step};
}

static Matrix first_columns(Matrix m, ptrdiff_t columns)
{
    m.columns = columns;
    return m;
}

static void enter_head(const Attention *a, ptrdiff_t number, Head *h)
{
    size_t item = item_of(a);
    char *place = h->copies;
    h->query = rows_of_head(a, &a->query, number, 0, a->length);
    h->key = rows_of_head(a, &a->key, number, 0, a->keys);
    h->value = rows_of_head(a, &a->value, number, 0, a->keys);
    if (h->slopes)
        h->grad = rows_of_head(a, &a->grad, number, 0, a->length);
    h->key_columns = transposed(h->key);
    h->value_columns = transposed(h->value);
    if (!place)
        return;
    h->key_columns = turned(h->key, h->step, &place, item);
    h->value = copied(h->value, &place, item);
    if (!h->slopes)
        return;
    h->value_columns = turned(h->value, h->step, &place, item);
    h->key = copied(h->key, &place, item);
    h->query = copied(h->query, &place, item);
    h->grad = copied(h->grad, &place, item);
}

static void put_product(const Attention *a, Matrix left, Matrix right, Matrix result, int adds)
{
    Product p = {left, right, adds ? result.data : NULL, result.row_step, (char *)result.data, result.row_step,
                 a->type == NPY_DOUBLE};
    multiply(&p, BY_ROWS);
}

static ptrdiff_t group_rows(const Attention *a) { return a->is_causal ? CAUSAL_ROWS : BLOCK_ROWS; }

static ptrdiff_t at_most(ptrdiff_t count, ptrdiff_t most) { return count < most ? count : most; }

/* The product of a group of queries with the keys that it may see, in `data`. */
static Scores score(const Attention *a, const Head *h, ptrdiff_t number, ptrdiff_t row, char *data)
{
    ptrdiff_t rows = at_most(a->length - row, group_rows(a));
    ptrdiff_t columns = a->is_causal ? at_most(a->keys, row + rows) : a->keys;
    Scores s = {data, rows, columns, h->step, row, a->scale, a->is_causal, a->mask_is_bool, NULL, a->mask_steps[2],
                a->mask_steps[3]};
    if (a->mask)
        s.mask = a->mask + number / a->heads * a->mask_steps[0] + number % a->heads * a->mask_steps[1] +
                 row * a->mask_steps[2];
    put_product(a, rows_from(h->query, row, rows, item_of(a)), first_columns(h->key_columns, columns),
                (Matrix){data, rows, columns, h->step, 1}, 0);
    return s;
}

static void attend(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    Attention *a = context;
    size_t item = item_of(a);
    Head h;
    double totals[BLOCK_ROWS];
    if (!make_head(a, 0, &h)) {
        a->failed = 1;
        return;
    }
    for (ptrdiff_t number = begin; number < end; number++) {
        enter_head(a, number, &h);
        for (ptrdiff_t row = 0; row < a->length; row += group_rows(a)) {
            Scores s = score(a, &h, number, row, h.scores);
            FOR_TYPE(a->type, weigh)(&s, totals, a->normalizer + (number * a->length + row) * item);
            Matrix weights = {s.data, s.rows, s.columns, s.step, 1};
            Matrix result = rows_of_head(a, &a->result, number, row, s.rows);
            put_product(a, weights, rows_from(h.value, 0, s.columns, item), result, 0);
            FOR_TYPE(a->type, divide_rows)((char *)result.data, s.rows, result.columns, result.row_step, totals);
        }
    }
    free(h.memory);
}

static void clear_head(const Attention *a, const Heads *h, ptrdiff_t number)
{
    Matrix all = rows_of_head(a, h, number, 0, a->keys);
    memset((char *)all.data, 0, a->keys * h->columns * item_of(a));
}

/* The weights of a group of queries, the gradients of its scores ("slopes") and that of the queries. */
static void go_back_to_queries(const Attention *a, const Head *h, ptrdiff_t number, ptrdiff_t row, ptrdiff_t place)
{
    size_t item = item_of(a);
    double inner[BLOCK_ROWS];
    Scores s = score(a, h, number, row, h->scores + place * h->step * item);
    Matrix slopes = {h->slopes + place * h->step * item, s.rows, s.columns, s.step, 1};
    Matrix grad = rows_from(h->grad, row, s.rows, item), output = rows_of_head(a, &a->result, number, row, s.rows);
    FOR_TYPE(a->type, dot_rows)(grad.data, grad.row_step, output.data, output.row_step, s.rows, grad.columns, inner);
    put_product(a, grad, first_columns(h->value_columns, s.columns), slopes, 0);
    FOR_TYPE(a->type, weigh_again)(&s, a->normalizer + (number * a->length + row) * item, inner, (char *)slopes.data);
    put_product(a, slopes, rows_from(h->key, 0, s.columns, item), rows_of_head(a, &a->to_query, number, row, s.rows), 0);
}

/* What a block of queries adds to the gradients of some keys and values: those of its queries that see them. */
static void add_to_keys(const Attention *a, const Head *h, ptrdiff_t number, ptrdiff_t row, ptrdiff_t rows,
                        ptrdiff_t first_key, ptrdiff_t keys)
{
    size_t item = item_of(a);
    ptrdiff_t unseen = a->is_causal && first_key > row ? first_key - row : 0, seen = rows - unseen;
    ptrdiff_t place = (unseen * h->step + first_key) * item;
    Matrix weights = {h->scores + place, seen, keys, h->step, 1}, slopes = {h->slopes + place, seen, keys, h->step, 1};
    put_product(a, transposed(weights), rows_from(h->grad, row + unseen, seen, item),
                rows_of_head(a, &a->to_value, number, first_key, keys), 1);
    put_product(a, transposed(slopes), rows_from(h->query, row + unseen, seen, item),
                rows_of_head(a, &a->to_key, number, first_key, keys), 1);
}

static void attend_back(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    Attention *a = context;
    Head h;
    if (!make_head(a, 1, &h)) {
        a->failed = 1;
        return;
    }
    for (ptrdiff_t number = begin; number < end; number++) {
        clear_head(a, &a->to_key, number);
        clear_head(a, &a->to_value, number);
        enter_head(a, number, &h);
        for (ptrdiff_t row = 0; row < a->length; row += BLOCK_ROWS) {
            ptrdiff_t rows = at_most(a->length - row, BLOCK_ROWS);
            for (ptrdiff_t place = 0; place < rows; place += group_rows(a))
                go_back_to_queries(a, &h, number, row + place, place);
            ptrdiff_t for_all = a->is_causal ? at_most(a->keys, row) : a->keys; /* keys that the whole block sees */
            ptrdiff_t visible = a->is_causal ? at_most(a->keys, row + rows) : a->keys;
            if (for_all)
                add_to_keys(a, &h, number, row, rows, 0, for_all);
            for (ptrdiff_t key = for_all; key < visible; key += CAUSAL_ROWS)
                add_to_keys(a, &h, number, row, rows, key, at_most(visible - key, CAUSAL_ROWS));
        }
    }
    free(h.memory);
}

/* A mask of truth values or of the type of the scores, of up to four dimensions that broadcast. */
static int read_mask(PyObject *mask, Attention *a, npy_intp batch)
{
    a->mask = NULL;
    if (is_none(mask))
        return 1;
    if (!PyArray_CheckExact(mask) || !PyArray_ISBEHAVED_RO((PyArrayObject *)mask) || NDIM(mask) > 4 ||
        (type_of(mask) != NPY_BOOL && type_of(mask) != a->type))
        return 0;
    const npy_intp wanted[4] = {batch, a->heads, a->length, a->keys};
    for (int i = 0; i < 4; i++) {
        int axis = i - (4 - NDIM(mask));
        npy_intp size = axis < 0 ? 1 : DIM(mask, axis);
        if (size != 1 && size != wanted[i])
            return 0;
        a->mask_steps[i] = size == 1 ? 0 : STRIDE(mask, axis);
    }
    a->mask_is_bool = type_of(mask) == NPY_BOOL;
    a->mask = DATA(mask);
    return 1;
}

/* Reads query, key, value, attn_mask, is_causal and scale; 0 where they are not served. */
static int read_attention(PyObject *const *slots, Attention *a)
{
    for (int i = 0; i < 6; i++)
        if (!slots[i])
            return 0;
    PyObject *query = slots[0], *key = slots[1], *value = slots[2];
    if (!is_real_array(query))
        return 0;
    a->type = type_of(query);
    a->failed = 0;
    if (!reads_heads(query, a->type) || !reads_heads(key, a->type) || !reads_heads(value, a->type))
        return 0;
    for (int i = 0; i < 2; i++)
        if (DIM(key, i) != DIM(query, i) || DIM(value, i) != DIM(query, i))
            return 0;
    a->heads = DIM(query, 1);
    a->length = DIM(query, 2);
    a->keys = DIM(key, 2);
    a->query = heads_of(query);
    a->key = heads_of(key);
    a->value = heads_of(value);
    return DIM(value, 2) == a->keys && DIM(key, 3) == DIM(query, 3) && read_mask(slots[3], a, DIM(query, 0)) &&
           read_flag(slots[4], 0, &a->is_causal) && read_number(slots[5], &a->scale);
}

static PyObject *new_heads(PyObject *like, npy_intp columns, Heads *heads)
{
    npy_intp shape[] = {DIM(like, 0), DIM(like, 1), DIM(like, 2), columns};
    PyObject *made = new_array(4, shape, type_of(like));
    if (made)
        *heads = heads_of(made);
    return made;
}

/* Where queries are (N, L, H, E) or (L, N, H, E) seen as (N, H, L, E), so is the output. */
static PyObject *new_output(PyObject *query, npy_intp columns, Heads *heads)
{
    npy_intp *steps = STRIDES(query);
    if (steps[1] >= steps[2])
        return new_heads(query, columns, heads);
    int rows_first = steps[0] < steps[2];
    npy_intp shape[] = {DIM(query, rows_first ? 2 : 0), DIM(query, rows_first ? 0 : 2), DIM(query, 1), columns};
    npy_intp seen[] = {rows_first, 2, !rows_first, 3};
    PyArray_Dims order = {seen, 4};
    PyObject *base = new_array(4, shape, type_of(query));
    PyObject *made = base ? PyArray_Transpose((PyArrayObject *)base, &order) : NULL;
    Py_XDECREF(base);
    if (made)
        *heads = heads_of(made);
    return made;
}

static int run_heads(Attention *a, npy_intp batch, BlockFunction body)
{
    run_items(batch * a->heads, a->length * a->keys * a->query.columns / 16 + 1, body, a);
    if (a->failed)
        PyErr_NoMemory();
    return !a->failed;
}

static PyObject *attention_fused(PyObject *const *slots, const KernelEntry *entry)
{
    Attention a;
    if (!read_attention(slots, &a))
        return DECLINE;
    npy_intp shape[] = {DIM(slots[0], 0), a.heads, a.length};
    PyObject *output = new_output(slots[0], a.value.columns, &a.result);
    PyObject *normalizer = output ? new_array(3, shape, a.type) : NULL;
    if (normalizer)
        a.normalizer = DATA(normalizer);
    PyObject *both = normalizer && run_heads(&a, shape[0], attend) ? PyTuple_Pack(2, output, normalizer) : NULL;
    Py_XDECREF(output);
    Py_XDECREF(normalizer);
    return both;
}

static PyObject *attention_back(PyObject *const *slots, const KernelEntry *entry)
{
    Attention a;
    PyObject *query = slots[1], *grad = slots[0], *result = slots[7];
    if (!read_attention(slots + 1, &a) || !grad || !result || !slots[8] || !reads_heads(grad, a.type) ||
        !reads_heads(result, a.type) || !same_shape(grad, result) || DIM(grad, 3) != a.value.columns ||
        DIM(grad, 2) != a.length || DIM(grad, 1) != a.heads || DIM(grad, 0) != DIM(query, 0) ||
        !is_plain_of(slots[8], a.type) || size_of(slots[8]) != DIM(query, 0) * a.heads * a.length)
        return DECLINE;
    a.grad = heads_of(grad);
    a.result = heads_of(result);
    a.normalizer = DATA(slots[8]);
    PyObject *to_query = new_heads(query, a.query.columns, &a.to_query);
    PyObject *to_key = new_heads(slots[2], a.key.columns, &a.to_key);
    PyObject *to_value = new_heads(slots[3], a.value.columns, &a.to_value);
    PyObject *all = to_query && to_key && to_value && run_heads(&a, DIM(query, 0), attend_back)
                        ? PyTuple_Pack(3, to_query, to_key, to_value)
                        : NULL;
    Py_XDECREF(to_query);
    Py_XDECREF(to_key);
    Py_XDECREF(to_value);
    return all;
}

const KernelEntry attention_kernels[] = {
    {"attention_fused", attention_fused},
    {"attention_back", attention_back},
    {NULL},
};

#else

const KernelEntry attention_kernels[] = {{NULL}};

#endif
