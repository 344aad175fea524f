/* Finds the places in bytes where the exact rules for secrets must look.

   The twin of the quick looks in `redact/spans.py`. All literals come from there (`scanner`), so that the
   rules are written down once. What is found here is a superset of the secrets: Python's patterns decide.

   - Literals ("curl", "form-data;", "://") are found by a bitmap of two of their letters: one test for each
     byte, whatever their number.
   - Long runs of letters and digits are found by looking at every 16th byte, and blocks of base64 by looking
     at every 1024th: text is skipped for the most part.
   - Names before a `=` or `:` are compared backwards from there.
   - Secrets that are known literally are found with a table of shifts (Wu and Manber). */

#include "core.h"
#include "wide.h"

#include <limits.h>

#define LONG 16
#define BLOCK 1024
#define BLOCK_END 64
#define MOST_LITERALS 512
#define MOST_NAMES 4096
#define LONGEST_WORD 64

enum { IS_RUN = 1, IS_BLOCK = 2, IS_BETWEEN = 4, IS_ASSIGN = 8, IS_ALNUM = 16, IS_HEX = 32, IS_DIGIT = 64 };

static uint8_t classes[256];
/* Letters in the order of how often they stand in texts: the anchor of a literal is its rarest pair. */
static const char FREQUENT[] = " etaoinsrhldcumfpgwybvk";
static uint8_t rarity[256];

