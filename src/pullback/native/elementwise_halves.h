/* Elementwise kernels on floats of 16 bits; a part of elementwise_driver.c.
 *
 * Pieces are widened to float32, go through the float32 loop, and are rounded once: as PyTorch computes them. Operands are
 * row-major and of one shape, single numbers, or broadcast along the first dimensions (a row for all rows) or along the
 * last ones (a number for each row); everything else is left to the reference. Python's numbers are float32, but for the
 * kernels for which PyTorch rounds them to 16 bits first.
 */

/* Below this length of a run, broadcasting is left to the reference. */
#define SHORTEST_RUN 8

typedef struct {
    const Call *call;
    ElementwiseLoop loop;
    FloatKind kind;
    char *result;
    npy_intp total;
    npy_intp period[MOST_PARAMETERS]; /* after how many elements an operand begins anew; 0 for never */
    npy_intp run[MOST_PARAMETERS];    /* how many elements have the same value */
} Halves;

/* Whether an operand is one number, which is the same in every piece. */
static int is_single(const Call *call, int k)
{
    PyArrayObject *array = (PyArrayObject *)call->operands[k];
    return !array || (array != call->lead && PyArray_SIZE(array) == 1);
}

static float single_value(const Halves *halves, int k)
{
    PyArrayObject *array = (PyArrayObject *)halves->call->operands[k];
    float value;
    if (!array)
        memcpy(&value, &halves->call->constants[k], sizeof value);
    else
        widen_floats(halves->kind, PyArray_DATA(array), &value, 1);
    return value;
}

static void fetch_periods(const Halves *halves, int k, npy_intp start, npy_intp count, float *wide)
{
    const char *data = PyArray_BYTES((PyArrayObject *)halves->call->operands[k]);
    npy_intp period = halves->period[k], at = start % period;
    for (npy_intp done = 0; done < count; at = 0) {
        npy_intp length = period - at < count - done ? period - at : count - done;
        widen_floats(halves->kind, data + 2 * at, wide + done, length);
        done += length;
    }
}

static void fetch_runs(const Halves *halves, int k, npy_intp start, npy_intp count, float *wide)
{
    const char *data = PyArray_BYTES((PyArrayObject *)halves->call->operands[k]);
    npy_intp run = halves->run[k];
    for (npy_intp done = 0; done < count;) {
        npy_intp at = start + done, left = run - at % run, end = done + (left < count - done ? left : count - done);
        float value;
        widen_floats(halves->kind, data + 2 * (at / run), &value, 1);
        while (done < end)
            wide[done++] = value;
    }
}

/* Bring `count` elements of an operand to a buffer, whose end up to whole vectors is filled with zeros. */
static void fetch_piece(const Halves *halves, int k, npy_intp start, npy_intp count, npy_intp filled, char *buffer)
{
    PyArrayObject *array = (PyArrayObject *)halves->call->operands[k];
    if (type_of((PyObject *)array) == NPY_BOOL) {
        memcpy(buffer, PyArray_BYTES(array) + start, (size_t)count);
        memset(buffer + count, 0, (size_t)(filled - count));
        return;
    }
    float *wide = (float *)(void *)buffer;
    if (halves->period[k])
        fetch_periods(halves, k, start, count, wide);
    else if (halves->run[k] > 1)
        fetch_runs(halves, k, start, count, wide);
    else
        widen_floats(halves->kind, PyArray_BYTES(array) + 2 * start, wide, count);
    memset(wide + count, 0, (size_t)(filled - count) * sizeof *wide);
}

static void do_halves(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Halves *halves = context;
    const Call *call = halves->call;
    Buffer buffers[MOST_PARAMETERS], made;
    void *operands[MOST_PARAMETERS];
    for (int k = 0; k < call->count; k++) {
        operands[k] = buffers[k].bytes;
        if (is_single(call, k)) {
            float value = single_value(halves, k);
            repeat(buffers[k].bytes, (const char *)&value, sizeof value, PIECE);
        }
    }
    for (ptrdiff_t piece = begin; piece < end; piece++) {
        npy_intp start = piece * PIECE, left = halves->total - start, count = left < PIECE ? left : PIECE;
        npy_intp filled = (npy_intp)WHOLE((size_t)(count + LANES - 1));
        for (int k = 0; k < call->count; k++)
            if (!is_single(call, k))
                fetch_piece(halves, k, start, count, filled, buffers[k].bytes);
        halves->loop(made.bytes, operands, call->given.numbers, (size_t)filled);
        narrow_floats(halves->kind, (const float *)(const void *)made.bytes, halves->result + 2 * start, count);
    }
}

