/* Convolutions for one dtype and one instruction set: staging, packing, and the walk over tiles.
 *
 * See Note [Staged convolution] in convolution.h; to be included as convolution_tiles.h says.
 */
#include "convolution_tiles.h"

/* Copy by whole vectors: short rows are most rows, and memcpy takes long to begin. Up to a vector too much is read and
 * written. */
INLINE void NAME(copy_vectors)(REAL *to, const REAL *from, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i += LANES)
        STORE(to + i, LOAD(from + i));
}

INLINE void NAME(clear_vectors)(REAL *to, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i += LANES)
        STORE(to + i, (Vector){0});
}

INLINE const REAL *NAME(input_end)(const Geometry *g, const void *input)
{
    return (const REAL *)input + g->batch * g->groups * g->channels * g->input[0] * g->input[1] * g->input[2];
}

/* Copy one row of the input into the buffer: `length` elements, from the input's element `base` on. The input ends at
 * `end`. What is written too much belongs to the next row, which comes later. */
INLINE void NAME(stage_row)(const REAL *row, ptrdiff_t size, ptrdiff_t base, ptrdiff_t stride, ptrdiff_t length,
                            const REAL *end, REAL *staged)
{
    ptrdiff_t before = base < 0 ? (-base + stride - 1) / stride : 0;
    ptrdiff_t after = base < size ? (size - base + stride - 1) / stride : 0;
    before = before < length ? before : length;
    after = after < before ? before : after < length ? after : length;
    for (ptrdiff_t i = 0; i < before; i++)
        staged[i] = 0;
    const REAL *from = row + base + before;
    if (stride == 1 && end - from >= after - before + LANES)
        NAME(copy_vectors)(staged + before, from, after - before);
    else if (stride == 2) /* a constant stride is vectorised */
        for (ptrdiff_t i = before; i < after; i++)
            staged[i] = row[base + i * 2];
    else
        for (ptrdiff_t i = before; i < after; i++)
            staged[i] = row[base + i * stride];
    for (ptrdiff_t i = after; i < length; i++)
        staged[i] = 0;
}

/* Copy what the windows of a box read of one channel, `phase` saying where the stride begins in each dimension. */
static void NAME(stage_phase)(const Plan *plan, const REAL *input, const ptrdiff_t *begin, const ptrdiff_t *windows,
                              const int *phase, const REAL *end, REAL *staged)
{
    const Axis *axes = plan->axes;
    const ptrdiff_t *size = plan->geometry.input;
    ptrdiff_t base[DIMS], length[DIMS];
    for (int d = 0; d < DIMS; d++) {
        base[d] = begin[d] * axes[d].stride + axes[d].origin + phase[d];
        length[d] = windows[d] + axes[d].reach;
    }
    for (ptrdiff_t z = 0; z < length[0]; z++) {
        ptrdiff_t from_z = base[0] + z * axes[0].stride;
        for (ptrdiff_t y = 0; y < length[1]; y++) {
            ptrdiff_t from_y = base[1] + y * axes[1].stride;
            REAL *row = staged + (z * plan->staged[1] + y) * plan->staged[2];
            if (from_z < 0 || from_z >= size[0] || from_y < 0 || from_y >= size[1])
                NAME(clear_vectors)(row, length[2]);
            else
                NAME(stage_row)(input + (from_z * size[1] + from_y) * size[2], size[2], base[2], axes[2].stride,
                                length[2], end, row);
        }
    }
}

static void NAME(stage)(const Plan *plan, const REAL *input, ptrdiff_t channels, const ptrdiff_t *begin,
                        const ptrdiff_t *windows, const REAL *end, REAL *staged)
{
    const ptrdiff_t *size = plan->geometry.input;
    const Axis *axes = plan->axes;
    ptrdiff_t step = plan->staged[0] * plan->staged[1] * plan->staged[2];
    for (ptrdiff_t c = 0; c < channels; c++, input += size[0] * size[1] * size[2])
        for (int z = 0; z < axes[0].phases; z++)
            for (int y = 0; y < axes[1].phases; y++)
                for (int x = 0; x < axes[2].phases; x++, staged += step) {
                    int phase[DIMS] = {axes[0].phase[z], axes[1].phase[y], axes[2].phase[x]};
                    NAME(stage_phase)(plan, input, begin, windows, phase, end, staged);
                }
}

#include "convolution_unroll.h"

/* Output channels are taken in blocks of about one size, as many as a tile has at most. */
INLINE ptrdiff_t NAME(block_begin)(ptrdiff_t channels, ptrdiff_t most, ptrdiff_t block)
{
    return block * channels / ((channels + most - 1) / most);
}

