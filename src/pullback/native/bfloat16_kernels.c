/* The kernels that products of bfloat16 serve: those of kernels/half_products.py and Muon's iteration. */
#include "bfloat16_products.h"
#include "casts.h"

static int is_bfloat16(PyObject *object, int ndim)
{
    return PyArray_CheckExact(object) && float_kind(PyArray_DESCR((PyArrayObject *)object)) == BFLOAT16 &&
           PyArray_ISBEHAVED_RO((PyArrayObject *)object) && (ndim < 0 ? NDIM(object) >= 2 : NDIM(object) == ndim);
}

static int is_square_of_itself(const Matrix *a, const Matrix *b)
{
    return a->data == b->data && a->row_step == b->column_step && a->column_step == b->row_step && a->rows == b->columns;
}

static int is_empty(const Bfloat16Product *p) { return !p->a.rows || !p->a.columns || !p->b.columns; }

/* Do one product; 0 where memory runs out. */
static int run_one(const Bfloat16Product *p)
{
    void *workspace = PyMem_RawMalloc(product_workspace(p));
    if (!workspace)
        return 0;
    if ((double)p->a.rows * (double)p->b.columns * (double)p->a.columns <= 16.0 * UNLOCK_ABOVE)
        multiply_bfloat16(p, workspace);
    else {
        Py_BEGIN_ALLOW_THREADS
        multiply_bfloat16_in_threads(p, workspace);
        Py_END_ALLOW_THREADS
    }
    PyMem_RawFree(workspace);
    return 1;
}

static PyObject *finished(PyObject *result, int succeeded)
{
    if (succeeded)
        return result;
    Py_DECREF(result);
    return PyErr_NoMemory();
}

/* Products of equally many matrices, those of one operand at any distance from each other. */
typedef struct {
    PyObject *a, *b;
    Bfloat16Product product;
    int failed;
} Batches;

static void multiply_batches(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    Batches *batches = context;
    Bfloat16Product p = batches->product;
    int ndim = NDIM(batches->a) - 2;
    void *workspace = PyMem_RawMalloc(product_workspace(&p));
    if (!workspace) {
        batches->failed = 1;
        return;
    }
    for (ptrdiff_t number = begin; number < end; number++) {
        ptrdiff_t rest = number;
        p.a.data = batches->product.a.data;
        p.b.data = batches->product.b.data;
        for (int i = ndim - 1; i >= 0; i--) {
            ptrdiff_t size = DIM(batches->a, i);
            p.a.data += rest % size * STRIDE(batches->a, i);
            p.b.data += rest % size * STRIDE(batches->b, i);
            rest /= size;
        }
        p.result = batches->product.result + number * p.a.rows * p.b.columns;
        multiply_bfloat16(&p, workspace);
    }
    PyMem_RawFree(workspace);
}

static PyObject *multiply_many(PyObject *a, PyObject *b, Bfloat16Product p)
{
    npy_intp shape[NPY_MAXDIMS], count = 1;
    int ndim = NDIM(a);
    if (ndim != NDIM(b))
        return DECLINE;
    for (int i = 0; i < ndim - 2; i++) {
        if (DIM(a, i) != DIM(b, i))
            return DECLINE;
        count *= shape[i] = DIM(a, i);
    }
    if (!count)
        return DECLINE;
    shape[ndim - 2] = p.a.rows;
    shape[ndim - 1] = p.b.columns;
    PyObject *result = new_of_type(a, ndim, shape);
    if (!result)
        return NULL;
    p.result = (uint16_t *)(void *)DATA(result);
    Batches batches = {a, b, p, 0};
    double work = (double)p.a.rows * (double)p.b.columns * (double)p.a.columns;
    run_unlocked(work * (double)count / 16, count, (ptrdiff_t)(16 * UNLOCK_ABOVE / work) + 1, multiply_batches, &batches);
    return finished(result, !batches.failed);
}

/* multiply_halves(a, b) */
static PyObject *multiply_halves(PyObject *const *arguments, const KernelEntry *entry)
{
    if (!multiplies_bfloat16() || !is_bfloat16(arguments[0], -1) || !is_bfloat16(arguments[1], -1))
        return DECLINE;
    PyObject *a = arguments[0], *b = arguments[1];
    Bfloat16Product p = {.a = matrix_of(a), .b = matrix_of(b), .alpha = 1};
    if (p.a.columns != p.b.rows || is_empty(&p))
        return DECLINE;
    if (NDIM(a) != 2 || NDIM(b) != 2)
        return multiply_many(a, b, p);
    p.is_symmetric = is_square_of_itself(&p.a, &p.b);
    npy_intp shape[] = {p.a.rows, p.b.columns};
    PyObject *result = new_of_type(a, 2, shape);
    if (!result)
        return NULL;
    p.result = (uint16_t *)(void *)DATA(result);
    return finished(result, run_one(&p));
}

