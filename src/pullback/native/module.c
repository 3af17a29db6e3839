/* The extension module pullback.native.kernels: `bind` joins a compiled kernel with its reference. */
#define IMPORTS_ARRAY_API
#include "blas.h"
#include "elementwise_driver.h"
#include "instruction_set.h"
#include "source_digests.h"
#include "source_lines.h"
#include "wrapped_functions.h"

#define TABLES(TABLE)                                                                                                  \
    TABLE(attention_kernels) TABLE(bfloat16_kernels) TABLE(cast_kernels)                   \
    TABLE(convolution_kernels) TABLE(copy_kernels) TABLE(elementwise_kernels) TABLE(embedding_bag_kernels)             \
    TABLE(extrema_kernels) TABLE(factorization_kernels) TABLE(folding_kernels) TABLE(gather_kernels)                   \
    TABLE(grid_sampling_kernels) TABLE(indexing_kernels) TABLE(joining_kernels) TABLE(many_array_kernels)              \
    TABLE(matrix_product_kernels) TABLE(nll_loss_kernels) TABLE(normalization_kernels) TABLE(optimizer_step_kernels)   \
    TABLE(padding_kernels) TABLE(partial_gradient_kernels) TABLE(pooling_kernels) TABLE(random_kernels)                \
    TABLE(rearranging_kernels) TABLE(recurrent_kernels) TABLE(reductions_kernels) TABLE(rejection_kernels)             \
    TABLE(resampling_kernels) TABLE(row_kernels) TABLE(scan_kernels) TABLE(topk_kernels) TABLE(view_kernels)           \
    TABLE(whole_number_kernels)

#define DECLARED(table) extern const KernelEntry table[];
#define LISTED(table) table,
TABLES(DECLARED)
static const KernelEntry *const tables[] = {TABLES(LISTED) NULL};

extern PyMethodDef tensor_methods[], method_methods[], guard_methods[], profile_hook_methods[],
    unchanged_methods[];
static PyMethodDef *const method_tables[] = {
    source_line_methods, cut_methods, pass_methods, tensor_methods, method_methods, guard_methods, profile_hook_methods,
    unchanged_methods,
};
PyObject *make_program(PyObject *module, PyObject *arguments);
PyObject *can_multiply(PyObject *module, PyObject *arguments);

static const KernelEntry *find_kernel(const char *name)
{
    for (const KernelEntry *const *table = tables; *table; table++)
        for (const KernelEntry *entry = *table; entry->name; entry++)
            if (!strcmp(entry->name, name))
                return entry;
    return NULL;
}

typedef struct {
    WRAPPED(names, defaults, of_devices)
    /* `function` is the reference. Names and defaults are those of its parameters; a default is ... where there is none.
     * `of_devices` has the kernel that serves a type of arrays; NULL until one was asked for. */
    const KernelEntry *entry;             /* NULL where nothing is compiled */
    Py_ssize_t count, positional, needed; /* how many parameters there are, may be given by position, and must be */
    int overwrites;           /* whether the result is written into the first argument */
    int in_order;             /* whether the reference's result is brought into the order of the operands' dimensions */
} Kernel;

/* Arrays of other devices than the CPU: see Note [Kernels by device]. No type: no such device is in use. */
static PyTypeObject *device_array_type;
static PyObject *find_device_kernel;

/* The first array of a device among the values, also in lists of them; NULL if there is none. */
static PyObject *first_device_array(PyObject *const *values, Py_ssize_t count, int depth)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *value = values[i], *found = NULL;
        if (PyType_IsSubtype(Py_TYPE(value), device_array_type))
            return value;
        if (depth && PyTuple_Check(value))
            found = first_device_array(((PyTupleObject *)value)->ob_item, PyTuple_GET_SIZE(value), depth - 1);
        else if (depth && PyList_Check(value))
            found = first_device_array(((PyListObject *)value)->ob_item, PyList_GET_SIZE(value), depth - 1);
        if (found)
            return found;
    }
    return NULL;
}

