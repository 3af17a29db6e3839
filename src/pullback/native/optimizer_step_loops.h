/* Steps of optimizers over elements `begin` to `end` of one row, for one type of number; included by for_each_real.h.
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

#define SIGN ((REAL)(n->maximize ? -1 : 1))
#define STEP_ARGUMENTS const void *numbers, void *const *row, ptrdiff_t begin, ptrdiff_t end

/* A loop whose one case is whether weights decay. */
#define DECAYING_ROW(name, Numbers)                                                                                    \
    MULTIVERSIONED static void TYPED(name##_row)(STEP_ARGUMENTS)                                                       \
    {                                                                                                                  \
        const Numbers *n = numbers;                                                                                    \
        n->weight_decay != 0 ? TYPED(name##_elements)(n, row, begin, end, 1)                                           \
                             : TYPED(name##_elements)(n, row, begin, end, 0);                                          \
    }

INLINE void TYPED(sgd_elements)(const SgdNumbers *n, void *const *row, ptrdiff_t begin, ptrdiff_t end, int decays,
                                int keeps, int looks_ahead, int is_first)
{
    REAL *param = row[0], *buffer = row[2];
    const REAL *grad = row[1];
    const REAL lr = (REAL)n->lr, momentum = (REAL)n->momentum, kept = (REAL)(1 - n->dampening),
               weight_decay = (REAL)n->weight_decay, sign = SIGN;
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

MULTIVERSIONED static void TYPED(sgd_row)(STEP_ARGUMENTS)
{
    const SgdNumbers *n = numbers;
    int decays = n->weight_decay != 0, nesterov = n->nesterov != 0;
    if (!row[2])
        decays ? TYPED(sgd_elements)(n, row, begin, end, 1, 0, 0, 0) : TYPED(sgd_elements)(n, row, begin, end, 0, 0, 0, 0);
    else if (n->is_first != 0)
        TYPED(sgd_elements)(n, row, begin, end, decays, 1, nesterov, 1);
    else if (nesterov)
        decays ? TYPED(sgd_elements)(n, row, begin, end, 1, 1, 1, 0) : TYPED(sgd_elements)(n, row, begin, end, 0, 1, 1, 0);
    else
        decays ? TYPED(sgd_elements)(n, row, begin, end, 1, 1, 0, 0) : TYPED(sgd_elements)(n, row, begin, end, 0, 1, 0, 0);
}

INLINE void TYPED(adam_elements)(const AdamNumbers *n, void *const *row, ptrdiff_t begin, ptrdiff_t end, int decays,
                                 int keeps_largest)
{
    REAL *param = row[0], *mean = row[2], *square = row[3], *largest = row[4];
    const REAL *grad = row[1];
    const REAL shrink = (REAL)n->shrink, weight_decay = (REAL)n->weight_decay, sign = SIGN,
               arriving = (REAL)(1 - n->beta1), beta2 = (REAL)n->beta2, arriving_square = (REAL)(1 - n->beta2),
               root_correction = (REAL)n->root_correction, eps = (REAL)n->eps, step_size = (REAL)n->step_size;
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

MULTIVERSIONED static void TYPED(adam_row)(STEP_ARGUMENTS)
{
    const AdamNumbers *n = numbers;
    if (row[4])
        TYPED(adam_elements)(n, row, begin, end, n->weight_decay != 0, 1);
    else if (n->weight_decay != 0)
        TYPED(adam_elements)(n, row, begin, end, 1, 0);
    else
        TYPED(adam_elements)(n, row, begin, end, 0, 0);
}

INLINE void TYPED(nadam_elements)(const NadamNumbers *n, void *const *row, ptrdiff_t begin, ptrdiff_t end, int decays)
{
    REAL *param = row[0], *mean = row[2], *square = row[3];
    const REAL *grad = row[1];
    const REAL shrink = (REAL)n->shrink, weight_decay = (REAL)n->weight_decay, sign = SIGN,
               arriving = (REAL)(1 - n->beta1), beta2 = (REAL)n->beta2, arriving_square = (REAL)(1 - n->beta2),
               correction = (REAL)n->correction, eps = (REAL)n->eps, of_grad = (REAL)n->of_grad,
               of_momentum = (REAL)n->of_momentum;
    INDEPENDENT
    for (ptrdiff_t i = begin; i < end; i++) {
        REAL value = param[i] * shrink;
        REAL direction = TYPED(descent)(grad[i], value, sign, weight_decay, decays);
        REAL new_mean = mean[i] + (direction - mean[i]) * arriving;
        REAL new_square = square[i] * beta2 + direction * arriving_square * direction;
        mean[i] = new_mean;
        square[i] = new_square;
        REAL root = SQUARE_ROOT(new_square / correction) + eps;
        param[i] = value - direction * of_grad / root - new_mean * of_momentum / root;
    }
}

DECAYING_ROW(nadam, NadamNumbers)

INLINE void TYPED(radam_elements)(const RadamNumbers *n, void *const *row, ptrdiff_t begin, ptrdiff_t end, int decays,
                                  int is_rectified)
{
    REAL *param = row[0], *mean = row[2], *square = row[3];
    const REAL *grad = row[1];
    const REAL lr = (REAL)n->lr, shrink = (REAL)n->shrink, weight_decay = (REAL)n->weight_decay, sign = SIGN,
               arriving = (REAL)(1 - n->beta1), beta2 = (REAL)n->beta2, arriving_square = (REAL)(1 - n->beta2),
               correction = (REAL)n->correction, root_correction = (REAL)n->root_correction, eps = (REAL)n->eps,
               rectification = (REAL)n->rectification;
    INDEPENDENT
    for (ptrdiff_t i = begin; i < end; i++) {
        REAL value = param[i] * shrink;
        REAL direction = TYPED(descent)(grad[i], value, sign, weight_decay, decays);
        REAL new_mean = mean[i] + (direction - mean[i]) * arriving;
        REAL new_square = square[i] * beta2 + direction * arriving_square * direction;
        mean[i] = new_mean;
        square[i] = new_square;
        REAL change = new_mean / correction * lr;
        if (is_rectified)
            change = change * (root_correction / (SQUARE_ROOT(new_square) + eps)) * rectification;
        param[i] = value - change;
    }
}

MULTIVERSIONED static void TYPED(radam_row)(STEP_ARGUMENTS)
{
    const RadamNumbers *n = numbers;
    int decays = n->weight_decay != 0;
    if (n->is_rectified == 0)
        TYPED(radam_elements)(n, row, begin, end, decays, 0);
    else
        decays ? TYPED(radam_elements)(n, row, begin, end, 1, 1) : TYPED(radam_elements)(n, row, begin, end, 0, 1);
}

INLINE void TYPED(adamax_elements)(const AdamaxNumbers *n, void *const *row, ptrdiff_t begin, ptrdiff_t end, int decays)
{
    REAL *param = row[0], *mean = row[2], *largest = row[3];
    const REAL *grad = row[1];
    const REAL weight_decay = (REAL)n->weight_decay, sign = SIGN, arriving = (REAL)(1 - n->beta1),
               beta2 = (REAL)n->beta2, eps = (REAL)n->eps, step_size = (REAL)n->step_size;
    INDEPENDENT
    for (ptrdiff_t i = begin; i < end; i++) {
        REAL direction = TYPED(descent)(grad[i], param[i], sign, weight_decay, decays);
        REAL new_mean = mean[i] + (direction - mean[i]) * arriving;
        REAL old = largest[i] * beta2;
        REAL size = (direction < 0 ? -direction : direction) + eps;
        REAL new_largest = old > size || old != old ? old : size; /* NaN stays */
        mean[i] = new_mean;
        largest[i] = new_largest;
        param[i] -= new_mean * step_size / new_largest;
    }
}

DECAYING_ROW(adamax, AdamaxNumbers)

INLINE void TYPED(rmsprop_elements)(const RmspropNumbers *n, void *const *row, ptrdiff_t begin, ptrdiff_t end, int decays,
                                    int keeps, int is_centered)
{
    REAL *param = row[0], *square = row[2], *buffer = row[3], *mean = row[4];
    const REAL *grad = row[1];
    const REAL lr = (REAL)n->lr, alpha = (REAL)n->alpha, arriving = (REAL)(1 - n->alpha), eps = (REAL)n->eps,
               weight_decay = (REAL)n->weight_decay, momentum = (REAL)n->momentum, sign = SIGN;
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

MULTIVERSIONED static void TYPED(rmsprop_row)(STEP_ARGUMENTS)
{
    const RmspropNumbers *n = numbers;
    int decays = n->weight_decay != 0;
    if (row[4])
        row[3] ? TYPED(rmsprop_elements)(n, row, begin, end, decays, 1, 1)
               : TYPED(rmsprop_elements)(n, row, begin, end, decays, 0, 1);
    else if (row[3])
        TYPED(rmsprop_elements)(n, row, begin, end, decays, 1, 0);
    else
        decays ? TYPED(rmsprop_elements)(n, row, begin, end, 1, 0, 0) : TYPED(rmsprop_elements)(n, row, begin, end, 0, 0, 0);
}

INLINE void TYPED(adagrad_elements)(const AdagradNumbers *n, void *const *row, ptrdiff_t begin, ptrdiff_t end, int decays)
{
    REAL *param = row[0], *total = row[2];
    const REAL *grad = row[1];
    const REAL lr = (REAL)n->lr, eps = (REAL)n->eps, weight_decay = (REAL)n->weight_decay, sign = SIGN;
    INDEPENDENT
    for (ptrdiff_t i = begin; i < end; i++) {
        REAL direction = TYPED(descent)(grad[i], param[i], sign, weight_decay, decays);
        REAL sum = total[i] + direction * direction;
        total[i] = sum;
        param[i] -= direction * lr / (SQUARE_ROOT(sum) + eps);
    }
}

DECAYING_ROW(adagrad, AdagradNumbers)

INLINE void TYPED(adadelta_elements)(const AdadeltaNumbers *n, void *const *row, ptrdiff_t begin, ptrdiff_t end,
                                     int decays)
{
    REAL *param = row[0], *square = row[2], *change = row[3];
    const REAL *grad = row[1];
    const REAL lr = (REAL)n->lr, rho = (REAL)n->rho, arriving = (REAL)(1 - n->rho), eps = (REAL)n->eps,
               weight_decay = (REAL)n->weight_decay, sign = SIGN;
    INDEPENDENT
    for (ptrdiff_t i = begin; i < end; i++) {
        REAL direction = TYPED(descent)(grad[i], param[i], sign, weight_decay, decays);
        REAL new_square = square[i] * rho + direction * arriving * direction;
        square[i] = new_square;
        REAL delta = SQUARE_ROOT(change[i] + eps) / SQUARE_ROOT(new_square + eps) * direction;
        change[i] = change[i] * rho + delta * arriving * delta;
        param[i] -= delta * lr;
    }
}

DECAYING_ROW(adadelta, AdadeltaNumbers)

INLINE void TYPED(asgd_elements)(const AsgdNumbers *n, void *const *row, ptrdiff_t begin, ptrdiff_t end, int decays,
                                 int averages)
{
    REAL *param = row[0], *average = row[2];
    const REAL *grad = row[1];
    const REAL eta = (REAL)n->eta, mu = (REAL)n->mu, kept = (REAL)(1 - n->lambd * n->eta),
               weight_decay = (REAL)n->weight_decay, sign = SIGN;
    INDEPENDENT
    for (ptrdiff_t i = begin; i < end; i++) {
        REAL direction = TYPED(descent)(grad[i], param[i], sign, weight_decay, decays);
        REAL value = param[i] * kept - direction * eta;
        param[i] = value;
        average[i] = averages ? average[i] + (value - average[i]) * mu : value;
    }
}

MULTIVERSIONED static void TYPED(asgd_row)(STEP_ARGUMENTS)
{
    const AsgdNumbers *n = numbers;
    int decays = n->weight_decay != 0;
    if (n->mu == 1)
        decays ? TYPED(asgd_elements)(n, row, begin, end, 1, 0) : TYPED(asgd_elements)(n, row, begin, end, 0, 0);
    else
        TYPED(asgd_elements)(n, row, begin, end, decays, 1);
}

INLINE void TYPED(rprop_elements)(const RpropNumbers *n, void *const *row, ptrdiff_t begin, ptrdiff_t end)
{
    REAL *param = row[0], *previous = row[2], *size = row[3];
    const REAL *grad = row[1];
    const REAL shrink = (REAL)n->shrink, grow = (REAL)n->grow, smallest = (REAL)n->smallest, largest = (REAL)n->largest,
               sign = SIGN;
    INDEPENDENT
    for (ptrdiff_t i = begin; i < end; i++) {
        REAL direction = grad[i] * sign;
        REAL agreement = direction * previous[i];
        REAL new_size = size[i] * (agreement > 0 ? grow : agreement < 0 ? shrink : 1);
        new_size = new_size < smallest ? smallest : new_size;
        new_size = new_size > largest ? largest : new_size;
        direction = agreement < 0 ? 0 : direction;
        size[i] = new_size;
        previous[i] = direction;
        param[i] -= new_size * (direction > 0 ? 1 : direction < 0 ? -1 : 0); /* NaN has no sign */
    }
}

MULTIVERSIONED static void TYPED(rprop_row)(STEP_ARGUMENTS)
{
    TYPED(rprop_elements)(numbers, row, begin, end);
}

#undef SIGN
#undef STEP_ARGUMENTS
#undef DECAYING_ROW
