/* Calls of elementwise kernels: how one is described, and the driver that brings operands to its loop.
 *
 * elementwise.c, which tools/codegen writes, describes each kernel by a table of its parameters and by loops over plain
 * memory, one per variant and float type. Everything else is here, once: arguments, broadcasting, strides, threads.
 */
#ifndef PULLBACK_ELEMENTWISE_DRIVER_H
#define PULLBACK_ELEMENTWISE_DRIVER_H

#include "kernel.h"

#define MOST_PARAMETERS 8

/* The float32 numbers in the longest vector. Loops over multiples of it have no end that is computed number by number,
 * where the compiler rounds differently: an element's value does not depend on its place. The code is half as long. */
#define LANES 16
#define WHOLE(count) ((count) & ~(size_t)(LANES - 1))

/* Tells the compiler that a count is a multiple of LANES and not zero. */
#if defined(__GNUC__)
#define ASSUME_WHOLE(count)                                                                                           \
    do {                                                                                                              \
        count = WHOLE(count);                                                                                         \
        if (!count)                                                                                                   \
            __builtin_unreachable();                                                                                  \
    } while (0)
#else
#define ASSUME_WHOLE(count) (void)0
#endif

/* Computes `count` neighbouring elements, a multiple of LANES. All operands are contiguous there: the driver gathers
 * those that are not, and fills up the last lanes. */
typedef void LoopFunction(void *result, void *const *operands, const double *numbers, size_t count);
typedef LoopFunction *ElementwiseLoop;

/* The arguments of one call, by the number of the parameter. */
typedef struct {
    double numbers[MOST_PARAMETERS];
    const char *texts[MOST_PARAMETERS];
    unsigned absent; /* a bit for each parameter that is None */
} Arguments;

typedef enum {
    ARRAY,           /* an array of the common float type */
    OPTIONAL_ARRAY,  /* the same, or None */
    ARRAY_OR_NUMBER, /* the same, or a Python number */
    MASK,            /* an array of bools */
    NUMBER,          /* a Python number */
    OPTIONAL_NUMBER, /* the same, or None */
    TEXT,            /* a string */
    OWNED,           /* whether the first operand, a gradient, may be overwritten */
} ParameterKind;

typedef struct {
    ElementwiseLoop of_float, of_double; /* no `of_double` where the reference serves float64 */
    ptrdiff_t share; /* how many elements are worth a thread */
    int twice;       /* whether the loop may go over the operands a second time, which none overwrites then */
} Variant;

typedef struct Elementwise {
    const ParameterKind *parameters;
    int count;
    const Variant *variants;
    int (*choose)(const Arguments *given); /* which variant; -1 for none; NULL if there is one only */
    int row_major;                         /* whether the result is, and not in the operands' order of dimensions */
    int rounds_numbers;                    /* whether numbers that meet floats of 16 bits are rounded to those first */
    int declines_halves;                   /* whether the result is not that of float32, rounded to 16 bits */
} Elementwise;

/* `slots` has a value for every parameter. */
PyObject *run_elementwise(const Elementwise *kernel, PyObject *const *slots);

/* The same, written into the first argument: returns True. Declines where operands are not contiguous or overlap. */
PyObject *overwrite_elementwise(const Elementwise *kernel, PyObject *const *slots);

/* What NumPy made of operands whose dimensions lie in different orders, in PyTorch's order: copied if it is another one.
 * Takes the reference to `result`. */
PyObject *in_operands_order(PyObject *result, PyObject *const *arguments, Py_ssize_t count);

/* The description of the kernel whose parameters and variants stand above. */
#define DESCRIBE(kernel, choice, order, rounding, steps)                                                              \
    static const Elementwise description_of_##kernel = {                                                              \
        parameters_of_##kernel, sizeof parameters_of_##kernel / sizeof *parameters_of_##kernel,                       \
        variants_of_##kernel,   choice, order, rounding, steps,                                                       \
    };

#endif
