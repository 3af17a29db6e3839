/* Elementary functions of one number, for loops that the compiler vectorises: no calls, no branches, no tables.
 *
 * libm's functions are calls, which stop vectorisation. Each function of float32 is within 1 unit in the last place of the
 * true value, those of float64 within 2.5 and most within 1.5 (tests/native/test_functions.py measures
 * it); all keep NaN, infinities, signed zeros and subnormal numbers. Suffix `f` is float32, none is float64; `exp_of(x)` and
 * its like choose by the type of x, for texts that are compiled once for each. The polynomials are of least greatest error
 * in the result, or interpolated at Chebyshev nodes, which is close to it.
 */
#ifndef PULLBACK_FUNCTIONS_H
#define PULLBACK_FUNCTIONS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernel.h"

/* The same bits as another type. */
#define SAME_BITS(name, FROM, TO)                                                                                      \
    INLINE TO name(FROM from)                                                                                          \
    {                                                                                                                  \
        TO to;                                                                                                         \
        memcpy(&to, &from, sizeof to);                                                                                 \
        return to;                                                                                                     \
    }
SAME_BITS(float_of_bits, uint32_t, float)
SAME_BITS(bits_of_float, float, uint32_t)
SAME_BITS(double_of_bits, uint64_t, double)
SAME_BITS(bits_of_double, double, uint64_t)

/* Adding 1.5 * 2^(bits of the mantissa) rounds to a whole number, which then stands in the lowest bits. */
#define SHIFTF 12582912.0f
#define SHIFT 6755399441055744.0

/* log(2) in two parts, the first short enough that its product with an exponent is exact. */
#define LOG2_HIGHF 6.93145751953125e-1f
#define LOG2_LOWF 1.42860682e-6f
#define LOG2_HIGH 6.93147180601954460e-1
#define LOG2_LOW -4.20091507268108460e-11

/* The polynomial in x with these coefficients, that of the highest power first, by Horner's rule. */
#define POLYNOMIAL_2(x, p, c) ((p) * x + (c))
#define POLYNOMIAL_3(x, p, c, ...) POLYNOMIAL_2(x, (p) * x + (c), __VA_ARGS__)
#define POLYNOMIAL_4(x, p, c, ...) POLYNOMIAL_3(x, (p) * x + (c), __VA_ARGS__)
#define POLYNOMIAL_5(x, p, c, ...) POLYNOMIAL_4(x, (p) * x + (c), __VA_ARGS__)
#define POLYNOMIAL_6(x, p, c, ...) POLYNOMIAL_5(x, (p) * x + (c), __VA_ARGS__)
#define POLYNOMIAL_7(x, p, c, ...) POLYNOMIAL_6(x, (p) * x + (c), __VA_ARGS__)
#define POLYNOMIAL_8(x, p, c, ...) POLYNOMIAL_7(x, (p) * x + (c), __VA_ARGS__)
#define POLYNOMIAL_9(x, p, c, ...) POLYNOMIAL_8(x, (p) * x + (c), __VA_ARGS__)
#define POLYNOMIAL_10(x, p, c, ...) POLYNOMIAL_9(x, (p) * x + (c), __VA_ARGS__)
#define POLYNOMIAL_11(x, p, c, ...) POLYNOMIAL_10(x, (p) * x + (c), __VA_ARGS__)
#define POLYNOMIAL_12(x, p, c, ...) POLYNOMIAL_11(x, (p) * x + (c), __VA_ARGS__)
#define POLYNOMIAL_13(x, p, c, ...) POLYNOMIAL_12(x, (p) * x + (c), __VA_ARGS__)
#define POLYNOMIAL_14(x, p, c, ...) POLYNOMIAL_13(x, (p) * x + (c), __VA_ARGS__)
#define POLYNOMIAL_15(x, p, c, ...) POLYNOMIAL_14(x, (p) * x + (c), __VA_ARGS__)
#define POLYNOMIAL_16(x, p, c, ...) POLYNOMIAL_15(x, (p) * x + (c), __VA_ARGS__)
#define POLYNOMIAL_17(x, p, c, ...) POLYNOMIAL_16(x, (p) * x + (c), __VA_ARGS__)
#define POLYNOMIAL_18(x, p, c, ...) POLYNOMIAL_17(x, (p) * x + (c), __VA_ARGS__)
#define POLYNOMIAL_19(x, p, c, ...) POLYNOMIAL_18(x, (p) * x + (c), __VA_ARGS__)
#define POLYNOMIAL_20(x, p, c, ...) POLYNOMIAL_19(x, (p) * x + (c), __VA_ARGS__)
#define POLYNOMIAL_21(x, p, c, ...) POLYNOMIAL_20(x, (p) * x + (c), __VA_ARGS__)
#define POLYNOMIAL_FOR(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, word, ...) word
#define POLYNOMIAL(x, ...)                                                                                             \
    POLYNOMIAL_FOR(__VA_ARGS__, POLYNOMIAL_21, POLYNOMIAL_20, POLYNOMIAL_19, POLYNOMIAL_18, POLYNOMIAL_17,             \
                   POLYNOMIAL_16, POLYNOMIAL_15, POLYNOMIAL_14, POLYNOMIAL_13, POLYNOMIAL_12, POLYNOMIAL_11,           \
                   POLYNOMIAL_10, POLYNOMIAL_9, POLYNOMIAL_8, POLYNOMIAL_7, POLYNOMIAL_6, POLYNOMIAL_5, POLYNOMIAL_4,  \
                   POLYNOMIAL_3, POLYNOMIAL_2, 0)(x, __VA_ARGS__)

