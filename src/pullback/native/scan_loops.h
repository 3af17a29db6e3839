/* Scans of WIDTH lanes side by side, for one type of number; see for_each_real.h. `lane` and `width` are constants where
 * they can be, so that columns become vectors. */

/* Running totals; from the last step to the first where `backward`. */
INLINE void TYPED(run_totals)(const Scan *scan, Lanes lanes, ptrdiff_t lane, int width, int product, int backward)
{
    ptrdiff_t step = backward ? -lanes.step : lanes.step;
    ptrdiff_t start = lanes.start + (backward ? (lanes.count - 1) * lanes.step : 0);
    const REAL *input = (const REAL *)scan->input + start;
    REAL *output = (REAL *)scan->output + start;
    double totals[WIDTH];
    for (int j = 0; j < width; j++) {
        totals[j] = product ? input[j * lane] : input[j * lane] + 0.0; /* a sum begins with the positive zero */
        output[j * lane] = (REAL)totals[j];
    }
    for (ptrdiff_t k = 1; k < lanes.count; k++) {
        input += step;
        output += step;
        for (int j = 0; j < width; j++) {
            totals[j] = product ? totals[j] * input[j * lane] : totals[j] + input[j * lane];
            output[j * lane] = (REAL)totals[j];
        }
    }
}

/* log(exp(a) + exp(b) + ...) as the largest so far and the sum of exponentials relative to it. */
INLINE void TYPED(run_logarithms)(const Scan *scan, Lanes lanes, ptrdiff_t lane, int width, int unused, int backward)
{
    (void)unused, (void)backward;
    const REAL *input = (const REAL *)scan->input + lanes.start;
    REAL *output = (REAL *)scan->output + lanes.start;
    double largest[WIDTH], sums[WIDTH];
    for (int j = 0; j < width; j++) {
        largest[j] = input[j * lane];
        sums[j] = 1;
        output[j * lane] = input[j * lane];
    }
    for (ptrdiff_t k = 1; k < lanes.count; k++) {
        input += lanes.step;
        output += lanes.step;
        for (int j = 0; j < width; j++) {
            double value = input[j * lane], old = largest[j];
            double power = value == old ? 1.0 : fast_exp(-fabs(value - old)); /* of equal infinities there is no difference */
            sums[j] = value > old ? sums[j] * power + 1.0 : sums[j] + power;
            largest[j] = value > old ? value : old;
            output[j * lane] = (REAL)(largest[j] + fast_log(sums[j]));
        }
    }
}

/* Extrema so far along one row, the last of equal ones; a NaN stays. A new one is rare: the branch is guessed right. */
INLINE void TYPED(run_row_of_extrema)(const Scan *scan, ptrdiff_t start, ptrdiff_t count, int smallest)
{
    const REAL *input = (const REAL *)scan->input + start;
    REAL *output = (REAL *)scan->output + start, best = input[0];
    int64_t *places = scan->places + start, place = 0;
    for (ptrdiff_t k = 0; k < count; k++) {
        if ((smallest ? input[k] <= best : input[k] >= best) || input[k] != input[k]) {
            best = input[k];
            place = k;
        }
        output[k] = best;
        places[k] = place;
    }
}

/* The same of columns side by side. */
INLINE void TYPED(run_extrema)(const Scan *scan, Lanes lanes, ptrdiff_t lane, int width, int smallest, int backward)
{
    (void)backward;
    if (lane != 1) {
        for (int j = 0; j < width; j++)
            TYPED(run_row_of_extrema)(scan, lanes.start + j * lane, lanes.count, smallest);
        return;
    }
    const REAL *input = (const REAL *)scan->input + lanes.start;
    REAL *output = (REAL *)scan->output + lanes.start, best[WIDTH];
    int64_t *places = scan->places + lanes.start, place[WIDTH] = {0};
    for (int j = 0; j < width; j++)
        best[j] = input[j * lane];
    for (ptrdiff_t k = 0; k < lanes.count; k++) {
        for (int j = 0; j < width; j++) {
            REAL value = input[j * lane];
            int wins = (smallest ? value <= best[j] : value >= best[j]) | (value != value);
            best[j] = wins ? value : best[j];
            place[j] = wins ? k : place[j];
            output[j * lane] = best[j];
            places[j * lane] = place[j];
        }
        input += lanes.step;
        output += lanes.step;
        places += lanes.step;
    }
}

/* s[k] = gradient[k] + x[k+1] s[k+1] from the end, times the product of what stands before. */
INLINE void TYPED(run_gradients)(const Scan *scan, Lanes lanes, ptrdiff_t lane, int width, int unused, int backward)
{
    (void)unused, (void)backward;
    const REAL *input = (const REAL *)scan->input + lanes.start, *gradient = (const REAL *)scan->gradient + lanes.start;
    REAL *output = (REAL *)scan->output + lanes.start;
    double sums[WIDTH], products[WIDTH];
    for (int j = 0; j < width; j++) {
        sums[j] = 0;
        products[j] = 1;
    }
    for (ptrdiff_t k = lanes.count; k--;)
        for (int j = 0; j < width; j++) {
            ptrdiff_t at = k * lanes.step + j * lane;
            sums[j] = k == lanes.count - 1 ? gradient[at] : gradient[at] + input[at + lanes.step] * sums[j];
            output[at] = (REAL)sums[j];
        }
    for (ptrdiff_t k = 0; k < lanes.count; k++)
        for (int j = 0; j < width; j++) {
            ptrdiff_t at = k * lanes.step + j * lane;
            output[at] = (REAL)(output[at] * products[j]);
            products[j] *= input[at];
        }
}

#define SCAN(name, run, kind, backward)                                                                                \
    MULTIVERSIONED static void TYPED(name)(void *context, ptrdiff_t begin, ptrdiff_t end)                              \
    {                                                                                                                  \
        const Scan *scan = context;                                                                                    \
        for (ptrdiff_t item = begin; item < end; item++) {                                                             \
            Lanes lanes = lanes_of(scan->layout, item);                                                                \
            if (lanes.width < WIDTH)                                                                                   \
                TYPED(run)(scan, lanes, lanes.lane, lanes.width, kind, backward);                                      \
            else if (lanes.lane == 1)                                                                                  \
                TYPED(run)(scan, lanes, 1, WIDTH, kind, backward);                                                     \
            else                                                                                                       \
                TYPED(run)(scan, lanes, lanes.lane, WIDTH, kind, backward);                                            \
        }                                                                                                              \
    }
SCAN(running_sum, run_totals, 0, 0)
SCAN(running_product, run_totals, 1, 0)
SCAN(reversed_sum, run_totals, 0, 1)
SCAN(running_logarithm, run_logarithms, 0, 0)
SCAN(running_largest, run_extrema, 0, 0)
SCAN(running_smallest, run_extrema, 1, 0)
SCAN(product_gradient, run_gradients, 0, 0)
#undef SCAN
