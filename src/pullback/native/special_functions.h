/* Functions of one or two numbers that are rarer than those of functions.h, for the same loops and with the same care:
 * remainders, the complementary error function and its inverse, hypot, log(exp + exp), sine of multiples of pi, lgamma and digamma,
 * tangents, inverse sines, logarithms and powers of other bases.
 *
 * float32 goes through float64 where that is what makes a result exact enough. In float64, lgamma is in log_gamma.c, and
 * some others are left to the Python kernel, where more digits would take branches. The polynomials are close to the best of their degree (Chebyshev).
 */
#ifndef PULLBACK_SPECIAL_FUNCTIONS_H
#define PULLBACK_SPECIAL_FUNCTIONS_H

#include <float.h>

#include "functions.h"
#include "log_gamma.h"

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

/* log(exp(a) + exp(b)); of two equal infinities the difference is not a number. */
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
    double q = POLYNOMIAL(t, 7.60477203314293912e-05, 6.04349864581658230e-04, 3.35668913234650457e-04,
                          -4.41657737818088817e-03, 9.85495730917284891e-04, 3.27777230389209029e-02,
                          -1.02974850534813991e-01, 1.57627620172725275e-01, -9.90241162011956944e-02,
                          -1.22356685117166950e-01, 1.26483818030131379e+00);
    double value = fast_exp(-y * y) * q / (1.0 + 2.0 * y);
    return (float)(x < 0.0f ? 2.0 - value : value);
}

/* The same in float64, with what rounding loses of each factor carried along: y^2 is the square of its first 26 bits, exactly,
 * and a rest; exp, Q and 1 + 2 y are sums of two numbers. */
INLINE double erfc_beyond_half(double y)
{
    double head = double_of_bits(bits_of_double(y) & ~(uint64_t)0x7ffffff), rest = (head - y) * (head + y);
    double t = (y - 3.5) / (y + 3.5), q = POLYNOMIAL(t, 1.05916223514253987e-08, 4.27832983005064343e-10,
                                                     -9.36127336514781498e-08, -7.54505569345448370e-09,
                                                     6.00951725853740974e-07, -4.46628320517784693e-08,
                                                     -3.81499107670057600e-06, 2.32856256170498855e-06,
                                                     2.42612207164445179e-05, -4.27823206222095322e-05,
                                                     -1.21512508708438761e-04, 5.64384437084272119e-04,
                                                     -3.02267860928498032e-04, -4.21501991038493277e-03,
                                                     1.90993309405666917e-02, -4.88233258276966689e-02,
                                                     8.79831538249757072e-02, -1.15089598160200424e-01,
                                                     9.75190951532556305e-02, -1.05555963322181510e-02,
                                                     -1.40009180137619399e-01);
    double factor = q * t + 1.24234924487115439, factor_low = (1.24234924487115439 - factor) + q * t;
    double whole = -head * head * 1.44269504088896341 + SHIFT, n = whole - SHIFT;
    double high = -head * head - n * LOG2_HIGH, low = rest - n * LOG2_LOW, r = high + low;
    low = (high - r) + low;
    double power = 1.0 + r, power_low = ((1.0 - power) + r) + (exp_remainder(r) * (r * r) + low * power);
    double product = power * factor, product_low = power_low * factor + power * factor_low + __builtin_fma(power, factor, -product);
    double divisor = 1.0 + 2.0 * y, divisor_low = 1.0 - (divisor - 2.0 * y), inverse = 1.0 / divisor, value = product * inverse;
    value += (__builtin_fma(-value, divisor, product) + (product_low - value * divisor_low)) * inverse;
    uint64_t bits = bits_of_double(whole), half = (bits >> 1) << 52, others = (bits << 52) - half;
    const uint64_t one = (uint64_t)1023 << 52;
    return value * double_of_bits(half + one) * double_of_bits(others + one);
}

INLINE double fast_erfc(double x)
{
    double y = fabs(x) > 28.0 ? 28.0 : fabs(x), near = 1.0 - x, value = erfc_beyond_half(y < 0.5 ? 0.5 : y);
    near += ((1.0 - near) - x) - erf_slope_near(x * x) * x;
    return y < 0.5 ? near : x < 0.0 ? 2.0 - value : value;
}

