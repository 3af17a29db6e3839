/* Lists the vectors of results of a planned convolution: see Note [Staged convolution] in convolution.h. */
#include "convolution_plan.h"

ptrdiff_t width_of(const Plan *plan, const ptrdiff_t *windows) { return divide_up(windows[2], plan->lanes); }

ptrdiff_t flat_vectors(const Plan *plan, const ptrdiff_t *windows)
{
    return windows[0] * divide_up((windows[1] - 1) * plan->staged[2] + windows[2], plan->lanes);
}

ptrdiff_t row_vectors(const Plan *plan, const ptrdiff_t *windows)
{
    return windows[0] * windows[1] * width_of(plan, windows);
}

static void add_vector(Vectors *vectors, ptrdiff_t start, ptrdiff_t place, ptrdiff_t lanes)
{
    vectors->starts[vectors->count] = start;
    vectors->places[vectors->count] = place;
    vectors->lanes[vectors->count++] = lanes;
}

static ptrdiff_t first_lanes(ptrdiff_t count) { return ((ptrdiff_t)1 << count) - 1; }

/* Vectors along rows; the last of a row overlaps the one before it where results go straight to their plane. */
static void list_row_vectors(const Plan *plan, const ptrdiff_t *windows, Vectors *vectors)
{
    const ptrdiff_t *result = plan->geometry.result, *spread = plan->spread;
    for (ptrdiff_t row = 0; row < windows[0] * windows[1]; row++) {
        ptrdiff_t z = row / windows[1], y = row % windows[1];
        ptrdiff_t start = (z * plan->staged[1] + y) * plan->staged[2];
        ptrdiff_t place = plan->direct ? (z * spread[0] * result[1] + y * spread[1]) * result[2]
                                       : z * plan->slab_step + y * plan->row_step;
        for (ptrdiff_t x = 0; x < windows[2]; x += plan->lanes) {
            ptrdiff_t from = plan->direct ? smaller(x, windows[2] - plan->lanes) : x;
            ptrdiff_t lanes = first_lanes(smaller(plan->lanes, windows[2] - x)) << (x - from);
            add_vector(vectors, start + from, place + from, lanes);
        }
    }
}

/* Vectors along the staged rows of each slab; some lanes lie between the rows. */
static void list_flat_vectors(const Plan *plan, const ptrdiff_t *windows, Vectors *vectors)
{
    ptrdiff_t pitch = plan->staged[2];
    for (ptrdiff_t z = 0; z < windows[0]; z++)
        for (ptrdiff_t i = 0; i < (windows[1] - 1) * pitch + windows[2]; i += plan->lanes) {
            ptrdiff_t lanes = 0;
            for (ptrdiff_t lane = 0, x = i % pitch, y = i / pitch; lane < plan->lanes; lane++) {
                lanes |= (ptrdiff_t)(x < windows[2] && y < windows[1]) << lane;
                if (++x == pitch) {
                    x = 0;
                    y++;
                }
            }
            add_vector(vectors, z * plan->staged[1] * pitch + i, z * plan->slab_step + i, lanes);
        }
}

/* Put the vectors first in which every lane counts. */
static int sort_vectors(Plan *plan, Vectors *vectors)
{
    ptrdiff_t count = vectors->count, all = first_lanes(plan->lanes);
    Vectors sorted = {.starts = allocate(plan, 3 * count)};
    if (!sorted.starts)
        return 0;
    sorted.places = sorted.starts + count;
    sorted.lanes = sorted.places + count;
    for (int whole = 1; whole >= 0; whole--) {
        for (ptrdiff_t v = 0; v < count; v++)
            if ((vectors->lanes[v] == all) == whole)
                add_vector(&sorted, vectors->starts[v], vectors->places[v], vectors->lanes[v]);
        if (whole)
            sorted.whole = sorted.count;
    }
    *vectors = sorted;
    return 1;
}

/* The vectors of the part of a box that a phase has, for each size that occurs. */
int list_vectors(Plan *plan, ResultPhase *phase)
{
    for (int size = 0; size < BOX_SIZES; size++) {
        ptrdiff_t windows[DIMS] = {phase->counts[0], phase->counts[1], phase->counts[2]};
        windows[plan->split] = plan->box - size;
        if (windows[plan->split] <= 0 || (size && plan->boxes == 1 && plan->phases == 1))
            continue;
        Vectors *vectors = &phase->vectors[size];
        ptrdiff_t count = plan->flat ? flat_vectors(plan, windows) : row_vectors(plan, windows);
        vectors->starts = allocate(plan, 3 * count);
        if (!vectors->starts)
            return 0;
        vectors->places = vectors->starts + count;
        vectors->lanes = vectors->places + count;
        if (plan->flat)
            list_flat_vectors(plan, windows, vectors);
        else
            list_row_vectors(plan, windows, vectors);
        if (plan->is_weight_gradient && !sort_vectors(plan, vectors))
            return 0;
    }
    return 1;
}

/* Vectors take neighbours of unrolled rows of the windows of so many samples; the last ones may be fewer. */
int list_unrolled_vectors(Plan *plan, ResultPhase *phase)
{
    ptrdiff_t samples[BOX_SIZES] = {plan->samples, plan->geometry.batch % plan->samples};
    for (int size = 0; size < BOX_SIZES; size++) {
        ptrdiff_t windows = samples[size] * windows_in(phase), count = divide_up(windows, plan->lanes);
        Vectors *vectors = &phase->vectors[size];
        vectors->starts = allocate(plan, 3 * count);
        if (!vectors->starts)
            return 0;
        vectors->places = vectors->starts + count;
        vectors->lanes = vectors->places + count;
        for (ptrdiff_t i = 0; i < windows; i += plan->lanes)
            add_vector(vectors, i, i, first_lanes(smaller(plan->lanes, windows - i)));
        vectors->whole = windows / plan->lanes;
    }
    return 1;
}
