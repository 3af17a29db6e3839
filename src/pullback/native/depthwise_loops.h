/* Depthwise convolutions for one dtype and one instruction set; a part of convolution_loops.h.
 *
 * See Note [Depthwise convolution] in depthwise.h.
 */

/* Copy a row; the rest of its last vector becomes zero. */
INLINE void NAME(copy_padded)(const REAL *from, ptrdiff_t count, const REAL *end, NAME(Mask) tail, REAL *to)
{
    ptrdiff_t i = 0;
    for (; i + LANES <= count; i += LANES)
        STORE(to + i, LOAD(from + i));
    if (i < count && end - (from + i) >= LANES)
        STORE(to + i, MASKED(LOAD(from + i), tail));
    else if (i < count) {
        STORE(to + i, (Vector){0});
        memcpy(to + i, from + i, (size_t)(count - i) * sizeof(REAL));
    }
}

/* Stage a plane; what lies around it was cleared before. Rows that are parted are staged in `whole` first, all of them:
 * reading right after writing would have to wait. */
static void NAME(stage_plane)(const Depthwise *plan, const REAL *plane, const REAL *end, REAL *whole, REAL *staged)
{
    const Geometry *g = &plan->geometry;
    ptrdiff_t size = g->input[2], is_parted = plan->row > plan->line;
    NAME(Mask) tail = NAME(first_lanes)(size % LANES);
    REAL *to = (is_parted ? whole : staged + plan->before[0] * plan->row) + plan->before[1];
    for (ptrdiff_t y = 0; y < g->input[1]; y++)
        NAME(copy_padded)(plane + y * size, size, end, tail, to + y * plan->row);
    for (ptrdiff_t y = 0; y < g->input[1] && is_parted; y++) {
        REAL *row = staged + (plan->before[0] + y) * plan->row;
        NAME(part_row)(whole + y * plan->row, (plan->before[1] + size + 1) / 2, row, row + plan->line);
    }
}

/* A vector of each of some rows of results. Where sizes are constants all is unrolled. */
INLINE void NAME(depthwise_tile)(const int rows, const int height, const int width, const int stride, const REAL *staged,
                                 ptrdiff_t row, const ptrdiff_t *offsets, const REAL *weight, Vector *sums)
{
    UNROLLED for (int y = 0; y < (rows - 1) * stride + height; y++)
        UNROLLED for (int x = 0; x < width; x++) {
            Vector value = LOAD(staged + y * row + offsets[x]);
            UNROLLED for (int r = 0; r < rows; r++)
                if (y >= r * stride && y < r * stride + height)
                    sums[r] += value * weight[(y - r * stride) * width + x];
        }
}

/* Any kernel. */
INLINE void NAME(depthwise_rows)(const Geometry *g, int rows, const REAL *staged, ptrdiff_t row, const ptrdiff_t *offsets,
                                 const REAL *weight, Vector *sums)
{
    for (ptrdiff_t y = 0; y < g->kernel[1]; y++)
        for (ptrdiff_t x = 0; x < g->kernel[2]; x++) {
            const REAL *from = staged + y * g->dilation[1] * row + offsets[x];
            for (int r = 0; r < rows; r++)
                sums[r] += LOAD(from + r * g->stride[1] * row) * weight[y * g->kernel[2] + x];
        }
}

/* Store vectors of rows of results; what is written too much belongs to later rows, never to another plane. */
INLINE void NAME(store_rows)(const Vector *sums, int rows, REAL *to, ptrdiff_t step, ptrdiff_t count, const REAL *end)
{
    for (int r = 0; r < rows; r++, to += step)
        if (end - to >= LANES)
            STORE(to, sums[r]);
        else {
            REAL last[LANES];
            STORE(last, sums[r]);
            memcpy(to, last, (size_t)count * sizeof(REAL));
        }
}

#define DEPTHWISE_ROWS 4

#define EACH_TAP                                                        \
    UNROLLED for (int y = 0; y < height; y++)                           \
        UNROLLED for (int x = 0; x < width; x++)

