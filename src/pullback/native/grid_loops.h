/* Sampling at points, for one type of number; included by for_each_real.h. See grid_sampling.c.
 *
 * Loops run along points and have no branches, so that the compiler makes vectors of them.
 */

INLINE REAL TYPED(clipped)(REAL place, REAL most) { return place < 0 ? 0 : place > most ? most : place; }

/* Border and reflection move places inside; NaN stays. */
INLINE REAL TYPED(moved_inside)(REAL place, REAL size, int padding, int align)
{
    if (padding == REFLECTION) {
        REAL low = align ? 0 : (REAL)-0.5, span = align ? size - 1 : size;
        if (span == 0)
            return 0;
        REAL distance = place - low < 0 ? low - place : place - low;
        REAL flips = FLOOR(distance / span), rest = distance - flips * span;
        REAL half = flips * (REAL)0.5;
        place = FLOOR(half) == half ? rest + low : span - rest + low;
    }
    return TYPED(clipped)(place, size - 1);
}

/* How fast a place in pixels moves with the grid's coordinate. */
INLINE REAL TYPED(direction)(REAL place, REAL size, int padding, int align)
{
    REAL sign = 1;
    if (padding == REFLECTION) {
        REAL low = align ? 0 : (REAL)-0.5, span = align ? size - 1 : size;
        if (span == 0)
            return 0;
        REAL distance = place - low < 0 ? low - place : place - low;
        REAL flips = FLOOR(distance / span), rest = distance - flips * span, half = flips * (REAL)0.5;
        int is_even = FLOOR(half) == half;
        sign = (place < low ? -1 : 1) * (is_even ? (REAL)1 : (REAL)-1);
        place = is_even ? rest + low : span - rest + low;
    }
    return place > 0 && place < size - 1 ? sign : 0;
}

/* The places of some points along one axis, in pixels, and the pixel below (or nearest to) each. */
INLINE void TYPED(find_places)(const Sampling *s, const REAL *grid, int axis, ptrdiff_t count, REAL *below, REAL *part,
                               REAL *slope)
{
    REAL size = (REAL)s->sizes[axis];
    int align = s->align, padding = s->mode == CUBIC ? ZEROS : s->padding;
    ptrdiff_t dims = s->dims;
    REAL rate = align ? (size - 1) / 2 : size / 2;
    for (ptrdiff_t p = 0; p < count; p++) {
        REAL place = grid[p * dims + axis];
        place = align ? (place + 1) / 2 * (size - 1) : ((place + 1) * size - 1) / 2;
        slope[p] = padding == ZEROS ? rate : rate * TYPED(direction)(place, size, padding, align);
        if (padding != ZEROS)
            place = TYPED(moved_inside)(place, size, padding, align);
        below[p] = s->mode == NEAREST ? RINT(place) : FLOOR(place);
        part[p] = place - below[p];
    }
}

/* For one tap of an axis: the index of each point's pixel (-1 outside), its weight and that weight's slope. */
INLINE void TYPED(find_tap)(const Sampling *s, int axis, int tap, ptrdiff_t count, const REAL *below, const REAL *part,
                            int32_t *index, REAL *weight, REAL *slope)
{
    REAL size = (REAL)s->sizes[axis], a = (REAL)-0.75;
    int offset = s->mode == CUBIC ? tap - 1 : tap, moves = s->mode == CUBIC && s->padding != ZEROS;
    REAL coefficients[4][4] = {{a, -2 * a, a, 0}, {a + 2, -(a + 3), 0, 1}, {-(a + 2), 2 * a + 3, -a, 0}, {-a, a, 0, 0}};
    const REAL *c = coefficients[tap];
    for (ptrdiff_t p = 0; p < count; p++) {
        REAL place = below[p] + (REAL)offset, t = part[p];
        if (moves)
            place = TYPED(moved_inside)(place, size, s->padding, s->align);
        index[p] = place >= 0 && place < size ? (int32_t)place : -1;
        if (s->mode == CUBIC) {
            weight[p] = ((c[0] * t + c[1]) * t + c[2]) * t + c[3];
            slope[p] = (3 * c[0] * t + 2 * c[1]) * t + c[2];
        } else {
            weight[p] = s->mode == NEAREST ? 1 : tap ? t : 1 - t;
            slope[p] = s->mode == NEAREST ? 0 : tap ? (REAL)1 : (REAL)-1;
        }
    }
}

