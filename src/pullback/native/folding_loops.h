/* Windows of planes as columns, and back, for one type of number; included by for_each_real.h. See folding.c. */

/* The windows whose element `offset` of a row lies inside: the first, and the one after the last. */
INLINE void TYPED(inside_windows)(const Folding *f, ptrdiff_t offset, ptrdiff_t *first, ptrdiff_t *end)
{
    ptrdiff_t place = offset * f->dilation[2] - f->padding[2], stride = f->stride[2];
    *first = place < 0 ? (-place + stride - 1) / stride : 0;
    *end = place >= f->size[2] ? 0 : (f->size[2] - 1 - place) / stride + 1;
    *end = *end > f->count[2] ? f->count[2] : *end;
    *first = *first > *end ? *end : *first;
}

/* Items are planes. A row of a plane stays in the cache while all that it goes to, or comes from, is walked through. */
MULTIVERSIONED static void TYPED(unfold_planes)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Folding *f = context;
    ptrdiff_t windows = f->count[1] * f->count[2], taps = f->kernel[1] * f->kernel[2], width = f->count[2];
    for (ptrdiff_t plane = begin; plane < end; plane++)
        for (ptrdiff_t wy = 0; wy < f->count[1]; wy++)
            for (ptrdiff_t tap = 0; tap < taps; tap++) {
                ptrdiff_t y = wy * f->stride[1] + tap / f->kernel[2] * f->dilation[1] - f->padding[1], first, last;
                REAL *to = (REAL *)f->columns + (plane * taps + tap) * windows + wy * width;
                TYPED(inside_windows)(f, tap % f->kernel[2], &first, &last);
                if (y < 0 || y >= f->size[1])
                    first = last = width;
                const REAL *from = (const REAL *)f->images + (plane * f->size[1] + y) * f->size[2] +
                                   tap % f->kernel[2] * f->dilation[2] - f->padding[2];
                for (ptrdiff_t x = 0; x < first; x++)
                    to[x] = 0;
                if (f->stride[2] == 1)
                    memcpy(to + first, from + first, (size_t)(last - first) * sizeof(REAL));
                else
                    for (ptrdiff_t x = first; x < last; x++)
                        to[x] = from[x * f->stride[2]];
                for (ptrdiff_t x = last; x < width; x++)
                    to[x] = 0;
            }
}

MULTIVERSIONED static void TYPED(fold_planes)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Folding *f = context;
    ptrdiff_t windows = f->count[1] * f->count[2], taps = f->kernel[1] * f->kernel[2], stride = f->stride[2];
    for (ptrdiff_t plane = begin; plane < end; plane++) {
        REAL *image = (REAL *)f->images + plane * f->size[1] * f->size[2];
        memset(image, 0, (size_t)(f->size[1] * f->size[2]) * sizeof(REAL));
        for (ptrdiff_t wy = 0; wy < f->count[1]; wy++)
            for (ptrdiff_t tap = 0; tap < taps; tap++) {
                ptrdiff_t y = wy * f->stride[1] + tap / f->kernel[2] * f->dilation[1] - f->padding[1], first, last;
                if (y < 0 || y >= f->size[1])
                    continue;
                const REAL *restrict from = (const REAL *)f->columns + (plane * taps + tap) * windows + wy * f->count[2];
                REAL *restrict to = image + y * f->size[2] + tap % f->kernel[2] * f->dilation[2] - f->padding[2];
                TYPED(inside_windows)(f, tap % f->kernel[2], &first, &last);
                if (stride == 1)
                    for (ptrdiff_t x = first; x < last; x++)
                        to[x] += from[x];
                else
                    for (ptrdiff_t x = first; x < last; x++)
                        to[x * stride] += from[x];
            }
    }
}
