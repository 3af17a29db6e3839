/* The negative log likelihood and the squared distance, for one type of number; see for_each_real.h. */

/* The element of the input that a target names is at `place`; an ignored target has none. */
static void TYPED(likelihoods)(const Likelihood *loop, REAL *each, double *total, double *divisor)
{
    const REAL *input = loop->input, *weight = loop->weight;
    Layout layout = loop->layout;
    double sum = 0, weights = 0;
    for (ptrdiff_t outer = 0, t = 0; outer < layout.outer; outer++)
        for (ptrdiff_t i = 0; i < layout.inner; i++, t++) {
            int64_t target = loop->target[t];
            REAL value = 0;
            if (target != loop->ignored) {
                REAL factor = weight ? weight[target] : 1;
                if (input) {
                    value = -input[(outer * layout.count + target) * layout.inner + i] * factor;
                    sum += value;
                }
                weights += factor;
            }
            if (each)
                each[t] = value;
        }
    *total = sum;
    *divisor = weights;
}

/* Spread a gradient to the targets' classes; there is one gradient, or one for each target. */
static void TYPED(spread_likelihoods)(const Likelihood *loop, const REAL *grad, int several, double divisor, REAL *output)
{
    const REAL *weight = loop->weight;
    Layout layout = loop->layout;
    for (ptrdiff_t outer = 0, t = 0; outer < layout.outer; outer++)
        for (ptrdiff_t i = 0; i < layout.inner; i++, t++) {
            int64_t target = loop->target[t];
            if (target != loop->ignored)
                output[(outer * layout.count + target) * layout.inner + i] =
                    (REAL)(-grad[several ? t : 0] * (weight ? weight[target] : 1) / divisor);
        }
}

/* The sum of squared distances in each PART of two arrays. */
MULTIVERSIONED static void TYPED(squared_distances)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Distance *loop = context;
    for (ptrdiff_t part = begin; part < end; part++) {
        const REAL *first = (const REAL *)loop->first + part * PART, *second = (const REAL *)loop->second + part * PART;
        ptrdiff_t count = loop->count - part * PART < PART ? loop->count - part * PART : PART;
        ptrdiff_t whole = count - count % LANES;
        double total = 0;
        for (ptrdiff_t start = 0; start < whole; start += CHUNK) {
            REAL lanes[LANES] = {0};
            for (ptrdiff_t i = start; i < start + CHUNK && i < whole; i += LANES)
                for (int j = 0; j < LANES; j++) {
                    REAL distance = first[i + j] - second[i + j];
                    lanes[j] += distance * distance;
                }
            total += TYPED(total_of)(lanes);
        }
        for (ptrdiff_t i = whole; i < count; i++)
            total += (first[i] - second[i]) * (first[i] - second[i]);
        loop->partials[part] = total;
    }
}

MULTIVERSIONED static void TYPED(scaled_distances)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Distance *loop = context;
    const REAL *first = loop->first, *second = loop->second;
    REAL *output = loop->output, factor = (REAL)loop->factor;
    for (ptrdiff_t i = begin; i < end; i++)
        output[i] = (first[i] - second[i]) * factor;
}