/* erfinv(y) = y P(w) with w = -log(1 - y^2); for large w, P is a polynomial in its root. */
INLINE double erfinv_near(double w)
{
    double u = w - 3.125, p = POLYNOMIAL(u, 7.13111282160578316e-14, 1.28523664302136875e-12, -1.48201717465601670e-11,
                                         -3.52912107552333822e-11, 1.06363930025012147e-09, -4.24973959001425303e-09,
                                         -2.91171277188192734e-08, 4.24017904790911219e-07, -1.36537672296481704e-06,
                                         -1.38836182087830823e-05, 1.86734126120589129e-04, -7.40701549746133349e-04,
                                         -6.03367085018382491e-03, 2.40158182168682427e-01);
    return p * u + 1.65365456268310274e+00;
}

INLINE float fast_erfinvf(float x)
{
    double w = -fast_log((1.0 - (double)x) * (1.0 + (double)x)), v = sqrt(w) - 3.25, far = POLYNOMIAL(v, 
        -3.82894382339279591e-05, 8.23169891398777009e-05, 1.66173021093512892e-05, -3.62351567559269887e-04,
        9.55910297272758737e-04, -1.68645198801892627e-03, 2.49103671624920520e-03, -3.75140295170054480e-03,
        5.37093690843826101e-03, 1.00525897368056216e+00, 3.08388561029804187e+00);
    return fabsf(x) == 1.0f ? x * INFINITY : (float)(x * (w < 6.25 ? erfinv_near(w) : far));
}

/* To seven digits, and one step of Halley's on erf(v) = y, or on erfc(v) = 1 - y where that has more digits. */
INLINE double fast_erfinv(double x)
{
    double y = fabs(x), w = -fast_log((1.0 - y) * (1.0 + y)), u = sqrt(w) - 4.25, far = POLYNOMIAL(u, 
        1.79003046824484572e-07, 5.17660772197646813e-07, -5.80223326188709884e-06, 1.11892676900778517e-05,
        -6.34428715796837918e-06, 1.19367701848948616e-05, -6.66554860843833339e-05, 2.19956260194172759e-04,
        -6.07648380369213252e-04, 7.10630638538832884e-04, 1.00997833805065884e+00, 4.09222351474185420e+00);
    double v = y * (w < 6.25 ? erfinv_near(w) : far), density = fast_exp(-v * v);
    double error = v < 0.5 ? erf_slope_near(v * v) * v + (v - y) : (1.0 - y) - erfc_beyond_half(v < 0.5 ? 0.5 : v);
    double step = error * 0.88622692545275801 / density, value = v - step / (1.0 + v * step);
    return copysign(y == 1.0 ? (double)INFINITY : value, x);
}

/* sin(pi x): the nearest half is taken off exactly. Large numbers are even. */
INLINE float fast_sin_pif(float x)
{
    float y = fabsf(x) > 33554432.0f && fabsf(x) < INFINITY ? 0.0f : x;
    float n = rintf(2.0f * y), quarter = n - 4.0f * floorf(0.25f * n);
    float r = (float)((double)(y - 0.5f * n) * 3.14159265358979324), z = r * r;
    float value = quarter == 1.0f || quarter == 3.0f ? cosine_of_quarterf(r, 0.0f, z) : sine_of_quarterf(r, 0.0f, z);
    return quarter >= 2.0f ? -value : value;
}

INLINE double fast_sin_pi(double x)
{
    double y = fabs(x) > 18014398509481984.0 && fabs(x) < (double)INFINITY ? 0.0 : x;
    double n = rint(2.0 * y), quarter = n - 4.0 * floor(0.25 * n);
    double turn = y - 0.5 * n, r = turn * 3.14159265358979324, z = r * r;
    double low = __builtin_fma(turn, 3.14159265358979324, -r) + turn * 1.22464679914735321e-16;
    double value = quarter == 1.0 || quarter == 3.0 ? cosine_of_quarter(r, low, z) : sine_of_quarter(r, low, z);
    return quarter >= 2.0 ? -value : value;
}

