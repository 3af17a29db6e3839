/* Random numbers: the loops of backend/random, drawn from the memory of NumPy's MT19937.
 *
 * `engine` is an array of 625 words that lies over that memory: the state and the position of the next word in it
 * (Note [Memory of the engine] in backend/random/engine.py). The interpreter's lock is kept while numbers are drawn: it
 * is what keeps threads from drawing the same word twice.
 */
#include "rows.h"

#include "functions.h"
#include "mt19937.h"

#define SOME_WORDS 2048 /* drawn at a time: they stay in the first-level cache */

/* low + u (high - low), rounded once; a number that is rounded up to the open end becomes `low`. */
MULTIVERSIONED static void put_uniform_single(const uint32_t *words, float *to, ptrdiff_t count, float low, float high)
{
    float width = (float)((double)high - low);
    for (ptrdiff_t i = 0; i < count; i++) {
        float value = fmaf(single_uniform_of(words, i), width, low);
        to[i] = value == high ? low : value;
    }
}

MULTIVERSIONED static void put_uniform_double(const uint32_t *words, double *to, ptrdiff_t count, double low, double high)
{
    double width = high - low;
    for (ptrdiff_t i = 0; i < count; i++) {
        double value = fma(uniform_of(words, i), width, low);
        to[i] = value == high ? low : value;
    }
}

static void draw_uniform(uint32_t *engine, void *to, ptrdiff_t count, int wide, double low, double high)
{
    uint32_t words[SOME_WORDS];
    for (ptrdiff_t done = 0; done < count;) {
        ptrdiff_t most = wide ? SOME_WORDS / 2 : SOME_WORDS, some = count - done < most ? count - done : most;
        draw_words(engine, words, wide ? 2 * some : some);
        if (wide)
            put_uniform_double(words, (double *)to + done, some, low, high);
        else
            put_uniform_single(words, (float *)to + done, some, (float)low, (float)high);
        done += some;
    }
}

/* Cephes' logarithm with fused multiply-add, as PyTorch's vectors have it; x in (0, 1]. */
INLINE float cephes_logf(float x)
{
    uint32_t bits = bits_of_float(x);
    float fraction = float_of_bits((bits & 0x7fffffu) | 0x3f000000u);
    int32_t is_small = fraction < 0.707106781186547524f;
    float e = (float)((int32_t)(bits >> 23) - 126 - is_small);
    float m = (is_small ? fraction + fraction : fraction) - 1.0f;
    float square = m * m, p = fmaf(7.0376836292e-2f, m, -1.1514610310e-1f);
    p = fmaf(p, m, 1.1676998740e-1f);
    p = fmaf(p, m, -1.2420140846e-1f);
    p = fmaf(p, m, 1.4249322787e-1f);
    p = fmaf(p, m, -1.6668057665e-1f);
    p = fmaf(p, m, 2.0000714765e-1f);
    p = fmaf(p, m, -2.4999993993e-1f);
    p = fmaf(p, m, 3.3333331174e-1f);
    float cubic = p * m, low = e * -2.12194440e-4f;
    float tail = fmaf(square, -0.5f, fmaf(cubic, square, low));
    return fmaf(e, 0.693359375f, m + tail);
}

/* Cephes' sine and cosine of x >= 0: polynomials on [-pi/4, pi/4], exchanged and negated by the octant. */
INLINE void cephes_sincosf(float x, float *sine, float *cosine)
{
    int32_t octant = ((int32_t)(x * 1.27323954473516f) + 1) & ~1;
    float whole = (float)octant;
    float r = fmaf(whole, -0.78515625f, x);
    r = fmaf(whole, -2.4187564849853515625e-4f, r);
    r = fmaf(whole, -3.77489497744594108e-8f, r);
    float square = r * r;
    float even = fmaf(fmaf(2.443315711809948e-5f, square, -1.388731625493765e-3f), square,
                                4.166664568298827e-2f) * square;
    even = fmaf(even, square, -0.5f * square) + 1.0f;
    float odd = fmaf(fmaf(-1.9515295891e-4f, square, 8.3321608736e-3f), square, -1.6666654611e-1f) *
                square;
    odd = fmaf(odd, r, r);
    uint32_t swap = -(uint32_t)(octant >> 1 & 1), even_bits = bits_of_float(even), odd_bits = bits_of_float(odd);
    uint32_t difference = (even_bits ^ odd_bits) & swap;
    *sine = float_of_bits(odd_bits ^ difference ^ (uint32_t)(octant & 4) << 29);
    *cosine = float_of_bits(even_bits ^ difference ^ (uint32_t)((octant + 2) & 4) << 29);
}

