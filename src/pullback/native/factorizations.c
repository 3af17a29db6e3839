/* Small and middle-sized matrices factorized and solved: the compiled kernels of kernels/lu.py, triangular.py, solvers.py and
 * of parts of decompositions.py and matrix_functions.py. Large ones are left to LAPACK.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "rows.h"
#include "views.h"

#define LARGEST 192         /* from here on LAPACK's blocks are faster */
#define FEW_SIDES 8         /* below, right-hand sides are taken one by one */
#define LARGEST_OF_FEW 1024 /* from here on, of so few */

typedef struct {
    const void *matrices;
    void *solutions;
    ptrdiff_t size, sides;              /* right-hand sides of one matrix */
    ptrdiff_t row_step, column_step, matrix_step;
    int upper, unit;
    int systems; /* this one, then the next in memory */
} Triangle;

typedef struct {
    const void *symmetric;
    void *matrices, *solutions;
    ptrdiff_t rows, columns, sides, row_step, column_step;
    int32_t *pivots, *info;
    int by_columns, failed;
} Factorization;

#define SQUARE_ROOT(x) (REAL_IS_FLOAT ? (REAL)sqrtf((float)(x)) : (REAL)sqrt((double)(x)))
#define LOOPS "factorization_loops.h"
#include "for_each_real.h"

#define LAST(object, i) DIM(object, NDIM(object) - (i))

static int is_square(PyObject *a)
{
    return is_real_array(a) && NDIM(a) >= 2 && LAST(a, 1) == LAST(a, 2) && size_of(a) > 0;
}

static int same_batches(PyObject *a, PyObject *b)
{
    if (NDIM(a) != NDIM(b))
        return 0;
    for (int i = 0; i < NDIM(a) - 2; i++)
        if (DIM(a, i) != DIM(b, i))
            return 0;
    return 1;
}

/* An array whose last two dimensions are exchanged in memory: a view of a new row-major one, which is put into `base`. */
static PyObject *transposed_view(PyObject *base)
{
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    int ndim = NDIM(base);
    for (int i = 0; i < ndim; i++) {
        int from = i == ndim - 1 ? ndim - 2 : i == ndim - 2 ? ndim - 1 : i;
        shape[i] = DIM(base, from);
        strides[i] = STRIDE(base, from);
    }
    PyObject *view = new_view(base, ndim, shape, strides, 0);
    Py_DECREF(base);
    return view;
}

/* A row-major copy with the last two dimensions exchanged: columns of each matrix lie together. */
static PyObject *copy_columns(PyObject *array)
{
    Py_INCREF(array);
    PyObject *view = transposed_view(array);
    PyObject *copy = view ? PyArray_NewCopy(ARRAY(view), NPY_CORDER) : NULL;
    Py_XDECREF(view);
    return copy;
}

/* Matrices one after the other, rows or columns lying together; a new reference, NULL where memory runs out. */
static PyObject *read_matrices(PyObject *a, Triangle *t)
{
    npy_intp item = ITEM(a), n = LAST(a, 1);
    t->matrix_step = n * n;
    int is_transposed = STRIDE(a, NDIM(a) - 2) == item && STRIDE(a, NDIM(a) - 1) == n * item;
    for (int i = NDIM(a) - 3, is_first = 1; i >= 0 && is_transposed; i--) {
        npy_intp expected = is_first ? n * n * item : DIM(a, i + 1) * STRIDE(a, i + 1);
        is_transposed = STRIDE(a, i) == expected;
        is_first = 0;
    }
    t->row_step = is_transposed ? 1 : n;
    t->column_step = is_transposed ? n : 1;
    return is_transposed ? Py_NewRef(a) : row_major(a);
}

/* Solve for the columns of `solutions` (row-major, exchanged); gives up the reference and returns the view. With two
 * systems the second one follows in memory. */
static PyObject *solve_columns(Triangle *t, PyObject *a, PyObject *solutions)
{
    PyObject *matrices = solutions ? read_matrices(a, t) : NULL;
    if (!matrices) {
        Py_XDECREF(solutions);
        return NULL;
    }
    t->size = LAST(a, 1);
    t->sides = LAST(solutions, 2);
    t->matrices = data_of(matrices);
    t->solutions = data_of(solutions);
    if (t->systems == 2) { /* then the adjoint */
        t[1] = t[0];
        t[1].upper = !t->upper;
        t[1].row_step = t->column_step;
        t[1].column_step = t->row_step;
    }
    run_items(size_of(solutions) / (t->size * t->sides), t->size * t->size * t->sides,
              FOR_TYPE(type_of(a), substitute_all), t);
    Py_DECREF(matrices);
    return transposed_view(solutions);
}