/* Order the weights as tiles read them: phase, block of output channels, channel, tap, output channel. */
static void NAME(pack)(const Plan *plan, const void *weights, void *target)
{
    const Geometry *g = &plan->geometry;
    ptrdiff_t size = g->kernel[0] * g->kernel[1] * g->kernel[2], out = g->out_channels;
    ptrdiff_t in_step = g->transposed ? out * size : size, out_step = g->transposed ? size : g->channels * size;
    for (ptrdiff_t group = 0; group < g->groups; group++) {
        const REAL *weight = (const REAL *)weights + group * out * g->channels * size;
        REAL *packed = (REAL *)target + group * out * g->channels * size;
        for (int p = 0; p < plan->phases; p++) {
            const ResultPhase *phase = &plan->phase[p];
            for (ptrdiff_t block = 0, begin = 0; begin < out; block++) {
                ptrdiff_t end = NAME(block_begin)(out, MOST_CHANNELS, block + 1);
                for (ptrdiff_t c = 0; c < g->channels; c++)
                    for (ptrdiff_t tap = 0; tap < phase->taps; tap++)
                        for (ptrdiff_t o = begin; o < end; o++)
                            *packed++ = weight[o * out_step + c * in_step + phase->kernel_places[tap]];
                begin = end;
            }
        }
    }
}

/* The buffers of one thread. */
typedef struct {
    void *memory;
    REAL *staged, *scratch, *partial;
} NAME(Room);

INLINE REAL *NAME(carve)(char **free, ptrdiff_t count)
{
    REAL *part = (REAL *)*free;
    *free += (count * (ptrdiff_t)sizeof(REAL) + 63) / 64 * 64;
    return part;
}

static int NAME(make_room)(ptrdiff_t staged, ptrdiff_t scratch, ptrdiff_t partial, NAME(Room) *room)
{
    staged += LANES; /* the last vector of a flat plane reads beyond it */
    scratch += LANES;
    size_t bytes = (size_t)(staged + scratch + partial) * sizeof(REAL) + 4 * 64;
    room->memory = malloc(bytes);
    if (!room->memory)
        return 0;
    char *free = (char *)(((uintptr_t)room->memory + 63) / 64 * 64);
    room->staged = NAME(carve)(&free, staged);
    room->scratch = NAME(carve)(&free, scratch);
    room->partial = NAME(carve)(&free, partial);
    memset(room->staged + staged - LANES, 0, LANES * sizeof(REAL));
    return 1;
}

/* Where one call's inner loops are: which sample, group, box and chunk of channels. */
typedef struct {
    ptrdiff_t begin[DIMS], windows[DIMS]; /* of the box */
    const REAL *input;                    /* staged, or as it is */
    ptrdiff_t channel, channels;          /* of the chunk */
    const REAL *weight, *bias;            /* of the group's phase */
    REAL *result;                         /* of the sample's group */
    REAL *partial;
} NAME(Position);

/* Copy the results from the scratch planes to where they belong. */
static void NAME(scatter)(const Plan *plan, const ResultPhase *phase, const NAME(Position) *at, const ptrdiff_t *windows,
                          const REAL *scratch)
{
    const ptrdiff_t *size = plan->geometry.result, *spread = plan->spread;
    REAL *result = at->result;
    for (ptrdiff_t c = 0; c < plan->geometry.out_channels; c++, scratch += plan->scratch_plane, result += size[0] * size[1] * size[2])
        for (ptrdiff_t z = 0; z < windows[0]; z++)
            for (ptrdiff_t y = 0; y < windows[1]; y++) {
                const REAL *from = scratch + z * plan->slab_step + y * plan->row_step;
                ptrdiff_t to_z = (at->begin[0] + z) * spread[0] + phase->first[0];
                ptrdiff_t to_y = (at->begin[1] + y) * spread[1] + phase->first[1];
                REAL *to = result + (to_z * size[1] + to_y) * size[2] + at->begin[2] * spread[2] + phase->first[2];
                int has_room = result + size[0] * size[1] * size[2] - to >= windows[2] + LANES;
                if (spread[2] == 1 && has_room && plan->boxes * plan->phases == 1) /* the next rows come later */
                    NAME(copy_vectors)(to, from, windows[2]);
                else if (spread[2] == 1)
                    memcpy(to, from, (size_t)windows[2] * sizeof(REAL));
                else
                    for (ptrdiff_t x = 0; x < windows[2]; x++)
                        to[x * spread[2]] = from[x];
            }
}

/* All output channels of a few vectors of one phase: what they read of the input stays in the first cache. */
static void NAME(convolve_vectors)(const Plan *plan, const ResultPhase *phase, const NAME(Position) *at,
                                   NAME(Tile) tile, int vectors)
{
    const Geometry *g = &plan->geometry;
    REAL *result = tile.result;
    for (ptrdiff_t block = 0, begin = 0; begin < g->out_channels; block++) {
        ptrdiff_t end = NAME(block_begin)(g->out_channels, MOST_CHANNELS, block + 1), channels = end - begin;
        tile.weight = at->weight + (begin * g->channels + at->channel * channels) * phase->taps;
        tile.bias = at->bias ? at->bias + begin : NULL;
        tile.result = result + begin * tile.channel_step;
        NAME(tiles)[channels][vectors](&tile);
        tile.partial += channels * vectors * LANES;
        begin = end;
    }
}

