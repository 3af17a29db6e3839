/* Whole recurrent layers: the kernels of kernels/recurrent.py. */
#include "kernel.h"

const KernelEntry recurrent_kernels[] = {
    {NULL},
};
