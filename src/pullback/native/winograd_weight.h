/* Winograd's transforms of the weight and of its gradient for one dtype and one instruction set; a part of
 * convolution_loops.h. See Note [Winograd's convolution] in winograd.h.
 */

/* G g G' of one block of output channels, for one channel: `g` is [tap][out channel]. */
INLINE void NAME(transform_kernels)(REAL (*g)[MOST_CHANNELS], int count, REAL *to, ptrdiff_t step)
{
    REAL rows[4][3][MOST_CHANNELS];
    const REAL half = (REAL)0.5;
    for (int x = 0; x < 3; x++)
        for (int o = 0; o < MOST_CHANNELS; o++) {
            REAL top = g[x][o], middle = g[3 + x][o], bottom = g[6 + x][o];
            rows[0][x][o] = top;
            rows[1][x][o] = ((top + bottom) + middle) * half;
            rows[2][x][o] = ((top + bottom) - middle) * half;
            rows[3][x][o] = bottom;
        }
    for (int i = 0; i < 4; i++) {
        REAL elements[4][MOST_CHANNELS];
        for (int o = 0; o < MOST_CHANNELS; o++) {
            REAL left = rows[i][0][o], middle = rows[i][1][o], right = rows[i][2][o];
            elements[0][o] = left;
            elements[1][o] = ((left + right) + middle) * half;
            elements[2][o] = ((left + right) - middle) * half;
            elements[3][o] = right;
        }
        for (int j = 0; j < 4; j++)
            for (int o = 0; o < count; o++)
                to[(4 * i + j) * step + o] = elements[j][o];
    }
}

/* Transform the weights as tiles read them: group, element, chunk of channels, block of output channels, channel, output
 * channel. Items are blocks of output channels. */
static void NAME(transform_weight)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    WinogradCall *call = context;
    const Winograd *plan = call->plan;
    const Geometry *g = &plan->geometry;
    ptrdiff_t blocks = (g->out_channels + MOST_CHANNELS - 1) / MOST_CHANNELS, size = g->out_channels * g->channels;
    ptrdiff_t in_step = plan->turned ? g->out_channels * 9 : 9, out_step = plan->turned ? 9 : g->channels * 9;
    for (ptrdiff_t item = begin; item < end; item++) {
        ptrdiff_t group = item / blocks, block = item % blocks;
        ptrdiff_t first = NAME(block_begin)(g->out_channels, MOST_CHANNELS, block);
        int count = (int)(NAME(block_begin)(g->out_channels, MOST_CHANNELS, block + 1) - first);
        const REAL *weight = (const REAL *)call->weight + group * size * 9 + first * out_step;
        REAL *transformed = (REAL *)call->transformed + group * SQUARES * size;
        for (ptrdiff_t c = 0; c < g->channels; c++, weight += in_step) {
            ptrdiff_t chunk = c / CHANNEL_CHUNK * CHANNEL_CHUNK, left = g->channels - chunk;
            ptrdiff_t channels = left < CHANNEL_CHUNK ? left : CHANNEL_CHUNK;
            REAL *to = transformed + chunk * g->out_channels + first * channels + (c - chunk) * count;
            REAL kernels[9][MOST_CHANNELS] = {{0}};
            for (int o = 0; o < count; o++)
                for (int tap = 0; tap < 9; tap++)
                    kernels[plan->turned ? 8 - tap : tap][o] = weight[o * out_step + tap];
            if (count == MOST_CHANNELS)
                NAME(transform_kernels)(kernels, MOST_CHANNELS, to, size);
            else
                NAME(transform_kernels)(kernels, count, to, size);
        }
    }
}

/* A dy A' of a vector of squares. */
INLINE void NAME(transform_grad_vectors)(Vector y[2][2], REAL *to, ptrdiff_t step)
{
    Vector rows[4][2];
    for (int j = 0; j < 2; j++) {
        rows[0][j] = y[0][j];
        rows[1][j] = y[0][j] + y[1][j];
        rows[2][j] = y[0][j] - y[1][j];
        rows[3][j] = -y[1][j];
    }
    for (int i = 0; i < 4; i++) {
        STORE(to + (4 * i) * step, rows[i][0]);
        STORE(to + (4 * i + 1) * step, rows[i][0] + rows[i][1]);
        STORE(to + (4 * i + 2) * step, rows[i][0] - rows[i][1]);
        STORE(to + (4 * i + 3) * step, -rows[i][1]);
    }
}

