/* Normalization of rows and of channels, forward and backward, for one type of number; see for_each_real.h.
 *
 * With n = (x - mean) * scale and h = grad * factor, the gradient of x is scale * (h - mean of h - n * mean of (h * n)),
 * that of the factor the sum of grad * n, that of the shift the sum of grad. Means are kept in float64 till they are done.
 */
#include "reduction_rows.h"

/* What an item, of segments that lie `stride` apart, is normalized by. Where the mean of squares is all that is divided by
 * (RMS norm), the mean is 0. */
INLINE void TYPED(find_statistics)(const Normalization *loop, const REAL *row, ptrdiff_t segments, int centered, REAL *mean,
                                   REAL *scale, REAL *variance)
{
    ptrdiff_t length = loop->channels * loop->inner, stride = loop->stride;
    double sum = 0, square = 0, count = (double)(segments * length);
    for (ptrdiff_t n = 0; centered && n < segments; n++)
        sum += TYPED(reduce_row)(SUM, row + n * stride, length, 0);
    *mean = (REAL)(sum / count);
    for (ptrdiff_t n = 0; n < segments; n++)
        square += centered ? TYPED(reduce_row)(DEVIATIONS, row + n * stride, length, *mean)
                           : TYPED(reduce_row)(SQUARES, row + n * stride, length, 0);
    if (centered && !loop->variance && (REAL)square - (REAL)square != 0)
        square = NAN; /* it overflowed: a deviation of infinity would hide that as zeros */
    *variance = (REAL)(square / count);
    *scale = (REAL)(1 / sqrt(square / count + loop->eps));
}

INLINE void TYPED(apply_row)(const REAL *restrict row, REAL *restrict output, ptrdiff_t count, REAL mean, REAL scale,
                             const REAL *restrict factor, const REAL *restrict shift)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        REAL value = (row[i] - mean) * scale;
        if (factor)
            value *= factor[i];
        output[i] = shift ? value + shift[i] : value;
    }
}

MULTIVERSIONED static void TYPED(normalize_rows)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Normalization *loop = context;
    ptrdiff_t count = loop->count;
    const REAL *factor = loop->factor, *shift = loop->shift;
    REAL *means = loop->mean, *scales = loop->scale;
    for (ptrdiff_t r = begin; r < end; r++) {
        const REAL *row = (const REAL *)loop->input + r * count;
        REAL *output = (REAL *)loop->output + r * count, mean, scale, variance;
        if (loop->centered)
            TYPED(find_statistics)(loop, row, 1, 1, &mean, &scale, &variance);
        else
            TYPED(find_statistics)(loop, row, 1, 0, &mean, &scale, &variance);
        if (factor && shift)
            TYPED(apply_row)(row, output, count, mean, scale, factor, shift);
        else if (factor)
            TYPED(apply_row)(row, output, count, mean, scale, factor, NULL);
        else
            TYPED(apply_row)(row, output, count, mean, scale, NULL, shift);
        if (means) {
            means[r] = mean;
            scales[r] = scale;
        }
    }
}

/* An item is a group of channels of a sample, or a channel of all samples; a channel has one factor and shift. */
INLINE void TYPED(normalize_item)(const Normalization *loop, ptrdiff_t r, ptrdiff_t channels, ptrdiff_t segments)
{
    ptrdiff_t inner = loop->inner, first = r * channels % loop->factors;
    const REAL *factors = loop->factor, *shifts = loop->shift, *input = (const REAL *)loop->input + r * loop->step;
    REAL *output = (REAL *)loop->output + r * loop->step, mean, scale, variance;
    TYPED(find_statistics)(loop, input, segments, 1, &mean, &scale, &variance);
    for (ptrdiff_t c = 0; c < channels; c++) {
        REAL factor = factors ? scale * factors[first + c] : scale, shift = shifts ? shifts[first + c] : 0;
        for (ptrdiff_t n = 0, at = c * inner; n < segments; n++, at += loop->stride)
            for (ptrdiff_t i = 0; i < inner; i++)
                output[at + i] = (input[at + i] - mean) * factor + shift;
    }
    ((REAL *)loop->mean)[r] = mean;
    ((REAL *)loop->scale)[r] = scale;
    if (loop->variance)
        ((REAL *)loop->variance)[r] = variance;
}