static PyObject *call_on_device(Kernel *kernel, PyObject *array, PyObject *const *arguments, size_t flags,
                                PyObject *keywords)
{
    PyObject *type = (PyObject *)Py_TYPE(array);
    if (!kernel->of_devices && !(kernel->of_devices = PyDict_New()))
        return NULL;
    PyObject *served = Py_XNewRef(PyDict_GetItemWithError(kernel->of_devices, type));
    if (!served) {
        if (PyErr_Occurred())
            return NULL;
        served = PyObject_CallFunctionObjArgs(find_device_kernel, type, kernel->function, NULL);
        if (!served || PyDict_SetItem(kernel->of_devices, type, served)) {
            Py_XDECREF(served);
            return NULL;
        }
    }
    PyObject *result = PyObject_Vectorcall(served, arguments, flags, keywords);
    Py_DECREF(served);
    return result;
}

/* Put a value for every parameter into `slots`, in their order; 0 where one is missing, or an argument is none of them: the
 * reference then raises the right error. Names are interned. */
static int place_by_name(const Kernel *kernel, PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords,
                         PyObject **slots)
{
    PyObject *const *names = ((PyTupleObject *)kernel->names)->ob_item;
    for (Py_ssize_t i = 0; i < kernel->count; i++)
        slots[i] = i < positional ? arguments[i] : NULL;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keywords); k++) {
        PyObject *name = PyTuple_GET_ITEM(keywords, k);
        Py_ssize_t i = positional;
        while (i < kernel->count && names[i] != name)
            i++;
        if (i == kernel->count || slots[i])
            return 0;
        slots[i] = arguments[positional + k];
    }
    for (Py_ssize_t i = positional; i < kernel->count; i++)
        if (!slots[i] && (slots[i] = PyTuple_GET_ITEM(kernel->defaults, i)) == Py_Ellipsis)
            return 0;
    return 1;
}

INLINE PyObject *call_compiled(const Kernel *kernel, PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords)
{
    PyObject *slots[MOST_SLOTS];
    const KernelEntry *entry = kernel->entry;
    if (positional > kernel->positional)
        return DECLINE;
    if (keywords) {
        if (!place_by_name(kernel, arguments, positional, keywords, slots))
            return DECLINE;
        arguments = slots;
    } else if (positional < kernel->count) {
        if (positional < kernel->needed)
            return DECLINE;
        PyObject *const *defaults = ((PyTupleObject *)kernel->defaults)->ob_item;
        for (Py_ssize_t i = 0; i < kernel->count; i++)
            slots[i] = i < positional ? arguments[i] : defaults[i];
        arguments = slots;
    }
    if (entry->elementwise)
        return kernel->overwrites ? overwrite_elementwise(entry->elementwise, arguments)
                                  : run_elementwise(entry->elementwise, arguments);
    return entry->takes ? call_prepared(entry, arguments, kernel->count) : entry->function(arguments, entry);
}

/* NumPy's variable of what floating-point errors do, and its value for: nothing. See Note [Silent arithmetic]. */
static PyObject *error_variable, *ignoring;

/* Call the NumPy kernel, which does not warn of infinities and nan, whatever the caller's settings are. */
static PyObject *call_reference(const Kernel *kernel, PyObject *const *arguments, size_t flags, PyObject *keywords)
{
    PyObject *former = NULL, *token = NULL;
    if (LIKELY(error_variable != NULL)) {
        if (PyContextVar_Get(error_variable, NULL, &former))
            return NULL;
        Py_XDECREF(former);
        if (former != ignoring && !(token = PyContextVar_Set(error_variable, ignoring)))
            return NULL;
    }
    PyObject *result = PyObject_Vectorcall(kernel->function, arguments, flags, keywords);
    if (token) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        if (PyContextVar_Reset(error_variable, token))
            Py_CLEAR(result);
        Py_DECREF(token);
        if (type)
            PyErr_Restore(type, value, traceback);
    }
    return result;
}