static void make_classes(void)
{
    for (int c = 0; c < 256; c++) {
        int is_digit = c >= '0' && c <= '9';
        int is_alnum = is_digit || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        uint8_t one = 0;
        if (is_alnum)
            one |= IS_ALNUM | IS_RUN | IS_BLOCK;
        if (c == '_' || c == '-')
            one |= IS_RUN;
        if (c == '+' || c == '/')
            one |= IS_BLOCK;
        if (c == '\\' || c == '"' || c == '\'' || c == ' ' || (c >= '\t' && c <= '\r'))
            one |= IS_BETWEEN;
        if (c == '=' || c == ':')
            one |= IS_ASSIGN;
        if (is_digit)
            one |= IS_DIGIT;
        if (is_digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
            one |= IS_HEX;
        classes[c] = one;
        const char *place = c ? strchr(FREQUENT, c) : NULL;
        rarity[c] = place ? (uint8_t)(place - FREQUENT) : 30;
    }
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

typedef uint8_t bitmap[8192];

static inline int has(const bitmap bits, unsigned pair)
{
    return bits[pair >> 3] >> (pair & 7) & 1;
}

static void put(bitmap bits, unsigned pair)
{
    bits[pair >> 3] |= 1 << (pair & 7);
}

static inline unsigned slot_of(uint8_t a, uint8_t b)
{
    return (lower(a) * 31u + lower(b)) & 255;
}

/* What happens where a literal is found. */
enum { MARKS = 0, URL = 1, POSITION = 2 };

typedef struct {
    const uint8_t *text;
    uint16_t size;
    uint16_t anchor;
    uint8_t mode;
    uint8_t folds;
    uint8_t what;
    uint8_t rule;
    /* The bytes from `low` to `high`, counted from its start, are all of a class; low == high: any. */
    int16_t low, high;
    uint8_t class[32];
    int16_t next;
} literal;

typedef struct {
    PyObject *texts; /* holds the bytes to which the literals point */
    literal literals[MOST_LITERALS];
    int16_t heads[256];
    bitmap look, find;
    pair_tables wide_look, wide_find;
    /* Starts of keys inside of a run. */
    const uint8_t *starts[MOST_LITERALS];
    uint16_t start_size[MOST_LITERALS];
    int16_t start_next[MOST_LITERALS], start_heads[256];
    bitmap start_pairs;
    /* Starts that end in a dot, and words, which stand before a run. */
    PyObject *dotted, *words;
    uint64_t names[MOST_NAMES];
    uint8_t is_last[256]; /* whether a name ends in this letter */
    uint64_t run_rules; /* rules that apply only where there is a long run */
    int key_rule, webhook_rule;
} scanner;

static const char SCANNER[] = "playhead.scanner", NEEDLES[] = "playhead.needles";

static uint64_t packed(const uint8_t *name, size_t size)
{
    uint64_t all = (uint64_t)size << 56;
    for (size_t at = 0; at < size; at++)
        all |= (uint64_t)name[at] << (8 * at);
    return all;
}

static unsigned name_slot(uint64_t name)
{
    return (unsigned)((name * 0x9E3779B97F4A7C15ull) >> 52) & (MOST_NAMES - 1);
}

static int is_name(const scanner *self, uint64_t name)
{
    unsigned slot = name_slot(name);
    while (self->names[slot]) {
        if (self->names[slot] == name)
            return 1;
        slot = (slot + 1) & (MOST_NAMES - 1);
    }
    return 0;
}

static void scanner_free(PyObject *capsule)
{
    scanner *self = PyCapsule_GetPointer(capsule, SCANNER);
    if (self == NULL)
        return;
    Py_XDECREF(self->texts);
    Py_XDECREF(self->dotted);
    Py_XDECREF(self->words);
    free(self);
}

/* The bytes of an item of a tuple, of at least `least` and at most LONGEST_WORD; NULL: an exception is set. */
static const uint8_t *word_at(PyObject *tuple, Py_ssize_t at, size_t least, size_t *size)
{
    PyObject *item = PyTuple_GetItem(tuple, at);
    char *text;
    Py_ssize_t length;
    if (item == NULL || PyBytes_AsStringAndSize(item, &text, &length) < 0)
        return NULL;
    if (length < (Py_ssize_t)least || length > LONGEST_WORD) {
        PyErr_SetString(PyExc_ValueError, "a literal is too short or too long");
        return NULL;
    }
    *size = (size_t)length;
    return (const uint8_t *)text;
}

static void add_pairs(bitmap bits, uint8_t a, uint8_t b, int folds)
{
    put(bits, (unsigned)a << 8 | b);
    if (!folds)
        return;
    uint8_t one[2] = {lower(a), lower(b)};
    for (int upper = 0; upper < 4; upper++) {
        uint8_t first = one[0], second = one[1];
        if (upper & 1 && first >= 'a' && first <= 'z')
            first -= 32;
        if (upper & 2 && second >= 'a' && second <= 'z')
            second -= 32;
        put(bits, (unsigned)first << 8 | second);
    }
}

static int add_literals(scanner *self, PyObject *all)
{
    Py_ssize_t count = PyTuple_Size(all);
    if (count < 0 || count > MOST_LITERALS) {
        PyErr_SetString(PyExc_ValueError, "too many literals");
        return -1;
    }
    for (Py_ssize_t at = 0; at < count; at++) {
        literal *one = &self->literals[at];
        PyObject *row = PyTuple_GetItem(all, at);
        int mode, folds, what, rule, low, high;
        const char *text, *class;
        Py_ssize_t size, of_class;
        if (!PyTuple_Check(row)) {
            PyErr_SetString(PyExc_TypeError, "a literal is a tuple");
            return -1;
        }
        if (!PyArg_ParseTuple(row, "y#iiiiiiy#", &text, &size, &mode, &folds, &what, &rule, &low, &high, &class,
                              &of_class))
            return -1;
        if (size < 1 || size > LONGEST_WORD || rule < 0 || rule > 62 || low < -64 || high > 64 || low > high) {
            PyErr_SetString(PyExc_ValueError, "a literal is out of bounds");
            return -1;
        }
        one->text = (const uint8_t *)text;
        one->size = (uint16_t)size;
        one->mode = (uint8_t)mode;
        one->folds = (uint8_t)folds;
        one->what = (uint8_t)what;
        one->rule = (uint8_t)rule;
        one->low = (int16_t)low;
        one->high = (int16_t)high;
        for (Py_ssize_t letter = 0; letter < of_class; letter++)
            one->class[(uint8_t)class[letter] >> 3] |= 1 << ((uint8_t)class[letter] & 7);
        if (size == 1) {
            /* Found by its pairs with every byte before it: it must not be the first byte of a text. */
            if (low >= 0 || folds) {
                PyErr_SetString(PyExc_ValueError, "a literal of one byte needs bytes before it");
                return -1;
            }
            one->anchor = UINT16_MAX;
            for (unsigned before = 0; before < 256; before++) {
                if (!(one->class[before >> 3] >> (before & 7) & 1))
                    continue;
                if (mode & LOOK)
                    put(self->look, before << 8 | one->text[0]);
                if (mode & FIND)
                    put(self->find, before << 8 | one->text[0]);
            }
            one->next = -1;
            continue;
        }
        int best = -1;
        for (Py_ssize_t place = 0; place + 1 < size; place++) {
            int score = rarity[one->text[place]] + rarity[one->text[place + 1]];
            if (score > best) {
                best = score;
                one->anchor = (uint16_t)place;
            }
        }
        uint8_t a = one->text[one->anchor], b = one->text[one->anchor + 1];
        if (mode & LOOK)
            add_pairs(self->look, a, b, folds);
        if (mode & FIND)
            add_pairs(self->find, a, b, folds);
        one->next = self->heads[slot_of(a, b)];
        self->heads[slot_of(a, b)] = (int16_t)at;
    }
    return 0;
}

static int add_starts(scanner *self, PyObject *all)
{
    Py_ssize_t count = PyTuple_Size(all);
    if (count < 0 || count > MOST_LITERALS) {
        PyErr_SetString(PyExc_ValueError, "too many starts");
        return -1;
    }
    for (Py_ssize_t at = 0; at < count; at++) {
        size_t size;
        const uint8_t *text = word_at(all, at, 2, &size);
        if (text == NULL)
            return -1;
        self->starts[at] = text;
        self->start_size[at] = (uint16_t)size;
        put(self->start_pairs, (unsigned)text[0] << 8 | text[1]);
        self->start_next[at] = self->start_heads[slot_of(text[0], text[1])];
        self->start_heads[slot_of(text[0], text[1])] = (int16_t)at;
    }
    return 0;
}

static int add_names(scanner *self, PyObject *all)
{
    Py_ssize_t count = PyTuple_Size(all);
    if (count < 0 || count > MOST_NAMES / 4) {
        PyErr_SetString(PyExc_ValueError, "too many names");
        return -1;
    }
    for (Py_ssize_t at = 0; at < count; at++) {
        size_t size;
        const uint8_t *text = word_at(all, at, 1, &size);
        if (text == NULL)
            return -1;
        if (size > 6) {
            PyErr_SetString(PyExc_ValueError, "a name has at most six letters");
            return -1;
        }
        uint64_t name = packed(text, size);
        if (is_name(self, name))
            continue;
        unsigned slot = name_slot(name);
        while (self->names[slot])
            slot = (slot + 1) & (MOST_NAMES - 1);
        self->names[slot] = name;
        uint8_t last = text[size - 1];
        self->is_last[last] = 1;
        for (int sign = 0; sign < 2; sign++)
            add_pairs(self->look, last, sign ? '=' : ':', 1);
    }
    self->is_last['d'] = 1; /* of `;pwd` */
    for (int c = 0; c < 256; c++)
        if (classes[c] & IS_BETWEEN) {
            put(self->look, (unsigned)c << 8 | '=');
            put(self->look, (unsigned)c << 8 | ':');
        }
    /* The last letters of escaped blanks: `password\t=` as JSON has it. */
    for (const char *letter = "nrt"; *letter; letter++)
        for (int sign = 0; sign < 2; sign++)
            put(self->look, (unsigned)*letter << 8 | (sign ? '=' : ':'));
    return 0;
}

/* How often a byte stands in texts, roughly: in a thousand. */
static unsigned frequency(unsigned c)
{
    if (c >= 128)
        return 1;
    if (c == ' ')
        return 150;
    if (c >= 'a' && c <= 'z')
        return rarity[c] < 10 ? 55 : rarity[c] < 20 ? 20 : 6;
    return c == '"' || c == ',' || c == '.' || (c >= '0' && c <= '9') ? 12 : c >= 32 ? 4 : 1;
}

typedef struct {
    uint16_t low, high; /* halves of bytes, a bit for each */
} halves;

static halves with(halves some, unsigned c)
{
    return (halves){some.low | 1u << (c & 15), some.high | 1u << (c >> 4)};
}

/* How often a byte stands in texts whose halves are both among these. */
static unsigned mass(halves some, const uint16_t *weights)
{
    unsigned all = 0;
    for (unsigned high = 0; high < 8; high++)
        if (some.high >> high & 1)
            for (unsigned low = 0; low < 16; low++)
                if (some.low >> low & 1)
                    all += weights[high << 4 | low];
    return all;
}

/* Puts the pairs of a bitmap into eight groups, so that few other pairs have the halves of a group. */
static void make_wide(const bitmap bits, pair_tables tables)
{
    halves first[8] = {0}, second[8] = {0};
    unsigned long cost[8] = {0};
    uint16_t weights[256];
    for (unsigned c = 0; c < 256; c++)
        weights[c] = (uint16_t)frequency(c);
    for (unsigned b = 0; b < 256; b++)
        for (unsigned a = 0; a < 256; a++) {
            if (!has(bits, a << 8 | b))
                continue;
            int best = 0;
            unsigned long least = ULONG_MAX, grown = 0;
            for (int group = 0; group < 8; group++) {
                halves one = with(first[group], a), two = with(second[group], b);
                unsigned long now = cost[group];
                if (one.low != first[group].low || one.high != first[group].high || two.low != second[group].low
                    || two.high != second[group].high)
                    now = (unsigned long)mass(one, weights) * mass(two, weights) + 1;
                if (now - cost[group] < least) {
                    least = now - cost[group];
                    best = group;
                    grown = now;
                }
                if (least == 0)
                    break;
            }
            first[best] = with(first[best], a);
            second[best] = with(second[best], b);
            cost[best] = grown;
        }
    for (unsigned half = 0; half < 16; half++)
        for (int group = 0; group < 8; group++) {
            tables[half] |= (first[group].low >> half & 1) << group;
            tables[16 + half] |= (first[group].high >> half & 1) << group;
            tables[32 + half] |= (second[group].low >> half & 1) << group;
            tables[48 + half] |= (second[group].high >> half & 1) << group;
        }
}

static int only_short_words(PyObject *tuple)
{
    size_t size;
    for (Py_ssize_t at = 0; at < PyTuple_Size(tuple); at++)
        if (word_at(tuple, at, 1, &size) == NULL)
            return 0;
    return 1;
}

static PyObject *make_scanner(PyObject *module, PyObject *args)
{
    PyObject *literals, *starts, *dotted, *words, *names;
    unsigned long long run_rules;
    int key_rule, webhook_rule;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!Kii:scanner", &PyTuple_Type, &literals, &PyTuple_Type, &starts,
                          &PyTuple_Type, &dotted, &PyTuple_Type, &words, &PyTuple_Type, &names, &run_rules,
                          &key_rule, &webhook_rule))
        return NULL;
    if (key_rule < 0 || key_rule > 62 || webhook_rule < 0 || webhook_rule > 62) {
        PyErr_SetString(PyExc_ValueError, "a rule is out of bounds");
        return NULL;
    }
    scanner *self = calloc(1, sizeof(scanner));
    if (self == NULL)
        return PyErr_NoMemory();
    memset(self->heads, 0xff, sizeof self->heads);
    memset(self->start_heads, 0xff, sizeof self->start_heads);
    self->run_rules = run_rules;
    self->key_rule = key_rule;
    self->webhook_rule = webhook_rule;
    self->texts = PyTuple_Pack(3, literals, starts, names);
    self->dotted = Py_NewRef(dotted);
    self->words = Py_NewRef(words);
    PyObject *capsule = NULL;
    if (self->texts != NULL)
        capsule = PyCapsule_New(self, SCANNER, scanner_free);
    if (capsule == NULL) {
        Py_XDECREF(self->texts);
        Py_DECREF(dotted);
        Py_DECREF(words);
        free(self);
        return NULL;
    }
    if (add_literals(self, literals) < 0 || add_starts(self, starts) < 0 || add_names(self, names) < 0
        || !only_short_words(dotted) || !only_short_words(words)) {
        Py_DECREF(capsule);
        return NULL;
    }
    if (is_wide) {
        make_wide(self->look, self->wide_look);
        make_wide(self->find, self->wide_find);
    }
    return capsule;
}