MULTIVERSIONED static void TYPED(normalize_channels)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Normalization *loop = context;
    if (loop->segments == 1)
        for (ptrdiff_t r = begin; r < end; r++)
            TYPED(normalize_item)(loop, r, loop->channels, 1);
    else
        for (ptrdiff_t r = begin; r < end; r++)
            TYPED(normalize_item)(loop, r, 1, loop->segments);
}

/* The sums of h and of h * n over a row; grad * n and grad are added to the columns of the factor's and shift's gradient. */
INLINE void TYPED(back_sums)(const REAL *restrict grad, const REAL *restrict row, const REAL *restrict factor,
                             ptrdiff_t count, REAL mean, REAL scale, REAL *restrict to_factor, REAL *restrict to_shift,
                             double *sum, double *along)
{
    *sum = *along = 0;
    ptrdiff_t whole = count - count % LANES;
    for (ptrdiff_t start = 0; start < whole; start += CHUNK) {
        REAL sums[LANES] = {0}, products[LANES] = {0};
        ptrdiff_t end = start + CHUNK < whole ? start + CHUNK : whole;
        for (ptrdiff_t i = start; i < end; i += LANES)
            for (int j = 0; j < LANES; j++) {
                REAL n = (row[i + j] - mean) * scale, g = grad[i + j], h = factor ? g * factor[i + j] : g;
                sums[j] += h;
                products[j] += h * n;
                if (to_factor) {
                    to_factor[i + j] += g * n;
                    to_shift[i + j] += g;
                }
            }
        *sum += TYPED(total_of)(sums);
        *along += TYPED(total_of)(products);
    }
    for (ptrdiff_t i = whole; i < count; i++) {
        REAL n = (row[i] - mean) * scale, g = grad[i], h = factor ? g * factor[i] : g;
        *sum += h;
        *along += h * n;
        if (to_factor) {
            to_factor[i] += g * n;
            to_shift[i] += g;
        }
    }
}

/* Add the elements of a segment, grad (where it is `summed`) and grad * (x - mean), to sums side by side: what is left over
 * too. */
INLINE void TYPED(add_segment)(const REAL *restrict grad, const REAL *restrict row, ptrdiff_t count, REAL mean, int summed,
                               REAL *restrict sums, REAL *restrict products)
{
    ptrdiff_t i = 0;
#define ADD(lanes)                                                                                                     \
    for (int j = 0; j < (lanes); j++) {                                                                                \
        if (summed)                                                                                                    \
            sums[j] += grad[i + j];                                                                                    \
        products[j] += grad[i + j] * (row[i + j] - mean);                                                              \
    }
    for (; i + LANES <= count; i += LANES)
        ADD(LANES)
    for (; i + 8 <= count; i += 8)
        ADD(8)
    ADD(count - i)
#undef ADD
}

/* The sums of grad and of grad * n over `segments` segments, `stride` apart. */
INLINE void TYPED(segment_sums)(const REAL *grad, const REAL *row, ptrdiff_t segments, ptrdiff_t stride, ptrdiff_t count,
                                REAL mean, REAL scale, int summed, double *sum, double *along)
{
    *sum = *along = 0;
    ptrdiff_t filled = 0;
    REAL sums[LANES] = {0}, products[LANES] = {0};
    for (ptrdiff_t n = 0; n < segments; n++)
        for (ptrdiff_t start = 0; start < count; start += CHUNK) {
            ptrdiff_t part = count - start < CHUNK ? count - start : CHUNK;
            if (filled + part > CHUNK) {
                *sum += TYPED(total_of)(sums);
                *along += TYPED(total_of)(products);
                TYPED(fill_lanes)(sums, 0);
                TYPED(fill_lanes)(products, 0);
                filled = 0;
            }
            TYPED(add_segment)(grad + n * stride + start, row + n * stride + start, part, mean, summed, sums, products);
            filled += part;
        }
    *sum += summed ? TYPED(total_of)(sums) : 0;
    *along = (*along + TYPED(total_of)(products)) * (double)scale;
}

