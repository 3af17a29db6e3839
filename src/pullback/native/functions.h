/* Elementary functions of one number, for loops that the compiler vectorises: no calls, no branches, no tables.
 *
 * libm's functions are calls, which stop vectorisation. Each function here says how accurate it is against a
 * higher-precision reference (tests/native), and keeps NaN, infinities, signed zeros and subnormal results.
 * Suffix `f` is float32, none is float64.
 */
#ifndef PULLBACK_FUNCTIONS_H
#define PULLBACK_FUNCTIONS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernel.h"

INLINE float float_of_bits(int32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

INLINE double double_of_bits(int64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* exp(x) = 2^n * exp(r), |r| <= log(2)/2, n split in two so that subnormal results are scaled in two steps. */
INLINE float fast_expf(float x)
{
    float limited = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x; /* NaN stays */
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to a whole number */
    float n = (limited * 1.44269504088896341f + shift) - shift;
    float r = (limited - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    int32_t whole = (int32_t)(n == n ? n : 0.0f), half = whole >> 1;
    return p * float_of_bits((half + 127) << 23) * float_of_bits((whole - half + 127) << 23);
}

#endif
