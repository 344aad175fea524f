/* Writes events: one call for an event, from its fields to the line on the disk.

   The twins are `append` of `recording/encoder` with the writer's `append`, and `SegmentWriter._write`. What is unusual
   is left to Python: `append` returns None then, and has written nothing. */

#include "core.h"
#include "json.h"

#include <errno.h>
#include <sys/types.h>
#include <unistd.h>

static PyObject *name_seq, *name_crc, *name_size, *name_fd, *name_at, *name_writing, *name_deferred;
static PyObject *name_name, *name_known, *name_encode;

static const struct {
    PyObject **to;
    const char *name;
} NAMES[] = {
    {&name_seq, "seq"}, {&name_crc, "crc"}, {&name_size, "size"}, {&name_fd, "_fd"}, {&name_at, "_at"},
    {&name_writing, "_writing"}, {&name_deferred, "_deferred"}, {&name_name, "name"}, {&name_known, "known"},
    {&name_encode, "encode"},
};

static int integer_of(PyObject *object, PyObject *name, long long *value)
{
    PyObject *item = PyObject_GetAttr(object, name);
    if (item == NULL)
        return -1;
    *value = PyLong_AsLongLong(item);
    Py_DECREF(item);
    return *value == -1 && PyErr_Occurred() ? -1 : 0;
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

/* -- lines ----------------------------------------------------------------------------------------------- */

static const char END[] = ",\"crc\":\"00000000\"}\n";

/* Puts the end of a line behind its last byte, for which there is room, and returns the new checksum. */
static uint32_t close_line(char *text, size_t *size, uint32_t crc)
{
    uint32_t sum = crc32_of((const uint8_t *)text, *size, crc);
    char *end = text + *size;
    memcpy(end, END, sizeof END - 1);
    for (int digit = 0; digit < 8; digit++)
        end[8 + digit] = "0123456789abcdef"[sum >> (28 - 4 * digit) & 15];
    *size += sizeof END - 1;
    return sum;
}

/* Puts a line at the end of the writer's file and counts it, in one step: no signal handler runs between the write and
   the counting. The interpreter is free meanwhile; the writer's own lock keeps other threads out. */
static PyObject *write_and_count(PyObject *writer, long long seq, long long fd, long long size, uint32_t sum,
                                 const char *line, size_t length)
{
    /* Made before the write, so that nothing can fail between it and the counting. */
    PyObject *done = NULL, *next_seq = PyLong_FromLongLong(seq + 1), *next_crc = PyLong_FromLongLong((long long)sum);
    PyObject *next_size = PyLong_FromLongLong(size + (long long)length);
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
            written = write((int)fd, line, length);
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
    } else if ((size_t)written != length) {
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
    return done;
}

static int put_head(buffer *out, long long seq, PyObject *kind, long long wall, long long mono)
{
    return put_raw(out, "{\"seq\":", 7) || put_int(out, seq) || put_raw(out, ",\"kind\":", 8) || put_str(out, kind)
        || put_raw(out, ",\"wall\":", 8) || put_int(out, wall) || put_raw(out, ",\"mono\":", 8)
        || put_int(out, mono) || put_raw(out, ",", 1);
}

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
    if (!put_head(&out, seq, kind, wall, mono) && !put_str(&out, members) && !put_raw(&out, "\"data\":", 7)
        && !put_raw(&out, data, (size_t)data_size) && !put_raw(&out, END, sizeof END - 1)) {
        out.size -= sizeof END - 1;
        uint32_t sum = close_line(out.text, &out.size, (uint32_t)crc);
        done = write_and_count(writer, seq, fd, size, sum, out.text, out.size);
    }
    free(out.text);
    return done;
}

/* -- events ---------------------------------------------------------------------------------------------- */

/* What stays the same for the events of a segment. All are objects of ours. */
enum {
    WRITER, NAMES_OF, KEYS, WHO, IDS, ROOT, RULES, KNOWN, CLEAN_TEXT, KINDS, LANE, ENCLOSING, THREAD, WALL, MONO, ACQUIRE,
    RELEASE, WRITE_DEFERRED, SETTLE, PARTS
};

typedef struct {
    PyObject *part[PARTS];
    size_t most;
    /* Kept for the next event; an event takes it away while it uses it, because a finalizer or another thread may record
       meanwhile. */
    buffer spare, spare_members, spare_head;
} tape;

static const char TAPE[] = "playhead.tape";
/* Data begins here in the buffer: the head of the line, known only when it is written, has room before it. */
#define RESERVE 4096
#define LARGEST_SPARE (1 << 20)

