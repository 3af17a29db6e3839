/* Softmax, log_softmax, logsumexp and their gradients, for one type of number; see for_each_real.h.
 *
 * The maximum is found without regard to NaN: a NaN makes the sum of exponentials NaN, and with it the whole row.
 */

/* Rows: the lanes run along the row. */

INLINE REAL TYPED(row_top)(const REAL *row, ptrdiff_t count)
{
    REAL lanes[LANES], padded[LANES];
    TYPED(fill_lanes)(lanes, -INFINITY);
    ptrdiff_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int j = 0; j < LANES; j++)
            lanes[j] = row[i + j] > lanes[j] ? row[i + j] : lanes[j];
    if (i < count) {
        const REAL *last = row + count - LANES;
        if (!i) {
            TYPED(pad)(padded, row, count, -INFINITY);
            last = padded;
        }
        for (int j = 0; j < LANES; j++)
            lanes[j] = last[j] > lanes[j] ? last[j] : lanes[j];
    }
    return TYPED(largest_of)(lanes);
}

/* Add the exponentials of `width` shifted numbers to the lanes, but for the first `taken`; keep them in `output` where that
 * is given. */
INLINE void TYPED(add_exponentials)(const REAL *input, REAL *output, REAL shift, REAL *lanes, int width, REAL taken)
{
    for (int j = 0; j < width; j++) {
        REAL value = EXPONENTIAL(input[j] - shift);
        if (output)
            output[j] = value;
        lanes[j] += j >= taken ? value : 0;
    }
}

/* The sum of exp(row - shift), which are kept in `output` where that is given. */
INLINE double TYPED(sum_exponentials)(const REAL *restrict row, REAL *restrict output, ptrdiff_t count, REAL shift)
{
    double total = 0;
    ptrdiff_t whole = count - count % LANES;
    for (ptrdiff_t start = 0; start < whole; start += CHUNK) {
        REAL lanes[LANES] = {0};
        ptrdiff_t end = start + CHUNK < whole ? start + CHUNK : whole;
        for (ptrdiff_t i = start; i < end; i += LANES)
            TYPED(add_exponentials)(row + i, output ? output + i : NULL, shift, lanes, LANES, 0);
        total += TYPED(total_of)(lanes);
    }
    if (whole && whole < count) { /* the last numbers, some once more, without adding those that have been */
        REAL lanes[LANES] = {0};
        int width = count - whole <= LANES / 2 ? LANES / 2 : LANES;
        ptrdiff_t last = count - width;
        if (width == LANES)
            TYPED(add_exponentials)(row + last, output ? output + last : NULL, shift, lanes, LANES, (REAL)(whole - last));
        else
            TYPED(add_exponentials)(row + last, output ? output + last : NULL, shift, lanes, LANES / 2, (REAL)(whole - last));
        total += TYPED(total_of)(lanes);
    } else if (whole < count) {
        REAL lanes[LANES] = {0}, padded[LANES];
        TYPED(pad)(padded, row, count, -INFINITY);
        TYPED(add_exponentials)(padded, padded, shift, lanes, LANES, 0);
        if (output)
            TYPED(copy_rest)(output, padded, count);
        total += TYPED(total_of)(lanes);
    }
    return total;
}

INLINE void TYPED(softmax_row)(const REAL *restrict row, REAL *restrict output, ptrdiff_t count)
{
    double total = TYPED(sum_exponentials)(row, output, count, TYPED(row_top)(row, count));
    REAL factor = (REAL)(1 / total);
    for (ptrdiff_t i = 0; i < count; i++)
        output[i] *= factor;
}

INLINE void TYPED(log_softmax_row)(const REAL *restrict row, REAL *restrict output, ptrdiff_t count)
{
    REAL top = TYPED(row_top)(row, count);
    REAL shift = (REAL)log(TYPED(sum_exponentials)(row, NULL, count, top));
    for (ptrdiff_t i = 0; i < count; i++)
        output[i] = (row[i] - top) - shift;
}

