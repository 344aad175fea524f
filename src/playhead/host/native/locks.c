/* Locks that say which lane takes them after another one: `Lock` and `RLock` of threading, while recording.

   Taking a lock costs as much as before, and one comparison. Only when a lock goes from one lane to another
   is a function in Python called, while the lock is held: so the calls come in the order of the locks.

   A thread says with `own(lane)` for which lane it works; None: what it takes is not counted. */

#include "core.h"
#include <pythread.h>
#include <stddef.h>
#include <structmember.h>
#include <time.h>

static _Thread_local PyObject *lane;
static PyObject *handed_over;

typedef struct {
    PyObject_HEAD
    PyThread_type_lock lock;
    char is_held;
    /* Of an RLock: who holds it, and how often. */
    unsigned long holder;
    unsigned long depth;
    /* The lane that took it last, and how often it was taken so far. */
    PyObject *last;
    long long count;
    PyObject *name;
    PyObject *weak;
} noted;

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(noted, weak), READONLY},
    {"playhead_name", T_OBJECT, offsetof(noted, name), 0},
    {NULL}
};

static PyObject *lock_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    noted *self = (noted *)allocate(type, 0);
    if (self == NULL)
        return NULL;
    self->lock = PyThread_allocate_lock();
    if (self->lock == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static int lock_traverse(noted *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->last);
    Py_VISIT(self->name);
    return 0;
}

static int lock_clear(noted *self)
{
    Py_CLEAR(self->last);
    Py_CLEAR(self->name);
    return 0;
}

static void lock_dealloc(noted *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (self->weak != NULL)
        PyObject_ClearWeakRefs((PyObject *)self);
    lock_clear(self);
    if (self->lock != NULL) {
        if (self->is_held)
            PyThread_release_lock(self->lock);
        PyThread_free_lock(self->lock);
    }
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* The lock is held: count it, and say so if another lane had it before. */
static void taken(noted *self)
{
    self->is_held = 1;
    if (lane == NULL)
        return;
    self->count++;
    if (self->last == lane)
        return;
    PyObject *before = self->last;
    Py_INCREF(lane);
    self->last = lane;
    Py_XDECREF(before);
    if (handed_over == NULL || self->name == NULL)
        return;
    PyObject *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback);
    PyObject *done = PyObject_CallFunction(handed_over, "OLO", self->name, self->count, lane);
    if (done == NULL)
        PyErr_Clear();
    Py_XDECREF(done);
    PyErr_Restore(kind, value, traceback);
}

static long long now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* 1: taken, 0: not within that time, -1: a signal handler raised. A timeout below 0 is none. */
static int take(noted *self, long long timeout_us)
{
    if (PyThread_acquire_lock_timed(self->lock, 0, 0) == PY_LOCK_ACQUIRED)
        return 1;
    if (timeout_us == 0)
        return 0;
    long long deadline = timeout_us > 0 ? now_us() + timeout_us : 0;
    for (;;) {
        PyLockStatus status;
        Py_BEGIN_ALLOW_THREADS
        status = PyThread_acquire_lock_timed(self->lock, timeout_us, 1);
        Py_END_ALLOW_THREADS
        if (status == PY_LOCK_ACQUIRED)
            return 1;
        if (status == PY_LOCK_FAILURE)
            return 0;
        if (Py_MakePendingCalls() < 0)
            return -1;
        if (timeout_us > 0) {
            timeout_us = deadline - now_us();
            if (timeout_us <= 0)
                return 0;
        }
    }
}

static int arguments(PyObject *args, PyObject *kwargs, long long *timeout_us)
{
    static char *names[] = {"blocking", "timeout", NULL};
    int blocking = 1;
    double timeout = -1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|pd:acquire", names, &blocking, &timeout))
        return -1;
    if (!blocking && timeout != -1) {
        PyErr_SetString(PyExc_ValueError, "can't specify a timeout for a non-blocking call");
        return -1;
    }
    if (timeout < 0 && timeout != -1) {
        PyErr_SetString(PyExc_ValueError, "timeout value must be a non-negative number");
        return -1;
    }
    if (timeout > 9223372036.0 || timeout != timeout) {
        PyErr_SetString(PyExc_OverflowError, "timeout value is too large");
        return -1;
    }
    *timeout_us = !blocking ? 0 : timeout == -1 ? -1 : (long long)(timeout * 1e6);
    return 0;
}

