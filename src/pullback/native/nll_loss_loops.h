/* The negative log likelihood, for one type of number; see for_each_real.h. */

/* The element of the input that a target names is at `place`; an ignored target has none. */
static void TYPED(likelihoods)(const Likelihood *loop, void *each, double *total, double *divisor)
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
                ((REAL *)each)[t] = value;
        }
    *total = sum;
    *divisor = weights;
}

/* Spread a gradient to the targets' classes; there is one gradient, or one for each target. */
static void TYPED(spread_likelihoods)(const Likelihood *loop, const void *grads, int several, double divisor, void *output)
{
    const REAL *weight = loop->weight, *grad = grads;
    Layout layout = loop->layout;
    for (ptrdiff_t outer = 0, t = 0; outer < layout.outer; outer++)
        for (ptrdiff_t i = 0; i < layout.inner; i++, t++) {
            int64_t target = loop->target[t];
            if (target != loop->ignored)
                ((REAL *)output)[(outer * layout.count + target) * layout.inner + i] =
                    (REAL)(-grad[several ? t : 0] * (weight ? weight[target] : 1) / divisor);
        }
}
