/* The loops of the elementwise kernels for float32. */
#include "elementwise_driver.h"
#include "special_functions.h"

#define REAL float
#define FOR_FLOAT32
#define NAME(loop) loop##_float32
#include "elementwise_loops.h"
