/* The compiled kernel of topk in kernels/sorting.py: few elements of long rows. */
#include <stdint.h>

#include "rows.h"

#define MOST 64   /* elements that are kept; more are sorted faster */
#define BLOCK 32  /* elements that are looked at together */

typedef struct {
    Layout layout;
    ptrdiff_t kept;
    const void *input;
    void *values;
    int64_t *places;
} Selection;

#define LOOPS "topk_loops.h"
#include "for_each_real.h"

/* topk(input, k, dim, largest, sorted) along the last dimension; a NaN is larger than every number. */
static PyObject *topk(PyObject *const *slots, const KernelEntry *entry)
{
    PyObject *input = slots[0];
    long kept;
    int last = NDIM(input) - 1, type = type_of(input);
    if (dim_of(slots[2]) != last || !read_integer(slots[1], 1, DIM(input, last), &kept) || kept > MOST)
        return DECLINE;
    npy_intp shape[NPY_MAXDIMS];
    memcpy(shape, SHAPE(input), sizeof(npy_intp) * (size_t)last);
    shape[last] = kept;
    PyObject *results[2] = {new_array(last + 1, shape, type), new_array(last + 1, shape, NPY_INT64)};
    if (all_made(results, 2)) {
        Selection loop = {layout_along(input, last), kept, data_of(input), data_of(results[0]), data_of(results[1])};
        run_items(loop.layout.outer, 2 * loop.layout.count,
                  slots[3] == Py_True ? FOR_TYPE(type, select_largest) : FOR_TYPE(type, select_smallest), &loop);
    }
    return pack(2, results);
}

const KernelEntry topk_kernels[] = {
    {"topk", topk, "p.df"},
    {NULL},
};
