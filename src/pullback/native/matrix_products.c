/* The kernels of kernels/matrix_products.py that products.c can do. */
#include "products.h"
#include "rows.h"

#if defined(__GNUC__)

#define SHORT_DOT 16384 /* above, BLAS may use its threads */

static void multiply_unlocked(const Product *p, Way way)
{
    if (p->a.rows * p->b.columns * p->a.columns <= 8 * UNLOCK_ABOVE) {
        multiply(p, way);
        return;
    }
    Py_BEGIN_ALLOW_THREADS
    multiply_in_threads(p, way);
    Py_END_ALLOW_THREADS
}

/* All dimensions but the last as one; the array is row-major. */
static Matrix folded(PyObject *array)
{
    ptrdiff_t columns = DIM(array, NDIM(array) - 1), rows = 1;
    for (int i = 0; i < NDIM(array) - 1; i++)
        rows *= DIM(array, i);
    return (Matrix){DATA(array), rows, columns, columns, 1};
}

static int folds(PyObject *array)
{
    return NDIM(array) == 2 || (NDIM(array) > 2 && PyArray_IS_C_CONTIGUOUS(ARRAY(array)));
}

static Matrix rows_of(PyObject *array) { return NDIM(array) == 2 ? matrix_of(array) : folded(array); }

/* a @ b + start as a new array of the given shape. */
static PyObject *new_product(Matrix a, Matrix b, int type, int ndim, const npy_intp *shape, const char *start,
                             ptrdiff_t start_step)
{
    Product p = {a, b, start, start_step, NULL, b.columns, type == NPY_DOUBLE};
    Way way = way_of(&p);
    if (way == NO_WAY)
        return DECLINE;
    PyObject *result = new_array(ndim, shape, type);
    if (!result)
        return NULL;
    p.result = DATA(result);
    multiply_unlocked(&p, way);
    return result;
}

static PyObject *new_matrix_product(Matrix a, Matrix b, int type)
{
    npy_intp shape[] = {a.rows, b.columns};
    return new_product(a, b, type, 2, shape, NULL, 0);
}

/* Whether both are readable matrices of one type whose product is symmetric by construction: NumPy makes it exactly so. */
static int is_square_of_itself(const Matrix *a, const Matrix *b)
{
    return a->data == b->data && a->row_step == b->column_step && a->rows == b->columns && a->rows > 1;
}

static PyObject *mm(PyObject *const *slots, const KernelEntry *entry)
{
    if (NDIM(slots[0]) != 2 || NDIM(slots[1]) != 2 || DIM(slots[0], 1) != DIM(slots[1], 0))
        return DECLINE;
    Matrix a = matrix_of(slots[0]), b = matrix_of(slots[1]);
    return is_square_of_itself(&a, &b) ? DECLINE : new_matrix_product(a, b, type_of(slots[0]));
}

static PyObject *mv(PyObject *const *slots, const KernelEntry *entry)
{
    if (NDIM(slots[0]) != 2 || NDIM(slots[1]) != 1 || DIM(slots[0], 1) != DIM(slots[1], 0))
        return DECLINE;
    /* As a row times the transposed matrix. */
    npy_intp size = DIM(slots[0], 0), depth = DIM(slots[1], 0);
    Matrix row = {DATA(slots[1]), 1, depth, depth, STEP(slots[1], 0)};
    return new_product(row, transposed(matrix_of(slots[0])), type_of(slots[0]), 1, &size, NULL, 0);
}

static PyObject *dot(PyObject *const *slots, const KernelEntry *entry)
{
    int type = type_of(slots[0]);
    if (NDIM(slots[0]) != 1 || DIM(slots[0], 0) > SHORT_DOT)
        return DECLINE;
    return store_number(dot_of(DATA(slots[0]), DATA(slots[1]), DIM(slots[0], 0), type == NPY_DOUBLE), type);
}

/* Batches: the dimensions before the last two, with a step of 0 where an operand's are broadcast. */
typedef struct {
    int ndim;
    npy_intp shape[NPY_MAXDIMS];
    ptrdiff_t a_steps[NPY_MAXDIMS], b_steps[NPY_MAXDIMS]; /* in bytes */
    npy_intp count;
    Product product; /* the first one; results lie one after another */
    Way way;
} Batch;

static int broadcast_batches(PyObject *a, PyObject *b, Batch *batch)
{
    int a_ndim = NDIM(a) - 2, b_ndim = NDIM(b) - 2;
    batch->ndim = a_ndim > b_ndim ? a_ndim : b_ndim;
    batch->count = 1;
    for (int i = 0; i < batch->ndim; i++) {
        int a_axis = i - (batch->ndim - a_ndim), b_axis = i - (batch->ndim - b_ndim);
        npy_intp a_size = a_axis < 0 ? 1 : DIM(a, a_axis), b_size = b_axis < 0 ? 1 : DIM(b, b_axis);
        if (a_size != b_size && a_size != 1 && b_size != 1)
            return 0;
        batch->shape[i] = a_size == 1 ? b_size : a_size;
        batch->a_steps[i] = a_size == 1 ? 0 : STRIDE(a, a_axis);
        batch->b_steps[i] = b_size == 1 ? 0 : STRIDE(b, b_axis);
        batch->count *= batch->shape[i];
    }
    return 1;
}

