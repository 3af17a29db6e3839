/* The gradient of a convolution's weight for one dtype and one instruction set; a part of convolution_loops.h. */

/* What one thread does: its share of groups, channels and output channels, and its buffers. */
typedef struct {
    ptrdiff_t groups[2], channels[2], out_channels[2];
    REAL *staged, *grads;
    NAME(Mask) *masks[BOX_SIZES];
} NAME(Share);

static void NAME(make_masks)(const Vectors *vectors, NAME(Mask) *masks)
{
    for (ptrdiff_t v = vectors->whole; v < vectors->count; v++)
        for (int lane = 0; lane < LANES; lane++)
            ((BITS *)&masks[v - vectors->whole])[lane] = -(BITS)(vectors->lanes[v] >> lane & 1);
}

/* Copy the result's gradient of a box of one sample into planes laid out as the staged input, row by row. */
static void NAME(stage_grads)(const Plan *plan, const REAL *output_grad, ptrdiff_t channels, const ptrdiff_t *begin,
                              const ptrdiff_t *windows, ptrdiff_t plane, REAL *staged)
{
    const ptrdiff_t *size = plan->geometry.result;
    for (ptrdiff_t c = 0; c < channels; c++, output_grad += size[0] * size[1] * size[2], staged += plane)
        for (ptrdiff_t z = 0; z < windows[0]; z++)
            for (ptrdiff_t y = 0; y < windows[1]; y++) {
                const REAL *from =
                    output_grad + ((begin[0] + z) * size[1] + begin[1] + y) * size[2] + begin[2];
                REAL *to = staged + z * plan->slab_step + y * plan->row_step;
                memcpy(to, from, (size_t)windows[2] * sizeof(REAL));
            }
}

/* Add to the gradient what some samples of a box give, for a chunk of channels of a group. */
static void NAME(weigh_chunk)(const WeightCall *call, const NAME(Share) *share, NAME(WeightTile) tile, ptrdiff_t group,
                              ptrdiff_t channel, ptrdiff_t channels)
{
    const Plan *plan = call->plan;
    const Geometry *g = &plan->geometry;
    const ResultPhase *phase = &plan->phase[0];
    ptrdiff_t steps = channels * phase->taps, outs = share->out_channels[1] - share->out_channels[0];
    const REAL *output_grad = tile.output_grad;
    REAL sums[4 * 6];
    tile.sums = sums;
    for (ptrdiff_t block = 0, begin = 0; begin < outs; block++) {
        ptrdiff_t end = NAME(block_begin)(outs, WEIGHT_CHANNELS, block + 1);
        tile.output_grad = output_grad + begin * tile.channel_step;
        for (ptrdiff_t part = 0, step = 0; step < steps; part++) {
            ptrdiff_t next = NAME(block_begin)(steps, WEIGHT_TAPS, part + 1);
            tile.offsets = phase->offsets + step;
            NAME(weight_tiles)[end - begin][next - step](&tile);
            for (ptrdiff_t o = begin; o < end; o++) {
                REAL *result = (REAL *)call->result +
                               ((group * g->out_channels + share->out_channels[0] + o) * g->channels + channel) *
                                   phase->taps + step;
                for (ptrdiff_t k = 0; k < next - step; k++)
                    result[k] += sums[(o - begin) * (next - step) + k];
            }
            step = next;
        }
        begin = end;
    }
}

/* Unroll some samples, and add what they give. */
static void NAME(weigh_unrolled)(const WeightCall *call, const NAME(Share) *share, ptrdiff_t group, ptrdiff_t channel,
                                 ptrdiff_t channels, ptrdiff_t sample, ptrdiff_t samples)
{
    const Plan *plan = call->plan;
    const Geometry *g = &plan->geometry;
    const ResultPhase *phase = &plan->phase[0];
    ptrdiff_t windows = windows_in(phase), in_plane = g->input[0] * g->input[1] * g->input[2];
    ptrdiff_t outs = share->out_channels[1] - share->out_channels[0], first = sample * g->groups + group;
    const REAL *input = (const REAL *)call->input + (first * g->channels + channel) * in_plane;
    const REAL *output_grad =
        (const REAL *)call->output_grad + (first * g->out_channels + share->out_channels[0]) * windows;
    NAME(unroll)(plan, phase, input, channels, samples, NAME(input_end)(g, call->input), share->staged);
    for (ptrdiff_t o = 0; o < outs; o++)
        for (ptrdiff_t n = 0; n < samples; n++)
            memcpy(share->grads + o * plan->row + n * windows,
                   output_grad + (n * g->groups * g->out_channels + o) * windows, (size_t)windows * sizeof(REAL));
    add_product(share->grads, outs, plan->row, share->staged, channels * phase->taps, plan->row, samples * windows,
                (REAL *)call->result + ((group * g->out_channels + share->out_channels[0]) * g->channels + channel) * phase->taps,
                g->channels * phase->taps, sizeof(REAL) == sizeof(double));
}