INLINE REAL TYPED(logsumexp_row)(const REAL *row, ptrdiff_t count)
{
    REAL top = TYPED(row_top)(row, count);
    if (top == (REAL)INFINITY) {
        ptrdiff_t i = 0;
        while (i < count && row[i] == row[i])
            i++;
        return i < count ? row[i] : top;
    }
    if (top == (REAL)-INFINITY) /* the sum of unshifted exponentials is 0, or NaN if there is a NaN */
        top = 0;
    return (REAL)(log(TYPED(sum_exponentials)(row, NULL, count, top)) + top);
}

/* The sum of first * second, or of first alone. */
INLINE double TYPED(row_product)(const REAL *restrict first, const REAL *restrict second, ptrdiff_t count)
{
    double total = 0;
    ptrdiff_t whole = count - count % LANES;
    if (!whole) {
        REAL eight[8] = {0};
        ptrdiff_t i = 0;
        for (; i + 8 <= count; i += 8)
            for (int j = 0; j < 8; j++)
                eight[j] += second ? first[i + j] * second[i + j] : first[i + j];
        for (; i < count; i++)
            total += second ? (double)first[i] * second[i] : first[i];
        return total + (((double)eight[0] + eight[4]) + ((double)eight[2] + eight[6])) +
               (((double)eight[1] + eight[5]) + ((double)eight[3] + eight[7]));
    }
    for (ptrdiff_t start = 0; start < whole; start += CHUNK) {
        REAL lanes[LANES] = {0};
        ptrdiff_t end = start + CHUNK < whole ? start + CHUNK : whole;
        for (ptrdiff_t i = start; i < end; i += LANES)
            for (int j = 0; j < LANES; j++)
                lanes[j] += second ? first[i + j] * second[i + j] : first[i + j];
        total += TYPED(total_of)(lanes);
    }
    if (whole && whole < count) {
        REAL lanes[LANES];
        ptrdiff_t last = count - LANES;
        for (int j = 0; j < LANES; j++) {
            REAL value = second ? first[last + j] * second[last + j] : first[last + j];
            lanes[j] = j >= (REAL)(whole - last) ? value : 0;
        }
        return total + TYPED(total_of)(lanes);
    }
    for (ptrdiff_t i = whole; i < count; i++)
        total += second ? (double)first[i] * second[i] : first[i];
    return total;
}

INLINE void TYPED(softmax_grad_row)(const REAL *restrict grad, const REAL *restrict result, REAL *restrict output,
                                    ptrdiff_t count)
{
    REAL total = (REAL)TYPED(row_product)(grad, result, count);
    for (ptrdiff_t i = 0; i < count; i++)
        output[i] = (grad[i] - total) * result[i];
}

INLINE void TYPED(log_softmax_grad_row)(const REAL *restrict grad, const REAL *restrict result, REAL *restrict output,
                                        ptrdiff_t count)
{
    REAL total = (REAL)TYPED(row_product)(grad, NULL, count), padded[LANES];
    ptrdiff_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int j = 0; j < LANES; j++)
            output[i + j] = grad[i + j] - EXPONENTIAL(result[i + j]) * total;
    if (i && i < count) { /* the last numbers, some once more */
        if (count - i > LANES / 2)
            for (int j = 0; j < LANES / 2; j++)
                output[i + j] = grad[i + j] - EXPONENTIAL(result[i + j]) * total;
        i = count - LANES / 2;
        for (int j = 0; j < LANES / 2; j++)
            output[i + j] = grad[i + j] - EXPONENTIAL(result[i + j]) * total;
    } else if (i < count) {
        TYPED(pad)(padded, result, count, 0);
        for (int j = 0; j < LANES; j++)
            padded[j] = EXPONENTIAL(padded[j]);
        for (ptrdiff_t j = 0; j < count; j++)
            output[j] = grad[j] - padded[j] * total;
    }
}

