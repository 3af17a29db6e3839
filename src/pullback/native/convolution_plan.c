/* Plans convolutions: which taps, which vectors of results, how much is staged at a time.
 *
 * See Note [Staged convolution] in convolution.h. Sizes were chosen by measurement on a processor with 32 KiB of first
 * and 1 MiB of second cache; results do not depend on them, nor on the number of threads.
 */
#include "convolution_plan.h"

#include <stdlib.h>
#include <string.h>

#define STEPS 640                  /* taps times channels of a chunk: their weights stay in the first cache */
#define STAGED_BYTES (384 * 1024)  /* of a box: stays in the second cache */
#define UNROLLED_WINDOWS 144       /* of an unrolled row */
#define WEIGHT_VECTORS 128         /* that a sum of the weight's gradient takes before its lanes are added up */

/* Blocks are linked, so that they can be freed together. */
ptrdiff_t *allocate(Plan *plan, ptrdiff_t count)
{
    void **block = malloc(sizeof(void *) + (size_t)larger(count, 1) * sizeof(ptrdiff_t));
    if (!block)
        return NULL;
    *block = plan->memory;
    plan->memory = block;
    return (ptrdiff_t *)(block + 1);
}

void free_plan(Plan *plan)
{
    while (plan->memory) {
        void *next = *(void **)plan->memory;
        free(plan->memory);
        plan->memory = next;
    }
    free(plan->phase);
    plan->phase = NULL;
}

/* A kernel of one element and no steps: all positions are one row. */
static void make_one_row(Geometry *g)
{
    for (int d = 0; d < DIMS; d++)
        if (g->kernel[d] != 1 || g->stride[d] != 1 || g->padding[d] || g->input[d] != g->result[d])
            return;
    for (int d = 0; d < DIMS - 1; d++) {
        g->input[DIMS - 1] *= g->input[d];
        g->result[DIMS - 1] *= g->result[d];
        g->input[d] = g->result[d] = 1;
    }
}

/* The taps along one dimension that the results of one phase read. */
typedef struct {
    int count;
    int kernel[MOST_KERNEL], phase[MOST_KERNEL];
    ptrdiff_t offset[MOST_KERNEL], shift[MOST_KERNEL];
} AxisTaps;

static int phase_number(Axis *axis, int phase)
{
    for (int i = 0; i < axis->phases; i++)
        if (axis->phase[i] == phase)
            return i;
    axis->phase[axis->phases] = phase;
    return axis->phases++;
}

/* Window o reads o * stride + k * dilation - padding. */
static void find_taps(const Geometry *g, int d, Axis *axis, AxisTaps *taps)
{
    axis->stride = g->stride[d];
    axis->origin = -g->padding[d];
    axis->phases = 0;
    axis->reach = 0;
    taps->count = (int)g->kernel[d];
    for (int k = 0; k < taps->count; k++) {
        ptrdiff_t place = k * g->dilation[d];
        taps->kernel[k] = k;
        taps->phase[k] = phase_number(axis, (int)(place % axis->stride));
        taps->offset[k] = place / axis->stride;
        taps->shift[k] = place - g->padding[d];
        axis->reach = larger(axis->reach, taps->offset[k]);
    }
}

/* Result q * stride + first reads element q + (first + padding - k * dilation) / stride, where that is whole. */
static void find_transposed_taps(const Geometry *g, int d, ptrdiff_t first, AxisTaps *taps)
{
    taps->count = 0;
    for (int k = 0; k < g->kernel[d]; k++) {
        ptrdiff_t place = first + g->padding[d] - k * g->dilation[d];
        if (place % g->stride[d])
            continue;
        taps->kernel[taps->count] = k;
        taps->phase[taps->count] = 0;
        taps->shift[taps->count] = place / g->stride[d];
        taps->offset[taps->count++] = place / g->stride[d];
    }
}

