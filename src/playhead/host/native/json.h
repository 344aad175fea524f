/* Values as JSON, in a buffer that grows. */

typedef struct {
    char *text;
    size_t size, room;
} buffer;

/* What the functions below return. NOT_PLAIN: JSON does not hold the value exactly, or it is too large; Python decides.
   FAILED: an exception is set. */
enum { DONE = 0, NOT_PLAIN = 1, FAILED = 2 };

int put_raw(buffer *out, const char *text, size_t size);
int put_int(buffer *out, long long value);
/* A text as JSON, in quotes. */
int put_text(buffer *out, PyObject *text);
/* The characters of a text. */
int put_str(buffer *out, PyObject *text);

typedef struct {
    buffer out;
    PyObject *keys; /* a set of keys that may be written as they are; NULL: all texts */
    size_t most;    /* bytes of JSON */
    PyObject *rules, *known; /* the search for secrets; rules NULL: nothing is searched */
    PyObject *clean; /* a member of the outermost dict that holds no secret; NULL: there is none */
    PyObject *clean_text; /* returns a text without its secrets; NULL: no text is changed */
    long parts;
    size_t low, high; /* where the JSON of the clean member lies */
    int is_inside;    /* the clean member is being written */
} encoding;

/* Appends the JSON of a value to `out`. */
int put_value(encoding *self, PyObject *value, int depth);
/* Whether the JSON that begins at `start` may hold a secret, outside of the clean member: 0 or 1; -1: an exception is
   set. */
int may_hold_secret(const encoding *self, size_t start);
