/* A gradient added to an array that is owned. */
#include "kernel.h"

#define SHARE 65536

typedef struct {
    char *total;
    const char *value;
    int type;
} Addition;

MULTIVERSIONED void add_floats(float *total, const float *value, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++)
        total[i] += value[i];
}

MULTIVERSIONED void add_doubles(double *total, const double *value, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++)
        total[i] += value[i];
}

static void add_range(void *context, ptrdiff_t begin, ptrdiff_t end)
{
    const Addition *addition = context;
    if (addition->type == NPY_FLOAT)
        add_floats((float *)(void *)addition->total + begin, (const float *)(const void *)addition->value + begin,
                   end - begin);
    else
        add_doubles((double *)(void *)addition->total + begin, (const double *)(const void *)addition->value + begin,
                    end - begin);
}

static PyObject *add_in_place(PyObject *const *arguments, const KernelEntry *entry)
{
    if (!is_plain(arguments[0]) || !is_plain_of(arguments[1], type_of(arguments[0])) ||
        !PyArray_ISWRITEABLE((PyArrayObject *)arguments[0]) || !same_shape(arguments[0], arguments[1]))
        return DECLINE;
    PyArrayObject *total = (PyArrayObject *)arguments[0];
    Addition addition = {PyArray_BYTES(total), PyArray_BYTES((PyArrayObject *)arguments[1]), type_of(arguments[0])};
    npy_intp count = PyArray_SIZE(total), distance = addition.value - addition.total;
    if (distance && distance < PyArray_NBYTES(total) && distance > -PyArray_NBYTES(total))
        return DECLINE; /* they overlap */
    run_unlocked((double)count, count, SHARE, add_range, &addition);
    return Py_NewRef(arguments[0]);
}

const KernelEntry accumulation_kernels[] = {
    {"add_in_place", add_in_place},
    {NULL},
};
