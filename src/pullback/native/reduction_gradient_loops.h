/* Gradients of reductions of rows and of columns, for one type of number; see for_each_real.h. */
#include "reduction_rows.h"

/* Rows: `out` from the row and the numbers that belong to it. */
INLINE void TYPED(share_row)(const REAL *row, ptrdiff_t count, REAL extreme, REAL grad, REAL *out)
{
    REAL found = 0;
    ptrdiff_t equal = 0;
    for (ptrdiff_t i = 0; i < count; i++)
        equal += row[i] == extreme;
    found = equal ? (REAL)(1.0 / (double)equal) * grad : (REAL)NAN;
    REAL rest = equal ? 0 * grad : (REAL)NAN; /* of a NaN nothing is the extremum; an infinite gradient spoils zeros */
    for (ptrdiff_t i = 0; i < count; i++)
        out[i] = row[i] == extreme ? found : rest;
}

/* Columns: `width` neighbours, `stride` between rows. */
INLINE void TYPED(share_columns)(const REAL *input, ptrdiff_t count, ptrdiff_t stride, int width, const REAL *extreme,
                                 const REAL *grad, REAL *out)
{
    REAL equal[TILE], found[TILE], rest[TILE];
    for (int j = 0; j < width; j++)
        equal[j] = 0;
    for (ptrdiff_t k = 0; k < count; k++)
        for (int j = 0; j < width; j++)
            equal[j] += input[k * stride + j] == extreme[j] ? (REAL)1 : (REAL)0;
    for (int j = 0; j < width; j++) {
        found[j] = equal[j] != 0 ? (REAL)(1 / equal[j]) * grad[j] : (REAL)NAN;
        rest[j] = equal[j] != 0 ? 0 * grad[j] : (REAL)NAN;
    }
    for (ptrdiff_t k = 0; k < count; k++)
        for (int j = 0; j < width; j++)
            out[k * stride + j] = input[k * stride + j] == extreme[j] ? found[j] : rest[j];
}

INLINE void TYPED(deviate_row)(const REAL *row, ptrdiff_t count, REAL grad, REAL *out)
{
    REAL mean = (REAL)(TYPED(reduce_row)(SUM, row, count, 0) / (double)count);
    for (ptrdiff_t i = 0; i < count; i++)
        out[i] = grad * (row[i] - mean);
}

INLINE void TYPED(deviate_columns)(const REAL *input, ptrdiff_t count, ptrdiff_t stride, int width, const REAL *grad,
                                   REAL factor, REAL *out)
{
    double totals[TILE];
    REAL means[TILE], slopes[TILE];
    for (int j = 0; j < width; j++)
        totals[j] = 0;
    for (ptrdiff_t k = 0; k < count; k++)
        for (int j = 0; j < width; j++)
            totals[j] += input[k * stride + j];
    for (int j = 0; j < width; j++) {
        means[j] = (REAL)(totals[j] / (double)count);
        slopes[j] = grad[j] * factor;
    }
    for (ptrdiff_t k = 0; k < count; k++)
        for (int j = 0; j < width; j++)
            out[k * stride + j] = slopes[j] * (input[k * stride + j] - means[j]);
}

INLINE int TYPED(divide_row)(const REAL *row, ptrdiff_t count, REAL *out)
{
    double product = TYPED(reduce_row_widely)(PRODUCT, row, count, 0);
    for (ptrdiff_t i = 0; i < count; i++)
        out[i] = (REAL)(product / row[i]);
    return product != 0 && product - product == 0;
}

INLINE int TYPED(divide_columns)(const REAL *input, ptrdiff_t count, ptrdiff_t stride, int width, REAL *out)
{
    double products[TILE];
    int fit = 1;
    TYPED(reduce_columns_widely)(PRODUCT, input, count, stride, width, NULL, products);
    for (int j = 0; j < width; j++)
        fit &= products[j] != 0 && products[j] - products[j] == 0;
    for (ptrdiff_t k = 0; k < count; k++)
        for (int j = 0; j < width; j++)
            out[k * stride + j] = (REAL)(products[j] / input[k * stride + j]);
    return fit;
}

/* The items from `begin` to `end`: rows, or tiles of columns. `at` is the number of the first result. */
#define EACH_ITEM(of_row, of_columns)                                                                                  \
    Gradient *loop = context;                                                                                          \
    Layout layout = loop->layout;                                                                                      \
    const REAL *grad = loop->grad, *extreme = loop->extreme;                                                           \
    REAL factor = (REAL)loop->factor;                                                                                  \
    (void)grad, (void)extreme, (void)factor;                                                                           \
    ptrdiff_t tiles = (layout.inner + TILE - 1) / TILE, count = layout.count, stride = layout.inner;                   \
    for (ptrdiff_t item = begin; item < end; item++) {                                                                 \
        ptrdiff_t outer = item / tiles, column = item % tiles * TILE, at = outer * layout.inner + column;              \
        ptrdiff_t place = outer * count * stride + column;                                                             \
        const REAL *input = (const REAL *)loop->input + place;                                                         \
        REAL *out = (REAL *)loop->output + place;                                                                      \
        int width = stride - column < TILE ? (int)(stride - column) : TILE;                                            \
        (void)at;                                                                                                      \
        if (stride == 1) {                                                                                             \
            of_row;                                                                                                    \
        } else if (width == TILE) {                                                                                    \
            width = TILE;                                                                                              \
            of_columns;                                                                                                \
        } else {                                                                                                       \
            of_columns;                                                                                                \
        }                                                                                                              \
    }

MULTIVERSIONED static void TYPED(share_among_extrema)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    EACH_ITEM(TYPED(share_row)(input, count, extreme[at], grad[at], out),
              TYPED(share_columns)(input, count, stride, width, extreme + at, grad + at, out))
}

MULTIVERSIONED static void TYPED(spread_deviations)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    EACH_ITEM(TYPED(deviate_row)(input, count, grad[at] * factor, out),
              TYPED(deviate_columns)(input, count, stride, width, grad + at, factor, out))
}

MULTIVERSIONED static void TYPED(divide_products)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    EACH_ITEM(if (!TYPED(divide_row)(input, count, out)) loop->unfit = 1,
              if (!TYPED(divide_columns)(input, count, stride, width, out)) loop->unfit = 1)
}
#undef EACH_ITEM