/* Join the taps of all axes: flat positions (-1 outside) and weights, for the gradient of the grid one set per axis. */
INLINE void TYPED(join_taps)(const Sampling *s, ptrdiff_t count, const int32_t *index, const REAL *weight,
                             const REAL *slope)
{
    int taps = s->taps, dims = s->dims;
    for (int k = 0; k < s->all_taps; k++) {
        int32_t *positions = s->positions + (ptrdiff_t)k * BLOCK_POINTS;
        for (int set = 0; set < s->sets; set++) {
            REAL *to = (REAL *)s->weights + ((ptrdiff_t)set * s->all_taps + k) * BLOCK_POINTS;
            int rest = k, done = 0;
            for (int axis = 0; axis < dims; axis++, rest /= taps) {
                ptrdiff_t from = (ptrdiff_t)(axis * taps + rest % taps) * BLOCK_POINTS;
                const REAL *factor = (s->for_grid && axis == set ? slope : weight) + from;
                if (done++)
                    for (ptrdiff_t p = 0; p < count; p++)
                        to[p] *= factor[p];
                else
                    memcpy(to, factor, (size_t)count * sizeof(REAL));
            }
        }
        int32_t step = 1;
        for (int axis = 0, rest = k; axis < dims; axis++, rest /= taps, step *= (int32_t)s->sizes[axis - 1]) {
            const int32_t *from = index + (ptrdiff_t)(axis * taps + rest % taps) * BLOCK_POINTS;
            for (ptrdiff_t p = 0; p < count; p++) {
                int32_t flat = axis ? positions[p] : 0;
                positions[p] = (flat | from[p]) < 0 ? -1 : flat + from[p] * step;
            }
        }
        for (int set = 0; set < s->sets; set++) {
            REAL *to = (REAL *)s->weights + ((ptrdiff_t)set * s->all_taps + k) * BLOCK_POINTS;
            for (ptrdiff_t p = 0; p < count; p++)
                to[p] = positions[p] < 0 ? 0 : to[p];
        }
    }
}

/* Work out what all channels share for some points of a sample. */
MULTIVERSIONED static void TYPED(prepare_points)(const Sampling *s, ptrdiff_t sample, ptrdiff_t first, ptrdiff_t count)
{
    const REAL *grid = (const REAL *)s->grid + (sample * s->points + first) * s->dims;
    REAL *below = s->room, *part = below + BLOCK_POINTS, *weight = part + BLOCK_POINTS;
    REAL *slope = weight + 12 * BLOCK_POINTS, *rates = s->rates;
    for (int axis = 0; axis < s->dims; axis++) {
        TYPED(find_places)(s, grid, axis, count, below, part, rates + axis * BLOCK_POINTS);
        for (int tap = 0; tap < s->taps; tap++) {
            ptrdiff_t place = (ptrdiff_t)(axis * s->taps + tap) * BLOCK_POINTS;
            TYPED(find_tap)(s, axis, tap, count, below, part, s->indices + place, weight + place, slope + place);
        }
    }
    TYPED(join_taps)(s, count, s->indices, weight, slope);
}

/* Add `taps` (a constant) taps of some points, from `first` on, to the results; the first ones begin the sums. A pixel
 * outside has the weight zero and the first pixel's value, unless that is infinite or NaN: then one has to be careful. */
INLINE void TYPED(sample_taps)(const Sampling *s, const int taps, const int is_careful, int first,
                               const REAL *restrict plane, REAL *restrict to)
{
    const int32_t *restrict positions = s->positions + (ptrdiff_t)first * BLOCK_POINTS;
    const REAL *restrict weights = (const REAL *)s->weights + (ptrdiff_t)first * BLOCK_POINTS;
    ptrdiff_t count = s->count;
    for (ptrdiff_t p = 0; p < count; p++) {
        REAL sum = first ? to[p] : 0;
        for (int k = 0; k < taps; k++) {
            int32_t position = positions[k * BLOCK_POINTS + p];
            if (!is_careful)
                sum += plane[INSIDE(position)] * weights[k * BLOCK_POINTS + p];
            else if (position >= 0)
                sum += plane[position] * weights[k * BLOCK_POINTS + p];
        }
        to[p] = sum;
    }
}

