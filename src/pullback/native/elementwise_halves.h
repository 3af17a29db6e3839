/* Elementwise kernels on floats of 16 bits; a part of elementwise_driver.c.
 *
 * Pieces are widened to float32, go through the float32 loop, and are rounded once: as PyTorch computes them. Operands are
 * of one shape and row-major, or single numbers; everything else is left to the reference. Python's numbers are float32,
 * but for the kernels for which PyTorch rounds them to 16 bits first.
 */

typedef struct {
    const Call *call;
    ElementwiseLoop loop;
    FloatKind kind;
    char *result;
    npy_intp total;
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

static PyObject *run_halves(Call *call, const Variant *variant)
{
    PyArray_Descr *descr = NULL;
    for (int k = 0; k < call->count; k++) {
        PyArrayObject *array = (PyArrayObject *)call->operands[k];
        if (array && type_of((PyObject *)array) == call->type)
            descr = PyArray_DESCR(array);
        if (!array || is_single(call, k)) {
            if (array && type_of((PyObject *)array) == NPY_BOOL)
                return DECLINE;
            continue;
        }
        if (!PyArray_IS_C_CONTIGUOUS(array) || !same_shape((PyObject *)array, (PyObject *)call->lead))
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
    Halves halves = {call, variant->of_float, float_kind(descr), PyArray_BYTES((PyArrayObject *)result), PyArray_SIZE(call->lead)};
    ptrdiff_t pieces = (halves.total + PIECE - 1) / PIECE;
    run_unlocked((double)halves.total, pieces, variant->share / PIECE, do_halves, &halves);
    return result;
}
