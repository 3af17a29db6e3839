/* The extension module pullback.native.kernels: `bind` joins a compiled kernel with its reference. */
#define IMPORTS_ARRAY_API
#include "kernel.h"

#include <structmember.h>

#include "blas.h"
#include "elementwise_driver.h"
#include "instruction_set.h"
#include "guards.h"
#include "methods.h"
#include "source_lines.h"

extern const KernelEntry adaptive_pooling_kernels[];
extern const KernelEntry brain_kernels[];
extern const KernelEntry cast_kernels[];
extern const KernelEntry channel_scaling_kernels[];
extern const KernelEntry convolution_kernels[];
extern const KernelEntry accumulation_kernels[];
extern const KernelEntry elementwise_kernels[];
extern const KernelEntry pair_loss_kernels[];
extern const KernelEntry padding_kernels[];
extern const KernelEntry pooling_kernels[];
extern const KernelEntry reductions_kernels[];
extern const KernelEntry extrema_kernels[];
extern const KernelEntry losses_kernels[];
extern const KernelEntry softmaxes_kernels[];
extern const KernelEntry normalization_kernels[];
extern const KernelEntry attention_kernels[];
extern const KernelEntry copy_kernels[];
extern const KernelEntry embedding_bag_kernels[];
extern const KernelEntry count_kernels[];
extern const KernelEntry reduction_gradient_kernels[];
extern const KernelEntry factorization_kernels[];
extern const KernelEntry folding_kernels[];
extern const KernelEntry gather_kernels[];
extern const KernelEntry indexing_kernels[];
extern const KernelEntry grid_sampling_kernels[];
extern const KernelEntry gru_kernels[];
extern const KernelEntry joining_kernels[];
extern const KernelEntry many_array_kernels[];
extern const KernelEntry matrix_product_kernels[];
extern const KernelEntry optimizer_step_kernels[];
extern const KernelEntry part_kernels[];
extern const KernelEntry random_kernels[];
extern const KernelEntry rearranging_kernels[];
extern const KernelEntry recurrent_kernels[];
extern const KernelEntry rejection_kernels[];
extern const KernelEntry scan_kernels[];
extern const KernelEntry resampling_kernels[];
extern const KernelEntry selection_kernels[];
extern const KernelEntry view_kernels[];

extern PyMethodDef tensor_methods[];
extern PyMethodDef watching_methods[];
PyObject *make_program(PyObject *module, PyObject *arguments);
PyObject *can_multiply(PyObject *module, PyObject *arguments);

static const KernelEntry *const tables[] = {
    adaptive_pooling_kernels,
    brain_kernels,
    cast_kernels,
    channel_scaling_kernels,
    convolution_kernels,
    accumulation_kernels,
    elementwise_kernels,
    pair_loss_kernels,
    padding_kernels,
    pooling_kernels,
    reductions_kernels,
    extrema_kernels,
    losses_kernels,
    softmaxes_kernels,
    normalization_kernels,
    attention_kernels,
    copy_kernels,
    embedding_bag_kernels,
    count_kernels,
    reduction_gradient_kernels,
    factorization_kernels,
    folding_kernels,
    gather_kernels,
    indexing_kernels,
    grid_sampling_kernels,
    gru_kernels,
    joining_kernels,
    many_array_kernels,
    matrix_product_kernels,
    optimizer_step_kernels,
    part_kernels,
    random_kernels,
    rearranging_kernels,
    recurrent_kernels,
    rejection_kernels,
    scan_kernels,
    resampling_kernels,
    selection_kernels,
    view_kernels,
    NULL,
};

static const KernelEntry *find_kernel(const char *name)
{
    for (const KernelEntry *const *table = tables; *table; table++)
        for (const KernelEntry *entry = *table; entry->name; entry++)
            if (!strcmp(entry->name, name))
                return entry;
    return NULL;
}

int place_arguments(PyObject *const *arguments, Py_ssize_t positional, PyObject *keywords, PyObject *const *names,
                    Py_ssize_t count, PyObject **slots)
{
    if (positional > count)
        return 0;
    for (Py_ssize_t i = 0; i < count; i++)
        slots[i] = i < positional ? arguments[i] : NULL;
    Py_ssize_t given = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    for (Py_ssize_t k = 0; k < given; k++) {
        PyObject *name = PyTuple_GET_ITEM(keywords, k);
        Py_ssize_t i = positional;
        while (i < count && names[i] != name)
            i++;
        if (i == count || slots[i])
            return 0;
        slots[i] = arguments[positional + k];
    }
    return 1;
}

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    KernelFunction function;
    PyObject *reference;
    PyObject *of_devices; /* array type -> the kernel that serves it; NULL until one was asked for */
    int in_order;         /* whether the reference's result is brought into the order of the operands' dimensions */
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
        served = PyObject_CallFunctionObjArgs(find_device_kernel, type, kernel->reference, NULL);
        if (!served || PyDict_SetItem(kernel->of_devices, type, served)) {
            Py_XDECREF(served);
            return NULL;
        }
    }
    PyObject *result = PyObject_Vectorcall(served, arguments, flags, keywords);
    Py_DECREF(served);
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
    if (kernel->function) {
        PyObject *result = kernel->function(arguments, PyVectorcall_NARGS(flags), keywords);
        if (LIKELY(result != NULL) || PyErr_Occurred())
            return result;
    }
    PyObject *result = PyObject_Vectorcall(kernel->reference, arguments, flags, keywords);
    return kernel->in_order && result ? in_operands_order(result, arguments, PyVectorcall_NARGS(flags)) : result;
}

