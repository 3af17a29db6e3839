/* convolution_loops.h for both dtypes; NAMED makes a name the instruction set's own. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "depthwise.h"
#include "winograd.h"

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#define PREFETCH_TO_WRITE(place) __builtin_prefetch(place, 1)
#define UNROLLED _Pragma("GCC unroll 16")
#else
#define UNROLLED
#define INLINE static inline
#define PREFETCH_TO_WRITE(place) ((void)0)
#endif

#define REAL float
#define BITS int32_t
#define NAME(word) NAMED(word##_float)
#include "convolution_loops.h"
#undef REAL
#undef BITS
#undef NAME

#define REAL double
#define BITS int64_t
#define NAME(word) NAMED(word##_double)
#include "convolution_loops.h"
#undef REAL
#undef BITS
#undef NAME

#if defined(__GNUC__)
#define LANES_OF(type) (VECTOR_BYTES / sizeof(type))
#else
#define LANES_OF(type) 1
#endif

const ConvolutionLoops NAMED(convolution)[2] = {
    {LANES_OF(float), MOST_CHANNELS, NAMED(pack_float), NAMED(convolve_float), NAMED(weigh_float),
     NAMED(transform_weight_float), NAMED(convolve_squares_float), NAMED(transform_block_float),
     NAMED(finish_weight_float), NAMED(convolve_depthwise_float), NAMED(weigh_depthwise_float)},
    {LANES_OF(double), MOST_CHANNELS, NAMED(pack_double), NAMED(convolve_double), NAMED(weigh_double),
     NAMED(transform_weight_double), NAMED(convolve_squares_double), NAMED(transform_block_double),
     NAMED(finish_weight_double), NAMED(convolve_depthwise_double), NAMED(weigh_depthwise_double)},
};
