/* Reductions of rows, for one type of number; see for_each_real.h and Note [Order of sums] in reduction.c.
 *
 * Everything here is inlined with `operation` as a constant, so that each reduction gets loops of its own.
 */

/* What is reduced, given an element. */
INLINE REAL TYPED(mapped)(Operation operation, REAL value, REAL mean)
{
    switch (operation) {
    case SQUARES: return value * value;
    case SIZES:
    case LARGEST_SIZE:
    case SMALLEST_SIZE: return value < 0 ? -value : value;
    case DEVIATIONS: return (value - mean) * (value - mean);
    case NUMBERS: return value == value ? value : 0;
    default: return value;
    }
}

/* Extrema pass over NaN here, which are counted apart: one choice among two is an instruction, among three it is a
 * branch, and stops vectorisation. */
INLINE REAL TYPED(combined)(Operation operation, REAL first, REAL second)
{
    if (is_largest(operation))
        return second > first ? second : first;
    if (is_smallest(operation))
        return second < first ? second : first;
    return operation == PRODUCT ? first * second : first + second;
}

/* The lanes reduced to one number; `width` is a multiple of 8. */
INLINE double TYPED(gathered)(Operation operation, const REAL *lanes, int width)
{
    REAL eight[8];
    for (int j = 0; j < 8; j++)
        eight[j] = lanes[j];
    for (int i = 8; i < width; i += 8)
        for (int j = 0; j < 8; j++)
            eight[j] = TYPED(combined)(operation, eight[j], lanes[i + j]);
    if (is_extremum(operation)) { /* in the array's own type each step is one instruction, without a branch */
        for (int half = 4; half; half /= 2)
            for (int j = 0; j < half; j++)
                eight[j] = TYPED(combined)(operation, eight[j], eight[j + half]);
        return eight[0];
    }
    double four[4];
    for (int j = 0; j < 4; j++)
        four[j] = joined(operation, eight[j], eight[j + 4]);
    return joined(operation, joined(operation, four[0], four[2]), joined(operation, four[1], four[3]));
}

INLINE int TYPED(has_nan)(const REAL *row, ptrdiff_t count, ptrdiff_t stride)
{
    for (ptrdiff_t i = 0; i < count; i++)
        if (row[i * stride] != row[i * stride])
            return 1;
    return 0;
}

/* Whether one of the lanes, which should be zeros, is none. */
INLINE int TYPED(is_spoilt)(const REAL *zeros, int width)
{
    REAL eight[8];
    for (int j = 0; j < 8; j++)
        eight[j] = zeros[j];
    for (int i = 8; i < width; i += 8)
        for (int j = 0; j < 8; j++)
            eight[j] += zeros[i + j];
    return ((eight[0] + eight[1]) + (eight[2] + eight[3])) + ((eight[4] + eight[5]) + (eight[6] + eight[7])) != 0;
}

/* At most twice CHUNK elements of a row, at least `width`. Extrema take in the same pass a sum of zeros that a NaN, or an
 * infinity, spoils. */
INLINE double TYPED(reduce_lanes)(Operation operation, const REAL *row, ptrdiff_t count, REAL mean, int width)
{
    REAL lanes[2 * LANES], zeros[2 * LANES];
    const int extreme = is_extremum(operation);
    for (int j = 0; j < width; j++) {
        lanes[j] = TYPED(mapped)(operation, row[j], mean);
        zeros[j] = extreme ? row[j] * 0 : 0;
    }
    ptrdiff_t i = width;
    for (; i + width <= count; i += width)
        for (int j = 0; j < width; j++) {
            lanes[j] = TYPED(combined)(operation, lanes[j], TYPED(mapped)(operation, row[i + j], mean));
            if (extreme)
                zeros[j] += row[i + j] * 0;
        }
    if (i < count) { /* the last `width` elements; of sums without those that have been taken */
        REAL taken = extreme ? 0 : (REAL)(i + width - count);
        for (int j = 0; j < width; j++) {
            REAL value = TYPED(mapped)(operation, row[count - width + j], mean);
            lanes[j] = TYPED(combined)(operation, lanes[j], extreme || j >= taken ? value : operation == PRODUCT);
            if (extreme)
                zeros[j] += row[count - width + j] * 0;
        }
    }
    return extreme && TYPED(is_spoilt)(zeros, width) && TYPED(has_nan)(row, count, 1) ? NAN
                                                                                      : TYPED(gathered)(operation, lanes, width);
}