/* (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 2 */
INLINE float exp_remainderf(float r)
{
    return POLYNOMIAL(r, 1.381454018e-03f, 8.368745109e-03f, 4.166839078e-02f, 1.666652040e-01f, 4.999999343e-01f);
}

INLINE double exp_remainder(double r)
{
    return POLYNOMIAL(r, 2.51003854955103203e-08, 2.76200884454097462e-07, 2.75572684599970641e-06,
                      2.48015212959543761e-05, 1.98412698630536177e-04, 1.38888889172137167e-03,
                      8.33333333333006153e-03, 4.16666666666241289e-02, 1.66666666666666685e-01,
                      5.00000000000000111e-01);
}

/* exp(r). Where products and sums are fused, Horner's rule to the end rounds least; no macro tells the clones of a loop. */
INLINE float exp_of_smallf(float r) { return (exp_remainderf(r) * r + 1.0f) * r + 1.0f; }

/* The remainder to a few bits more, for functions that add it to something smaller than 1. */
INLINE float long_exp_remainderf(float r)
{
    return POLYNOMIAL(r, 1.979029737e-04f, 1.394470356e-03f, 8.333497342e-03f, 4.166629436e-02f, 1.666666587e-01f,
                      5.000000068e-01f);
}

/* exp(x) = 2^n exp(r), |r| <= log(2) / 2. The power is multiplied in two steps, so that subnormal results are rounded
 * once and n = 128 does not overflow too early. n stands in the low bits of `whole`, whose others leave by the shifts; it
 * is limited above, where the polynomial of what remains is large as well; below, the result is set. */
INLINE float fast_expf(float x)
{
    int32_t whole = (int32_t)bits_of_float(x * 1.44269504f + SHIFTF);
    const int32_t most = 0x4b400000 + 129;
    whole = whole < most ? whole : most;
    float n = float_of_bits((uint32_t)whole) - SHIFTF;
    float r = (x - n * LOG2_HIGHF) - n * LOG2_LOWF;
    float p = exp_of_smallf(r);
    uint32_t half = ((uint32_t)whole >> 1) << 23, rest = ((uint32_t)whole << 23) - half;
    float value = p * float_of_bits(half + (127u << 23)) * float_of_bits(rest + (127u << 23));
    return x < -104.0f ? 0.0f : value;
}

INLINE double fast_exp(double x)
{
    double limited = x > 710.0 ? 710.0 : x; /* whole numbers of 64 bits have no minimum in AVX2 */
    uint64_t whole = bits_of_double(limited * 1.44269504088896341 + SHIFT);
    double n = double_of_bits(whole) - SHIFT;
    double r = (limited - n * LOG2_HIGH) - n * LOG2_LOW;
    double p = (exp_remainder(r) * (r * r) + r) + 1.0;
    uint64_t half = (whole >> 1) << 52, rest = (whole << 52) - half;
    const uint64_t one = (uint64_t)1023 << 52;
    double value = p * double_of_bits(half + one) * double_of_bits(rest + one);
    return x < -746.0 ? 0.0 : value;
}

