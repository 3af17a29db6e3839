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

/* result[o][i][j] = input[o][index[o][i][j]][j] for some of the outer positions. */
MULTIVERSIONED static void TYPED(gather_outer)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Addition *a = context;
    for (ptrdiff_t o = begin; o < end; o++) {
        const REAL *from = (const REAL *)a->from + o * a->extent * a->inner;
        REAL *to = (REAL *)a->to + o * a->count * a->inner;
        const int64_t *positions = a->positions + o * a->count * a->inner;
        if (a->inner == 1) {
            for (ptrdiff_t i = 0; i < a->count; i++)
                to[i] = from[positions[i]];
            continue;
        }
        for (ptrdiff_t i = 0; i < a->count; i++)
            for (ptrdiff_t j = 0; j < a->inner; j++)
                to[i * a->inner + j] = from[positions[i * a->inner + j] * a->inner + j];
    }
}

static void TYPED(scatter_outer)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Addition *a = context;
    for (ptrdiff_t o = begin; o < end; o++) {
        const REAL *from = (const REAL *)a->from + o * a->count * a->inner;
        REAL *to = (REAL *)a->to + o * a->extent * a->inner;
        const int64_t *positions = a->positions + o * a->count * a->inner;
        if (a->inner == 1) {
            for (ptrdiff_t i = 0; i < a->count; i++)
                to[positions[i]] += from[i];
            continue;
        }
        for (ptrdiff_t i = 0; i < a->count; i++)
            for (ptrdiff_t j = 0; j < a->inner; j++)
                to[positions[i * a->inner + j] * a->inner + j] += from[i * a->inner + j];
    }
}

static void TYPED(put_outer)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Addition *a = context;
    for (ptrdiff_t o = begin; o < end; o++) {
        const REAL *from = (const REAL *)a->from + o * a->count * a->inner;
        REAL *to = (REAL *)a->to + o * a->extent * a->inner;
        const int64_t *positions = a->positions + o * a->count * a->inner;
        for (ptrdiff_t i = 0; i < a->count; i++)
            for (ptrdiff_t j = 0; j < a->inner; j++)
                to[positions[i * a->inner + j] * a->inner + j] = from[i * a->inner + j];
    }
}
