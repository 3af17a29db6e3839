/* Products of matrices in memory: small ones by own loops, since a call of NumPy and of BLAS costs more than they do, and large
 * ones by the BLAS that NumPy uses, with the bias put into the result beforehand. See Note [BLAS of NumPy] in blas.c.
 */
#include "products.h"

#include "blas.h"
#include "instruction_set.h"

#if defined(__GNUC__)

/* Vectors are passed between inlined functions only. */
#pragma GCC diagnostic ignored "-Wpsabi"

#define STRIP 512 /* columns whose sums are kept in the first-level cache */
#define VECTOR_BYTES 64
#define DEEPEST 256 /* of the inner dimension at a time: a panel of b fills half of a first-level cache */

#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a < b)){__VA_ARGS__})
#endif

typedef float Short_single __attribute__((vector_size(16)));
typedef double Short_double __attribute__((vector_size(16)));

INLINE void exchange_single(Short_single *rows)
{
    Short_single low_01 = SHUFFLE(rows[0], rows[1], 0, 4, 1, 5), high_01 = SHUFFLE(rows[0], rows[1], 2, 6, 3, 7);
    Short_single low_23 = SHUFFLE(rows[2], rows[3], 0, 4, 1, 5), high_23 = SHUFFLE(rows[2], rows[3], 2, 6, 3, 7);
    rows[0] = SHUFFLE(low_01, low_23, 0, 1, 4, 5);
    rows[1] = SHUFFLE(low_01, low_23, 2, 3, 6, 7);
    rows[2] = SHUFFLE(high_01, high_23, 0, 1, 4, 5);
    rows[3] = SHUFFLE(high_01, high_23, 2, 3, 6, 7);
}

INLINE void exchange_double(Short_double *rows)
{
    Short_double first = SHUFFLE(rows[0], rows[1], 0, 2);
    rows[1] = SHUFFLE(rows[0], rows[1], 1, 3);
    rows[0] = first;
}

#define REAL float
#define NAME(x) x##_single
#include "product_loops.h"
#undef REAL
#undef NAME
#define REAL double
#define NAME(x) x##_double
#include "product_loops.h"
#undef REAL
#undef NAME

#define MOST_NUMBERS (1L << 16) /* of a at a time, so that they stay in a second-level cache */
#define PACKED_WORK (1L << 23)  /* work from which packing is repaid ... */
#define PACKED_STEP 1024        /* ... where neighbours in the order of reading are so many bytes apart */
#define THREAD_WORK (1L << 19)  /* the least for one thread */
#define DOT_ROWS 4              /* up to here dot products are faster than packing */
#define ANY_STRIDES 4096        /* work up to which any layout is served */

/* Work up to which own loops are preferred to BLAS. With vectors of 64 bytes they were as fast or faster at every size
 * tried (0.85 to 0.97 of the time of MKL and of OpenBLAS from 16x256x128 up to 256x1024x1024); with shorter ones the
 * registers do not hold a large tile. */
static ptrdiff_t small_work(void)
{
    return instruction_set() == 4 ? 1L << 31 : 1L << 17;
}

static int has_large_tiles(void) { return small_work() > 1L << 17; }

static Way own_way(const Product *p, ptrdiff_t work)
{
    int is_plain = p->b.column_step == 1, is_transposed = p->b.row_step == 1;
    if (!is_plain && is_transposed && p->a.column_step == 1 && p->a.rows <= DOT_ROWS && p->a.columns > 16)
        return BY_DOTS;
    if (is_plain || is_transposed)
        return work <= small_work() ? BY_ROWS : NO_WAY;
    return work <= ANY_STRIDES ? BY_ROWS : NO_WAY;
}

/* A step between rows that BLAS accepts, of a matrix that is plain; 0 where it is not. */
static ptrdiff_t plain_step(const Matrix *m)
{
    if (m->column_step != 1 && m->columns != 1)
        return 0;
    if (m->rows == 1)
        return m->columns;
    return m->row_step >= m->columns && m->row_step > 0 ? m->row_step : 0;
}

static int fits_blas(const Matrix *m)
{
    Matrix other = transposed(*m);
    return plain_step(m) || plain_step(&other);
}

Way way_of(const Product *p)
{
    ptrdiff_t work = p->a.rows * p->b.columns * p->a.columns;
    Way own = own_way(p, work);
    if (own != NO_WAY || !has_blas() || !work)
        return work || own != NO_WAY ? own : BY_ROWS;
    return fits_blas(&p->a) && fits_blas(&p->b) ? BY_BLAS : NO_WAY;
}

Way way_without_blas(const Product *p) { return own_way(p, p->a.rows * p->b.columns * p->a.columns); }

static void copy_start(const Product *p)
{
    size_t bytes = p->b.columns * (p->wide ? sizeof(double) : sizeof(float)), item = p->wide ? 8 : 4;
    for (ptrdiff_t row = 0; row < p->a.rows; row++)
        memcpy(p->result + row * p->result_step * item, p->start + row * p->start_step * item, bytes);
}

static void multiply_by_blas(const Product *p)
{
    ptrdiff_t a_step = plain_step(&p->a), b_step = plain_step(&p->b);
    Matrix a_other = transposed(p->a), b_other = transposed(p->b);
    if (p->start && p->start != p->result)
        copy_start(p);
    blas_multiply(p->wide, !a_step, !b_step, p->a.rows, p->b.columns, p->a.columns, p->a.data,
                  a_step ? a_step : plain_step(&a_other), p->b.data, b_step ? b_step : plain_step(&b_other),
                  p->start != NULL, p->result, p->result_step);
}

