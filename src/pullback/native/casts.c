/* Casts between float32 and the floats of 16 bits, which NumPy converts one by one.
 *
 * All are selections between whole numbers, so that the compiler makes vectors of them. float16 has 5 bits of exponent and
 * 10 of fraction, bfloat16 the upper half of float32. Rounding is to the nearest, ties to even.
 */
#include "casts.h"

#include <string.h>

#include "functions.h"
#include "instruction_set.h"
#ifdef HAS_INSTRUCTION_SETS
#include <immintrin.h>
#endif

#define SHARE 65536

MULTIVERSIONED void single_to_half(const float *restrict from, uint16_t *restrict to, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        uint32_t bits = bits_of_float(from[i]), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
        uint32_t rounded = (size + 0xfff + (size >> 13 & 1) - (112u << 23)) >> 13;
        /* Below 2^-14 the last place is 2^-24, which is that of float32 from 0.5 to 1: adding 0.5 rounds to it. */
        uint32_t tiny = bits_of_float(float_of_bits(size) + 0.5f) - bits_of_float(0.5f);
        uint32_t result = size < 0x38800000 ? tiny : rounded;
        result = size >= 0x477ff000 ? 0x7c00 : result; /* from 65520 on */
        result = size > 0x7f800000 ? 0x7e00 | (size >> 13 & 0x3ff) : result;
        to[i] = (uint16_t)(sign | result);
    }
}

MULTIVERSIONED void half_to_single(const uint16_t *restrict from, float *restrict to, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        uint32_t sign = (uint32_t)(from[i] & 0x8000) << 16, size = (uint32_t)(from[i] & 0x7fff) << 13;
        uint32_t normal = size + (112u << 23);
        uint32_t tiny = bits_of_float(float_of_bits(size + (113u << 23)) - float_of_bits(113u << 23));
        uint32_t result = size < 1u << 23 ? tiny : normal;
        result = size >= 31u << 23 ? size + (224u << 23) : result; /* infinite, or NaN */
        to[i] = float_of_bits(sign | result);
    }
}

#ifdef HAS_INSTRUCTION_SETS
/* Processors with AVX2 have instructions for it, eight numbers at a time; how many were converted. */
__attribute__((target("avx2,f16c"))) static ptrdiff_t singles_to_halves(const float *from, uint16_t *to, ptrdiff_t count)
{
    ptrdiff_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
    return i;
}

__attribute__((target("avx2,f16c"))) static ptrdiff_t halves_to_singles(const uint16_t *from, float *to, ptrdiff_t count)
{
    ptrdiff_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
    return i;
}
#endif

static void to_halves(const float *from, uint16_t *to, ptrdiff_t count)
{
    ptrdiff_t done = 0;
#ifdef HAS_INSTRUCTION_SETS
    if (instruction_set() >= 3)
        done = singles_to_halves(from, to, count);
#endif
    single_to_half(from + done, to + done, count - done);
}

static void from_halves(const uint16_t *from, float *to, ptrdiff_t count)
{
    ptrdiff_t done = 0;
#ifdef HAS_INSTRUCTION_SETS
    if (instruction_set() >= 3)
        done = halves_to_singles(from, to, count);
#endif
    half_to_single(from + done, to + done, count - done);
}

MULTIVERSIONED void single_to_bfloat16(const float *restrict from, uint16_t *restrict to, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        uint32_t bits = bits_of_float(from[i]), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        to[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? (bits >> 16 & 0x8000) | 0x7fc0 : rounded);
    }
}

MULTIVERSIONED void bfloat16_to_single(const uint16_t *restrict from, float *restrict to, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++)
        to[i] = float_of_bits((uint32_t)from[i] << 16);
}

/* bfloat16 is not a type of NumPy: it is known by its name, and by its number from then on. */
FloatKind float_kind(const PyArray_Descr *descr)
{
    static int bfloat16 = -1;
    if (descr->type_num == NPY_FLOAT)
        return SINGLE;
    if (descr->type_num == NPY_DOUBLE)
        return WIDE;
    if (descr->type_num == NPY_HALF)
        return HALF;
    if (descr->type_num < NPY_USERDEF)
        return NO_FLOAT;
    if (bfloat16 < 0) {
        const char *name = descr->typeobj->tp_name, *dot = strrchr(name, '.');
        if (!strcmp(dot ? dot + 1 : name, "bfloat16"))
            bfloat16 = descr->type_num;
    }
    return descr->type_num == bfloat16 ? BFLOAT16 : NO_FLOAT;
}

void widen_floats(FloatKind kind, const void *from, float *to, ptrdiff_t count)
{
    (kind == HALF ? from_halves : bfloat16_to_single)(from, to, count);
}

void narrow_floats(FloatKind kind, const float *from, void *to, ptrdiff_t count)
{
    (kind == HALF ? to_halves : single_to_bfloat16)(from, to, count);
}

typedef struct {
    FloatKind from_kind, to_kind;
    const char *from;
    char *to;
} Cast;

static void cast_range(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Cast *cast = context;
    ptrdiff_t count = end - begin;
    if (cast->from_kind == SINGLE)
        narrow_floats(cast->to_kind, (const float *)(const void *)cast->from + begin, cast->to + 2 * begin, count);
    else
        widen_floats(cast->from_kind, cast->from + 2 * begin, (float *)(void *)cast->to + begin, count);
}

/* cast_half(array, dtype) */
static PyObject *cast_half(PyObject *const *arguments, const KernelEntry *entry)
{
    if (!PyArray_CheckExact(arguments[0]) || !PyArray_DescrCheck(arguments[1]))
        return DECLINE;
    PyArrayObject *array = (PyArrayObject *)arguments[0];
    PyArray_Descr *wanted = (PyArray_Descr *)arguments[1];
    Cast cast = {float_kind(PyArray_DESCR(array)), float_kind(wanted), PyArray_BYTES(array), NULL};
    int narrows = cast.from_kind == SINGLE && cast.to_kind >= HALF, widens = cast.from_kind >= HALF && cast.to_kind == SINGLE;
    if ((!narrows && !widens) || !PyArray_ISCARRAY_RO(array) || wanted->byteorder == '>')
        return DECLINE;
    Py_INCREF(wanted);
    PyObject *result = PyArray_NewFromDescr(&PyArray_Type, wanted, PyArray_NDIM(array), PyArray_DIMS(array), NULL, NULL,
                                            0, NULL);
    if (!result)
        return NULL;
    cast.to = PyArray_BYTES((PyArrayObject *)result);
    npy_intp count = PyArray_SIZE(array);
    run_unlocked((double)count, count, SHARE, cast_range, &cast);
    return result;
}

const KernelEntry cast_kernels[] = {
    {"cast_half", cast_half},
    {NULL},
};