/* Box and Muller's transform of blocks of 16: eight radii, then eight angles, become cosines, then sines. */
MULTIVERSIONED static void make_normal_single(float *values, ptrdiff_t blocks, float mean, float std)
{
    for (ptrdiff_t b = 0; b < blocks; b++, values += 16) {
        float sines[8], cosines[8];
        for (int i = 0; i < 8; i++) {
            float radius = sqrtf(-2.0f * cephes_logf(1.0f - values[i])), sine, cosine;
            cephes_sincosf(6.283185307179586f * values[i + 8], &sine, &cosine);
            float along = radius * cosine, across = radius * sine;
            cosines[i] = fmaf(along, std, mean);
            sines[i] = fmaf(across, std, mean);
        }
        memcpy(values, cosines, sizeof cosines);
        memcpy(values + 8, sines, sizeof sines);
    }
}

static void make_normal_double(double *values, ptrdiff_t blocks, double mean, double std)
{
    for (ptrdiff_t b = 0; b < blocks; b++, values += 16)
        for (int i = 0; i < 8; i++) {
            double radius = sqrt(-2.0 * log(1.0 - values[i])), angle = 2 * 3.14159265358979323846 * values[i + 8];
            values[i] = fma(radius * cos(angle), std, mean);
            values[i + 8] = fma(radius * sin(angle), std, mean);
        }
}

static void make_normal(void *values, ptrdiff_t blocks, int wide, double mean, double std)
{
    if (wide)
        make_normal_double(values, blocks, mean, std);
    else
        make_normal_single(values, blocks, (float)mean, (float)std);
}

/* 16 or more numbers; a ragged end is the last 16 drawn anew. */
static void draw_normal(uint32_t *engine, char *values, ptrdiff_t count, int wide, double mean, double std)
{
    draw_uniform(engine, values, count, wide, 0, 1);
    if (count % 16 == 0) {
        make_normal(values, count / 16, wide, mean, std);
        return;
    }
    ptrdiff_t item = wide ? sizeof(double) : sizeof(float);
    char *last = values + (count - 16) * item;
    make_normal(values, count / 16, wide, mean, std);
    draw_uniform(engine, last, 16, wide, 0, 1);
    make_normal(last, 1, wide, mean, std);
}

#define NUMBERS 512 /* of 64 bits at a time */

MULTIVERSIONED static void put_exponential_single(const uint32_t *words, float *to, ptrdiff_t count, double factor)
{
    for (ptrdiff_t i = 0; i < count; i++)
        to[i] = (float)(factor * fast_log1p(-uniform_of(words, i)));
}

static void put_exponential_double(const uint32_t *words, double *to, ptrdiff_t count, double factor)
{
    for (ptrdiff_t i = 0; i < count; i++)
        to[i] = factor * log1p(-uniform_of(words, i));
}

MULTIVERSIONED static void put_bernoulli_single(const uint32_t *words, float *to, ptrdiff_t count, uint64_t below,
                                                float success)
{
    for (ptrdiff_t i = 0; i < count; i++)
        to[i] = (joined(words, i) & 0x1fffffffffffffull) < below ? success : 0;
}

MULTIVERSIONED static void put_bernoulli_double(const uint32_t *words, double *to, ptrdiff_t count, uint64_t below,
                                                double success)
{
    for (ptrdiff_t i = 0; i < count; i++)
        to[i] = (joined(words, i) & 0x1fffffffffffffull) < below ? success : 0;
}

/* The words of an engine; NULL where there is none. */
static uint32_t *engine_of(PyObject *object)
{
    if (!object || !PyArray_CheckExact(object) || type_of(object) != NPY_UINT32 ||
        !PyArray_ISCARRAY((PyArrayObject *)object) || size_of(object) != STATE_WORDS + 1)
        return NULL;
    return data_of(object);
}

/* Whether numbers can be written to memory in its order. */
static int is_target(PyObject *object)
{
    return object && is_plain(object) && PyArray_ISWRITEABLE((PyArrayObject *)object);
}

