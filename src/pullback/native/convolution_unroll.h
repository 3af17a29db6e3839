/* Unrolls small planes for convolutions, for one dtype and one instruction set; a part of convolution_loops.h. */

/* The even and the odd elements of a row, side by side each. Whole vectors are written. */
INLINE void NAME(part_row)(const REAL *row, ptrdiff_t count, REAL *even, REAL *odd)
{
    for (ptrdiff_t t = 0; t < count; t += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            even[t + lane] = row[2 * (t + lane)];
            odd[t + lane] = row[2 * (t + lane) + 1];
        }
}

INLINE NAME(Mask) NAME(first_lanes)(ptrdiff_t count)
{
    NAME(Mask) mask;
    for (int lane = 0; lane < LANES; lane++)
        ((BITS *)&mask)[lane] = -(BITS)(lane < count);
    return mask;
}

/* Copy what each tap of some channels reads for all windows of some samples, each into a row. */
static void NAME(unroll_rows)(const Plan *plan, const ResultPhase *phase, const REAL *input, ptrdiff_t channels,
                         ptrdiff_t samples, const REAL *end, REAL *staged)
{
    const Geometry *g = &plan->geometry;
    const ptrdiff_t *size = g->input, *counts = phase->counts;
    ptrdiff_t plane = size[0] * size[1] * size[2], sample_step = g->groups * g->channels * plane;
    for (ptrdiff_t c = 0; c < channels; c++)
        for (ptrdiff_t tap = 0; tap < phase->taps; tap++, staged += plan->row) {
            const ptrdiff_t *shift = phase->shifts[tap];
            REAL *to = staged;
            for (ptrdiff_t n = 0; n < samples; n++)
                for (ptrdiff_t z = 0; z < counts[0]; z++)
                    for (ptrdiff_t y = 0; y < counts[1]; y++, to += counts[2]) {
                        ptrdiff_t from_z = z * plan->axes[0].stride + shift[0];
                        ptrdiff_t from_y = y * plan->axes[1].stride + shift[1];
                        if (from_z < 0 || from_z >= size[0] || from_y < 0 || from_y >= size[1])
                            NAME(clear_vectors)(to, counts[2]);
                        else
                            NAME(stage_row)(input + n * sample_step + c * plane + (from_z * size[1] + from_y) * size[2],
                                            size[2], shift[2], plan->axes[2].stride, counts[2], end, to);
                    }
        }
}

/* A plane of at most MOST_NARROW rows of at most LANES elements, with up to LANES of padding on each side. */
#define MOST_NARROW 32
#define NARROW_ROW (4 * LANES)

typedef struct {
    REAL rows[3 * MOST_NARROW][NARROW_ROW];  /* MOST_NARROW before the plane, as many after it */
    REAL parted[3 * MOST_NARROW][2][2 * LANES]; /* the even and the odd elements, where the stride is 2 */
} NAME(NarrowPlane);

/* Whether all that windows read fits into a narrow plane. */
static int NAME(fits_narrow)(const Plan *plan, const ResultPhase *phase)
{
    const Geometry *g = &plan->geometry;
    const Axis *axes = plan->axes;
    if (g->input[0] != 1 || phase->counts[0] != 1 || g->input[1] > MOST_NARROW || g->input[2] > LANES ||
        axes[2].stride > 2 || phase->counts[2] > LANES)
        return 0;
    for (ptrdiff_t tap = 0; tap < phase->taps; tap++) {
        const ptrdiff_t *shift = phase->shifts[tap];
        if (shift[0] || shift[1] < -MOST_NARROW || shift[2] < -LANES ||
            shift[1] + (phase->counts[1] - 1) * axes[1].stride >= 2 * MOST_NARROW ||
            shift[2] + (phase->counts[2] - 1) * axes[2].stride >= 2 * LANES)
            return 0;
    }
    return 1;
}

/* The taps of one channel of one sample; rows of windows are copied by whole vectors, later ones over what is too much. */
INLINE void NAME(unroll_narrow_plane)(const Plan *plan, const ResultPhase *phase, const NAME(NarrowPlane) *plane, REAL *to)
{
    ptrdiff_t rows = phase->counts[1], width = phase->counts[2], stride = plan->axes[1].stride;
    int is_parted = plan->axes[2].stride == 2;
    for (ptrdiff_t tap = 0; tap < phase->taps; tap++, to += plan->row) {
        ptrdiff_t y = phase->shifts[tap][1] + MOST_NARROW, x = phase->shifts[tap][2] + LANES;
        for (ptrdiff_t i = 0; i < rows; i++, y += stride)
            STORE(to + i * width, is_parted ? LOAD(plane->parted[y][x % 2] + x / 2) : LOAD(plane->rows[y] + x));
    }
}

static void NAME(unroll_narrow)(const Plan *plan, const ResultPhase *phase, const REAL *input, ptrdiff_t channels,
                                ptrdiff_t samples, const REAL *end, NAME(NarrowPlane) *plane, REAL *staged)
{
    const Geometry *g = &plan->geometry;
    ptrdiff_t height = g->input[1], width = g->input[2], windows = windows_in(phase);
    NAME(Mask) inside = NAME(first_lanes)(width);
    int is_parted = plan->axes[2].stride == 2;
    memset(plane, 0, sizeof *plane);
    for (ptrdiff_t c = 0; c < channels; c++, staged += phase->taps * plan->row)
        for (ptrdiff_t n = 0; n < samples; n++) {
            const REAL *from = input + (n * g->groups * g->channels + c) * height * width;
            for (ptrdiff_t y = 0; y < height; y++, from += width) {
                REAL *row = plane->rows[MOST_NARROW + y];
                if (end - from >= LANES)
                    STORE(row + LANES, MASKED(LOAD(from), inside));
                else
                    memcpy(row + LANES, from, (size_t)width * sizeof(REAL));
            }
            for (ptrdiff_t y = MOST_NARROW; y < MOST_NARROW + height && is_parted; y++)
                NAME(part_row)(plane->rows[y], 2 * LANES, plane->parted[y][0], plane->parted[y][1]);
            NAME(unroll_narrow_plane)(plan, phase, plane, staged + n * windows);
        }
}

/* Copy what each tap of some channels reads for all windows of some samples, each into a row. */
static void NAME(unroll)(const Plan *plan, const ResultPhase *phase, const REAL *input, ptrdiff_t channels,
                         ptrdiff_t samples, const REAL *end, REAL *staged)
{
    if (NAME(fits_narrow)(plan, phase)) {
        NAME(NarrowPlane) plane;
        NAME(unroll_narrow)(plan, phase, input, channels, samples, end, &plane, staged);
    } else
        NAME(unroll_rows)(plan, phase, input, channels, samples, end, staged);
}
