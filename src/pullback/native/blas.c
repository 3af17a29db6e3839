/* Note [BLAS of NumPy]
 *
 * NumPy's extension module is linked with some BLAS under names that depend on how it was built. dlsym() on the handle of
 * that module also searches what it is linked with, so whatever NumPy multiplies with is found without knowing its file.
 * A function found is tried on numbers whose product is known before it is believed; where none is found, or on Windows,
 * large products are left to NumPy.
 */
#include "kernel.h"

#include "blas.h"

#ifdef _WIN32

void find_blas(void) {}
int has_blas(void) { return 0; }
void blas_multiply(int wide, int a_transposed, int b_transposed, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t depth,
                   const void *a, ptrdiff_t a_step, const void *b, ptrdiff_t b_step, int keep, void *result,
                   ptrdiff_t result_step)
{
}

#else

#include <dlfcn.h>

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };

/* On x86-64 an int is passed in the low half of eight bytes, so that the wide type serves both widths. */
#if defined(__x86_64__)
typedef int64_t BlasInt;
#else
typedef int BlasInt;
#endif

#define GEMM(REAL, INT)                                                                                                \
    void (*)(int, int, int, INT, INT, INT, REAL, const REAL *, INT, const REAL *, INT, REAL, REAL *, INT)

typedef struct {
    const char *single_name, *double_name;
    int is_wide; /* sizes are of 64 bits for certain */
} Names;

static const Names known[] = {
    {"scipy_cblas_sgemm64_", "scipy_cblas_dgemm64_", 1},
    {"cblas_sgemm64_", "cblas_dgemm64_", 1},
    {"cblas_sgemm$NEWLAPACK$ILP64", "cblas_dgemm$NEWLAPACK$ILP64", 1},
    {"cblas_sgemm$NEWLAPACK", "cblas_dgemm$NEWLAPACK", 0},
    {"scipy_cblas_sgemm", "scipy_cblas_dgemm", 0},
    {"cblas_sgemm", "cblas_dgemm", 0},
};

static void *single_function, *double_function;
static int takes_wide;

int has_blas(void) { return single_function != NULL; }

#define CALL(REAL, INT, function)                                                                                      \
    ((GEMM(REAL, INT))function)(ROW_MAJOR, left, right, (INT)rows, (INT)columns, (INT)depth, 1, a, (INT)a_step, b,      \
                                (INT)b_step, (REAL)keep, result, (INT)result_step)

void blas_multiply(int wide, int a_transposed, int b_transposed, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t depth,
                   const void *a, ptrdiff_t a_step, const void *b, ptrdiff_t b_step, int keep, void *result,
                   ptrdiff_t result_step)
{
    int left = a_transposed ? TRANSPOSED : PLAIN, right = b_transposed ? TRANSPOSED : PLAIN;
    if (takes_wide && wide)
        CALL(double, int64_t, double_function);
    else if (takes_wide)
        CALL(float, int64_t, single_function);
    else if (wide)
        CALL(double, BlasInt, double_function);
    else
        CALL(float, BlasInt, single_function);
}

/* [[1 2 3] [4 5 6]] times its own transpose, plus ones. */
static int multiplies_correctly(void)
{
    const float a[] = {1, 2, 3, 4, 5, 6}, expected[] = {15, 33, 33, 78};
    const double wide_a[] = {1, 2, 3, 4, 5, 6};
    float result[] = {1, 1, 1, 1};
    double wide_result[] = {1, 1, 1, 1};
    blas_multiply(0, 0, 1, 2, 2, 3, a, 3, a, 3, 1, result, 2);
    blas_multiply(1, 0, 1, 2, 2, 3, wide_a, 3, wide_a, 3, 1, wide_result, 2);
    for (int i = 0; i < 4; i++)
        if (result[i] != expected[i] || wide_result[i] != expected[i])
            return 0;
    return 1;
}

static void *numpy_library(void)
{
    void *library = NULL;
    PyObject *module = PyImport_ImportModule("numpy._core._multiarray_umath");
    PyObject *file = module ? PyObject_GetAttrString(module, "__file__") : NULL;
    const char *path = file && PyUnicode_Check(file) ? PyUnicode_AsUTF8(file) : NULL;
    if (path)
        library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    PyErr_Clear();
    Py_XDECREF(file);
    Py_XDECREF(module);
    return library;
}

void find_blas(void)
{
    void *library = numpy_library();
    for (size_t i = 0; library && i < sizeof known / sizeof *known; i++) {
        single_function = dlsym(library, known[i].single_name);
        double_function = dlsym(library, known[i].double_name);
        takes_wide = known[i].is_wide;
        if (single_function && double_function && multiplies_correctly())
            return;
        single_function = double_function = NULL;
    }
}

#endif
