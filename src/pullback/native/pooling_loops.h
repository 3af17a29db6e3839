/* The loops of pooling.c for one dtype: a row of windows at a time, one pass for each element of a window. */

#if REAL_IS_FLOAT
#define PLACE_IN_PLANE int32_t /* as wide as the numbers, so that both are compared in one vector */
#else
#define PLACE_IN_PLANE int64_t
#endif

/* Keep the larger number, NaN being larger than any, and where it lies, for each of `count` windows. Both are chosen without
 * a branch, which would be guessed wrong half of the time. */
INLINE void TYPED(keep_each)(const REAL *restrict row, ptrdiff_t stride, ptrdiff_t count, PLACE_IN_PLANE first,
                             REAL *restrict best, PLACE_IN_PLANE *restrict places)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        REAL value = row[i * stride], old = best[i];
        PLACE_IN_PLANE place = first + (PLACE_IN_PLANE)(i * stride), old_place = places[i];
        int wins = (value > old) | (value != value);
        best[i] = wins ? value : old;
        places[i] = wins ? place : old_place;
    }
}

MULTIVERSIONED static void TYPED(keep_larger)(const REAL *row, ptrdiff_t stride, ptrdiff_t count, ptrdiff_t first, REAL *best,
                                              PLACE_IN_PLANE *places)
{
    if (stride == 1)
        TYPED(keep_each)(row, 1, count, (PLACE_IN_PLANE)first, best, places);
    else if (stride == 2)
        TYPED(keep_each)(row, 2, count, (PLACE_IN_PLANE)first, best, places);
    else
        TYPED(keep_each)(row, stride, count, (PLACE_IN_PLANE)first, best, places);
}

/* The commonest windows, two by two and side by side: of a row and the one `width` numbers further. Where a number is NaN,
 * all are looked at again: with a word about it in the first loop, that is not made of vectors. */
MULTIVERSIONED static void TYPED(keep_largest_of_four)(const REAL *row, ptrdiff_t width, ptrdiff_t count, ptrdiff_t first,
                                                       REAL *restrict best, PLACE_IN_PLANE *restrict places)
{
    const REAL *next = row + width;
    PLACE_IN_PLANE down = (PLACE_IN_PLANE)width, place = (PLACE_IN_PLANE)first, has_nan = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        REAL a = row[2 * i], b = row[2 * i + 1], c = next[2 * i], d = next[2 * i + 1];
        REAL upper = !(b <= a) ? b : a, lower = !(d <= c) ? d : c;
        PLACE_IN_PLANE right = !(b <= a), lower_right = !(d <= c);
        best[i] = !(lower <= upper) ? lower : upper;
        places[i] = place + (PLACE_IN_PLANE)(2 * i) + (!(lower <= upper) ? down + lower_right : right);
        has_nan |= (a != a) | (b != b) | (c != c) | (d != d);
    }
    for (ptrdiff_t i = 0; has_nan && i < count; i++) {
        best[i] = row[2 * i];
        places[i] = place + (PLACE_IN_PLANE)(2 * i);
        for (int k = 1; k < 4; k++) {
            ptrdiff_t at = 2 * i + k % 2 + k / 2 * width;
            TYPED(keep_each)(row + at, 1, 1, place + (PLACE_IN_PLANE)at, best + i, places + i);
        }
    }
}

/* Where the maxima of a thread's planes go. */
typedef struct {
    REAL *best, *best_end;  /* of all planes */
    PLACE_IN_PLANE *places; /* of one plane */
    PLACE_IN_PLANE *first;  /* element of each window that lies inside the row */
    ptrdiff_t (*passes)[2]; /* for each element of a window: the first window that has it, and the one after the last */
} TYPED(Maxima);

/* Whole vectors have no rest that is done one by one, but for one number where every second is read. What is read too much
 * is dropped, and what is written too much is overwritten by the rows that follow; so there has to be enough of both. */
INLINE ptrdiff_t TYPED(round_up)(ptrdiff_t count, const REAL *from, ptrdiff_t stride, const REAL *from_end,
                                 const REAL *to, const REAL *to_end)
{
    ptrdiff_t lanes = 64 / sizeof(REAL), rounded = (count + lanes - 1) / lanes * lanes + (stride > 1);
    return from_end - from >= rounded * stride && to_end - to >= rounded ? rounded : count;
}

/* One pass over a row of windows for each element of a window in that row of the plane. */
INLINE void TYPED(pool_row)(const PoolAxis *axis, const REAL *row, ptrdiff_t place, const REAL *end,
                            const TYPED(Maxima) *maxima)
{
    for (ptrdiff_t k = 0; k < axis->kernel; k++) {
        ptrdiff_t first = maxima->passes[k][0], last = maxima->passes[k][1], count = last - first;
        ptrdiff_t from = first * axis->stride + k * axis->dilation - axis->padding;
        REAL *best = maxima->best + first;
        if (last == axis->count)
            count = TYPED(round_up)(count, row + from, axis->stride, end, best, maxima->best_end);
        TYPED(keep_larger)(row + from, axis->stride, count, place + from, best, maxima->places + first);
    }
}

