/* One step of an LSTM on some sequences, for one type of number; included by for_each_real.h. */

MULTIVERSIONED static void TYPED(lstm_step)(const LstmRows *s)
{
    ptrdiff_t size = s->size;
    for (ptrdiff_t row = 0; row < s->count; row++) {
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
MULTIVERSIONED static void TYPED(lstm_step_back)(const LstmRows *s)
{
    ptrdiff_t size = s->size;
    for (ptrdiff_t row = 0; row < s->count; row++) {
        const REAL *gates = (const REAL *)s->gates + row * 4 * size, *before = (const REAL *)s->cell_before + row * size,
                   *hidden_grad = (const REAL *)s->hidden + row * size, *output_grad = (const REAL *)s->output + row * size;
        REAL *grads = (REAL *)s->gate_grads + row * 4 * size, *cell_grad = (REAL *)s->cell + row * size;
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