/* -- secrets that are known literally -------------------------------------------------------------------- */

#define SHIFTS 4096

typedef struct {
    PyObject *texts;
    size_t count, shortest;
    uint8_t shift[SHIFTS];
    int32_t heads[SHIFTS];
    int32_t *next;
} needles;

static inline unsigned shift_slot(uint8_t a, uint8_t b)
{
    return ((unsigned)a << 4 ^ b) & (SHIFTS - 1);
}

static void needles_free(PyObject *capsule)
{
    needles *self = PyCapsule_GetPointer(capsule, NEEDLES);
    if (self == NULL)
        return;
    Py_XDECREF(self->texts);
    free(self->next);
    free(self);
}

static PyObject *make_needles(PyObject *module, PyObject *texts)
{
    if (!PyTuple_Check(texts)) {
        PyErr_SetString(PyExc_TypeError, "needles are a tuple of bytes");
        return NULL;
    }
    Py_ssize_t count = PyTuple_Size(texts);
    if (count == 0)
        Py_RETURN_NONE;
    size_t shortest = SIZE_MAX;
    for (Py_ssize_t at = 0; at < count; at++) {
        char *text;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(texts, at), &text, &size) < 0)
            return NULL;
        if ((size_t)size < shortest)
            shortest = (size_t)size;
    }
    if (shortest < 2 || count > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "a needle has at least two bytes");
        return NULL;
    }
    needles *self = calloc(1, sizeof(needles));
    int32_t *next = calloc((size_t)count, sizeof(int32_t));
    PyObject *capsule = self && next ? PyCapsule_New(self, NEEDLES, needles_free) : NULL;
    if (capsule == NULL) {
        free(self);
        free(next);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    self->texts = Py_NewRef(texts);
    self->next = next;
    self->count = (size_t)count;
    self->shortest = shortest;
    size_t furthest = shortest - 1 < 255 ? shortest - 1 : 255;
    memset(self->shift, (int)furthest, sizeof self->shift);
    memset(self->heads, 0xff, sizeof self->heads);
    for (Py_ssize_t at = 0; at < count; at++) {
        char *text;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(texts, at), &text, &size) < 0) {
            Py_DECREF(capsule);
            return NULL;
        }
        for (size_t place = 1; place < shortest; place++) {
            unsigned slot = shift_slot((uint8_t)text[place - 1], (uint8_t)text[place]);
            size_t further = shortest - 1 - place;
            if (further < self->shift[slot])
                self->shift[slot] = (uint8_t)further;
            if (further == 0) {
                self->next[at] = self->heads[slot];
                self->heads[slot] = (int32_t)at;
            }
        }
    }
    return capsule;
}