static PyObject *kernel_attribute(PyObject *self, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return found;
    PyErr_Clear();
    return PyObject_GetAttr(((Kernel *)self)->reference, name);
}

static PyObject *kernel_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<compiled kernel of %R>", ((Kernel *)self)->reference);
}

static int kernel_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Kernel *)self)->reference);
    Py_VISIT(((Kernel *)self)->of_devices);
    return 0;
}

static int kernel_clear(PyObject *self)
{
    Py_CLEAR(((Kernel *)self)->reference);
    Py_CLEAR(((Kernel *)self)->of_devices);
    return 0;
}

static void kernel_free(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    kernel_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *kernel_of_reference(PyObject *self, void *name)
{
    return PyObject_GetAttrString(((Kernel *)self)->reference, name);
}

static PyGetSetDef kernel_properties[] = {
    {"__doc__", kernel_of_reference, NULL, NULL, "__doc__"},
    {"__module__", kernel_of_reference, NULL, NULL, "__module__"},
    {NULL},
};

static PyMemberDef kernel_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(Kernel, reference), READONLY, "the NumPy kernel that answers where this declines"},
    {NULL},
};

static PyTypeObject KernelType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pullback.native.kernels.Kernel",
    .tp_basicsize = sizeof(Kernel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC,
    .tp_vectorcall_offset = offsetof(Kernel, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_getattro = kernel_attribute,
    .tp_getset = kernel_properties,
    .tp_members = kernel_members,
    .tp_repr = kernel_repr,
    .tp_traverse = kernel_traverse,
    .tp_clear = kernel_clear,
    .tp_dealloc = kernel_free,
    .tp_free = PyObject_GC_Del,
};

static PyObject *join(KernelFunction function, PyObject *reference, int in_order)
{
    Kernel *kernel = PyObject_GC_New(Kernel, &KernelType);
    if (!kernel)
        return NULL;
    kernel->vectorcall = kernel_call;
    kernel->function = function;
    kernel->reference = Py_NewRef(reference);
    kernel->of_devices = NULL;
    kernel->in_order = in_order;
    PyObject_GC_Track(kernel);
    return (PyObject *)kernel;
}

/* The entry of the kernel named by the first of two arguments, in `*entry`, NULL if there is none; 0 with an exception. */
static int find_entry(PyObject *const *arguments, Py_ssize_t count, const KernelEntry **entry)
{
    const char *name = count == 2 && PyUnicode_Check(arguments[0]) ? PyUnicode_AsUTF8(arguments[0]) : NULL;
    if (!name) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a name and a reference are needed");
        return 0;
    }
    *entry = find_kernel(name);
    return 1;
}

static PyObject *bind(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    const KernelEntry *entry;
    if (!find_entry(arguments, count, &entry))
        return NULL;
    return join(entry ? entry->function : NULL, arguments[1], entry && entry->in_order);
}

static PyObject *bind_overwriting(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    const KernelEntry *entry;
    return find_entry(arguments, count, &entry) ? join(entry ? entry->overwrite : NULL, arguments[1], 0) : NULL;
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
    {"bind", (PyCFunction)(void (*)(void))bind, METH_FASTCALL,
     "bind(name, reference): the compiled kernel of that name; without one a kernel that only asks for the device."},
    {"bind_overwriting", (PyCFunction)(void (*)(void))bind_overwriting, METH_FASTCALL,
     "bind_overwriting(name, reference): as bind, the form that writes into its first argument."},
    {"by_device", by_device, METH_O, "by_device(reference): the reference, except for arrays of other devices."},
    {"by_element", by_element, METH_O,
     "by_element(reference): as by_device, and results lie in the order of the operands' dimensions."},
    {"use_devices", (PyCFunction)(void (*)(void))use_devices, METH_FASTCALL,
     "use_devices(type, find): arrays of the type are of other devices, and find(type, reference) gives their kernel."},
    {"names", names, METH_NOARGS, "The names of all compiled kernels."},
    {"set_num_threads", set_num_threads, METH_O, "Set how many threads a loop may use."},
    {"limit_instruction_set", limit_instructions, METH_O,
     "Use no vectors wider than x86-64-v4 (4), v3 (3) or the base (1) has, as if the processor had none: for tests."},
    {"make_program", make_program, METH_VARARGS, "A program of compiled loops and products; see Note [Programs]."},
    {"can_multiply", can_multiply, METH_VARARGS, "Whether an instruction of a program can do this product."},
    {"new_method", (PyCFunction)(void (*)(void))new_method, METH_FASTCALL,
     "new_method(name, function): the method of Tensor that calls a compiled function."},
    {"new_guard", (PyCFunction)(void (*)(void))new_guard, METH_FASTCALL,
     "new_guard(function, undo): calls the function and, where that raises, `undo` as well. See Note [Guards]."},
    {"called_method", called_method, METH_NOARGS, "The name of the innermost such method that runs, its arguments by position and those by name; or None."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "pullback.native.kernels", "Compiled kernels; see pullback.native.", -1, methods,
};

PyMODINIT_FUNC PyInit_kernels(void)
{
    import_array();
    find_blas();
    if (PyType_Ready(&KernelType) || prepare_methods() || prepare_guards())
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module && (PyModule_AddFunctions(module, source_line_methods) || PyModule_AddFunctions(module, cut_methods) ||
                   PyModule_AddFunctions(module, pass_methods) || PyModule_AddFunctions(module, tensor_methods) ||
                   PyModule_AddFunctions(module, watching_methods)))
        Py_CLEAR(module);
#if defined(QUICK_BUILD) /* for tests, in less time: setup.py */
    if (module && PyModule_AddIntConstant(module, "quick_build", 1))
        Py_CLEAR(module);
#endif
    return module;
}
