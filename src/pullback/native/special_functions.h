/* Functions of one or two numbers that are rarer than those of functions.h, for the same loops and with the same care:
 * remainders, the complementary error function and its inverse, hypot, log(exp + exp), sine of multiples of pi, lgamma.
 *
 * float32 goes through float64 where that is what makes a result exact enough. float64 is left to the Python kernel where more
 * digits would take branches (erfc, erfinv, lgamma). The polynomials are close to the best of their degree (Chebyshev).
 */
#ifndef PULLBACK_SPECIAL_FUNCTIONS_H
#define PULLBACK_SPECIAL_FUNCTIONS_H

#include <float.h>

#include "functions.h"

/* Remainders are right up to this quotient; loops hand what is beyond it to libm. Up to there the quotient, rounded
 * towards zero, is the true one or one more, and what is left after one fused step is exact. */
#define LARGEST_QUOTIENT(x) _Generic((x), float: 4194304.0f, default: 1125899906842624.0)

INLINE float fast_fmodf(float a, float b)
{
    float quotient = truncf(a / b), r = __builtin_fmaf(-quotient, b, a), size = fabsf(b);
    float positive = a < 0.0f ? -r : r; /* below zero where the quotient was one too many */
    positive = positive < 0.0f ? positive + size : positive;
    return size == INFINITY && fabsf(a) < INFINITY ? a : copysignf(positive, a);
}

INLINE double fast_fmod(double a, double b)
{
    double quotient = trunc(a / b), r = __builtin_fma(-quotient, b, a), size = fabs(b);
    double positive = a < 0.0 ? -r : r;
    positive = positive < 0.0 ? positive + size : positive;
    return size == (double)INFINITY && fabs(a) < (double)INFINITY ? a : copysign(positive, a);
}

/* The remainder with the sign of the divisor, given the one with the sign of the dividend. */
#define REMAINDER_OF(rest, b, copied)                                                                                 \
    ((rest) == 0 ? ((b) == 0 ? NAN : copied(0, b)) : ((rest) < 0) != ((b) < 0) ? (rest) + (b) : (rest))

INLINE float remainder_fromf(float rest, float b) { return REMAINDER_OF(rest, b, copysignf); }
INLINE double remainder_from(double rest, double b) { return REMAINDER_OF(rest, b, copysign); }

/* The quotient rounded down: that of what the remainder leaves is near a whole number. */
INLINE float floor_quotientf(float a, float b, float rest)
{
    float quotient = (a - rest) / b - (rest != 0.0f && (rest < 0.0f) != (b < 0.0f) ? 1.0f : 0.0f), down = floorf(quotient);
    down += quotient - down > 0.5f ? 1.0f : 0.0f;
    return b == 0.0f ? a / b : quotient == 0.0f ? copysignf(0.0f, a / b) : down;
}

INLINE double floor_quotient(double a, double b, double rest)
{
    double quotient = (a - rest) / b - (rest != 0.0 && (rest < 0.0) != (b < 0.0) ? 1.0 : 0.0), down = floor(quotient);
    down += quotient - down > 0.5 ? 1.0 : 0.0;
    return b == 0.0 ? a / b : quotient == 0.0 ? copysign(0.0, a / b) : down;
}

/* log(exp(a) + exp(b)); of two equal infinities the difference is no number. */
INLINE float fast_logaddexpf(float a, float b)
{
    float distance = fabsf(a - b), larger = maximumf(a, b);
    return a == b ? a + 0.693147181f : larger + fast_log1pf(fast_expf(-distance));
}

INLINE double fast_logaddexp(double a, double b)
{
    double distance = fabs(a - b), larger = maximum(a, b);
    return a == b ? a + 0.69314718055994531 : larger + fast_log1p(fast_exp(-distance));
}

/* An infinity wins over NaN. */
INLINE float fast_hypotf(float a, float b)
{
    double x = a, y = b;
    float value = (float)sqrt(x * x + y * y);
    return fabsf(a) == INFINITY || fabsf(b) == INFINITY ? INFINITY : value;
}

/* Scaled by powers of two, so that no square overflows or is subnormal. */
INLINE double fast_hypot(double a, double b)
{
    double x = fabs(a), y = fabs(b), larger = x > y ? x : y;
    double down = larger > 1e150 ? 0x1p-600 : larger < 1e-140 ? 0x1p600 : 1.0;
    double up = larger > 1e150 ? 0x1p600 : larger < 1e-140 ? 0x1p-600 : 1.0;
    double value = sqrt((x * down) * (x * down) + (y * down) * (y * down)) * up;
    return x == (double)INFINITY || y == (double)INFINITY ? (double)INFINITY : value;
}

/* erfc(y) = exp(-y^2) Q(t) / (1 + 2 y) for y >= 0, t = (y - 2.5) / (y + 2.5); in float64 the square is exact. */
INLINE float fast_erfcf(float x)
{
    double y = fabsf(x) > 11.0f ? 11.0 : fabsf(x), t = (y - 2.5) / (y + 2.5);
    double q = 7.60477203314293912e-05;
    q = q * t + 6.04349864581658230e-04;
    q = q * t + 3.35668913234650457e-04;
    q = q * t - 4.41657737818088817e-03;
    q = q * t + 9.85495730917284891e-04;
    q = q * t + 3.27777230389209029e-02;
    q = q * t - 1.02974850534813991e-01;
    q = q * t + 1.57627620172725275e-01;
    q = q * t - 9.90241162011956944e-02;
    q = q * t - 1.22356685117166950e-01;
    q = q * t + 1.26483818030131379e+00;
    double value = fast_exp(-y * y) * q / (1.0 + 2.0 * y);
    return (float)(x < 0.0f ? 2.0 - value : value);
}