/* Maxima of a row of windows; where a window holds only -inf, its first element wins. */
static void TYPED(max_of_windows)(const Pool *pool, const REAL *plane, const REAL *end, ptrdiff_t z, ptrdiff_t y,
                                  const TYPED(Maxima) *maxima)
{
    const PoolAxis *axes = pool->axes;
    ptrdiff_t z_first, z_end, y_first, y_end;
    inside_of(&axes[0], z, &z_first, &z_end);
    inside_of(&axes[1], y, &y_first, &y_end);
    ptrdiff_t from_z = z * axes[0].stride - axes[0].padding, from_y = y * axes[1].stride - axes[1].padding;
    ptrdiff_t first_row = ((from_z + z_first * axes[0].dilation) * axes[1].size + from_y + y_first * axes[1].dilation) *
                          axes[2].size;
    if (pool->is_two_by_two) {
        ptrdiff_t count = TYPED(round_up)(axes[2].count, plane + first_row + axes[2].size, 2, end, maxima->best,
                                          maxima->best_end);
        TYPED(keep_largest_of_four)(plane + first_row, axes[2].size, count, first_row, maxima->best,
                                            maxima->places);
        return;
    }
    for (ptrdiff_t x = 0; x < axes[2].count; x++) {
        maxima->best[x] = (REAL)-INFINITY;
        maxima->places[x] = (PLACE_IN_PLANE)first_row + maxima->first[x];
    }
    for (ptrdiff_t i = z_first; i < z_end; i++)
        for (ptrdiff_t j = y_first; j < y_end; j++) {
            ptrdiff_t row = ((from_z + i * axes[0].dilation) * axes[1].size + from_y + j * axes[1].dilation) *
                            axes[2].size;
            TYPED(pool_row)(&axes[2], plane + row, row, end, maxima);
        }
}

/* NULL where memory runs out; else a block to be freed. */
static void *TYPED(prepare_maxima)(const PoolAxis *axes, TYPED(Maxima) *maxima)
{
    const PoolAxis *axis = &axes[2];
    size_t places = (size_t)windows_of(axes) + 64 / sizeof(REAL) + 1;
    void *memory = calloc(1, (places + (size_t)axis->count) * sizeof(PLACE_IN_PLANE) +
                                 (size_t)axis->kernel * sizeof(*maxima->passes));
    if (!memory)
        return NULL;
    maxima->passes = memory;
    maxima->places = (PLACE_IN_PLANE *)(maxima->passes + axis->kernel);
    maxima->first = maxima->places + places;
    for (ptrdiff_t k = 0; k < axis->kernel; k++)
        windows_with(axis, k, &maxima->passes[k][0], &maxima->passes[k][1]);
    for (ptrdiff_t x = 0; x < axis->count; x++) {
        ptrdiff_t first, end;
        inside_of(axis, x, &first, &end);
        maxima->first[x] = (PLACE_IN_PLANE)(x * axis->stride - axis->padding + first * axis->dilation);
    }
    return memory;
}

static void TYPED(max_pool_block)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    Pool *pool = context;
    const PoolAxis *axes = pool->axes;
    ptrdiff_t elements = elements_of(axes), count = windows_of(axes);
    const REAL *input = pool->input, *input_end = input + pool->planes * elements;
    TYPED(Maxima) maxima = {(REAL *)pool->output + begin * count, (REAL *)pool->output + end * count};
    void *memory = TYPED(prepare_maxima)(axes, &maxima);
    if (!memory) {
        pool->failed = 1;
        return;
    }
    PLACE_IN_PLANE *places = maxima.places;
    for (ptrdiff_t plane = begin; plane < end; plane++) {
        maxima.places = places;
        for (ptrdiff_t z = 0; z < axes[0].count; z++)
            for (ptrdiff_t y = 0; y < axes[1].count; y++) {
                TYPED(max_of_windows)(pool, input + plane * elements, input_end, z, y, &maxima);
                maxima.best += axes[2].count;
                maxima.places += axes[2].count;
            }
        for (ptrdiff_t i = 0; i < count; i++)
            pool->indices[plane * count + i] = places[i];
    }
    free(memory);
}

/* total[i * to] += row[i * from], one of the strides being 1. */
INLINE void TYPED(add_strided)(REAL *total, ptrdiff_t to, const REAL *row, ptrdiff_t from, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++)
        total[i * to] += row[i * from];
}

MULTIVERSIONED static void TYPED(add_row)(REAL *total, ptrdiff_t to, const REAL *row, ptrdiff_t from, ptrdiff_t count)
{
    if (to == 1 && from == 1)
        TYPED(add_strided)(total, 1, row, 1, count);
    else if (to == 1 && from == 2)
        TYPED(add_strided)(total, 1, row, 2, count);
    else
        TYPED(add_strided)(total, to, row, from, count);
}