static PyObject *kernel_call(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *keywords)
{
    Kernel *kernel = (Kernel *)self;
    if (UNLIKELY(device_array_type != NULL)) {
        Py_ssize_t given = PyVectorcall_NARGS(flags) + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
        PyObject *array = first_device_array(arguments, given, 2);
        if (array)
            return call_on_device(kernel, array, arguments, flags, keywords);
    }
    if (kernel->entry) {
        PyObject *result = call_compiled(kernel, arguments, PyVectorcall_NARGS(flags), keywords);
        if (LIKELY(result != NULL) || PyErr_Occurred())
            return result;
    }
    PyObject *result = call_reference(kernel, arguments, flags, keywords);
    return kernel->in_order && result ? in_operands_order(result, arguments, PyVectorcall_NARGS(flags)) : result;
}

static PyObject *kernel_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<compiled kernel of %R>", ((Kernel *)self)->function);
}

static PyMemberDef kernel_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(Kernel, function), READONLY, "the NumPy kernel that answers where this declines"},
    {NULL},
};

static PyTypeObject KernelType = {
    WRAPPED_TYPE(Kernel),
    .tp_flags = WRAPPED_FLAGS,
    .tp_members = kernel_members,
    .tp_repr = kernel_repr,
};

static PyObject *join(const KernelEntry *entry, PyObject *reference, int in_order)
{
    Kernel *kernel = new_wrapped(&KernelType, kernel_call, reference, NULL, NULL, NULL);
    if (kernel) {
        kernel->entry = entry;
        kernel->in_order = in_order;
    }
    return (PyObject *)kernel;
}

static PyObject *bind(PyObject *module, PyObject *arguments)
{
    const char *name;
    PyObject *reference, *names, *defaults;
    Py_ssize_t positional;
    int overwrites;
    if (!PyArg_ParseTuple(arguments, "sOO!nO!p", &name, &reference, &PyTuple_Type, &names, &positional, &PyTuple_Type,
                          &defaults, &overwrites))
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(names);
    const KernelEntry *entry = find_kernel(name);
    const Elementwise *elementwise = entry ? entry->elementwise : NULL;
    if (overwrites && !elementwise)
        return join(NULL, reference, 0);
    if (count != PyTuple_GET_SIZE(defaults) || count > MOST_SLOTS || (elementwise && elementwise->count != count) ||
        (entry && entry->takes && count < (Py_ssize_t)strlen(entry->takes)))
        return PyErr_Format(PyExc_TypeError, "%s: a reference of other parameters than the compiled kernel's", name);
    Kernel *kernel = (Kernel *)join(entry, reference, entry && entry->in_order && !overwrites);
    if (kernel) {
        kernel->names = Py_NewRef(names);
        kernel->defaults = Py_NewRef(defaults);
        kernel->count = count;
        kernel->positional = elementwise ? count : positional; /* in place, numbers come by position */
        kernel->overwrites = overwrites;
        for (Py_ssize_t i = 0; i < count; i++)
            kernel->needed = PyTuple_GET_ITEM(defaults, i) == Py_Ellipsis ? i + 1 : kernel->needed;
    }
    return (PyObject *)kernel;
}

static PyObject *by_device(PyObject *module, PyObject *reference)
{
    return join(NULL, reference, 0);
}

static PyObject *by_element(PyObject *module, PyObject *reference)
{
    return join(NULL, reference, 1);
}

static PyObject *use_devices(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2 || !PyType_Check(arguments[0]))
        return PyErr_Format(PyExc_TypeError, "a type and a function are needed");
    Py_XSETREF(find_device_kernel, Py_NewRef(arguments[1]));
    Py_XSETREF(device_array_type, (PyTypeObject *)Py_NewRef(arguments[0]));
    Py_RETURN_NONE;
}