/* exp(x) for x up to 40, as softmaxes need it, in three quarters of the time: the power of two comes out of the rounding,
 * 2^64 too large, so that subnormal results too are rounded once. */
INLINE float fast_exp_of_negativef(float x)
{
    float limited = -104.0f > x ? -104.0f : x; /* NaN stays */
    float shifted = limited * 1.44269504f + (SHIFTF + 191.0f), n = shifted - (SHIFTF + 191.0f);
    float r = (limited - n * LOG2_HIGHF) - n * LOG2_LOWF;
    float p = exp_of_smallf(r);
    return p * float_of_bits(bits_of_float(shifted) << 23) * 5.42101086242752217e-20f;
}

INLINE double fast_exp_of_negative(double x)
{
    double limited = -746.0 > x ? -746.0 : x;
    double shifted = limited * 1.44269504088896341 + (SHIFT + 1087.0), n = shifted - (SHIFT + 1087.0);
    double r = (limited - n * LOG2_HIGH) - n * LOG2_LOW;
    double p = (exp_remainder(r) * (r * r) + r) + 1.0;
    return p * double_of_bits(bits_of_double(shifted) << 52) * 5.42101086242752217e-20;
}

/* exp(x) - 1 = 2^n (exp(r) - 1) + (2^n - 1) while 2^n is a normal number. What rounding r loses, and all of exp(r) - 1 - r,
 * is added last: 2^n r + (2^n - 1) is exact where it cancels. */
INLINE double expm1_of_moderate(double x)
{
    double shifted = x * 1.44269504088896341 + SHIFT, n = shifted - SHIFT;
    double high = x - n * LOG2_HIGH, r = high - n * LOG2_LOW, low = (high - r) - n * LOG2_LOW;
    double power = double_of_bits((bits_of_double(shifted) << 52) + ((uint64_t)1023 << 52));
    return (exp_remainder(r) * (r * r) + low) * power + (r * power + (power - 1.0));
}

/* Half of exp(x) - 1, doubled at the end, so that the power does not overflow too early; a small x is its own result. What
 * `less` lacks is zero but for large powers. */
INLINE float fast_expm1f(float x)
{
    float limited = x < -20.0f ? -20.0f : x > 88.9f ? 88.9f : x; /* NaN stays */
    float shifted = limited * 1.44269504f + SHIFTF, n = shifted - SHIFTF;
    float high = limited - n * LOG2_HIGHF, r = high - n * LOG2_LOWF, low = (high - r) - n * LOG2_LOWF;
    float half = float_of_bits((bits_of_float(shifted) << 23) + (126u << 23)), less = half - 0.5f;
    float sum = r * half + less, lost = (r * half - (sum - less)) + ((half - less) - 0.5f);
    float value = ((long_exp_remainderf(r) * (r * r) + low) * half + lost) + sum;
    return fabsf(x) < 1e-8f ? x : value + value;
}

/* Beyond 700 the 1 does not matter, but the power overflows too early: exp(x) is the square of exp(x / 2). */
INLINE double fast_expm1(double x)
{
    double limited = x < -40.0 ? -40.0 : x;
    double root = x > 700.0 ? fast_exp(0.5 * x) : 0.0;
    return x > 700.0 ? root * root : copysign(expm1_of_moderate(limited), x);
}

/* tanh(y) = 1 - 2 e / (1 + e) with e = exp(-2 y); near zero, where that cancels, an odd polynomial. Of float32, e is 2^n
 * times a polynomial of y + n log(2) / 2 (the step from `shifted` to it need not be exact: e is small where n is large), and
 * `lost` is what half of 1 + e lost in rounding. */
