/* Plans depthwise convolutions. See Note [Depthwise convolution] in depthwise.h. */
#include "depthwise.h"

#define MOST_STAGED (1 << 18) /* elements of a plane */

int suits_depthwise(const Geometry *g)
{
    if (g->channels != 1 || g->out_channels != 1 || g->kernel[0] != 1 || g->input[0] != 1 || g->result[0] != 1 ||
        g->padding[0])
        return 0;
    for (int d = 1; d < DIMS; d++)
        if (g->stride[d] > 2 || g->kernel[d] > MOST_KERNEL || g->padding[d] > g->dilation[d] * (g->kernel[d] - 1) ||
            (g->transposed && g->stride[d] > 1 && g->dilation[d] > 1))
            return 0;
    return (g->input[1] + 2 * g->padding[1] + 8) * (g->input[2] + 2 * g->padding[2] + 64) < MOST_STAGED;
}

/* Window o reads o * stride + k * dilation. */
static void list_taps(Depthwise *plan)
{
    const Geometry *g = &plan->geometry;
    ptrdiff_t stride = g->stride[2];
    plan->taps[0] = (int)g->kernel[2];
    for (int k = 0; k < plan->taps[0]; k++) {
        ptrdiff_t place = k * g->dilation[2];
        plan->offsets[0][k] = place % stride * plan->line + place / stride;
        plan->places[0][k] = k;
    }
}

/* Result q * stride + first reads q + (first + padding - k * dilation) / stride, counted with `before`. */
static void list_adjoint_taps(Depthwise *plan)
{
    const Geometry *g = &plan->geometry;
    for (int first = 0; first < g->stride[2]; first++) {
        plan->taps[first] = 0;
        for (int k = 0; k < g->kernel[2]; k++) {
            ptrdiff_t place = first + g->padding[2] - k * g->dilation[2];
            if (place % g->stride[2])
                continue;
            plan->offsets[first][plan->taps[first]] = place / g->stride[2] + plan->before[1];
            plan->places[first][plan->taps[first]++] = k;
        }
    }
}

static void turn_round(Depthwise *plan)
{
    Geometry *g = &plan->geometry;
    for (int d = 1; d < DIMS; d++)
        if (!g->transposed || g->stride[d] != 1 ||
            g->result[d] != g->input[d] + g->dilation[d] * (g->kernel[d] - 1) - 2 * g->padding[d])
            return;
    if (g->kernel[1] * g->kernel[2] > MOST_TAPS)
        return;
    g->transposed = 0;
    plan->turned = 1;
    for (int d = 1; d < DIMS; d++)
        g->padding[d] = g->dilation[d] * (g->kernel[d] - 1) - g->padding[d];
}

void plan_depthwise(Depthwise *plan, const Geometry *geometry, int lanes)
{
    *plan = (Depthwise){.geometry = *geometry};
    turn_round(plan);
    const Geometry *g = &plan->geometry;
    ptrdiff_t reach[2], parts = g->transposed ? 1 : g->stride[2], sizes[2];
    for (int d = 0; d < 2; d++) {
        reach[d] = g->dilation[d + 1] * (g->kernel[d + 1] - 1);
        plan->before[d] = g->transposed ? (reach[d] - g->padding[d + 1] + g->stride[d + 1] - 1) / g->stride[d + 1]
                                        : g->padding[d + 1];
        ptrdiff_t needed = g->transposed ? (g->result[d + 1] - 1 + g->padding[d + 1]) / g->stride[d + 1] + 1 + plan->before[d]
                                         : (g->result[d + 1] - 1) * g->stride[d + 1] + reach[d] + 1;
        sizes[d] = plan->before[d] + g->input[d + 1];
        sizes[d] = needed > sizes[d] ? needed : sizes[d];
    }
    plan->rows = sizes[0];
    plan->line = (sizes[1] / parts + 3 * lanes) / lanes * lanes;
    plan->row = plan->line * parts;
    if (g->transposed)
        list_adjoint_taps(plan);
    else
        list_taps(plan);
}
