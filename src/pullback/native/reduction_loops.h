/* Reductions of any dimension, for one type of number; see for_each_real.h and Note [Order of sums] in reduction.c. */
#include "reduction_rows.h"

/* Columns of `width` neighbours, `count` rows `stride` apart, into `total`. Four rows are joined before they meet the
 * partial results; these go to float64 after BLOCK_OF_ROWS. Extrema take in the same pass sums of zeros that a NaN, or an
 * infinity, spoils. */
INLINE void TYPED(join_rows)(Operation operation, const REAL *restrict input, ptrdiff_t count, ptrdiff_t stride,
                             ptrdiff_t width, double *restrict total)
{
    REAL partial[TILE], zeros[TILE];
    const int extreme = is_extremum(operation);
    ptrdiff_t block = extreme ? count : BLOCK_OF_ROWS; /* of extrema nothing is rounded */
    for (ptrdiff_t start = 0; start < count; start += block) {
        ptrdiff_t end = start + block < count ? start + block : count, k = start + 1;
        const REAL *row = input + start * stride;
        for (ptrdiff_t j = 0; j < width; j++) {
            partial[j] = TYPED(mapped)(operation, row[j], 0);
            zeros[j] = extreme ? row[j] * 0 : 0;
        }
        for (; k + 4 <= end; k += 4) {
            const REAL *a = input + k * stride, *b = a + stride, *c = b + stride, *d = c + stride;
            for (ptrdiff_t j = 0; j < width; j++) {
                REAL left = TYPED(combined)(operation, TYPED(mapped)(operation, a[j], 0), TYPED(mapped)(operation, b[j], 0));
                REAL right = TYPED(combined)(operation, TYPED(mapped)(operation, c[j], 0), TYPED(mapped)(operation, d[j], 0));
                partial[j] = TYPED(combined)(operation, partial[j], TYPED(combined)(operation, left, right));
                if (extreme)
                    zeros[j] += (a[j] * 0 + b[j] * 0) + (c[j] * 0 + d[j] * 0);
            }
        }
        for (; k < end; k++)
            for (ptrdiff_t j = 0; j < width; j++) {
                partial[j] = TYPED(combined)(operation, partial[j], TYPED(mapped)(operation, input[k * stride + j], 0));
                if (extreme)
                    zeros[j] += input[k * stride + j] * 0;
            }
        for (ptrdiff_t j = 0; j < width; j++)
            if (extreme)
                total[j] = zeros[j] != zeros[j] && TYPED(has_nan)(input + j, count, stride) ? NAN : partial[j];
            else
                total[j] = start ? joined(operation, total[j], partial[j]) : partial[j];
    }
}

