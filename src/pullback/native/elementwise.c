#include "kernel.h"

const KernelEntry elementwise_kernels[] = {
    {NULL},
};