static PyObject *lock_take(noted *self, long long timeout_us)
{
    int came = take(self, timeout_us);
    if (came < 0)
        return NULL;
    if (came)
        taken(self);
    return PyBool_FromLong(came);
}

static PyObject *lock_acquire(noted *self, PyObject *args, PyObject *kwargs)
{
    long long timeout_us;
    return arguments(args, kwargs, &timeout_us) < 0 ? NULL : lock_take(self, timeout_us);
}

static PyObject *lock_enter(noted *self, PyObject *unused)
{
    return lock_take(self, -1);
}

static PyObject *lock_release(noted *self, PyObject *unused)
{
    if (!self->is_held) {
        PyErr_SetString(PyExc_RuntimeError, "release unlocked lock");
        return NULL;
    }
    self->is_held = 0;
    PyThread_release_lock(self->lock);
    Py_RETURN_NONE;
}

static PyObject *lock_exit(noted *self, PyObject *args)
{
    return lock_release(self, NULL);
}

static PyObject *lock_locked(noted *self, PyObject *unused)
{
    return PyBool_FromLong(self->is_held);
}

static PyObject *reinit(noted *self, PyObject *unused)
{
    /* In a forked child: the thread that held the old one is not here, and the old one is lost. */
    PyThread_type_lock fresh = PyThread_allocate_lock();
    if (fresh == NULL)
        return PyErr_NoMemory();
    self->lock = fresh;
    self->is_held = 0;
    self->holder = self->depth = 0;
    Py_RETURN_NONE;
}

static PyObject *lock_repr(noted *self)
{
    return PyUnicode_FromFormat("<%s _thread.lock object at %p>",
                                self->is_held ? "locked" : "unlocked", self);
}

static PyMethodDef lock_methods[] = {
    {"acquire", (PyCFunction)(void (*)(void))lock_acquire, METH_VARARGS | METH_KEYWORDS},
    {"acquire_lock", (PyCFunction)(void (*)(void))lock_acquire, METH_VARARGS | METH_KEYWORDS},
    {"release", (PyCFunction)lock_release, METH_NOARGS},
    {"release_lock", (PyCFunction)lock_release, METH_NOARGS},
    {"locked", (PyCFunction)lock_locked, METH_NOARGS},
    {"locked_lock", (PyCFunction)lock_locked, METH_NOARGS},
    {"__enter__", (PyCFunction)lock_enter, METH_NOARGS},
    {"__exit__", (PyCFunction)lock_exit, METH_VARARGS},
    {"_at_fork_reinit", (PyCFunction)reinit, METH_NOARGS},
    {NULL}
};

static PyObject *rlock_take(noted *self, long long timeout_us)
{
    unsigned long me = PyThread_get_thread_ident();
    if (self->depth > 0 && self->holder == me) {
        self->depth++;
        Py_RETURN_TRUE;
    }
    int came = take(self, timeout_us);
    if (came < 0)
        return NULL;
    if (came) {
        self->holder = me;
        self->depth = 1;
        taken(self);
    }
    return PyBool_FromLong(came);
}

static PyObject *rlock_acquire(noted *self, PyObject *args, PyObject *kwargs)
{
    long long timeout_us;
    return arguments(args, kwargs, &timeout_us) < 0 ? NULL : rlock_take(self, timeout_us);
}

static PyObject *rlock_enter(noted *self, PyObject *unused)
{
    return rlock_take(self, -1);
}

static PyObject *rlock_release(noted *self, PyObject *unused)
{
    if (self->depth == 0 || self->holder != PyThread_get_thread_ident()) {
        PyErr_SetString(PyExc_RuntimeError, "cannot release un-acquired lock");
        return NULL;
    }
    if (--self->depth == 0) {
        self->holder = 0;
        self->is_held = 0;
        PyThread_release_lock(self->lock);
    }
    Py_RETURN_NONE;
}

static PyObject *rlock_exit(noted *self, PyObject *args)
{
    return rlock_release(self, NULL);
}

static PyObject *rlock_is_owned(noted *self, PyObject *unused)
{
    return PyBool_FromLong(self->depth > 0 && self->holder == PyThread_get_thread_ident());
}

static PyObject *rlock_depth(noted *self, PyObject *unused)
{
    int is_mine = self->holder == PyThread_get_thread_ident();
    return PyLong_FromUnsignedLong(is_mine ? self->depth : 0);
}

