/* The loops of the elementwise kernels for float32. */
#include "elementwise_driver.h"
#include "functions.h"

#define REAL float
#define NAME(loop) loop##_float32
#include "elementwise_loops.h"
