/* Winograd's convolution for one dtype and one instruction set; a part of convolution_loops.h.
 *
 * See Note [Winograd's convolution] in winograd.h. Vectors take neighbouring squares of a row.
 */

/* B' d B of squares, from four pairs of staged lines: the even elements, then the odd ones. Up to a vector too much is
 * written. */
static void NAME(transform_squares)(const REAL *lines, ptrdiff_t line, ptrdiff_t columns, REAL *to, ptrdiff_t step)
{
    for (ptrdiff_t t = 0; t < columns; t += LANES) {
        Vector d[4][4];
        for (int i = 0; i < 4; i++) {
            const REAL *even = lines + 2 * i * line + t, *odd = even + line;
            Vector row[4] = {LOAD(even), LOAD(odd), LOAD(even + 1), LOAD(odd + 1)};
            d[i][0] = row[0] - row[2];
            d[i][1] = row[1] + row[2];
            d[i][2] = row[2] - row[1];
            d[i][3] = row[1] - row[3];
        }
        for (int j = 0; j < 4; j++) {
            STORE(to + j * step + t, d[0][j] - d[2][j]);
            STORE(to + (4 + j) * step + t, d[1][j] + d[2][j]);
            STORE(to + (8 + j) * step + t, d[2][j] - d[1][j]);
            STORE(to + (12 + j) * step + t, d[1][j] - d[3][j]);
        }
    }
}

/* B' d B of squares whose rows lie one after the other: all first rows, all second ones... `step` apart. */
static void NAME(transform_narrow)(const REAL *rows, ptrdiff_t width, REAL *to, ptrdiff_t step)
{
    for (ptrdiff_t t = 0; t < width; t += LANES) {
        Vector d[4][4];
        for (int i = 0; i < 4; i++) {
            const REAL *row = rows + (i * width + t) * 4;
            REAL parted[4][LANES];
            for (int lane = 0; lane < LANES; lane++)
                for (int j = 0; j < 4; j++)
                    parted[j][lane] = row[4 * lane + j];
            Vector x[4];
            for (int j = 0; j < 4; j++)
                x[j] = LOAD(parted[j]);
            d[i][0] = x[0] - x[2];
            d[i][1] = x[1] + x[2];
            d[i][2] = x[2] - x[1];
            d[i][3] = x[1] - x[3];
        }
        for (int j = 0; j < 4; j++) {
            STORE(to + j * step + t, d[0][j] - d[2][j]);
            STORE(to + (4 + j) * step + t, d[1][j] + d[2][j]);
            STORE(to + (8 + j) * step + t, d[2][j] - d[1][j]);
            STORE(to + (12 + j) * step + t, d[1][j] - d[3][j]);
        }
    }
}

/* A plane of rows shorter than a vector, with its padding: rows of NARROW elements. */
#define NARROW (2 * LANES)

INLINE void NAME(stage_narrow)(const Winograd *plan, const REAL *plane, ptrdiff_t row, ptrdiff_t count,
                               const REAL *end, NAME(Mask) inside, REAL *padded)
{
    const Geometry *g = &plan->geometry;
    for (ptrdiff_t i = 0; i < 2 * count + 2; i++, padded += NARROW) {
        ptrdiff_t y = 2 * row + i - g->padding[1];
        NAME(clear_vectors)(padded, NARROW);
        if (y < 0 || y >= g->input[1])
            continue;
        const REAL *from = plane + y * g->input[2];
        if (end - from >= LANES)
            STORE(padded + g->padding[2], MASKED(LOAD(from), inside));
        else
            memcpy(padded + g->padding[2], from, (size_t)g->input[2] * sizeof(REAL));
    }
}

/* The same as transform_channel where rows are shorter than a vector: vectors take squares of several rows. */
static void NAME(transform_narrow_channel)(const Winograd *plan, const REAL *input, ptrdiff_t channel, ptrdiff_t first,
                                           ptrdiff_t units, REAL *lines, REAL *to, ptrdiff_t step)
{
    const Geometry *g = &plan->geometry;
    ptrdiff_t plane = g->input[1] * g->input[2], channels = g->groups * g->channels;
    ptrdiff_t squares = units * plan->columns, width = (squares + LANES - 1) / LANES * LANES;
    const REAL *end = NAME(input_end)(g, input);
    REAL *rows = lines + (2 * plan->rows + 2) * NARROW, *next = rows;
    NAME(Mask) inside;
    for (int lane = 0; lane < LANES; lane++)
        ((BITS *)&inside)[lane] = -(BITS)(lane < g->input[2]);
    for (ptrdiff_t done = 0, count; done < units; done += count) {
        ptrdiff_t sample = (first + done) / plan->rows, row = (first + done) % plan->rows, left = plan->rows - row;
        count = left < units - done ? left : units - done;
        NAME(stage_narrow)(plan, input + (sample * channels + channel) * plane, row, count, end, inside, lines);
        for (ptrdiff_t i = 0; i < count; i++)
            for (ptrdiff_t x = 0; x < plan->columns; x++, next += 4)
                for (int y = 0; y < 4; y++)
                    memcpy(next + 4 * y * width, lines + (2 * i + y) * NARROW + 2 * x, 4 * sizeof(REAL));
    }
    for (int y = 0; y < 4; y++) /* what fills up the last vector */
        memset(rows + 4 * (y * width + squares), 0, (size_t)(4 * (width - squares)) * sizeof(REAL));
    NAME(transform_narrow)(rows, width, to, step);
}

