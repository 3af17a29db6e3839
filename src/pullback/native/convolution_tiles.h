/* The innermost loops of convolutions, for one dtype and one instruction set: see Note [Staged convolution].
 *
 * To be included with REAL (the dtype), BITS (an integer of its size), NAME (makes a name its own), VECTOR_BYTES and the
 * sizes of tiles that fill the registers and no more. Compilers without vectors get vectors of one lane.
 */
#if defined(__GNUC__)
#define LANES ((int)(VECTOR_BYTES / sizeof(REAL)))
typedef REAL NAME(Vector) __attribute__((vector_size(VECTOR_BYTES)));
typedef REAL NAME(Loose) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));
typedef BITS NAME(Mask) __attribute__((vector_size(VECTOR_BYTES)));
#define MASKED(vector, mask) ((Vector)((NAME(Mask))(vector) & (mask)))
#else
#define LANES 1
typedef REAL NAME(Vector);
typedef REAL NAME(Loose);
typedef BITS NAME(Mask);
#define MASKED(vector, mask) ((mask) ? (vector) : 0)
#endif
#define Vector NAME(Vector)
#define LOAD(place) (*(const NAME(Loose) *)(place))
#define STORE(place, vector) (*(NAME(Loose) *)(place) = (vector))

typedef struct {
    const REAL *input;
    const ptrdiff_t *starts, *places;
    const ptrdiff_t *offsets; /* one for each step: a tap of a channel */
    ptrdiff_t steps;
    const REAL *weight;   /* for each step, of each output channel */
    const REAL *bias;     /* NULL for none */
    REAL *partial;        /* sums of earlier steps, and for later ones */
    int is_first, is_last;
    int adds; /* to what the result holds */
    REAL *result;
    ptrdiff_t channel_step; /* between output channels of the result */
} NAME(Tile);

/* For each sum of a tile; unrolled, or sums would go to memory and back. */
#define EACH_SUM                                                        \
    UNROLLED for (int c = 0; c < channels; c++)                         \
        UNROLLED for (int v = 0; v < vectors; v++)

/* `vectors` vectors of `channels` output channels. Both are constants: all loops but the one of steps are unrolled. */
INLINE void NAME(compute)(const int channels, const int vectors, const NAME(Tile) *tile)
{
    Vector sums[8][8];
    const REAL *inputs[8];
    for (int v = 0; v < vectors; v++)
        inputs[v] = tile->input + tile->starts[v];
    if (!tile->is_first) {
        EACH_SUM sums[c][v] = LOAD(tile->partial + (c * vectors + v) * LANES);
    } else if (tile->bias) {
        EACH_SUM sums[c][v] = (Vector){0} + tile->bias[c];
    } else
        EACH_SUM sums[c][v] = (Vector){0};
    if (tile->is_last) /* the lines are there when the sums are */
        EACH_SUM PREFETCH_TO_WRITE(tile->result + c * tile->channel_step + tile->places[v]);
    const REAL *weight = tile->weight;
    const ptrdiff_t *end = tile->offsets + tile->steps;
    for (const ptrdiff_t *offset = tile->offsets; offset < end; offset++, weight += channels) {
        Vector x[8];
        for (int v = 0; v < vectors; v++)
            x[v] = LOAD(inputs[v] + *offset);
        EACH_SUM sums[c][v] += x[v] * weight[c];
    }
    if (!tile->is_last) {
        EACH_SUM STORE(tile->partial + (c * vectors + v) * LANES, sums[c][v]);
        return;
    }
    if (tile->adds)
        EACH_SUM sums[c][v] += LOAD(tile->result + c * tile->channel_step + tile->places[v]);
    EACH_SUM STORE(tile->result + c * tile->channel_step + tile->places[v], sums[c][v]);
}

