/* Reductions of any dimension, for one type of number; see for_each_real.h and Note [Order of sums] in reduction.c. */
#include "reduction_rows.h"

/* Columns of `width` neighbours, `count` rows `stride` apart, into `total`. Four rows are joined before they meet the
 * partial results; these go to float64 after BLOCK_OF_ROWS. */
INLINE void TYPED(add_rows)(Operation operation, const REAL *restrict input, ptrdiff_t count, ptrdiff_t stride,
                                  ptrdiff_t width, double *restrict total)
{
    REAL partial[TILE];
    for (ptrdiff_t start = 0; start < count; start += BLOCK_OF_ROWS) {
        ptrdiff_t end = start + BLOCK_OF_ROWS < count ? start + BLOCK_OF_ROWS : count, k = start + 1;
        const REAL *row = input + start * stride;
        for (ptrdiff_t j = 0; j < width; j++)
            partial[j] = TYPED(mapped)(operation, row[j], 0);
        for (; k + 4 <= end; k += 4) {
            const REAL *a = input + k * stride, *b = a + stride, *c = b + stride, *d = c + stride;
            for (ptrdiff_t j = 0; j < width; j++) {
                REAL left = TYPED(combined)(operation, TYPED(mapped)(operation, a[j], 0), TYPED(mapped)(operation, b[j], 0));
                REAL right = TYPED(combined)(operation, TYPED(mapped)(operation, c[j], 0), TYPED(mapped)(operation, d[j], 0));
                partial[j] = TYPED(combined)(operation, partial[j], TYPED(combined)(operation, left, right));
            }
        }
        for (; k < end; k++)
            for (ptrdiff_t j = 0; j < width; j++)
                partial[j] = TYPED(combined)(operation, partial[j], TYPED(mapped)(operation, input[k * stride + j], 0));
        for (ptrdiff_t j = 0; j < width; j++)
            total[j] = start ? joined(operation, total[j], partial[j]) : partial[j];
    }
}

/* Extrema of columns, and in the same pass sums of zeros that a NaN, or an infinity, spoils. */
INLINE void TYPED(find_column_extrema)(Operation operation, const REAL *restrict input, ptrdiff_t count, ptrdiff_t stride,
                                       ptrdiff_t width, double *restrict total)
{
    REAL best[TILE], zeros[TILE];
    for (ptrdiff_t j = 0; j < width; j++) {
        best[j] = TYPED(mapped)(operation, input[j], 0);
        zeros[j] = input[j] * 0;
    }
    ptrdiff_t k = 1;
    for (; k + 4 <= count; k += 4) {
        const REAL *a = input + k * stride, *b = a + stride, *c = b + stride, *d = c + stride;
        for (ptrdiff_t j = 0; j < width; j++) {
            REAL left = TYPED(combined)(operation, TYPED(mapped)(operation, a[j], 0), TYPED(mapped)(operation, b[j], 0));
            REAL right = TYPED(combined)(operation, TYPED(mapped)(operation, c[j], 0), TYPED(mapped)(operation, d[j], 0));
            best[j] = TYPED(combined)(operation, best[j], TYPED(combined)(operation, left, right));
            zeros[j] += (a[j] * 0 + b[j] * 0) + (c[j] * 0 + d[j] * 0);
        }
    }
    for (; k < count; k++)
        for (ptrdiff_t j = 0; j < width; j++) {
            best[j] = TYPED(combined)(operation, best[j], TYPED(mapped)(operation, input[k * stride + j], 0));
            zeros[j] += input[k * stride + j] * 0;
        }
    for (ptrdiff_t j = 0; j < width; j++)
        total[j] = zeros[j] != zeros[j] && TYPED(has_nan)(input + j, count, stride) ? NAN : best[j];
}

INLINE void TYPED(reduce_columns)(Operation operation, const REAL *restrict input, ptrdiff_t count, ptrdiff_t stride,
                                  ptrdiff_t width, const double *mean, double *restrict total)
{
    if (is_wide(operation))
        TYPED(reduce_columns_widely)(operation, input, count, stride, width, mean, total);
    else if (is_extremum(operation))
        TYPED(find_column_extrema)(operation, input, count, stride, width, total);
    else
        TYPED(add_rows)(operation, input, count, stride, width, total);
}

INLINE double TYPED(mapped_alone)(Operation operation, REAL value, double mean)
{
    return is_wide(operation) ? TYPED(widely_mapped)(operation, value, mean) : TYPED(mapped)(operation, value, 0);
}

INLINE double TYPED(reduce_whole_row)(Operation operation, const REAL *row, ptrdiff_t count, double mean)
{
    return is_wide(operation) ? TYPED(reduce_row_widely)(operation, row, count, mean)
                              : TYPED(reduce_row)(operation, row, count, 0);
}

INLINE void TYPED(put)(const Reduction *reduction, ptrdiff_t at, double total)
{
    if (reduction->is_wide)
        ((double *)reduction->output)[at] = finished(reduction, total);
    else
        ((REAL *)reduction->output)[at] = (REAL)finished(reduction, total);
}

