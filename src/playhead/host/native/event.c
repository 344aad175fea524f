/* Writes events: values as JSON, and lines of a tape.

   The twin of `encoding/plain` with the standard library's encoder, and of `SegmentWriter._write`. A value that is not
   plain (a subclass, a large integer, half of a surrogate pair, a key that may be the name of a secret) is left to
   Python: `encode` returns None then, and has done nothing. No code of the program runs in here. */

#include "core.h"

#include <errno.h>
#include <sys/types.h>
#include <unistd.h>

/* As in `encoding/plain`. */
#define DEEPEST 100
#define MOST_PARTS 100000

typedef struct {
    char *text;
    size_t size, room;
} buffer;

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

/* What the functions below return. */
enum { DONE = 0, NOT_PLAIN = 1, FAILED = 2 };

static int put_text(buffer *out, PyObject *text)
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

static int put_raw(buffer *out, const char *text, size_t size)
{
    if (!is_room(out, size)) {
        PyErr_NoMemory();
        return FAILED;
    }
    memcpy(out->text + out->size, text, size);
    out->size += size;
    return DONE;
}

static int put_int(buffer *out, long long value)
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

typedef struct {
    buffer out;
    PyObject *keys; /* a set of keys that may be written as they are */
    size_t most;    /* bytes */
    long parts;
} encoding;

static int put_value(encoding *self, PyObject *value, int depth);

static int put_dict(encoding *self, PyObject *dict, int depth)
{
    Py_ssize_t at = 0;
    PyObject *key, *item;
    char sign = '{';
    while (PyDict_Next(dict, &at, &key, &item)) {
        if (!PyUnicode_CheckExact(key))
            return NOT_PLAIN;
        int is_known = PySet_Contains(self->keys, key);
        if (is_known != 1)
            return is_known < 0 ? FAILED : NOT_PLAIN;
        int state = put_raw(&self->out, &sign, 1);
        if (!state)
            state = put_text(&self->out, key);
        if (!state)
            state = put_raw(&self->out, ":", 1);
        if (!state)
            state = put_value(self, item, depth);
        if (state)
            return state;
        sign = ',';
    }
    return put_raw(&self->out, sign == '{' ? "{}" : "}", sign == '{' ? 2 : 1);
}

static int put_list(encoding *self, PyObject *list, int depth)
{
    char sign = '[';
    for (Py_ssize_t at = 0; at < PyList_Size(list); at++) {
        int state = put_raw(&self->out, &sign, 1);
        if (!state)
            state = put_value(self, PyList_GetItem(list, at), depth);
        if (state)
            return state;
        sign = ',';
    }
    return put_raw(&self->out, sign == '[' ? "[]" : "]", sign == '[' ? 2 : 1);
}

