/* Channels times factors plus shifts, and sums over channels, for one type of number; included by for_each_real.h. */

INLINE void TYPED(scale_row)(const REAL *x, ptrdiff_t count, REAL factor, REAL shift, REAL *to)
{
    for (ptrdiff_t i = 0; i < count; i++)
        to[i] = x[i] * factor + shift;
}

/* Items are planes, or samples where a plane is one element. */
MULTIVERSIONED static void TYPED(scale_planes)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Scaling *loop = context;
    const REAL *x = loop->input, *factor = loop->factor, *shift = loop->shift;
    REAL *to = loop->output;
    ptrdiff_t channels = loop->channels, inner = loop->inner;
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

/* Add grad * (x - mean) of a part of a plane to sums side by side. */
INLINE void TYPED(add_centered)(const REAL *restrict grad, const REAL *restrict x, ptrdiff_t count, REAL mean,
                                REAL *restrict lanes)
{
    ptrdiff_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int j = 0; j < LANES; j++)
            lanes[j] += grad[i + j] * (x[i + j] - mean);
    for (int j = 0; j < count - i; j++)
        lanes[j] += grad[i + j] * (x[i + j] - mean);
}

/* Items are channels. */
MULTIVERSIONED static void TYPED(sum_planes)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Scaling *loop = context;
    const REAL *x = loop->input, *grad = loop->grad, *mean = loop->mean, *factor = loop->factor;
    REAL *to = loop->output;
    ptrdiff_t inner = loop->inner;
    for (ptrdiff_t c = begin; c < end; c++) {
        double total = 0;
        ptrdiff_t filled = 0;
        REAL lanes[LANES] = {0};
        for (ptrdiff_t n = 0; n < loop->samples; n++)
            for (ptrdiff_t start = 0; start < inner; start += CHUNK) {
                ptrdiff_t place = (n * loop->channels + c) * inner + start;
                ptrdiff_t part = inner - start < CHUNK ? inner - start : CHUNK;
                if (filled + part > CHUNK) {
                    total += TYPED(total_of)(lanes);
                    TYPED(fill_lanes)(lanes, 0);
                    filled = 0;
                }
                TYPED(add_centered)(grad + place, x + place, part, mean[c], lanes);
                filled += part;
            }
        to[c] = (REAL)((total + TYPED(total_of)(lanes)) * (double)factor[c]);
    }
}

/* Where a plane is one element, neighbours are channels. */
MULTIVERSIONED static void TYPED(sum_columns)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Scaling *loop = context;
    const REAL *x = loop->input, *grad = loop->grad, *mean = loop->mean, *factor = loop->factor;
    REAL *to = loop->output;
    ptrdiff_t channels = loop->channels;
    for (ptrdiff_t first = begin; first < end; first += 64) {
        ptrdiff_t count = end - first < 64 ? end - first : 64;
        double totals[64] = {0};
        for (ptrdiff_t n = 0; n < loop->samples; n++) {
            const REAL *g = grad + n * channels + first, *v = x + n * channels + first, *m = mean + first;
            for (ptrdiff_t c = 0; c < count; c++)
                totals[c] += (double)g[c] * (double)(v[c] - m[c]);
        }
        for (ptrdiff_t c = 0; c < count; c++)
            to[first + c] = (REAL)(totals[c] * (double)factor[first + c]);
    }
}

/* 1 / sqrt(variance + eps), times the weight where there is one; the shift that goes with it. */
static void TYPED(find_factors)(const Scaling *loop, const REAL *variance, const REAL *weight, const REAL *bias, double eps,
                                REAL *factor, REAL *shift)
{
    const REAL *mean = loop->mean;
    for (ptrdiff_t c = 0; c < loop->channels; c++) {
        factor[c] = 1 / (REAL)sqrt(variance[c] + (REAL)eps);
        if (weight)
            factor[c] *= weight[c];
        if (shift)
            shift[c] = (bias ? bias[c] : 0) - mean[c] * factor[c];
    }
}
