/* Maps along one dimension by tables of taps, for one type of number; included by for_each_real.h. See resampling.c. */

/* The sum of a few taps of one output for neighbours along the inner dimension. */
INLINE void TYPED(add_taps)(const REAL *from, const npy_int64 *positions, const REAL *weights, ptrdiff_t taps,
                            ptrdiff_t inner, REAL *restrict to)
{
    const REAL *first = from + positions[0] * inner;
    if (taps == 1) {
        for (ptrdiff_t j = 0; j < inner; j++)
            to[j] = first[j] * weights[0];
        return;
    }
    const REAL *second = from + positions[1] * inner;
    for (ptrdiff_t j = 0; j < inner; j++)
        to[j] = first[j] * weights[0] + second[j] * weights[1];
    for (ptrdiff_t t = 2; t + 2 <= taps; t += 2) {
        const REAL *a = from + positions[t] * inner, *b = from + positions[t + 1] * inner;
        for (ptrdiff_t j = 0; j < inner; j++)
            to[j] += a[j] * weights[t] + b[j] * weights[t + 1];
    }
    if (taps > 2 && taps % 2) {
        const REAL *last = from + positions[taps - 1] * inner;
        for (ptrdiff_t j = 0; j < inner; j++)
            to[j] += last[j] * weights[taps - 1];
    }
}

/* One row along the last dimension, all outputs having `taps` taps (a constant): the compiler gathers. */
INLINE void TYPED(gather_row)(const Map *map, const int taps, const REAL *restrict from, REAL *restrict to)
{
    const int32_t *restrict places = map->places;
    const REAL *restrict weights = map->by_tap;
    ptrdiff_t count = map->outputs;
    for (ptrdiff_t i = 0; i < count; i++) {
        REAL sum = from[places[i]] * weights[i];
        for (int t = 1; t < taps; t++)
            sum += from[places[t * count + i]] * weights[t * count + i];
        to[i] = sum;
    }
}

/* One row, of which long runs of outputs are alike: each sum is taken once. */
INLINE void TYPED(fill_runs)(const Map *map, const REAL *restrict from, REAL *restrict to)
{
    const REAL *weights = map->by_tap;
    for (ptrdiff_t run = 0; run < map->run_count; run++) {
        ptrdiff_t begin = map->runs[run], end = map->runs[run + 1];
        REAL sum = from[map->places[begin]] * weights[begin];
        for (ptrdiff_t t = 1; t < map->most; t++)
            sum += from[map->places[t * map->outputs + begin]] * weights[t * map->outputs + begin];
        for (ptrdiff_t i = begin; i < end; i++)
            to[i] = sum;
    }
}

/* One row, outputs that read neighbours: their sums side by side. */
INLINE REAL TYPED(sum_run)(const REAL *from, const REAL *weights, ptrdiff_t count)
{
    REAL parts[8] = {0}, rest = 0;
    ptrdiff_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (int j = 0; j < 8; j++)
            parts[j] += from[i + j] * weights[i + j];
    for (; i < count; i++)
        rest += from[i] * weights[i];
    return rest + (((parts[0] + parts[4]) + (parts[2] + parts[6])) + ((parts[1] + parts[5]) + (parts[3] + parts[7])));
}

INLINE void TYPED(map_row)(const Map *map, const REAL *from, REAL *to)
{
    const REAL *weights = map->weights;
    if (map->run_count)
        TYPED(fill_runs)(map, from, to);
    else if (map->most == 1)
        TYPED(gather_row)(map, 1, from, to);
    else if (map->most == 2)
        TYPED(gather_row)(map, 2, from, to);
    else if (map->most == 3)
        TYPED(gather_row)(map, 3, from, to);
    else if (map->most == 4)
        TYPED(gather_row)(map, 4, from, to);
    else
        for (ptrdiff_t i = 0; i < map->outputs; i++, weights += map->taps) {
            const npy_int64 *positions = map->positions + i * map->taps;
            if (map->is_run) {
                to[i] = TYPED(sum_run)(from + positions[0], weights, map->counts[i]);
                continue;
            }
            REAL sum = 0;
            for (ptrdiff_t t = 0; t < map->counts[i]; t++)
                sum += from[positions[t]] * weights[t];
            to[i] = sum;
        }
}

/* Items are the outer dimensions' places, or outputs of these where the inner dimension is long. */
MULTIVERSIONED static void TYPED(map_blocks)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Map *map = context;
    ptrdiff_t inner = map->inner, outputs = map->outputs;
    for (ptrdiff_t item = begin; item < end; item++)
        if (inner == 1)
            TYPED(map_row)(map, (const REAL *)map->input + item * map->inputs, (REAL *)map->output + item * outputs);
        else
            TYPED(add_taps)((const REAL *)map->input + item / outputs * map->inputs * inner,
                            map->positions + item % outputs * map->taps,
                            (const REAL *)map->weights + item % outputs * map->taps, map->counts[item % outputs], inner,
                            (REAL *)map->output + item * inner);
}

/* The weights in the type of the numbers, and by tap where all outputs have few. */
static void TYPED(copy_weights)(Map *map, PyObject *weights)
{
    ptrdiff_t count = map->outputs * map->taps;
    REAL *to = map->weights, *by_tap = map->by_tap;
    for (ptrdiff_t i = 0; i < count; i++)
        to[i] = !weights                           ? 1
                : type_of(weights) == NPY_DOUBLE ? (REAL)((const double *)data_of(weights))[i]
                                                 : (REAL)((const float *)data_of(weights))[i];
    for (ptrdiff_t i = 0; i < map->outputs && map->most <= FEW_TAPS; i++)
        for (ptrdiff_t t = 0; t < map->most; t++) {
            ptrdiff_t place = t * map->outputs + i, last = map->counts[i] - 1;
            map->places[place] = (int32_t)map->positions[i * map->taps + (t < last ? t : last)];
            by_tap[place] = to[i * map->taps + (t < last ? t : last)];
            if (t > last) { /* the last one is shared out, exactly: with a weight of 0 infinity would become NaN */
                by_tap[place - map->outputs] *= (REAL)0.5;
                by_tap[place] = by_tap[place - map->outputs];
            }
        }
}

/* Runs of outputs that read the same with the same weights, where these are long enough to be filled. */
static void TYPED(find_runs)(Map *map)
{
    const REAL *weights = map->by_tap;
    map->run_count = 0;
    if (map->inner != 1 || map->most > FEW_TAPS)
        return;
    for (ptrdiff_t i = 0; i < map->outputs; i++) {
        int is_new = i == 0;
        for (ptrdiff_t t = 0; t < map->most; t++) {
            ptrdiff_t place = t * map->outputs + i;
            is_new = is_new || map->places[place] != map->places[place - 1] || weights[place] != weights[place - 1];
        }
        if (is_new)
            map->runs[map->run_count++] = (int32_t)i;
    }
    map->runs[map->run_count] = (int32_t)map->outputs;
    if (map->run_count * LONG_RUN > map->outputs)
        map->run_count = 0;
}
