/* The logarithm of the gamma function in float64, to 0.6 units in the last place or so: as kernels/special_log_gamma.py has it.
 *
 * Stirling's formula from 8 on, where smaller numbers are brought by a product, is a difference of large terms. So its
 * logarithms and products are carried as sums of two numbers. Beside the zeros at 1 and 2 a polynomial is better.
 */
#include "log_gamma.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "special_functions.h"

/* log(1 + (j + 1/2) / 16), as sums of two numbers */
static const double logarithms[] = {
    3.07716586667536873e-02, 8.96121586896871380e-02, 1.45182009844497889e-01, 1.97825743329919868e-01,
    2.47836163904581269e-01, 2.95464212893835898e-01, 3.40926586970593193e-01, 3.84411698910332056e-01,
    4.26084395310900088e-01, 4.66089729924599239e-01, 5.04556010752395312e-01, 5.41597282432744409e-01,
    5.77315365034823613e-01, 6.11801541105992941e-01, 6.45137961373584701e-01, 6.77398823591806143e-01,
};
static const double logarithms_low[] = {
    1.04317320290059678e-18, -5.42681293366471353e-18, 8.24241878302247539e-18, 1.28211943729801419e-17,
    -1.24322095787025232e-17, -2.16461086040598997e-17, 1.74671364435447471e-17, -1.61214970076467292e-17,
    -2.49917677654746604e-17, -1.41165232399044064e-17, -2.48885188735979048e-17, -3.74876424612563901e-17,
    -8.90359184697401311e-18, -3.73977594487260014e-17, 9.34696092012090559e-19, -2.09781838826520053e-18,
};
/* lgamma(1 + z) / z and lgamma(2 + z) / z for |z| <= 1/4; x (lgamma(x) - Stirling's formula) of 1 / x^2; 1 / gamma(1 + z) */
static const double near_one[] = {
    7.09761978565656010e-02, -7.61069279033811524e-02, 6.07470621879832653e-02, -6.45417024384388055e-02,
    7.15344592112023836e-02, -7.70701957708011254e-02, 8.33506594044753912e-02, -9.09488747669340847e-02,
    1.00099507691220682e-01, -1.11334378122507308e-01, 1.25509669282158204e-01, -1.44049895396531596e-01,
    1.69557176994799719e-01, -2.07385551037061605e-01, 2.70580808427813180e-01, -4.00685634386511724e-01,
    8.22467033424113203e-01, -5.77215664901532866e-01,
};
static const double near_two[] = {
    4.67487298700986653e-06, -9.89852253603235643e-06, 2.04713132858969035e-05, -4.48864515014947237e-05,
    9.94596584538753653e-05, -2.23156459446494998e-04, 5.09669456700221398e-04, -1.19275387445925561e-03,
    2.89051033184589343e-03, -7.38555102906170505e-03, 2.05808084277766257e-02, -6.73523010531965893e-02,
    3.22467033424113259e-01, 4.22784335098467134e-01,
};
static const double stirling_series[] = {
    5.06915415014725246e-03, -1.89053594769826041e-03, 8.41472783852216326e-04, -5.95236606416375087e-04,
    7.93650789832641692e-04, -2.77777777777409637e-03, 8.33333333333333287e-02,
};
static const double reciprocal[] = {
    5.76784897554869483e-18, -1.23995651169691581e-16, 1.21185326230277212e-15, -5.24976130549600901e-15,
    -2.08619851198129908e-14, 5.10571161883565337e-13, -3.69757452657125679e-12, 7.78313293663183422e-12,
    1.04341880226959928e-10, -1.18127398370083681e-09, 5.00200728660672470e-09, 6.11609528460736713e-09,
    -2.05633841772656631e-07, 1.13302723200737754e-06, -1.25049348214990239e-06, -2.01348547807865785e-05,
    1.28050282388115870e-04, -2.15241674114950921e-04, -1.16516759185906517e-03, 7.21894324666309990e-03,
    -9.62197152787697303e-03, -4.21977345555443334e-02, 1.66538611382291479e-01, -4.20026350340952370e-02,
    -6.55878071520253902e-01, 5.77215664901532866e-01, 1.00000000000000000e+00,
};
static const double reciprocal_low[] = {
    1.05166302107879675e-34, -5.11056721664527797e-33, -3.00212682160468978e-32, -2.91705016705916504e-31,
    -5.88564151118513385e-31, 2.46220017513004341e-29, 3.47842209608177681e-28, -1.21245202089758816e-28,
    -9.34554753528101883e-28, -5.18349278445824472e-26, 1.14579782068655804e-25, -1.81313522922886906e-26,
    -3.33426293620711678e-24, -9.33380486362401891e-23, -9.72588541914550819e-23, 9.91569433437332670e-22,
    7.62638553834617585e-21, -6.20710304183771370e-21, 5.13049148385501029e-20, -3.59594452047816485e-19,
    -5.30034287354434622e-19, -3.35799779774821997e-18, 1.01891445001245428e-17, 1.49203062947936996e-18,
    2.13718519706758413e-17, -4.94291515243060558e-18, -2.71424094607775023e-35,
};

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

typedef struct {
    double high, low;
} Sum;

INLINE double polynomial(const double *coefficients, int count, double x)
{
    double value = coefficients[0];
    for (int k = 1; k < count; k++)
        value = value * x + coefficients[k];
    return value;
}

/* What rounding loses is the result's low part. */
INLINE Sum add(double a, double b)
{
    double total = a + b, part = total - a;
    return (Sum){total, (a - (total - part)) + (b - part)};
}

