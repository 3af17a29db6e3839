/* What the kernels of convolutions share: which loops serve, how work is shared out, how steps are read. */
#ifndef PULLBACK_CONVOLUTION_CALLS_H
#define PULLBACK_CONVOLUTION_CALLS_H

#include "depthwise.h"
#include "products.h"
#include "windows.h"
#include "winograd.h"

/* Below this many products a thread of its own does not pay. */
#define PRODUCTS_PER_THREAD 400000.0

/* The loops for this processor. */
INLINE const ConvolutionLoops *loops_for(int type)
{
    int number = type == NPY_DOUBLE;
#ifdef HAS_INSTRUCTION_SETS
    int version = instruction_set();
    if (version > 1)
        return version == 4 ? &convolution_v4[number] : &convolution_v3[number];
#endif
    return &convolution_base[number];
}

INLINE double products(const Geometry *g)
{
    const ptrdiff_t *places = g->transposed ? g->input : g->result;
    return (double)g->batch * g->groups * g->channels * g->out_channels * g->kernel[0] * g->kernel[1] * g->kernel[2] *
           places[0] * places[1] * places[2];
}

/* Run the loop over `count` items, which together are so many products. */
INLINE void share_out(ptrdiff_t count, double work, BlockFunction body, void *call)
{
    ptrdiff_t smallest = (ptrdiff_t)(PRODUCTS_PER_THREAD / (work / count)) + 1;
    if (work < 2 * PRODUCTS_PER_THREAD)
        smallest = count;
    run_unlocked(work, count, smallest, body, call);
}

/* Read stride, padding and dilation, which stand side by side. */
INLINE int read_steps(PyObject *const *arguments, int dims, Geometry *g)
{
    return read_sizes(arguments[0], dims, 1, 1, g->stride) && read_sizes(arguments[1], dims, 0, 0, g->padding) &&
           read_sizes(arguments[2], dims, 1, 1, g->dilation);
}

/* The gradient of the weight: convolution_gradients.c. */
PyObject *convolution_grad_weight(PyObject *const *slots, const KernelEntry *entry);

#endif