INLINE void TYPED(reduce_columns)(Operation operation, const REAL *restrict input, ptrdiff_t count, ptrdiff_t stride,
                                  ptrdiff_t width, const double *mean, double *restrict total)
{
    if (is_wide(operation))
        TYPED(reduce_columns_widely)(operation, input, count, stride, width, mean, total);
    else
        TYPED(join_rows)(operation, input, count, stride, width, total);
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

/* Columns that do not fill a tile. Few of them: several rows are taken as one wide row, whose parts are joined in the end. */
INLINE void TYPED(reduce_tile)(Operation operation, const REAL *input, ptrdiff_t count, ptrdiff_t stride, ptrdiff_t width,
                               const double *mean, double *total)
{
    ptrdiff_t together = stride <= NARROW_TILE / 4 && count >= 2 * NARROW_TILE / stride ? NARROW_TILE / stride : 1;
    ptrdiff_t whole = count / together;
    double wide[NARROW_TILE], means[NARROW_TILE];
    int is_narrow = together > 1;
    for (ptrdiff_t j = 0; is_narrow && mean && j < together * width; j++)
        means[j] = mean[j % width];
    TYPED(reduce_columns)(operation, input, whole, together * stride, together * width, is_narrow && mean ? means : mean,
                          is_narrow ? wide : total);
    for (ptrdiff_t j = 0; is_narrow && j < width; j++) {
        total[j] = wide[j];
        for (ptrdiff_t r = 1; r < together; r++)
            total[j] = joined(operation, total[j], wide[r * width + j]);
        for (ptrdiff_t k = whole * together; k < count; k++)
            total[j] = joined(operation, total[j], TYPED(mapped_alone)(operation, input[k * width + j], mean ? mean[j] : 0));
    }
}

/* Whole rows of a few elements: deciding how to go about a row would cost as much as the row. */
INLINE void TYPED(reduce_short_rows)(Operation operation, const Reduction *reduction, ptrdiff_t begin, ptrdiff_t end)
{
    ptrdiff_t count = reduction->layout.count;
    const REAL *row = (const REAL *)reduction->input + begin * count;
    for (ptrdiff_t item = begin; item < end; item++, row += count) {
        double mean = operation == DEVIATIONS ? reduction->means[item] : 0;
        double total = TYPED(mapped_alone)(operation, row[0], mean);
        if (is_wide(operation)) {
            UNROLLED
            for (ptrdiff_t i = 1; i < count; i++)
                total = joined(operation, total, TYPED(mapped_alone)(operation, row[i], mean));
        } else
            for (ptrdiff_t i = 1; i < count; i++)
                total = joined(operation, total, TYPED(mapped_alone)(operation, row[i], mean));
        TYPED(put)(reduction, item, total);
    }
}

/* Parts of rows; where rows are not cut, one after the other. */
INLINE void TYPED(reduce_rows)(Operation operation, const Reduction *reduction, ptrdiff_t begin, ptrdiff_t end)
{
    ptrdiff_t parts = reduction->parts, size = reduction->part_size, last;
    for (ptrdiff_t item = begin; item < end; item = last) {
        ptrdiff_t part = item % parts, row = item / parts;
        ptrdiff_t count = part == parts - 1 ? reduction->layout.count - part * size : size;
        const REAL *input = (const REAL *)reduction->input + row * reduction->layout.count + part * size;
        const double *mean = operation == DEVIATIONS ? reduction->means + row : NULL;
        last = parts == 1 ? end : item + 1;
        for (ptrdiff_t at = item; at < last; at++, input += count)
            TYPED(put)(reduction, at, TYPED(reduce_whole_row)(operation, input, count, mean ? *mean++ : 0));
    }
}

/* The items of a reduction: parts of rows, or parts of tiles of columns. */
INLINE void TYPED(reduce_items)(Operation operation, const Reduction *reduction, ptrdiff_t begin, ptrdiff_t end)
{
    Layout layout = reduction->layout;
    ptrdiff_t tiles = reduction->tiles, parts = reduction->parts;
    if (layout.inner == 1) {
        if (layout.count < (is_wide(operation) ? WIDE_LANES : 8))
            TYPED(reduce_short_rows)(operation, reduction, begin, end);
        else
            TYPED(reduce_rows)(operation, reduction, begin, end);
        return;
    }
    for (ptrdiff_t item = begin; item < end; item++) {
        ptrdiff_t column = item % tiles * TILE, part = item / tiles % parts, outer = item / tiles / parts;
        ptrdiff_t first = part * reduction->part_size, count = part == parts - 1 ? layout.count - first : reduction->part_size;
        const REAL *input = (const REAL *)reduction->input + (outer * layout.count + first) * layout.inner + column;
        const double *mean = operation == DEVIATIONS ? reduction->means + outer * layout.inner + column : NULL;
        double total[TILE];
        ptrdiff_t width = layout.inner - column < TILE ? layout.inner - column : TILE;
        if (width == TILE)
            TYPED(reduce_columns)(operation, input, count, layout.inner, TILE, mean, total);
        else
            TYPED(reduce_tile)(operation, input, count, layout.inner, width, mean, total);
        for (ptrdiff_t j = 0; j < width; j++)
            TYPED(put)(reduction, (outer * parts + part) * layout.inner + column + j, total[j]);
    }
}

/* Join the parts, in their order. */
static void TYPED(join_parts)(const Reduction *reduction, const double *all_partials)
{
    Layout layout = reduction->layout;
    for (ptrdiff_t outer = 0; outer < layout.outer; outer++)
        for (ptrdiff_t j = 0; j < layout.inner; j++) {
            const double *partials = all_partials + outer * reduction->parts * layout.inner + j;
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
