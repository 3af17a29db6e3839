/* Maxima of as many windows as asked for, for one type of number; included by for_each_real.h. */

/* The largest of a row's part, the first of equal ones or the last NaN, and where it is. */
INLINE void TYPED(scan_row)(const REAL *row, ptrdiff_t begin, ptrdiff_t end, npy_int64 base, REAL *best, npy_int64 *place)
{
    for (ptrdiff_t x = begin; x < end; x++) {
        REAL value = row[x];
        if (value > *best || value != value) {
            *best = value;
            *place = base + x;
        }
    }
}

/* The largest of a part, side by side; NaN where one is NaN or infinite, which a careful scan has to look at. */
INLINE REAL TYPED(largest_in_row)(const REAL *row, ptrdiff_t count)
{
    REAL lanes[LANES], check[LANES];
    ptrdiff_t i = 0;
    for (int j = 0; j < LANES; j++) {
        lanes[j] = row[0];
        check[j] = 0;
    }
    for (; i + LANES <= count; i += LANES)
        for (int j = 0; j < LANES; j++) {
            REAL value = row[i + j];
            check[j] += value * 0;
            lanes[j] = value > lanes[j] ? value : lanes[j];
        }
    for (int j = 0; j < count - i; j++) {
        REAL value = row[i + j];
        check[j] += value * 0;
        lanes[j] = value > lanes[j] ? value : lanes[j];
    }
    return TYPED(largest_of)(lanes) + (REAL)TYPED(total_of)(check);
}

/* Long rows: find the largest first, then where it is. */
INLINE void TYPED(scan_long_row)(const REAL *row, ptrdiff_t begin, ptrdiff_t end, npy_int64 base, REAL *best,
                                 npy_int64 *place)
{
    REAL largest = TYPED(largest_in_row)(row + begin, end - begin);
    if (largest != largest)
        TYPED(scan_row)(row, begin, end, base, best, place);
    if (!(largest > *best))
        return;
    ptrdiff_t x = begin;
    while (row[x] != largest)
        x++;
    *best = largest;
    *place = base + x;
}

/* The largest of one window and its place in the plane. */
INLINE void TYPED(scan_window)(const Adaptive *a, const REAL *from, const ptrdiff_t *begin, const ptrdiff_t *end,
                               REAL *best, npy_int64 *place)
{
    const ptrdiff_t *sizes = a->sizes;
    *place = (begin[0] * sizes[1] + begin[1]) * sizes[2] + begin[2];
    *best = from[*place];
    int is_wide = begin[2] == 0 && end[2] == sizes[2]; /* rows are one long row */
    for (ptrdiff_t z = begin[0]; z < end[0]; z++)
        for (ptrdiff_t y = begin[1]; y < end[1]; y = is_wide ? end[1] : y + 1) {
            ptrdiff_t base = (z * sizes[1] + y) * sizes[2], stop = is_wide ? (end[1] - y) * sizes[2] : end[2];
            /* Beyond a NaN nothing is larger: only other NaN are looked for. */
            if (stop - begin[2] >= LANES && *best == *best)
                TYPED(scan_long_row)(from + base, begin[2], stop, base, best, place);
            else
                TYPED(scan_row)(from + base, begin[2], stop, base, best, place);
        }
}

/* Items are planes. */
MULTIVERSIONED static void TYPED(adaptive_planes)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Adaptive *a = context;
    const ptrdiff_t *sizes = a->sizes, *counts = a->counts;
    for (ptrdiff_t plane = begin; plane < end; plane++) {
        const REAL *from = (const REAL *)a->input + plane * sizes[0] * sizes[1] * sizes[2];
        ptrdiff_t item = plane * counts[0] * counts[1] * counts[2];
        for (ptrdiff_t wz = 0; wz < counts[0]; wz++)
            for (ptrdiff_t wy = 0; wy < counts[1]; wy++)
                for (ptrdiff_t wx = 0; wx < counts[2]; wx++, item++) {
                    ptrdiff_t from_place[] = {a->begins[0][wz], a->begins[1][wy], a->begins[2][wx]};
                    ptrdiff_t to_place[] = {a->ends[0][wz], a->ends[1][wy], a->ends[2][wx]};
                    TYPED(scan_window)(a, from, from_place, to_place, (REAL *)a->output + item, a->indices + item);
                }
    }
}

/* Items are planes: each element is put where its index says. An index beyond the plane is noted. */
static void TYPED(unpool_planes)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    Unpooling *u = context;
    for (ptrdiff_t plane = begin; plane < end; plane++) {
        const REAL *from = (const REAL *)u->input + plane * u->count;
        const npy_int64 *indices = u->indices + plane * u->count;
        REAL *to = (REAL *)u->output + plane * u->plane;
        memset(to, 0, (size_t)u->plane * sizeof(REAL));
        for (ptrdiff_t i = 0; i < u->count; i++)
            if (indices[i] < 0 || indices[i] >= u->plane)
                u->failed = 1;
            else
                to[indices[i]] = from[i];
    }
}
