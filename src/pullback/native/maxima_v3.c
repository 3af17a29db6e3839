/* Maxima along rows for x86-64-v3 (AVX2). */
#include "maxima.h"

#ifdef HAS_INSTRUCTION_SETS
#pragma GCC target("arch=x86-64-v3")

#define VECTOR_BYTES 32
#define FLOAT_LANES 8
#define DOUBLE_LANES 4
#define NAMED(word) word##_v3
#include "maxima_types.h"

#endif
