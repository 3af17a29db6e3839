/* Convolutions for x86-64-v4 (AVX-512). */
#include "convolution.h"

#ifdef HAS_INSTRUCTION_SETS
#pragma GCC target("arch=x86-64-v4")

#define VECTOR_BYTES 64
#define MOST_CHANNELS 8
#define NAMED(word) word##_v4
#include "convolution_types.h"

#endif