INLINE void NAME(convolve_rows)(const Geometry *g, int is_square, const int rows, const REAL *from, ptrdiff_t row,
                                const ptrdiff_t *offsets, const REAL *weight, Vector *sums)
{
    if (is_square == 3 && g->stride[1] == 1)
        NAME(depthwise_tile)(rows, 3, 3, 1, from, row, offsets, weight, sums);
    else if (is_square == 3)
        NAME(depthwise_tile)(rows, 3, 3, 2, from, row, offsets, weight, sums);
    else if (is_square == 5 && g->stride[1] == 1)
        NAME(depthwise_tile)(rows, 5, 5, 1, from, row, offsets, weight, sums);
    else if (is_square == 7 && g->stride[1] == 1)
        NAME(depthwise_tile)(rows, 7, 7, 1, from, row, offsets, weight, sums);
    else
        NAME(depthwise_rows)(g, rows, from, row, offsets, weight, sums);
}

static void NAME(convolve_plane)(const Depthwise *plan, const REAL *staged, const REAL *weight, REAL bias, REAL *result)
{
    const Geometry *g = &plan->geometry;
    ptrdiff_t height = g->result[1], size = g->result[2];
    const REAL *end = result + height * size;
    int is_square = g->kernel[1] == g->kernel[2] && g->dilation[1] == 1 ? (int)g->kernel[1] : 0;
    for (ptrdiff_t y = 0; y < height;) {
        int rows = (int)(height - y < DEPTHWISE_ROWS ? height - y : DEPTHWISE_ROWS);
        if (is_square != 3 && rows < DEPTHWISE_ROWS)
            rows = 1;
        const REAL *from = staged + y * g->stride[1] * plan->row;
        for (ptrdiff_t x = 0; x < size; x += LANES) {
            ptrdiff_t start = x + LANES > size && size >= LANES ? size - LANES : x; /* overlaps the one before */
            Vector sums[DEPTHWISE_ROWS];
            for (int r = 0; r < DEPTHWISE_ROWS; r++)
                sums[r] = (Vector){0} + bias;
            if (rows == DEPTHWISE_ROWS)
                NAME(convolve_rows)(g, is_square, DEPTHWISE_ROWS, from + start, plan->row, plan->offsets[0], weight, sums);
            else if (rows == 1)
                NAME(convolve_rows)(g, is_square, 1, from + start, plan->row, plan->offsets[0], weight, sums);
            else if (g->stride[1] == 1 && rows == 3)
                NAME(depthwise_tile)(3, 3, 3, 1, from + start, plan->row, plan->offsets[0], weight, sums);
            else if (g->stride[1] == 1)
                NAME(depthwise_tile)(2, 3, 3, 1, from + start, plan->row, plan->offsets[0], weight, sums);
            else if (rows == 3)
                NAME(depthwise_tile)(3, 3, 3, 2, from + start, plan->row, plan->offsets[0], weight, sums);
            else
                NAME(depthwise_tile)(2, 3, 3, 2, from + start, plan->row, plan->offsets[0], weight, sums);
            NAME(store_rows)(sums, rows, result + y * size + start, size, size - start, end);
        }
        y += rows;
    }
}

/* The sums of a vector of results of a row of the adjoint: those that are `first` beyond a multiple of the stride. */
INLINE Vector NAME(adjoint_vector)(const Depthwise *plan, const REAL *staged, ptrdiff_t y, int first, const REAL *weight,
                                   Vector sum)
{
    const Geometry *g = &plan->geometry;
    ptrdiff_t stride = g->stride[1], k = stride == 2 ? (y + g->padding[1]) % 2 : 0;
    for (; k < g->kernel[1]; k += stride) {
        ptrdiff_t place = (y + g->padding[1] - k * g->dilation[1]) / stride;
        const REAL *from = staged + (place + plan->before[0]) * plan->row, *factors = weight + k * g->kernel[2];
        for (int tap = 0; tap < plan->taps[first]; tap++)
            sum += LOAD(from + plan->offsets[first][tap]) * factors[plan->places[first][tap]];
    }
    return sum;
}