INLINE Sum multiply(Sum a, double b)
{
    double product = a.high * b, rest = __builtin_fma(a.high, b, -product) + a.low * b, total = product + rest;
    return (Sum){total, rest - (total - product)};
}

/* x = 2^k m, and log(m) = log(c) + 2 artanh(s) with s = (m - c) / (m + c), c the nearest of 16 numbers. */
INLINE Sum log_of_sum(double x, double x_rest)
{
    int exponent;
    double mantissa = 2.0 * frexp(x, &exponent);
    int place = (int)((mantissa - 1.0) * 16.0) & 15;
    double k = exponent - 1, centre = 1.0 + (place + 0.5) / 16.0, difference = mantissa - centre;
    Sum divisor = add(mantissa, centre);
    double s = difference / divisor.high, z = s * s;
    double s_rest = (__builtin_fma(-s, divisor.high, difference) - s * divisor.low) / divisor.high;
    double series = (((2.0 / 11.0 * z + 2.0 / 9.0) * z + 2.0 / 7.0) * z + 2.0 / 5.0) * z + 2.0 / 3.0;
    double rest = 2.0 * s_rest + s * z * series + x_rest / x + (k * LOG2_LOW + logarithms_low[place]);
    Sum whole = add(k * LOG2_HIGH, logarithms[place]), total = add(whole.high, 2.0 * s);
    rest += whole.low + total.low;
    double high = total.high + rest;
    return (Sum){high, rest - (high - total.high)};
}

/* (z - 1/2) (log(z) - 1) + log(2 pi) / 2 - 1/2 + 1 / (12 z) - ... */
INLINE Sum stirling(double z, double z_rest)
{
    Sum logarithm = log_of_sum(z, z_rest), factor = add(z, -0.5);
    double slope = logarithm.high - 1.0, product = factor.high * slope, inverse = 1.0 / z;
    double rest = __builtin_fma(factor.high, slope, -product) + factor.high * logarithm.low + (factor.low + z_rest) * slope;
    rest += inverse * polynomial(stirling_series, COUNT(stirling_series), inverse * inverse) + 1.6728209650585413e-17;
    Sum total = add(product, 0.4189385332046727);
    return (Sum){total.high, rest + total.low};
}

/* Where lgamma(x) is small, x in [-20, -2]: 1 / gamma(x) = x (x + 1) ... (x + n - 1) / gamma(x + n), x + n in [1, 2]. */
INLINE double lgamma_near_negative_zero(double x)
{
    int shifts = (int)(1.0 - floor(x));
    double offset = x + (shifts - 1);
    Sum value = {0.0, 0.0};
    for (int k = 0; k < COUNT(reciprocal); k++) {
        Sum product = multiply(value, offset), total = add(product.high, reciprocal[k]);
        value = (Sum){total.high, product.low + reciprocal_low[k] + total.low};
    }
    for (int step = 0; step < shifts; step++)
        value = multiply(value, x + step);
    double sign = copysign(1.0, value.high);
    return -log1p((sign * value.high - 1.0) + sign * value.low);
}

/* Stirling's formula at x + n less the logarithm of x (x + 1) ... (x + n - 1), for x in (-20, 8). */
INLINE double lgamma_shifted(double x)
{
    int shifts = 8 + (x < 0.0 ? (int)ceil(-x) : 0);
    Sum product = {x, 0.0};
    for (int step = 1; step < shifts; step++) {
        Sum factor = add(x, step), larger = multiply(product, factor.high);
        product = (Sum){larger.high, larger.low + product.high * factor.low};
    }
    if (product.high == 0.0)
        return (double)INFINITY;
    Sum argument = add(x, shifts), formula = stirling(argument.high, argument.low);
    Sum logarithm = log_of_sum(fabs(product.high), copysign(1.0, product.high) * product.low);
    Sum value = add(formula.high, -logarithm.high);
    double result = value.high + (value.low + (formula.low - logarithm.low));
    return x < -2.0 && fabs(result) < 0.1 ? lgamma_near_negative_zero(x) : result;
}

/* Scaled where products could overflow before the result does; there the rest of the formula has no digit. */
INLINE double lgamma_large(double x)
{
    if (x < 1e100) {
        Sum value = stirling(x, 0.0);
        return value.high + value.low;
    }
    if (x == (double)INFINITY)
        return x;
    Sum logarithm = log_of_sum(x, 0.0);
    double scaled = x * 0x1p-500, slope = logarithm.high - 1.0, product = scaled * slope;
    return (product + (__builtin_fma(scaled, slope, -product) + scaled * logarithm.low)) * 0x1p500;
}

MULTIVERSIONED double precise_lgamma(double x)
{
    if (x != x)
        return x;
    if (x >= 8.0)
        return lgamma_large(x);
    if (x <= -20.0) /* gamma(x) gamma(-x) = -pi / (x sin(pi x)) */
        return x < -4.5e15 ? (double)INFINITY : log(3.14159265358979324 / (-x * fabs(fast_sin_pi(x)))) - lgamma_large(-x);
    if (fabs(x - 1.0) <= 0.25)
        return (x - 1.0) * polynomial(near_one, COUNT(near_one), x - 1.0) + 0.0; /* of zeros the positive one */
    if (fabs(x - 2.0) <= 0.25)
        return (x - 2.0) * polynomial(near_two, COUNT(near_two), x - 2.0) + 0.0;
    return lgamma_shifted(x);
}
