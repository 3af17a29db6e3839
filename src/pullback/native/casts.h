/* Floats of 16 bits: which they are, and their way to float32 and back. */
#ifndef PULLBACK_CASTS_H
#define PULLBACK_CASTS_H

#include "kernel.h"

typedef enum { NO_FLOAT, SINGLE, WIDE, HALF, BRAIN } FloatKind;

/* SINGLE is float32; float64 is WIDE. */
FloatKind float_kind(const PyArray_Descr *descr);
/* `kind` is HALF or BRAIN. */
void widen_floats(FloatKind kind, const void *from, float *to, ptrdiff_t count);
void narrow_floats(FloatKind kind, const float *from, void *to, ptrdiff_t count);

#endif