static void tape_free(PyObject *capsule)
{
    tape *self = PyCapsule_GetPointer(capsule, TAPE);
    if (self == NULL)
        return;
    for (int at = 0; at < PARTS; at++)
        Py_XDECREF(self->part[at]);
    free(self->spare.text);
    free(self->spare_members.text);
    free(self->spare_head.text);
    free(self);
}

static PyObject *make_tape(PyObject *module, PyObject *args)
{
    PyObject *given;
    Py_ssize_t most;
    if (!PyArg_ParseTuple(args, "O!n:tape", &PyTuple_Type, &given, &most))
        return NULL;
    if (PyTuple_Size(given) != PARTS || most < 0) {
        PyErr_Format(PyExc_ValueError, "a tape has %d parts", PARTS);
        return NULL;
    }
    PyObject *const who = PyTuple_GetItem(given, WHO), *const ids = PyTuple_GetItem(given, IDS);
    if (!PyUnicode_CheckExact(who) || !PyUnicode_CheckExact(ids) || !PyDict_Check(PyTuple_GetItem(given, NAMES_OF))
        || !PyDict_CheckExact(PyTuple_GetItem(given, KINDS))) {
        PyErr_SetString(PyExc_TypeError, "a part of the tape has another type");
        return NULL;
    }
    tape *self = calloc(1, sizeof(tape));
    PyObject *capsule = self ? PyCapsule_New(self, TAPE, tape_free) : NULL;
    if (capsule == NULL) {
        free(self);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    for (int at = 0; at < PARTS; at++)
        self->part[at] = Py_NewRef(PyTuple_GetItem(given, at));
    self->most = (size_t)most;
    return capsule;
}

static buffer taken(buffer *spare)
{
    buffer out = *spare;
    *spare = (buffer){0};
    out.size = 0;
    return out;
}

static void give_back(buffer *spare, buffer *out)
{
    if (spare->text != NULL || out->room > LARGEST_SPARE)
        free(out->text);
    else
        *spare = *out;
}

/* A short text as redacted JSON, from the cache of names. */
static int put_name(const tape *self, buffer *out, PyObject *text)
{
    if (!PyUnicode_CheckExact(text))
        return NOT_PLAIN;
    /* PyObject_GetItem calls `Names.__missing__`, which is ours, for a text that is new. */
    PyObject *known = PyObject_GetItem(self->part[NAMES_OF], text);
    if (known == NULL)
        return FAILED;
    int state = put_str(out, known);
    Py_DECREF(known);
    return state;
}

/* A reference to an event: its number, or its name. */
static int put_ref(const tape *self, buffer *out, PyObject *ref)
{
    if (!PyLong_CheckExact(ref))
        return put_name(self, out, ref);
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(ref, &overflow);
    return overflow || number < 0 ? NOT_PLAIN : put_int(out, number);
}

static int put_number(buffer *out, PyObject *read)
{
    PyObject *number = PyObject_CallNoArgs(read);
    if (number == NULL)
        return FAILED;
    unsigned long long value = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    if (value == (unsigned long long)-1 && PyErr_Occurred())
        return FAILED;
    return value > INT64_MAX ? NOT_PLAIN : put_int(out, (long long)value);
}

/* The fields of an event, in the order of `NewEvent`; all borrowed from the caller. */
enum { OF_KIND, OF_DATA, OF_PLACE, OF_PARENT, OF_CAUSE, OF_REDACTED, OF_USER, OF_WHO, OF_WHY, FIELDS };

static int put_parent(const tape *self, buffer *out, PyObject *parent)
{
    if (parent != Py_None)
        return put_ref(self, out, parent);
    PyObject *around = PyObject_CallNoArgs(self->part[ENCLOSING]);
    if (around == NULL)
        return FAILED;
    int state = put_ref(self, out, around == Py_None ? self->part[ROOT] : around);
    Py_DECREF(around);
    return state;
}

/* The members between the times and the data. */
static int put_members(const tape *self, buffer *out, PyObject *const *event)
{
    int state;
    if ((state = put_str(out, self->part[IDS])) || (state = put_raw(out, "\"thread\":", 9))
        || (state = put_number(out, self->part[THREAD])) || (state = put_raw(out, ",\"lane\":", 8)))
        return state;
    PyObject *lane = PyObject_CallNoArgs(self->part[LANE]);
    PyObject *name = lane ? PyObject_GetAttr(lane, name_name) : NULL;
    state = name ? put_name(self, out, name) : FAILED;
    Py_XDECREF(lane);
    Py_XDECREF(name);
    if (state)
        return state;
    PyObject *place = event[OF_PLACE], *who = event[OF_WHO];
    if (!PyUnicode_CheckExact(place))
        return NOT_PLAIN;
    if ((state = put_raw(out, ",\"at\":", 6)) || (state = put_str(out, place)) || (state = put_raw(out, ",\"who\":", 7))
        || (state = put_name(self, out, who == Py_None ? self->part[WHO] : who))
        || (state = put_raw(out, ",\"parent\":", 10)) || (state = put_parent(self, out, event[OF_PARENT]))
        || (state = put_raw(out, ",", 1)))
        return state;
    if (event[OF_CAUSE] != Py_None
        && ((state = put_raw(out, "\"cause\":", 8)) || (state = put_ref(self, out, event[OF_CAUSE]))
            || (state = put_raw(out, ",", 1))))
        return state;
    if (event[OF_WHY] != Py_None) {
        if (!PyUnicode_CheckExact(event[OF_WHY]))
            return NOT_PLAIN;
        PyObject *why = PyObject_CallMethodObjArgs(self->part[NAMES_OF], name_encode, event[OF_WHY], NULL);
        int failed = why == NULL || put_raw(out, "\"why\":", 6) || put_str(out, why) || put_raw(out, ",", 1);
        Py_XDECREF(why);
        if (failed)
            return FAILED;
    }
    if (event[OF_USER] != Py_False) {
        int is_ours = event[OF_USER] == Py_True ? PyDict_Contains(self->part[KINDS], event[OF_KIND]) : -2;
        if (is_ours < 0)
            return is_ours == -1 ? FAILED : NOT_PLAIN;
        if (is_ours)
            return put_raw(out, "\"user\":true,", 12);
    }
    return DONE;
}

/* The data as JSON, without its secrets, behind the reserve. */
static int put_data(const tape *self, buffer *out, PyObject *data, PyObject *redacted)
{
    encoding made = {.out = *out, .most = self->most + RESERVE};
    int state = DONE;
    if (made.out.room < RESERVE + 1024) {
        char *grown = realloc(made.out.text, RESERVE + 4096);
        if (grown == NULL) {
            PyErr_NoMemory();
            return FAILED;
        }
        made.out.text = grown;
        made.out.room = RESERVE + 4096;
    }
    made.out.size = RESERVE;
    PyObject *keys = NULL;
    if (redacted != Py_True) {
        /* Replaced, not cleared, when it has become too large. */
        keys = PyObject_GetAttr(self->part[KEYS], name_known);
        if (keys == NULL)
            state = FAILED;
        else if (!PySet_Check(keys))
            state = NOT_PLAIN;
        made.keys = keys;
        made.rules = self->part[RULES] == Py_None ? NULL : self->part[RULES];
        made.known = self->part[KNOWN];
        made.clean = PyUnicode_CheckExact(redacted) ? redacted : NULL;
    }
    if (!state)
        state = put_value(&made, data, 0);
    if (!state && made.out.size <= made.most && made.rules != NULL) {
        int is_suspicious = may_hold_secret(&made, RESERVE);
        if (is_suspicious < 0)
            state = FAILED;
        if (is_suspicious > 0) {
            made.clean_text = self->part[CLEAN_TEXT];
            made.out.size = RESERVE;
            made.parts = 0;
            state = put_value(&made, data, 0);
        }
    }
    if (!state && made.out.size > made.most)
        state = NOT_PLAIN;
    Py_XDECREF(keys);
    *out = made.out;
    return state;
}

static int time_of(PyObject *read, long long *value)
{
    PyObject *now = PyObject_CallNoArgs(read);
    if (now == NULL)
        return -1;
    *value = PyLong_AsLongLong(now);
    Py_DECREF(now);
    return *value == -1 && PyErr_Occurred() ? -1 : 0;
}

/* As `SegmentWriter._write`, for a line whose data lies behind the reserve. The writer's lock is held. */
static PyObject *write_event(const tape *self, buffer *out, buffer *head, const buffer *members, PyObject *kind,
                             long long seq)
{
    PyObject *writer = self->part[WRITER];
    long long crc, size, fd, wall, mono;
    if (integer_of(writer, name_crc, &crc) < 0 || integer_of(writer, name_size, &size) < 0
        || integer_of(writer, name_fd, &fd) < 0 || time_of(self->part[WALL], &wall) < 0
        || time_of(self->part[MONO], &mono) < 0)
        return NULL;
    if (put_head(head, seq, kind, wall, mono) || put_raw(head, members->text, members->size)
        || put_raw(head, "\"data\":", 7) || put_raw(out, END, sizeof END - 1))
        return NULL;
    char *start = out->text + RESERVE - head->size;
    memcpy(start, head->text, head->size);
    size_t length = out->size - RESERVE - (sizeof END - 1) + head->size;
    uint32_t sum = close_line(start, &length, (uint32_t)crc);
    return write_and_count(writer, seq, fd, size, sum, start, length);
}

/* Calls a function of the writer while an exception may be set, which stays unless the function raises another. */
static void finally(PyObject *function, PyObject *argument)
{
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyObject *done = PyObject_CallFunctionObjArgs(function, argument, NULL);
    if (done == NULL) {
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(trace);
        return;
    }
    Py_DECREF(done);
    PyErr_Restore(type, error, trace);
}

/* As `SegmentWriter.append`. Py_None: left to Python, because an event waits or another one is being written in this
   very thread. */
static PyObject *append_line(const tape *self, buffer *out, buffer *head, const buffer *members, PyObject *kind)
{
    PyObject *writer = self->part[WRITER], *done = NULL;
    PyObject *locked = PyObject_CallNoArgs(self->part[ACQUIRE]);
    if (locked == NULL)
        return NULL;
    Py_DECREF(locked);
    PyObject *seq = PyObject_GetAttr(writer, name_seq), *writing = PyObject_GetAttr(writer, name_writing);
    PyObject *deferred = PyObject_GetAttr(writer, name_deferred);
    Py_ssize_t waiting = deferred == NULL || seq == NULL || writing == NULL ? -1 : PyObject_Size(deferred);
    long long number = waiting < 0 ? -1 : PyLong_AsLongLong(seq);
    if (number < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "the number of an event is not negative");
    } else if (waiting > 0 || writing != Py_False) {
        done = Py_NewRef(Py_None);
    } else if (PyObject_SetAttr(writer, name_writing, Py_True) == 0) {
        if (PyObject_SetAttr(writer, name_at, seq) == 0) {
            done = write_event(self, out, head, members, kind, number);
            if (done == NULL)
                finally(self->part[SETTLE], seq);
            if (PyObject_Size(deferred) > 0)
                finally(self->part[WRITE_DEFERRED], NULL);
        }
        PyObject *type, *error, *trace;
        PyErr_Fetch(&type, &error, &trace);
        if (PyObject_SetAttr(writer, name_writing, Py_False) < 0)
            PyErr_Clear();
        PyErr_Restore(type, error, trace);
    }
    Py_XDECREF(seq);
    Py_XDECREF(writing);
    Py_XDECREF(deferred);
    finally(self->part[RELEASE], NULL);
    if (PyErr_Occurred()) {
        Py_CLEAR(done);
    }
    return done;
}