static PyObject *linalg_solve_triangular(PyObject *const *slots, const KernelEntry *entry)
{
    int upper, left, unit;
    if (!slots[0] || !slots[1] || !is_square(slots[0]) || !is_real_array_of(slots[1], type_of(slots[0])) ||
        !size_of(slots[1]) || NDIM(slots[1]) < 2 || !same_batches(slots[0], slots[1]) || !slots[2] ||
        !read_flag(slots[2], 0, &upper) || !read_flag(slots[3], 1, &left) || !left || !read_flag(slots[4], 0, &unit) ||
        LAST(slots[1], 2) != LAST(slots[0], 1) ||
        LAST(slots[0], 1) > (LAST(slots[1], 1) < FEW_SIDES ? LARGEST_OF_FEW : LARGEST))
        return DECLINE;
    Triangle t = {.upper = upper, .unit = unit, .systems = 1};
    return solve_columns(&t, slots[0], copy_columns(slots[1]));
}

static PyObject *cholesky_solve(PyObject *const *slots, const KernelEntry *entry)
{
    int upper;
    if (!slots[0] || !slots[1] || !is_square(slots[1]) || !is_real_array_of(slots[0], type_of(slots[1])) ||
        !size_of(slots[0]) || NDIM(slots[0]) < 2 || !same_batches(slots[0], slots[1]) || !read_flag(slots[2], 0, &upper) ||
        LAST(slots[0], 2) != LAST(slots[1], 1) || LAST(slots[1], 1) > LARGEST)
        return DECLINE;
    /* L (L' x) = b, or U' (U x) = b, where U' is lower. */
    Triangle t[2] = {{.systems = 2}};
    PyObject *matrix = slots[1];
    if (upper) {
        Py_INCREF(matrix);
        matrix = transposed_view(matrix);
        if (!matrix)
            return NULL;
    }
    PyObject *result = solve_columns(t, matrix, copy_columns(slots[0]));
    if (upper)
        Py_DECREF(matrix);
    return result;
}

/* Copies of matrices with their factorization: the matrices, pivots and infos, or 0 where memory runs out. */
static int factorize_copies(PyObject *a, PyObject **made, Factorization *f)
{
    int ndim = NDIM(a);
    npy_intp shape[NPY_MAXDIMS];
    for (int i = 0; i < ndim - 2; i++)
        shape[i] = DIM(a, i);
    f->rows = LAST(a, 2);
    f->columns = LAST(a, 1);
    shape[ndim - 2] = f->rows < f->columns ? f->rows : f->columns;
    made[0] = PyArray_NewCopy(ARRAY(a), NPY_CORDER);
    made[1] = new_array(ndim - 1, shape, NPY_INT32);
    made[2] = new_array(ndim - 2, shape, NPY_INT32);
    if (!made[0] || !made[1] || !made[2]) {
        for (int i = 0; i < 3; i++)
            Py_XDECREF(made[i]);
        return 0;
    }
    f->matrices = data_of(made[0]);
    f->pivots = data_of(made[1]);
    f->info = data_of(made[2]);
    run_items(size_of(a) / (f->rows * f->columns), f->rows * f->columns * shape[ndim - 2] / 2,
              FOR_TYPE(type_of(a), factorize_all), f);
    return 1;
}

static PyObject *_factorize(PyObject *const *slots, const KernelEntry *entry)
{
    Factorization f;
    PyObject *made[3];
    if (!is_real_array(slots[0]) || NDIM(slots[0]) < 2 || !size_of(slots[0]) || LAST(slots[0], 1) > LARGEST ||
        LAST(slots[0], 2) > LARGEST)
        return DECLINE;
    if (!factorize_copies(slots[0], made, &f))
        return NULL;
    return Py_BuildValue("(NNN)", made[0], made[1], made[2]);
}

static PyObject *linalg_det(PyObject *const *slots, const KernelEntry *entry)
{
    Factorization f;
    PyObject *made[3];
    if (!slots[0] || !is_square(slots[0]) || LAST(slots[0], 1) > LARGEST)
        return DECLINE;
    if (!factorize_copies(slots[0], made, &f))
        return NULL;
    PyObject *result = new_array(NDIM(slots[0]) - 2, SHAPE(slots[0]), type_of(slots[0]));
    if (result)
        FOR_TYPE(type_of(slots[0]), find_determinants)(&f, size_of(result), data_of(result));
    for (int i = 0; i < 3; i++)
        Py_DECREF(made[i]);
    return result;
}

