/* Maxima along rows for one dtype and one instruction set; see maxima.h.
 *
 * To be included with REAL, BITS (an integer of its size), NAME, VECTOR_BYTES and LANES (numbers of a vector, as digits).
 */
#ifdef HAS_VECTORS
typedef REAL NAME(Numbers) __attribute__((vector_size(VECTOR_BYTES)));
typedef BITS NAME(Places) __attribute__((vector_size(VECTOR_BYTES)));
typedef REAL NAME(LooseNumbers) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));
typedef BITS NAME(LoosePlaces) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

#define EVEN_2 0, 2
#define EVEN_4 EVEN_2, 4, 6
#define EVEN_8 EVEN_4, 8, 10, 12, 14
#define EVEN_16 EVEN_8, 16, 18, 20, 22, 24, 26, 28, 30
#define NUMBERS_2 0, 1
#define NUMBERS_4 NUMBERS_2, 2, 3
#define NUMBERS_8 NUMBERS_4, 4, 5, 6, 7
#define NUMBERS_16 NUMBERS_8, 8, 9, 10, 11, 12, 13, 14, 15
#define JOINED_(first, second) first##second
#define JOINED(first, second) JOINED_(first, second)

/* Numbers and where they lie: the compiler leaves branches in the loop over single numbers, and they are guessed wrong
 * half of the time. */
typedef struct {
    NAME(Numbers) values;
    NAME(Places) places;
} NAME(Candidates);

INLINE NAME(Numbers) NAME(load_numbers)(const REAL *place) { return *(const NAME(LooseNumbers) *)place; }

INLINE NAME(Candidates) NAME(load_candidates)(const REAL *row, int stride, BITS place)
{
    NAME(Places) numbers = {JOINED(NUMBERS_, LANES)};
    NAME(Numbers) values = NAME(load_numbers)(row);
    if (stride == 2)
        values = __builtin_shufflevector(values, NAME(load_numbers)(row + LANES), JOINED(EVEN_, LANES));
    return (NAME(Candidates)){values, place + numbers * stride};
}

/* The second where it is larger or NaN. */
INLINE NAME(Candidates) NAME(larger_of)(NAME(Candidates) first, NAME(Candidates) second)
{
    NAME(Places) wins = (second.values > first.values) | (second.values != second.values);
    NAME(Places) chosen = ((NAME(Places))second.values & wins) | ((NAME(Places))first.values & ~wins);
    return (NAME(Candidates)){(NAME(Numbers))chosen, (second.places & wins) | (first.places & ~wins)};
}

INLINE void NAME(store_candidates)(NAME(Candidates) from, REAL *best, BITS *places)
{
    *(NAME(LooseNumbers) *)best = from.values;
    *(NAME(LoosePlaces) *)places = from.places;
}

/* Whole vectors of a pass; how many windows that are. The last vector of stride 2 reads one number beyond its own. */
INLINE ptrdiff_t NAME(keep_larger_vectors)(const REAL *row, int stride, ptrdiff_t count, BITS place,
                                            REAL *best, BITS *places)
{
    ptrdiff_t i = 0;
    for (; i + LANES + stride - 1 <= count; i += LANES) {
        NAME(Candidates) old = {NAME(load_numbers)(best + i), *(const NAME(LoosePlaces) *)(places + i)};
        NAME(Candidates) new = NAME(load_candidates)(row + i * stride, stride, place + (BITS)i * stride);
        NAME(store_candidates)(NAME(larger_of)(old, new), best + i, places + i);
    }
    return i;
}

/* The commonest windows, two by two and side by side. */
INLINE ptrdiff_t NAME(largest_of_four_vectors)(const REAL *row, ptrdiff_t width, ptrdiff_t count, BITS place,
                                            REAL *best, BITS *places)
{
    ptrdiff_t i = 0;
    BITS down = (BITS)width;
    for (; i + LANES < count; i += LANES) {
        BITS at = place + (BITS)i * 2;
        NAME(Candidates) upper = NAME(larger_of)(NAME(load_candidates)(row + 2 * i, 2, at),
                                                   NAME(load_candidates)(row + 2 * i + 1, 2, at + 1));
        const REAL *next = row + width + 2 * i;
        NAME(Candidates) lower = NAME(larger_of)(NAME(load_candidates)(next, 2, at + down),
                                                   NAME(load_candidates)(next + 1, 2, at + down + 1));
        NAME(store_candidates)(NAME(larger_of)(upper, lower), best + i, places + i);
    }
    return i;
}

#endif

/* Keep the larger number, NaN being larger than any, and where it lies. */
static void NAME(keep_larger)(const void *numbers, ptrdiff_t stride, ptrdiff_t count, ptrdiff_t first, void *maxima,
                              void *their_places)
{
    const REAL *row = numbers;
    REAL *best = maxima;
    BITS place = (BITS)first, *places = their_places;
    ptrdiff_t i = 0;
#ifdef HAS_VECTORS
    if (stride == 1)
        i = NAME(keep_larger_vectors)(row, 1, count, place, best, places);
    else if (stride == 2)
        i = NAME(keep_larger_vectors)(row, 2, count, place, best, places);
#endif
    for (; i < count; i++) {
        REAL value = row[i * stride];
        int wins = (value > best[i]) | (value != value);
        best[i] = wins ? value : best[i];
        places[i] = wins ? place + (BITS)(i * stride) : places[i];
    }
}

/* Windows of two by two, side by side: `width` lies between the rows. */
static void NAME(keep_largest_of_four)(const void *numbers, ptrdiff_t width, ptrdiff_t count, ptrdiff_t first,
                                       void *maxima, void *their_places)
{
    const REAL *row = numbers;
    REAL *best = maxima;
    BITS place = (BITS)first, *places = their_places;
    ptrdiff_t i = 0;
#ifdef HAS_VECTORS
    i = NAME(largest_of_four_vectors)(row, width, count, place, best, places);
#endif
    for (; i < count; i++) {
        const ptrdiff_t offsets[] = {2 * i, 2 * i + 1, width + 2 * i, width + 2 * i + 1};
        best[i] = row[offsets[0]];
        places[i] = place + (BITS)offsets[0];
        for (int k = 1; k < 4; k++) {
            REAL value = row[offsets[k]];
            int wins = (value > best[i]) | (value != value);
            best[i] = wins ? value : best[i];
            places[i] = wins ? place + (BITS)offsets[k] : places[i];
        }
    }
}

#ifdef HAS_VECTORS
#undef EVEN_2
#undef EVEN_4
#undef EVEN_8
#undef EVEN_16
#undef NUMBERS_2
#undef NUMBERS_4
#undef NUMBERS_8
#undef NUMBERS_16
#undef JOINED_
#undef JOINED
#endif