/* A vector of results, or two whose elements alternate; up to a vector too much is written where there is room. */
INLINE void NAME(store_alternating)(const Vector *sums, int stride, ptrdiff_t count, const REAL *end, REAL *to)
{
    REAL pairs[2 * LANES], even[LANES], odd[LANES];
    if (stride == 1)
        STORE(pairs, sums[0]);
    else {
        STORE(even, sums[0]);
        STORE(odd, sums[1]);
        for (int lane = 0; lane < LANES; lane++) {
            pairs[2 * lane] = even[lane];
            pairs[2 * lane + 1] = odd[lane];
        }
    }
    if (end - to < stride * LANES)
        memcpy(to, pairs, (size_t)(count < stride * LANES ? count : stride * LANES) * sizeof(REAL));
    else
        for (int i = 0; i < stride; i++)
            STORE(to + i * LANES, LOAD(pairs + i * LANES));
}

/* A row of the adjoint: vectors of the results of each residue by the stride. */
INLINE void NAME(adjoint_row)(const Depthwise *plan, const REAL *staged, ptrdiff_t y, const REAL *weight, REAL bias,
                              const REAL *end, REAL *to)
{
    ptrdiff_t stride = plan->geometry.stride[2], size = plan->geometry.result[2];
    for (ptrdiff_t x = 0; x * stride < size; x += LANES) {
        Vector sums[2] = {(Vector){0} + bias, (Vector){0} + bias};
        for (int first = 0; first < stride; first++)
            sums[first] = NAME(adjoint_vector)(plan, staged + x, y, first, weight, sums[first]);
        NAME(store_alternating)(sums, (int)stride, size - x * stride, end, to + x * stride);
    }
}

/* A row of the adjoint of a 3x3 kernel with stride 2: one or two rows of the kernel count, of it two taps for the even
 * results and one for the odd ones or the other way round. All three are constants. */
INLINE void NAME(adjoint_row_of_three)(const Depthwise *plan, const int rows, const int even_taps, const REAL *staged,
                                       ptrdiff_t y, const REAL *weight, REAL bias, const REAL *end, REAL *to)
{
    const Geometry *g = &plan->geometry;
    const int taps[2] = {even_taps, 3 - even_taps};
    const REAL *from[2];
    Vector factors[2][2][2];
    for (int r = 0; r < rows; r++) {
        ptrdiff_t k = rows == 2 ? 2 * r : 1;
        from[r] = staged + ((y + g->padding[1] - k) / 2 + plan->before[0]) * plan->row;
        for (int first = 0; first < 2; first++)
            for (int tap = 0; tap < taps[first]; tap++)
                factors[r][first][tap] = (Vector){0} + weight[k * 3 + plan->places[first][tap]];
    }
    for (ptrdiff_t x = 0; 2 * x < g->result[2]; x += LANES) {
        Vector sums[2] = {(Vector){0} + bias, (Vector){0} + bias};
        for (int first = 0; first < 2; first++)
            for (int tap = 0; tap < taps[first]; tap++)
                for (int r = 0; r < rows; r++)
                    sums[first] += LOAD(from[r] + x + plan->offsets[first][tap]) * factors[r][first][tap];
        NAME(store_alternating)(sums, 2, g->result[2] - 2 * x, end, to + 2 * x);
    }
}

static void NAME(adjoint_plane_of_three)(const Depthwise *plan, const REAL *staged, const REAL *weight, REAL bias,
                                         REAL *result)
{
    const Geometry *g = &plan->geometry;
    const REAL *end = result + g->result[1] * g->result[2];
    for (ptrdiff_t y = 0; y < g->result[1]; y++) {
        int is_even = (y + g->padding[1]) % 2 == 0, has_two = plan->taps[0] == 2;
        REAL *to = result + y * g->result[2];
        if (is_even && has_two)
            NAME(adjoint_row_of_three)(plan, 2, 2, staged, y, weight, bias, end, to);
        else if (is_even)
            NAME(adjoint_row_of_three)(plan, 2, 1, staged, y, weight, bias, end, to);
        else if (has_two)
            NAME(adjoint_row_of_three)(plan, 1, 2, staged, y, weight, bias, end, to);
        else
            NAME(adjoint_row_of_three)(plan, 1, 1, staged, y, weight, bias, end, to);
    }
}