static PyObject *append_fields(tape *self, PyObject *const *event)
{
    PyObject *kind = NULL, *done = NULL;
    buffer out = taken(&self->spare), members = taken(&self->spare_members), head = taken(&self->spare_head);
    int state = put_data(self, &out, event[OF_DATA], event[OF_REDACTED]);
    if (!state)
        state = put_members(self, &members, event);
    if (!state) {
        kind = PyObject_GetItem(self->part[NAMES_OF], event[OF_KIND]);
        state = kind == NULL ? FAILED : DONE;
    }
    if (!state && (!PyUnicode_CheckExact(kind) || members.size + (size_t)PyUnicode_GetLength(kind) * 4 + 256 > RESERVE))
        state = NOT_PLAIN;
    if (!state)
        done = append_line(self, &out, &head, &members, kind);
    else if (state == NOT_PLAIN)
        done = Py_NewRef(Py_None);
    Py_XDECREF(kind);
    give_back(&self->spare, &out);
    give_back(&self->spare_members, &members);
    give_back(&self->spare_head, &head);
    return done;
}

static PyObject *append(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    tape *self = count == 1 + FIELDS ? PyCapsule_GetPointer(args[0], TAPE) : NULL;
    if (self == NULL)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "append(tape, and the %d fields of an event)", FIELDS);
    PyObject *const *event = args + 1;
    return PyUnicode_CheckExact(event[OF_KIND]) ? append_fields(self, event) : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"write_line", write_line, METH_VARARGS, "write_line(writer, kind, wall, mono, members, data): the event's seq"},
    {"tape", make_tape, METH_VARARGS, "tape(parts, most): for `append`"},
    {"append", (PyCFunction)(void (*)(void))append, METH_FASTCALL, "append(tape, kind, data, …): its seq; None: left to Python"},
    {NULL}
};

int add_event(PyObject *module)
{
    make_crc_table();
    for (size_t at = 0; at < sizeof NAMES / sizeof *NAMES; at++)
        if ((*NAMES[at].to = PyUnicode_InternFromString(NAMES[at].name)) == NULL)
            return -1;
    return PyModule_AddFunctions(module, functions);
}