static int is_needle_in(const needles *self, const uint8_t *raw, size_t size)
{
    size_t last = self->shortest - 1;
    for (size_t at = last; at < size;) {
        unsigned slot = shift_slot(raw[at - 1], raw[at]);
        uint8_t further = self->shift[slot];
        if (further) {
            at += further;
            continue;
        }
        size_t start = at - last;
        for (int32_t one = self->heads[slot]; one >= 0; one = self->next[one]) {
            PyObject *item = PyTuple_GetItem(self->texts, one);
            size_t length = (size_t)PyBytes_Size(item);
            if (length <= size - start && memcmp(raw + start, PyBytes_AsString(item), length) == 0)
                return 1;
        }
        at++;
    }
    return 0;
}

/* -- the search ------------------------------------------------------------------------------------------ */

typedef struct {
    const scanner *rules;
    const uint8_t *raw;
    size_t size;
    int mode;
    uint64_t found; /* rules whose literal is there */
    int is_certain;
    int has_run;
    PyObject *runs, *positions; /* NULL until there is one */
} search;

/* Appends to a list that is made when first needed; -1: an exception is set. */
static int note(PyObject **list, PyObject *item)
{
    if (item == NULL)
        return -1;
    if (*list == NULL)
        *list = PyList_New(0);
    int failed = *list == NULL ? -1 : PyList_Append(*list, item);
    Py_DECREF(item);
    return failed;
}

