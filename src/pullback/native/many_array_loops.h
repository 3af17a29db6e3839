/* Loops of many_arrays.c, for one type of number; included by for_each_real.h. */

/* Multiply by a factor in place; whether all results are finite. What is not makes NaN of zero, which stays in a sum. */
MULTIVERSIONED static int TYPED(scale_elements)(void *data, ptrdiff_t count, double factor)
{
    REAL *values = data, by = (REAL)factor, doubts[16] = {0};
    ptrdiff_t i = 0;
    for (; i + 16 <= count; i += 16)
        for (int lane = 0; lane < 16; lane++) {
            REAL value = values[i + lane] * by;
            values[i + lane] = value;
            doubts[lane] += value - value;
        }
    for (; i < count; i++) {
        REAL value = values[i] * by;
        values[i] = value;
        doubts[0] += value - value;
    }
    for (int lane = 0; lane < 16; lane++)
        if (doubts[lane] != 0)
            return 0;
    return 1;
}

/* Both may be the same memory. */
MULTIVERSIONED static void TYPED(write_scaled)(void *target, const void *source, ptrdiff_t count, double factor)
{
    REAL *to = target, by = (REAL)factor;
    const REAL *from = source;
    for (ptrdiff_t i = 0; i < count; i++)
        to[i] = from[i] * by;
}