#define TILE(channels, vectors)                                                      \
    static void NAME(tile_##channels##_##vectors)(const NAME(Tile) *tile)            \
    {                                                                                \
        NAME(compute)(channels, vectors, tile);                                      \
    }
#define TILES_3(channels) TILE(channels, 1) TILE(channels, 2) TILE(channels, 3)
#define TILES_4(channels) TILES_3(channels) TILE(channels, 4)
#define TILES_6(channels) TILES_4(channels) TILE(channels, 6)
#define NAMES_3(channels) NULL, NAME(tile_##channels##_1), NAME(tile_##channels##_2), NAME(tile_##channels##_3)
#define NAMES_4(channels) NAMES_3(channels), NAME(tile_##channels##_4)
#define NAMES_6(channels) NAMES_4(channels), NULL, NAME(tile_##channels##_6)

/* The most vectors of a tile of so many channels: sums, inputs and one weight have to fit into the registers. */
#if MOST_CHANNELS == 8
TILES_6(1) TILES_6(2) TILES_6(3) TILES_6(4) TILES_4(5) TILES_4(6) TILES_3(7) TILES_3(8)
static const int NAME(most_vectors)[] = {0, 6, 6, 6, 6, 4, 4, 3, 3};
static void (*const NAME(tiles)[][7])(const NAME(Tile) *) = {
    {NULL},       {NAMES_6(1)}, {NAMES_6(2)}, {NAMES_6(3)}, {NAMES_6(4)},
    {NAMES_4(5)}, {NAMES_4(6)}, {NAMES_3(7)}, {NAMES_3(8)},
};
#else
TILES_6(1) TILES_4(2) TILES_3(3) TILES_3(4)
static const int NAME(most_vectors)[] = {0, 6, 4, 3, 3};
static void (*const NAME(tiles)[][7])(const NAME(Tile) *) = {
    {NULL}, {NAMES_6(1)}, {NAMES_4(2)}, {NAMES_3(3)}, {NAMES_3(4)},
};
#endif

/* How many of `rest` vectors the next tile takes: as many as fit, in parts of about one size. */
INLINE int NAME(next_vectors)(int channels, ptrdiff_t rest)
{
    int most = NAME(most_vectors)[channels];
    if (rest > 2 * most)
        return most;
    int next = rest <= most ? (int)rest : (int)(rest + 1) / 2;
    return next == 5 ? 3 : next;
}

/* The gradient of the weight: for each of some output channels and taps, the sum over vectors of the product of the
 * result's gradient and of the input that the tap had read. */
typedef struct {
    const REAL *input, *output_grad;
    const ptrdiff_t *offsets; /* of the taps */
    ptrdiff_t samples, input_step, grad_step; /* between samples */
    ptrdiff_t channel_step;                   /* between output channels */
    const Vectors *vectors;
    const NAME(Mask) *masks; /* of the vectors that are not whole */
    REAL *sums;              /* of each tap of each output channel */
} NAME(WeightTile);

INLINE REAL NAME(sum_lanes)(Vector vector)
{
#if defined(__GNUC__)
    /* Halves are added until two or four numbers are left; each step is one instruction. */
    typedef REAL Quarter __attribute__((vector_size(16)));
    union {
        Vector vector;
        Quarter quarters[VECTOR_BYTES / 16];
    } parts = {vector};
    for (int count = VECTOR_BYTES / 32; count > 0; count /= 2)
        for (int i = 0; i < count; i++)
            parts.quarters[i] += parts.quarters[i + count];
    Quarter rest = parts.quarters[0];
    if (sizeof(REAL) == 8)
        return rest[0] + rest[1];
    return (rest[0] + rest[2 % (16 / sizeof(REAL))]) + (rest[1] + rest[3 % (16 / sizeof(REAL))]);
#else
    return vector;
#endif
}

INLINE void NAME(weigh_tile)(const int channels, const int taps, const NAME(WeightTile) *tile)
{
    Vector sums[4][6], grads[4];
    const REAL *inputs[6], *output_grad = tile->output_grad;
    const Vectors *vectors = tile->vectors;
    for (int k = 0; k < taps; k++)
        inputs[k] = tile->input + tile->offsets[k];
    for (int c = 0; c < channels; c++)
        for (int k = 0; k < taps; k++)
            sums[c][k] = (Vector){0};
    for (ptrdiff_t n = 0; n < tile->samples; n++) {
        for (ptrdiff_t v = 0; v < vectors->whole; v++) {
            ptrdiff_t start = vectors->starts[v], place = vectors->places[v];
            for (int c = 0; c < channels; c++)
                grads[c] = LOAD(output_grad + c * tile->channel_step + place);
            for (int k = 0; k < taps; k++) {
                Vector x = LOAD(inputs[k] + start);
                for (int c = 0; c < channels; c++)
                    sums[c][k] += x * grads[c];
            }
        }
        for (ptrdiff_t v = vectors->whole; v < vectors->count; v++) {
            ptrdiff_t start = vectors->starts[v], place = vectors->places[v];
            NAME(Mask) mask = tile->masks[v - vectors->whole];
            for (int c = 0; c < channels; c++)
                grads[c] = MASKED(LOAD(output_grad + c * tile->channel_step + place), mask);
            for (int k = 0; k < taps; k++) {
                Vector x = MASKED(LOAD(inputs[k] + start), mask); /* nothing times infinity would be NaN */
                for (int c = 0; c < channels; c++)
                    sums[c][k] += x * grads[c];
            }
        }
        output_grad += tile->grad_step;
        for (int k = 0; k < taps; k++)
            inputs[k] += tile->input_step;
    }
    for (int c = 0; c < channels; c++)
        for (int k = 0; k < taps; k++)
            tile->sums[c * taps + k] = NAME(sum_lanes)(sums[c][k]);
}

#define WEIGHT_TILE(channels, taps)                                                   \
    static void NAME(weight_tile_##channels##_##taps)(const NAME(WeightTile) *tile)   \
    {                                                                                 \
        NAME(weigh_tile)(channels, taps, tile);                                       \
    }
#define WEIGHT_NAMES_4(channels)                                                                             \
    NULL, NAME(weight_tile_##channels##_1), NAME(weight_tile_##channels##_2), NAME(weight_tile_##channels##_3), \
        NAME(weight_tile_##channels##_4)
#define WEIGHT_NAMES_6(channels) \
    WEIGHT_NAMES_4(channels), NAME(weight_tile_##channels##_5), NAME(weight_tile_##channels##_6)
#define WEIGHT_TILES_4(channels) \
    WEIGHT_TILE(channels, 1) WEIGHT_TILE(channels, 2) WEIGHT_TILE(channels, 3) WEIGHT_TILE(channels, 4)
#define WEIGHT_TILES_6(channels) WEIGHT_TILES_4(channels) WEIGHT_TILE(channels, 5) WEIGHT_TILE(channels, 6)

#if MOST_CHANNELS == 8
#define WEIGHT_CHANNELS 4
#define WEIGHT_TAPS 6
WEIGHT_TILES_6(1) WEIGHT_TILES_6(2) WEIGHT_TILES_6(3) WEIGHT_TILES_6(4)
static void (*const NAME(weight_tiles)[][7])(const NAME(WeightTile) *) = {
    {NULL}, {WEIGHT_NAMES_6(1)}, {WEIGHT_NAMES_6(2)}, {WEIGHT_NAMES_6(3)}, {WEIGHT_NAMES_6(4)},
};
#else
#define WEIGHT_CHANNELS 3
#define WEIGHT_TAPS 4
WEIGHT_TILES_4(1) WEIGHT_TILES_4(2) WEIGHT_TILES_4(3)
static void (*const NAME(weight_tiles)[][7])(const NAME(WeightTile) *) = {
    {NULL}, {WEIGHT_NAMES_4(1)}, {WEIGHT_NAMES_4(2)}, {WEIGHT_NAMES_4(3)},
};
#endif
