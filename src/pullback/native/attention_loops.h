/* What attention does with one row of scores, for one type of number; included by for_each_real.h. */

/* Scale scores and apply a mask: numbers are added, and where a truth value is false the score is -infinity. */
INLINE void TYPED(mask_row)(REAL *scores, ptrdiff_t count, REAL scale, const char *mask, ptrdiff_t mask_step, int is_bool)
{
    if (!mask)
        for (ptrdiff_t j = 0; j < count; j++)
            scores[j] *= scale;
    else if (is_bool)
        for (ptrdiff_t j = 0; j < count; j++)
            scores[j] = mask[j * mask_step] ? scores[j] * scale : -(REAL)INFINITY;
    else
        for (ptrdiff_t j = 0; j < count; j++)
            scores[j] = scores[j] * scale + *(const REAL *)(mask + j * mask_step);
}

/* The largest score; NaN is passed over, it makes the sum NaN. `count` is a multiple of LANES here and below. */
INLINE REAL TYPED(top_of_row)(const REAL *scores, ptrdiff_t count)
{
    REAL lanes[LANES];
    TYPED(fill_lanes)(lanes, -(REAL)INFINITY);
    for (ptrdiff_t j = 0; j < count; j += LANES)
        for (int l = 0; l < LANES; l++)
            lanes[l] = scores[j + l] > lanes[l] ? scores[j + l] : lanes[l];
    return TYPED(largest_of)(lanes);
}

/* Replace scores by exp(score - shift) and return their sum. */
INLINE REAL TYPED(exponentials_of_row)(REAL *scores, ptrdiff_t count, REAL shift)
{
    REAL lanes[LANES] = {0};
    for (ptrdiff_t j = 0; j < count; j += LANES)
        for (int l = 0; l < LANES; l++) {
            scores[j + l] = EXPONENTIAL(scores[j + l] - shift);
            lanes[l] += scores[j + l];
        }
    return (REAL)TYPED(total_of)(lanes);
}

/* How many keys the row `i` of a block sees. */
INLINE ptrdiff_t TYPED(visible_to)(const Scores *s, ptrdiff_t i)
{
    return s->is_causal && s->first_row + i + 1 < s->columns ? s->first_row + i + 1 : s->columns;
}

/* Where loops over the row end: LANES at a time, since single elements take as long each. What lies after the keys that are
 * seen is there to be written over; a mask is not there to be read. */
INLINE ptrdiff_t TYPED(end_of)(ptrdiff_t visible) { return (visible + LANES - 1) / LANES * LANES; }

/* Rows of scores become weights that are not divided by their sums yet; the keys after `visible` get weight zero. */
MULTIVERSIONED static void TYPED(weigh)(const Scores *s, void *totals, void *normalizers)
{
    for (ptrdiff_t i = 0; i < s->rows; i++) {
        REAL *scores = (REAL *)s->data + i * s->step;
        ptrdiff_t visible = TYPED(visible_to)(s, i), end = TYPED(end_of)(visible);
        const char *mask = s->mask ? s->mask + i * s->mask_row_step : NULL;
        TYPED(mask_row)(scores, mask ? visible : end, (REAL)s->scale, mask, s->mask_step, s->mask_is_bool);
        for (ptrdiff_t j = visible; j < end; j++)
            scores[j] = -(REAL)INFINITY;
        REAL top = TYPED(top_of_row)(scores, end);
        if (top == -(REAL)INFINITY)
            top = 0;
        REAL total = TYPED(exponentials_of_row)(scores, end, top);
        if (total == 0)
            total = 1; /* no key is seen: the result is zero */
        if (end < s->columns)
            memset(scores + end, 0, (s->columns - end) * sizeof(REAL));
        ((REAL *)totals)[i] = total;
        ((REAL *)normalizers)[i] = (REAL)log(total) + top;
    }
}

MULTIVERSIONED static void TYPED(divide_rows)(void *data, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t step,
                                              const void *totals)
{
    for (ptrdiff_t i = 0; i < rows; i++) {
        REAL *row = (REAL *)data + i * step, factor = 1 / ((const REAL *)totals)[i];
        for (ptrdiff_t j = 0; j < columns; j++)
            row[j] *= factor;
    }
}

/* Rows of scores become the weights of the forward pass, and `slopes` the gradients of the scores:
 * weight (slope - inner) scale, where `inner` is the dot product of the gradient's and the output's rows. */
MULTIVERSIONED static void TYPED(weigh_again)(const Scores *s, const void *normalizers, const void *inner, void *slopes)
{
    for (ptrdiff_t i = 0; i < s->rows; i++) {
        REAL *scores = (REAL *)s->data + i * s->step, *slope = (REAL *)slopes + i * s->step;
        ptrdiff_t visible = TYPED(visible_to)(s, i), end = TYPED(end_of)(visible);
        const char *mask = s->mask ? s->mask + i * s->mask_row_step : NULL;
        TYPED(mask_row)(scores, mask ? visible : end, (REAL)s->scale, mask, s->mask_step, s->mask_is_bool);
        const REAL normalizer = ((const REAL *)normalizers)[i], mean = ((const REAL *)inner)[i], scale = (REAL)s->scale;
        for (ptrdiff_t j = 0; j < end; j++) {
            scores[j] = EXPONENTIAL(scores[j] - normalizer);
            slope[j] = (slope[j] - mean) * scores[j] * scale;
        }
        memset(scores + visible, 0, (s->columns - visible) * sizeof(REAL));
        memset(slope + visible, 0, (s->columns - visible) * sizeof(REAL));
    }
}

MULTIVERSIONED static void TYPED(dot_rows)(const void *first, ptrdiff_t first_step, const void *second,
                                           ptrdiff_t second_step, ptrdiff_t rows, ptrdiff_t columns, void *sums)
{
    for (ptrdiff_t i = 0; i < rows; i++) {
        const REAL *a = (const REAL *)first + i * first_step, *b = (const REAL *)second + i * second_step;
        REAL lanes[LANES] = {0};
        ptrdiff_t j = 0;
        for (; j + LANES <= columns; j += LANES)
            for (int l = 0; l < LANES; l++)
                lanes[l] += a[j + l] * b[j + l];
        for (; j < columns; j++)
            lanes[j % LANES] += a[j] * b[j];
        ((REAL *)sums)[i] = (REAL)TYPED(total_of)(lanes);
    }
}

/* Rows of a head are short: a call of memcpy takes as long as the copy. */
MULTIVERSIONED static void TYPED(copy_rows)(const void *from, ptrdiff_t from_step, void *to, ptrdiff_t to_step,
                                            ptrdiff_t rows, ptrdiff_t columns)
{
    for (ptrdiff_t i = 0; i < rows; i++) {
        const REAL *restrict source = (const REAL *)from + i * from_step;
        REAL *restrict target = (REAL *)to + i * to_step;
        for (ptrdiff_t j = 0; j < columns; j++)
            target[j] = source[j];
    }
}