INLINE double TYPED(reduce_row)(Operation operation, const REAL *row, ptrdiff_t count, REAL mean)
{
    if (count < 8) {
        double total = TYPED(mapped)(operation, row[0], mean);
        for (ptrdiff_t i = 1; i < count; i++)
            total = joined(operation, total, TYPED(mapped)(operation, row[i], mean));
        return total;
    }
    if (count < 2 * LANES)
        return TYPED(reduce_lanes)(operation, row, count, mean, 8);
    if (is_extremum(operation) && count >= 16 * LANES) /* nothing is rounded: no chunks */
        return TYPED(reduce_lanes)(operation, row, count, 0, 2 * LANES);
    /* The last chunk takes a rest that would not fill the lanes. */
    ptrdiff_t chunks = count < 2 * CHUNK ? 1 : count / CHUNK;
    double total = 0;
    for (ptrdiff_t c = 0; c < chunks; c++) {
        ptrdiff_t start = c * CHUNK, end = c == chunks - 1 ? count : start + CHUNK;
        double of_chunk = TYPED(reduce_lanes)(operation, row + start, end - start, mean, LANES);
        total = c ? joined(operation, total, of_chunk) : of_chunk;
    }
    return total;
}

/* Products, and squared distances from a mean as well as that mean, are taken in float64: a product in float32 loses half
 * a unit at every factor, a small variance is lost in the rounding of a large mean, and squares leave float32 where their
 * root does not. */
INLINE double TYPED(widely_mapped)(Operation operation, REAL value, double mean)
{
    double distance = (double)value - mean;
    return operation == DEVIATIONS ? distance * distance : (double)value;
}

INLINE double TYPED(reduce_row_widely)(Operation operation, const REAL *row, ptrdiff_t count, double mean)
{
    double lanes[WIDE_LANES];
    ptrdiff_t i = 0;
    double total = operation == PRODUCT;
    if (count >= WIDE_LANES) {
        for (int j = 0; j < WIDE_LANES; j++)
            lanes[j] = TYPED(widely_mapped)(operation, row[j], mean);
        for (i = WIDE_LANES; i + WIDE_LANES <= count; i += WIDE_LANES)
            for (int j = 0; j < WIDE_LANES; j++)
                lanes[j] = joined(operation, lanes[j], TYPED(widely_mapped)(operation, row[i + j], mean));
        for (int half = WIDE_LANES / 2; half; half /= 2)
            for (int j = 0; j < half; j++)
                lanes[j] = joined(operation, lanes[j], lanes[j + half]);
        total = lanes[0];
    }
    for (; i < count; i++)
        total = joined(operation, total, TYPED(widely_mapped)(operation, row[i], mean));
    return total;
}

INLINE void TYPED(reduce_columns_widely)(Operation operation, const REAL *restrict input, ptrdiff_t count, ptrdiff_t stride,
                                         ptrdiff_t width, const double *restrict mean, double *restrict total)
{
    for (ptrdiff_t j = 0; j < width; j++)
        total[j] = operation == PRODUCT;
    for (ptrdiff_t k = 0; k < count; k++)
        for (ptrdiff_t j = 0; j < width; j++)
            total[j] = joined(operation, total[j],
                              TYPED(widely_mapped)(operation, input[k * stride + j], operation == DEVIATIONS ? mean[j] : 0));
}