static int put_value(encoding *self, PyObject *value, int depth)
{
    /* Too large for a line: a text of megabytes, or the rest of a million numbers, is not encoded to find that out. */
    if (self->out.size > self->most)
        return NOT_PLAIN;
    if (PyUnicode_CheckExact(value))
        return (size_t)PyUnicode_GetLength(value) > self->most ? NOT_PLAIN : put_text(&self->out, value);
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

/* -- lines ----------------------------------------------------------------------------------------------- */

static uint32_t crc_table[8][256];

static void make_crc_table(void)
{
    for (uint32_t c = 0; c < 256; c++) {
        uint32_t value = c;
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? value >> 1 ^ 0xEDB88320u : value >> 1;
        crc_table[0][c] = value;
    }
    for (int c = 0; c < 256; c++)
        for (int table = 1; table < 8; table++)
            crc_table[table][c] = crc_table[table - 1][c] >> 8 ^ crc_table[0][crc_table[table - 1][c] & 255];
}

/* As zlib's, eight bytes at a time. */
static uint32_t crc32_of(const uint8_t *raw, size_t size, uint32_t crc)
{
    crc = ~crc;
    for (; size >= 8; size -= 8, raw += 8) {
        uint32_t one = crc ^ ((uint32_t)raw[0] | (uint32_t)raw[1] << 8 | (uint32_t)raw[2] << 16 | (uint32_t)raw[3] << 24);
        crc = crc_table[7][one & 255] ^ crc_table[6][one >> 8 & 255] ^ crc_table[5][one >> 16 & 255]
            ^ crc_table[4][one >> 24] ^ crc_table[3][raw[4]] ^ crc_table[2][raw[5]] ^ crc_table[1][raw[6]]
            ^ crc_table[0][raw[7]];
    }
    while (size--)
        crc = crc >> 8 ^ crc_table[0][(crc ^ *raw++) & 255];
    return ~crc;
}

static int integer_of(PyObject *object, PyObject *name, long long *value)
{
    PyObject *item = PyObject_GetAttr(object, name);
    if (item == NULL)
        return -1;
    *value = PyLong_AsLongLong(item);
    Py_DECREF(item);
    return *value == -1 && PyErr_Occurred() ? -1 : 0;
}

static PyObject *name_seq, *name_crc, *name_size, *name_fd;

static int put_str(buffer *out, PyObject *text)
{
    Py_ssize_t size;
    const char *raw = PyUnicode_AsUTF8AndSize(text, &size);
    return raw == NULL ? FAILED : put_raw(out, raw, (size_t)size);
}

static PyObject *refuse(int number, const char *why)
{
    PyObject *arguments = Py_BuildValue("is", number, why);
    if (arguments != NULL) {
        PyErr_SetObject(PyExc_OSError, arguments);
        Py_DECREF(arguments);
    }
    return NULL;
}

/* Puts the line of one event at the end of the writer's file and counts it, in one step: no signal handler runs between
   the write and the counting. The interpreter is free meanwhile; the writer's own lock keeps other threads out. */
static PyObject *write_line(PyObject *module, PyObject *args)
{
    PyObject *writer, *kind, *members;
    const char *data;
    Py_ssize_t data_size;
    long long wall, mono, seq, crc, size, fd;
    if (!PyArg_ParseTuple(args, "OULLUy#:write_line", &writer, &kind, &wall, &mono, &members, &data, &data_size)
        || integer_of(writer, name_seq, &seq) < 0 || integer_of(writer, name_crc, &crc) < 0
        || integer_of(writer, name_size, &size) < 0 || integer_of(writer, name_fd, &fd) < 0)
        return NULL;
    buffer out = {0};
    PyObject *done = NULL;
    if (!is_room(&out, (size_t)data_size + 512)) {
        PyErr_NoMemory();
        return NULL;
    }
    if (put_raw(&out, "{\"seq\":", 7) || put_int(&out, seq) || put_raw(&out, ",\"kind\":", 8) || put_str(&out, kind)
        || put_raw(&out, ",\"wall\":", 8) || put_int(&out, wall) || put_raw(&out, ",\"mono\":", 8)
        || put_int(&out, mono) || put_raw(&out, ",", 1) || put_str(&out, members)
        || put_raw(&out, "\"data\":", 7) || put_raw(&out, data, (size_t)data_size))
        goto failed;
    uint32_t sum = crc32_of((const uint8_t *)out.text, out.size, (uint32_t)crc);
    char end[] = ",\"crc\":\"00000000\"}\n";
    for (int digit = 0; digit < 8; digit++)
        end[8 + digit] = DIGITS[sum >> (28 - 4 * digit) & 15];
    if (put_raw(&out, end, sizeof end - 1))
        goto failed;
    /* Made before the write, so that nothing can fail between it and the counting. */
    PyObject *next_seq = PyLong_FromLongLong(seq + 1), *next_crc = PyLong_FromLongLong((long long)sum);
    PyObject *next_size = PyLong_FromLongLong(size + (long long)out.size);
    PyObject *this_seq = PyLong_FromLongLong(seq);
    if (next_seq == NULL || next_crc == NULL || next_size == NULL || this_seq == NULL)
        goto dropped;
    off_t place;
    ssize_t written = -1;
    int error = 0;
    do {
        Py_BEGIN_ALLOW_THREADS
        errno = 0;
        place = lseek((int)fd, 0, SEEK_CUR);
        if (place == (off_t)size)
            written = write((int)fd, out.text, out.size);
        error = errno;
        Py_END_ALLOW_THREADS
        /* Before anything is written: a signal's handler may run now, and may raise. */
    } while (place == (off_t)size && written < 0 && error == EINTR && PyErr_CheckSignals() == 0);
    if (PyErr_Occurred())
        goto dropped;
    if (place != (off_t)size) {
        done = refuse(place < 0 ? error : EBADF, place < 0 ? strerror(error) : "the tape's descriptor now belongs to another file");
    } else if (written < 0) {
        done = refuse(error, strerror(error));
    } else if ((size_t)written != out.size) {
        done = refuse(ENOSPC, "the disk took only part of an event");
    } else if (PyObject_SetAttr(writer, name_size, next_size) == 0 && PyObject_SetAttr(writer, name_crc, next_crc) == 0
               && PyObject_SetAttr(writer, name_seq, next_seq) == 0) {
        done = Py_NewRef(this_seq);
    }
dropped:
    Py_XDECREF(next_seq);
    Py_XDECREF(next_crc);
    Py_XDECREF(next_size);
    Py_XDECREF(this_seq);
failed:
    free(out.text);
    return done;
}

static PyMethodDef functions[] = {
    {"encode", encode, METH_VARARGS, "encode(value, keys, most, scanner, needles): JSON; with clues (JSON, clues); None: not plain"},
    {"write_line", write_line, METH_VARARGS, "write_line(writer, kind, wall, mono, members, data): the event's seq"},
    {NULL}
};

int add_event(PyObject *module)
{
    make_escapes();
    make_crc_table();
    if ((name_seq = PyUnicode_InternFromString("seq")) == NULL || (name_crc = PyUnicode_InternFromString("crc")) == NULL
        || (name_size = PyUnicode_InternFromString("size")) == NULL
        || (name_fd = PyUnicode_InternFromString("_fd")) == NULL)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
