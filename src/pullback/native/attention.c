/* Scaled dot-product attention: the kernels of kernels/attention.py. */
#include "kernel.h"

const KernelEntry attention_kernels[] = {
    {NULL},
};