/* All results of a phase: of a box and a chunk. */
static void NAME(convolve_tiles)(const Plan *plan, const ResultPhase *phase, const NAME(Position) *at, NAME(Tile) tile,
                                 const Vectors *vectors)
{
    const Geometry *g = &plan->geometry;
    int block = (int)NAME(block_begin)(g->out_channels, MOST_CHANNELS, 1);
    int largest = block < g->out_channels && block < MOST_CHANNELS ? block + 1 : block;
    for (ptrdiff_t v = 0; v < vectors->count;) {
        int next = NAME(next_vectors)(largest, vectors->count - v);
        tile.starts = vectors->starts + v;
        tile.places = vectors->places + v;
        NAME(convolve_vectors)(plan, phase, at, tile, next);
        tile.partial += g->out_channels * next * LANES;
        v += next;
    }
}

static void NAME(convolve_phase)(const Plan *plan, const ResultPhase *phase, const NAME(Position) *at, REAL *scratch)
{
    const Geometry *g = &plan->geometry;
    ptrdiff_t windows[DIMS], plane = g->result[0] * g->result[1] * g->result[2];
    for (int d = 0; d < DIMS; d++) {
        ptrdiff_t rest = phase->counts[d] - at->begin[d];
        windows[d] = at->windows[d] < rest ? at->windows[d] : rest;
    }
    if (windows[plan->split] <= 0)
        return;
    const Vectors *vectors = vectors_of(plan, phase, windows[plan->split]);
    ptrdiff_t origin = ((at->begin[0] * plan->spread[0] + phase->first[0]) * g->result[1] +
                        at->begin[1] * plan->spread[1] + phase->first[1]) * g->result[2] + at->begin[2];
    NAME(Tile) tile = {
        .input = at->input,
        .offsets = phase->offsets,
        .steps = at->channels * phase->taps,
        .partial = at->partial,
        .is_first = at->channel == 0,
        .is_last = at->channel + at->channels == g->channels,
        .result = plan->direct ? at->result + origin : scratch,
        .channel_step = plan->direct ? plane : plan->scratch_plane,
    };
    NAME(convolve_tiles)(plan, phase, at, tile, vectors);
    if (!plan->direct && tile.is_last)
        NAME(scatter)(plan, phase, at, windows, scratch);
}

/* One box of one group of one sample. */
static void NAME(convolve_item)(const ConvolutionCall *call, ptrdiff_t item, const NAME(Room) *room)
{
    const Plan *plan = call->plan;
    const Geometry *g = &plan->geometry;
    ptrdiff_t box = item % plan->boxes, sample_group = item / plan->boxes, group = sample_group % g->groups;
    ptrdiff_t in_plane = g->input[0] * g->input[1] * g->input[2], kernel = g->kernel[0] * g->kernel[1] * g->kernel[2];
    NAME(Position) at = {.windows = {plan->phase[0].counts[0], plan->phase[0].counts[1], plan->phase[0].counts[2]}};
    at.begin[plan->split] = box_begin(plan, box);
    at.windows[plan->split] = box_begin(plan, box + 1) - at.begin[plan->split];
    at.bias = call->bias ? (const REAL *)call->bias + group * g->out_channels : NULL;
    at.result = (REAL *)call->result +
                sample_group * g->out_channels * g->result[0] * g->result[1] * g->result[2];
    const REAL *input = (const REAL *)call->input + sample_group * g->channels * in_plane;
    for (at.channel = 0; at.channel < g->channels; at.channel += plan->chunk) {
        ptrdiff_t rest = g->channels - at.channel;
        at.channels = rest < plan->chunk ? rest : plan->chunk;
        const REAL *part = input + at.channel * in_plane;
        if (plan->in_place)
            at.input = part + (at.begin[0] * g->input[1] + at.begin[1]) * g->input[2] + at.begin[2];
        else {
            NAME(stage)(plan, part, at.channels, at.begin, at.windows, NAME(input_end)(g, call->input), room->staged);
            at.input = room->staged;
        }
        at.weight = (const REAL *)call->packed + group * g->out_channels * g->channels * kernel;
        at.partial = room->partial;
        for (int p = 0; p < plan->phases; p++) {
            const ResultPhase *phase = &plan->phase[p];
            NAME(convolve_phase)(plan, phase, &at, room->scratch);
            at.weight += g->out_channels * g->channels * phase->taps;
            at.partial += g->out_channels * phase->vectors[0].count * LANES;
        }
    }
}

