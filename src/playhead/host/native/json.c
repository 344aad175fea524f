/* Writes values as JSON.

   The twin of `encoding/plain` with the standard library's encoder, and of `Redactor.clean` for plain values. A value
   that is not plain (a subclass, a large integer, half of a surrogate pair, a key that may be the name of a secret) is
   left to Python: nothing is done then. No code of the program runs in here; `clean_text` is ours. */

#include "core.h"
#include "json.h"
#include "wide.h"

/* As in `encoding/plain`. */
#define DEEPEST 100
#define MOST_PARTS 100000

static int is_room(buffer *out, size_t more)
{
    if (out->room - out->size >= more)
        return 1;
    if (more > (size_t)PY_SSIZE_T_MAX / 4 || out->size > (size_t)PY_SSIZE_T_MAX / 4)
        return 0;
    size_t room = (out->size + more) * 2;
    char *grown = realloc(out->text, room);
    if (grown == NULL)
        return 0;
    out->text = grown;
    out->room = room;
    return 1;
}

/* 0: as it is; u: as \u00XX; else the letter after the backslash. */
static char escapes[256];
static const char DIGITS[] = "0123456789abcdef";

static void make_escapes(void)
{
    for (int c = 0; c < 32; c++)
        escapes[c] = 'u';
    escapes['\n'] = 'n';
    escapes['\r'] = 'r';
    escapes['\t'] = 't';
    escapes['\f'] = 'f';
    escapes['\b'] = 'b';
    escapes['"'] = '"';
    escapes['\\'] = '\\';
}

/* Whether one of eight bytes needs an escape: below 32, a quote or a backslash. */
static inline int needs_escape(uint64_t eight)
{
    const uint64_t ones = 0x0101010101010101ull, highs = 0x8080808080808080ull;
    uint64_t quote = eight ^ ones * '"', slash = eight ^ ones * '\\';
    uint64_t low = (eight - ones * 32) & ~eight;
    return ((low | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & highs) != 0;
}

int put_text(buffer *out, PyObject *text)
{
    Py_ssize_t size;
    const char *raw = PyUnicode_AsUTF8AndSize(text, &size);
    if (raw == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeError))
            return FAILED;
        PyErr_Clear();
        return NOT_PLAIN;
    }
    if ((size_t)size > (size_t)PY_SSIZE_T_MAX / 32 || !is_room(out, (size_t)size * 6 + 2)) {
        PyErr_NoMemory();
        return FAILED;
    }
    char *to = out->text + out->size;
    *to++ = '"';
    const char *end = raw + size;
    while (raw < end) {
        uint64_t eight;
        if (is_wide && end - raw >= 16) {
            size_t copied = copy_unescaped(to, raw, (size_t)(end - raw));
            raw += copied;
            to += copied;
        }
        while (end - raw >= 8 && (memcpy(&eight, raw, 8), !needs_escape(eight))) {
            memcpy(to, raw, 8);
            raw += 8;
            to += 8;
        }
        for (int left = 8; left && raw < end; left--) {
            uint8_t c = (uint8_t)*raw++;
            char escape = escapes[c];
            if (escape == 0) {
                *to++ = (char)c;
                continue;
            }
            *to++ = '\\';
            *to++ = escape;
            if (escape == 'u') {
                *to++ = '0';
                *to++ = '0';
                *to++ = DIGITS[c >> 4];
                *to++ = DIGITS[c & 15];
            }
        }
    }
    *to++ = '"';
    out->size = (size_t)(to - out->text);
    return DONE;
}

int put_raw(buffer *out, const char *text, size_t size)
{
    if (!is_room(out, size)) {
        PyErr_NoMemory();
        return FAILED;
    }
    memcpy(out->text + out->size, text, size);
    out->size += size;
    return DONE;
}

int put_int(buffer *out, long long value)
{
    char digits[24], *at = digits + sizeof digits;
    unsigned long long rest = value < 0 ? 0 - (unsigned long long)value : (unsigned long long)value;
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        *--at = '-';
    return put_raw(out, at, (size_t)(digits + sizeof digits - at));
}