/* Few columns: several rows are taken as one wide row, whose parts are joined in the end. */
INLINE void TYPED(reduce_narrow)(Operation operation, const REAL *input, ptrdiff_t count, ptrdiff_t width,
                                 const double *mean, double *total)
{
    ptrdiff_t together = NARROW_TILE / width, whole = count / together;
    double wide[NARROW_TILE];
    double means[NARROW_TILE];
    for (ptrdiff_t j = 0; mean && j < together * width; j++)
        means[j] = mean[j % width];
    TYPED(reduce_columns)(operation, input, whole, together * width, together * width, mean ? means : NULL, wide);
    for (ptrdiff_t j = 0; j < width; j++) {
        total[j] = wide[j];
        for (ptrdiff_t r = 1; r < together; r++)
            total[j] = joined(operation, total[j], wide[r * width + j]);
        for (ptrdiff_t k = whole * together; k < count; k++)
            total[j] = joined(operation, total[j], TYPED(mapped_alone)(operation, input[k * width + j], mean ? mean[j] : 0));
    }
}

/* The items of a reduction: parts of rows, or parts of tiles of columns. */
INLINE void TYPED(reduce_items)(Operation operation, const Reduction *reduction, ptrdiff_t begin, ptrdiff_t end)
{
    Layout layout = reduction->layout;
    const double *means = operation == DEVIATIONS ? reduction->means : NULL;
    if (layout.inner == 1 && !reduction->partials) { /* short rows: the divisions below would cost as much as they */
        const REAL *input = reduction->input;
        for (ptrdiff_t row = begin; row < end; row++) {
            const REAL *from = input + row * layout.count;
            TYPED(put)(reduction, row, TYPED(reduce_whole_row)(operation, from, layout.count, means ? means[row] : 0));
        }
        return;
    }
    for (ptrdiff_t item = begin; item < end; item++) {
        ptrdiff_t tile = item % reduction->tiles, part = item / reduction->tiles % reduction->parts;
        ptrdiff_t outer = item / reduction->tiles / reduction->parts, first = part * reduction->part_size;
        ptrdiff_t count = part == reduction->parts - 1 ? layout.count - first : reduction->part_size;
        const REAL *input = (const REAL *)reduction->input + (outer * layout.count + first) * layout.inner + tile * TILE;
        ptrdiff_t width = tile == reduction->tiles - 1 ? layout.inner - tile * TILE : TILE;
        double total[TILE];
        const double *mean = means ? means + outer * layout.inner + tile * TILE : NULL;
        if (layout.inner == 1)
            total[0] = TYPED(reduce_whole_row)(operation, input, count, mean ? *mean : 0);
        else if (width == TILE)
            TYPED(reduce_columns)(operation, input, count, layout.inner, TILE, mean, total);
        else if (layout.inner <= NARROW_TILE / 4 && count >= 2 * NARROW_TILE / layout.inner)
            TYPED(reduce_narrow)(operation, input, count, layout.inner, mean, total);
        else
            TYPED(reduce_columns)(operation, input, count, layout.inner, width, mean, total);
        if (reduction->partials) {
            double *kept = reduction->partials + (outer * reduction->parts + part) * layout.inner + tile * TILE;
            for (ptrdiff_t j = 0; j < width; j++)
                kept[j] = total[j];
        } else {
            for (ptrdiff_t j = 0; j < width; j++)
                TYPED(put)(reduction, outer * layout.inner + tile * TILE + j, total[j]);
        }
    }
}

/* Join the parts, in their order. */
static void TYPED(join_parts)(const Reduction *reduction)
{
    Layout layout = reduction->layout;
    for (ptrdiff_t outer = 0; outer < layout.outer; outer++)
        for (ptrdiff_t j = 0; j < layout.inner; j++) {
            const double *partials = reduction->partials + outer * reduction->parts * layout.inner + j;
            double total = partials[0];
            for (ptrdiff_t part = 1; part < reduction->parts; part++)
                total = joined(reduction->operation, total, partials[part * layout.inner]);
            TYPED(put)(reduction, outer * layout.inner + j, total);
        }
}

#define LOOP_OF(operation, name)                                                                                       \
    MULTIVERSIONED static void TYPED(name)(void *context, ptrdiff_t begin, ptrdiff_t end)                              \
    {                                                                                                                  \
        TYPED(reduce_items)(operation, context, begin, end);                                                           \
    }
LOOP_OF(SUM, reduce_sum)
LOOP_OF(PRODUCT, reduce_product)
LOOP_OF(LARGEST, reduce_largest)
LOOP_OF(SMALLEST, reduce_smallest)
LOOP_OF(SQUARES, reduce_squares)
LOOP_OF(SIZES, reduce_sizes)
LOOP_OF(DEVIATIONS, reduce_deviations)
LOOP_OF(NUMBERS, reduce_numbers)
LOOP_OF(LARGEST_SIZE, reduce_largest_size)
LOOP_OF(SMALLEST_SIZE, reduce_smallest_size)
LOOP_OF(WIDE_SUM, reduce_wide_sum)
#undef LOOP_OF

static const BlockFunction TYPED(reduction_loops)[] = {
    TYPED(reduce_sum),     TYPED(reduce_product), TYPED(reduce_largest),    TYPED(reduce_smallest),
    TYPED(reduce_squares), TYPED(reduce_sizes),   TYPED(reduce_deviations), TYPED(reduce_numbers),
    TYPED(reduce_largest_size), TYPED(reduce_smallest_size), TYPED(reduce_wide_sum),
};
