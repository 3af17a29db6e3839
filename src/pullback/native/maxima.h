/* Maxima of pooling windows along a row, with their places, compiled for several instruction sets.
 *
 * Rows are long and loops short, so they are written with vectors: the compiler leaves branches in loops over single
 * numbers that choose both a maximum and its place, and these are guessed wrong half of the time.
 */
#ifndef PULLBACK_MAXIMA_H
#define PULLBACK_MAXIMA_H

#include <stddef.h>

#include "instruction_set.h"

typedef struct {
    /* For each of `count` windows: keep the window's number in `row` if it is larger, or NaN, and its place, which is
     * `first` plus its distance from the row's first number. Places are integers as wide as the numbers. */
    void (*keep_larger)(const void *row, ptrdiff_t stride, ptrdiff_t count, ptrdiff_t first, void *best, void *places);
    /* The same for windows of two by two side by side, of a row and the one `width` numbers further; nothing is kept
     * of what was before. */
    void (*keep_largest_of_four)(const void *row, ptrdiff_t width, ptrdiff_t count, ptrdiff_t first, void *best,
                                 void *places);
} MaximumLoops;

/* For float32 and for float64. */
extern const MaximumLoops maxima_base[2];
#ifdef HAS_INSTRUCTION_SETS
extern const MaximumLoops maxima_v3[2], maxima_v4[2];
#endif

static inline const MaximumLoops *maximum_loops(int is_double)
{
#ifdef HAS_INSTRUCTION_SETS
    int version = instruction_set();
    if (version > 1)
        return version == 4 ? &maxima_v4[is_double] : &maxima_v3[is_double];
#endif
    return &maxima_base[is_double];
}

#endif