/* The sums of a row of windows: first over the rows that a window has, then along them. */
static void TYPED(sum_of_windows)(const PoolAxis *axes, const REAL *plane, ptrdiff_t z, ptrdiff_t y, REAL *sums,
                                  REAL *total)
{
    ptrdiff_t z_first, z_end, y_first, y_end, first, last;
    inside_of(&axes[0], z, &z_first, &z_end);
    inside_of(&axes[1], y, &y_first, &y_end);
    memset(sums, 0, (size_t)axes[2].size * sizeof(REAL));
    for (ptrdiff_t j = y_first; j < y_end; j++)
        for (ptrdiff_t i = z_first; i < z_end; i++) {
            ptrdiff_t row = (z * axes[0].stride - axes[0].padding + i) * axes[1].size;
            row = (row + y * axes[1].stride - axes[1].padding + j) * axes[2].size;
            TYPED(add_row)(sums, 1, plane + row, 1, axes[2].size);
        }
    memset(total, 0, (size_t)axes[2].count * sizeof(REAL));
    for (ptrdiff_t k = 0; k < axes[2].kernel; k++) {
        windows_with(&axes[2], k, &first, &last);
        TYPED(add_row)(total + first, 1, sums + first * axes[2].stride + k - axes[2].padding, axes[2].stride,
                       last - first);
    }
}

static void TYPED(avg_pool_block)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    Pool *pool = context;
    const PoolAxis *axes = pool->axes;
    ptrdiff_t width = axes[2].count;
    REAL *sums = malloc((size_t)axes[2].size * sizeof(REAL));
    if (!sums) {
        pool->failed = 1;
        return;
    }
    REAL *total = (REAL *)pool->output + begin * windows_of(axes);
    for (ptrdiff_t plane = begin; plane < end; plane++) {
        const double *divisors = pool->divisors;
        for (ptrdiff_t z = 0; z < axes[0].count; z++)
            for (ptrdiff_t y = 0; y < axes[1].count; y++, total += width, divisors += width) {
                TYPED(sum_of_windows)(axes, (const REAL *)pool->input + plane * elements_of(axes), z, y, sums, total);
                for (ptrdiff_t x = 0; x < width; x++)
                    total[x] /= (REAL)divisors[x];
            }
    }
    free(sums);
}

/* Add the shares of a row of windows to the elements of the window's row that they were read from. */
INLINE void TYPED(spread_row)(const PoolAxis *axis, const REAL *shares, REAL *row)
{
    for (ptrdiff_t k = 0; k < axis->kernel; k++) {
        ptrdiff_t first, last;
        windows_with(axis, k, &first, &last);
        TYPED(add_row)(row + first * axis->stride + k - axis->padding, axis->stride, shares + first, 1, last - first);
    }
}

/* The adjoint of avg_pool_block: each window's number, divided, is added to all of its elements. */
static void TYPED(avg_pool_back_block)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    Pool *pool = context;
    const PoolAxis *axes = pool->axes;
    ptrdiff_t width = axes[2].count, elements = elements_of(axes), size = axes[2].size;
    REAL *shares = malloc((size_t)(width + size) * sizeof(REAL)), *row = shares + width;
    if (!shares) {
        pool->failed = 1;
        return;
    }
    const REAL *input = (const REAL *)pool->input + begin * windows_of(axes);
    for (ptrdiff_t plane = begin; plane < end; plane++) {
        REAL *output = (REAL *)pool->output + plane * elements;
        const double *divisors = pool->divisors;
        memset(output, 0, (size_t)elements * sizeof(REAL));
        for (ptrdiff_t z = 0; z < axes[0].count; z++)
            for (ptrdiff_t y = 0; y < axes[1].count; y++, input += width, divisors += width) {
                ptrdiff_t z_first, z_end, y_first, y_end;
                inside_of(&axes[0], z, &z_first, &z_end);
                inside_of(&axes[1], y, &y_first, &y_end);
                for (ptrdiff_t x = 0; x < width; x++)
                    shares[x] = input[x] / (REAL)divisors[x];
                memset(row, 0, (size_t)size * sizeof(REAL));
                TYPED(spread_row)(&axes[2], shares, row);
                for (ptrdiff_t i = z_first; i < z_end; i++)
                    for (ptrdiff_t j = y_first; j < y_end; j++) {
                        ptrdiff_t place = (z * axes[0].stride - axes[0].padding + i) * axes[1].size;
                        place = (place + y * axes[1].stride - axes[1].padding + j) * size;
                        TYPED(add_row)(output + place, 1, row, 1, size);
                    }
            }
    }
    free(shares);
}

#undef PLACE_IN_PLANE

/* Maxima of windows that divide up the input. */

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
