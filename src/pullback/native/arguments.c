/* How the arguments of a call come to a kernel written by hand.
 *
 * Names and defaults are those of the reference, which `bind` was given. The entry of a kernel says with one letter for
 * each parameter, up to the last that matters, what it takes; any other call is declined:
 *
 *     r   an array of float32 or float64, not empty, of any strides: the kernel gets it row-major, copied if need be
 *     a   the same as it is
 *     p   the same, declined where it is not row-major
 *     R A P  the same, in the shape of the first of them
 *     i   a row-major array of int64; I in the shape of the first array
 *     d   a dimension of the first array, counted from 0
 *     t   the dtype of the first array, or None
 *     n   a number; N a number or None; f a bool; - None; 2 (or another digit) a whole number from 0 to this; . anything
 *
 * Arrays are of the type of the first one.
 */
#include "rows.h"

INLINE int is_array_letter(char letter)
{
    letter |= 'a' ^ 'A';
    return letter == 'r' || letter == 'p' || letter == 'a';
}

INLINE int fits(char letter, PyObject *given, PyObject *first)
{
    long whole;
    double number;
    switch (letter) {
    case '.':
        return 1;
    case 'i':
    case 'I':
        return PyArray_CheckExact(given) && type_of(given) == NPY_INT64 && PyArray_ISCARRAY_RO(ARRAY(given)) &&
               (letter == 'i' || same_shape(given, first));
    case 'd':
        return read_integer(given, 0, NDIM(first) - 1, &whole);
    case 't':
        return given == Py_None || (PyArray_DescrCheck(given) && ((PyArray_Descr *)given)->type_num == type_of(first));
    case 'N':
        return given == Py_None || read_number(given, &number);
    case 'n':
        return read_number(given, &number);
    case 'f':
        return given == Py_True || given == Py_False;
    case '-':
        return given == Py_None;
    default:
        return read_integer(given, 0, letter - '0', &whole);
    }
}

/* Call with row-major copies of the arrays that are to be. */
static PyObject *call_with_copies(const KernelEntry *entry, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *slots[MOST_SLOTS], *result = NULL;
    int failed = 0, ended = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        ended = ended || !entry->takes[i]; /* nothing is read behind the last letter */
        int copies = !ended && (entry->takes[i] == 'r' || entry->takes[i] == 'R');
        slots[i] = copies ? row_major(arguments[i]) : Py_NewRef(arguments[i]);
        failed |= !slots[i];
    }
    if (!failed)
        result = entry->function(slots, entry);
    for (Py_ssize_t i = 0; i < count; i++)
        Py_XDECREF(slots[i]);
    return result;
}

PyObject *call_prepared(const KernelEntry *entry, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *first = NULL;
    int copies = 0;
    const char *letter = entry->takes;
    for (Py_ssize_t i = 0; *letter; i++, letter++) {
        PyObject *given = arguments[i];
        if (!is_array_letter(*letter)) {
            if (!fits(*letter, given, first))
                return DECLINE;
            continue;
        }
        if (!is_real_array(given) || (first ? type_of(given) != type_of(first) : !size_of(given)) ||
            (*letter < 'a' && !same_shape(given, first)))
            return DECLINE;
        first = first ? first : given;
        if (!PyArray_IS_C_CONTIGUOUS(ARRAY(given))) {
            if (*letter == 'p' || *letter == 'P')
                return DECLINE;
            copies |= *letter == 'r' || *letter == 'R';
        }
    }
    return LIKELY(!copies) ? entry->function(arguments, entry) : call_with_copies(entry, arguments, count);
}