static int is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* As the pattern `url_password` of shapes.py, matched at `at`. */
static int is_password_in_url(const search *self, size_t at)
{
    const uint8_t *raw = self->raw;
    size_t size = self->size, start = at += 3;
    for (;; at++) {
        if (at >= size || at - start > 256)
            return 0;
        uint8_t c = raw[at];
        if (c == ':')
            break;
        if (is_blank(c) || c == '/' || c == '@' || c == '"' || c == '\'' || c == '\\' || c == '<' || c == '>')
            return 0;
    }
    start = ++at;
    for (;; at++) {
        if (at >= size || at - start > 512)
            return 0;
        uint8_t c = raw[at];
        if (c == '@')
            return at > start;
        if (is_blank(c) || c == '/' || c == '"' || c == '\'' || c == '\\' || c == '<' || c == '>')
            return 0;
    }
}

static int all_of_class(const search *self, const literal *one, size_t start)
{
    if (one->low == one->high)
        return 1;
    if ((one->low < 0 && start < (size_t)-one->low) || (Py_ssize_t)(self->size - start) < one->high)
        return 0;
    const uint8_t *at = self->raw + start + one->low, *end = self->raw + start + one->high;
    for (; at < end; at++)
        if (!(one->class[*at >> 3] >> (*at & 7) & 1))
            return 0;
    return 1;
}

static int is_here(const search *self, const literal *one, size_t start)
{
    if (self->size - start < one->size)
        return 0;
    const uint8_t *raw = self->raw + start;
    if (!one->folds)
        return raw[0] == one->text[0] && raw[one->size - 1] == one->text[one->size - 1]
            && memcmp(raw, one->text, one->size) == 0;
    for (size_t at = 0; at < one->size; at++)
        if (lower(raw[at]) != one->text[at])
            return 0;
    return 1;
}

static int literal_found(search *self, const literal *one, size_t start)
{
    if (one->what == URL) {
        if (is_password_in_url(self, start)) {
            self->found |= 1ull << one->rule;
            self->is_certain = 1;
        }
        return 0;
    }
    self->found |= 1ull << one->rule;
    return one->what == POSITION ? note(&self->positions, PyLong_FromSize_t(start)) : 0;
}

/* Whether the name before the `=` or `:` at `at` is one of a secret. `skips`: without the blanks that JSON escapes;
   -1: it has none, and there are such blanks. */
