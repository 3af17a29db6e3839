/* How the loops of row_loops.h go over rows, columns and whole arrays, for one type of number; see row_kernels.c. */

/* gcc unrolls loops of up to 16 turns before it makes vectors, which it then often fails to. */
#undef LANES
#define LANES 32
#if defined(__GNUC__) && !defined(__clang__)
#define KEEP_ROLLED _Pragma("GCC unroll 1")
#else
#define KEEP_ROLLED
#endif
#define EACH_LANE(...)                                                                                                 \
    if (width == 8) {                                                                                                  \
        KEEP_ROLLED                                                                                                    \
        for (ptrdiff_t j = 0; j < width; j++) { __VA_ARGS__ }                                                          \
    } else                                                                                                             \
        for (ptrdiff_t j = 0; j < width; j++) { __VA_ARGS__ }

/* Lanes joined to one number: 1, 8 or LANES of them. */
#define OF_LANES(name, type, join)                                                                                     \
    INLINE double name(const type *lanes, ptrdiff_t width)                                                             \
    {                                                                                                                  \
        type eight[8];                                                                                                 \
        if (width == 1)                                                                                                \
            return lanes[0];                                                                                           \
        for (int j = 0; j < 8; j++)                                                                                    \
            eight[j] = lanes[j];                                                                                       \
        for (ptrdiff_t i = 8; i < width; i += 8) {                                                                     \
            KEEP_ROLLED                                                                                                \
            for (int j = 0; j < 8; j++)                                                                                \
                eight[j] = join(eight[j], lanes[i + j]);                                                               \
        }                                                                                                              \
        double four[4];                                                                                                \
        for (int j = 0; j < 4; j++)                                                                                    \
            four[j] = join((double)eight[j], (double)eight[j + 4]);                                                    \
        return join(join(four[0], four[2]), join(four[1], four[3]));                                                   \
    }
#define ADDED(a, b) ((a) + (b))
#define MULTIPLIED(a, b) ((a) * (b))
#define LARGER(a, b) ((b) > (a) ? (b) : (a))
OF_LANES(TYPED(sum_of_lanes), REAL, ADDED)
OF_LANES(TYPED(maximum_of_lanes), REAL, LARGER)
#if REAL_IS_FLOAT
OF_LANES(wide_product_of_lanes, double, MULTIPLIED)
OF_LANES(wide_sum_of_lanes, double, ADDED)
#endif
#undef OF_LANES
#undef ADDED
#undef MULTIPLIED
#undef LARGER

/* The maximum with a number that is not NaN: one instruction, where NaN stays. */
INLINE REAL TYPED(at_least)(REAL value, REAL bound) { return value < bound ? bound : value; }

/* Of numbers up to zero, and infinity. */
#define EXPONENTIAL_OR_INFINITY(x) ((x) > 40 ? (REAL)INFINITY : EXPONENTIAL(x))

/* Short rows are turned: LANES of them side by side as columns, the last ones filled up with zeros, so that what a row
 * gives does not depend on the rows beside it. */
INLINE void TYPED(turn)(const RowLoop *loop, ptrdiff_t row, ptrdiff_t number, ptrdiff_t width, REAL (*room)[LANES * LANES],
                        RowLoop *turned)
{
    ptrdiff_t count = loop->layout.count;
    *turned = *loop;
    for (int i = 0; i < MOST_OPERANDS && loop->operands[i]; i++) {
        ptrdiff_t size = loop->of_rows >> i & 1 ? 1 : count;
        const REAL *from = (const REAL *)loop->operands[i] + row * size;
        for (ptrdiff_t k = 0; number < width && k < size; k++)
            for (ptrdiff_t r = number; r < width; r++)
                room[i][k * LANES + r] = 0;
        for (ptrdiff_t r = 0; r < number; r++)
            for (ptrdiff_t k = 0; k < size; k++)
                room[i][k * LANES + r] = from[r * size + k];
        turned->operands[i] = room[i];
    }
    turned->results[0] = room[MOST_OPERANDS];
}

