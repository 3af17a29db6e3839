/* Bags of rows of a table, for one type of number; included by for_each_real.h. */

/* The sums of `count` columns (LANES, or fewer) of the rows of one bag, which stay in registers. */
INLINE void TYPED(sum_columns)(const Bags *b, ptrdiff_t first, ptrdiff_t last, ptrdiff_t column, int count, REAL *to)
{
    const REAL *weight = (const REAL *)b->weight + column, *factors = b->factors;
    REAL sums[LANES] = {0};
    for (ptrdiff_t i = first; i < last; i++) {
        if (b->indices[i] == b->padding)
            continue;
        const REAL *row = weight + b->indices[i] * b->width;
        REAL factor = factors[i];
        for (int j = 0; j < count; j++)
            sums[j] += row[j] * factor;
    }
    for (int j = 0; j < count; j++)
        to[column + j] = sums[j];
}

/* Items are bags: sums of rows times factors. */
MULTIVERSIONED static void TYPED(sum_bags)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Bags *b = context;
    ptrdiff_t width = b->width, column;
    for (ptrdiff_t bag = begin; bag < end; bag++) {
        REAL *to = (REAL *)b->result + bag * width;
        for (column = 0; column + LANES <= width; column += LANES)
            TYPED(sum_columns)(b, b->offsets[bag], BAG_END(b, bag), column, LANES, to);
        if (column < width)
            TYPED(sum_columns)(b, b->offsets[bag], BAG_END(b, bag), column, (int)(width - column), to);
    }
}

/* Items are bags: the largest of each column, and the row that it comes from (-1 where there is none). */
MULTIVERSIONED static void TYPED(largest_of_bags)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Bags *b = context;
    const REAL *weight = b->weight;
    ptrdiff_t width = b->width;
    for (ptrdiff_t bag = begin; bag < end; bag++) {
        REAL *restrict to = (REAL *)b->result + bag * width;
        npy_int64 *restrict chosen = b->chosen + bag * width;
        int is_first = 1;
        for (ptrdiff_t j = 0; j < width; j++) {
            to[j] = 0;
            chosen[j] = -1;
        }
        for (ptrdiff_t i = b->offsets[bag]; i < BAG_END(b, bag); i++) {
            npy_int64 index = b->indices[i];
            if (index == b->padding)
                continue;
            const REAL *restrict row = weight + index * width;
            for (ptrdiff_t j = 0; j < width; j++) {
                int larger = is_first || row[j] > to[j];
                to[j] = larger ? row[j] : to[j];
                chosen[j] = larger ? index : chosen[j];
            }
            is_first = 0;
        }
    }
}

/* The factor of each index: 0 for padding, else its own weight, or one share of a mean, or 1. */
static void TYPED(find_factors)(const Bags *b, const void *own, int is_mean, void *factors)
{
    for (ptrdiff_t bag = 0; bag < b->bags; bag++) {
        REAL share = is_mean ? 1 / (REAL)(b->sizes[bag] > 1 ? b->sizes[bag] : 1) : 1;
        for (ptrdiff_t i = b->offsets[bag]; i < BAG_END(b, bag); i++)
            ((REAL *)factors)[i] = b->indices[i] == b->padding ? 0 : own ? ((const REAL *)own)[i] : share;
    }
}
