/* The compiled kernels of kernels/extrema.py that say where an extremum is. */
#include "reduction.h"

#include <math.h>
#include <stdint.h>

typedef struct {
    Layout layout;
    const void *input;
    void *values; /* NULL where only places are asked for */
    int64_t *places;
} Extrema;

/* As wide as the numbers that it is chosen by. */
#define PLACES TYPED(places)
typedef int32_t places_float;
typedef int64_t places_double;

#define LOOPS "extremum_loops.h"
#include "for_each_real.h"

/* The values (where they are wanted) and places along a dimension; `dim` is -1 for the flattened array. */
static PyObject *extrema_along(const KernelEntry *entry, PyObject *input, int dim, int keepdim, int with_values)
{
    Layout layout = dim < 0 ? (Layout){1, size_of(input), 1} : layout_along(input, dim);
    if (layout.count > INT32_MAX)
        return DECLINE;
    npy_intp shape[NPY_MAXDIMS];
    int ndim = 0;
    for (int i = 0; i < NDIM(input); i++)
        if (i != dim && dim >= 0)
            shape[ndim++] = DIM(input, i);
        else if (keepdim)
            shape[ndim++] = 1;
    PyObject *places = new_array(ndim, shape, NPY_INT64), *values = NULL;
    if (with_values)
        values = new_array(ndim, shape, type_of(input));
    if (places && (values || !with_values)) {
        Extrema loop = {layout, data_of(input), values ? data_of(values) : NULL, data_of(places)};
        ptrdiff_t lanes = type_of(input) == NPY_FLOAT ? 32 : 16, groups = (layout.inner + lanes - 1) / lanes;
        run_items(layout.outer * groups, 2 * layout.count * (layout.inner < lanes ? layout.inner : lanes),
                  LOOP_FOR(entry, input), &loop);
    }
    return with_values ? pack(2, (PyObject *[]){values, places}) : places;
}

/* (input, dim, keepdim) */
static PyObject *select_along(PyObject *const *slots, const KernelEntry *entry)
{
    return extrema_along(entry, slots[0], dim_of(slots[1]), slots[2] == Py_True, 1);
}

/* The same, where `dim` may be None and places alone are asked for. */
static PyObject *place_along(PyObject *const *slots, const KernelEntry *entry)
{
    long dim = -1;
    if (!is_none(slots[1]) && !read_integer(slots[1], 0, NDIM(slots[0]) - 1, &dim))
        return DECLINE;
    return extrema_along(entry, slots[0], (int)dim, slots[2] == Py_True, 0);
}

const KernelEntry extrema_kernels[] = {
    {"max_dim", select_along, "rdf", LOOP_PAIR(find_largest)},
    {"min_dim", select_along, "rdf", LOOP_PAIR(find_smallest)},
    {"argmax", place_along, "r.f", LOOP_PAIR(find_largest)},
    {"argmin", place_along, "r.f", LOOP_PAIR(find_smallest)},
    {NULL},
};