INLINE void TYPED(turn_back)(const RowLoop *loop, ptrdiff_t row, ptrdiff_t number, const REAL *from)
{
    ptrdiff_t size = loop->gives_rows ? 1 : loop->layout.count;
    REAL *output = (REAL *)loop->results[0] + row * size;
    for (ptrdiff_t r = 0; r < number; r++)
        for (ptrdiff_t k = 0; k < size; k++)
            output[r * size + k] = from[k * LANES + r];
}

/* Items are rows, or groups of LANES columns where the dimension is not the last. Rows shorter than `turned_below`, which
 * is a constant, are turned. */
#define ROW_LOOP(name, turned_below)                                                                                   \
    MULTIVERSIONED static void TYPED(name)(void *context, ptrdiff_t begin, ptrdiff_t end)                              \
    {                                                                                                                  \
        RowLoop *loop = context, turned;                                                                               \
        ptrdiff_t count = loop->layout.count, inner = loop->layout.inner, groups = (inner + LANES - 1) / LANES;        \
        const int is_turned = inner == 1 && count < (turned_below);                                                    \
        for (ptrdiff_t row = begin; inner == 1 && !is_turned && row < end; row++)                                      \
            if ((turned_below) == LANES || count >= LANES)                                                             \
                TYPED(name##_run)(loop, row * count, row, count, 1, LANES, 0);                                         \
            else if ((turned_below) || count >= 8)                                                                     \
                TYPED(name##_run)(loop, row * count, row, count, 1, 8, 0);                                             \
            else                                                                                                       \
                TYPED(name##_run)(loop, row * count, row, count, 1, 1, 0);                                             \
        for (ptrdiff_t item = begin; (inner > 1 || is_turned) && item < end; item += is_turned ? LANES : 1) {          \
            REAL room[MOST_OPERANDS + 1][LANES * LANES];                                                               \
            ptrdiff_t outer = item / groups, column = item % groups * LANES, number = end - item < LANES ? end - item : LANES;\
            ptrdiff_t start = (outer * count * inner + column) * !is_turned, row = (outer * inner + column) * !is_turned;\
            ptrdiff_t width = !is_turned ? inner - column : number <= 8 ? 8 : LANES, stride = is_turned ? LANES : inner;\
            RowLoop *at = is_turned ? &turned : loop;                                                                  \
            if (is_turned)                                                                                             \
                TYPED(turn)(loop, item, number, width, room, &turned);                                                 \
            if (width >= LANES)                                                                                        \
                TYPED(name##_run)(at, start, row, count, stride, LANES, 1);                                            \
            else                                                                                                       \
                TYPED(name##_run)(at, start, row, count, stride, width, 1);                                            \
            if (is_turned)                                                                                             \
                TYPED(turn_back)(loop, item, number, room[(turned_below) ? MOST_OPERANDS : 0]);                        \
        }                                                                                                              \
    }

/* Items are elements of a whole array. */
#define ROW_LOOP_PLAIN(name)                                                                                           \
    MULTIVERSIONED static void TYPED(name)(void *context, ptrdiff_t begin, ptrdiff_t end)                              \
    {                                                                                                                  \
        TYPED(name##_run)(context, begin, 0, end - begin, 1, 1, 0);                                                    \
    }

/* Items are elements, or parts, of a whole array. */
#define ROW_LOOP_WHOLE(name, part_size)                                                                                \
    MULTIVERSIONED static void TYPED(name)(void *context, ptrdiff_t begin, ptrdiff_t end)                              \
    {                                                                                                                  \
        RowLoop *loop = context;                                                                                       \
        for (ptrdiff_t part = begin; part < end; part += part_size == 1 ? end - begin : 1) {                           \
            ptrdiff_t left = part_size == 1 ? end - begin : loop->layout.count - part * part_size;                     \
            ptrdiff_t count = part_size == 1 || left < part_size ? left : part_size;                                   \
            if (count >= LANES)                                                                                        \
                TYPED(name##_run)(loop, part * part_size, part, count, 1, LANES, 0);                                   \
            else                                                                                                       \
                TYPED(name##_run)(loop, part * part_size, part, count, 1, 1, 0);                                       \
        }                                                                                                              \
    }

#include "row_loops.h"

#undef EXPONENTIAL_OR_INFINITY
#undef KEEP_ROLLED
#undef EACH_LANE
#undef ROW_LOOP
#undef ROW_LOOP_PLAIN
#undef ROW_LOOP_WHOLE