static void NAME(adjoint_plane)(const Depthwise *plan, const REAL *staged, const REAL *weight, REAL bias, REAL *result)
{
    const Geometry *g = &plan->geometry;
    const REAL *end = result + g->result[1] * g->result[2];
    if (g->kernel[1] == 3 && g->kernel[2] == 3 && g->stride[1] == 2 && g->stride[2] == 2) {
        NAME(adjoint_plane_of_three)(plan, staged, weight, bias, result);
        return;
    }
    for (ptrdiff_t y = 0; y < g->result[1]; y++)
        NAME(adjoint_row)(plan, staged, y, weight, bias, end, result + y * g->result[2]);
}

/* Buffers for two staged planes, whose padding is cleared, and for one whose rows are not parted. */
typedef struct {
    NAME(Room) room;
    REAL *staged[2], *whole;
} NAME(PlaneRoom);

static int NAME(make_plane_room)(const Depthwise *plan, NAME(PlaneRoom) *planes)
{
    ptrdiff_t staged = (plan->rows + DEPTHWISE_ROWS) * plan->row + 2 * LANES;
    if (!NAME(make_room)(3 * staged, 0, 0, &planes->room))
        return 0;
    memset(planes->room.staged, 0, (size_t)(3 * staged) * sizeof(REAL));
    planes->staged[0] = planes->room.staged;
    planes->staged[1] = planes->room.staged + staged;
    planes->whole = planes->room.staged + 2 * staged;
    return 1;
}

static void NAME(convolve_staged)(const DepthwiseCall *call, ptrdiff_t plane, const REAL *staged)
{
    const Depthwise *plan = call->plan;
    const Geometry *g = &plan->geometry;
    ptrdiff_t taps = g->kernel[1] * g->kernel[2], channel = plane % g->groups;
    const REAL *weight = (const REAL *)call->weight + channel * taps;
    REAL bias = call->bias ? ((const REAL *)call->bias)[channel] : 0;
    REAL *result = (REAL *)call->result + plane * g->result[1] * g->result[2], turned[MOST_TAPS];
    if (g->transposed) {
        NAME(adjoint_plane)(plan, staged, weight, bias, result);
        return;
    }
    for (ptrdiff_t k = 0; k < taps && plan->turned; k++)
        turned[k] = weight[taps - 1 - k];
    NAME(convolve_plane)(plan, staged, plan->turned ? turned : weight, bias, result);
}

/* Items are planes. The next one is staged before one is read, which would have to wait for what was just written. */
static void NAME(convolve_depthwise)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    DepthwiseCall *call = context;
    const Depthwise *plan = call->plan;
    const Geometry *g = &plan->geometry;
    ptrdiff_t in_plane = g->input[1] * g->input[2];
    const REAL *input = call->input, *input_end = NAME(input_end)(g, call->input);
    NAME(PlaneRoom) room;
    if (!NAME(make_plane_room)(plan, &room)) {
        call->failed = 1;
        return;
    }
    NAME(stage_plane)(plan, input + begin * in_plane, input_end, room.whole, room.staged[begin % 2]);
    for (ptrdiff_t plane = begin; plane < end; plane++) {
        if (plane + 1 < end)
            NAME(stage_plane)(plan, input + (plane + 1) * in_plane, input_end, room.whole, room.staged[(plane + 1) % 2]);
        NAME(convolve_staged)(call, plane, room.staged[plane % 2]);
    }
    free(room.room.memory);
}

