/* The compiled kernels of kernels/scans.py: running sums, products, extrema and logarithms of sums along a dimension.
 *
 * A running total waits for the one before it, so WIDTH columns, or rows, are taken side by side: their totals do not wait
 * for each other, and columns go into vectors. Totals are float64.
 */
#include "rows.h"
#include "functions.h"

#include <stdint.h>

#define WIDTH 8

typedef struct {
    Layout layout;
    const void *input, *gradient;
    void *output;
    int64_t *places;
} Scan;

/* Where the lanes of one item begin, how far they lie apart, and how far the steps of each. */
typedef struct {
    ptrdiff_t start, lane, step, count;
    int width;
} Lanes;

INLINE ptrdiff_t items_of(Layout layout)
{
    return layout.inner == 1 ? (layout.outer + WIDTH - 1) / WIDTH : layout.outer * ((layout.inner + WIDTH - 1) / WIDTH);
}

INLINE Lanes lanes_of(Layout layout, ptrdiff_t item)
{
    ptrdiff_t groups = layout.inner == 1 ? 1 : (layout.inner + WIDTH - 1) / WIDTH;
    ptrdiff_t outer = layout.inner == 1 ? item * WIDTH : item / groups, column = item % groups * WIDTH;
    ptrdiff_t left = layout.inner == 1 ? layout.outer - outer : layout.inner - column;
    return (Lanes){
        .start = outer * layout.count * layout.inner + column,
        .lane = layout.inner == 1 ? layout.count : 1,
        .step = layout.inner,
        .count = layout.count,
        .width = left < WIDTH ? (int)left : WIDTH,
    };
}

#define LOOPS "scan_loops.h"
#include "for_each_real.h"

static Scan scan_of(PyObject *input, PyObject *dim)
{
    return (Scan){.layout = layout_along(input, (int)PyLong_AsLong(dim)), .input = data_of(input)};
}

static void run_scan(Scan *scan, PyObject *output, int passes, BlockFunction body)
{
    scan->output = data_of(output);
    run_items(items_of(scan->layout), passes * WIDTH * scan->layout.count, body, scan);
}

static PyObject *run_along(PyObject *const *slots, const KernelEntry *entry)
{
    PyObject *result = new_like(slots[0]);
    Scan scan = scan_of(slots[0], slots[1]);
    if (result)
        run_scan(&scan, result, 1, LOOP_FOR(entry, result));
    return result;
}

static PyObject *cumprod_grad(PyObject *const *slots, const KernelEntry *entry)
{
    PyObject *result = new_like(slots[1]);
    Scan scan = scan_of(slots[1], slots[2]);
    scan.gradient = data_of(slots[0]);
    if (result)
        run_scan(&scan, result, 2, LOOP_FOR(entry, result));
    return result;
}

static PyObject *running_extremum(PyObject *const *slots, const KernelEntry *entry)
{
    PyArrayObject *array = (PyArrayObject *)slots[0];
    PyObject *values = new_like(slots[0]), *places = new_array(PyArray_NDIM(array), PyArray_DIMS(array), NPY_INT64);
    Scan scan = scan_of(slots[0], slots[1]);
    if (values && places) {
        scan.places = data_of(places);
        run_scan(&scan, values, 2, LOOP_FOR(entry, values));
    }
    return pack(2, (PyObject *[]){values, places});
}

const KernelEntry scan_kernels[] = {
    {"cumsum", run_along, "rdt", LOOP_PAIR(running_sum)},
    {"cumprod", run_along, "rdt", LOOP_PAIR(running_product)},
    {"reversed_cumsum", run_along, "rd", LOOP_PAIR(reversed_sum)},
    {"cumprod_grad", cumprod_grad, "rRd", LOOP_PAIR(product_gradient)},
    {"logcumsumexp", run_along, "rd", LOOP_PAIR(running_logarithm)},
    {"cummax", running_extremum, "rd", LOOP_PAIR(running_largest)},
    {"cummin", running_extremum, "rd", LOOP_PAIR(running_smallest)},
    {NULL},
};
