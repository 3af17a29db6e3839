/* Plans Winograd's convolution and shares out its work. See Note [Winograd's convolution] in winograd.h. */
#include "winograd.h"

#include "windows.h"

#define LEAST_CHANNELS 12          /* c * o / (c + o): below, transforms cost more than products */
#define LEAST_SQUARES 24           /* below, the transform of the weight is not repaid */
#define LEAST_FILLED 0.6           /* of the squares: they are 2.25 times as fast when full */
#define BLOCK_BYTES (512 * 1024)   /* of transformed squares: with the weight, they stay in the second cache ... */
#define MOST_BYTES (4096 * 1024)   /* ... or the weight of each element does */
#define WEIGHT_BYTES (8192 * 1024) /* of squares by which the weight's gradient is summed up at a time */
#define WEIGHT_WIDTH 1024          /* squares at a time there: sums of lanes are few */

static ptrdiff_t round_up(ptrdiff_t count, ptrdiff_t unit) { return (count + unit - 1) / unit * unit; }

static ptrdiff_t at_most(ptrdiff_t value, ptrdiff_t most) { return value < most ? value : most; }

static ptrdiff_t at_least(ptrdiff_t value, ptrdiff_t least) { return value > least ? value : least; }

int suits_winograd(const Geometry *g)
{
    ptrdiff_t squares = g->batch, filled = g->result[1] * g->result[2];
    for (int d = 0; d < DIMS; d++) {
        ptrdiff_t kernel = d ? 3 : 1, around = g->transposed ? kernel - 1 - g->padding[d] : g->padding[d];
        if (g->kernel[d] != kernel || g->stride[d] != 1 || g->dilation[d] != 1 || around < 0 ||
            g->result[d] != g->input[d] + 2 * around - (kernel - 1))
            return 0;
        squares *= d ? (g->result[d] + 1) / 2 : 1;
    }
    /* A square that lies half beyond the plane is computed as a whole. */
    return g->input[0] == 1 && g->result[0] == 1 &&
           g->channels * g->out_channels >= LEAST_CHANNELS * (g->channels + g->out_channels) && squares >= LEAST_SQUARES &&
           (double)filled * g->batch >= LEAST_FILLED * 4 * (double)squares;
}

/* The adjoint of a convolution without steps is one too, of the weight turned round. */
static void turn_round(Winograd *plan)
{
    Geometry *g = &plan->geometry;
    plan->turned = g->transposed;
    if (!g->transposed)
        return;
    g->transposed = 0;
    for (int d = 1; d < DIMS; d++)
        g->padding[d] = 2 - g->padding[d];
}

/* Rows of squares begin an odd number of vectors apart, so that channels do not meet in the same sets of a cache. */
static int finish_plan(Winograd *plan, ptrdiff_t lanes)
{
    const Geometry *g = &plan->geometry;
    plan->is_narrow = g->input[2] <= lanes && 2 * plan->columns + 2 <= 2 * lanes && 2 * plan->columns <= lanes;
    plan->width = plan->block * plan->columns;
    plan->pitch = round_up(plan->width, lanes) + lanes;
    if (plan->pitch / lanes % 2 == 0)
        plan->pitch += lanes;
    plan->line = round_up(plan->columns + 1 + lanes, lanes) + lanes;
    ptrdiff_t vectors = plan->pitch / lanes;
    plan->offsets = malloc((size_t)(g->channels + vectors) * sizeof(ptrdiff_t));
    if (!plan->offsets)
        return 0;
    for (ptrdiff_t c = 0; c < g->channels; c++)
        plan->offsets[c] = c * plan->pitch;
    for (ptrdiff_t v = 0; v < vectors; v++)
        plan->offsets[g->channels + v] = v * lanes;
    return 1;
}

static void start_plan(Winograd *plan, const Geometry *geometry)
{
    *plan = (Winograd){.geometry = *geometry};
    turn_round(plan);
    const Geometry *g = &plan->geometry;
    plan->rows = (g->result[1] + 1) / 2;
    plan->columns = (g->result[2] + 1) / 2;
    plan->units = g->batch * plan->rows;
}

int plan_winograd(Winograd *plan, const Geometry *geometry, int lanes, int itemsize, int threads)
{
    start_plan(plan, geometry);
    const Geometry *g = &plan->geometry;
    ptrdiff_t weight = SQUARES * g->channels * g->out_channels * itemsize;
    ptrdiff_t bytes = at_most(at_least(weight, BLOCK_BYTES), MOST_BYTES);
    /* Tiles are of three vectors. */
    ptrdiff_t squares = bytes / (SQUARES * (g->channels + g->out_channels) * itemsize) / (3 * lanes) * (3 * lanes);
    squares = at_least(squares, 3 * lanes);
    ptrdiff_t share = (plan->units * g->groups + threads - 1) / threads;
    plan->block = at_least(1, at_most(at_most(plan->units, squares / plan->columns), share));
    return finish_plan(plan, lanes);
}

int plan_winograd_weight(Winograd *plan, const Geometry *geometry, int lanes, int itemsize)
{
    start_plan(plan, geometry);
    const Geometry *g = &plan->geometry;
    ptrdiff_t squares = at_most(WEIGHT_BYTES / (SQUARES * (g->channels + g->out_channels) * itemsize), WEIGHT_WIDTH);
    plan->block = at_least(1, at_most(plan->units, squares / plan->columns));
    return finish_plan(plan, lanes);
}

void free_winograd(Winograd *plan) { free(plan->offsets); }

void weigh_squares(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    WinogradWeightCall *call = context;
    const Winograd *plan = call->plan;
    const Geometry *g = &plan->geometry;
    ptrdiff_t item = call->wide ? sizeof(double) : sizeof(float), width = call->units * plan->columns;
    for (ptrdiff_t element = begin; element < end; element++)
        add_product(call->grads + element * g->out_channels * plan->pitch * item, g->out_channels, plan->pitch,
                    call->inputs + element * g->channels * plan->pitch * item, g->channels, plan->pitch, width,
                    (char *)call->sums + element * g->out_channels * g->channels * item, g->channels, call->wide);
}