/* Add the products of a plane of gradients with what the taps of some rows of the kernel had read, from `first` on. */
INLINE void NAME(weigh_rows)(const Depthwise *plan, const int height, const int width, const int is_masked,
                             const REAL *staged, const REAL *grads, const REAL *end, ptrdiff_t first, Vector *totals)
{
    const Geometry *g = &plan->geometry;
    ptrdiff_t size = g->result[2], whole = size / LANES * LANES, step = g->dilation[1] * plan->row;
    NAME(Mask) tail = NAME(first_lanes)(size - whole);
    const ptrdiff_t *offsets = plan->offsets[0];
    Vector sums[32];
    EACH_TAP sums[y * width + x] = totals[y * width + x];
    for (ptrdiff_t line = 0; line < g->result[1]; line++, grads += size) {
        const REAL *row = staged + line * g->stride[1] * plan->row + first * step;
        for (ptrdiff_t i = 0; i < whole; i += LANES) {
            Vector grad = LOAD(grads + i);
            EACH_TAP sums[y * width + x] += grad * LOAD(row + y * step + i + offsets[x]);
        }
        if (whole == size)
            continue;
        Vector grad = (Vector){0};
        if (end - (grads + whole) >= LANES)
            grad = MASKED(LOAD(grads + whole), tail);
        else
            memcpy(&grad, grads + whole, (size_t)(size - whole) * sizeof(REAL));
        if (is_masked) /* nothing times infinity would be NaN */
            EACH_TAP sums[y * width + x] += grad * MASKED(LOAD(row + y * step + whole + offsets[x]), tail);
        else
            EACH_TAP sums[y * width + x] += grad * LOAD(row + y * step + whole + offsets[x]);
    }
    EACH_TAP totals[y * width + x] = sums[y * width + x];
}

static void NAME(weigh_plane)(const Depthwise *plan, int is_masked, const REAL *staged, const REAL *grads,
                              const REAL *end, Vector *totals)
{
    const Geometry *g = &plan->geometry;
    ptrdiff_t height = g->kernel[1], width = g->kernel[2];
    if (height == 3 && width == 3 && !is_masked)
        NAME(weigh_rows)(plan, 3, 3, 0, staged, grads, end, 0, totals);
    else
        for (ptrdiff_t y = 0; y < height; y++, totals += width)
            if (width == 3)
                NAME(weigh_rows)(plan, 1, 3, 1, staged, grads, end, y, totals);
            else if (width == 5)
                NAME(weigh_rows)(plan, 1, 5, 1, staged, grads, end, y, totals);
            else
                NAME(weigh_rows)(plan, 1, 7, 1, staged, grads, end, y, totals);
}

/* The gradient of the kernel of one channel; whether it is finite. */
static int NAME(weigh_channel)(const DepthwiseCall *call, ptrdiff_t channel, int is_masked, const NAME(PlaneRoom) *room)
{
    const Depthwise *plan = call->plan;
    const Geometry *g = &plan->geometry;
    ptrdiff_t in_plane = g->input[1] * g->input[2], out_plane = g->result[1] * g->result[2];
    ptrdiff_t taps = g->kernel[1] * g->kernel[2];
    const REAL *input = (const REAL *)call->input + channel * in_plane, *input_end = NAME(input_end)(g, call->input);
    const REAL *grads = call->output_grad, *grads_end = grads + g->batch * g->groups * out_plane;
    Vector totals[MOST_TAPS];
    for (ptrdiff_t k = 0; k < taps; k++)
        totals[k] = (Vector){0};
    NAME(stage_plane)(plan, input, input_end, room->whole, room->staged[0]);
    for (ptrdiff_t n = 0; n < g->batch; n++) {
        if (n + 1 < g->batch)
            NAME(stage_plane)(plan, input + (n + 1) * g->groups * in_plane, input_end, room->whole,
                              room->staged[(n + 1) % 2]);
        NAME(weigh_plane)(plan, is_masked, room->staged[n % 2], grads + (n * g->groups + channel) * out_plane, grads_end,
                          totals);
    }
    REAL check = 0;
    for (ptrdiff_t k = 0; k < taps; k++) {
        REAL sum = NAME(sum_lanes)(totals[k]);
        ((REAL *)call->result)[channel * taps + k] = sum;
        check += sum * 0;
    }
    return check == 0;
}

/* The gradient of the kernels; items are channels. The kernel is 3, 5 or 7 wide. Lanes beyond the row are masked only
 * where they matter. */
static void NAME(weigh_depthwise)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    DepthwiseCall *call = context;
    NAME(PlaneRoom) room;
    if (!NAME(make_plane_room)(call->plan, &room)) {
        call->failed = 1;
        return;
    }
    for (ptrdiff_t channel = begin; channel < end; channel++)
        if (!NAME(weigh_channel)(call, channel, 0, &room))
            NAME(weigh_channel)(call, channel, 1, &room);
    free(room.room.memory);
}
