/* maxima_loops.h for both dtypes; NAMED makes a name the instruction set's own. */
#include <stdint.h>

#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
#define HAS_VECTORS 1
#endif
#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

#define REAL float
#define BITS int32_t
#define LANES FLOAT_LANES
#define NAME(word) NAMED(word##_float)
#include "maxima_loops.h"
#undef REAL
#undef BITS
#undef LANES
#undef NAME

#define REAL double
#define BITS int64_t
#define LANES DOUBLE_LANES
#define NAME(word) NAMED(word##_double)
#include "maxima_loops.h"
#undef REAL
#undef BITS
#undef LANES
#undef NAME

const MaximumLoops NAMED(maxima)[2] = {
    {NAMED(keep_larger_float), NAMED(keep_largest_of_four_float)},
    {NAMED(keep_larger_double), NAMED(keep_largest_of_four_double)},
};