/* add_product_of_halves(input, mat1, mat2, beta, alpha) */
static PyObject *add_product_of_halves(PyObject *const *arguments, const KernelEntry *entry)
{
    if (!multiplies_bfloat16())
        return DECLINE;
    PyObject *input = arguments[0], *a = arguments[1], *b = arguments[2];
    double beta, alpha;
    if (!is_bfloat16(a, 2) || !is_bfloat16(b, 2) || !PyArray_CheckExact(input) || (NDIM(input) != 1 && NDIM(input) != 2) ||
        !is_bfloat16(input, NDIM(input)) || !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)input) ||
        !read_number(arguments[3], &beta) || !read_number(arguments[4], &alpha))
        return DECLINE;
    Bfloat16Product p = {.a = matrix_of(a), .b = matrix_of(b), .alpha = (float)alpha, .beta = (float)beta};
    int ndim = NDIM(input);
    if (p.a.columns != p.b.rows || is_empty(&p) || beta == 0 || DIM(input, ndim - 1) != p.b.columns ||
        (ndim == 2 && DIM(input, 0) != p.a.rows))
        return DECLINE;
    npy_intp shape[] = {p.a.rows, p.b.columns};
    PyObject *result = new_of_type(a, 2, shape);
    if (!result)
        return NULL;
    p.start = (const uint16_t *)(const void *)DATA(input);
    p.start_step = ndim == 2 ? p.b.columns : 0;
    p.result = (uint16_t *)(void *)DATA(result);
    return finished(result, run_one(&p));
}

static int read_coefficients(PyObject *object, float *coefficients)
{
    if (!PyTuple_CheckExact(object) || PyTuple_GET_SIZE(object) != 3)
        return 0;
    for (int i = 0; i < 3; i++) {
        double value;
        if (!read_number(PyTuple_GET_ITEM(object, i), &value))
            return 0;
        coefficients[i] = (float)value;
    }
    return 1;
}

static Matrix rows_of(const uint16_t *data, ptrdiff_t rows, ptrdiff_t columns)
{
    return (Matrix){(const char *)data, rows, columns, columns, 1};
}

/* One x -> a x + (b x x' + c (x x')^2) x; the new x is written to `next`. */
static int iterate(const uint16_t *x, uint16_t *next, uint16_t *gram, uint16_t *weights, ptrdiff_t rows, ptrdiff_t columns,
                   const float *coefficients)
{
    Matrix wide = rows_of(x, rows, columns), square = rows_of(gram, rows, rows);
    Bfloat16Product first = {wide, transposed(wide), NULL, 0, 1, 0, gram, 1};
    Bfloat16Product second = {square, transposed(square), gram, rows, coefficients[2], coefficients[1], weights, 1};
    Bfloat16Product third = {rows_of(weights, rows, rows), wide, x, columns, 1, coefficients[0], next, 0};
    return run_one(&first) && run_one(&second) && run_one(&third);
}

/* newton_schulz(matrix, coefficients, steps) */
static PyObject *newton_schulz(PyObject *const *arguments, const KernelEntry *entry)
{
    float coefficients[3];
    if (!multiplies_bfloat16() || !is_bfloat16(arguments[0], 2) || !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)arguments[0]) ||
        !read_coefficients(arguments[1], coefficients) || !PyLong_CheckExact(arguments[2]))
        return DECLINE;
    long steps = PyLong_AsLong(arguments[2]);
    npy_intp shape[] = {DIM(arguments[0], 0), DIM(arguments[0], 1)};
    PyErr_Clear();
    if (steps < 1 || steps >= 100 || !shape[0] || !shape[1])
        return DECLINE;
    size_t size = (size_t)(shape[0] * shape[1]), square = (size_t)(shape[0] * shape[0]);
    PyObject *result = new_of_type(arguments[0], 2, shape);
    uint16_t *scratch = result ? PyMem_RawMalloc((size + 2 * square) * sizeof *scratch) : NULL;
    if (!scratch)
        return result ? finished(result, 0) : NULL;
    const uint16_t *x = (const uint16_t *)(const void *)DATA(arguments[0]);
    int succeeded = 1;
    for (long left = steps; left && succeeded; left--) {
        uint16_t *next = left % 2 ? (uint16_t *)(void *)DATA(result) : scratch;
        succeeded = iterate(x, next, scratch + size, scratch + size + square, shape[0], shape[1], coefficients);
        x = next;
    }
    PyMem_RawFree(scratch);
    return finished(result, succeeded);
}

const KernelEntry bfloat16_kernels[] = {
    {"multiply_halves", multiply_halves},
    {"add_product_of_halves", add_product_of_halves},
    {"newton_schulz", newton_schulz},
    {NULL},
};