static void plan_transposed_axis(const Geometry *g, int d, Axis *axis)
{
    AxisTaps taps;
    ptrdiff_t least = 0, most = 0;
    int seen = 0;
    for (ptrdiff_t first = 0; first < smaller(g->stride[d], g->result[d]); first++) {
        find_transposed_taps(g, d, first, &taps);
        for (int k = 0; k < taps.count; k++) {
            least = seen ? smaller(least, taps.offset[k]) : taps.offset[k];
            most = seen ? larger(most, taps.offset[k]) : taps.offset[k];
            seen = 1;
        }
    }
    *axis = (Axis){.stride = 1, .origin = least, .reach = most - least, .phases = 1};
}

/* The taps of all dimensions together; offsets are those of the first channel. */
static int combine_taps(Plan *plan, ResultPhase *phase, const AxisTaps taps[DIMS])
{
    const ptrdiff_t *staged = plan->staged, *kernel = plan->geometry.kernel;
    ptrdiff_t most = (ptrdiff_t)taps[0].count * taps[1].count * taps[2].count, volume = staged[0] * staged[1] * staged[2];
    phase->kernel_places = allocate(plan, most);
    phase->offsets = allocate(plan, most * plan->chunk);
    phase->shifts = (ptrdiff_t(*)[DIMS])allocate(plan, most * DIMS);
    if (!phase->kernel_places || !phase->offsets || !phase->shifts)
        return 0;
    phase->taps = 0;
    for (int z = 0; z < taps[0].count; z++)
        for (int y = 0; y < taps[1].count; y++)
            for (int x = 0; x < taps[2].count; x++) {
                ptrdiff_t number = (taps[0].phase[z] * plan->axes[1].phases + taps[1].phase[y]) *
                                       plan->axes[2].phases + taps[2].phase[x];
                phase->shifts[phase->taps][0] = taps[0].shift[z];
                phase->shifts[phase->taps][1] = taps[1].shift[y];
                phase->shifts[phase->taps][2] = taps[2].shift[x];
                phase->kernel_places[phase->taps] =
                    (taps[0].kernel[z] * kernel[1] + taps[1].kernel[y]) * kernel[2] + taps[2].kernel[x];
                phase->offsets[phase->taps++] =
                    number * volume + (taps[0].offset[z] * staged[1] + taps[1].offset[y]) * staged[2] +
                    taps[2].offset[x];
            }
    if (plan->unrolled) {
        for (ptrdiff_t i = 0; i < phase->taps * plan->chunk; i++)
            phase->offsets[i] = i * plan->row;
        return 1;
    }
    for (ptrdiff_t channel = 1; channel < plan->chunk; channel++)
        for (ptrdiff_t tap = 0; tap < phase->taps; tap++)
            phase->offsets[channel * phase->taps + tap] = phase->offsets[tap] + channel * plan->plane;
    return 1;
}

static int find_all_taps(Plan *plan)
{
    const Geometry *g = &plan->geometry;
    AxisTaps taps[DIMS];
    for (int p = 0; p < plan->phases; p++) {
        ResultPhase *phase = &plan->phase[p];
        for (int d = 0; d < DIMS; d++) {
            if (g->transposed) {
                find_transposed_taps(g, d, phase->first[d], &taps[d]);
                for (int k = 0; k < taps[d].count; k++)
                    taps[d].offset[k] -= plan->axes[d].origin;
            } else
                find_taps(g, d, &plan->axes[d], &taps[d]);
        }
        if (!combine_taps(plan, phase, taps))
            return 0;
    }
    return 1;
}

/* Which results read the same taps: all, or of a transposed convolution those that are a stride apart. */
static int find_phases(Plan *plan)
{
    const Geometry *g = &plan->geometry;
    ptrdiff_t number[DIMS] = {1, 1, 1};
    for (int d = 0; d < DIMS; d++) {
        plan->spread[d] = g->transposed ? g->stride[d] : 1;
        number[d] = smaller(plan->spread[d], g->result[d]);
    }
    if (number[0] > MOST_PHASES || number[1] > MOST_PHASES || number[2] > MOST_PHASES ||
        number[0] * number[1] * number[2] > MOST_PHASES)
        return 0;
    plan->phases = (int)(number[0] * number[1] * number[2]);
    plan->phase = calloc((size_t)plan->phases, sizeof(ResultPhase));
    if (!plan->phase)
        return 0;
    for (int p = 0; p < plan->phases; p++) {
        ptrdiff_t first[DIMS] = {p / (number[1] * number[2]), p / number[2] % number[1], p % number[2]};
        for (int d = 0; d < DIMS; d++) {
            plan->phase[p].first[d] = first[d];
            plan->phase[p].counts[d] = divide_up(g->result[d] - first[d], plan->spread[d]);
        }
    }
    return 1;
}