/* fill_uniform(engine, target, low, high) */
static PyObject *fill_uniform(PyObject *const *arguments, const KernelEntry *entry)
{
    double low, high;
    uint32_t *engine = engine_of(arguments[0]);
    if (!engine || !is_target(arguments[1]) || !read_number(arguments[2], &low) || !read_number(arguments[3], &high))
        return DECLINE;
    draw_uniform(engine, data_of(arguments[1]), size_of(arguments[1]), type_of(arguments[1]) == NPY_DOUBLE, low, high);
    Py_RETURN_TRUE;
}

/* fill_normal(engine, target, mean, std) */
static PyObject *fill_normal(PyObject *const *arguments, const KernelEntry *entry)
{
    double mean, std;
    uint32_t *engine = engine_of(arguments[0]);
    if (!engine || !is_target(arguments[1]) || size_of(arguments[1]) < 16 || !read_number(arguments[2], &mean) ||
        !read_number(arguments[3], &std))
        return DECLINE;
    draw_normal(engine, data_of(arguments[1]), size_of(arguments[1]), type_of(arguments[1]) == NPY_DOUBLE, mean, std);
    Py_RETURN_TRUE;
}

static void put_normal(PyObject *target, ptrdiff_t i, double value, double mean, double std)
{
    double scaled = fma(value, std, mean);
    if (type_of(target) == NPY_DOUBLE)
        ((double *)data_of(target))[i] = scaled;
    else
        ((float *)data_of(target))[i] = (float)scaled;
}

/* fill_normal_pairs(engine, target, kept, mean, std): numbers in pairs, beginning with the one that was kept back, if
 * any; returns the one that is left over, or None. */
static PyObject *fill_normal_pairs(PyObject *const *arguments, const KernelEntry *entry)
{
    double kept = 0, mean, std;
    uint32_t *engine = engine_of(arguments[0]), words[4];
    if (!engine || !is_target(arguments[1]) || !(is_none(arguments[2]) || read_number(arguments[2], &kept)) ||
        !read_number(arguments[3], &mean) || !read_number(arguments[4], &std))
        return DECLINE;
    int has_kept = arguments[2] != Py_None;
    ptrdiff_t count = size_of(arguments[1]);
    for (ptrdiff_t i = 0; i < count; i++) {
        if (has_kept) {
            put_normal(arguments[1], i, kept, mean, std);
            has_kept = 0;
            continue;
        }
        draw_words(engine, words, 4);
        double angle = 2 * 3.14159265358979323846 * uniform_of(words, 0);
        double radius = sqrt(-2.0 * log1p(-uniform_of(words, 1)));
        put_normal(arguments[1], i, radius * cos(angle), mean, std);
        kept = radius * sin(angle);
        has_kept = 1;
    }
    return has_kept ? PyFloat_FromDouble(kept) : Py_NewRef(Py_None);
}

/* fill_exponential(engine, target, lambd) */
static PyObject *fill_exponential(PyObject *const *arguments, const KernelEntry *entry)
{
    double lambda;
    uint32_t *engine = engine_of(arguments[0]), words[2 * NUMBERS];
    if (!engine || !is_target(arguments[1]) || !read_number(arguments[2], &lambda))
        return DECLINE;
    ptrdiff_t count = size_of(arguments[1]);
    for (ptrdiff_t done = 0; done < count; done += NUMBERS) {
        ptrdiff_t some = count - done < NUMBERS ? count - done : NUMBERS;
        draw_words(engine, words, 2 * some);
        if (type_of(arguments[1]) == NPY_DOUBLE)
            put_exponential_double(words, (double *)data_of(arguments[1]) + done, some, -1.0 / lambda);
        else
            put_exponential_single(words, (float *)data_of(arguments[1]) + done, some, -1.0 / lambda);
    }
    Py_RETURN_TRUE;
}

/* fill_bernoulli(engine, target, p, success): `success` with probability p, else 0. */
static PyObject *fill_bernoulli(PyObject *const *arguments, const KernelEntry *entry)
{
    double p, success;
    uint32_t *engine = engine_of(arguments[0]), words[2 * NUMBERS];
    if (!engine || !is_target(arguments[1]) || !read_number(arguments[2], &p) || !read_number(arguments[3], &success))
        return DECLINE;
    ptrdiff_t count = size_of(arguments[1]);
    uint64_t below = (uint64_t)ceil(p * 0x1p53);
    for (ptrdiff_t done = 0; done < count; done += NUMBERS) {
        ptrdiff_t some = count - done < NUMBERS ? count - done : NUMBERS;
        draw_words(engine, words, 2 * some);
        if (type_of(arguments[1]) == NPY_DOUBLE)
            put_bernoulli_double(words, (double *)data_of(arguments[1]) + done, some, below, success);
        else
            put_bernoulli_single(words, (float *)data_of(arguments[1]) + done, some, below, (float)success);
    }
    Py_RETURN_TRUE;
}

