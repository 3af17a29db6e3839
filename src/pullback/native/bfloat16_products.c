/* Note [Products of bfloat16]
 *
 * Processors with AVX-512's instructions for bfloat16 multiply pairs of neighbours and add both products to a float32, which
 * is twice the work per instruction that float32 allows. Both matrices are copied in the order in which the inner loop
 * reads them: panels of ROWS rows of `a` and of COLUMNS columns of `b`, pair after pair along the depth. A tile of the
 * result then stays in registers over the whole depth, and is scaled, added to and rounded as it is stored.
 * Elsewhere kernels decline, and the references multiply in float32.
 */
#include "bfloat16_products.h"

#include <string.h>

#define ROWS 6
#define VECTORS 4
#define LANES 16
#define COLUMNS (VECTORS * LANES)
#define SHARE 262144 /* multiplications that are worth a thread */

static ptrdiff_t panels(ptrdiff_t lines, ptrdiff_t width) { return (lines + width - 1) / width; }

static ptrdiff_t pairs_of(const Bfloat16Product *p) { return (p->a.columns + 1) / 2; }

static size_t packed_rows(const Bfloat16Product *p)
{
    return (size_t)(panels(p->a.rows, ROWS) * pairs_of(p)) * ROWS * sizeof(uint32_t);
}

size_t product_workspace(const Bfloat16Product *p)
{
    return packed_rows(p) + (size_t)(panels(p->b.columns, COLUMNS) * pairs_of(p)) * COLUMNS * sizeof(uint32_t) + 128;
}

#ifdef HAS_INSTRUCTION_SETS

#include <immintrin.h>

#define WITH_BFLOAT16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

int multiplies_bfloat16(void)
{
    static int found = -1;
    if (found < 0)
        found = __builtin_cpu_supports("avx512bf16") != 0;
    return found && instruction_set() >= 4;
}

/* The lines of a matrix, rows or columns, to be copied in panels of so many. */
typedef struct {
    const uint16_t *data;
    ptrdiff_t count, depth, line_step, depth_step, width;
    uint32_t *packed;
} Lines;

static uint32_t pair_of(const uint16_t *first, ptrdiff_t step, int has_second)
{
    return *first | (has_second ? (uint32_t)first[step] << 16 : 0);
}

/* Lines that lie together along the depth: pairs are read as they are. */
static void pack_along(const Lines *lines, const uint16_t *from, ptrdiff_t count, uint32_t *to)
{
    ptrdiff_t whole = lines->depth / 2;
    for (ptrdiff_t line = 0; line < count; line++) {
        const uint16_t *source = from + line * lines->line_step;
        uint32_t *target = to + line;
        for (ptrdiff_t pair = 0; pair < whole; pair++, target += lines->width)
            memcpy(target, source + 2 * pair, sizeof *target);
        if (lines->depth % 2)
            *target = source[2 * whole];
    }
}

MULTIVERSIONED void interleave(const uint16_t *restrict first, const uint16_t *restrict second, ptrdiff_t count,
                               uint32_t *restrict to)
{
    for (ptrdiff_t i = 0; i < count; i++)
        to[i] = first[i] | (uint32_t)second[i] << 16;
}

/* Lines that lie side by side. */
static void pack_across(const Lines *lines, const uint16_t *from, ptrdiff_t count, uint32_t *to)
{
    ptrdiff_t step = lines->depth_step, whole = lines->depth / 2;
    for (ptrdiff_t pair = 0; pair < whole; pair++)
        interleave(from + 2 * pair * step, from + (2 * pair + 1) * step, count, to + pair * lines->width);
    if (lines->depth % 2)
        for (ptrdiff_t line = 0; line < count; line++)
            to[whole * lines->width + line] = from[2 * whole * step + line];
}

static void pack_any(const Lines *lines, const uint16_t *from, ptrdiff_t count, uint32_t *to)
{
    for (ptrdiff_t k = 0; k < lines->depth; k += 2)
        for (ptrdiff_t line = 0; line < count; line++)
            to[k / 2 * lines->width + line] = pair_of(from + line * lines->line_step + k * lines->depth_step,
                                                      lines->depth_step, k + 1 < lines->depth);
}

