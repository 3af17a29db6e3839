/* Distributions that draw again until a sample is accepted: the loops of backend/random/rejection.py.
 *
 * Numbers are drawn one at a time from the memory of the engine, as in random.c, in the order in which PyTorch draws
 * them; formulas and their order of evaluation are those of the reference.
 */
#include "rows.h"

#include <math.h>

#include "mt19937.h"

static const double THIRD_LESS = 0.0331f; /* float32 in PyTorch */

static uint32_t *engine_of(PyObject *object)
{
    if (!PyArray_CheckExact(object) || type_of(object) != NPY_UINT32 || !PyArray_ISCARRAY((PyArrayObject *)object) ||
        PyArray_SIZE((PyArrayObject *)object) != STATE_WORDS + 1)
        return NULL;
    return PyArray_DATA((PyArrayObject *)object);
}

/* The data of a row-major array of one type and size; NULL for anything else. */
static void *elements_of(PyObject *object, int type, npy_intp count)
{
    if (!is_plain_of(object, type) || PyArray_SIZE((PyArrayObject *)object) != count)
        return NULL;
    return PyArray_DATA((PyArrayObject *)object);
}

/* The same of an array that is written to. */
static double *samples_of(PyObject *object, npy_intp count)
{
    double *data = elements_of(object, NPY_DOUBLE, count);
    return data && PyArray_ISWRITEABLE((PyArrayObject *)object) ? data : NULL;
}

static double uniform(uint32_t *engine)
{
    uint32_t words[2];
    draw_words(engine, words, 2);
    return uniform_of(words, 0);
}

/* Hörmann's transformed rejection (PTRS, 1993). */
static double poisson_by_rejection(uint32_t *engine, double rate)
{
    double log_rate = log(rate), b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
    double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        double u = uniform(engine) - 0.5, v = uniform(engine), us = 0.5 - fabs(u);
        double k = us != 0 ? floor((2 * a / us + b) * u + rate + 0.43) : -1;
        if (us >= 0.07 && v <= v_r)
            return k;
        if (k < 0 || (us < 0.013 && v > us))
            continue;
        if (log(v) + log(inverse_alpha) - log(a / (us * us) + b) <= -rate + k * log_rate - lgamma(k + 1))
            return k;
    }
}

static double poisson(uint32_t *engine, double rate)
{
    if (rate >= 10)
        return poisson_by_rejection(engine, rate);
    if (rate == 0)
        return 0;
    double least = exp(-rate), product = uniform(engine), count = 0;
    for (; product > least; count++)
        product *= uniform(engine);
    return count;
}

/* fill_poisson(engine, rates, samples) */
static PyObject *fill_poisson(PyObject *const *arguments, const KernelEntry *entry)
{
    uint32_t *engine = engine_of(arguments[0]);
    if (!engine || !PyArray_CheckExact(arguments[1]))
        return DECLINE;
    npy_intp count = PyArray_SIZE((PyArrayObject *)arguments[1]);
    const double *rates = elements_of(arguments[1], NPY_DOUBLE, count);
    double *samples = samples_of(arguments[2], count);
    if (!rates || !samples)
        return DECLINE;
    for (npy_intp i = 0; i < count; i++)
        samples[i] = poisson(engine, rates[i]);
    Py_RETURN_TRUE;
}

typedef struct {
    uint32_t *engine;
    double kept; /* the second normal number of the last pair */
    int has_kept;
} Normals;

static double normal(Normals *from)
{
    if (from->has_kept) {
        from->has_kept = 0;
        return from->kept;
    }
    double angle = 2 * 3.14159265358979323846 * uniform(from->engine), height = uniform(from->engine);
    double radius = sqrt(-2 * log1p(-height));
    from->kept = radius * sin(angle);
    from->has_kept = 1;
    return radius * cos(angle);
}

/* Marsaglia and Tsang's method (2000); a shape below 1 is drawn one higher and scaled down. */
static double gamma_sample(Normals *from, double alpha, double exponent, double d)
{
    double scale = 1;
    if (alpha == 0)
        return 0;
    if (!(d > 0)) /* a negative shape, or NaN: nothing would ever be accepted */
        return NAN;
    if (alpha < 1)
        scale = pow(1 - uniform(from->engine), exponent);
    double c = 1 / sqrt(9 * d);
    for (;;) {
        double x, y;
        do {
            x = normal(from);
            y = 1 + c * x;
        } while (y <= 0);
        double v = y * y * y, u = 1 - uniform(from->engine), xx = x * x;
        if (u < 1 - THIRD_LESS * xx * xx || log(u) < 0.5 * xx + d * (1 - v + log(v)))
            return scale * d * v;
    }
}

/* fill_gamma(engine, alpha, exponent, d, samples, kept): returns the normal number that is left over, or None. */
static PyObject *fill_gamma(PyObject *const *arguments, const KernelEntry *entry)
{
    Normals from = {engine_of(arguments[0]), 0, 0};
    if (!from.engine || !PyArray_CheckExact(arguments[1]))
        return DECLINE;
    npy_intp count = PyArray_SIZE((PyArrayObject *)arguments[1]);
    const double *alpha = elements_of(arguments[1], NPY_DOUBLE, count);
    const double *exponent = elements_of(arguments[2], NPY_DOUBLE, count);
    const double *d = elements_of(arguments[3], NPY_DOUBLE, count);
    double *samples = samples_of(arguments[4], count);
    if (!alpha || !exponent || !d || !samples)
        return DECLINE;
    if (arguments[5] != Py_None) {
        if (!read_number(arguments[5], &from.kept))
            return DECLINE;
        from.has_kept = 1;
    }
    for (npy_intp i = 0; i < count; i++)
        samples[i] = gamma_sample(&from, alpha[i], exponent[i], d[i]);
    return from.has_kept ? PyFloat_FromDouble(from.kept) : Py_NewRef(Py_None);
}

