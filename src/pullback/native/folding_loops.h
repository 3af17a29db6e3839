/* Windows of planes as columns, and back, for one type of number; included by for_each_real.h. See folding.c. */

/* Items are planes. A row of a plane stays in the cache while all that it goes to, or comes from, is walked through. */
MULTIVERSIONED static void TYPED(unfold_planes)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Folding *f = context;
    const PoolAxis *y_axis = &f->axes[1], *x_axis = &f->axes[2];
    ptrdiff_t windows = y_axis->count * x_axis->count, taps = y_axis->kernel * x_axis->kernel, width = x_axis->count;
    for (ptrdiff_t plane = begin; plane < end; plane++)
        for (ptrdiff_t wy = 0; wy < y_axis->count; wy++)
            for (ptrdiff_t tap = 0; tap < taps; tap++) {
                ptrdiff_t y = wy * y_axis->stride + tap / x_axis->kernel * y_axis->dilation - y_axis->padding, first, last;
                REAL *to = (REAL *)f->columns + (plane * taps + tap) * windows + wy * width;
                windows_with(x_axis, tap % x_axis->kernel, &first, &last);
                if (y < 0 || y >= y_axis->size)
                    first = last = width;
                const REAL *from = (const REAL *)f->images + (plane * y_axis->size + y) * x_axis->size +
                                   tap % x_axis->kernel * x_axis->dilation - x_axis->padding;
                for (ptrdiff_t x = 0; x < first; x++)
                    to[x] = 0;
                if (x_axis->stride == 1)
                    memcpy(to + first, from + first, (size_t)(last - first) * sizeof(REAL));
                else
                    for (ptrdiff_t x = first; x < last; x++)
                        to[x] = from[x * x_axis->stride];
                for (ptrdiff_t x = last; x < width; x++)
                    to[x] = 0;
            }
}

MULTIVERSIONED static void TYPED(fold_planes)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Folding *f = context;
    const PoolAxis *y_axis = &f->axes[1], *x_axis = &f->axes[2];
    ptrdiff_t windows = y_axis->count * x_axis->count, taps = y_axis->kernel * x_axis->kernel, stride = x_axis->stride;
    for (ptrdiff_t plane = begin; plane < end; plane++) {
        REAL *image = (REAL *)f->images + plane * y_axis->size * x_axis->size;
        memset(image, 0, (size_t)(y_axis->size * x_axis->size) * sizeof(REAL));
        for (ptrdiff_t wy = 0; wy < y_axis->count; wy++)
            for (ptrdiff_t tap = 0; tap < taps; tap++) {
                ptrdiff_t y = wy * y_axis->stride + tap / x_axis->kernel * y_axis->dilation - y_axis->padding, first, last;
                if (y < 0 || y >= y_axis->size)
                    continue;
                const REAL *restrict from = (const REAL *)f->columns + (plane * taps + tap) * windows + wy * x_axis->count;
                REAL *restrict to = image + y * x_axis->size + tap % x_axis->kernel * x_axis->dilation - x_axis->padding;
                windows_with(x_axis, tap % x_axis->kernel, &first, &last);
                if (stride == 1)
                    for (ptrdiff_t x = first; x < last; x++)
                        to[x] += from[x];
                else
                    for (ptrdiff_t x = first; x < last; x++)
                        to[x * stride] += from[x];
            }
    }
}