INLINE float fast_tanhf(float x)
{
    float y = fabsf(x), z = y * y, limited = y > 10.0f ? 10.0f : y;
    float shifted = limited * -2.88539008f + (SHIFTF + 127.0f), n = shifted - (SHIFTF + 127.0f);
    float half_rest = limited + n * 3.46573591e-1f;
    float p = POLYNOMIAL(half_rest, 8.841305715e-02f, -2.677998435e-01f, 6.666942525e-01f, -1.333321632e+00f,
                         1.999999737e+00f, -2.0f, 1.0f);
    float e = p * float_of_bits(bits_of_float(shifted) << 23);
    float half = 0.5f + 0.5f * e, lost = e + (1.0f - 2.0f * half), ratio = e / half;
    float near = POLYNOMIAL(z, -3.584523511e-04f, 2.301365603e-03f, -7.946107537e-03f, 2.148665860e-02f,
                            -5.387980118e-02f, 1.333234459e-01f, -3.333329558e-01f);
    return copysignf(y < 1.0f ? near * z * y + y : 1.0f - (ratio - ratio * lost), x);
}

INLINE double fast_tanh(double x)
{
    double y = fabs(x), z = y * y, e = fast_exp_of_negative(-2.0 * y);
    double near = POLYNOMIAL(z, 6.48516348279311301e-06, -3.12011014257974025e-05, 9.25711612955676871e-05,
                             -2.37590649605556203e-04, 5.89660657775704336e-04, -1.45577541204780546e-03,
                             3.59212175115496222e-03, -8.86323510324087821e-03, 2.18694885190083045e-02,
                             -5.39682539678969925e-02, 1.33333333333330417e-01, -3.33333333333333315e-01);
    return copysign(y < 0.625 ? near * z * y + y : 1.0 - 2.0 * e / (1.0 + e), x);
}

INLINE float fast_sigmoidf(float x) { return 1.0f / (1.0f + fast_expf(-x)); }
INLINE double fast_sigmoid(double x) { return 1.0 / (1.0 + fast_exp(-x)); }

/* The exponent k of x = 2^k m with sqrt(1/2) <= m < sqrt(2), for positive normal x. */
INLINE uint32_t exponentf(float x) { return ((bits_of_float(x) + 0x3f800000u - 0x3f3504f3u) >> 23) - 127; }
INLINE uint64_t exponent(double x)
{
    return ((bits_of_double(x) + 0x3ff0000000000000u - 0x3fe6a09e667f3bcdu) >> 52) - 1023;
}

/* log(1 + f) + k log(2) for sqrt(1/2) <= 1 + f < sqrt(2): with s = f / (2 + f) it is
 * f - (f^2 / 2 - s (f^2 / 2 + 2 s^2 / 3 + 2 s^4 / 5 + ...)) + k log(2). Of float32, `rest` is what f lost in rounding. */
INLINE float log_of_sumf(float f, float rest, float k)
{
    float s = f / (2.0f + f), z = s * s, half_square = 0.5f * f * f;
    float p = POLYNOMIAL(z, 2.333161384e-01f, 2.855077982e-01f, 4.000012279e-01f, 6.666666865e-01f);
    return k * LOG2_HIGHF - ((half_square - (s * (half_square + p * z) + (k * LOG2_LOWF + rest))) - f);
}

INLINE float log_of_partsf(float f, float k) { return log_of_sumf(f, 0.0f, k); }

/* The same to half as many digits again, for functions that go on from it. */
INLINE double extended_log(float x)
{
    int tiny = x < 1.17549435e-38f;
    float scaled = tiny ? x * 33554432.0f : x;
    uint32_t k = exponentf(scaled);
    float f = float_of_bits(bits_of_float(scaled) - (k << 23)) - 1.0f, s = f / (2.0f + f), z = s * s, half_square = 0.5f * f * f;
    float p = POLYNOMIAL(z, 2.333161384e-01f, 2.855077982e-01f, 4.000012279e-01f, 6.666666865e-01f);
    double value = ((double)f - (half_square - s * (half_square + p * z)));
    value += ((double)(int32_t)k - (tiny ? 25.0 : 0.0)) * 0.693147180559945309;
    return x > 0.0f ? (x < INFINITY ? value : x) : x == 0.0f ? -INFINITY : NAN;
}

