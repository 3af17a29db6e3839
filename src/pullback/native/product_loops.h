/* Products of small matrices, for one floating-point type: REAL, with NAME(x) making names of their own for it.
 *
 * Two ways: sums of rows (a tile of up to eight rows by one or two panels of LANES columns is kept in registers while the
 * inner dimension runs) and, where the second matrix is transposed and the inner dimension long, dot products (four rows by
 * four columns, LANES partial sums each). Every element's sum depends on its own row and column alone.
 */

#define LANES ((ptrdiff_t)(VECTOR_BYTES / sizeof(REAL)))

typedef REAL NAME(Vector) __attribute__((vector_size(VECTOR_BYTES)));

#define SQUARE ((int)(16 / sizeof(REAL)))

INLINE NAME(Vector) NAME(load)(const REAL *from)
{
    NAME(Vector) vector;
    memcpy(&vector, from, sizeof vector);
    return vector;
}

INLINE NAME(Vector) NAME(load_part)(const REAL *from, ptrdiff_t count)
{
    REAL values[VECTOR_BYTES / sizeof(REAL)] = {0};
    for (ptrdiff_t i = 0; i < count; i++)
        values[i] = from[i];
    return NAME(load)(values);
}

/* SQUARE rows of SQUARE numbers (16 bytes) with rows and columns exchanged. */
INLINE void NAME(transpose_square)(const REAL *from, ptrdiff_t from_step, REAL *to, ptrdiff_t to_step)
{
    NAME(Short) rows[SQUARE];
    for (int i = 0; i < SQUARE; i++)
        memcpy(&rows[i], from + i * from_step, sizeof rows[i]);
    NAME(exchange)(rows);
    for (int i = 0; i < SQUARE; i++)
        memcpy(to + i * to_step, &rows[i], sizeof rows[i]);
}

MULTIVERSIONED static void NAME(transpose)(const Matrix *m, REAL *to, ptrdiff_t to_step)
{
    const REAL *from = (const REAL *)m->data;
    ptrdiff_t rows = m->rows / SQUARE * SQUARE, columns = m->columns / SQUARE * SQUARE;
    for (ptrdiff_t column = 0; column < columns; column += SQUARE)
        for (ptrdiff_t row = 0; row < rows; row += SQUARE)
            NAME(transpose_square)(from + row * m->row_step + column, m->row_step, to + column * to_step + row, to_step);
    for (ptrdiff_t row = 0; row < m->rows; row++)
        for (ptrdiff_t column = row < rows ? columns : 0; column < m->columns; column++)
            to[column * to_step + row] = from[row * m->row_step + column];
}

INLINE void NAME(store)(REAL *to, const NAME(Vector) *vector, ptrdiff_t count)
{
    if (count == LANES)
        memcpy(to, vector, sizeof *vector);
    else
        for (ptrdiff_t i = 0; i < count; i++)
            to[i] = (*vector)[i];
}

/* `count` columns of the result (up to LANES), `rows` rows: start + a @ panel. Packed rows lie in groups of eight. */
INLINE void NAME(tile)(int rows, const Product *p, const REAL *packed, ptrdiff_t row, ptrdiff_t column, ptrdiff_t count,
                       const REAL *panel, ptrdiff_t panel_step)
{
    NAME(Vector) sums[8];
    ptrdiff_t depth = p->a.columns, row_step = packed ? 1 : p->a.row_step, step = packed ? 8 : p->a.column_step;
    const REAL *a = packed ? packed + row / 8 * 8 * depth + row % 8 : (const REAL *)p->a.data + row * row_step;
    /* The rows of a large result are not in the caches, and too far apart for the processor to foresee them. */
    for (int r = 0; r < rows; r++)
        __builtin_prefetch((REAL *)p->result + (row + r) * p->result_step + column, 1);
    for (int r = 0; r < rows; r++)
        sums[r] = (NAME(Vector)){0};
    for (ptrdiff_t k = 0; k < depth; k++, a += step, panel += panel_step) {
        NAME(Vector) right = NAME(load)(panel);
        for (int r = 0; r < rows; r++)
            sums[r] += a[r * row_step] * right;
    }
    REAL *result = (REAL *)p->result + row * p->result_step + column;
    for (int r = 0; r < rows; r++, result += p->result_step) {
        if (p->start) {
            const REAL *start = (const REAL *)p->start + (row + r) * p->start_step + column;
            sums[r] += count == LANES ? NAME(load)(start) : NAME(load_part)(start, count);
        }
        NAME(store)(result, &sums[r], count);
    }
}

