/* Random numbers: the loops of backend/random. */
#include "kernel.h"

const KernelEntry random_kernels[] = {
    {NULL},
};
