/* The compiled kernel of kernels/resampling.py: a map along one dimension of an array, by a table of taps. */
#include <stdint.h>
#include <string.h>

#include "rows.h"

#define FEW_TAPS 4
#define LONG_RUN 8

typedef struct {
    const void *input;
    void *output;
    ptrdiff_t inputs, outputs, inner, taps; /* taps of the table; of an output there may be fewer */
    ptrdiff_t most;                         /* of any output */
    int is_run;                             /* every output reads neighbours */
    const npy_int64 *positions;
    ptrdiff_t *counts;
    void *weights, *by_tap; /* [output][tap], and [tap][output] with `places` where there are few */
    int32_t *places;
    int32_t *runs; /* where outputs begin that differ from the one before, where long runs are alike, and their end */
    ptrdiff_t run_count;
} Map;

#define LOOPS "resampling_loops.h"
#include "for_each_real.h"

static int is_table(PyObject *object, int type)
{
    return PyArray_CheckExact(object) && type_of(object) == type && NDIM(object) == 2 &&
           PyArray_ISCARRAY_RO((PyArrayObject *)object);
}

/* Tables are filled up with taps at 0 of weight 0, which are left out: what lies at 0 may be infinite. */
static void count_taps(Map *map, PyObject *weights)
{
    map->most = 1;
    map->is_run = 1;
    for (ptrdiff_t i = 0; i < map->outputs; i++) {
        const npy_int64 *positions = map->positions + i * map->taps;
        ptrdiff_t count = map->taps;
        while (count > 1 && weights && positions[count - 1] == 0) {
            ptrdiff_t place = i * map->taps + count - 1;
            double weight = type_of(weights) == NPY_DOUBLE ? ((double *)data_of(weights))[place]
                                                           : ((float *)data_of(weights))[place];
            if (weight != 0)
                break;
            count--;
        }
        map->counts[i] = count;
        map->most = count > map->most ? count : map->most;
        for (ptrdiff_t t = 1; t < count; t++)
            map->is_run = map->is_run && positions[t] == positions[0] + t;
    }
}

static int is_identity(const Map *map)
{
    for (ptrdiff_t i = 0; i < map->outputs; i++)
        if (map->positions[i] != i)
            return 0;
    return map->outputs == map->inputs;
}

static int read_map(PyObject *array, PyObject *taps, long axis, Map *map)
{
    if (!taps || !PyTuple_CheckExact(taps) || PyTuple_GET_SIZE(taps) != 2)
        return 0;
    PyObject *positions = PyTuple_GET_ITEM(taps, 0), *weights = PyTuple_GET_ITEM(taps, 1);
    if (!is_table(positions, NPY_INT64) || !size_of(positions) ||
        (weights != Py_None && !((is_table(weights, NPY_FLOAT) || is_table(weights, NPY_DOUBLE)) &&
                                 same_shape(weights, positions))))
        return 0;
    Layout layout = layout_along(array, (int)axis);
    map->inputs = layout.count;
    map->inner = layout.inner;
    map->outputs = DIM(positions, 0);
    map->taps = DIM(positions, 1);
    map->positions = data_of(positions);
    for (ptrdiff_t i = 0; i < map->outputs * map->taps; i++)
        if (map->positions[i] < 0 || map->positions[i] >= map->inputs)
            return 0;
    return map->inputs < INT32_MAX && !(map->taps == 1 && is_identity(map));
}

/* (array, taps, axis) */
static PyObject *_apply_along(PyObject *const *slots, const KernelEntry *entry)
{
    int axis = dim_of(slots[2]), ndim = NDIM(slots[0]), type = type_of(slots[0]);
    Map map;
    if (!read_map(slots[0], slots[1], axis, &map))
        return DECLINE;
    npy_intp shape[NPY_MAXDIMS];
    for (int d = 0; d < ndim; d++)
        shape[d] = d == axis ? map.outputs : DIM(slots[0], d);
    PyObject *weights = PyTuple_GET_ITEM(slots[1], 1);
    size_t table = (size_t)(map.outputs * (map.taps > FEW_TAPS ? map.taps : FEW_TAPS));
    char *room = PyMem_RawMalloc(table * (2 * sizeof(double) + sizeof(int32_t)) + (size_t)map.outputs * sizeof(ptrdiff_t) +
                                 (size_t)(map.outputs + 1) * sizeof(int32_t));
    PyObject *result = room ? new_array(ndim, shape, type) : PyErr_NoMemory();
    if (result) {
        map.weights = room;
        map.by_tap = room + table * sizeof(double);
        map.counts = (ptrdiff_t *)(room + 2 * table * sizeof(double));
        map.places = (int32_t *)(map.counts + map.outputs);
        map.runs = map.places + table;
        map.input = data_of(slots[0]);
        map.output = data_of(result);
        weights = weights == Py_None ? NULL : weights;
        count_taps(&map, weights);
        FOR_TYPE(type, copy_weights)(&map, weights);
        FOR_TYPE(type, find_runs)(&map);
        ptrdiff_t items = size_of(result) / (map.inner == 1 ? map.outputs : map.inner);
        run_items(items, map.most * (map.inner == 1 ? map.outputs : map.inner), FOR_TYPE(type, map_blocks), &map);
    }
    PyMem_RawFree(room);
    return result;
}

const KernelEntry resampling_kernels[] = {
    {"_apply_along", _apply_along, "r.d"},
    {NULL},
};
