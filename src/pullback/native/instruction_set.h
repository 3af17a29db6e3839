/* Which instruction sets loops are compiled for that are written with vectors, and which the processor has.
 *
 * Loops that the compiler vectorises itself are marked MULTIVERSIONED instead; vectors have to be compiled for their
 * instruction set as a whole, in a file of its own (as convolution_v4.c), or they are taken apart before inlining.
 */
#ifndef PULLBACK_INSTRUCTION_SET_H
#define PULLBACK_INSTRUCTION_SET_H

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define HAS_INSTRUCTION_SETS 1

/* 4 for x86-64-v4 (AVX-512), 3 for x86-64-v3 (AVX2), 1 for neither. */
static inline int instruction_set(void)
{
    static int version = 0;
    if (!version) {
        __builtin_cpu_init();
        int has_v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
        int has_v4 = has_v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
        version = has_v4 ? 4 : has_v3 ? 3 : 1;
    }
    return version;
}
#endif

#endif