/* Stage a box of some samples, and add what they give. */
static void NAME(weigh_samples)(const WeightCall *call, const NAME(Share) *share, ptrdiff_t group, ptrdiff_t channel,
                                ptrdiff_t channels, ptrdiff_t sample, ptrdiff_t samples, ptrdiff_t box)
{
    const Plan *plan = call->plan;
    const Geometry *g = &plan->geometry;
    ptrdiff_t in_plane = g->input[0] * g->input[1] * g->input[2];
    ptrdiff_t out_plane = g->result[0] * g->result[1] * g->result[2];
    ptrdiff_t begin[DIMS] = {0}, windows[DIMS] = {g->result[0], g->result[1], g->result[2]};
    begin[plan->split] = box_begin(plan, box);
    windows[plan->split] = box_begin(plan, box + 1) - begin[plan->split];
    const Vectors *vectors = vectors_of(plan, &plan->phase[0], windows[plan->split]);
    const REAL *input = (const REAL *)call->input + ((sample * g->groups + group) * g->channels + channel) * in_plane;
    const REAL *output_grad =
        (const REAL *)call->output_grad +
        ((sample * g->groups + group) * g->out_channels + share->out_channels[0]) * out_plane;
    ptrdiff_t outs = share->out_channels[1] - share->out_channels[0], grad_plane = plan->scratch_plane;
    for (ptrdiff_t n = 0; n < samples; n++) {
        if (!plan->in_place)
            NAME(stage)(plan, input + n * g->groups * g->channels * in_plane, channels, begin, windows,
                        NAME(input_end)(g, call->input), share->staged + n * plan->chunk * plan->plane);
        if (!plan->direct)
            NAME(stage_grads)(plan, output_grad + n * g->groups * g->out_channels * out_plane, outs, begin, windows,
                              grad_plane, share->grads + n * outs * grad_plane);
    }
    NAME(WeightTile) tile = {
        .samples = samples,
        .vectors = vectors,
        .masks = share->masks[vectors - plan->phase[0].vectors],
        .input = plan->in_place ? input + (begin[0] * g->input[1] + begin[1]) * g->input[2] + begin[2] : share->staged,
        .input_step = plan->in_place ? g->groups * g->channels * in_plane : plan->chunk * plan->plane,
        .output_grad = plan->direct
                           ? output_grad + (begin[0] * g->result[1] + begin[1]) * g->result[2] + begin[2]
                           : share->grads,
        .grad_step = plan->direct ? g->groups * g->out_channels * out_plane : outs * grad_plane,
        .channel_step = plan->direct ? out_plane : grad_plane,
    };
    NAME(weigh_chunk)(call, share, tile, group, channel, channels);
}

static void NAME(weigh_share)(const WeightCall *call, const NAME(Share) *share)
{
    const Plan *plan = call->plan;
    for (ptrdiff_t group = share->groups[0]; group < share->groups[1]; group++)
        for (ptrdiff_t channel = share->channels[0]; channel < share->channels[1]; channel += plan->chunk) {
            ptrdiff_t rest = share->channels[1] - channel, channels = rest < plan->chunk ? rest : plan->chunk;
            for (ptrdiff_t sample = 0; sample < plan->geometry.batch; sample += plan->samples) {
                ptrdiff_t left = plan->geometry.batch - sample, samples = left < plan->samples ? left : plan->samples;
                if (plan->unrolled)
                    NAME(weigh_unrolled)(call, share, group, channel, channels, sample, samples);
                else
                    for (ptrdiff_t box = 0; box < plan->boxes; box++)
                        NAME(weigh_samples)(call, share, group, channel, channels, sample, samples, box);
            }
        }
}

static void NAME(weigh)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    WeightCall *call = context;
    const Plan *plan = call->plan;
    const Geometry *g = &plan->geometry;
    NAME(Share) share = {.groups = {0, g->groups}, .channels = {0, g->channels}, .out_channels = {0, g->out_channels}};
    ptrdiff_t *shared = call->share == SHARE_GROUPS     ? share.groups
                        : call->share == SHARE_CHANNELS ? share.channels
                                                        : share.out_channels;
    shared[0] = begin;
    shared[1] = end;
    const Vectors *vectors = plan->phase[0].vectors;
    ptrdiff_t masks = 0;
    for (int size = 0; size < BOX_SIZES; size++)
        masks += vectors[size].count - vectors[size].whole;
    ptrdiff_t grads = (share.out_channels[1] - share.out_channels[0]) * plan->scratch_plane * plan->samples;
    NAME(Room) room;
    ptrdiff_t staged = plan->chunk * plan->plane * plan->samples;
    if (plan->unrolled) { /* rows hold all samples */
        staged /= plan->samples;
        grads /= plan->samples;
    }
    if (!NAME(make_room)(plan->in_place ? 0 : staged, plan->direct ? 0 : grads, masks * LANES, &room)) {
        call->failed = 1;
        return;
    }
    share.staged = room.staged;
    share.grads = room.scratch;
    NAME(Mask) *free_masks = (NAME(Mask) *)room.partial;
    for (int size = 0; size < BOX_SIZES; size++) {
        share.masks[size] = free_masks;
        NAME(make_masks)(&vectors[size], free_masks);
        free_masks += vectors[size].count - vectors[size].whole;
    }
    NAME(weigh_share)(call, &share);
    free(room.memory);
}