static int is_array_of(PyObject *object, int type)
{
    return object && PyArray_CheckExact(object) && type_of(object) == type && PyArray_ISCARRAY((PyArrayObject *)object);
}

/* fill_words(engine, target): words of 32 or of 64 bits. */
static PyObject *fill_words(PyObject *const *arguments, const KernelEntry *entry)
{
    uint32_t *engine = engine_of(arguments[0]), words[2 * NUMBERS];
    if (!engine || !PyArray_CheckExact(arguments[1]))
        return DECLINE;
    ptrdiff_t count = size_of(arguments[1]);
    if (is_array_of(arguments[1], NPY_UINT32)) {
        draw_words(engine, data_of(arguments[1]), count);
        Py_RETURN_TRUE;
    }
    if (!is_array_of(arguments[1], NPY_UINT64))
        return DECLINE;
    uint64_t *to = data_of(arguments[1]);
    for (ptrdiff_t done = 0; done < count; done += NUMBERS) {
        ptrdiff_t some = count - done < NUMBERS ? count - done : NUMBERS;
        draw_words(engine, words, 2 * some);
        for (ptrdiff_t i = 0; i < some; i++)
            to[done + i] = joined(words, i);
    }
    Py_RETURN_TRUE;
}

/* fill_integers(engine, target, first, width): int64 from `first` on, of a width below 2**28. */
static PyObject *fill_integers(PyObject *const *arguments, const KernelEntry *entry)
{
    long first, width;
    uint32_t *engine = engine_of(arguments[0]), words[SOME_WORDS];
    if (!engine || !is_array_of(arguments[1], NPY_INT64) || !read_integer(arguments[2], -(1L << 30), 1L << 30, &first) ||
        !read_integer(arguments[3], 1, (1L << 28) - 1, &width))
        return DECLINE;
    int64_t *to = data_of(arguments[1]);
    ptrdiff_t count = size_of(arguments[1]);
    for (ptrdiff_t done = 0; done < count; done += SOME_WORDS) {
        ptrdiff_t some = count - done < SOME_WORDS ? count - done : SOME_WORDS;
        draw_words(engine, words, some);
        for (ptrdiff_t i = 0; i < some; i++)
            to[done + i] = first + (int64_t)(words[i] % (uint32_t)width);
    }
    Py_RETURN_TRUE;
}

/* fill_permutation(engine, target): 0 to n - 1 in int64, each exchanged with one at or after it. */
static PyObject *fill_permutation(PyObject *const *arguments, const KernelEntry *entry)
{
    uint32_t *engine = engine_of(arguments[0]), words[SOME_WORDS];
    if (!engine || !is_array_of(arguments[1], NPY_INT64))
        return DECLINE;
    int64_t *to = data_of(arguments[1]);
    ptrdiff_t count = size_of(arguments[1]);
    for (ptrdiff_t i = 0; i < count; i++)
        to[i] = i;
    for (ptrdiff_t done = 0; done < count - 1; done += SOME_WORDS) {
        ptrdiff_t some = count - 1 - done < SOME_WORDS ? count - 1 - done : SOME_WORDS;
        draw_words(engine, words, some);
        for (ptrdiff_t i = done; i < done + some; i++) {
            ptrdiff_t other = i + words[i - done] % (uint32_t)(count - i);
            int64_t kept = to[i];
            to[i] = to[other];
            to[other] = kept;
        }
    }
    Py_RETURN_TRUE;
}

const KernelEntry random_kernels[] = {
    {"fill_bernoulli", fill_bernoulli},
    {"fill_exponential", fill_exponential},
    {"fill_integers", fill_integers},
    {"fill_normal", fill_normal},
    {"fill_normal_pairs", fill_normal_pairs},
    {"fill_permutation", fill_permutation},
    {"fill_uniform", fill_uniform},
    {"fill_words", fill_words},
    {NULL},
};
