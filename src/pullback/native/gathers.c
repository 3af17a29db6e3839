/* Rows and elements taken from and added at positions. */
#include "kernel.h"

const KernelEntry gather_kernels[] = {
    {NULL},
};
