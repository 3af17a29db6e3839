/* Factorizations and triangular systems of one matrix, for one type of number; included by for_each_real.h. */

#define PART 16 /* sums side by side in a dot product */

INLINE REAL TYPED(dot)(const REAL *a, const REAL *b, ptrdiff_t count)
{
    REAL parts[PART] = {0}, rest = 0;
    ptrdiff_t i = 0;
    for (; i + PART <= count; i += PART)
        for (int j = 0; j < PART; j++)
            parts[j] += a[i + j] * b[i + j];
    for (; i < count; i++)
        rest += a[i] * b[i];
    if (count >= PART) {
        for (int half = PART / 2; half; half /= 2)
            for (int j = 0; j < half; j++)
                parts[j] += parts[j + half];
        rest += parts[0];
    }
    return rest;
}

INLINE void TYPED(subtract)(REAL *to, const REAL *from, REAL factor, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++)
        to[i] -= factor * from[i];
}

/* Overwrite the vector x by the solution of a triangular system: by dot products where rows of A lie together, else by
 * columns. */
INLINE void TYPED(substitute)(const Triangle *t, const REAL *a, REAL *x)
{
    ptrdiff_t n = t->size, row = t->row_step, column = t->column_step;
    for (ptrdiff_t step = 0; step < n; step++) {
        ptrdiff_t i = t->upper ? n - 1 - step : step;
        const REAL *diagonal = a + i * (row + column);
        if (column == 1) {
            x[i] -= t->upper ? TYPED(dot)(diagonal + 1, x + i + 1, n - 1 - i) : TYPED(dot)(a + i * row, x, i);
            if (!t->unit)
                x[i] /= *diagonal;
            continue;
        }
        if (!t->unit)
            x[i] /= *diagonal;
        if (t->upper)
            TYPED(subtract)(x, a + i * column, x[i], i);
        else
            TYPED(subtract)(x + i + 1, diagonal + 1, x[i], n - 1 - i);
    }
}

/* The same for LANES right-hand sides at once, whose elements lie side by side: x is [size][LANES]. */
INLINE void TYPED(substitute_side_by_side)(const Triangle *t, const REAL *a, REAL *x)
{
    ptrdiff_t n = t->size, row = t->row_step, column = t->column_step;
    for (ptrdiff_t step = 0; step < n; step++) {
        ptrdiff_t i = t->upper ? n - 1 - step : step, stop = t->upper ? n : i;
        REAL sums[LANES], *to = x + i * LANES;
        for (int lane = 0; lane < LANES; lane++)
            sums[lane] = to[lane];
        for (ptrdiff_t k = t->upper ? i + 1 : 0; k < stop; k++) {
            REAL factor = a[i * row + k * column];
            for (int lane = 0; lane < LANES; lane++)
                sums[lane] -= factor * x[k * LANES + lane];
        }
        REAL divisor = t->unit ? 1 : a[i * (row + column)];
        for (int lane = 0; lane < LANES; lane++)
            to[lane] = sums[lane] / divisor;
    }
}

/* Put vectors side by side into `room`, or back. */
INLINE void TYPED(exchange)(REAL *vectors, ptrdiff_t count, ptrdiff_t size, REAL *room, int is_back)
{
    for (ptrdiff_t c = 0; c < count; c++)
        for (ptrdiff_t r = 0; r < size; r++)
            if (is_back)
                vectors[c * size + r] = room[r * LANES + c];
            else
                room[r * LANES + c] = vectors[c * size + r];
}

/* Solve one triangular system, or one after the other with the same matrix, for some vectors that lie together. */
INLINE void TYPED(substitute_some)(const Triangle *t, int systems, const REAL *a, REAL *vectors, ptrdiff_t count)
{
    ptrdiff_t n = t->size;
    if (count < FEW_SIDES || n > LARGEST) {
        for (ptrdiff_t c = 0; c < count; c++)
            for (int i = 0; i < systems; i++)
                TYPED(substitute)(t + i, a, vectors + c * n);
        return;
    }
    REAL room[LARGEST * LANES];
    memset(room, 0, (size_t)(n * LANES) * sizeof(REAL));
    for (; count > 0; count -= LANES, vectors += LANES * n) {
        ptrdiff_t some = count < LANES ? count : LANES;
        TYPED(exchange)(vectors, some, n, room, 0);
        for (int i = 0; i < systems; i++)
            TYPED(substitute_side_by_side)(t + i, a, room);
        TYPED(exchange)(vectors, some, n, room, 1);
    }
}

/* Items are matrices, or right-hand sides where a matrix has few of them; a system, or two one after the other. */
MULTIVERSIONED static void TYPED(substitute_all)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Triangle *t = context;
    for (ptrdiff_t item = begin; item < end; item++)
        TYPED(substitute_some)(t, t->systems, (const REAL *)t->matrices + item * t->matrix_step,
                               (REAL *)t->solutions + item * t->sides * t->size, t->sides);
}

