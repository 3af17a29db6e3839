/* Note [Depthwise convolution]
 * One filter per channel has too few products for tiles of channels: here a plane is staged with its padding (its rows
 * parted into even and odd elements where the stride is 2), and vectors take neighbours of a row of results, of four
 * rows at once, which share what they read. The adjoint reads the gradient's plane with the kernel turned round; with
 * stride 2 the taps of even and of odd results are apart, and their vectors are interleaved.
 */
#ifndef PULLBACK_DEPTHWISE_H
#define PULLBACK_DEPTHWISE_H

#include "convolution.h"

#define MOST_TAPS 64 /* of a kernel whose gradient is taken, or that is turned round */

typedef struct {
    Geometry geometry;
    ptrdiff_t line, row;    /* elements of a staged line, and of the lines of a row */
    ptrdiff_t rows;         /* staged */
    ptrdiff_t before[2];    /* padding before the plane */
    ptrdiff_t offsets[2][MOST_KERNEL]; /* of the taps along a row; of an adjoint with stride 2: of even and odd results */
    ptrdiff_t places[2][MOST_KERNEL];  /* which taps these are */
    int taps[2];
    int turned; /* the adjoint without steps is a convolution with the kernel turned round */
} Depthwise;

typedef struct {
    const Depthwise *plan;
    const void *input, *weight, *bias, *output_grad;
    void *result;
    int failed;
} DepthwiseCall;

int suits_depthwise(const Geometry *geometry);
void plan_depthwise(Depthwise *plan, const Geometry *geometry, int lanes);

#endif
