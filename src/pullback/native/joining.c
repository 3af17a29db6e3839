/* Arrays put together and taken apart: the kernels of kernels/joining.py. */
#include "kernel.h"

const KernelEntry joining_kernels[] = {
    {NULL},
};
