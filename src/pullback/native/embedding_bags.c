/* The compiled kernel of kernels/embedding_bags.py. */
#include "rows.h"

typedef struct {
    const void *weight, *factors;
    const npy_int64 *indices, *offsets;
    void *result;
    npy_int64 *chosen, *sizes;
    ptrdiff_t width, bags, count;
    npy_int64 padding;
} Bags;

#define BAG_END(b, bag) ((bag) + 1 < (b)->bags ? (b)->offsets[(bag) + 1] : (b)->count)
#define LOOPS "embedding_bag_loops.h"
#include "for_each_real.h"

/* Whether offsets rise from 0 and every index names a row. */
static int is_in_order(const Bags *b, npy_int64 rows)
{
    if (b->bags && b->offsets[0] != 0)
        return 0;
    for (ptrdiff_t bag = 0; bag < b->bags; bag++)
        if (BAG_END(b, bag) < b->offsets[bag] || BAG_END(b, bag) > b->count)
            return 0;
    for (ptrdiff_t i = 0; i < b->count; i++)
        if (b->indices[i] < 0 || b->indices[i] >= rows)
            return 0;
    return 1;
}

/* For each index its bag, for each bag how many of its indices count. */
static void list_owners(const Bags *b, npy_int64 *owner)
{
    for (ptrdiff_t bag = 0; bag < b->bags; bag++) {
        b->sizes[bag] = 0;
        for (ptrdiff_t i = b->offsets[bag]; i < BAG_END(b, bag); i++) {
            owner[i] = bag;
            b->sizes[bag] += b->indices[i] != b->padding;
        }
    }
}

enum { RESULT, OWNER, FACTORS, SIZES, CHOSEN, RESULTS };

static PyObject *embedding_bag_forward(PyObject *const *slots, const KernelEntry *entry)
{
    long mode = PyLong_AsLong(slots[4]), padding;
    PyObject *weight = slots[0];
    if (NDIM(weight) != 2 || NDIM(slots[1]) != 1 || NDIM(slots[2]) != 1 || !size_of(slots[2]) ||
        !read_integer(slots[5], LONG_MIN, LONG_MAX, &padding) ||
        !is_absent_or_plain(slots[3], type_of(weight), size_of(slots[1])))
        return DECLINE;
    int type = type_of(weight);
    Bags b = {.weight = data_of(weight), .indices = data_of(slots[1]), .offsets = data_of(slots[2]),
              .width = DIM(weight, 1), .bags = size_of(slots[2]), .count = size_of(slots[1]),
              .padding = padding};
    if (!is_in_order(&b, DIM(weight, 0)))
        return DECLINE;
    npy_intp shape[2] = {b.bags, b.width}, count = b.count, none = 0;
    PyObject *made[RESULTS] = {
        new_array(2, shape, type),
        new_array(1, &count, NPY_INT64),
        new_array(1, &count, type),
        new_array(1, shape, NPY_INT64),
        mode == 2 ? new_array(2, shape, NPY_INT64) : new_array(1, &none, NPY_INT64),
    };
    if (!all_made(made, RESULTS))
        return pack(RESULTS, made);
    b.sizes = data_of(made[SIZES]);
    b.result = data_of(made[RESULT]);
    b.chosen = data_of(made[CHOSEN]);
    b.factors = data_of(made[FACTORS]);
    list_owners(&b, data_of(made[OWNER]));
    FOR_TYPE(type, find_factors)(&b, mode == 2 ? NULL : data_or_null(slots[3]), mode == 1, data_of(made[FACTORS]));
    run_items(b.bags, b.width * (b.count / b.bags + 1),
              mode == 2 ? FOR_TYPE(type, largest_of_bags) : FOR_TYPE(type, sum_bags), &b);
    return pack(RESULTS, made);
}

const KernelEntry embedding_bag_kernels[] = {
    {"embedding_bag_forward", embedding_bag_forward, "pii.2"},
    {NULL},
};