/* Eight rows by two panels, `apart` numbers from each other: a number of a that was read serves both, without which
 * processors that multiply two vectors at a time mostly wait for reads. */
INLINE void NAME(double_tile)(const Product *p, const REAL *packed, ptrdiff_t row, ptrdiff_t column, const REAL *panel,
                              ptrdiff_t panel_step, ptrdiff_t apart)
{
    NAME(Vector) sums[8][2];
    ptrdiff_t depth = p->a.columns, row_step = packed ? 1 : p->a.row_step, step = packed ? 8 : p->a.column_step;
    const REAL *a = packed ? packed + row * depth : (const REAL *)p->a.data + row * row_step;
    for (int r = 0; r < 8; r++) {
        __builtin_prefetch((REAL *)p->result + (row + r) * p->result_step + column, 1);
        __builtin_prefetch((REAL *)p->result + (row + r) * p->result_step + column + LANES, 1);
    }
    for (int r = 0; r < 8; r++)
        sums[r][0] = sums[r][1] = (NAME(Vector)){0};
    for (ptrdiff_t k = 0; k < depth; k++, a += step, panel += panel_step) {
        NAME(Vector) left = NAME(load)(panel), right = NAME(load)(panel + apart);
        for (int r = 0; r < 8; r++) {
            sums[r][0] += a[r * row_step] * left;
            sums[r][1] += a[r * row_step] * right;
        }
    }
    for (int r = 0; r < 8; r++)
        for (int v = 0; v < 2; v++) {
            ptrdiff_t place = column + v * LANES;
            if (p->start)
                sums[r][v] += NAME(load)((const REAL *)p->start + (row + r) * p->start_step + place);
            NAME(store)((REAL *)p->result + (row + r) * p->result_step + place, &sums[r][v], LANES);
        }
}

/* One or two rows by four neighbouring panels: one panel alone would wait for each of its sums. */
INLINE void NAME(wide_tile)(int rows, const Product *p, ptrdiff_t row, ptrdiff_t column)
{
    NAME(Vector) sums[2][4];
    const REAL *a = (const REAL *)p->a.data + row * p->a.row_step, *panel = (const REAL *)p->b.data + column;
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < 4; v++)
            sums[r][v] = (NAME(Vector)){0};
    for (ptrdiff_t k = 0; k < p->a.columns; k++, a += p->a.column_step, panel += p->b.row_step)
        for (int v = 0; v < 4; v++) {
            NAME(Vector) right = NAME(load)(panel + v * LANES);
            for (int r = 0; r < rows; r++)
                sums[r][v] += a[r * p->a.row_step] * right;
        }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < 4; v++) {
            ptrdiff_t place = column + v * LANES;
            if (p->start)
                sums[r][v] += NAME(load)((const REAL *)p->start + (row + r) * p->start_step + place);
            NAME(store)((REAL *)p->result + (row + r) * p->result_step + place, &sums[r][v], LANES);
        }
}

/* The columns from `column` on of b as rows of LANES numbers, zeros where there are fewer. */
INLINE void NAME(pack)(const Matrix *b, ptrdiff_t column, ptrdiff_t count, REAL *panel)
{
    const REAL *from = (const REAL *)b->data + column * b->column_step;
    ptrdiff_t depth = b->rows, k = 0;
    if (count < LANES)
        memset(panel, 0, depth * VECTOR_BYTES);
    if (b->row_step == 1 && count == LANES)
        for (; k + SQUARE <= depth; k += SQUARE)
            for (ptrdiff_t j = 0; j < LANES; j += SQUARE)
                NAME(transpose_square)(from + j * b->column_step + k, b->column_step, panel + k * LANES + j, LANES);
    if (b->column_step == 1 && count == LANES)
        for (; k < depth; k++)
            memcpy(panel + k * LANES, from + k * b->row_step, VECTOR_BYTES);
    for (; k < depth; k++)
        for (ptrdiff_t j = 0; j < count; j++)
            panel[k * LANES + j] = from[k * b->row_step + j * b->column_step];
}

