/* What a convolution's loops need to know, worked out once per call: no Python, no number of the arrays' dtype.
 *
 * Note [Staged convolution]
 * A block of the input (a few channels of a box of windows) is copied with its padding into a buffer, split by what the
 * stride makes of it (the elements 0, s, 2s... of a row side by side, then 1, s + 1...). There, each tap of the kernel
 * reads at a constant distance from the window's own place, whatever stride, dilation and number of dimensions are. So
 * one small loop serves all: for each channel and tap, some vectors of neighbouring results, which begin at `starts`,
 * plus the weight of some output channels times the vectors at `starts` plus the tap's offset. Sums stay in registers.
 * A transposed convolution is as many such convolutions as the stride has phases, each writing every s-th result.
 * Where planes are so small that most of each vector would be dropped, the input is unrolled instead: a row of the buffer
 * is what one tap of one channel reads for all windows of several samples, and vectors take neighbours of that row.
 * A vector takes neighbours of a row, the last one overlapping the one before it; where rows are short, it takes
 * neighbours of the staged buffer ("flat"), and what lies between the rows is computed and dropped.
 */
#ifndef PULLBACK_CONVOLUTION_H
#define PULLBACK_CONVOLUTION_H

#include <stddef.h>

#include "instruction_set.h"

#define DIMS 3          /* spatial dimensions; fewer are led by ones */
#define MOST_KERNEL 64  /* elements of the kernel along a dimension */
#define MOST_PHASES 64  /* of a transposed convolution's results */
#define BOX_SIZES 2     /* boxes are of at most two sizes, one element apart */

typedef struct {
    ptrdiff_t batch, groups, channels, out_channels; /* channels of one group */
    ptrdiff_t input[DIMS], kernel[DIMS], result[DIMS];
    ptrdiff_t stride[DIMS], padding[DIMS], dilation[DIMS];
    int transposed;
} Geometry;

/* How the input is staged along one dimension. */
typedef struct {
    ptrdiff_t stride; /* in the input, between neighbours of the buffer */
    ptrdiff_t origin; /* the input's element that the first window's first tap reads: negative in the padding */
    ptrdiff_t reach;  /* elements of the buffer that the windows need beyond their number */
    int phases, phase[MOST_KERNEL];
} Axis;

/* Vectors of neighbouring results in a box of windows. */
typedef struct {
    ptrdiff_t count;
    ptrdiff_t whole; /* the first ones, in which every lane counts */
    ptrdiff_t *starts; /* in the staged input */
    ptrdiff_t *places; /* of the results: in their plane, or in a scratch plane */
    ptrdiff_t *lanes;  /* which count, as bits */
} Vectors;

/* The results that read the same taps: all of them, or every s-th one of a transposed convolution. */
typedef struct {
    ptrdiff_t counts[DIMS], first[DIMS];
    ptrdiff_t taps;
    ptrdiff_t *kernel_places; /* of each tap */
    ptrdiff_t (*shifts)[DIMS]; /* of each tap: the input's element that the first window reads */
    ptrdiff_t *offsets;       /* of each tap of each channel of a chunk, in the staged input */
    Vectors vectors[BOX_SIZES];
} ResultPhase;

typedef struct {
    Geometry geometry;
    ptrdiff_t lanes, itemsize;
    Axis axes[DIMS];
    ptrdiff_t spread[DIMS];          /* between neighbouring results of a phase */
    ptrdiff_t staged[DIMS];          /* sizes of the buffer of one phase of the input */
    ptrdiff_t plane;                 /* elements of the buffer of one channel */
    int split;                       /* the dimension that boxes divide */
    ptrdiff_t boxes, box;            /* how many, and the size of the largest */
    ptrdiff_t chunk;                 /* channels staged at a time */
    int in_place;                    /* the input serves as it is */
    int flat;
    int direct;                      /* vectors are whole rows' parts: results need no scratch plane */
    ptrdiff_t row_step, slab_step, scratch_plane; /* where results are not direct */
    ptrdiff_t samples;               /* staged at a time, by the weight's gradient and where the input is unrolled */
    int unrolled;
    ptrdiff_t row;                   /* elements of an unrolled row */
    int is_weight_gradient;
    int phases;
    ResultPhase *phase;
    void *memory;
} Plan;

typedef struct {
    const Plan *plan;
    const void *input, *bias, *packed;
    void *result;
    int failed; /* memory ran out */
} ConvolutionCall;

/* The gradient of the weight; threads share out groups, input channels or output channels. */
typedef struct {
    const Plan *plan;
    const void *input, *output_grad;
    void *result;
    enum { SHARE_GROUPS, SHARE_CHANNELS, SHARE_OUT_CHANNELS } share;
    int failed;
} WeightCall;

typedef struct {
    int lanes, most_channels; /* of a tile */
    void (*pack)(const Plan *plan, const void *weight, void *packed);
    void (*convolve)(void *call, ptrdiff_t begin, ptrdiff_t end);
    void (*weigh)(void *call, ptrdiff_t begin, ptrdiff_t end);
    /* See winograd.h. */
    void (*transform_weight)(void *call, ptrdiff_t begin, ptrdiff_t end);
    void (*convolve_squares)(void *call, ptrdiff_t begin, ptrdiff_t end);
    void (*transform_block)(void *call, ptrdiff_t begin, ptrdiff_t end);
    void (*finish_weight)(void *call);
    /* See depthwise.h. */
    void (*convolve_depthwise)(void *call, ptrdiff_t begin, ptrdiff_t end);
    void (*weigh_depthwise)(void *call, ptrdiff_t begin, ptrdiff_t end);
} ConvolutionLoops;

/* For float32 and for float64. */
extern const ConvolutionLoops convolution_base[2];
#ifdef HAS_INSTRUCTION_SETS
extern const ConvolutionLoops convolution_v3[2], convolution_v4[2];
#endif

/* 1, or 0 where memory runs out or the plan would waste most of each vector; free_plan in any case. */
int plan_convolution(Plan *plan, const Geometry *geometry, int lanes, int itemsize, int threads);
int plan_weight_gradient(Plan *plan, const Geometry *geometry, int lanes, int itemsize);
void free_plan(Plan *plan);

/* result += grads @ inputs', for rows of `width` numbers (doubles, with `wide`): `rows` of grads, `columns` of inputs. */
void add_product(const void *grads, ptrdiff_t rows, ptrdiff_t grad_step, const void *inputs, ptrdiff_t columns,
                 ptrdiff_t input_step, ptrdiff_t width, void *result, ptrdiff_t result_step, int wide);

/* Where box `number` begins along the dimension that is split. */
static inline ptrdiff_t box_begin(const Plan *plan, ptrdiff_t number)
{
    return number * plan->phase[0].counts[plan->split] / plan->boxes;
}

/* The windows that a phase has in a plane. */
static inline ptrdiff_t windows_in(const ResultPhase *phase)
{
    return phase->counts[0] * phase->counts[1] * phase->counts[2];
}

/* The vectors of the part of a box that a phase has: of `size` windows along the dimension that is split. */
static inline const Vectors *vectors_of(const Plan *plan, const ResultPhase *phase, ptrdiff_t size)
{
    return &phase->vectors[plan->box - size];
}

#endif
