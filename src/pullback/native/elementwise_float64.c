/* The loops of the elementwise kernels for float64. */
#include "elementwise_driver.h"
#include "special_functions.h"

#define REAL double
#define NAME(loop) loop##_float64
#include "elementwise_loops.h"
