/* Partial results in LANES columns, for one type of number; included by for_each_real.h.
 *
 * Sums are kept in lanes for CHUNK elements at most, then go to a float64 total: the error of a sum of float32 stays that of
 * a hundred additions however long the row is.
 */
#define CHUNK (64 * LANES)

INLINE void TYPED(fill_lanes)(REAL *lanes, REAL value)
{
    for (int j = 0; j < LANES; j++)
        lanes[j] = value;
}

/* The sum of the lanes, halves added to halves. */
INLINE double TYPED(total_of)(const REAL *lanes)
{
    REAL eight[8] = {0};
    for (int i = 0; i < LANES; i += 8)
        for (int j = 0; j < 8; j++)
            eight[j] += lanes[i + j];
    return (((double)eight[0] + eight[4]) + ((double)eight[2] + eight[6])) +
           (((double)eight[1] + eight[5]) + ((double)eight[3] + eight[7]));
}

INLINE REAL TYPED(largest_of)(const REAL *lanes)
{
    REAL eight[8];
    for (int j = 0; j < 8; j++)
        eight[j] = lanes[j];
    for (int i = 8; i < LANES; i += 8)
        for (int j = 0; j < 8; j++)
            eight[j] = lanes[i + j] > eight[j] ? lanes[i + j] : eight[j];
    REAL top = eight[0];
    for (int j = 1; j < 8; j++)
        top = eight[j] > top ? eight[j] : top;
    return top;
}

/* The rest of a row, filled up to LANES with `value`: then it takes the same road as whole blocks. */
INLINE void TYPED(pad)(REAL *padded, const REAL *rest, ptrdiff_t count, REAL value)
{
    TYPED(fill_lanes)(padded, value);
    for (ptrdiff_t j = 0; j < count; j++)
        padded[j] = rest[j];
}

INLINE void TYPED(copy_rest)(REAL *rest, const REAL *padded, ptrdiff_t count)
{
    for (ptrdiff_t j = 0; j < count; j++)
        rest[j] = padded[j];
}