/* What a Condition does around its wait: give the lock back whole, and take it as often again. */
static PyObject *rlock_release_save(noted *self, PyObject *unused)
{
    if (self->depth == 0) {
        PyErr_SetString(PyExc_RuntimeError, "cannot release un-acquired lock");
        return NULL;
    }
    unsigned long depth = self->depth, holder = self->holder;
    self->depth = self->holder = 0;
    self->is_held = 0;
    PyThread_release_lock(self->lock);
    return Py_BuildValue("kk", depth, holder);
}

static PyObject *rlock_acquire_restore(noted *self, PyObject *args)
{
    unsigned long depth, holder;
    if (!PyArg_ParseTuple(args, "(kk):_acquire_restore", &depth, &holder))
        return NULL;
    if (PyThread_acquire_lock_timed(self->lock, 0, 0) != PY_LOCK_ACQUIRED) {
        Py_BEGIN_ALLOW_THREADS
        PyThread_acquire_lock(self->lock, 1);
        Py_END_ALLOW_THREADS
    }
    self->depth = depth;
    self->holder = holder;
    taken(self);
    Py_RETURN_NONE;
}

static PyObject *rlock_repr(noted *self)
{
    return PyUnicode_FromFormat("<%s _thread.RLock object owner=%lu count=%lu at %p>",
                                self->depth ? "locked" : "unlocked", self->holder, self->depth, self);
}

static PyMethodDef rlock_methods[] = {
    {"acquire", (PyCFunction)(void (*)(void))rlock_acquire, METH_VARARGS | METH_KEYWORDS},
    {"release", (PyCFunction)rlock_release, METH_NOARGS},
    {"__enter__", (PyCFunction)rlock_enter, METH_NOARGS},
    {"__exit__", (PyCFunction)rlock_exit, METH_VARARGS},
    {"_is_owned", (PyCFunction)rlock_is_owned, METH_NOARGS},
    {"_recursion_count", (PyCFunction)rlock_depth, METH_NOARGS},
    {"_release_save", (PyCFunction)rlock_release_save, METH_NOARGS},
    {"_acquire_restore", (PyCFunction)rlock_acquire_restore, METH_VARARGS},
    {"_at_fork_reinit", (PyCFunction)reinit, METH_NOARGS},
    {NULL}
};

#define SLOTS(methods, repr) { \
    {Py_tp_new, lock_new}, {Py_tp_dealloc, lock_dealloc}, {Py_tp_traverse, lock_traverse}, \
    {Py_tp_clear, lock_clear}, {Py_tp_methods, methods}, {Py_tp_members, members}, \
    {Py_tp_repr, repr}, {0, NULL}}

static PyType_Slot lock_slots[] = SLOTS(lock_methods, lock_repr);
static PyType_Slot rlock_slots[] = SLOTS(rlock_methods, rlock_repr);
static const unsigned FLAGS = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
static PyType_Spec lock_spec = {"_thread.lock", sizeof(noted), 0, FLAGS, lock_slots};
static PyType_Spec rlock_spec = {"_thread.RLock", sizeof(noted), 0, FLAGS, rlock_slots};

static PyObject *own(PyObject *module, PyObject *given)
{
    PyObject *before = lane;
    lane = given == Py_None ? NULL : given;
    Py_XINCREF(lane);
    if (before == NULL)
        Py_RETURN_NONE;
    return before; /* our reference is the caller's now */
}

static PyObject *watch(PyObject *module, PyObject *given)
{
    PyObject *before = handed_over;
    handed_over = given == Py_None ? NULL : given;
    Py_XINCREF(handed_over);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"own", own, METH_O, "own(lane): this thread works for that lane from now on; the one before"},
    {"watch", watch, METH_O, "watch(function): function(name, number, lane) when a lock changes lanes"},
    {NULL}
};

int add_locks(PyObject *module)
{
    PyObject *lock = PyType_FromSpec(&lock_spec), *rlock = PyType_FromSpec(&rlock_spec);
    if (lock == NULL || rlock == NULL || PyModule_AddObjectRef(module, "Lock", lock) < 0
        || PyModule_AddObjectRef(module, "RLock", rlock) < 0) {
        Py_XDECREF(lock);
        Py_XDECREF(rlock);
        return -1;
    }
    Py_DECREF(lock);
    Py_DECREF(rlock);
    return PyModule_AddFunctions(module, functions);
}
