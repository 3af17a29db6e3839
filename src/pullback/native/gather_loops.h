/* Sums at positions, for one type of number; included by for_each_real.h. */

MULTIVERSIONED static void TYPED(add_columns)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Addition *a = context;
    for (ptrdiff_t o = 0; o < a->outer; o++)
        for (ptrdiff_t i = 0; i < a->count; i++) {
            if (a->positions[i] == a->skipped)
                continue;
            const REAL *from = (const REAL *)a->from + (o * a->count + i) * a->inner;
            REAL *to = (REAL *)a->to + (o * a->extent + a->positions[i]) * a->inner;
            for (ptrdiff_t j = begin; j < end; j++)
                to[j] += from[j];
        }
}

static void TYPED(add_outer)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Addition *a = context;
    for (ptrdiff_t o = begin; o < end; o++) {
        const REAL *from = (const REAL *)a->from + o * a->count * a->inner;
        REAL *to = (REAL *)a->to + o * a->extent * a->inner;
        for (ptrdiff_t i = 0; i < a->count; i++)
            if (a->positions[i] != a->skipped)
                for (ptrdiff_t j = 0; j < a->inner; j++)
                    to[a->positions[i] * a->inner + j] += from[i * a->inner + j];
    }
}

/* For some of the outer positions o: `p` is the place of [index[o][i][j]][j] in `whole`, `k` that of [i][j] in `part`. */
#define AT_POSITIONS(name, of_whole, of_part, statement)                                                               \
    MULTIVERSIONED static void TYPED(name)(void *context, ptrdiff_t begin, ptrdiff_t end)                              \
    {                                                                                                                  \
        const Addition *a = context;                                                                                   \
        ptrdiff_t inner = a->inner, count = a->count * inner;                                                          \
        for (ptrdiff_t o = begin; o < end; o++) {                                                                      \
            REAL *restrict whole = (REAL *)a->of_whole + o * a->extent * inner;                                        \
            REAL *restrict part = (REAL *)a->of_part + o * count;                                                      \
            const int64_t *positions = a->positions + o * count;                                                       \
            if (inner == 1)                                                                                            \
                for (ptrdiff_t k = 0; k < count; k++) {                                                                \
                    ptrdiff_t p = positions[k];                                                                        \
                    statement;                                                                                         \
                }                                                                                                      \
            else                                                                                                       \
                for (ptrdiff_t i = 0; i < count; i += inner)                                                           \
                    for (ptrdiff_t j = 0; j < inner; j++) {                                                            \
                        ptrdiff_t k = i + j, p = positions[k] * inner + j;                                             \
                        statement;                                                                                     \
                    }                                                                                                  \
        }                                                                                                              \
    }
AT_POSITIONS(gather_outer, from, to, part[k] = whole[p])
AT_POSITIONS(scatter_outer, to, from, whole[p] += part[k])
AT_POSITIONS(put_outer, to, from, whole[p] = part[k])

/* The same for positions that nobody has looked at. */
#define WITHIN(statement)                                                                                              \
    if (LIKELY((uint64_t)p < (uint64_t)a->extent))                                                                     \
        statement;                                                                                                     \
    else                                                                                                               \
        ((Addition *)context)->failed = 1
AT_POSITIONS(gather_within, from, to, WITHIN(part[k] = whole[p]))
AT_POSITIONS(scatter_within, to, from, WITHIN(whole[p] += part[k]))
AT_POSITIONS(put_within, to, from, WITHIN(whole[p] = part[k]))
#undef WITHIN
#undef AT_POSITIONS
