/* Convolutions for x86-64-v3 (AVX2). */
#include "convolution.h"

#ifdef HAS_INSTRUCTION_SETS
#pragma GCC target("arch=x86-64-v3")

#define VECTOR_BYTES 32
#define MOST_CHANNELS 4
#define NAMED(word) word##_v3
#include "convolution_types.h"

#endif