static float rounded_number(FloatKind kind, float value)
{
    uint16_t narrow;
    narrow_floats(kind, &value, &narrow, 1);
    widen_floats(kind, &narrow, &value, 1);
    return value;
}

static void round_numbers(Call *call, FloatKind kind)
{
    for (int k = 0; k < call->count; k++)
        if (!call->operands[k]) {
            float value;
            memcpy(&value, &call->constants[k], sizeof value);
            store((char *)&call->constants[k], rounded_number(kind, value), call->type);
        }
    for (int i = 0; i < call->kernel->count; i++)
        if (call->kernel->parameters[i].kind == NUMBER)
            call->given.numbers[i] = rounded_number(kind, (float)call->given.numbers[i]);
}

/* Find how an operand is broadcast to the shape of `lead`; 0 where in another way than those above. */
static int find_repetition(Halves *halves, int k, PyArrayObject *lead)
{
    PyArrayObject *array = (PyArrayObject *)halves->call->operands[k];
    int ndim = PyArray_NDIM(lead), skipped = ndim - PyArray_NDIM(array), from = ndim, to = 0;
    npy_intp size = PyArray_SIZE(array), total = PyArray_SIZE(lead);
    halves->period[k] = 0;
    halves->run[k] = 1;
    if (size == total)
        return same_shape((PyObject *)array, (PyObject *)lead);
    if (type_of((PyObject *)array) == NPY_BOOL || !size)
        return 0;
    while (from > skipped && PyArray_DIM(array, from - 1 - skipped) == PyArray_DIM(lead, from - 1))
        from--;
    npy_intp trailing = 1, leading = 1;
    for (int i = from; i < ndim; i++)
        trailing *= PyArray_DIM(lead, i);
    if (trailing == size) {
        halves->period[k] = size;
        return size >= SHORTEST_RUN;
    }
    while (!skipped && to < ndim && PyArray_DIM(array, to) == PyArray_DIM(lead, to))
        leading *= PyArray_DIM(lead, to++);
    halves->run[k] = total / size;
    return !skipped && leading == size && total / size >= SHORTEST_RUN;
}

/* The operand that has the shape of the result. */
static PyArrayObject *largest_operand(const Call *call)
{
    PyArrayObject *largest = call->lead;
    for (int k = 0; k < call->count; k++) {
        PyArrayObject *array = (PyArrayObject *)call->operands[k];
        if (array && PyArray_NDIM(array) == PyArray_NDIM(largest) && PyArray_SIZE(array) > PyArray_SIZE(largest))
            largest = array;
    }
    return largest;
}

static PyObject *run_halves(Call *call, const Variant *variant)
{
    PyArray_Descr *descr = NULL;
    Halves halves = {.call = call, .loop = variant->of_float};
    call->lead = largest_operand(call);
    for (int k = 0; k < call->count; k++) {
        PyArrayObject *array = (PyArrayObject *)call->operands[k];
        if (array && type_of((PyObject *)array) == call->type)
            descr = PyArray_DESCR(array);
        if (!array || is_single(call, k)) {
            if (array && type_of((PyObject *)array) == NPY_BOOL)
                return DECLINE;
            continue;
        }
        if (!PyArray_IS_C_CONTIGUOUS(array) || !find_repetition(&halves, k, call->lead))
            return DECLINE;
    }
    if (!descr)
        return DECLINE;
    if (call->kernel->rounds_numbers)
        round_numbers(call, float_kind(descr));
    Py_INCREF(descr);
    PyObject *result = PyArray_NewFromDescr(&PyArray_Type, descr, PyArray_NDIM(call->lead), PyArray_DIMS(call->lead), NULL,
                                            NULL, 0, NULL);
    if (!result)
        return NULL;
    halves.kind = float_kind(descr);
    halves.result = PyArray_BYTES((PyArrayObject *)result);
    halves.total = PyArray_SIZE(call->lead);
    ptrdiff_t pieces = (halves.total + PIECE - 1) / PIECE;
    run_unlocked((double)halves.total, pieces, variant->share / PIECE, do_halves, &halves);
    return result;
}
