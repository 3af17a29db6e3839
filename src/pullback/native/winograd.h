/* Note [Winograd's convolution]
 * A plane of results of a 3x3 kernel without steps is cut into squares of 2x2. Each reads a square of 4x4 inputs; with the
 * square transformed (B' d B, additions only) and the kernel too (G g G', once per call) the 36 products are 16:
 *     result = A' [(G g G') * (B' d B)] A       B' = 1 0 -1 0   G = 1    0   0     A' = 1 1  1  0
 *                                                    0 1  1 0       1/2  1/2 1/2       0 1 -1 -1
 *                                                    0 -1 1 0       1/2 -1/2 1/2
 *                                                    0 1  0 -1      0    0   1
 * Summed over channels, each of the 16 is a product of matrices, (out_channels, channels) times (channels, squares). The
 * gradient of the kernel is G' [sum over squares of (A dy A') * (B' d B)] G, with as many products.
 * Rounding stays that of adding products one after the other: sums over channels are nine times shorter. Infinite and
 * NaN inputs would reach results of other windows of a square, and large ones overflow; so where a result is not finite
 * the whole call is done over by direct sums.
 */
#ifndef PULLBACK_WINOGRAD_H
#define PULLBACK_WINOGRAD_H

#include "convolution.h"

#define SQUARES 16       /* elements of a transformed square */
#define CHANNEL_CHUNK 32 /* channels that are summed up before they are added to what earlier ones gave */

typedef struct {
    Geometry geometry;     /* as a convolution that is not transposed */
    int turned;            /* the weight is turned round and its channels are swapped */
    ptrdiff_t rows, columns; /* squares of a plane */
    ptrdiff_t units;       /* rows of squares of all samples */
    ptrdiff_t block;       /* units at a time */
    ptrdiff_t width, pitch; /* squares of a block, and the elements of a row of them */
    ptrdiff_t line;        /* elements of a staged line */
    int is_narrow;         /* rows are shorter than a vector: vectors take squares of several rows */
    ptrdiff_t *offsets;    /* of each channel; then the places of each vector */
} Winograd;

typedef struct {
    const Winograd *plan;
    const void *input, *bias;
    const void *weight; /* of the convolution, then transformed */
    void *transformed;
    void *result;
    int failed;    /* memory ran out */
    int is_finite; /* all results are */
} WinogradCall;

/* The gradient of the kernel. */
typedef struct {
    const Winograd *plan;
    const void *input, *output_grad;
    char *inputs, *grads; /* transformed squares of a block */
    void *sums;           /* of products: [element][out channel][channel] */
    ptrdiff_t first, units, group; /* what the block holds */
    void *result;
    int wide; /* double, not float */
    int failed, is_finite;
} WinogradWeightCall;

/* Whether squares pay: 3x3, no steps, enough of them for the transform of the weight to be repaid. */
int suits_winograd(const Geometry *geometry);

/* 0 where memory runs out. */
int plan_winograd(Winograd *plan, const Geometry *geometry, int lanes, int itemsize, int threads);
int plan_winograd_weight(Winograd *plan, const Geometry *geometry, int lanes, int itemsize);
void free_winograd(Winograd *plan);

/* Add the products of a block to the sums; items are elements of squares. */
void weigh_squares(void *call, ptrdiff_t begin, ptrdiff_t end);

#endif