INLINE double log_of_parts(double f, double k)
{
    double s = f / (2.0 + f), z = s * s, half_square = 0.5 * f * f;
    double p = POLYNOMIAL(z, 1.30880348509275546e-01, 1.32686383692668247e-01, 1.53862447376216654e-01,
                          1.81817955475211374e-01, 2.22222223925810453e-01, 2.85714285707997839e-01,
                          4.00000000000008848e-01, 6.66666666666666630e-01);
    return k * LOG2_HIGH - ((half_square - (s * (half_square + p * z) + k * LOG2_LOW)) - f);
}

/* A small whole number, given in two's complement, as floating. */
INLINE double double_of_whole(uint64_t k)
{
    return double_of_bits((k + 4096) | 0x4330000000000000u) - 4503599627374592.0; /* not converted: not in AVX2 */
}

INLINE float fast_logf(float x)
{
    int tiny = x < 1.17549435e-38f;
    float scaled = tiny ? x * 33554432.0f : x;
    uint32_t k = exponentf(scaled);
    float m = float_of_bits(bits_of_float(scaled) - (k << 23));
    float value = log_of_partsf(m - 1.0f, (float)(int32_t)k - (tiny ? 25.0f : 0.0f));
    return x > 0.0f ? (x < INFINITY ? value : x) : x == 0.0f ? -INFINITY : NAN;
}

INLINE double fast_log(double x)
{
    int tiny = x < 2.2250738585072014e-308;
    double scaled = tiny ? x * 18014398509481984.0 : x;
    uint64_t k = exponent(scaled);
    double m = double_of_bits(bits_of_double(scaled) - (k << 52));
    double value = log_of_parts(m - 1.0, double_of_whole(k) - (tiny ? 54.0 : 0.0));
    return x > 0.0 ? (x < (double)INFINITY ? value : x) : x == 0.0 ? -(double)INFINITY : (double)NAN;
}

/* With 1 + x = 2^k m, the fraction f = m - 1 is x 2^-k + (2^-k - 1), rounded once; of large x the 1 does not matter. */
INLINE float fast_log1pf(float x)
{
    float sum = 1.0f + x;
    uint32_t k = exponentf(sum);
    float power = float_of_bits((127 - k) << 23), m = float_of_bits(bits_of_float(sum) - (k << 23));
    float less = power - 1.0f, scaled = x * power, f = x > 67108864.0f ? m - 1.0f : scaled + less;
    float lost = x > 67108864.0f ? 0.0f : scaled - (f - less);
    float value = copysignf(log_of_sumf(f, lost, (float)(int32_t)k), x);
    return x > -1.0f ? (x < INFINITY ? value : x) : x == -1.0f ? -INFINITY : NAN;
}

INLINE double fast_log1p(double x)
{
    double sum = 1.0 + x;
    uint64_t k = exponent(sum);
    double power = double_of_bits((1023 - k) << 52), m = double_of_bits(bits_of_double(sum) - (k << 52));
    double f = x > 36028797018963968.0 ? m - 1.0 : x * power + (power - 1.0);
    double value = copysign(log_of_parts(f, double_of_whole(k)), x);
    return x > -1.0 ? (x < (double)INFINITY ? value : x) : x == -1.0 ? -(double)INFINITY : (double)NAN;
}

/* An odd polynomial near zero; elsewhere 1 - exp(P(y)) = (1 - 2^n) - 2^n (exp(r) - 1), which is rounded once. */
INLINE float fast_erff(float x)
{
    float y = fabsf(x), z = y * y;
    float near = POLYNOMIAL(z, 8.010694000e-05f, -8.052713820e-04f, 5.192625336e-03f, -2.685580030e-02f,
                            1.128362641e-01f, -3.761262894e-01f, 1.283791661e-01f);
    float limited = y > 3.92f ? 3.92f : y; /* NaN stays */
    float p = POLYNOMIAL(limited, 1.926534169e-04f, -3.010976361e-03f, 2.209830843e-02f, -1.036646366e-01f,
                         -6.374865770e-01f, -1.127494812e+00f, -2.394620387e-04f);
    float shifted = p * 1.44269504f + (SHIFTF + 127.0f), n = shifted - (SHIFTF + 127.0f);
    float r = (p - n * LOG2_HIGHF) - n * LOG2_LOWF, power = float_of_bits(bits_of_float(shifted) << 23);
    float far = (1.0f - power) - (exp_remainderf(r) * (r * r) + r) * power;
    return copysignf(y < 0.93f ? near * y + y : far, x);
}