/* scale * (grad * factor - sum - n * along), the factor given for each element or for all. */
INLINE void TYPED(back_row)(const REAL *restrict grad, const REAL *restrict row, const REAL *restrict factor, REAL constant,
                            REAL *restrict output, ptrdiff_t count, REAL mean, REAL scale, REAL sum, REAL along)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        REAL n = (row[i] - mean) * scale, h = grad[i] * (factor ? factor[i] : constant);
        output[i] = scale * ((h - sum) - n * along);
    }
}

/* An item is PART_ROWS rows, which add up their gradients of factor and shift in the array's own precision. */
MULTIVERSIONED static void TYPED(back_rows)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Normalization *loop = context;
    ptrdiff_t count = loop->count;
    const REAL *means = loop->mean, *scales = loop->scale, *factor = loop->factor;
    for (ptrdiff_t part = begin; part < end; part++) {
        REAL *to_factor = (REAL *)loop->to_factor + 2 * part * count, *to_shift = (REAL *)loop->to_shift + 2 * part * count;
        memset(to_factor, 0, count * sizeof(REAL));
        memset(to_shift, 0, count * sizeof(REAL));
        ptrdiff_t last = (part + 1) * PART_ROWS < loop->items ? (part + 1) * PART_ROWS : loop->items;
        for (ptrdiff_t r = part * PART_ROWS; r < last; r++) {
            const REAL *row = (const REAL *)loop->input + r * count, *grad = (const REAL *)loop->grad + r * count;
            REAL *output = (REAL *)loop->output + r * count, mean, scale, variance;
            if (loop->centered) {
                mean = means[r];
                scale = scales[r];
            } else
                TYPED(find_statistics)(loop, row, 1, 0, &mean, &scale, &variance);
            double sum, along;
            if (factor)
                TYPED(back_sums)(grad, row, factor, count, mean, scale, to_factor, to_shift, &sum, &along);
            else
                TYPED(back_sums)(grad, row, NULL, count, mean, scale, to_factor, to_shift, &sum, &along);
            REAL mean_sum = loop->centered ? (REAL)(sum / (double)count) : 0, mean_along = (REAL)(along / (double)count);
            if (factor)
                TYPED(back_row)(grad, row, factor, 1, output, count, mean, scale, mean_sum, mean_along);
            else
                TYPED(back_row)(grad, row, NULL, 1, output, count, mean, scale, mean_sum, mean_along);
        }
    }
}

/* Add up the parts of the gradients of factor and shift, [part][2][count]. */
MULTIVERSIONED static void TYPED(join_columns)(const void *partials, ptrdiff_t parts, ptrdiff_t count, void *to_factor,
                                               void *to_shift)
{
    for (int which = 0; which < 2; which++) {
        REAL *result = which ? to_shift : to_factor;
        for (ptrdiff_t start = 0; result && start < count; start += LANES) {
            int width = start + LANES <= count ? LANES : (int)(count - start);
            double total[LANES] = {0};
            const REAL *part = (const REAL *)partials + which * count + start;
            for (ptrdiff_t p = 0; p < parts; p++, part += 2 * count)
                if (width == LANES)
                    for (int j = 0; j < LANES; j++)
                        total[j] += part[j];
                else
                    for (int j = 0; j < width; j++)
                        total[j] += part[j];
            for (int j = 0; j < width; j++)
                result[start + j] = (REAL)total[j];
        }
    }
}

/* An item is a group of channels of a sample, whose sums go to parts of the gradients, one for each sample; or a channel of
 * all samples. Without `summed`, the gradient of the factor is all that is asked for. */
