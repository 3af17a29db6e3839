/* The words of an MT19937 engine, and the uniform numbers that PyTorch makes of them. */
#ifndef PULLBACK_MT19937_H
#define PULLBACK_MT19937_H

#include <stdint.h>

#include "kernel.h"

#define STATE_WORDS 624
#define MIDDLE_WORD 397

#if defined(__GNUC__) && !defined(__clang__)
#define VECTORISED_BY_GCC _Pragma("GCC ivdep")
#else
#define VECTORISED_BY_GCC
#endif

INLINE uint32_t twisted(uint32_t high, uint32_t low)
{
    uint32_t both = (high & 0x80000000u) | (low & 0x7fffffffu);
    return (both >> 1) ^ (-(both & 1) & 0x9908b0dfu);
}

/* Matsumoto and Nishimura's recurrence; a word depends on one that is at least 227 places before it. */
MULTIVERSIONED static void twist(uint32_t *state)
{
    VECTORISED_BY_GCC
    for (int i = 0; i < STATE_WORDS - MIDDLE_WORD; i++)
        state[i] = state[i + MIDDLE_WORD] ^ twisted(state[i], state[i + 1]);
    for (int begin = STATE_WORDS - MIDDLE_WORD; begin < STATE_WORDS - 1;) {
        int end = begin + STATE_WORDS - MIDDLE_WORD < STATE_WORDS - 1 ? begin + STATE_WORDS - MIDDLE_WORD : STATE_WORDS - 1;
        VECTORISED_BY_GCC
        for (int i = begin; i < end; i++)
            state[i] = state[i + MIDDLE_WORD - STATE_WORDS] ^ twisted(state[i], state[i + 1]);
        begin = end;
    }
    state[STATE_WORDS - 1] = state[MIDDLE_WORD - 1] ^ twisted(state[STATE_WORDS - 1], state[0]);
}

MULTIVERSIONED static void temper(const uint32_t *state, uint32_t *words, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        uint32_t y = state[i];
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c5680u;
        y ^= (y << 15) & 0xefc60000u;
        words[i] = y ^ (y >> 18);
    }
}

static void draw_words(uint32_t *engine, uint32_t *words, ptrdiff_t count)
{
    while (count > 0) {
        if (engine[STATE_WORDS] >= STATE_WORDS) {
            twist(engine);
            engine[STATE_WORDS] = 0;
        }
        ptrdiff_t left = STATE_WORDS - engine[STATE_WORDS], some = count < left ? count : left;
        temper(engine + engine[STATE_WORDS], words, some);
        engine[STATE_WORDS] += (uint32_t)some;
        words += some;
        count -= some;
    }
}

/* Two words of 32 bits make one of 64, the high one first. */
INLINE uint64_t joined(const uint32_t *words, ptrdiff_t i) { return (uint64_t)words[2 * i] << 32 | words[2 * i + 1]; }

INLINE double uniform_of(const uint32_t *words, ptrdiff_t i)
{
    return (double)(int64_t)(joined(words, i) & 0x1fffffffffffffull) * 0x1p-53;
}

INLINE float single_uniform_of(const uint32_t *words, ptrdiff_t i)
{
    return (float)(int32_t)(words[i] & 0xffffffu) * 0x1p-24f;
}

#endif