/* Copy results of unrolled rows to the planes of their samples. */
static void NAME(scatter_rows)(const Plan *plan, const ResultPhase *phase, ptrdiff_t samples, const REAL *scratch,
                               REAL *result)
{
    const Geometry *g = &plan->geometry;
    const ptrdiff_t *size = g->result, *spread = plan->spread, *counts = phase->counts;
    ptrdiff_t plane = size[0] * size[1] * size[2];
    for (ptrdiff_t c = 0; c < g->out_channels; c++) {
        const REAL *from = scratch + c * plan->row;
        for (ptrdiff_t n = 0; n < samples; n++) {
            REAL *to = result + (n * g->groups * g->out_channels + c) * plane;
            for (ptrdiff_t z = 0; z < counts[0]; z++)
                for (ptrdiff_t y = 0; y < counts[1]; y++) {
                    ptrdiff_t to_z = z * spread[0] + phase->first[0], to_y = y * spread[1] + phase->first[1];
                    REAL *row = to + (to_z * size[1] + to_y) * size[2] + phase->first[2];
                    for (ptrdiff_t x = 0; x < counts[2]; x++)
                        row[x * spread[2]] = *from++;
                }
        }
    }
}

/* Some samples of one group, unrolled. */
static void NAME(convolve_unrolled)(const ConvolutionCall *call, ptrdiff_t item, const NAME(Room) *room)
{
    const Plan *plan = call->plan;
    const Geometry *g = &plan->geometry;
    ptrdiff_t group = item % g->groups, sample = item / g->groups * plan->samples, left = g->batch - sample;
    ptrdiff_t samples = left < plan->samples ? left : plan->samples;
    ptrdiff_t in_plane = g->input[0] * g->input[1] * g->input[2], kernel = g->kernel[0] * g->kernel[1] * g->kernel[2];
    ptrdiff_t out_plane = g->result[0] * g->result[1] * g->result[2], first = sample * g->groups + group;
    const REAL *input = (const REAL *)call->input + first * g->channels * in_plane;
    NAME(Position) at = {
        .input = room->staged,
        .weight = (const REAL *)call->packed + group * g->out_channels * g->channels * kernel,
        .bias = call->bias ? (const REAL *)call->bias + group * g->out_channels : NULL,
    };
    for (int p = 0; p < plan->phases; p++) {
        const ResultPhase *phase = &plan->phase[p];
        for (at.channel = 0; at.channel < g->channels; at.channel += plan->chunk) {
            ptrdiff_t rest = g->channels - at.channel;
            at.channels = rest < plan->chunk ? rest : plan->chunk;
            NAME(unroll)(plan, phase, input + at.channel * in_plane, at.channels, samples,
                         NAME(input_end)(g, call->input), room->staged);
            NAME(Tile) tile = {
                .input = room->staged,
                .offsets = phase->offsets,
                .steps = at.channels * phase->taps,
                .partial = room->partial,
                .is_first = at.channel == 0,
                .is_last = at.channel + at.channels == g->channels,
                .result = room->scratch,
                .channel_step = plan->row,
            };
            NAME(convolve_tiles)(plan, phase, &at, tile, &phase->vectors[samples < plan->samples]);
        }
        at.weight += g->out_channels * g->channels * phase->taps;
        NAME(scatter_rows)(plan, phase, samples, room->scratch,
                           (REAL *)call->result + first * g->out_channels * out_plane);
    }
}

static void NAME(convolve)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    ConvolutionCall *call = context;
    const Plan *plan = call->plan;
    ptrdiff_t all = 0;
    for (int p = 0; p < plan->phases; p++)
        all += plan->phase[p].vectors[0].count * LANES;
    NAME(Room) room;
    if (!NAME(make_room)(plan->in_place ? 0 : plan->chunk * plan->plane,
                         plan->direct ? 0 : plan->scratch_plane * plan->geometry.out_channels,
                         plan->chunk < plan->geometry.channels ? all * plan->geometry.out_channels : 0, &room)) {
        call->failed = 1;
        return;
    }
    for (ptrdiff_t item = begin; item < end; item++)
        if (plan->unrolled)
            NAME(convolve_unrolled)(call, item, &room);
        else
            NAME(convolve_item)(call, item, &room);
    free(room.memory);
}

#include "convolution_weight.h"
#include "winograd_loops.h"
#include "winograd_weight.h"
#include "depthwise_loops.h"

#undef LANES
#undef Vector
#undef LOAD
#undef STORE
#undef MASKED
#undef EACH_SUM
#undef EACH_TAP
#undef NARROW
#undef MOST_NARROW
#undef NARROW_ROW
#undef DEPTHWISE_ROWS