/* float64: an odd polynomial near zero, here erf(y) / y - 1 of z = y^2; 1 - erfc(y), erfc(y) = exp(-y^2) Q(t), t = (y - 3) / (y + 3), elsewhere. */
INLINE double erf_slope_near(double z)
{
    return POLYNOMIAL(z, -7.79589882700214246e-10, 1.37200645467776862e-08, -1.62084838018717052e-07,
                      1.64474247033173623e-06, -1.49247369074196605e-05, 1.20552949048397074e-04,
                      -8.54832597538969182e-04, 5.22397760711642255e-03, -2.68661706432377703e-02,
                      1.12837916709450065e-01, -3.76126389031835429e-01, 1.28379167095512560e-01);
}

INLINE double erfc_factor(double y)
{
    double t = (y - 3.0) / (y + 3.0), far = POLYNOMIAL(t, 1.25898954478459636e-06, 2.00266639998581431e-06,
                                                       -8.00454598037577315e-06, -1.28407304207335292e-05,
                                                       6.40622743303170052e-05, 4.52534619950487323e-05,
                                                       -5.97062486616470301e-04, 7.07746542435592411e-04,
                                                       4.26913635790482793e-03, -2.43924993221571323e-02,
                                                       7.16658371974382147e-02, -1.50115936500718167e-01,
                                                       2.45603801712334979e-01, -3.26233560043037552e-01);
    return far * t + 1.79001151181389956e-01;
}

INLINE double fast_erf(double x)
{
    double y = fabs(x), limited = y > 6.0 ? 6.0 : y;
    return y < 0.95 ? erf_slope_near(x * x) * x + x : copysign(1.0 - fast_exp(-limited * limited) * erfc_factor(limited), x);
}

/* Sine and cosine are right up to this magnitude; loops hand what is beyond it, infinities too, to libm. */
#define LARGEST_ANGLE 1048576.0

INLINE float sine_of_quarterf(float r, float low, float z)
{
    float p = POLYNOMIAL(z, -1.951521809e-04f, 8.332160292e-03f, -1.666665460e-01f);
    return (p * z * r + low) + r;
}

INLINE float cosine_of_quarterf(float r, float low, float z)
{
    float p = POLYNOMIAL(z, 2.443308270e-05f, -1.388731562e-03f, 4.166664567e-02f);
    float half = 0.5f * z, near = 1.0f - half;
    return (((1.0f - near) - half) + (p * z * z - r * low)) + near;
}

/* The angle less n quarter turns, in float64, which leaves no error that float32 could see. */
INLINE float sine_of_turnsf(float x, int32_t turns)
{
    float most = (float)LARGEST_ANGLE, bounded = x > most ? most : x < -most ? -most : x;
    double limited = bounded, shifted = limited * 0.63661977236758134 + SHIFT, n = shifted - SHIFT;
    double rest = (limited - n * 1.57079632766544819) + n * 8.70551569550416491e-10;
    float r = (float)rest, low = (float)(rest - r), z = r * r;
    uint32_t quarter = (uint32_t)bits_of_double(shifted) + (uint32_t)turns;
    float value = quarter & 1 ? cosine_of_quarterf(r, low, z) : sine_of_quarterf(r, low, z);
    return float_of_bits(bits_of_float(value) ^ (quarter & 2) << 30);
}

/* Of the angle r + low, where low is what r lost in rounding. */
INLINE double sine_of_quarter(double r, double low, double z)
{
    double p = POLYNOMIAL(z, 1.59178485248082617e-10, -2.50511279440141876e-08, 2.75573160838163581e-06,
                          -1.98412698367224182e-04, 8.33333333333092542e-03, -1.66666666666666657e-01);
    return (p * z * r + low) + r;
}

INLINE double cosine_of_quarter(double r, double low, double z)
{
    double p = POLYNOMIAL(z, -1.13824567780613059e-11, 2.08761438279931326e-09, -2.75573172600088370e-07,
                          2.48015872987430700e-05, -1.38888888888873824e-03, 4.16666666666666644e-02);
    double half = 0.5 * z, near = 1.0 - half;
    return near + (((1.0 - near) - half) + (p * z * z - r * low));
}