/* The row whose element of a column is the largest: the first of equal ones. A NaN is none unless it comes first. */
INLINE ptrdiff_t TYPED(find_pivot)(const REAL *a, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t column)
{
    ptrdiff_t best = column;
    REAL most = 0;
    for (ptrdiff_t i = column; i < rows; i++) {
        REAL size = a[i * step + column];
        size = size < 0 ? -size : size;
        if (size > most || i == column) {
            most = size;
            best = i;
        }
    }
    return best;
}

/* Factorize a row-major matrix in place; the position of the first zero on the diagonal, counted from 1. */
INLINE int TYPED(factorize)(REAL *a, ptrdiff_t rows, ptrdiff_t columns, int32_t *pivots)
{
    int info = 0;
    ptrdiff_t length = rows < columns ? rows : columns;
    for (ptrdiff_t c = 0; c < length; c++) {
        ptrdiff_t pivot = TYPED(find_pivot)(a, rows, columns, c);
        REAL *row = a + c * columns, *other = a + pivot * columns;
        pivots[c] = (int32_t)pivot + 1;
        for (ptrdiff_t j = 0; pivot != c && j < columns; j++) {
            REAL former = row[j];
            row[j] = other[j];
            other[j] = former;
        }
        if (row[c] == 0 && !info)
            info = (int)c + 1;
        REAL divisor = row[c] == 0 ? 1 : row[c];
        for (ptrdiff_t i = c + 1; i < rows; i++) {
            REAL *below = a + i * columns;
            below[c] /= divisor;
            TYPED(subtract)(below + c + 1, row + c + 1, below[c], columns - c - 1);
        }
    }
    return info;
}

MULTIVERSIONED static void TYPED(factorize_all)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Factorization *f = context;
    ptrdiff_t length = f->rows < f->columns ? f->rows : f->columns;
    for (ptrdiff_t i = begin; i < end; i++)
        f->info[i] = TYPED(factorize)((REAL *)f->matrices + i * f->rows * f->columns, f->rows, f->columns,
                                      f->pivots + i * length);
}

/* The determinants of matrices that were factorized. */
static void TYPED(find_determinants)(const Factorization *f, ptrdiff_t count, void *result)
{
    ptrdiff_t n = f->rows;
    for (ptrdiff_t i = 0; i < count; i++) {
        const REAL *a = (const REAL *)f->matrices + i * n * n;
        double product = 1; /* pivots of very different sizes need not overflow */
        int is_odd = 0;
        for (ptrdiff_t c = 0; c < n; c++) {
            product *= a[c * (n + 1)];
            is_odd ^= f->pivots[i * n + c] != c + 1;
        }
        ((REAL *)result)[i] = (REAL)(is_odd ? -product : product);
    }
}

/* The lower factor of a symmetric matrix of which the lower triangle is read, row-major; 0 where it is not positive. */
INLINE int TYPED(factorize_symmetric)(const REAL *a, ptrdiff_t n, ptrdiff_t row_step, ptrdiff_t column_step, REAL *lower)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        REAL *row = lower + i * n;
        for (ptrdiff_t j = 0; j <= i; j++) {
            REAL rest = a[i * row_step + j * column_step] - TYPED(dot)(row, lower + j * n, j);
            if (j < i)
                row[j] = rest / lower[j * (n + 1)];
            else if (rest > 0)
                row[j] = SQUARE_ROOT(rest);
            else
                return 0;
        }
        for (ptrdiff_t j = i + 1; j < n; j++)
            row[j] = 0;
    }
    return 1;
}

/* Items are matrices. The results hold rows of the lower factor, or with `by_columns` its columns, one after the other. */
MULTIVERSIONED static void TYPED(factorize_symmetric_all)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    Factorization *f = context;
    ptrdiff_t n = f->rows;
    for (ptrdiff_t i = begin; i < end; i++) {
        const REAL *a = (const REAL *)f->symmetric + i * n * n;
        REAL *to = (REAL *)f->matrices + i * n * n;
        if (!TYPED(factorize_symmetric)(a, n, f->row_step, f->column_step, to))
            f->failed = 1;
        for (ptrdiff_t r = 0; r < n && f->by_columns; r++)
            for (ptrdiff_t c = 0; c < r; c++) {
                to[c * n + r] = to[r * n + c];
                to[r * n + c] = 0;
            }
    }
}

/* Solve by factors: right-hand sides are vectors that lie together, whose rows are exchanged as pivots say. */
MULTIVERSIONED static void TYPED(solve_all)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Factorization *f = context;
    ptrdiff_t n = f->rows;
    Triangle factors[2] = {{.size = n, .row_step = n, .column_step = 1, .unit = 1},
                           {.size = n, .row_step = n, .column_step = 1, .upper = 1}};
    for (ptrdiff_t i = begin; i < end; i++) {
        const int32_t *pivots = f->pivots + i * n;
        REAL *vectors = (REAL *)f->solutions + i * f->sides * n;
        for (REAL *x = vectors; x < vectors + f->sides * n; x += n)
            for (ptrdiff_t r = 0; r < n; r++) {
                REAL former = x[r];
                x[r] = x[pivots[r] - 1];
                x[pivots[r] - 1] = former;
            }
        TYPED(substitute_some)(factors, 2, (const REAL *)f->matrices + i * n * n, vectors, f->sides);
    }
}
#undef PART