INLINE void TYPED(back_item)(const Normalization *loop, ptrdiff_t r, ptrdiff_t channels, ptrdiff_t segments, int summed)
{
    ptrdiff_t inner = loop->inner, stride = loop->stride, start = r * loop->step;
    ptrdiff_t first = r * channels % loop->factors, to = 2 * (r * channels - first) + first;
    const REAL *row = (const REAL *)loop->input + start, *grad = (const REAL *)loop->grad + start, *factors = loop->factor;
    REAL *output = (REAL *)loop->output + start, *to_factor = (REAL *)loop->to_factor + to;
    REAL *to_shift = (REAL *)loop->to_shift + to, mean = ((const REAL *)loop->mean)[r], scale = ((const REAL *)loop->scale)[r];
    double sum = 0, along = 0, count = (double)loop->count;
    for (ptrdiff_t c = 0; c < channels; c++) {
        double of_channel, along_channel, factor = factors ? factors[first + c] : 1;
        const REAL *g = grad + c * inner, *x = row + c * inner;
        if (segments == 1 && inner < LANES)
            TYPED(back_sums)(g, x, NULL, inner, mean, scale, NULL, NULL, &of_channel, &along_channel);
        else
            TYPED(segment_sums)(g, x, segments, stride, inner, mean, scale, summed, &of_channel, &along_channel);
        to_factor[c] = (REAL)along_channel;
        if (summed)
            to_shift[c] = (REAL)of_channel;
        sum += factor * of_channel;
        along += factor * along_channel;
    }
    for (ptrdiff_t c = 0; summed && c < channels; c++)
        for (ptrdiff_t n = 0, at = c * inner; n < segments; n++, at += stride)
            TYPED(back_row)(grad + at, row + at, NULL, factors ? factors[first + c] : 1, output + at, inner, mean, scale,
                            (REAL)(sum / count), (REAL)(along / count));
}

MULTIVERSIONED static void TYPED(back_channels)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Normalization *loop = context;
    for (ptrdiff_t r = begin; r < end; r++)
        if (!loop->output)
            TYPED(back_item)(loop, r, 1, loop->segments, 0);
        else if (loop->segments == 1)
            TYPED(back_item)(loop, r, loop->channels, 1, 1);
        else
            TYPED(back_item)(loop, r, 1, loop->segments, 1);
}

/* Channels that are columns, one element a sample: an item is LANES of them. */

INLINE void TYPED(normalize_columns)(const Normalization *loop, ptrdiff_t c, int width)
{
    ptrdiff_t stride = loop->stride;
    const REAL *input = (const REAL *)loop->input + c, *factors = loop->factor, *shifts = loop->shift;
    REAL *output = (REAL *)loop->output + c, mean[LANES], factor[LANES], shift[LANES];
    double sum[LANES] = {0}, square[LANES] = {0}, count = (double)loop->segments;
    for (ptrdiff_t n = 0; n < loop->segments; n++)
        for (int j = 0; j < width; j++)
            sum[j] += input[n * stride + j];
    for (int j = 0; j < width; j++)
        mean[j] = (REAL)(sum[j] / count);
    for (ptrdiff_t n = 0; n < loop->segments; n++)
        for (int j = 0; j < width; j++) {
            REAL distance = input[n * stride + j] - mean[j];
            square[j] += distance * distance;
        }
    for (int j = 0; j < width; j++) {
        REAL scale = (REAL)(1 / sqrt(square[j] / count + loop->eps));
        factor[j] = factors ? scale * factors[c + j] : scale;
        shift[j] = shifts ? shifts[c + j] : 0;
        ((REAL *)loop->mean)[c + j] = mean[j];
        ((REAL *)loop->scale)[c + j] = scale;
        ((REAL *)loop->variance)[c + j] = (REAL)(square[j] / count);
    }
    for (ptrdiff_t n = 0; n < loop->segments; n++)
        for (int j = 0; j < width; j++)
            output[n * stride + j] = (input[n * stride + j] - mean[j]) * factor[j] + shift[j];
}