/* Choose rows or flat; 0 where much of each vector would be dropped and unrolling pays. */
static int choose_layout(Plan *plan)
{
    const ResultPhase *phase = &plan->phase[0];
    ptrdiff_t windows[DIMS] = {phase->counts[0], phase->counts[1], phase->counts[2]};
    windows[plan->split] = plan->box;
    /* Boxes may be one element smaller than the largest. */
    ptrdiff_t shortest = plan->split == 2 && plan->boxes > 1 ? windows[2] - 1 : windows[2];
    int may_be_direct = plan->spread[2] == 1 && shortest >= plan->lanes;
    ptrdiff_t rows = row_vectors(plan, windows), flat = flat_vectors(plan, windows);
    /* Copying a vector out of the scratch plane costs as much as about eight steps of a tile. */
    const Geometry *g = &plan->geometry;
    ptrdiff_t steps = g->channels * g->kernel[0] * g->kernel[1] * g->kernel[2];
    plan->flat = may_be_direct ? flat * (steps + 8) < rows * steps : flat <= rows;
    plan->direct = may_be_direct && !plan->flat;
    plan->row_step = plan->flat ? plan->staged[2] : width_of(plan, windows) * plan->lanes;
    plan->slab_step = plan->flat ? divide_up((windows[1] - 1) * plan->staged[2] + windows[2], plan->lanes) * plan->lanes
                                 : windows[1] * plan->row_step;
    plan->scratch_plane = windows[0] * plan->slab_step;
    double useful = (double)windows[0] * windows[1] * windows[2] / ((double)plan->lanes * (plan->flat ? flat : rows));
    /* Unrolling a vector costs as much as about twenty output channels. */
    return useful * (g->out_channels + 20) > g->out_channels || plan->boxes > 1;
}

static int needs_no_staging(const Plan *plan)
{
    for (int d = 0; d < DIMS; d++)
        if (plan->axes[d].stride != 1 || plan->axes[d].origin || plan->axes[d].phases != 1 ||
            plan->phase[0].counts[d] + plan->axes[d].reach > plan->geometry.input[d])
            return 0;
    return plan->phases == 1;
}

/* The first dimension that has several windows is divided into boxes of about `box` windows. */
static void divide_into_boxes(Plan *plan, ptrdiff_t elements, ptrdiff_t least_boxes)
{
    const ptrdiff_t *counts = plan->phase[0].counts;
    plan->split = counts[0] > 1 ? 0 : counts[1] > 1 ? 1 : 2;
    const Axis *axis = &plan->axes[plan->split];
    ptrdiff_t count = counts[plan->split], unit = axis->phases;
    for (int d = 0; d < DIMS; d++)
        if (d != plan->split)
            unit *= (counts[d] + plan->axes[d].reach) * plan->axes[d].phases;
    ptrdiff_t least = larger(4 * axis->reach, plan->split == 2 ? 16 * plan->lanes : 1);
    ptrdiff_t box = larger(elements / unit - axis->reach, least);
    ptrdiff_t most_boxes = larger(1, count / larger(least / 4, plan->split == 2 ? 2 * plan->lanes : 1));
    plan->boxes = larger(divide_up(count, box), smaller(least_boxes, most_boxes));
    plan->box = divide_up(count, plan->boxes);
}

static void set_staged_sizes(Plan *plan)
{
    plan->plane = 1;
    for (int d = 0; d < DIMS; d++) {
        ptrdiff_t windows = d == plan->split ? plan->box : plan->phase[0].counts[d];
        plan->staged[d] = windows + plan->axes[d].reach;
        plan->plane *= plan->staged[d] * plan->axes[d].phases;
    }
}

/* Vectors along rows read nothing beyond the input. */
static void use_input_in_place(Plan *plan)
{
    const ptrdiff_t *input = plan->geometry.input;
    plan->in_place = 1;
    plan->plane = input[0] * input[1] * input[2];
    memcpy(plan->staged, input, sizeof plan->staged);
}

