/* The first elements of rows in order, for one type of number; see for_each_real.h. */

/* Whether `value` comes before `other`: NaN are the largest, and equal ones stay in their order. */
INLINE int TYPED(comes_before)(REAL value, REAL other, int largest)
{
    if (largest)
        return value > other || (value != value && other == other);
    return value < other || (other != other && value == value);
}

INLINE void TYPED(insert)(REAL value, int64_t place, ptrdiff_t held, REAL *values, int64_t *places, int largest)
{
    ptrdiff_t at = held;
    for (; at && TYPED(comes_before)(value, values[at - 1], largest); at--) {
        values[at] = values[at - 1];
        places[at] = places[at - 1];
    }
    values[at] = value;
    places[at] = place;
}

/* Once `kept` are held, blocks in which nothing comes before the last of them are passed over. */
INLINE void TYPED(select_row)(const REAL *row, ptrdiff_t count, ptrdiff_t kept, REAL *values, int64_t *places, int largest)
{
    for (ptrdiff_t i = 0; i < kept; i++)
        TYPED(insert)(row[i], i, i, values, places, largest);
    for (ptrdiff_t i = kept; i < count;) {
        REAL last = values[kept - 1];
        ptrdiff_t end = i + BLOCK < count ? i + BLOCK : count;
        if (end == i + BLOCK) {
            int found = 0;
            for (int j = 0; j < BLOCK; j++)
                found |= largest ? !(row[i + j] <= last) : !(row[i + j] >= last);
            if (!found) {
                i = end;
                continue;
            }
        }
        for (; i < end; i++)
            if (TYPED(comes_before)(row[i], values[kept - 1], largest))
                TYPED(insert)(row[i], i, kept - 1, values, places, largest);
    }
}

#define SELECT(name, largest)                                                                                          \
    MULTIVERSIONED static void TYPED(name)(void *context, ptrdiff_t begin, ptrdiff_t end)                              \
    {                                                                                                                  \
        const Selection *loop = context;                                                                               \
        for (ptrdiff_t row = begin; row < end; row++)                                                                  \
            TYPED(select_row)((const REAL *)loop->input + row * loop->layout.count, loop->layout.count, loop->kept,    \
                              (REAL *)loop->values + row * loop->kept, loop->places + row * loop->kept, largest);      \
    }
SELECT(select_largest, 1)
SELECT(select_smallest, 0)
#undef SELECT