/* Columns: the lanes are neighbouring columns, and the loop goes down them; `width` is LANES but for the last ones. What
 * is added up in a block meets the total once, so that errors grow slowly with the count. */
#define BLOCK_OF_COLUMN 256

INLINE void TYPED(column_tops)(const REAL *input, ptrdiff_t count, ptrdiff_t stride, int width, REAL *top)
{
    TYPED(fill_lanes)(top, -INFINITY);
    for (ptrdiff_t k = 0; k < count; k++)
        for (int j = 0; j < width; j++)
            top[j] = input[k * stride + j] > top[j] ? input[k * stride + j] : top[j];
}

INLINE void TYPED(softmax_columns)(const REAL *restrict input, REAL *restrict output, ptrdiff_t count, ptrdiff_t stride,
                                   int width, int logarithm)
{
    REAL top[LANES], total[LANES] = {0};
    TYPED(column_tops)(input, count, stride, width, top);
    for (ptrdiff_t start = 0; start < count; start += BLOCK_OF_COLUMN) {
        ptrdiff_t end = start + BLOCK_OF_COLUMN < count ? start + BLOCK_OF_COLUMN : count;
        REAL partial[LANES] = {0};
        for (ptrdiff_t k = start; k < end; k++)
            for (int j = 0; j < width; j++) {
                REAL value = EXPONENTIAL(input[k * stride + j] - top[j]);
                if (!logarithm)
                    output[k * stride + j] = value;
                partial[j] += value;
            }
        for (int j = 0; j < width; j++)
            total[j] += partial[j];
    }
    for (int j = 0; j < width; j++)
        total[j] = logarithm ? log_of(total[j]) : 1 / total[j];
    for (ptrdiff_t k = 0; k < count; k++)
        for (int j = 0; j < width; j++) {
            ptrdiff_t at = k * stride + j;
            output[at] = logarithm ? (input[at] - top[j]) - total[j] : output[at] * total[j];
        }
}

INLINE void TYPED(softmax_grad_columns)(const REAL *restrict grad, const REAL *restrict result, REAL *restrict output,
                                        ptrdiff_t count, ptrdiff_t stride, int width, int logarithm)
{
    REAL total[LANES] = {0};
    for (ptrdiff_t start = 0; start < count; start += BLOCK_OF_COLUMN) {
        ptrdiff_t end = start + BLOCK_OF_COLUMN < count ? start + BLOCK_OF_COLUMN : count;
        REAL partial[LANES] = {0};
        for (ptrdiff_t k = start; k < end; k++)
            for (int j = 0; j < width; j++) {
                ptrdiff_t at = k * stride + j;
                partial[j] += logarithm ? grad[at] : grad[at] * result[at];
            }
        for (int j = 0; j < width; j++)
            total[j] += partial[j];
    }
    for (ptrdiff_t k = 0; k < count; k++)
        for (int j = 0; j < width; j++) {
            ptrdiff_t at = k * stride + j;
            output[at] = logarithm ? grad[at] - EXPONENTIAL(result[at]) * total[j] : (grad[at] - total[j]) * result[at];
        }
}

/* Short rows: LANES of them side by side as columns, the last ones filled up with zeros, so that what a row gives does not
 * depend on the rows beside it. */

INLINE void TYPED(turn)(const REAL *restrict rows, ptrdiff_t number, ptrdiff_t count, REAL *restrict columns)
{
    for (ptrdiff_t i = 0; number < LANES && i < count * LANES; i++)
        columns[i] = 0;
    for (ptrdiff_t row = 0; row < number; row++)
        for (ptrdiff_t k = 0; k < count; k++)
            columns[k * LANES + row] = rows[row * count + k];
}