/* Stage the lines of the plane of one channel that `count` rows of squares read, the first one being `row`. The first of
 * the lines holds a row with its padding. */
static void NAME(stage_lines)(const Winograd *plan, const REAL *plane, ptrdiff_t row, ptrdiff_t count, const REAL *end,
                              REAL *lines)
{
    const Geometry *g = &plan->geometry;
    ptrdiff_t length = plan->columns + 1;
    REAL *padded = lines;
    lines += 2 * plan->line;
    for (ptrdiff_t i = 0; i < 2 * count + 2; i++, lines += 2 * plan->line) {
        ptrdiff_t y = 2 * row + i - g->padding[1];
        if (y < 0 || y >= g->input[1]) {
            NAME(clear_vectors)(lines, 2 * plan->line);
            continue;
        }
        NAME(stage_row)(plane + y * g->input[2], g->input[2], -g->padding[2], 1, 2 * length, end, padded);
        NAME(part_row)(padded, length, lines, lines + plan->line);
    }
}

/* Elements of the buffer for lines, for rows of squares, or for places. */
static ptrdiff_t NAME(line_room)(const Winograd *plan)
{
    ptrdiff_t lines = (2 * (plan->rows < plan->block ? plan->rows : plan->block) + 3) * 2 * plan->line;
    ptrdiff_t narrow = (2 * plan->rows + 2) * NARROW + 16 * plan->pitch;
    ptrdiff_t places = (plan->width + plan->block) * (ptrdiff_t)(sizeof(ptrdiff_t) / sizeof(REAL) + 1);
    ptrdiff_t most = lines > narrow ? lines : narrow;
    return (most > places ? most : places) + 2 * LANES;
}

/* The transformed squares of some units of one channel, as one row for each element. */
static void NAME(transform_channel)(const Winograd *plan, const REAL *input, ptrdiff_t channel, ptrdiff_t first,
                                    ptrdiff_t units, REAL *lines, REAL *to, ptrdiff_t step)
{
    const Geometry *g = &plan->geometry;
    ptrdiff_t plane = g->input[1] * g->input[2], channels = g->groups * g->channels, done = 0;
    if (plan->is_narrow) {
        NAME(transform_narrow_channel)(plan, input, channel, first, units, lines, to, step);
        return;
    }
    while (done < units) {
        ptrdiff_t sample = (first + done) / plan->rows, row = (first + done) % plan->rows, left = plan->rows - row;
        ptrdiff_t count = left < units - done ? left : units - done;
        NAME(stage_lines)(plan, input + (sample * channels + channel) * plane, row, count,
                          NAME(input_end)(g, input), lines);
        for (ptrdiff_t i = 0; i < count; i++)
            NAME(transform_squares)(lines + (2 + 4 * i) * plan->line, plan->line, plan->columns,
                                    to + (done + i) * plan->columns, step);
        done += count;
    }
    for (int element = 0; element < SQUARES; element++) /* vectors take what fills up the last one */
        NAME(clear_vectors)(to + element * step + units * plan->columns, LANES);
}

/* A' m A of a vector of squares, plus the bias: four vectors of results. What is added up is 0 where they are finite. */
INLINE Vector NAME(transform_back)(const REAL *from, ptrdiff_t step, REAL bias, Vector results[2][2])
{
    Vector sums[2][4], check = (Vector){0};
    for (int j = 0; j < 4; j++) {
        Vector m[4];
        for (int i = 0; i < 4; i++)
            m[i] = LOAD(from + (4 * i + j) * step);
        sums[0][j] = m[0] + (m[1] + m[2]);
        sums[1][j] = (m[1] - m[2]) - m[3];
    }
    for (int i = 0; i < 2; i++) {
        results[i][0] = sums[i][0] + (sums[i][1] + sums[i][2]) + bias;
        results[i][1] = (sums[i][1] - sums[i][2]) - sums[i][3] + bias;
        check += results[i][0] * 0 + results[i][1] * 0;
    }
    return check;
}