/* The rows of a in groups of eight, the eight numbers of each column together: what a tile reads in its order. */
MULTIVERSIONED static void NAME(pack_rows)(const Matrix *a, REAL *packed)
{
    for (ptrdiff_t row = 0; row < a->rows; row += 8, packed += 8 * a->columns) {
        const REAL *from = (const REAL *)a->data + row * a->row_step;
        ptrdiff_t count = a->rows - row < 8 ? a->rows - row : 8, k = 0;
        if (a->column_step == 1 && count == 8)
            for (; k + SQUARE <= a->columns; k += SQUARE)
                for (int r = 0; r < 8; r += SQUARE)
                    NAME(transpose_square)(from + r * a->row_step + k, a->row_step, packed + k * 8 + r, 8);
        if (a->row_step == 1 && count == 8)
            for (; k < a->columns; k++)
                memcpy(packed + k * 8, from + k * a->column_step, 8 * sizeof(REAL));
        for (; k < a->columns; k++)
            for (ptrdiff_t r = 0; r < count; r++)
                packed[k * 8 + r] = from[r * a->row_step + k * a->column_step];
    }
}

/* The rows from `row` on by one panel, in tiles of four and less. */
INLINE void NAME(some_rows)(const Product *p, const REAL *packed, ptrdiff_t row, ptrdiff_t column, ptrdiff_t count,
                            const REAL *panel, ptrdiff_t panel_step)
{
    ptrdiff_t rows = p->a.rows;
    for (; row + 4 <= rows; row += 4)
        NAME(tile)(4, p, packed, row, column, count, panel, panel_step);
    if (rows - row >= 2) {
        NAME(tile)(2, p, packed, row, column, count, panel, panel_step);
        row += 2;
    }
    if (row < rows)
        NAME(tile)(1, p, packed, row, column, count, panel, panel_step);
}

/* The panels of LANES columns from `begin` up to `end`; `packed` rows of a may be NULL; `large` tiles are of 8 rows. */
MULTIVERSIONED static void NAME(multiply_by_rows)(const Product *p, const REAL *packed, int large, ptrdiff_t begin,
                                                   ptrdiff_t end)
{
    REAL columns_packed[2 * DEEPEST * (VECTOR_BYTES / sizeof(REAL))];
    ptrdiff_t rows = p->a.rows, columns = p->b.columns, wide = begin * LANES;
    int is_wide = rows < 4 && p->b.column_step == 1 && !packed;
    for (; is_wide && wide + 4 * LANES <= columns && wide + 4 * LANES <= end * LANES; wide += 4 * LANES) {
        if (rows > 1)
            NAME(wide_tile)(2, p, 0, wide);
        if (rows % 2)
            NAME(wide_tile)(1, p, rows - 1, wide);
    }
    ptrdiff_t deep = p->b.rows, next;
    for (ptrdiff_t column = wide; column < columns && column < end * LANES; column = next) {
        ptrdiff_t count = columns - column < LANES ? columns - column : LANES;
        int are_two = large && rows >= 8 && columns - column >= 2 * LANES && end * LANES - column >= 2 * LANES;
        const REAL *panel = (const REAL *)p->b.data + column;
        ptrdiff_t panel_step = p->b.row_step, apart = LANES, row = 0;
        next = column + (are_two ? 2 : 1) * LANES;
        if (count < LANES || p->b.column_step != 1 || packed) {
            NAME(pack)(&p->b, column, count, columns_packed);
            panel = columns_packed;
            panel_step = LANES;
            apart = deep * LANES;
            if (are_two)
                NAME(pack)(&p->b, column + LANES, LANES, columns_packed + apart);
        }
        if (are_two) {
            for (; row + 8 <= rows; row += 8)
                NAME(double_tile)(p, packed, row, column, panel, panel_step, apart);
            NAME(some_rows)(p, packed, row, column + LANES, LANES, panel + apart, panel_step);
        } else {
            for (; large && row + 8 <= rows; row += 8)
                NAME(tile)(8, p, packed, row, column, count, panel, panel_step);
        }
        NAME(some_rows)(p, packed, row, column, count, panel, panel_step);
    }
}

/* The lanes of four vectors added up: first four neighbours at a time, then these, as the shape of a tree. */
INLINE void NAME(add_lanes)(const NAME(Vector) *vectors, int count, REAL *sums)
{
    for (int v = 0; v < count; v++) {
        NAME(Short) parts[4];
        memcpy(parts, &vectors[v], sizeof parts);
        parts[0] = (parts[0] + parts[1]) + (parts[2] + parts[3]);
        sums[v] = parts[0][0] + parts[0][1];
        if (SQUARE == 4)
            sums[v] += parts[0][SQUARE - 2] + parts[0][SQUARE - 1];
    }
}