INLINE double sine_of_turns(double x, uint64_t turns)
{
    double shifted = x * 0.63661977236758134 + SHIFT, n = shifted - SHIFT;
    double high = x - n * 1.57079632766544819, rest = n * 8.70551569200073150e-10; /* pi/2 in four parts of 30 bits */
    double sum = high + rest, low = ((high - sum) + rest) + (n * 3.50343439695481804e-19 + n * 1.13511186075222016e-28);
    double r = sum + low, z = r * r;
    low = (sum - r) + low;
    uint64_t quarter = bits_of_double(shifted) + turns;
    double value = quarter & 1 ? cosine_of_quarter(r, low, z) : sine_of_quarter(r, low, z);
    return quarter & 2 ? -value : value;
}

INLINE float fast_sinf(float x) { return x == 0.0f ? x : sine_of_turnsf(x, 0); }
INLINE float fast_cosf(float x) { return sine_of_turnsf(x, 1); }
INLINE double fast_sin(double x) { return x == 0.0 ? x : sine_of_turns(x, 0); }
INLINE double fast_cos(double x) { return sine_of_turns(x, 1); }

/* The greater and the smaller of two numbers; NaN if one is. */
INLINE float maximumf(float a, float b) { return a < b ? b : b != b ? b : a; }
INLINE double maximum(double a, double b) { return a < b ? b : b != b ? b : a; }
INLINE float minimumf(float a, float b) { return a > b ? b : b != b ? b : a; }
INLINE double minimum(double a, double b) { return a > b ? b : b != b ? b : a; }

/* The same, but a number is taken where the other is NaN. */
INLINE float number_maximumf(float a, float b) { return a >= b ? a : b != b ? a : b; }
INLINE double number_maximum(double a, double b) { return a >= b ? a : b != b ? a : b; }
INLINE float number_minimumf(float a, float b) { return a <= b ? a : b != b ? a : b; }
INLINE double number_minimum(double a, double b) { return a <= b ? a : b != b ? a : b; }

/* By the type of the argument. */
#define exp_of(x) _Generic((x), float: fast_expf, default: fast_exp)(x)
#define expm1_of(x) _Generic((x), float: fast_expm1f, default: fast_expm1)(x)
#define log_of(x) _Generic((x), float: fast_logf, default: fast_log)(x)
#define log1p_of(x) _Generic((x), float: fast_log1pf, default: fast_log1p)(x)
#define tanh_of(x) _Generic((x), float: fast_tanhf, default: fast_tanh)(x)
#define sigmoid_of(x) _Generic((x), float: fast_sigmoidf, default: fast_sigmoid)(x)
#define erf_of(x) _Generic((x), float: fast_erff, default: fast_erf)(x)
#define sin_of(x) _Generic((x), float: fast_sinf, default: fast_sin)(x)
#define cos_of(x) _Generic((x), float: fast_cosf, default: fast_cos)(x)
#define sqrt_of(x) _Generic((x), float: sqrtf, default: sqrt)(x)
#define floor_of(x) _Generic((x), float: floorf, default: floor)(x)
#define ceil_of(x) _Generic((x), float: ceilf, default: ceil)(x)
#define trunc_of(x) _Generic((x), float: truncf, default: trunc)(x)
#define rint_of(x) _Generic((x), float: rintf, default: rint)(x)
#define abs_of(x) _Generic((x), float: fabsf, default: fabs)(x)
#define maximum_of(a, b) _Generic((a), float: maximumf, default: maximum)(a, b)
#define minimum_of(a, b) _Generic((a), float: minimumf, default: minimum)(a, b)
#define fmax_of(a, b) _Generic((a), float: number_maximumf, default: number_maximum)(a, b)
#define fmin_of(a, b) _Generic((a), float: number_minimumf, default: number_minimum)(a, b)
#define copysign_of(a, b) _Generic((a), float: copysignf, default: copysign)(a, b)
#define libm_sin_of(x) _Generic((x), float: sinf, default: sin)(x)
#define libm_cos_of(x) _Generic((x), float: cosf, default: cos)(x)

#endif