static void multiply_some(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Batch *batch = context;
    ptrdiff_t item = batch->product.wide ? sizeof(double) : sizeof(float);
    ptrdiff_t result_step = batch->product.a.rows * batch->product.b.columns * item;
    for (ptrdiff_t number = begin; number < end; number++) {
        Product p = batch->product;
        ptrdiff_t rest = number;
        for (int i = batch->ndim - 1; i >= 0; i--) {
            p.a.data += rest % batch->shape[i] * batch->a_steps[i];
            p.b.data += rest % batch->shape[i] * batch->b_steps[i];
            rest /= batch->shape[i];
        }
        p.result += number * result_step;
        multiply(&p, batch->way);
    }
}

/* Products of matrices that both have batch dimensions, which broadcast. BLAS has threads of its own: it is called from
 * one thread only. */
static PyObject *multiply_batches(PyObject *a, PyObject *b, int a_is_transposed, int b_is_transposed, int type)
{
    Batch batch = {.product = {.wide = type == NPY_DOUBLE}};
    Product *p = &batch.product;
    p->a = a_is_transposed ? transposed(matrix_of(a)) : matrix_of(a);
    p->b = b_is_transposed ? transposed(matrix_of(b)) : matrix_of(b);
    p->result_step = p->b.columns;
    if (p->a.columns != p->b.rows || !broadcast_batches(a, b, &batch) || is_square_of_itself(&p->a, &p->b))
        return DECLINE;
    Way own = way_without_blas(p);
    batch.way = own != NO_WAY ? own : way_of(p);
    if (batch.way == NO_WAY)
        return DECLINE;
    batch.shape[batch.ndim] = p->a.rows;
    batch.shape[batch.ndim + 1] = p->b.columns;
    PyObject *result = new_array(batch.ndim + 2, batch.shape, type);
    if (!result)
        return NULL;
    p->result = DATA(result);
    ptrdiff_t work = p->a.rows * p->b.columns * p->a.columns;
    ptrdiff_t smallest = batch.way == BY_BLAS ? batch.count + 1 : 8 * UNLOCK_ABOVE / (work + 1) + 1;
    if (work * batch.count <= 8 * UNLOCK_ABOVE) {
        multiply_some(&batch, 0, batch.count);
        return result;
    }
    Py_BEGIN_ALLOW_THREADS
    run_blocks(batch.count, smallest, multiply_some, &batch);
    Py_END_ALLOW_THREADS
    return result;
}

static PyObject *bmm(PyObject *const *slots, const KernelEntry *entry)
{
    if (NDIM(slots[0]) != 3 || NDIM(slots[1]) != 3 || DIM(slots[0], 0) != DIM(slots[1], 0))
        return DECLINE;
    return multiply_batches(slots[0], slots[1], 0, 0, type_of(slots[0]));
}

/* The shape of `array` with another last size. */
static void shape_with_last(PyObject *array, npy_intp last, npy_intp *shape)
{
    for (int i = 0; i < NDIM(array) - 1; i++)
        shape[i] = DIM(array, i);
    shape[NDIM(array) - 1] = last;
}

/* `array`'s rows, whatever dimensions they are in, times a matrix, plus a row. */
static PyObject *multiply_rows(PyObject *array, Matrix other, int type, const char *start)
{
    npy_intp shape[NPY_MAXDIMS];
    Matrix rows = rows_of(array);
    if (rows.columns != other.rows)
        return DECLINE;
    shape_with_last(array, other.columns, shape);
    return new_product(rows, other, type, NDIM(array), shape, start, 0);
}

static PyObject *matmul_batched(PyObject *const *slots, const KernelEntry *entry)
{
    PyObject *a = slots[0], *b = slots[1];
    int type = type_of(a);
    if (NDIM(a) < 2 || NDIM(b) < 2)
        return DECLINE;
    if (NDIM(b) == 2)
        return folds(a) ? multiply_rows(a, matrix_of(b), type, NULL) : DECLINE;
    return multiply_batches(a, b, 0, 0, type);
}

/* Whether nothing was broadcast: then a gradient has the shape of what it belongs to. */
static int same_batches(PyObject *a, PyObject *b, PyObject *shape)
{
    if (NDIM(a) != NDIM(b) || !PyTuple_CheckExact(shape) || PyTuple_GET_SIZE(shape) != NDIM(a))
        return 0;
    for (int i = 0; i < NDIM(a) - 2; i++)
        if (DIM(a, i) != DIM(b, i) || PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i)) != DIM(a, i)) {
            PyErr_Clear();
            return 0;
        }
    return 1;
}

