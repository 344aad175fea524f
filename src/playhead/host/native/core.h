/* What the parts of the extension share. Limited API: one binary for CPython 3.10 and later. */

#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Adds the names of a part to the module; -1: an exception is set. */
int add_locks(PyObject *module);
int add_scan(PyObject *module);
int add_json(PyObject *module);
int add_event(PyObject *module);
int add_status(PyObject *module);

/* Clues to secrets in `raw` (see scan.c); NULL: an exception is set. `scanner` and `needles` are objects
   that the functions of the same name made; `needles` may be None. */
PyObject *clues_in(PyObject *scanner, PyObject *needles, const uint8_t *raw, size_t size, int mode);
enum { LOOK = 1, FIND = 2 };

/* zlib's CRC-32 of `raw`, continued from `crc`. */
void make_crc_table(void);
uint32_t crc32_of(const uint8_t *raw, size_t size, uint32_t crc);