/* The results of one unit, as pairs of neighbours in two lines of results each. */
static Vector NAME(transform_unit_back)(const REAL *from, ptrdiff_t step, ptrdiff_t columns, REAL bias, REAL *lines,
                                        ptrdiff_t line)
{
    Vector check = (Vector){0}, results[2][2];
    for (ptrdiff_t t = 0; t < columns; t += LANES) {
        check += NAME(transform_back)(from + t, step, bias, results);
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++)
                STORE(lines + (2 * i + j) * line + t, results[i][j]);
    }
    return check;
}

/* The results of a block of one output channel where rows are short; `places` are those of the squares in the result's
 * first plane. */
static Vector NAME(transform_narrow_back)(const Winograd *plan, const REAL *from, ptrdiff_t step, ptrdiff_t squares,
                                          REAL bias, const ptrdiff_t *places, REAL *plane)
{
    ptrdiff_t height = plan->geometry.result[1], size = plan->geometry.result[2];
    int is_even = height % 2 == 0 && size % 2 == 0;
    Vector check = (Vector){0}, results[2][2];
    for (ptrdiff_t t = 0; t < squares; t += LANES) {
        check += NAME(transform_back)(from + t, step, bias, results);
        REAL pairs[2][2 * LANES];
        for (int i = 0; i < 2; i++) {
            REAL left[LANES], right[LANES];
            STORE(left, results[i][0]);
            STORE(right, results[i][1]);
            for (int lane = 0; lane < LANES; lane++) {
                pairs[i][2 * lane] = left[lane];
                pairs[i][2 * lane + 1] = right[lane];
            }
        }
        int count = squares - t < LANES ? (int)(squares - t) : LANES;
        for (int lane = 0; lane < count && is_even; lane++) {
            REAL *to = plane + places[t + lane];
            memcpy(to, &pairs[0][2 * lane], 2 * sizeof(REAL));
            memcpy(to + size, &pairs[1][2 * lane], 2 * sizeof(REAL));
        }
        for (int lane = 0; lane < count && !is_even; lane++) {
            REAL *to = plane + places[t + lane];
            ptrdiff_t unit = (t + lane) / plan->columns, x = 2 * ((t + lane) % plan->columns);
            int wide = x + 1 < size, has_second = places[squares + unit] + 1 < height;
            for (int i = 0; i <= has_second; i++)
                for (int j = 0; j <= wide; j++)
                    to[i * size + j] = pairs[i][2 * lane + j];
        }
    }
    return check;
}

/* Where the squares of a block have their results, counted from the first plane of an output channel; then the row in
 * the plane of each unit. */
static void NAME(list_places)(const Winograd *plan, ptrdiff_t first, ptrdiff_t units, ptrdiff_t *places)
{
    const Geometry *g = &plan->geometry;
    ptrdiff_t sample_step = g->groups * g->out_channels * g->result[1] * g->result[2];
    for (ptrdiff_t unit = 0; unit < units; unit++) {
        ptrdiff_t sample = (first + unit) / plan->rows, row = 2 * ((first + unit) % plan->rows);
        for (ptrdiff_t x = 0; x < plan->columns; x++)
            places[unit * plan->columns + x] = sample * sample_step + row * g->result[2] + 2 * x;
        places[units * plan->columns + unit] = row;
    }
}

/* Write two lines of pairs to the rows of a plane that are there. */
INLINE void NAME(write_pairs)(const Winograd *plan, const REAL *lines, ptrdiff_t row, REAL *plane)
{
    const Geometry *g = &plan->geometry;
    ptrdiff_t size = g->result[2], pairs = size / 2;
    for (int i = 0; i < 2 && 2 * row + i < g->result[1]; i++) {
        const REAL *left = lines + 2 * i * plan->line, *right = left + plan->line;
        REAL *to = plane + (2 * row + i) * size;
        for (ptrdiff_t t = 0; t < pairs; t++) {
            to[2 * t] = left[t];
            to[2 * t + 1] = right[t];
        }
        if (size % 2)
            to[size - 1] = left[pairs];
    }
}

/* One of the 16 products of matrices: some channels of all output channels, for all vectors of squares. */
static void NAME(multiply_element)(const Winograd *plan, NAME(Tile) tile, const REAL *weight, ptrdiff_t vectors,
                                   REAL *result)
{
    const Geometry *g = &plan->geometry;
    const ptrdiff_t *places = plan->offsets + g->channels;
    int largest = (int)(g->out_channels < MOST_CHANNELS ? g->out_channels : MOST_CHANNELS);
    for (ptrdiff_t v = 0; v < vectors;) {
        int next = NAME(next_vectors)(largest, vectors - v);
        tile.starts = tile.places = places + v;
        for (ptrdiff_t block = 0, begin = 0; begin < g->out_channels; block++) {
            ptrdiff_t end = NAME(block_begin)(g->out_channels, MOST_CHANNELS, block + 1);
            tile.weight = weight + begin * tile.steps;
            tile.result = result + begin * plan->pitch;
            NAME(tiles)[end - begin][next](&tile);
            begin = end;
        }
        v += next;
    }
}

