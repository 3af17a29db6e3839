/* Losses of pairs of numbers, for one type of number; see for_each_real.h. */

/* The loss of one pair, the losses of many, and their sums over each PART. */
#define PAIR_LOSS(name, expression)                                                                                    \
    INLINE REAL TYPED(name##_of)(REAL input, REAL target, REAL limit)                                                  \
    {                                                                                                                  \
        (void)limit;                                                                                                   \
        return expression;                                                                                             \
    }                                                                                                                  \
    MULTIVERSIONED static void TYPED(name##_each)(void *context, ptrdiff_t begin, ptrdiff_t end)                       \
    {                                                                                                                  \
        const Pairs *pairs = context;                                                                                  \
        const REAL *input = pairs->input, *target = pairs->target;                                                     \
        REAL *output = pairs->output, limit = (REAL)pairs->limit, factor = (REAL)pairs->factor;                        \
        for (ptrdiff_t i = begin; i < end; i++)                                                                        \
            output[i] = TYPED(name##_of)(input[i], target[i], limit) * factor;                                         \
    }                                                                                                                  \
    MULTIVERSIONED static void TYPED(name##_sums)(void *context, ptrdiff_t begin, ptrdiff_t end)                       \
    {                                                                                                                  \
        const Pairs *pairs = context;                                                                                  \
        REAL limit = (REAL)pairs->limit;                                                                               \
        for (ptrdiff_t part = begin; part < end; part++) {                                                             \
            const REAL *input = (const REAL *)pairs->input + part * PART;                                              \
            const REAL *target = (const REAL *)pairs->target + part * PART;                                            \
            ptrdiff_t left = pairs->count - part * PART, count = left < PART ? left : PART;                            \
            ptrdiff_t whole = count - count % LANES;                                                                   \
            double total = 0;                                                                                          \
            for (ptrdiff_t start = 0; start < whole; start += CHUNK) {                                                 \
                REAL lanes[LANES] = {0};                                                                               \
                for (ptrdiff_t i = start; i < start + CHUNK && i < whole; i += LANES)                                  \
                    for (int j = 0; j < LANES; j++)                                                                    \
                        lanes[j] += TYPED(name##_of)(input[i + j], target[i + j], limit);                              \
                total += TYPED(total_of)(lanes);                                                                       \
            }                                                                                                          \
            for (ptrdiff_t i = whole; i < count; i++)                                                                  \
                total += TYPED(name##_of)(input[i], target[i], limit);                                                 \
            pairs->partials[part] = total;                                                                             \
        }                                                                                                              \
    }

INLINE REAL TYPED(square)(REAL value) { return value * value; }

/* With d the distance and c = min(d, limit): c (d - c / 2). NaN stays. */
INLINE REAL TYPED(rounded)(REAL distance, REAL limit)
{
    REAL size = abs_of(distance), near = size > limit ? limit : size;
    return near * (size - (REAL)0.5 * near);
}

INLINE REAL TYPED(at_least_minus_100)(REAL value) { return value < -100 ? -100 : value; }

PAIR_LOSS(squared, TYPED(square)(input - target))
PAIR_LOSS(rounded_distance, TYPED(rounded)(input - target, limit))
/* log(1 + exp(z)) = max(z, 0) + log(1 + exp(-|z|)) for z = -target * input */
PAIR_LOSS(soft_margin, maximum_of(-(target * input), (REAL)0) + log1p_of(exp_of(-abs_of(target * input))))
PAIR_LOSS(cross_entropy, (target - 1) * TYPED(at_least_minus_100)(log1p_of(-input)) -
                             target * TYPED(at_least_minus_100)(log_of(input)))
PAIR_LOSS(logit_cross_entropy, (1 - target) * input + (log1p_of(exp_of(-abs_of(input))) - minimum_of(input, (REAL)0)))
#undef PAIR_LOSS

INLINE REAL TYPED(clamped)(REAL distance, REAL limit)
{
    REAL lowered = distance > limit ? limit : distance;
    return lowered < -limit ? -limit : lowered;
}

INLINE REAL TYPED(kept_from_zero)(REAL value) { return value < (REAL)1e-12 ? (REAL)1e-12 : value; }

/* Slopes of losses with respect to their inputs, times a gradient for all or one for each. */
#define PAIR_SLOPE(name, expression)                                                                                   \
    MULTIVERSIONED static void TYPED(name)(void *context, ptrdiff_t begin, ptrdiff_t end)                              \
    {                                                                                                                  \
        const Pairs *pairs = context;                                                                                  \
        const REAL *inputs = pairs->input, *targets = pairs->target, *grads = pairs->grad;                             \
        REAL *output = pairs->output, limit = (REAL)pairs->limit, scale = (REAL)pairs->scale;                          \
        REAL factor = (REAL)pairs->factor;                                                                             \
        (void)limit, (void)scale;                                                                                      \
        for (ptrdiff_t i = begin; i < end; i++) {                                                                      \
            REAL input = inputs[i], target = targets[i];                                                               \
            output[i] = (expression) * factor;                                                                         \
        }                                                                                                              \
        for (ptrdiff_t i = begin; grads && i < end; i++)                                                               \
            output[i] *= grads[i];                                                                                     \
    }
PAIR_SLOPE(distance_slopes, TYPED(clamped)((input - target) * scale, limit))
PAIR_SLOPE(margin_slopes, -target / (1 + exp_of(target * input)))
PAIR_SLOPE(cross_entropy_slopes, (input - target) / TYPED(kept_from_zero)(input * (1 - input)))
PAIR_SLOPE(logit_slopes, 1 / (1 + exp_of(-input)) - target)
#undef PAIR_SLOPE

MULTIVERSIONED static int TYPED(are_probabilities)(const void *values, ptrdiff_t count)
{
    const REAL *value = values;
    int wrong = 0;
    for (ptrdiff_t i = 0; i < count; i++)
        wrong |= !((value[i] >= 0) & (value[i] <= 1));
    return !wrong;
}
