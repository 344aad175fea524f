/* The extension module: locks that note who takes them, the search for secrets, the lines of a tape, and the
   comparison of files with their known status.

   Each part has a twin in Python, which is the specification: `hooks/order/locks`, `redact/spans`,
   `encoding/plain` with `tape/writer`, and `workspace/known_files`. */

#include "core.h"
#include "wide.h"

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_playhead_core", NULL, -1, NULL};

PyMODINIT_FUNC PyInit__playhead_core(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL)
        return NULL;
    find_wide();
    if (add_locks(module) < 0 || add_scan(module) < 0 || add_json(module) < 0
        || add_event(module) < 0 || add_status(module) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