static PyObject *matmul_grad_input(PyObject *const *slots, const KernelEntry *entry)
{
    PyObject *grad = slots[0], *shape = slots[1], *other = slots[2];
    int type = type_of(grad);
    if (NDIM(grad) < 3 || NDIM(other) < 2 || !PyTuple_CheckExact(shape) || PyTuple_GET_SIZE(shape) != NDIM(grad))
        return DECLINE;
    if (NDIM(other) == 2)
        return folds(grad) ? multiply_rows(grad, transposed(matrix_of(other)), type, NULL) : DECLINE;
    return same_batches(grad, other, shape) ? multiply_batches(grad, other, 0, 1, type) : DECLINE;
}

static PyObject *matmul_grad_other(PyObject *const *slots, const KernelEntry *entry)
{
    PyObject *grad = slots[0], *input = slots[1], *shape = slots[2];
    int type = type_of(grad);
    if (NDIM(grad) < 3 || NDIM(input) < 2 || !PyTuple_CheckExact(shape))
        return DECLINE;
    if (PyTuple_GET_SIZE(shape) == 2 && NDIM(input) == NDIM(grad) && folds(grad) && folds(input)) {
        Matrix left = rows_of(input), right = rows_of(grad);
        return left.rows == right.rows ? new_matrix_product(transposed(left), right, type) : DECLINE;
    }
    return same_batches(grad, input, shape) ? multiply_batches(input, grad, 1, 0, type) : DECLINE;
}

/* `input @ weight.T`, plus a bias where there is one. */
static PyObject *linear(PyObject *const *slots, const KernelEntry *entry)
{
    PyObject *input = slots[0], *weight = slots[1], *bias = entry->kind ? slots[2] : NULL;
    if (!folds(input) || NDIM(weight) != 2 || (bias && (NDIM(bias) != 1 || DIM(bias, 0) != DIM(weight, 0))))
        return DECLINE;
    Matrix rows = rows_of(input), columns = transposed(matrix_of(weight));
    if (!bias && is_square_of_itself(&rows, &columns))
        return DECLINE;
    return multiply_rows(input, columns, type_of(input), bias ? DATA(bias) : NULL);
}

static PyObject *linear_grad_input(PyObject *const *slots, const KernelEntry *entry)
{
    if (!folds(slots[0]) || NDIM(slots[1]) != 2)
        return DECLINE;
    return multiply_rows(slots[0], matrix_of(slots[1]), type_of(slots[0]), NULL);
}

static PyObject *linear_grad_weight(PyObject *const *slots, const KernelEntry *entry)
{
    if (!folds(slots[0]) || !folds(slots[1]))
        return DECLINE;
    Matrix grad = rows_of(slots[0]), input = rows_of(slots[1]);
    return grad.rows == input.rows ? new_matrix_product(transposed(grad), input, type_of(slots[0])) : DECLINE;
}

static PyObject *linear_grad_bias(PyObject *const *slots, const KernelEntry *entry)
{
    if (!folds(slots[0]))
        return DECLINE;
    Matrix rows = rows_of(slots[0]);
    if (rows.column_step != 1)
        return DECLINE;
    npy_intp size = rows.columns;
    PyObject *result = new_array(1, &size, type_of(slots[0]));
    if (result)
        add_rows(&rows, DATA(result), type_of(slots[0]) == NPY_DOUBLE);
    return result;
}

/* Only as `beta * input + mat1 @ mat2` with beta 1 and alpha 1, which is what programs say by leaving them out. */
static PyObject *addmm(PyObject *const *slots, const KernelEntry *entry)
{
    PyObject *input = slots[0];
    int ndim = NDIM(input);
    if (number_of(slots[3]) != 1 || number_of(slots[4]) != 1 || NDIM(slots[1]) != 2 || NDIM(slots[2]) != 2 ||
        DIM(slots[1], 1) != DIM(slots[2], 0))
        return DECLINE;
    Matrix a = matrix_of(slots[1]), b = matrix_of(slots[2]);
    npy_intp shape[] = {a.rows, b.columns};
    if (ndim < 1 || ndim > 2 || DIM(input, ndim - 1) != b.columns || (ndim == 2 && DIM(input, 0) != a.rows))
        return DECLINE;
    return new_product(a, b, type_of(input), 2, shape, DATA(input), ndim == 2 ? b.columns : 0);
}

const KernelEntry matrix_product_kernels[] = {
    {"mm", mm, "aa"},
    {"bmm", bmm, "aa"},
    {"mv", mv, "aa"},
    {"dot", dot, "pP"},
    {"matmul_batched", matmul_batched, "aa"},
    {"matmul_grad_input", matmul_grad_input, "a.a"},
    {"matmul_grad_other", matmul_grad_other, "aa"},
    {"linear_bias", linear, "aap", 1},
    {"linear_bias_folded", linear, "aap", 1},
    {"linear_product", linear, "aa"},
    {"linear_product_folded", linear, "aa"},
    {"linear_grad_input", linear_grad_input, "aa"},
    {"linear_grad_weight", linear_grad_weight, "aa"},
    {"linear_grad_bias", linear_grad_bias, "a"},
    {"addmm", addmm, "paann"},
    {NULL},
};

#else

const KernelEntry matrix_product_kernels[] = {{NULL}};

#endif