INLINE void TYPED(short_rows)(const SoftmaxLoop *loop, ptrdiff_t start, ptrdiff_t number)
{
    ptrdiff_t count = loop->layout.count;
    REAL columns[LANES * LANES], turned[LANES * LANES], *output = (REAL *)loop->output + start * count;
    TYPED(turn)((const REAL *)loop->first + start * count, number, count, columns);
    if (loop->operation == SOFTMAX)
        TYPED(softmax_columns)(columns, turned, count, LANES, LANES, 0);
    else
        TYPED(softmax_columns)(columns, turned, count, LANES, LANES, 1);
    for (ptrdiff_t row = 0; row < number; row++)
        for (ptrdiff_t k = 0; k < count; k++)
            output[row * count + k] = turned[k * LANES + row];
}

/* The loops that the kernels run: items are rows, or groups of LANES columns where the dimension is not the last. */

MULTIVERSIONED static void TYPED(softmax_rows)(const SoftmaxLoop *loop, ptrdiff_t begin, ptrdiff_t end)
{
    ptrdiff_t count = loop->layout.count;
    const REAL *first = loop->first, *second = loop->second;
    REAL *output = loop->output;
    if (count < LANES && (loop->operation == SOFTMAX || loop->operation == LOG_SOFTMAX)) {
        for (ptrdiff_t row = begin; row < end; row += LANES)
            TYPED(short_rows)(loop, row, end - row < LANES ? end - row : LANES);
        return;
    }
    for (ptrdiff_t row = begin; row < end; row++)
        switch (loop->operation) {
        case SOFTMAX: TYPED(softmax_row)(first + row * count, output + row * count, count); break;
        case LOG_SOFTMAX: TYPED(log_softmax_row)(first + row * count, output + row * count, count); break;
        case LOGSUMEXP: output[row] = TYPED(logsumexp_row)(first + row * count, count); break;
        case SOFTMAX_GRAD:
            TYPED(softmax_grad_row)(first + row * count, second + row * count, output + row * count, count);
            break;
        case LOG_SOFTMAX_GRAD:
            TYPED(log_softmax_grad_row)(first + row * count, second + row * count, output + row * count, count);
            break;
        }
}

INLINE void TYPED(columns)(const SoftmaxLoop *loop, ptrdiff_t start, int width)
{
    ptrdiff_t count = loop->layout.count, stride = loop->layout.inner;
    const REAL *first = (const REAL *)loop->first + start, *second = (const REAL *)loop->second + start;
    REAL *output = (REAL *)loop->output + start;
    switch (loop->operation) {
    case SOFTMAX: TYPED(softmax_columns)(first, output, count, stride, width, 0); break;
    case LOG_SOFTMAX: TYPED(softmax_columns)(first, output, count, stride, width, 1); break;
    case SOFTMAX_GRAD: TYPED(softmax_grad_columns)(first, second, output, count, stride, width, 0); break;
    case LOG_SOFTMAX_GRAD: TYPED(softmax_grad_columns)(first, second, output, count, stride, width, 1); break;
    case LOGSUMEXP: break; /* only along rows */
    }
}

MULTIVERSIONED static void TYPED(softmax_strided)(const SoftmaxLoop *loop, ptrdiff_t begin, ptrdiff_t end)
{
    Layout layout = loop->layout;
    ptrdiff_t groups = (layout.inner + LANES - 1) / LANES;
    for (ptrdiff_t item = begin; item < end; item++) {
        ptrdiff_t column = item % groups * LANES, start = item / groups * layout.count * layout.inner + column;
        if (column + LANES <= layout.inner)
            TYPED(columns)(loop, start, LANES);
        else
            TYPED(columns)(loop, start, (int)(layout.inner - column));
    }
}

static void TYPED(softmax_block)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const SoftmaxLoop *loop = context;
    if (loop->layout.inner == 1)
        TYPED(softmax_rows)(loop, begin, end);
    else
        TYPED(softmax_strided)(loop, begin, end);
}