/* erfinv(y) = y P(w) with w = -log(1 - y^2); for large w, P is a polynomial in its root. */
INLINE float fast_erfinvf(float x)
{
    float w = -fast_logf((1.0f - x) * (1.0f + x)), u = w - 3.125f, v = sqrtf(w) - 3.25f;
    float near = 2.357528333e-12f;
    near = near * u + 6.676776081e-10f;
    near = near * u - 4.662827472e-09f;
    near = near * u - 2.490256010e-08f;
    near = near * u + 4.261012552e-07f;
    near = near * u - 1.386396879e-06f;
    near = near * u - 1.388833295e-05f;
    near = near * u + 1.867818532e-04f;
    near = near * u - 7.406977486e-04f;
    near = near * u - 6.033710642e-03f;
    near = near * u + 2.401581818e-01f;
    near = near * u + 1.653654568e+00f;
    float far = 5.178542120e-05f;
    far = far * v - 3.712777082e-05f;
    far = far * v - 3.225805863e-04f;
    far = far * v + 9.827618271e-04f;
    far = far * v - 1.703711000e-03f;
    far = far * v + 2.485409153e-03f;
    far = far * v - 3.748638193e-03f;
    far = far * v + 5.371366775e-03f;
    far = far * v + 1.005258855e+00f;
    far = far * v + 3.083885605e+00f;
    float value = x * (w < 6.25f ? near : far);
    return fabsf(x) == 1.0f ? x * INFINITY : value;
}

/* sin(pi x): the nearest half is taken off exactly. Large numbers are even. */
INLINE float fast_sin_pif(float x)
{
    float y = fabsf(x) > 33554432.0f && fabsf(x) < INFINITY ? 0.0f : x;
    float n = rintf(2.0f * y), quarter = n - 4.0f * floorf(0.25f * n);
    float r = (float)((double)(y - 0.5f * n) * 3.14159265358979324), z = r * r;
    float value = quarter == 1.0f || quarter == 3.0f ? cosine_of_quarterf(z) : sine_of_quarterf(r, z);
    return quarter >= 2.0f ? -value : value;
}

INLINE double fast_sin_pi(double x)
{
    double y = fabs(x) > 18014398509481984.0 && fabs(x) < (double)INFINITY ? 0.0 : x;
    double n = rint(2.0 * y), quarter = n - 4.0 * floor(0.25 * n);
    double r = (y - 0.5 * n) * 3.14159265358979324, z = r * r;
    double value = quarter == 1.0 || quarter == 3.0 ? cosine_of_quarter(z) : sine_of_quarter(r, z);
    return quarter >= 2.0 ? -value : value;
}

INLINE float fast_sincf(float x) { return x == 0.0f ? 1.0f : (float)(fast_sin_pif(x) / (3.14159265358979324 * x)); }
INLINE double fast_sinc(double x) { return x == 0.0 ? 1.0 : fast_sin_pi(x) / (3.14159265358979324 * x); }

/* log |gamma(x)|: Stirling's series from 8 on, where smaller numbers are brought by a product; negative ones by
 * gamma(x) gamma(-x) = -pi / (x sin(pi x)). What cancels near the zeros is below the digits of float32. */
INLINE float fast_lgammaf(float x)
{
    double y = fabsf(x), product = ((y * (y + 1.0)) * ((y + 2.0) * (y + 3.0))) * (((y + 4.0) * (y + 5.0)) * ((y + 6.0) * (y + 7.0)));
    int small = y < 8.0;
    double z = small ? y + 8.0 : y, i = 1.0 / z, s = i * i;
    product = small ? product : 1.0;
    double series = 6.41025641025641026e-03;
    series = series * s - 1.91752691752691753e-03;
    series = series * s + 8.41750841750841751e-04;
    series = series * s - 5.95238095238095238e-04;
    series = series * s + 7.93650793650793651e-04;
    series = series * s - 2.77777777777777778e-03;
    series = series * s + 8.33333333333333333e-02;
    double value = (z - 0.5) * fast_log(z) - z + 0.91893853320467274 + series * i;
    double reflected = 3.14159265358979324 * product / fabs(y * fast_sin_pi(y));
    double logarithm = fast_log(x < 0.0f ? reflected : product);
    float result = (float)(x < 0.0f ? logarithm - value : value - logarithm);
    return fabsf(x) == INFINITY ? INFINITY : result;
}

#define libm_fmod_of(a, b) _Generic((a), float: fmodf, default: fmod)(a, b)
#define fmod_of(a, b) _Generic((a), float: fast_fmodf, default: fast_fmod)(a, b)
#define remainder_from_of(rest, b) _Generic((rest), float: remainder_fromf, default: remainder_from)(rest, b)
#define floor_quotient_of(a, b, rest) _Generic((a), float: floor_quotientf, default: floor_quotient)(a, b, rest)
#define logaddexp_of(a, b) _Generic((a), float: fast_logaddexpf, default: fast_logaddexp)(a, b)
#define hypot_of(a, b) _Generic((a), float: fast_hypotf, default: fast_hypot)(a, b)
#define sinc_of(x) _Generic((x), float: fast_sincf, default: fast_sinc)(x)
#define erfc_of(x) fast_erfcf(x)
#define erfinv_of(x) fast_erfinvf(x)
#define lgamma_of(x) fast_lgammaf(x)
/* The largest number of the type of x. */
#define largest_like(x) _Generic((x), float: FLT_MAX, default: DBL_MAX)

#endif
