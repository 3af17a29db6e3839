/* Maxima along rows for x86-64-v4 (AVX-512). */
#include "maxima.h"

#ifdef HAS_INSTRUCTION_SETS
#pragma GCC target("arch=x86-64-v4")

#define VECTOR_BYTES 64
#define FLOAT_LANES 16
#define DOUBLE_LANES 8
#define NAMED(word) word##_v4
#include "maxima_types.h"

#endif
