/* Compares files of a workspace with their known status, a folder per call.

   The twin of `compare_status` in `workspace/known_files.py`. A snapshot of 50,000 known files makes 50,000 system
   calls and no Python object for any of them. */

#include "core.h"
#include <limits.h>
#include <sys/stat.h>

#ifdef __APPLE__
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec
#endif

enum { SAME = 0, LINKED = 1, DIFFERS = 2 };

/* Mode (4 bytes), size, mtime, inode, ctime (8 bytes each), little-endian and without padding. */
#define ROW 36

static void put(uint8_t *row, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        row[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t nanoseconds(struct timespec time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint8_t compared(const char *path, const uint8_t *known)
{
    struct stat now;
    if (lstat(path, &now) != 0)
        return DIFFERS;
    uint8_t row[ROW];
    put(row, now.st_mode, 4);
    put(row + 4, (uint64_t)now.st_size, 8);
    put(row + 12, nanoseconds(now.st_mtim), 8);
    put(row + 20, (uint64_t)now.st_ino, 8);
    put(row + 28, nanoseconds(now.st_ctim), 8);
    if (memcmp(row, known, ROW) != 0)
        return DIFFERS;
    return now.st_nlink > 1 && !S_ISDIR(now.st_mode) ? LINKED : SAME;
}

static PyObject *compare_status(PyObject *module, PyObject *args)
{
    const char *start, *paths, *rows;
    Py_ssize_t start_size, paths_size, rows_size;
    if (!PyArg_ParseTuple(args, "y#y#y#:compare_status", &start, &start_size, &paths, &paths_size, &rows, &rows_size))
        return NULL;
    Py_ssize_t count = rows_size / ROW, found = 0;
    for (Py_ssize_t i = 0; i < paths_size; i++)
        found += paths[i] == 0;
    if (rows_size % ROW != 0 || found != count || (paths_size > 0 && paths[paths_size - 1] != 0)) {
        PyErr_SetString(PyExc_ValueError, "each path ends with NUL and has one row");
        return NULL;
    }
    PyObject *flags = PyBytes_FromStringAndSize(NULL, count);
    if (flags == NULL)
        return NULL;
    uint8_t *flag = (uint8_t *)PyBytes_AsString(flags);
    const uint8_t *row = (const uint8_t *)rows;
    /* The arguments are immutable bytes that the caller holds. A network file system may take long. */
    Py_BEGIN_ALLOW_THREADS
    char full[PATH_MAX];
    for (const char *path = paths; path < paths + paths_size; row += ROW) {
        size_t size = strlen(path) + 1;
        if ((size_t)start_size + size > sizeof full) {
            *flag++ = DIFFERS; /* lstat would refuse it, too */
        } else {
            memcpy(full, start, (size_t)start_size);
            memcpy(full + start_size, path, size);
            *flag++ = compared(full, row);
        }
        path += size;
    }
    Py_END_ALLOW_THREADS
    return flags;
}

static PyMethodDef functions[] = {
    {"compare_status", compare_status, METH_VARARGS,
     "compare_status(start, paths, rows): a flag per path: 0 same, 1 same and linked, 2 differs"},
    {NULL}
};

int add_status(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