static void pack_panels(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Lines *lines = context;
    ptrdiff_t size = (lines->depth + 1) / 2 * lines->width;
    for (ptrdiff_t panel = begin; panel < end; panel++) {
        ptrdiff_t first = panel * lines->width, left = lines->count - first;
        ptrdiff_t count = left < lines->width ? left : lines->width;
        const uint16_t *from = lines->data + first * lines->line_step;
        uint32_t *to = lines->packed + panel * size;
        if (count < lines->width)
            memset(to, 0, (size_t)size * sizeof *to);
        (lines->depth_step == 1 ? pack_along : lines->line_step == 1 ? pack_across : pack_any)(lines, from, count, to);
    }
}

/* What one tile needs to be stored. */
typedef struct {
    const Bfloat16Product *product;
    ptrdiff_t row, column;
} Place;

WITH_BFLOAT16 INLINE __m512 widened(__m256i numbers)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(numbers), 16));
}

WITH_BFLOAT16 INLINE void store_vector(const Place *place, int row, int vector, __m512 sum)
{
    const Bfloat16Product *p = place->product;
    ptrdiff_t column = place->column + vector * LANES, left = p->b.columns - column;
    __mmask16 mask = left >= LANES ? 0xffff : (__mmask16)((1u << left) - 1);
    sum = _mm512_mul_ps(sum, _mm512_set1_ps(p->alpha));
    if (p->start) {
        const uint16_t *start = p->start + (place->row + row) * p->start_step + column;
        sum = _mm512_fmadd_ps(widened(_mm256_maskz_loadu_epi16(mask, start)), _mm512_set1_ps(p->beta), sum);
    }
    _mm256_mask_storeu_epi16(p->result + (place->row + row) * p->b.columns + column, mask,
                             (__m256i)_mm512_cvtneps_pbh(sum));
}

/* The sums of a tile of `rows` rows and `vectors` vectors: constants where this is called. */
WITH_BFLOAT16 INLINE void compute_tile(const uint32_t *a, const uint32_t *b, ptrdiff_t pairs, int rows, int vectors,
                                       const Place *place)
{
    __m512 sums[ROWS][VECTORS];
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            sums[i][j] = _mm512_setzero_ps();
    for (ptrdiff_t k = 0; k < pairs; k++, a += ROWS, b += COLUMNS) {
        __m512bh right[VECTORS];
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            right[j] = (__m512bh)_mm512_loadu_si512(b + j * LANES);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            __m512bh left = (__m512bh)_mm512_set1_epi32((int)a[i]);
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++)
                sums[i][j] = _mm512_dpbf16_ps(sums[i][j], left, right[j]);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            store_vector(place, i, j, sums[i][j]);
}

/* The same for any number of vectors, which are done as if they were one, two or four. */
WITH_BFLOAT16 INLINE void compute_rows(const uint32_t *a, const uint32_t *b, ptrdiff_t pairs, int rows, ptrdiff_t columns,
                                       const Place *place)
{
    if (columns > 3 * LANES)
        compute_tile(a, b, pairs, rows, 4, place);
    else if (columns > 2 * LANES)
        compute_tile(a, b, pairs, rows, 3, place);
    else if (columns > LANES)
        compute_tile(a, b, pairs, rows, 2, place);
    else
        compute_tile(a, b, pairs, rows, 1, place);
}

typedef struct {
    const Bfloat16Product *product;
    const uint32_t *a, *b;
} Tiles;

/* Panels of a symmetric product are longer to the right: taken from both ends in turn, neighbours are equal together. */
static ptrdiff_t panel_at(ptrdiff_t number, ptrdiff_t count, int is_symmetric)
{
    return !is_symmetric ? number : number % 2 ? count - 1 - number / 2 : number / 2;
}

WITH_BFLOAT16 static void compute_tiles(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Tiles *tiles = context;
    const Bfloat16Product *p = tiles->product;
    ptrdiff_t pairs = pairs_of(p), tall = panels(p->a.rows, ROWS), wide = panels(p->b.columns, COLUMNS);
    for (ptrdiff_t number = begin; number < end; number++) {
        ptrdiff_t right = panel_at(number / tall, wide, p->is_symmetric), left = number % tall;
        Place place = {p, left * ROWS, right * COLUMNS};
        if (p->is_symmetric && place.column + COLUMNS <= place.row)
            continue;
        const uint32_t *a = tiles->a + left * pairs * ROWS, *b = tiles->b + right * pairs * COLUMNS;
        ptrdiff_t rows = p->a.rows - place.row, columns = p->b.columns - place.column;
        switch (rows) {
        case 1: compute_rows(a, b, pairs, 1, columns, &place); break;
        case 2: compute_rows(a, b, pairs, 2, columns, &place); break;
        case 3: compute_rows(a, b, pairs, 3, columns, &place); break;
        case 4: compute_rows(a, b, pairs, 4, columns, &place); break;
        case 5: compute_rows(a, b, pairs, 5, columns, &place); break;
        default: compute_rows(a, b, pairs, 6, columns, &place);
        }
    }
}