/* Items are channels: sums of weighted pixels. */
MULTIVERSIONED static void TYPED(sample_channels)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Sampling *s = context;
    for (ptrdiff_t c = begin; c < end; c++) {
        const REAL *plane = (const REAL *)s->input + (s->sample * s->channels + c) * s->plane;
        REAL *to = (REAL *)s->output + (s->sample * s->channels + c) * s->points + s->first;
        int is_careful = plane[0] * 0 != 0;
        for (int k = 0; k < s->all_taps; k += s->all_taps == 1 ? 1 : 4)
            if (is_careful)
                TYPED(sample_taps)(s, s->all_taps == 1 ? 1 : 4, 1, k, plane, to);
            else if (s->all_taps == 1)
                TYPED(sample_taps)(s, 1, 0, k, plane, to);
            else
                TYPED(sample_taps)(s, 4, 0, k, plane, to);
    }
}

/* Items are channels: add the weighted gradient to the pixels. */
static void TYPED(add_channels)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Sampling *s = context;
    for (ptrdiff_t c = begin; c < end; c++) {
        REAL *plane = (REAL *)s->output + (s->sample * s->channels + c) * s->plane;
        const REAL *grad = (const REAL *)s->grad + (s->sample * s->channels + c) * s->points + s->first;
        for (int k = 0; k < s->all_taps; k++) {
            const int32_t *positions = s->positions + (ptrdiff_t)k * BLOCK_POINTS;
            const REAL *weights = (const REAL *)s->weights + (ptrdiff_t)k * BLOCK_POINTS;
            for (ptrdiff_t p = 0; p < s->count; p++)
                if (positions[p] >= 0)
                    plane[positions[p]] += grad[p] * weights[p];
        }
    }
}

/* Items are points of the block: the gradient of their coordinates, summed over channels. */
MULTIVERSIONED static void TYPED(slope_points)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Sampling *s = context;
    enum { PART = 256 };
    for (ptrdiff_t start = begin; start < end; start += PART) {
        ptrdiff_t count = end - start < PART ? end - start : PART;
        REAL totals[3][PART] = {{0}}, values[PART];
        for (int k = 0; k < s->all_taps; k++) {
            const int32_t *positions = s->positions + (ptrdiff_t)k * BLOCK_POINTS + start;
            for (ptrdiff_t p = 0; p < count; p++)
                values[p] = 0;
            for (ptrdiff_t c = 0; c < s->channels; c++) {
                const REAL *restrict plane = (const REAL *)s->input + (s->sample * s->channels + c) * s->plane;
                const REAL *restrict grad =
                    (const REAL *)s->grad + (s->sample * s->channels + c) * s->points + s->first + start;
                if (plane[0] * 0 != 0)
                    for (ptrdiff_t p = 0; p < count; p++)
                        values[p] += grad[p] * (positions[p] < 0 ? 0 : plane[positions[p]]);
                else
                    for (ptrdiff_t p = 0; p < count; p++)
                        values[p] += grad[p] * plane[INSIDE(positions[p])];
            }
            for (int axis = 0; axis < s->dims; axis++) {
                const REAL *weights =
                    (const REAL *)s->weights + ((ptrdiff_t)axis * s->all_taps + k) * BLOCK_POINTS + start;
                for (ptrdiff_t p = 0; p < count; p++)
                    totals[axis][p] += values[p] * weights[p];
            }
        }
        REAL *to = (REAL *)s->output + (s->sample * s->points + s->first + start) * s->dims;
        for (int axis = 0; axis < s->dims; axis++)
            for (ptrdiff_t p = 0; p < count; p++)
                to[p * s->dims + axis] = totals[axis][p] * ((const REAL *)s->rates)[axis * BLOCK_POINTS + start + p];
    }
}