/* Rows are short: the squares' rows are copied one after the other, all first ones and all second ones. */
static void NAME(transform_narrow_grads)(const Winograd *plan, const REAL *output_grad, ptrdiff_t channel, ptrdiff_t first,
                                         ptrdiff_t units, REAL *lines, REAL *to, ptrdiff_t step)
{
    const Geometry *g = &plan->geometry;
    ptrdiff_t height = g->result[1], size = g->result[2], channels = g->groups * g->out_channels;
    ptrdiff_t squares = units * plan->columns, width = (squares + LANES - 1) / LANES * LANES;
    REAL *next = lines;
    for (ptrdiff_t unit = 0; unit < units; unit++) {
        ptrdiff_t sample = (first + unit) / plan->rows, row = 2 * ((first + unit) % plan->rows);
        const REAL *from = output_grad + ((sample * channels + channel) * height + row) * size;
        int is_whole = row + 1 < height;
        for (ptrdiff_t x = 0; x < size; x += 2, next += 2) {
            REAL *second = next + 2 * width;
            next[0] = from[x];
            next[1] = x + 1 < size ? from[x + 1] : 0;
            second[0] = is_whole ? from[size + x] : 0;
            second[1] = is_whole && x + 1 < size ? from[size + x + 1] : 0;
        }
    }
    memset(next, 0, (size_t)(2 * (width - squares)) * sizeof(REAL));
    memset(next + 2 * width, 0, (size_t)(2 * (width - squares)) * sizeof(REAL));
    for (ptrdiff_t t = 0; t < width; t += LANES) {
        Vector y[2][2];
        for (int i = 0; i < 2; i++) {
            REAL left[LANES], right[LANES];
            NAME(part_row)(lines + 2 * (i * width + t), LANES, left, right);
            y[i][0] = LOAD(left);
            y[i][1] = LOAD(right);
        }
        NAME(transform_grad_vectors)(y, to + t, step);
    }
}

/* A dy A' of the squares of some units of one output channel. */
static void NAME(transform_grads)(const Winograd *plan, const REAL *output_grad, ptrdiff_t channel, ptrdiff_t first,
                                  ptrdiff_t units, REAL *lines, REAL *to, ptrdiff_t step)
{
    const Geometry *g = &plan->geometry;
    ptrdiff_t size = g->result[2], plane = g->result[1] * size, channels = g->groups * g->out_channels, line = plan->line;
    const REAL *end = output_grad + g->batch * channels * plane;
    if (plan->is_narrow) {
        NAME(transform_narrow_grads)(plan, output_grad, channel, first, units, lines, to, step);
        return;
    }
    for (ptrdiff_t unit = 0; unit < units; unit++, to += plan->columns) {
        ptrdiff_t sample = (first + unit) / plan->rows, row = (first + unit) % plan->rows;
        const REAL *from = output_grad + (sample * channels + channel) * plane;
        for (int i = 0; i < 4; i++)
            if (2 * row + i / 2 < g->result[1])
                NAME(stage_row)(from + (2 * row + i / 2) * size, size, i % 2, 2, plan->columns, end, lines + i * line);
            else
                NAME(clear_vectors)(lines + i * line, plan->columns);
        for (ptrdiff_t t = 0; t < plan->columns; t += LANES) {
            Vector y[2][2] = {{LOAD(lines + t), LOAD(lines + line + t)}, {LOAD(lines + 2 * line + t), LOAD(lines + 3 * line + t)}};
            NAME(transform_grad_vectors)(y, to + t, step);
        }
    }
    for (int element = 0; element < SQUARES; element++)
        NAME(clear_vectors)(to + element * step, LANES);
}

/* Items are the channels, then the output channels, of the block that the call names. */
static void NAME(transform_block)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    WinogradWeightCall *call = context;
    const Winograd *plan = call->plan;
    const Geometry *g = &plan->geometry;
    NAME(Room) room;
    if (!NAME(make_room)(NAME(line_room)(plan), 0, 0, &room)) {
        call->failed = 1;
        return;
    }
    for (ptrdiff_t item = begin; item < end; item++)
        if (item < g->channels)
            NAME(transform_channel)(plan, call->input, call->group * g->channels + item, call->first, call->units,
                                    room.staged, (REAL *)call->inputs + item * plan->pitch, g->channels * plan->pitch);
        else
            NAME(transform_grads)(plan, call->output_grad, call->group * g->out_channels + item - g->channels,
                                  call->first, call->units, room.staged,
                                  (REAL *)call->grads + (item - g->channels) * plan->pitch,
                                  g->out_channels * plan->pitch);
    free(room.memory);
}

/* G' s G of the sums: the gradient of the group's kernels. */
static void NAME(finish_weight)(void *context)
{
    WinogradWeightCall *call = context;
    const Geometry *g = &call->plan->geometry;
    ptrdiff_t size = g->out_channels * g->channels;
    REAL *to = (REAL *)call->result + call->group * size * 9, check = 0;
    const REAL *sums = call->sums, half = (REAL)0.5;
    for (ptrdiff_t pair = 0; pair < size; pair++, to += 9) {
        REAL rows[3][4];
        for (int j = 0; j < 4; j++) {
            REAL s[4];
            for (int i = 0; i < 4; i++)
                s[i] = sums[(4 * i + j) * size + pair];
            rows[0][j] = s[0] + (s[1] + s[2]) * half;
            rows[1][j] = (s[1] - s[2]) * half;
            rows[2][j] = (s[1] + s[2]) * half + s[3];
        }
        for (int i = 0; i < 3; i++) {
            to[3 * i] = rows[i][0] + (rows[i][1] + rows[i][2]) * half;
            to[3 * i + 1] = (rows[i][1] - rows[i][2]) * half;
            to[3 * i + 2] = (rows[i][1] + rows[i][2]) * half + rows[i][3];
            check += (to[3 * i] + to[3 * i + 1] + to[3 * i + 2]) * 0;
        }
    }
    if (!(check == 0))
        call->is_finite = 0;
}
