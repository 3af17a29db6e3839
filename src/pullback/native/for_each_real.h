/* Compiles the loops of the file named by LOOPS twice: with REAL as float32 and as float64.
 *
 * LANES numbers fill the registers that one loop keeps its partial results in: arrays of that size are what the
 * compiler turns into vectors without being allowed to reorder sums, on any instruction set.
 */
#define REAL float
#define REAL_IS_FLOAT 1
#define LANES 32
#define TYPED(name) name##_float
#define EXPONENTIAL fast_exp_of_negativef
#include "lanes.h"
#include LOOPS
#undef REAL
#undef REAL_IS_FLOAT
#undef LANES
#undef TYPED
#undef EXPONENTIAL

#define REAL double
#define REAL_IS_FLOAT 0
#define LANES 16
#define TYPED(name) name##_double
#define EXPONENTIAL fast_exp_of_negative
#include "lanes.h"
#include LOOPS
#undef REAL
#undef REAL_IS_FLOAT
#undef LANES
#undef TYPED
#undef EXPONENTIAL