static int start_plan(Plan *plan, const Geometry *geometry, int lanes, int itemsize)
{
    memset(plan, 0, sizeof *plan);
    plan->geometry = *geometry;
    plan->lanes = lanes;
    plan->itemsize = itemsize;
    Geometry *g = &plan->geometry;
    make_one_row(g);
    AxisTaps taps;
    for (int d = 0; d < DIMS; d++) {
        if (g->kernel[d] > MOST_KERNEL)
            return 0;
        if (g->transposed)
            plan_transposed_axis(g, d, &plan->axes[d]);
        else
            find_taps(g, d, &plan->axes[d], &taps);
    }
    return find_phases(plan);
}

/* Unroll so many samples that vectors are full and weights are read seldom. */
static int plan_unrolled(Plan *plan, ptrdiff_t threads)
{
    const Geometry *g = &plan->geometry;
    ptrdiff_t taps = g->kernel[0] * g->kernel[1] * g->kernel[2], windows = windows_in(&plan->phase[0]);
    ptrdiff_t elements = STAGED_BYTES / plan->itemsize, wanted = plan->is_weight_gradient ? 1024 : UNROLLED_WINDOWS;
    ptrdiff_t most = plan->is_weight_gradient ? g->batch : divide_up(g->batch, threads);
    plan->unrolled = 1;
    plan->flat = plan->direct = 0;
    plan->samples = larger(1, smaller(most, wanted / windows));
    plan->row = (divide_up(plan->samples * windows, plan->lanes) + 1) * plan->lanes; /* rows are copied by vectors */
    plan->scratch_plane = plan->row;
    if (plan->is_weight_gradient)
        plan->chunk = larger(1, smaller(g->channels, elements / (plan->row * taps)));
    plan->plane = plan->row * taps;
    for (int p = 0; p < plan->phases; p++)
        if (!list_unrolled_vectors(plan, &plan->phase[p]))
            return 0;
    return find_all_taps(plan);
}

/* What is left when the boxes are known. */
static int finish_plan(Plan *plan, int threads)
{
    set_staged_sizes(plan);
    if (!choose_layout(plan))
        return plan_unrolled(plan, threads);
    if (plan->direct && needs_no_staging(plan))
        use_input_in_place(plan);
    for (int p = 0; p < plan->phases; p++)
        if (!list_vectors(plan, &plan->phase[p]))
            return 0;
    return find_all_taps(plan);
}

int plan_convolution(Plan *plan, const Geometry *geometry, int lanes, int itemsize, int threads)
{
    if (!start_plan(plan, geometry, lanes, itemsize))
        return 0;
    const Geometry *g = &plan->geometry;
    ptrdiff_t taps = g->kernel[0] * g->kernel[1] * g->kernel[2];
    plan->chunk = larger(1, smaller(g->channels, STEPS / taps));
    plan->chunk = divide_up(g->channels, divide_up(g->channels, plan->chunk));
    divide_into_boxes(plan, STAGED_BYTES / itemsize / plan->chunk, divide_up(threads, g->batch * g->groups));
    return finish_plan(plan, threads);
}

int plan_weight_gradient(Plan *plan, const Geometry *geometry, int lanes, int itemsize)
{
    if (!start_plan(plan, geometry, lanes, itemsize))
        return 0;
    const Geometry *g = &plan->geometry;
    ptrdiff_t elements = STAGED_BYTES / itemsize;
    plan->is_weight_gradient = 1;
    divide_into_boxes(plan, elements / 4, 1);
    set_staged_sizes(plan);
    ptrdiff_t vectors = divide_up(plan->staged[0] * plan->staged[1] * plan->staged[2], lanes);
    plan->samples = plan->boxes > 1 ? 1 : smaller(g->batch, divide_up(WEIGHT_VECTORS, vectors));
    plan->chunk = larger(1, smaller(g->channels, elements / (plan->plane * plan->samples)));
    if (plan->chunk == g->channels && plan->boxes == 1)
        plan->samples = larger(1, smaller(g->batch, elements / (plan->plane * g->channels)));
    return finish_plan(plan, 1);
}
