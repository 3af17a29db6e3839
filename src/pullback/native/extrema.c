/* The compiled kernels of kernels/extrema.py. */
#include "rows.h"

const KernelEntry extrema_kernels[] = {
    {NULL},
};
