/* Extrema with the place of their first occurrence, for one type of number; see for_each_real.h. A NaN is an extremum. */
#include "reduction_rows.h"

/* The first place of a value in a row that has it; NaN is looked for as such. */
INLINE ptrdiff_t TYPED(first_place)(const REAL *row, ptrdiff_t count, REAL value)
{
    ptrdiff_t i = 0;
    if (value == value)
        for (; i + LANES <= count; i += LANES) {
            int found = 0;
            for (int j = 0; j < LANES; j++)
                found |= row[i + j] == value;
            if (found)
                break;
        }
    while (i < count - 1 && row[i] != value && (value == value || row[i] == row[i]))
        i++;
    return i;
}

INLINE void TYPED(row_extremum)(Operation operation, const REAL *row, ptrdiff_t count, REAL *value, int64_t *place)
{
    REAL found = (REAL)TYPED(reduce_row)(operation, row, count, 0);
    *place = TYPED(first_place)(row, count, found);
    *value = row[*place];
}

/* LANES columns: first their extrema, then their places, from the last row to the first, so that the first one stays. */
INLINE void TYPED(column_extrema)(Operation operation, const REAL *input, ptrdiff_t count, ptrdiff_t stride, int width,
                                  REAL *values, int64_t *places)
{
    REAL best[LANES], nans[LANES] = {0};
    PLACES place[LANES] = {0};
    for (int j = 0; j < width; j++)
        best[j] = input[j];
    for (ptrdiff_t k = 0; k < count; k++)
        for (int j = 0; j < width; j++) {
            best[j] = TYPED(combined)(operation, best[j], input[k * stride + j]);
            nans[j] = input[k * stride + j] != input[k * stride + j] ? 1 : nans[j];
        }
    for (ptrdiff_t k = count; k--;)
        for (int j = 0; j < width; j++)
            place[j] = input[k * stride + j] == best[j] ? (PLACES)k : place[j];
    for (int j = 0; j < width; j++) {
        ptrdiff_t at = place[j];
        if (nans[j])
            for (at = 0; input[at * stride + j] == input[at * stride + j];)
                at++;
        values[j] = input[at * stride + j];
        places[j] = at;
    }
}

INLINE void TYPED(find_extrema)(Operation operation, const Extrema *loop, ptrdiff_t begin, ptrdiff_t end)
{
    Layout layout = loop->layout;
    const REAL *input = loop->input;
    REAL kept[LANES], *values = loop->values;
    ptrdiff_t groups = (layout.inner + LANES - 1) / LANES;
    for (ptrdiff_t item = begin; item < end; item++)
        if (layout.inner == 1) {
            TYPED(row_extremum)(operation, input + item * layout.count, layout.count, values ? values + item : kept,
                                loop->places + item);
        } else {
            ptrdiff_t outer = item / groups, column = item % groups * LANES, at = outer * layout.inner + column;
            const REAL *first = input + outer * layout.count * layout.inner + column;
            if (column + LANES <= layout.inner)
                TYPED(column_extrema)(operation, first, layout.count, layout.inner, LANES, values ? values + at : kept,
                                      loop->places + at);
            else
                TYPED(column_extrema)(operation, first, layout.count, layout.inner, (int)(layout.inner - column),
                                      values ? values + at : kept, loop->places + at);
        }
}

#define FIND(name, operation)                                                                                          \
    MULTIVERSIONED static void TYPED(name)(void *context, ptrdiff_t begin, ptrdiff_t end)                              \
    {                                                                                                                  \
        TYPED(find_extrema)(operation, context, begin, end);                                                           \
    }
FIND(find_largest, LARGEST)
FIND(find_smallest, SMALLEST)
#undef FIND