/* The 16 products of matrices of a block. Sums begin anew with each chunk of channels: they round less, and what they
 * read stays in the first cache. */
static void NAME(multiply_squares)(const Winograd *plan, const REAL *weight, const REAL *squares, ptrdiff_t width,
                                   REAL *result)
{
    const Geometry *g = &plan->geometry;
    ptrdiff_t vectors = (width + LANES - 1) / LANES;
    NAME(Tile) tile = {.is_first = 1, .is_last = 1, .channel_step = plan->pitch};
    for (int element = 0; element < SQUARES; element++)
        for (ptrdiff_t channel = 0; channel < g->channels; channel += CHANNEL_CHUNK) {
            ptrdiff_t left = g->channels - channel;
            tile.steps = left < CHANNEL_CHUNK ? left : CHANNEL_CHUNK;
            tile.offsets = plan->offsets + channel;
            tile.adds = channel > 0;
            tile.input = squares + element * g->channels * plan->pitch;
            NAME(multiply_element)(plan, tile, weight + (element * g->channels + channel) * g->out_channels, vectors,
                                   result + element * g->out_channels * plan->pitch);
        }
}

/* The units from `first` on of one group. */
static int NAME(convolve_units)(const WinogradCall *call, ptrdiff_t group, ptrdiff_t first, ptrdiff_t units, REAL *lines,
                                REAL *squares, REAL *products)
{
    const Winograd *plan = call->plan;
    const Geometry *g = &plan->geometry;
    ptrdiff_t outs = g->groups * g->out_channels, plane = g->result[1] * g->result[2];
    const REAL *weight = (const REAL *)call->transformed + group * SQUARES * g->out_channels * g->channels;
    for (ptrdiff_t c = 0; c < g->channels; c++)
        NAME(transform_channel)(plan, call->input, group * g->channels + c, first, units, lines,
                                squares + c * plan->pitch, g->channels * plan->pitch);
    NAME(multiply_squares)(plan, weight, squares, units * plan->columns, products);
    Vector check = (Vector){0};
    ptrdiff_t *places = (ptrdiff_t *)lines, step = g->out_channels * plan->pitch;
    if (plan->is_narrow)
        NAME(list_places)(plan, first, units, places);
    for (ptrdiff_t o = 0; o < g->out_channels; o++) {
        ptrdiff_t out = group * g->out_channels + o;
        REAL bias = call->bias ? ((const REAL *)call->bias)[out] : 0, *result = (REAL *)call->result + out * plane;
        if (plan->is_narrow)
            check += NAME(transform_narrow_back)(plan, products + o * plan->pitch, step, units * plan->columns, bias,
                                                 places, result);
        else
            for (ptrdiff_t unit = 0; unit < units; unit++) {
                ptrdiff_t sample = (first + unit) / plan->rows, row = (first + unit) % plan->rows;
                check += NAME(transform_unit_back)(products + o * plan->pitch + unit * plan->columns, step,
                                                   plan->columns, bias, lines, plan->line);
                NAME(write_pairs)(plan, lines, row, result + sample * outs * plane);
            }
    }
    return NAME(sum_lanes)(check) == 0;
}

/* Items are blocks of units of a group. */
static void NAME(convolve_squares)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    WinogradCall *call = context;
    const Winograd *plan = call->plan;
    const Geometry *g = &plan->geometry;
    ptrdiff_t blocks = (plan->units + plan->block - 1) / plan->block;
    ptrdiff_t products = SQUARES * g->out_channels * plan->pitch;
    NAME(Room) room;
    if (!NAME(make_room)(SQUARES * g->channels * plan->pitch + LANES, products, NAME(line_room)(plan), &room)) {
        call->failed = 1;
        return;
    }
    memset(room.scratch, 0, (size_t)(products + LANES) * sizeof(REAL));
    for (ptrdiff_t item = begin; item < end; item++) {
        ptrdiff_t first = item % blocks * plan->block, left = plan->units - first;
        if (!NAME(convolve_units)(call, item / blocks, first, left < plan->block ? left : plan->block, room.partial,
                                  room.staged, room.scratch))
            call->is_finite = 0;
    }
    free(room.memory);
}