/* Write a square of eight by eight transposed: interleaving the first with the second half, thrice, is all of it. */
static void transpose_square(const uint16_t *from, uint16_t *to, ptrdiff_t step)
{
    __m128i rows[8], woven[8];
    for (int i = 0; i < 8; i++)
        rows[i] = _mm_loadu_si128((const __m128i *)(const void *)(from + i * step));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) {
            woven[2 * i] = _mm_unpacklo_epi16(rows[i], rows[i + 4]);
            woven[2 * i + 1] = _mm_unpackhi_epi16(rows[i], rows[i + 4]);
        }
        memcpy(rows, woven, sizeof rows);
    }
    for (int i = 0; i < 8; i++)
        _mm_storeu_si128((__m128i *)(void *)(to + i * step), rows[i]);
}

/* Fill eight rows of the lower half of a symmetric result from the upper one. Tiles reached to the end of their panel. */
static void mirror(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Bfloat16Product *p = context;
    ptrdiff_t size = p->b.columns;
    for (ptrdiff_t row = begin * 8; row < end * 8 && row < size; row += 8) {
        ptrdiff_t computed = row / COLUMNS * COLUMNS, left = size - row;
        for (ptrdiff_t column = 0; column < computed; column += 8)
            if (left >= 8)
                transpose_square(p->result + column * size + row, p->result + row * size + column, size);
            else
                for (ptrdiff_t i = row; i < size; i++)
                    for (ptrdiff_t j = column; j < column + 8; j++)
                        p->result[i * size + j] = p->result[j * size + i];
    }
}

static void run_product(const Bfloat16Product *p, void *workspace, int in_threads)
{
    uint32_t *a = (uint32_t *)(((uintptr_t)workspace + 63) & ~(uintptr_t)63), *b = a + packed_rows(p) / sizeof *a;
    b = (uint32_t *)(((uintptr_t)b + 63) & ~(uintptr_t)63);
    Lines left = {(const uint16_t *)(const void *)p->a.data, p->a.rows, p->a.columns, p->a.row_step, p->a.column_step,
                  ROWS, a};
    Lines right = {(const uint16_t *)(const void *)p->b.data, p->b.columns, p->b.rows, p->b.column_step, p->b.row_step,
                   COLUMNS, b};
    Tiles tiles = {p, a, b};
    ptrdiff_t tall = panels(p->a.rows, ROWS), wide = panels(p->b.columns, COLUMNS);
    if (!in_threads) {
        pack_panels(&left, 0, tall);
        pack_panels(&right, 0, wide);
        compute_tiles(&tiles, 0, tall * wide);
        if (p->is_symmetric)
            mirror((void *)p, 0, panels(p->b.columns, 8));
        return;
    }
    run_blocks(tall, SHARE / 16 / (ROWS * p->a.columns) + 1, pack_panels, &left);
    run_blocks(wide, SHARE / 16 / (COLUMNS * p->a.columns) + 1, pack_panels, &right);
    run_blocks(tall * wide, SHARE / (ROWS * COLUMNS * p->a.columns) + 1, compute_tiles, &tiles);
    if (p->is_symmetric)
        run_blocks(panels(p->b.columns, 8), 64, mirror, (void *)p);
}

#else

int multiplies_bfloat16(void) { return 0; }

static void run_product(const Bfloat16Product *p, void *workspace, int in_threads)
{
    (void)p, (void)workspace, (void)in_threads;
}

#endif

void multiply_bfloat16(const Bfloat16Product *p, void *workspace) { run_product(p, workspace, 0); }

void multiply_bfloat16_in_threads(const Bfloat16Product *p, void *workspace) { run_product(p, workspace, 1); }
