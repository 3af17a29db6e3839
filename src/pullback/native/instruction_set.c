/* Which instruction set the processor has; see instruction_set.h. */
#include "instruction_set.h"

static int most_wanted = 4;

int processor_instruction_set(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
        return 1;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")
               ? 4
               : 3;
#else
    return 1;
#endif
}

int instruction_set(void)
{
#ifdef HAS_INSTRUCTION_SETS
    static int found = 0;
    if (!found)
        found = processor_instruction_set();
    return found < most_wanted ? found : most_wanted;
#else
    return 1;
#endif
}

void limit_instruction_set(int widest) { most_wanted = widest; }
