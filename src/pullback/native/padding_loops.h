/* Padding of planes, and its adjoint, for one type of number; included by for_each_real.h. See padding.c. */

/* One row: the middle lies as it was, edges are taken from where the table says, or are the constant. */
INLINE void TYPED(pad_row)(const Padding *p, const REAL *from, REAL *to)
{
    const PadAxis *axis = &p->axes[2];
    REAL value = (REAL)p->value;
    for (ptrdiff_t x = 0; x < axis->begin; x++)
        to[x] = axis->source[x] < 0 ? value : from[axis->source[x]];
    memcpy(to + axis->begin, from + axis->begin - axis->before, (size_t)(axis->end - axis->begin) * sizeof(REAL));
    for (ptrdiff_t x = axis->end; x < axis->result; x++)
        to[x] = axis->source[x] < 0 ? value : from[axis->source[x]];
}

/* Items are rows of the result. */
MULTIVERSIONED static void TYPED(pad_rows)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Padding *p = context;
    const PadAxis *a = p->axes;
    for (ptrdiff_t item = begin; item < end; item++) {
        ptrdiff_t y = a[1].source[item % a[1].result], slab = item / a[1].result, z = a[0].source[slab % a[0].result];
        const REAL *plane = (const REAL *)p->input + slab / a[0].result * a[0].size * a[1].size * a[2].size;
        REAL *to = (REAL *)p->output + item * a[2].result;
        if (y >= 0 && z >= 0)
            TYPED(pad_row)(p, plane + (z * a[1].size + y) * a[2].size, to);
        else
            for (ptrdiff_t x = 0; x < a[2].result; x++)
                to[x] = (REAL)p->value;
    }
}

/* Items are planes: each row of the gradient is added to the row that it was taken from. */
MULTIVERSIONED static void TYPED(add_planes)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Padding *p = context;
    const PadAxis *a = p->axes;
    for (ptrdiff_t plane = begin; plane < end; plane++) {
        REAL *result = (REAL *)p->output + plane * a[0].size * a[1].size * a[2].size;
        const REAL *grad = (const REAL *)p->input + plane * a[0].result * a[1].result * a[2].result;
        memset(result, 0, (size_t)(a[0].size * a[1].size * a[2].size) * sizeof(REAL));
        for (ptrdiff_t z = 0; z < a[0].result; z++)
            for (ptrdiff_t y = 0; y < a[1].result; y++, grad += a[2].result) {
                REAL *to = result + (a[0].source[z] * a[1].size + a[1].source[y]) * a[2].size;
                REAL *middle = to + a[2].begin - a[2].before;
                for (ptrdiff_t x = 0; x < a[2].end - a[2].begin; x++)
                    middle[x] += grad[a[2].begin + x];
                for (ptrdiff_t x = 0; x < a[2].begin; x++)
                    to[a[2].source[x]] += grad[x];
                for (ptrdiff_t x = a[2].end; x < a[2].result; x++)
                    to[a[2].source[x]] += grad[x];
            }
    }
}