static int is_named(const search *self, size_t at, int skips)
{
    uint8_t name[6];
    size_t size = 0;
    int is_escaped = 0;
    while (at > 0 && size < 6) {
        uint8_t c = self->raw[--at];
        if (classes[c] & IS_ASSIGN)
            break;
        int is_escape = at > 0 && self->raw[at - 1] == '\\' && (c == 'n' || c == 'r' || c == 't');
        is_escaped |= is_escape;
        if (skips && is_escape)
            at--;
        else if (!(classes[c] & IS_BETWEEN)) {
            /* Most keys of JSON end in a letter that no name ends in. */
            if (size == 0 && !is_escape && !self->rules->is_last[lower(c)])
                return 0;
            name[5 - size++] = lower(c);
        }
    }
    if (size >= 4 && memcmp(name + 2, ";pwd", 4) == 0)
        return 1;
    if (size > 0 && is_name(self->rules, packed(name + 6 - size, size)))
        return 1;
    return is_escaped && !skips ? -1 : 0;
}

static int is_assigned(const search *self, size_t at)
{
    int is_one = is_named(self, at, 0);
    return is_one < 0 ? is_named(self, at, 1) : is_one;
}

/* The pair at `at` is one of a literal, or of the end of a name and a sign. */
static int pair_found(search *self, size_t at)
{
    const scanner *rules = self->rules;
    uint8_t a = self->raw[at], b = self->raw[at + 1];
    if (self->mode == LOOK && classes[b] & IS_ASSIGN && is_assigned(self, at + 1)) {
        self->is_certain = 1;
        return 0;
    }
    for (int one = rules->heads[slot_of(a, b)]; one >= 0; one = rules->literals[one].next) {
        const literal *here = &rules->literals[one];
        if (!(here->mode & self->mode) || at < here->anchor || !all_of_class(self, here, at - here->anchor)
            || !is_here(self, here, at - here->anchor))
            continue;
        if (literal_found(self, here, at - here->anchor) < 0)
            return -1;
    }
    for (int one = 0; one < MOST_LITERALS && rules->literals[one].anchor == UINT16_MAX; one++) {
        const literal *here = &rules->literals[one];
        if (b == here->text[0] && here->mode & self->mode && all_of_class(self, here, at + 1)
            && literal_found(self, here, at + 1) < 0)
            return -1;
    }
    return 0;
}

/* Looks at the pair at `at`. 1: the search is over; -1: an exception is set. */
static inline __attribute__((always_inline)) int look_at_pair(search *self, const uint8_t *bits, size_t at)
{
    if (!has(bits, (unsigned)self->raw[at] << 8 | self->raw[at + 1]))
        return 0;
    if (pair_found(self, at) < 0)
        return -1;
    return self->is_certain && self->mode == LOOK;
}

static int search_literals(search *self)
{
    const uint8_t *raw = self->raw;
    const uint8_t *bits = self->mode == LOOK ? self->rules->look : self->rules->find;
    const uint8_t *tables = self->mode == LOOK ? self->rules->wide_look : self->rules->wide_find;
    size_t at = 0;
    int state = 0;
    while (is_wide && self->size - at >= 65) {
        uint64_t found;
        at = skip_pairs(tables, raw, at, self->size, &found);
        if (found == 0)
            break;
        for (; found; found &= found - 1)
            if ((state = look_at_pair(self, bits, at + (size_t)__builtin_ctzll(found))) != 0)
                return state < 0 ? -1 : 0;
        at += 64;
    }
    while (at + 1 < self->size) {
        /* Four pairs at a time while none of them is one: the branch costs more than the tests. */
        while (self->size - at > 4
               && !(has(bits, (unsigned)raw[at] << 8 | raw[at + 1]) | has(bits, (unsigned)raw[at + 1] << 8 | raw[at + 2])
                    | has(bits, (unsigned)raw[at + 2] << 8 | raw[at + 3])
                    | has(bits, (unsigned)raw[at + 3] << 8 | raw[at + 4])))
            at += 4;
        for (size_t end = at + 4; at < end && at + 1 < self->size; at++)
            if ((state = look_at_pair(self, bits, at)) != 0)
                return state < 0 ? -1 : 0;
    }
    return 0;
}