/* Four sums side by side, since each addition waits for the one before. */
INLINE REAL NAME(sum_of_products)(const REAL *a, const REAL *b, ptrdiff_t count)
{
    NAME(Vector) sums[4] = {{0}};
    ptrdiff_t i = 0;
    for (; i + 4 * LANES <= count; i += 4 * LANES)
        for (int part = 0; part < 4; part++)
            sums[part] += NAME(load)(a + i + part * LANES) * NAME(load)(b + i + part * LANES);
    for (; i + LANES <= count; i += LANES)
        sums[0] += NAME(load)(a + i) * NAME(load)(b + i);
    if (i < count)
        sums[1] += NAME(load_part)(a + i, count - i) * NAME(load_part)(b + i, count - i);
    sums[0] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    REAL total;
    NAME(add_lanes)(sums, 1, &total);
    return total;
}

/* clang lets no function that names a target call one that returns vectors, inlined or not. */
MULTIVERSIONED static REAL NAME(dot)(const REAL *a, const REAL *b, ptrdiff_t count)
{
    return NAME(sum_of_products)(a, b, count);
}

/* start + a @ b for up to four rows and columns, where rows of a and columns of b lie together. */
INLINE void NAME(dots)(int rows, int columns, const Product *p, ptrdiff_t row, ptrdiff_t column)
{
    NAME(Vector) sums[4][4];
    const REAL *a = (const REAL *)p->a.data + row * p->a.row_step;
    const REAL *b = (const REAL *)p->b.data + column * p->b.column_step;
    ptrdiff_t depth = p->a.columns, k = 0;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++)
            sums[r][c] = (NAME(Vector)){0};
    for (; k + LANES <= depth; k += LANES) {
        NAME(Vector) right[4];
        for (int c = 0; c < columns; c++)
            right[c] = NAME(load)(b + c * p->b.column_step + k);
        for (int r = 0; r < rows; r++) {
            NAME(Vector) left = NAME(load)(a + r * p->a.row_step + k);
            for (int c = 0; c < columns; c++)
                sums[r][c] += left * right[c];
        }
    }
    if (k < depth) {
        NAME(Vector) right[4];
        for (int c = 0; c < columns; c++)
            right[c] = NAME(load_part)(b + c * p->b.column_step + k, depth - k);
        for (int r = 0; r < rows; r++) {
            NAME(Vector) left = NAME(load_part)(a + r * p->a.row_step + k, depth - k);
            for (int c = 0; c < columns; c++)
                sums[r][c] += left * right[c];
        }
    }
    for (int r = 0; r < rows; r++) {
        const REAL *start = p->start ? (const REAL *)p->start + (row + r) * p->start_step + column : NULL;
        REAL *result = (REAL *)p->result + (row + r) * p->result_step + column;
        REAL added[4];
        NAME(add_lanes)(sums[r], columns, added);
        for (int c = 0; c < columns; c++)
            result[c] = start ? added[c] + start[c] : added[c];
    }
}

MULTIVERSIONED static void NAME(multiply_by_dots)(const Product *p)
{
    ptrdiff_t rows = p->a.rows, columns = p->b.columns, column = 0;
    for (; column + 4 <= columns; column += 4) {
        ptrdiff_t row = 0;
        for (; row + 4 <= rows; row += 4)
            NAME(dots)(4, 4, p, row, column);
        for (; row < rows; row++)
            NAME(dots)(1, 4, p, row, column);
    }
    for (; column < columns; column++)
        for (ptrdiff_t row = 0; row < rows; row++)
            NAME(dots)(1, 1, p, row, column);
}

/* The sums of the columns from `begin` to `end` of a matrix whose rows lie together, read row by row; in blocks of rows,
 * so that errors do not pile up. */
MULTIVERSIONED static void NAME(add_rows)(const REAL *from, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t begin,
                                          ptrdiff_t end, REAL *to)
{
    for (ptrdiff_t column = begin; column < end; column += STRIP) {
        ptrdiff_t count = end - column < STRIP ? end - column : STRIP;
        REAL total[STRIP] = {0}, part[STRIP];
        for (ptrdiff_t row = 0; row < rows; row += 64) {
            ptrdiff_t stop = rows - row < 64 ? rows : row + 64, r = row;
            memset(part, 0, count * sizeof(REAL));
            for (; r + 4 <= stop; r += 4) {
                const REAL *a = from + r * step + column, *b = a + step, *c = b + step, *d = c + step;
                for (ptrdiff_t j = 0; j < count; j++)
                    part[j] += (a[j] + b[j]) + (c[j] + d[j]);
            }
            for (; r < stop; r++)
                for (ptrdiff_t j = 0; j < count; j++)
                    part[j] += from[r * step + column + j];
            for (ptrdiff_t j = 0; j < count; j++)
                total[j] += part[j];
        }
        memcpy(to + column, total, count * sizeof(REAL));
    }
}

#undef LANES
#undef SQUARE