/* Near zero two terms are enough, and no quotient of two rounded, or subnormal, numbers. */
INLINE float fast_sincf(float x) { return fabsf(x) < 1e-30f ? 1.0f : (float)(fast_sin_pif(x) / (3.14159265358979324 * x)); }
INLINE double fast_sinc(double x)
{
    return fabs(x) < 1e-5 ? 1.0 - 1.64493406684822644 * x * x : fast_sin_pi(x) / (3.14159265358979324 * x);
}

/* log |gamma(x)|: Stirling's series from 8 on, where smaller numbers are brought by a product; negative ones by
 * gamma(x) gamma(-x) = -pi / (x sin(pi x)). What cancels near the zeros is below the digits of float32. */
INLINE float fast_lgammaf(float x)
{
    double y = fabsf(x), product = ((y * (y + 1.0)) * ((y + 2.0) * (y + 3.0))) * (((y + 4.0) * (y + 5.0)) * ((y + 6.0) * (y + 7.0)));
    int small = y < 8.0;
    double z = small ? y + 8.0 : y, i = 1.0 / z, s = i * i;
    product = small ? product : 1.0;
    double series = POLYNOMIAL(s, 6.41025641025641026e-03, -1.91752691752691753e-03, 8.41750841750841751e-04,
                               -5.95238095238095238e-04, 7.93650793650793651e-04, -2.77777777777777778e-03,
                               8.33333333333333333e-02);
    double value = (z - 0.5) * fast_log(z) - z + 0.91893853320467274 + series * i;
    double reflected = 3.14159265358979324 * product / fabs(y * fast_sin_pi(y));
    double logarithm = fast_log(x < 0.0f ? reflected : product);
    float result = (float)(x < 0.0f ? logarithm - value : value - logarithm);
    return fabsf(x) == INFINITY ? INFINITY : x == 1.0f || x == 2.0f ? 0.0f : result;
}

/* The derivative of lgamma, in the same way: that of a product over the product, and pi / tan(pi x) for negative numbers. */
INLINE float fast_digammaf(float x)
{
    double y = x < 0.0f ? 1.0 - x : x, product = 1.0, slope = 0.0;
    for (int k = 0; k < 8; k++) {
        slope = slope * (y + k) + product;
        product *= y + k;
    }
    double z = y < 8.0 ? y + 8.0 : y, i = 1.0 / z, s = i * i, series = POLYNOMIAL(s, -2.10927960927960928e-02,
        7.57575757575757576e-03, -4.16666666666666667e-03, 3.96825396825396825e-03, -8.33333333333333333e-03,
        8.33333333333333333e-02);
    double value = fast_log(z) - 0.5 * i - series * s - (y < 8.0 ? slope / product : 0.0), sine = fast_sin_pi(x);
    double reflected = sine == 0.0 ? (double)NAN : value - 3.14159265358979324 * fast_sin_pi(x + 0.5) / sine;
    return x == 0.0f ? -copysignf(INFINITY, x) : (float)(x < 0.0f ? reflected : value);
}

/* What NumPy has in float32 with errors of two units or three. */
INLINE float fast_tanf(float x)
{
    double limited = fabsf(x) > (float)LARGEST_ANGLE ? LARGEST_ANGLE : x;
    double n = (limited * 0.63661977236758134 + SHIFT) - SHIFT;
    double r = (limited - n * 1.57079632766544819) + n * 8.70551569550416491e-10, z = r * r;
    double s = 2.72498952306116760e-06, c = -2.73009336872129429e-07;
    s = s * z - 1.98400864995935987e-04;
    s = s * z + 8.33333187427371357e-03;
    s = s * z - 1.66666666638541683e-01;
    s = s * z * r + r;
    c = c * z + 2.48006001803638087e-05;
    c = c * z - 1.38888876716525039e-03;
    c = c * z + 4.16666666643202635e-02;
    c = c * z * z - 0.5 * z + 1.0;
    int odd = (int32_t)(n == n ? n : 0.0) & 1;
    float value = (float)((odd ? -c : s) / (odd ? s : c));
    return x == 0.0f ? x : value;
}