/* As the pattern `BOUNDARY` of shapes.py: a word may begin here. */
static int is_boundary(const search *self, size_t at)
{
    const uint8_t *end = self->raw + at;
    if (at == 0 || !(classes[end[-1]] & IS_ALNUM))
        return 1;
    if (at >= 2 && end[-2] == '\\' && memchr("nrtbf", end[-1], 5))
        return 1;
    if (at >= 6 && end[-6] == '\\' && end[-5] == 'u' && classes[end[-4]] & classes[end[-3]] & classes[end[-2]]
        & classes[end[-1]] & IS_HEX)
        return 1;
    if (at >= 3 && end[-3] == '%' && classes[end[-2]] & classes[end[-1]] & IS_HEX)
        return 1;
    if (end[-1] != 'm')
        return 0;
    for (size_t digits = 1; digits <= 2; digits++)
        if (at >= digits + 2 && (end[-(Py_ssize_t)digits - 2] == '[' || end[-(Py_ssize_t)digits - 2] == ';')
            && classes[end[-2]] & IS_DIGIT && classes[end[-(Py_ssize_t)digits - 1]] & IS_DIGIT)
            return 1;
    return 0;
}

static int ends_with_one(const search *self, PyObject *words, size_t at)
{
    for (Py_ssize_t one = PyTuple_Size(words); one-- > 0;) {
        PyObject *word = PyTuple_GetItem(words, one);
        size_t size = (size_t)PyBytes_Size(word);
        if (size <= at && memcmp(self->raw + at - size, PyBytes_AsString(word), size) == 0)
            return 1;
    }
    return 0;
}

/* The value of a character of base64, of either alphabet; 64: it is none. */
static unsigned sextet(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : 64;
}

/* As in encoded_texts.py; a test compares them. */
#define REACH 96

/* Whether the run at `at` may be base64 of a text: as `encoded_text` of encoded_texts.py, up to its sample. */
static int is_encoded_text(const search *self, size_t at)
{
    const uint8_t *raw = self->raw;
    if (at > 0 && (raw[at - 1] == '+' || raw[at - 1] == '/')) {
        size_t low = at > REACH ? at - REACH : 0;
        while (at > low && sextet(raw[at - 1]) < 64)
            at--;
    }
    if (at > 0 && raw[at - 1] == '\\')
        at++;
    if (self->size < 24 || at > self->size - 24)
        return 0;
    for (size_t end = at + 24; at < end; at += 4) {
        unsigned a = sextet(raw[at]), b = sextet(raw[at + 1]), c = sextet(raw[at + 2]), d = sextet(raw[at + 3]);
        /* The highest bits of three bytes, which are 0 in ASCII. */
        if ((a | b | c | d) & 64 || a & 32 || b & 8 || c & 2)
            return 0;
    }
    return 1;
}

/* Whether the exact rules must look at the run from `at` to `end`. */
static int is_clue(const search *self, size_t at, size_t end)
{
    const scanner *rules = self->rules;
    const uint8_t *raw = self->raw;
    for (size_t place = at; place + 1 < end; place++) {
        if (!has(rules->start_pairs, (unsigned)raw[place] << 8 | raw[place + 1]))
            continue;
        for (int one = rules->start_heads[slot_of(raw[place], raw[place + 1])]; one >= 0;
             one = rules->start_next[one]) {
            size_t size = rules->start_size[one];
            if (size <= end - place && memcmp(raw + place, rules->starts[one], size) == 0
                && is_boundary(self, place))
                return 1;
        }
    }
    if (is_encoded_text(self, at))
        return 1;
    if (end < self->size && raw[end] == '.')
        for (size_t back = 24; back <= 28 && back <= end - at; back++)
            if (raw[end - back] == 'M' || raw[end - back] == 'N' || raw[end - back] == 'O')
                return 1;
    if (at == 0)
        return 0;
    switch (raw[at - 1]) {
    case ':':
        if (at < 9)
            return 0;
        for (size_t back = 2; back <= 9; back++)
            if (!(classes[raw[at - back]] & IS_DIGIT))
                return 0;
        return 1;
    case '.':
        return ends_with_one(self, rules->dotted, at);
    case ' ': case '+': case '0': case '=':
        return ends_with_one(self, rules->words, at);
    case '/':
        return self->found >> rules->webhook_rule & 1;
    }
    return 0;
}

/* The start of the next sequence of at least `least` bytes of a class, between `at` and `end`; `end`: there is none. */
static size_t next_of(const uint8_t *raw, size_t at, size_t end, size_t least, uint8_t class)
{
    while (end - at >= least) {
        size_t back = at + least;
        while (back > at && classes[raw[back - 1]] & class)
            back--;
        if (back == at)
            return at;
        at = back;
    }
    return end;
}

static size_t end_of(const uint8_t *raw, size_t at, size_t end, uint8_t class)
{
    while (at < end && classes[raw[at]] & class)
        at++;
    return at;
}

