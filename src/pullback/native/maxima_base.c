/* Maxima along rows for any processor. */
#include "maxima.h"

#define VECTOR_BYTES 16
#define FLOAT_LANES 4
#define DOUBLE_LANES 2
#define NAMED(word) word##_base
#include "maxima_types.h"