/* What Stirling's formula lacks of log k!. */
static double stirling_tail(double k)
{
    if (k <= 9)
        return lgamma(k + 1) - ((k + 0.5) * log(k + 1) - (k + 1) + 0.5 * log(2 * 3.14159265358979323846));
    double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

typedef struct {
    double trials, p, mean, deviation, odds, middle;
} Binomial;

/* Hörmann's transformed rejection with squeeze (BTRS, 1993). */
static double binomial_by_rejection(uint32_t *engine, Binomial given)
{
    double n = given.trials, m = given.middle, odds = given.odds, b = 1.15 + 2.53 * given.deviation;
    double a = -0.0873 + 0.0248 * b + 0.01 * given.p, c = given.mean + 0.5, v_r = 0.92 - 4.2 / b;
    double alpha = (2.83 + 5.1 / b) * given.deviation;
    for (;;) {
        double u = uniform(engine) - 0.5, v = uniform(engine), us = 0.5 - fabs(u);
        double k = us != 0 ? floor((2 * a / us + b) * u + c) : -1;
        if (us >= 0.07 && v <= v_r)
            return k;
        if (k < 0 || k > n)
            continue;
        double bound = (m + 0.5) * log((m + 1) / (odds * (n - m + 1))) + (n + 1) * log((n - m + 1) / (n - k + 1)) +
                       (k + 0.5) * log(odds * (n - k + 1) / (k + 1)) + stirling_tail(m) + stirling_tail(n - m) -
                       stirling_tail(k) - stirling_tail(n - k);
        if (log(v * alpha / (a / (us * us) + b)) <= bound)
            return k;
    }
}

/* Add geometric waiting times until they exceed the number of trials. */
static double binomial_by_waiting(uint32_t *engine, double trials, double log_failure)
{
    double passed = 0, successes = 0;
    for (;; successes++) {
        double number = uniform(engine);
        passed += number != 0 ? ceil(log(number) / log_failure) : INFINITY;
        if (passed > trials)
            return successes;
    }
}

/* The arithmetic of the arguments is done in their own type, as in PyTorch. */
#define DEFINE_BINOMIAL(NAME, REAL, LOG1P, SQRT, FLOOR)                                                                  \
    static double NAME##_successes(uint32_t *engine, REAL n, REAL p)                                                     \
    {                                                                                                                    \
        REAL one = 1, mean = n * p;                                                                                      \
        if (!(mean >= 10))                                                                                               \
            return binomial_by_waiting(engine, n, LOG1P(-p));                                                            \
        REAL left = one - p, spread = mean * left, ratio = p / left, next = n + one, place = next * p;                   \
        Binomial given = {n, p, mean, SQRT(spread), ratio, FLOOR(place)};                                                \
        return binomial_by_rejection(engine, given);                                                                     \
    }                                                                                                                    \
                                                                                                                         \
    static double NAME(uint32_t *engine, REAL n, REAL p)                                                                 \
    {                                                                                                                    \
        if (n != n || p != p)                                                                                            \
            return NAN;                                                                                                  \
        if (n <= 0 || p <= 0)                                                                                            \
            return 0;                                                                                                    \
        if (p >= 1)                                                                                                      \
            return n;                                                                                                    \
        if (p <= (REAL)0.5)                                                                                              \
            return NAME##_successes(engine, n, p);                                                                       \
        return (double)n - NAME##_successes(engine, n, (REAL)1 - p);                                                     \
    }

DEFINE_BINOMIAL(binomial_single, float, log1pf, sqrtf, floorf)
DEFINE_BINOMIAL(binomial_double, double, log1p, sqrt, floor)

/* fill_binomial(engine, counts, probs, samples) */
static PyObject *fill_binomial(PyObject *const *arguments, const KernelEntry *entry)
{
    uint32_t *engine = engine_of(arguments[0]);
    if (!engine || !is_plain(arguments[1]))
        return DECLINE;
    int type = type_of(arguments[1]);
    npy_intp count = PyArray_SIZE((PyArrayObject *)arguments[1]);
    const void *counts = elements_of(arguments[1], type, count), *probs = elements_of(arguments[2], type, count);
    double *samples = samples_of(arguments[3], count);
    if (!counts || !probs || !samples)
        return DECLINE;
    for (npy_intp i = 0; i < count; i++)
        samples[i] = type == NPY_DOUBLE
                         ? binomial_double(engine, ((const double *)counts)[i], ((const double *)probs)[i])
                         : binomial_single(engine, ((const float *)counts)[i], ((const float *)probs)[i]);
    Py_RETURN_TRUE;
}

const KernelEntry rejection_kernels[] = {
    {"fill_binomial", fill_binomial},
    {"fill_gamma", fill_gamma},
    {"fill_poisson", fill_poisson},
    {NULL},
};
