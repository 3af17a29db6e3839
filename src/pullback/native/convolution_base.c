/* Convolutions for any processor. */
#include "convolution.h"

#define VECTOR_BYTES 16
#define MOST_CHANNELS 4
#define NAMED(word) word##_base
#include "convolution_types.h"
