/* Steps of optimizers: the kernels of kernels/optimizer_steps.py. */
#include "kernel.h"

const KernelEntry optimizer_step_kernels[] = {
    {NULL},
};