/* Whether some matrix is singular or holds NaN, which the reference treats. */
static int any_info(PyObject *info)
{
    const int32_t *values = data_of(info);
    for (ptrdiff_t i = 0; i < size_of(info); i++)
        if (values[i])
            return 1;
    return 0;
}

/* Solve by factors for vectors that lie together; gives up the reference to `solutions`. */
static PyObject *solve_by_factors(PyObject *a, PyObject *solutions)
{
    Factorization f;
    PyObject *made[3], *result = NULL;
    if (!solutions)
        return NULL;
    if (!factorize_copies(a, made, &f)) {
        Py_DECREF(solutions);
        return NULL;
    }
    if (any_info(made[2])) {
        Py_DECREF(solutions);
    } else {
        f.sides = LAST(solutions, 2);
        f.solutions = data_of(solutions);
        run_items(size_of(made[2]), f.rows * f.rows * f.sides, FOR_TYPE(type_of(a), solve_all), &f);
        solutions = transposed_view(solutions);
        memset(data_of(made[2]), 0, (size_t)PyArray_NBYTES(ARRAY(made[2])));
        if (solutions)
            result = Py_BuildValue("(NO)", solutions, made[2]);
    }
    for (int i = 0; i < 3; i++)
        Py_DECREF(made[i]);
    return result;
}

static PyObject *_solve(PyObject *const *slots, const KernelEntry *entry)
{
    if (!slots[0] || !slots[1] || slots[2] != Py_True || !is_square(slots[0]) || LAST(slots[0], 1) > LARGEST ||
        !is_real_array_of(slots[1], type_of(slots[0])) || !size_of(slots[1]) || NDIM(slots[1]) < 2 ||
        !same_batches(slots[0], slots[1]) || LAST(slots[1], 2) != LAST(slots[0], 1))
        return DECLINE;
    return solve_by_factors(slots[0], copy_columns(slots[1]));
}

static PyObject *_invert(PyObject *const *slots, const KernelEntry *entry)
{
    if (!slots[0] || !is_square(slots[0]) || LAST(slots[0], 1) > LARGEST)
        return DECLINE;
    PyObject *identity = new_like(slots[0]);
    if (!identity)
        return NULL;
    memset(data_of(identity), 0, (size_t)PyArray_NBYTES(ARRAY(identity)));
    npy_intp n = LAST(identity, 1);
    for (ptrdiff_t i = 0; i < size_of(identity); i += n * n)
        for (ptrdiff_t row = 0; row < n; row++)
            if (type_of(identity) == NPY_FLOAT)
                ((float *)data_of(identity))[i + row * (n + 1)] = 1;
            else
                ((double *)data_of(identity))[i + row * (n + 1)] = 1;
    return solve_by_factors(slots[0], identity);
}

static PyObject *_cholesky(PyObject *const *slots, const KernelEntry *entry)
{
    int upper;
    if (!slots[0] || !slots[1] || !is_square(slots[0]) || !read_flag(slots[1], 0, &upper) || LAST(slots[0], 1) > LARGEST)
        return DECLINE;
    Triangle layout;
    PyObject *plain = read_matrices(slots[0], &layout), *result = plain ? new_array(NDIM(slots[0]), SHAPE(slots[0]), type_of(slots[0])) : NULL;
    PyObject *info = result ? PyArray_Zeros(NDIM(slots[0]) - 2, SHAPE(slots[0]), PyArray_DescrFromType(NPY_INT32), 0) : NULL;
    Factorization f = {.by_columns = !upper};
    if (info) {
        f.rows = LAST(slots[0], 1);
        f.symmetric = data_of(plain);
        f.matrices = data_of(result);
        /* The upper factor belongs to the upper triangle. */
        f.row_step = upper ? layout.column_step : layout.row_step;
        f.column_step = upper ? layout.row_step : layout.column_step;
        run_items(size_of(result) / (f.rows * f.rows), f.rows * f.rows * f.rows / 4 + 1,
                  FOR_TYPE(type_of(result), factorize_symmetric_all), &f);
    }
    Py_XDECREF(plain);
    if (!info || f.failed) {
        Py_XDECREF(result);
        Py_XDECREF(info);
        return NULL;
    }
    result = transposed_view(result);
    if (!result) {
        Py_DECREF(info);
        return NULL;
    }
    return Py_BuildValue("(NN)", result, info);
}

const KernelEntry factorization_kernels[] = {
    {"linalg_solve_triangular", linalg_solve_triangular},
    {"cholesky_solve", cholesky_solve},
    {"linalg_det", linalg_det},
    {"_factorize", _factorize},
    {"_solve", _solve},
    {"_invert", _invert},
    {"_cholesky", _cholesky},
    {NULL},
};
