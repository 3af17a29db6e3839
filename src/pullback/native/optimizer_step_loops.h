/* Steps of optimizers over elements `begin` to `end`, for one type of number; included by for_each_real.h.
 *
 * The operations are those of kernels/optimizer_steps.py in their order. Which of them are done is known outside of the
 * loop: each body is inlined once per case. An array may be given twice, so that no pointer is `restrict`.
 */

/* The gradient to descend along. */
INLINE REAL TYPED(descent)(REAL grad, REAL param, REAL sign, REAL weight_decay, int decays)
{
    grad *= sign;
    return decays ? grad + param * weight_decay : grad;
}

INLINE void TYPED(sgd_elements)(const SgdStep *s, ptrdiff_t begin, ptrdiff_t end, int decays, int keeps, int looks_ahead,
                                int is_first)
{
    REAL *param = s->param, *buffer = s->momentum_buffer;
    const REAL *grad = s->grad;
    const REAL lr = (REAL)s->lr, momentum = (REAL)s->momentum, kept = (REAL)(1 - s->dampening),
               weight_decay = (REAL)s->weight_decay, sign = (REAL)s->sign;
    INDEPENDENT
    for (ptrdiff_t i = begin; i < end; i++) {
        REAL direction = TYPED(descent)(grad[i], param[i], sign, weight_decay, decays);
        if (keeps) {
            REAL sum = is_first ? direction : buffer[i] * momentum + direction * kept;
            buffer[i] = sum;
            direction = looks_ahead ? direction + sum * momentum : sum;
        }
        param[i] -= direction * lr;
    }
}

MULTIVERSIONED static void TYPED(sgd_block)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const SgdStep *s = context;
    int decays = s->weight_decay != 0;
    if (!s->momentum_buffer)
        decays ? TYPED(sgd_elements)(s, begin, end, 1, 0, 0, 0) : TYPED(sgd_elements)(s, begin, end, 0, 0, 0, 0);
    else if (s->is_first)
        TYPED(sgd_elements)(s, begin, end, decays, 1, s->nesterov, 1);
    else if (s->nesterov)
        decays ? TYPED(sgd_elements)(s, begin, end, 1, 1, 1, 0) : TYPED(sgd_elements)(s, begin, end, 0, 1, 1, 0);
    else
        decays ? TYPED(sgd_elements)(s, begin, end, 1, 1, 0, 0) : TYPED(sgd_elements)(s, begin, end, 0, 1, 0, 0);
}

INLINE void TYPED(adam_elements)(const AdamStep *s, ptrdiff_t begin, ptrdiff_t end, int decays, int keeps_largest)
{
    REAL *param = s->param, *mean = s->exp_avg, *square = s->exp_avg_sq, *largest = s->max_exp_avg_sq;
    const REAL *grad = s->grad;
    const REAL shrink = (REAL)s->shrink, weight_decay = (REAL)s->weight_decay, sign = (REAL)s->sign,
               arriving = (REAL)(1 - s->beta1), beta2 = (REAL)s->beta2, arriving_square = (REAL)(1 - s->beta2),
               root_correction = (REAL)s->root_correction, eps = (REAL)s->eps, step_size = (REAL)s->step_size;
    INDEPENDENT
    for (ptrdiff_t i = begin; i < end; i++) {
        REAL value = param[i] * shrink;
        REAL direction = TYPED(descent)(grad[i], value, sign, weight_decay, decays);
        REAL new_mean = mean[i] + (direction - mean[i]) * arriving;
        REAL new_square = square[i] * beta2 + direction * arriving_square * direction;
        mean[i] = new_mean;
        square[i] = new_square;
        if (keeps_largest) {
            REAL old = largest[i];
            new_square = old > new_square || old != old ? old : new_square; /* NaN stays */
            largest[i] = new_square;
        }
        param[i] = value - new_mean * step_size / (SQUARE_ROOT(new_square) / root_correction + eps);
    }
}

MULTIVERSIONED static void TYPED(adam_block)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const AdamStep *s = context;
    if (s->max_exp_avg_sq)
        TYPED(adam_elements)(s, begin, end, s->weight_decay != 0, 1);
    else if (s->weight_decay != 0)
        TYPED(adam_elements)(s, begin, end, 1, 0);
    else
        TYPED(adam_elements)(s, begin, end, 0, 0);
}

INLINE void TYPED(rmsprop_elements)(const RmspropStep *s, ptrdiff_t begin, ptrdiff_t end, int decays, int keeps,
                                    int is_centered)
{
    REAL *param = s->param, *square = s->square_avg, *buffer = s->momentum_buffer, *mean = s->grad_avg;
    const REAL *grad = s->grad;
    const REAL lr = (REAL)s->lr, alpha = (REAL)s->alpha, arriving = (REAL)(1 - s->alpha), eps = (REAL)s->eps,
               weight_decay = (REAL)s->weight_decay, momentum = (REAL)s->momentum, sign = (REAL)s->sign;
    INDEPENDENT
    for (ptrdiff_t i = begin; i < end; i++) {
        REAL direction = TYPED(descent)(grad[i], param[i], sign, weight_decay, decays);
        REAL variance = square[i] * alpha + direction * arriving * direction;
        square[i] = variance;
        if (is_centered) {
            REAL new_mean = mean[i] + (direction - mean[i]) * arriving;
            mean[i] = new_mean;
            variance -= new_mean * new_mean;
        }
        REAL root = SQUARE_ROOT(variance) + eps;
        if (keeps) {
            REAL sum = buffer[i] * momentum + direction / root;
            buffer[i] = sum;
            param[i] -= sum * lr;
        } else {
            param[i] -= direction * lr / root;
        }
    }
}

MULTIVERSIONED static void TYPED(rmsprop_block)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const RmspropStep *s = context;
    int decays = s->weight_decay != 0;
    if (s->grad_avg)
        s->momentum_buffer ? TYPED(rmsprop_elements)(s, begin, end, decays, 1, 1)
                           : TYPED(rmsprop_elements)(s, begin, end, decays, 0, 1);
    else if (s->momentum_buffer)
        TYPED(rmsprop_elements)(s, begin, end, decays, 1, 0);
    else
        decays ? TYPED(rmsprop_elements)(s, begin, end, 1, 0, 0) : TYPED(rmsprop_elements)(s, begin, end, 0, 0, 0);
}

INLINE void TYPED(adagrad_elements)(const AdagradStep *s, ptrdiff_t begin, ptrdiff_t end, int decays)
{
    REAL *param = s->param, *total = s->total;
    const REAL *grad = s->grad;
    const REAL lr = (REAL)s->lr, eps = (REAL)s->eps, weight_decay = (REAL)s->weight_decay, sign = (REAL)s->sign;
    INDEPENDENT
    for (ptrdiff_t i = begin; i < end; i++) {
        REAL direction = TYPED(descent)(grad[i], param[i], sign, weight_decay, decays);
        REAL sum = total[i] + direction * direction;
        total[i] = sum;
        param[i] -= direction * lr / (SQUARE_ROOT(sum) + eps);
    }
}

MULTIVERSIONED static void TYPED(adagrad_block)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const AdagradStep *s = context;
    s->weight_decay != 0 ? TYPED(adagrad_elements)(s, begin, end, 1) : TYPED(adagrad_elements)(s, begin, end, 0);
}