INLINE void TYPED(back_columns)(const Normalization *loop, ptrdiff_t c, int width)
{
    ptrdiff_t stride = loop->stride;
    const REAL *input = (const REAL *)loop->input + c, *grad = (const REAL *)loop->grad + c, *factors = loop->factor;
    const REAL *mean = (const REAL *)loop->mean + c, *scale = (const REAL *)loop->scale + c;
    REAL *output = (REAL *)loop->output + c, mean_sum[LANES], mean_along[LANES], factor[LANES];
    double sum[LANES] = {0}, along[LANES] = {0}, count = (double)loop->segments;
    for (ptrdiff_t n = 0; n < loop->segments; n++)
        for (int j = 0; j < width; j++) {
            REAL g = grad[n * stride + j];
            sum[j] += g;
            along[j] += g * ((input[n * stride + j] - mean[j]) * scale[j]);
        }
    for (int j = 0; j < width; j++) {
        mean_sum[j] = (REAL)(sum[j] / count);
        mean_along[j] = (REAL)(along[j] / count);
        factor[j] = factors ? scale[j] * factors[c + j] : scale[j];
        ((REAL *)loop->to_factor)[c + j] = (REAL)along[j];
        if (loop->to_shift)
            ((REAL *)loop->to_shift)[c + j] = (REAL)sum[j];
    }
    for (ptrdiff_t n = 0; loop->output && n < loop->segments; n++)
        for (int j = 0; j < width; j++) {
            REAL normalized = (input[n * stride + j] - mean[j]) * scale[j];
            output[n * stride + j] = factor[j] * ((grad[n * stride + j] - mean_sum[j]) - normalized * mean_along[j]);
        }
}

#define COLUMN_LOOP(name, body)                                                                                        \
    MULTIVERSIONED static void TYPED(name)(void *context, ptrdiff_t begin, ptrdiff_t end)                              \
    {                                                                                                                  \
        const Normalization *loop = context;                                                                           \
        for (ptrdiff_t c = begin * LANES; c < end * LANES && c < loop->items; c += LANES)                           \
            if (c + LANES <= loop->items)                                                                           \
                TYPED(body)(loop, c, LANES);                                                                           \
            else                                                                                                       \
                TYPED(body)(loop, c, (int)(loop->items - c));                                                       \
    }
COLUMN_LOOP(normalize_vectors, normalize_columns)
COLUMN_LOOP(back_vectors, back_columns)
#undef COLUMN_LOOP

/* Given statistics. */

static void TYPED(find_factors)(ptrdiff_t count, const void *weight, const void *bias, const void *mean, const void *variance,
                                double eps, void *to)
{
    REAL *factor = to, *shift = factor + count;
    for (ptrdiff_t c = 0; c < count; c++) {
        factor[c] = 1 / (REAL)sqrt(((const REAL *)variance)[c] + (REAL)eps);
        if (weight)
            factor[c] *= ((const REAL *)weight)[c];
        if (mean)
            shift[c] = (bias ? ((const REAL *)bias)[c] : 0) - ((const REAL *)mean)[c] * factor[c];
    }
}

INLINE void TYPED(scale_row)(const REAL *x, ptrdiff_t count, REAL factor, REAL shift, REAL *to)
{
    for (ptrdiff_t i = 0; i < count; i++)
        to[i] = x[i] * factor + shift;
}

/* Items are planes, or samples where a plane is one element. */
MULTIVERSIONED static void TYPED(scale_planes)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Normalization *loop = context;
    const REAL *x = loop->input, *factor = loop->factor, *shift = loop->shift;
    REAL *to = loop->output;
    ptrdiff_t channels = loop->factors, inner = loop->inner;
    if (inner > 1) {
        for (ptrdiff_t plane = begin; plane < end; plane++)
            TYPED(scale_row)(x + plane * inner, inner, factor[plane % channels], shift ? shift[plane % channels] : 0,
                             to + plane * inner);
        return;
    }
    for (ptrdiff_t n = begin; n < end; n++)
        for (ptrdiff_t c = 0; c < channels; c++)
            to[n * channels + c] = x[n * channels + c] * factor[c] + (shift ? shift[c] : 0);
}