static PyObject *ignore_errors(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2 || !PyContextVar_CheckExact(arguments[0]))
        return PyErr_Format(PyExc_TypeError, "a context variable and a value are needed");
    Py_XSETREF(ignoring, Py_NewRef(arguments[1]));
    Py_XSETREF(error_variable, Py_NewRef(arguments[0]));
    Py_RETURN_NONE;
}

static PyObject *names(PyObject *module, PyObject *none)
{
    PyObject *found = PyList_New(0);
    for (const KernelEntry *const *table = tables; found && *table; table++)
        for (const KernelEntry *entry = *table; found && entry->name; entry++) {
            PyObject *name = PyUnicode_FromString(entry->name);
            if (!name || PyList_Append(found, name))
                Py_CLEAR(found);
            Py_XDECREF(name);
        }
    return found;
}

static PyObject *set_num_threads(PyObject *module, PyObject *count)
{
    long value = PyLong_AsLong(count);
    if (value == -1 && PyErr_Occurred())
        return NULL;
    set_thread_count(value > 1000 ? 1000 : (int)value);
    Py_RETURN_NONE;
}

static PyObject *limit_instructions(PyObject *module, PyObject *widest)
{
    long value = PyLong_AsLong(widest);
    if (value == -1 && PyErr_Occurred())
        return NULL;
    limit_instruction_set((int)value);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"bind", bind, METH_VARARGS,
     "bind(name, reference, names, positional, defaults, overwrites): the compiled kernel of that name, or its form that\n"
     "writes into its first argument; without one a kernel that only asks for the device."},
    {"by_device", by_device, METH_O, "by_device(reference): the reference, except for arrays of other devices."},
    {"by_element", by_element, METH_O,
     "by_element(reference): as by_device, and results lie in the order of the operands' dimensions."},
    {"use_devices", (PyCFunction)(void (*)(void))use_devices, METH_FASTCALL,
     "use_devices(type, find): arrays of the type are of other devices, and find(type, reference) gives their kernel."},
    {"ignore_errors", (PyCFunction)(void (*)(void))ignore_errors, METH_FASTCALL,
     "ignore_errors(variable, value): the variable has the value while NumPy kernels run. See Note [Silent arithmetic]."},
    {"names", names, METH_NOARGS, "The names of all compiled kernels."},
    {"set_num_threads", set_num_threads, METH_O, "Set how many threads a loop may use."},
    {"limit_instruction_set", limit_instructions, METH_O,
     "Use no vectors wider than x86-64-v4 (4), v3 (3) or the base (1) has, as if the processor had none: for tests."},
    {"make_program", make_program, METH_VARARGS, "A program of compiled loops and products; see Note [Programs]."},
    {"can_multiply", can_multiply, METH_VARARGS, "Whether an instruction of a program can do this product."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "pullback.native.kernels", "Compiled kernels; see pullback.native.", -1, methods,
};

/* What Python asks for: a module of another number was compiled from other sources. */
#define INTERFACE 4

PyMODINIT_FUNC PyInit_kernels(void)
{
#if defined(ONLY_TARGET)
    if (processor_instruction_set() < (strstr(ONLY_TARGET, "v4") ? 4 : 3)) {
        PyErr_SetString(PyExc_ImportError, "they were compiled on another machine, for processors with " ONLY_TARGET
                                           "; install pullback on this one, or anywhere with PULLBACK_COMPILE=portable");
        return NULL;
    }
#endif
    import_array();
    find_blas();
    PyObject *module = PyModule_Create(&definition);
    if (module && (PyModule_AddIntMacro(module, INTERFACE) || PyModule_AddStringMacro(module, SOURCES)))
        Py_CLEAR(module);
    for (size_t i = 0; module && i < sizeof method_tables / sizeof *method_tables; i++)
        if (PyModule_AddFunctions(module, method_tables[i]))
            Py_CLEAR(module);
#if defined(QUICK_BUILD) /* for tests, in less time: setup.py */
    if (module && PyModule_AddIntConstant(module, "quick_build", 1))
        Py_CLEAR(module);
#endif
    return module;
}
