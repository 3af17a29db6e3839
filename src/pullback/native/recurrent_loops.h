/* One step of a recurrent layer on some sequences, for one type of number; included by for_each_real.h. */

MULTIVERSIONED static void TYPED(lstm_step)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const StepRows *s = context;
    ptrdiff_t size = s->size;
    for (ptrdiff_t row = begin; row < end; row++) {
        REAL *gates = (REAL *)s->gates + row * 4 * size, *hidden = (REAL *)s->hidden + row * size,
             *cell = (REAL *)s->cell + row * size, *output = (REAL *)s->output + row * size;
        INDEPENDENT
        for (ptrdiff_t j = 0; j < size; j++) {
            REAL i = SIGMOID(gates[j]), f = SIGMOID(gates[size + j]), g = TANH(gates[2 * size + j]),
                 o = SIGMOID(gates[3 * size + j]);
            gates[j] = i;
            gates[size + j] = f;
            gates[2 * size + j] = g;
            gates[3 * size + j] = o;
            REAL state = f * cell[j] + i * g;
            cell[j] = state;
            hidden[j] = output[j] = o * TANH(state);
        }
    }
}

/* The gradients of what goes into the gates, and of the cell before the step, from those of the output and the states. */
MULTIVERSIONED static void TYPED(lstm_step_back)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const StepRows *s = context;
    ptrdiff_t size = s->size;
    for (ptrdiff_t row = begin; row < end; row++) {
        const REAL *gates = (const REAL *)s->gates + row * 4 * size, *before = (const REAL *)s->cell_before + row * size,
                   *hidden_grad = (const REAL *)s->hidden + row * size, *output_grad = (const REAL *)s->output + row * size;
        REAL *grads = (REAL *)s->part + row * 4 * size, *cell_grad = (REAL *)s->cell + row * size;
        INDEPENDENT
        for (ptrdiff_t j = 0; j < size; j++) {
            REAL i = gates[j], f = gates[size + j], g = gates[2 * size + j], o = gates[3 * size + j];
            REAL tanh_cell = TANH(f * before[j] + i * g), total = output_grad[j] + hidden_grad[j];
            REAL change = cell_grad[j] + total * o * (1 - tanh_cell * tanh_cell);
            grads[j] = change * g * i * (1 - i);
            grads[size + j] = change * before[j] * f * (1 - f);
            grads[2 * size + j] = change * i * (1 - g * g);
            grads[3 * size + j] = total * tanh_cell * o * (1 - o);
            cell_grad[j] = change * f;
        }
    }
}

/* With r, z, n the gates: h = (1 - z) * n + z * h. `part` holds what comes from the state. */
MULTIVERSIONED static void TYPED(gru_step)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const StepRows *s = context;
    ptrdiff_t size = s->size;
    for (ptrdiff_t row = begin; row < end; row++) {
        REAL *gates = (REAL *)s->gates + row * 3 * size, *hidden = (REAL *)s->hidden + row * size,
             *output = (REAL *)s->output + row * size, *recurrent = (REAL *)s->recurrent_n + row * size;
        const REAL *part = (const REAL *)s->part + row * 3 * size;
        INDEPENDENT
        for (ptrdiff_t j = 0; j < size; j++) {
            REAL r = SIGMOID(gates[j] + part[j]), z = SIGMOID(gates[size + j] + part[size + j]);
            REAL from_state = part[2 * size + j], n = TANH(gates[2 * size + j] + r * from_state);
            gates[j] = r;
            gates[size + j] = z;
            gates[2 * size + j] = n;
            recurrent[j] = from_state;
            hidden[j] = output[j] = (hidden[j] - n) * z + n;
        }
    }
}

/* The gradients of what goes into the gates, and what the step passes on to the state before it directly. */
MULTIVERSIONED static void TYPED(gru_step_back)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const StepRows *s = context;
    ptrdiff_t size = s->size;
    for (ptrdiff_t row = begin; row < end; row++) {
        const REAL *gates = (const REAL *)s->gates + row * 3 * size, *before = (const REAL *)s->before + row * size,
                   *recurrent = (const REAL *)s->recurrent_n + row * size,
                   *output_grad = (const REAL *)s->output + row * size;
        REAL *from_input = (REAL *)s->from_input + row * 3 * size, *from_state = (REAL *)s->part + row * 3 * size,
             *hidden_grad = (REAL *)s->hidden + row * size;
        INDEPENDENT
        for (ptrdiff_t j = 0; j < size; j++) {
            REAL r = gates[j], z = gates[size + j], n = gates[2 * size + j], total = output_grad[j] + hidden_grad[j];
            REAL to_n = total * (1 - z) * (1 - n * n), to_r = to_n * recurrent[j] * r * (1 - r);
            REAL to_z = total * (before[j] - n) * z * (1 - z);
            from_input[j] = from_state[j] = to_r;
            from_input[size + j] = from_state[size + j] = to_z;
            from_input[2 * size + j] = to_n;
            from_state[2 * size + j] = to_n * r;
            hidden_grad[j] = total * z;
        }
    }
}

MULTIVERSIONED static void TYPED(rnn_step)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const StepRows *s = context;
    REAL *state = (REAL *)s->output, *hidden = (REAL *)s->hidden;
    ptrdiff_t count = (end - begin) * s->size;
    if (s->is_tanh)
        for (ptrdiff_t j = 0; j < count; j++)
            state[j] = TANH(state[j]);
    else
        for (ptrdiff_t j = 0; j < count; j++)
            state[j] = state[j] < 0 ? 0 : state[j];
    memcpy(hidden, state, (size_t)count * sizeof(REAL));
}

/* `output` is the output's gradient here, `gates` the output. */
MULTIVERSIONED static void TYPED(rnn_step_back)(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const StepRows *s = context;
    const REAL *state = (const REAL *)s->gates, *output_grad = (const REAL *)s->output, *hidden = (const REAL *)s->hidden;
    REAL *sums = (REAL *)s->part;
    ptrdiff_t count = (end - begin) * s->size;
    for (ptrdiff_t j = 0; j < count; j++) {
        REAL slope = s->is_tanh ? 1 - state[j] * state[j] : state[j] > 0 ? (REAL)1 : (REAL)0;
        sums[j] = (output_grad[j] + hidden[j]) * slope;
    }
}