/* Some of the panels, for rows and inner dimensions that fit the caches. */
static void multiply_part(const Product *p, void *packed, ptrdiff_t begin, ptrdiff_t end)
{
    int large = has_large_tiles();
    if (p->wide) {
        if (packed)
            pack_rows_double(&p->a, packed);
        multiply_by_rows_double(p, packed, large, begin, end);
    } else {
        if (packed)
            pack_rows_single(&p->a, packed);
        multiply_by_rows_single(p, packed, large, begin, end);
    }
}

static int repays_packing(const Product *p, ptrdiff_t item)
{
    int is_far = (p->a.row_step == 1 && p->a.column_step * item >= PACKED_STEP) ||
                 (p->b.column_step == 1 && p->b.row_step * item >= PACKED_STEP);
    return is_far && p->a.rows * p->a.columns * p->b.columns > PACKED_WORK;
}

/* By rows: DEEPEST of the inner dimension at a time, and as many rows as stay in the cache: for each such block a transposed
 * panel is packed anew. */
static void multiply_panels(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Product *p = context;
    ptrdiff_t depth = p->a.columns, rows = p->a.rows, item = p->wide ? sizeof(double) : sizeof(float), done = 0;
    void *packed = repays_packing(p, item) ? malloc((MOST_NUMBERS + 8 * DEEPEST) * item) : NULL;
    do {
        ptrdiff_t deep = depth - done < DEEPEST ? depth - done : DEEPEST;
        ptrdiff_t most = MOST_NUMBERS / (deep > 0 ? deep : 1) / 8 * 8;
        for (ptrdiff_t row = 0; row < rows; row += most) {
            Product part = *p;
            part.a.rows = rows - row < most ? rows - row : most;
            part.a.columns = part.b.rows = deep;
            part.a.data += (done * p->a.column_step + row * p->a.row_step) * item;
            part.b.data += done * p->b.row_step * item;
            part.result += row * p->result_step * item;
            part.start = done ? part.result : p->start ? p->start + row * p->start_step * item : NULL;
            part.start_step = done ? p->result_step : p->start_step;
            multiply_part(&part, packed, begin, end);
        }
        done += deep;
    } while (done < depth);
    free(packed);
}

static ptrdiff_t panels_of(const Product *p)
{
    ptrdiff_t lanes = VECTOR_BYTES / (p->wide ? sizeof(double) : sizeof(float));
    return (p->b.columns + lanes - 1) / lanes;
}

void multiply(const Product *p, Way way)
{
    if (way == BY_BLAS)
        multiply_by_blas(p);
    else if (way == BY_DOTS)
        p->wide ? multiply_by_dots_double(p) : multiply_by_dots_single(p);
    else
        multiply_panels((void *)p, 0, panels_of(p));
}

/* Eight rows of the result are an item. */
static void multiply_row_groups(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    Product part = *(const Product *)context;
    ptrdiff_t item = part.wide ? sizeof(double) : sizeof(float), rows = part.a.rows;
    part.a.rows = (end * 8 < rows ? end * 8 : rows) - begin * 8;
    part.a.data += begin * 8 * part.a.row_step * item;
    part.result += begin * 8 * part.result_step * item;
    if (part.start)
        part.start += begin * 8 * part.start_step * item;
    multiply_panels(&part, 0, panels_of(&part));
}

void multiply_in_threads(const Product *p, Way way)
{
    if (way != BY_ROWS) {
        multiply(p, way);
        return;
    }
    ptrdiff_t work = p->a.rows * p->b.columns * p->a.columns, groups = (p->a.rows + 7) / 8, panels = panels_of(p);
    int by_rows = groups >= panels;
    ptrdiff_t items = by_rows ? groups : panels;
    run_blocks(items, items * THREAD_WORK / (work + 1) + 1, by_rows ? multiply_row_groups : multiply_panels, (void *)p);
}

void transpose(const Matrix *m, char *to, ptrdiff_t step, int wide)
{
    if (wide)
        transpose_double(m, (double *)to, step);
    else
        transpose_single(m, (float *)to, step);
}

double dot_of(const char *a, const char *b, ptrdiff_t count, int wide)
{
    return wide ? dot_double((const double *)a, (const double *)b, count)
                : dot_single((const float *)a, (const float *)b, count);
}

typedef struct {
    const Matrix *matrix;
    char *result;
    int wide;
} ColumnSums;

#define COLUMN_GROUP 64

static void add_some_columns(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const ColumnSums *s = context;
    const Matrix *m = s->matrix;
    end = end * COLUMN_GROUP < m->columns ? end * COLUMN_GROUP : m->columns;
    if (s->wide)
        add_rows_double((const double *)m->data, m->rows, m->row_step, begin * COLUMN_GROUP, end, (double *)s->result);
    else
        add_rows_single((const float *)m->data, m->rows, m->row_step, begin * COLUMN_GROUP, end, (float *)s->result);
}

void add_rows(const Matrix *m, char *result, int wide)
{
    ColumnSums sums = {m, result, wide};
    ptrdiff_t groups = (m->columns + COLUMN_GROUP - 1) / COLUMN_GROUP;
    run_blocks(groups, 65536 / (m->rows * COLUMN_GROUP + 1) + 1, add_some_columns, &sums);
}

#endif