static size_t next_run(const uint8_t *raw, size_t at, size_t end)
{
    if (is_wide && end - at >= 64) {
        int is_found;
        at = skip_to_run(raw, at, end, &is_found);
        if (is_found)
            return at;
    }
    return next_of(raw, at, end, LONG, IS_RUN);
}

static int search_runs(search *self, size_t low, size_t high)
{
    const uint8_t *raw = self->raw;
    for (size_t at = next_run(raw, low, high); at < high;) {
        size_t end = end_of(raw, at + LONG, high, IS_RUN);
        self->has_run = 1;
        if (is_clue(self, at, end) && note(&self->runs, Py_BuildValue("nn", at, end)) < 0)
            return -1;
        at = next_run(raw, end, high);
    }
    return 0;
}

/* The runs, but for those in the middle of blocks of base64. */
static int search_around_blocks(search *self)
{
    size_t done = 0;
    if (self->size >= BLOCK) {
        for (size_t at = next_of(self->raw, 0, self->size, BLOCK, IS_BLOCK); at < self->size;) {
            size_t end = end_of(self->raw, at + BLOCK, self->size, IS_BLOCK);
            if (search_runs(self, done, at + BLOCK_END) < 0)
                return -1;
            done = end - BLOCK_END;
            at = next_of(self->raw, end, self->size, BLOCK, IS_BLOCK);
        }
    }
    return search_runs(self, done, self->size);
}

PyObject *clues_in(PyObject *rules, PyObject *known, const uint8_t *raw, size_t size, int mode)
{
    search self = {.raw = raw, .size = size, .mode = mode};
    self.rules = PyCapsule_GetPointer(rules, SCANNER);
    if (self.rules == NULL)
        return NULL;
    if (known != Py_None) {
        const needles *literal = PyCapsule_GetPointer(known, NEEDLES);
        if (literal == NULL)
            return NULL;
        if (is_needle_in(literal, raw, size))
            Py_RETURN_TRUE;
    }
    if (search_literals(&self) < 0)
        goto failed;
    if (mode == LOOK && self.is_certain)
        goto certain;
    if (search_around_blocks(&self) < 0)
        goto failed;
    if (!self.has_run)
        self.found &= ~self.rules->run_rules;
    if (mode == LOOK && self.has_run && self.found >> self.rules->key_rule & 1)
        goto certain;
    self.found &= ~(1ull << self.rules->webhook_rule);
    if (self.found == 0 && self.runs == NULL)
        Py_RETURN_NONE;
    if ((self.runs == NULL && (self.runs = PyList_New(0)) == NULL)
        || (self.positions == NULL && (self.positions = PyList_New(0)) == NULL))
        goto failed;
    return Py_BuildValue("KNN", (unsigned long long)self.found, self.runs, self.positions);
certain:
    Py_XDECREF(self.runs);
    Py_XDECREF(self.positions);
    Py_RETURN_TRUE;
failed:
    Py_XDECREF(self.runs);
    Py_XDECREF(self.positions);
    return NULL;
}

static PyObject *clues(PyObject *module, PyObject *args)
{
    PyObject *rules, *known;
    const char *raw;
    Py_ssize_t size;
    int mode;
    if (!PyArg_ParseTuple(args, "OOy#i:clues", &rules, &known, &raw, &size, &mode))
        return NULL;
    if (mode != LOOK && mode != FIND) {
        PyErr_SetString(PyExc_ValueError, "the mode is 1 or 2");
        return NULL;
    }
    return clues_in(rules, known, (const uint8_t *)raw, (size_t)size, mode);
}

static PyObject *holds(PyObject *module, PyObject *args)
{
    PyObject *known;
    const char *raw;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "Oy#:holds", &known, &raw, &size))
        return NULL;
    const needles *literal = PyCapsule_GetPointer(known, NEEDLES);
    if (literal == NULL)
        return NULL;
    return PyBool_FromLong(is_needle_in(literal, (const uint8_t *)raw, (size_t)size));
}

static PyMethodDef functions[] = {
    {"scanner", make_scanner, METH_VARARGS, "scanner(literals, starts, dotted, words, names, run_rules, key_rule, webhook_rule)"},
    {"needles", make_needles, METH_O, "needles(texts): for `clues` and `holds`; None: there are none"},
    {"clues", clues, METH_VARARGS, "clues(scanner, needles, raw, mode): None, True, or (rules, runs, positions)"},
    {"holds", holds, METH_VARARGS, "holds(needles, raw): whether one of them is in it"},
    {NULL}
};

int add_scan(PyObject *module)
{
    make_classes();
    return PyModule_AddFunctions(module, functions);
}