static int put_float(buffer *out, double value)
{
    /* Encoders write other magnitudes differently. NaN is in none of these ranges. */
    if (!((value >= 1e-4 && value < 1e16) || (value > -1e16 && value <= -1e-4) || value == 0))
        return NOT_PLAIN;
    char *text = PyOS_double_to_string(value, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
    if (text == NULL)
        return FAILED;
    int state = put_raw(out, text, strlen(text));
    PyMem_Free(text);
    return state;
}

/* A text of the value. Shorter ones hold no secret (as in `Redactor.clean_text`). */
#define SHORTEST_TEXT 8

/* Whether a text may hold a secret: 0 or 1; -1: an exception is set. */
static int is_suspect(const encoding *self, PyObject *text)
{
    if (self->clean_text == NULL || self->is_inside || PyUnicode_GetLength(text) < SHORTEST_TEXT)
        return 0;
    Py_ssize_t size;
    const char *raw = PyUnicode_AsUTF8AndSize(text, &size);
    if (raw == NULL) {
        PyErr_Clear(); /* half of a surrogate pair: `put_text` finds the same */
        return 0;
    }
    PyObject *clues = clues_in(self->rules, self->known, (const uint8_t *)raw, (size_t)size, LOOK);
    if (clues == NULL)
        return -1;
    Py_DECREF(clues);
    return clues != Py_None;
}

/* The text without its secrets; NULL: an exception is set. */
static PyObject *cleaned(const encoding *self, PyObject *text)
{
    PyObject *clean = PyObject_CallFunctionObjArgs(self->clean_text, text, NULL);
    if (clean != NULL && !PyUnicode_CheckExact(clean)) {
        Py_DECREF(clean);
        PyErr_SetString(PyExc_TypeError, "a cleaned text is a text");
        return NULL;
    }
    return clean;
}

static int put_clean_text(encoding *self, PyObject *text)
{
    int is_suspicious = is_suspect(self, text);
    if (is_suspicious <= 0)
        return is_suspicious < 0 ? FAILED : put_text(&self->out, text);
    PyObject *clean = cleaned(self, text);
    if (clean == NULL)
        return FAILED;
    int state = put_text(&self->out, clean);
    Py_DECREF(clean);
    return state;
}

static int put_key(encoding *self, PyObject *key)
{
    if (!PyUnicode_CheckExact(key))
        return NOT_PLAIN;
    if (self->keys != NULL) {
        int is_known = PySet_Contains(self->keys, key);
        if (is_known != 1)
            return is_known < 0 ? FAILED : NOT_PLAIN;
    }
    int is_suspicious = is_suspect(self, key);
    if (is_suspicious < 0)
        return FAILED;
    if (is_suspicious) {
        /* Two keys may become one: Python knows which value stays. */
        PyObject *clean = cleaned(self, key);
        if (clean == NULL)
            return FAILED;
        int is_changed = PyUnicode_Compare(clean, key) != 0;
        Py_DECREF(clean);
        if (is_changed)
            return NOT_PLAIN;
    }
    return put_text(&self->out, key);
}

static int put_member(encoding *self, PyObject *key, PyObject *item, int depth)
{
    int state = put_key(self, key);
    if (!state)
        state = put_raw(&self->out, ":", 1);
    if (state)
        return state;
    if (depth > 1 || self->clean == NULL || PyUnicode_Compare(key, self->clean) != 0)
        return put_value(self, item, depth);
    self->low = self->out.size;
    self->is_inside = 1;
    state = put_value(self, item, depth);
    self->is_inside = 0;
    self->high = self->out.size;
    return state;
}

static int put_dict(encoding *self, PyObject *dict, int depth)
{
    Py_ssize_t at = 0, size = PyDict_Size(dict);
    PyObject *key, *item;
    char sign = '{';
    while (PyDict_Next(dict, &at, &key, &item)) {
        int state = put_raw(&self->out, &sign, 1);
        if (state)
            return state;
        /* `clean_text` is Python: meanwhile other threads run, which may change the dict. */
        Py_INCREF(key);
        Py_INCREF(item);
        state = put_member(self, key, item, depth);
        Py_DECREF(key);
        Py_DECREF(item);
        if (state)
            return state;
        if (PyDict_Size(dict) != size)
            return NOT_PLAIN;
        sign = ',';
    }
    return put_raw(&self->out, sign == '{' ? "{}" : "}", sign == '{' ? 2 : 1);
}

static int put_list(encoding *self, PyObject *list, int depth)
{
    char sign = '[';
    for (Py_ssize_t at = 0; at < PyList_Size(list); at++) {
        int state = put_raw(&self->out, &sign, 1);
        if (state)
            return state;
        PyObject *item = Py_NewRef(PyList_GetItem(list, at));
        state = put_value(self, item, depth);
        Py_DECREF(item);
        if (state)
            return state;
        sign = ',';
    }
    return put_raw(&self->out, sign == '[' ? "[]" : "]", sign == '[' ? 2 : 1);
}

int put_value(encoding *self, PyObject *value, int depth)
{
    /* Too large for a line: a text of megabytes, or the rest of a million numbers, is not encoded to find that out. */
    if (self->out.size > self->most)
        return NOT_PLAIN;
    if (PyUnicode_CheckExact(value))
        return (size_t)PyUnicode_GetLength(value) > self->most ? NOT_PLAIN : put_clean_text(self, value);
    if (value == Py_None)
        return put_raw(&self->out, "null", 4);
    if (value == Py_True)
        return put_raw(&self->out, "true", 4);
    if (value == Py_False)
        return put_raw(&self->out, "false", 5);
    if (PyLong_CheckExact(value)) {
        int overflow;
        long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (number == -1 && PyErr_Occurred())
            return FAILED;
        return overflow ? NOT_PLAIN : put_int(&self->out, number);
    }
    if (PyFloat_CheckExact(value))
        return put_float(&self->out, PyFloat_AsDouble(value));
    int is_dict = PyDict_CheckExact(value);
    if (!is_dict && !PyList_CheckExact(value))
        return NOT_PLAIN;
    if (depth >= DEEPEST || ++self->parts > MOST_PARTS)
        return NOT_PLAIN;
    return is_dict ? put_dict(self, value, depth + 1) : put_list(self, value, depth + 1);
}

int may_hold_secret(const encoding *self, size_t start)
{
    if (self->rules == NULL)
        return 0;
    /* No text reaches from one side of the clean member to the other. */
    size_t ends[2][2] = {{start, self->high ? self->low : self->out.size}, {self->high, self->out.size}};
    for (int part = 0; part < (self->high ? 2 : 1); part++) {
        const uint8_t *raw = (const uint8_t *)self->out.text + ends[part][0];
        PyObject *clues = clues_in(self->rules, self->known, raw, ends[part][1] - ends[part][0], LOOK);
        if (clues == NULL)
            return -1;
        Py_DECREF(clues);
        if (clues != Py_None)
            return 1;
    }
    return 0;
}

int put_str(buffer *out, PyObject *text)
{
    Py_ssize_t size;
    const char *raw = PyUnicode_AsUTF8AndSize(text, &size);
    return raw == NULL ? FAILED : put_raw(out, raw, (size_t)size);
}

static PyObject *encode(PyObject *module, PyObject *args)
{
    PyObject *value, *keys, *rules, *known;
    Py_ssize_t most;
    if (!PyArg_ParseTuple(args, "OO!nOO:encode", &value, &PySet_Type, &keys, &most, &rules, &known))
        return NULL;
    encoding self = {.keys = keys, .most = most < 0 ? 0 : (size_t)most};
    PyObject *found = NULL;
    int state = put_value(&self, value, 0);
    if (state == NOT_PLAIN || (state == DONE && self.out.size > self.most)) {
        found = Py_NewRef(Py_None);
    } else if (state == DONE) {
        PyObject *clues = Py_NewRef(Py_None);
        if (rules != Py_None) {
            Py_DECREF(clues);
            clues = clues_in(rules, known, (const uint8_t *)self.out.text, self.out.size, LOOK);
        }
        PyObject *text = clues ? PyBytes_FromStringAndSize(self.out.text, (Py_ssize_t)self.out.size) : NULL;
        if (clues == Py_None)
            found = Py_XNewRef(text);
        else if (text != NULL)
            found = PyTuple_Pack(2, text, clues);
        Py_XDECREF(text);
        Py_XDECREF(clues);
    }
    free(self.out.text);
    return found;
}

static PyMethodDef functions[] = {
    {"encode", encode, METH_VARARGS, "encode(value, keys, most, scanner, needles): JSON; with clues (JSON, clues); None: not plain"},
    {NULL}
};

int add_json(PyObject *module)
{
    make_escapes();
    return PyModule_AddFunctions(module, functions);
}