/* asin(y) = y + y z P(z) with z = y^2 up to 1/2; above, pi/2 - 2 asin(root) of z = (1 - y) / 2. */
INLINE float fast_asinf(float x)
{
    double y = fabsf(x), z = y > 0.5 ? 0.5 - 0.5 * y : y * y, s = y > 0.5 ? sqrt(z) : y;
    double p = POLYNOMIAL(z, 2.93052397053357901e-02, 5.44318510274810746e-03, 1.93062608693680450e-02,
                          2.21324436234267945e-02, 3.03976341305807023e-02, 4.46423584848831961e-02,
                          7.50000059882904857e-02, 1.66666666654950862e-01);
    double angle = p * z * s + s;
    return copysignf((float)(y > 0.5 ? 1.57079632679489662 - 2.0 * angle : angle), x);
}

/* Of the smaller magnitude by the larger; two infinities are alike. */
INLINE float fast_atan2f(float a, float b)
{
    double y = fabsf(a), x = fabsf(b), larger = y > x ? y : x, smaller = y > x ? x : y;
    double q = larger == 0.0 ? 0.0 : smaller == (double)INFINITY ? 1.0 : smaller / larger, z = q * q;
    double p = POLYNOMIAL(z, 5.93043755636528196e-04, -4.22165799092964755e-03, 1.40729233446972388e-02,
                          -2.99131119455169590e-02, 4.72947986218133359e-02, -6.24631519412831709e-02,
                          7.58665283364667042e-02, -9.07355311897640876e-02, 1.11093923083222232e-01,
                          -1.42856248914835254e-01, 1.99999981540862154e-01, -3.33333333269441423e-01);
    double angle = p * z * q + q;
    angle = y > x ? 1.57079632679489662 - angle : angle;
    angle = signbit(b) ? 3.14159265358979324 - angle : angle;
    return a != a || b != b ? NAN : copysignf((float)angle, a);
}

INLINE float fast_coshf(float x)
{
    double e = fast_exp(fabsf(x));
    return (float)(0.5 * e + 0.5 / e);
}

INLINE float fast_log2f(float x) { return (float)(extended_log(x) * 1.44269504088896341); }
INLINE float fast_log10f(float x) { return (float)(extended_log(x) * 0.434294481903251828); }

INLINE float fast_exp2f(float x)
{
    float limited = x > 129.0f ? 129.0f : x < -151.0f ? -151.0f : x; /* NaN stays */
    float shifted = limited + SHIFTF, r = (limited - (shifted - SHIFTF)) * 0.693147181f;
    float p = exp_of_smallf(r);
    uint32_t whole = bits_of_float(shifted), half = (uint32_t)((int32_t)whole >> 1) << 23, rest = (whole << 23) - half;
    return p * float_of_bits(half + (127u << 23)) * float_of_bits(rest + (127u << 23));
}

#define libm_fmod_of(a, b) _Generic((a), float: fmodf, default: fmod)(a, b)
#define fmod_of(a, b) _Generic((a), float: fast_fmodf, default: fast_fmod)(a, b)
#define remainder_from_of(rest, b) _Generic((rest), float: remainder_fromf, default: remainder_from)(rest, b)
#define floor_quotient_of(a, b, rest) _Generic((a), float: floor_quotientf, default: floor_quotient)(a, b, rest)
#define logaddexp_of(a, b) _Generic((a), float: fast_logaddexpf, default: fast_logaddexp)(a, b)
#define hypot_of(a, b) _Generic((a), float: fast_hypotf, default: fast_hypot)(a, b)
#define sinc_of(x) _Generic((x), float: fast_sincf, default: fast_sinc)(x)
#define erfc_of(x) _Generic((x), float: fast_erfcf, default: fast_erfc)(x)
#define erfinv_of(x) _Generic((x), float: fast_erfinvf, default: fast_erfinv)(x)
#define tan_of(x) fast_tanf(x)
#define libm_tan_of(x) tanf(x)
#define asin_of(x) fast_asinf(x)
#define cosh_of(x) fast_coshf(x)
#define log2_of(x) fast_log2f(x)
#define log10_of(x) fast_log10f(x)
#define exp2_of(x) fast_exp2f(x)
#define lgamma_of(x) _Generic((x), float: fast_lgammaf, default: precise_lgamma)(x)
#define digamma_of(x) fast_digammaf(x)
#define atan2_of(a, b) fast_atan2f(a, b)
/* The largest number of the type of x. */
#define largest_like(x) _Generic((x), float: FLT_MAX, default: DBL_MAX)

#endif
