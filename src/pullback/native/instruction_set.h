/* Which instruction sets loops are compiled for that are written with vectors, and which the processor has.
 *
 * Loops that the compiler vectorises itself are marked MULTIVERSIONED instead; vectors have to be compiled for their
 * instruction set as a whole, in a file of its own (as convolution_v4.c), or they are taken apart before inlining.
 */
#ifndef PULLBACK_INSTRUCTION_SET_H
#define PULLBACK_INSTRUCTION_SET_H

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define HAS_INSTRUCTION_SETS 1
#endif

/* 4 for x86-64-v4 (AVX-512), 3 for x86-64-v3 (AVX2), 1 for neither: the best that is compiled and that there is. */
int instruction_set(void);

/* The best of these that the processor has, compiled or not. */
int processor_instruction_set(void);

/* Use none above `widest` from now on, as on a processor that has none: for tests. */
void limit_instruction_set(int widest);

#endif
