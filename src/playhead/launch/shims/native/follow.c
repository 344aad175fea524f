/* The tracer: sends every program that the command's tree starts into the shim, by whatever path it was
 * started. Knows ptrace and the stack of a new program; not what is recorded.
 *
 * Each process of the tree stops when it has executed a program, before the program's first instruction. There
 * the tracer makes it execute the shim instead, and the shim asks the sidecar what the program is: see shim.c.
 * The shim answers by a signal to itself, which only a tracer sees:
 *
 *   AGENT  the program is part of the agent: it runs, and what it starts is followed
 *   FREE   the program is one process call: from here on the tracer has nothing to do with it, so
 *          debuggers, setuid programs and sandboxes in it work as they always do
 *
 * A process that forks without executing anything (a subshell) is part of the agent.
 */
#define _GNU_SOURCE
#include "shim.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__linux__) && defined(__x86_64__)
#include <sys/user.h>

#define OPTIONS (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC)
#define PATHS 4096
#define MOST_WORDS 12000     /* their pointers must fit below the stack of a new program */
#define LONGEST_STACK (1 << 24)
#define EVENT_STOP 128   /* PTRACE_EVENT_STOP, which some libcs do not define */
#define CODE_SEGMENT_64 0x33

enum state {
    STARTING,  /* the command has not executed its program yet */
    AGENT,     /* runs a program of the agent */
    BOUNCING,  /* is about to execute the shim */
    IN_SHIM,   /* the shim asks the sidecar */
    ACCEPTED,  /* the shim is about to execute the program itself */
};

/* A process that has executed a program. A process without an entry was forked and has executed none. */
struct process {
    pid_t pid;
    enum state state;
    struct user_regs_struct regs; /* of the new program, before it was redirected to the shim */
    unsigned char code[16];       /* the original code at its first instruction */
    struct process *next;
};

static struct process *table[256];
static int report = -1;

static struct process **place_of(pid_t pid) {
    struct process **at = &table[(unsigned)pid % 256];
    while (*at && (*at)->pid != pid)
        at = &(*at)->next;
    return at;
}

static struct process *known(pid_t pid) { return *place_of(pid); }

static struct process *learn(pid_t pid, enum state state) {
    struct process **at = place_of(pid);
    if (!*at && (*at = calloc(1, sizeof **at)))
        (*at)->pid = pid;
    if (*at)
        (*at)->state = state;
    return *at;
}

static void forget(pid_t pid) {
    struct process **at = place_of(pid), *gone = *at;
    if (gone) {
        *at = gone->next;
        free(gone);
    }
}

/* Report a program that is not followed, and the reason, to the launcher. Lost if the pipe is full. */
static void tell_launcher(const char *format, ...) {
    char text[PATHS + 256];
    va_list rest;
    va_start(rest, format);
    int size = vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    if (report >= 0 && size > 0 && write(report, text, (size_t)size < sizeof text ? (size_t)size : sizeof text - 1) < 0)
        return;
}

static int poke(pid_t pid, unsigned long at, const void *data, size_t size) {
    struct iovec here = {(void *)data, size}, there = {(void *)at, size};
    return process_vm_writev(pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* The initial stack of a new program: numbers and pointers, then the texts that they point to. */
struct stack {
    unsigned long sp, size;
    char *bytes; /* a copy of the stack, from `sp` to its end */
    unsigned long argc, argv, envp;
    int is_secure;
    const char *name; /* the path that was executed; for a script, the path of the script */
};

static unsigned long word(const struct stack *stack, unsigned long at) {
    unsigned long value;
    if (at < stack->sp || at - stack->sp + sizeof value > stack->size)
        return 0;
    memcpy(&value, stack->bytes + (at - stack->sp), sizeof value);
    return value;
}

static const char *text(const struct stack *stack, unsigned long at) {
    return at < stack->sp || at - stack->sp >= stack->size ? "" : stack->bytes + (at - stack->sp);
}

static int copy_stack(pid_t pid, struct stack *stack) {
    for (size_t room = 1 << 16; room <= LONGEST_STACK; room *= 4) {
        char *more = realloc(stack->bytes, room + 1);
        if (!more)
            return 0;
        stack->bytes = more;
        struct iovec here = {more, room}, there = {(void *)stack->sp, room};
        ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);
        if (got <= 0)
            return 0;
        stack->size = (size_t)got;
        more[got] = 0;
        if ((size_t)got < room)
            return 1;
    }
    return 0;
}

static int read_stack(pid_t pid, unsigned long sp, struct stack *stack) {
    stack->sp = sp;
    if (!copy_stack(pid, stack))
        return 0;
    stack->argc = word(stack, sp);
    stack->argv = sp + 8;
    stack->envp = stack->argv + 8 * (stack->argc + 1);
    stack->is_secure = 0;
    stack->name = "";
    unsigned long at = stack->envp;
    while (word(stack, at))
        at += 8;
    for (at += 8; word(stack, at) != AT_NULL; at += 16) {
        if (word(stack, at) == AT_SECURE)
            stack->is_secure = word(stack, at + 8) != 0;
        if (word(stack, at) == AT_EXECFN)
            stack->name = text(stack, word(stack, at + 8));
    }
    return stack->argc <= MOST_WORDS;
}

/* Return whether a hooked Python has recorded this process: it puts its own pid and the call's number into the
 * environment. */
static int is_taped(pid_t pid, const struct stack *stack) {
    static const char name[] = "PLAYHEAD_PARENT=";
    char path[64], status[512];
    for (unsigned long at = stack->envp; word(stack, at); at += 8) {
        const char *entry = text(stack, word(stack, at)), *seq;
        if (strncmp(entry, name, sizeof name - 1))
            continue;
        entry += sizeof name - 1;
        if (!(seq = strrchr(entry, ':')) || atol(seq + 1) <= 0)
            return 0;
        snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t got = fd < 0 ? -1 : read(fd, status, sizeof status - 1);
        if (fd >= 0)
            close(fd);
        status[got > 0 ? got : 0] = 0;
        const char *after = strrchr(status, ')'); /* ") S PPID" */
        return after && strlen(after) > 4 && atol(after + 4) == atol(entry);
    }
    return 0;
}

/* Find a path by which the program of this process can be executed again. 0: there is none. */
static int program_of(pid_t pid, char *path, size_t size, int *is_setuid) {
    char link[64], again[PATHS + 64];
    struct stat one, other;
    snprintf(link, sizeof link, "/proc/%ld/exe", (long)pid);
    ssize_t got = readlink(link, path, size - 1);
    if (got <= 0)
        return 0;
    path[got] = 0;
    snprintf(again, sizeof again, "/proc/%ld/root%s", (long)pid, path);
    if (stat(link, &one) < 0 || stat(again, &other) < 0)
        return 0;
    *is_setuid = (one.st_mode & (S_ISUID | S_ISGID)) != 0;
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

static int poke_code(pid_t pid, unsigned long at, const unsigned char code[16]) {
    long words[2];
    memcpy(words, code, sizeof words);
    return ptrace(PTRACE_POKETEXT, pid, at, words[0]) == 0 &&
           ptrace(PTRACE_POKETEXT, pid, at + 8, words[1]) == 0;
}

/* Make a process that has just executed a program execute the shim, which gets four words before those of
 * the program. 0: it could not be done, and nothing has changed. */
static int bounce(struct process *one, const struct stack *stack, const char *how, const char *program) {
    /* mov eax, 59 (execve); syscall; int3. The register itself is set by the end of the first execve. */
    static const unsigned char code[16] = {0xb8, 0x3b, 0, 0, 0, 0x0f, 0x05, 0xcc, 0xcc, 0xcc, 0xcc,
                                           0xcc, 0xcc, 0xcc, 0xcc, 0xcc};
    char shim[PATHS];
    const char *texts[] = {FOLLOWED, how, program, stack->name};
    pid_t pid = one->pid;
    struct user_regs_struct regs = one->regs;
    int size_shim = snprintf(shim, sizeof shim, "%s/%s", settings.folder, settings.name);
    unsigned long at = (regs.rsp - 128 - (unsigned long)size_shim - 1) & ~7UL, path = at;
    unsigned long *words = calloc(stack->argc + 5, sizeof *words);
    int ok = words && poke(pid, path, shim, (size_t)size_shim + 1);
    for (int n = 0; ok && n < 4; n++) {
        size_t size = strlen(texts[n]) + 1;
        at = (at - size) & ~7UL;
        words[n] = at;
        ok = poke(pid, at, texts[n], size);
    }
    for (unsigned long n = 0; ok && n < stack->argc; n++)
        words[4 + n] = word(stack, stack->argv + 8 * n);
    at = (at - (stack->argc + 5) * sizeof *words) & ~15UL;
    ok = ok && poke(pid, at, words, (stack->argc + 5) * sizeof *words);
    free(words);
    if (!ok)
        return 0;
    for (int n = 0; n < 2; n++) {
        errno = 0;
        long was = ptrace(PTRACE_PEEKTEXT, pid, regs.rip + 8 * (unsigned long)n, NULL);
        if (errno)
            return 0;
        memcpy(one->code + 8 * n, &was, sizeof was);
    }
    if (!poke_code(pid, regs.rip, code))
        return 0;
    regs.rdi = path;
    regs.rsi = at;
    regs.rdx = stack->envp;
    regs.rsp = at;
    if (ptrace(PTRACE_SETREGS, pid, NULL, &regs) < 0) {
        poke_code(pid, one->regs.rip, one->code);
        return 0;
    }
    one->state = BOUNCING;
    return 1;
}

static void let_go(pid_t pid, const char *program, const char *why) {
    if (why)
        tell_launcher("%s\t%s\n", program, why);
    forget(pid);
    ptrace(PTRACE_DETACH, pid, NULL, NULL);
}

/* Redirect a new program to the shim: a child of the agent, or a program that replaces the agent's. */
static void follow_program(pid_t pid, const char *how) {
    static struct stack stack;
    char program[PATHS] = "";
    int is_setuid = 0, is_known = program_of(pid, program, sizeof program, &is_setuid);
    struct process *one = learn(pid, IN_SHIM);
    if (!one || ptrace(PTRACE_GETREGS, pid, NULL, &one->regs) < 0)
        let_go(pid, program, "its registers cannot be read");
    else if (one->regs.cs != CODE_SEGMENT_64)
        let_go(pid, program, "it is a 32-bit program");
    else if (!read_stack(pid, one->regs.rsp, &stack))
        let_go(pid, program, "its arguments cannot be read");
    else if (stack.is_secure)
        let_go(pid, program, "it has other privileges than its caller");
    else if (!is_setuid && is_taped(pid, &stack))
        let_go(pid, program, NULL);
    else if (!is_known)
        let_go(pid, program, "it cannot be executed again by its path");
    else if (!bounce(one, &stack, how, program))
        let_go(pid, program, "it cannot be changed");
    else
        ptrace(PTRACE_CONT, pid, NULL, NULL);
}

static void executed(pid_t pid) {
    struct process *one = known(pid);
    enum state was = one ? one->state : AGENT;
    if (!one) {
        follow_program(pid, "child");
    } else if (was == AGENT) {
        follow_program(pid, "self");
    } else {
        one->state = was == BOUNCING ? IN_SHIM : AGENT;
        ptrace(PTRACE_CONT, pid, NULL, NULL);
    }
}

/* The shim could not be executed (another user's process, an argument list that is too long): restore the
 * program, and let it run. */
static void take_back(struct process *one) {
    char program[PATHS] = "";
    int is_setuid;
    pid_t pid = one->pid;
    program_of(pid, program, sizeof program, &is_setuid);
    one->regs.orig_rax = (unsigned long)-1; /* no system call to restart */
    poke_code(pid, one->regs.rip, one->code);
    ptrace(PTRACE_SETREGS, pid, NULL, &one->regs);
    let_go(pid, program, "the shim cannot be executed in its place");
}

static void signalled(pid_t pid, int number) {
    struct process *one = known(pid);
    siginfo_t info = {0};
    if (one && number == SIGTRAP && ptrace(PTRACE_GETSIGINFO, pid, NULL, &info) == 0) {
        if (one->state == BOUNCING) {
            take_back(one);
            return;
        }
        if (one->state == IN_SHIM && info.si_code == SI_QUEUE && info.si_pid == pid) {
            if (info.si_value.sival_int == SAYS_AGENT) {
                one->state = ACCEPTED;
                ptrace(PTRACE_CONT, pid, NULL, NULL);
            } else {
                let_go(pid, "", NULL);
            }
            return;
        }
    }
    ptrace(PTRACE_CONT, pid, NULL, (void *)(long)number);
}

static void stopped(pid_t pid, int number, int event) {
    if (event == PTRACE_EVENT_EXEC)
        executed(pid);
    else if (event == EVENT_STOP &&
             (number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU))
        ptrace(PTRACE_LISTEN, pid, NULL, NULL); /* job control: the process stays stopped, and its parent notices */
    else if (event)
        ptrace(PTRACE_CONT, pid, NULL, NULL);
    else
        signalled(pid, number);
}

int follow(pid_t command, int ready, int report_) {
    sigset_t all;
    int status;
    pid_t pid;
    long options = OPTIONS | (strcmp(settings.mode, "replay") ? 0 : PTRACE_O_EXITKILL);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL); /* signals of the terminal are for the command */
    report = report_;
    int kept[] = {ready, report};
    for (int fd = 0; fd < 3; fd++)
        close(fd); /* readers of the command's output wait until all copies are closed */
    close_others(NULL, 0, kept, 2);
    fcntl(report, F_SETFL, fcntl(report, F_GETFL) | O_NONBLOCK);
    if (ptrace(PTRACE_SEIZE, command, NULL, (void *)options) < 0) {
        dprintf(ready, "%s", strerror(errno));
        return 1;
    }
    learn(command, STARTING);
    if (write(ready, "+", 1) != 1)
        return 1;
    close(ready);
    while ((pid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
        if (pid < 0)
            continue;
        if (WIFSTOPPED(status))
            stopped(pid, WSTOPSIG(status), status >> 16);
        else
            forget(pid);
    }
    return 0;
}

/* Return whether this system permits tracing; tried on a child that does nothing. */
int can_follow(void) {
    int status;
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    int can = pid > 0 && ptrace(PTRACE_SEIZE, pid, NULL, OPTIONS) == 0;
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, __WALL);
    }
    return can;
}

#else
int can_follow(void) { return 0; }

int follow(pid_t command, int ready, int report) {
    (void)command;
    (void)report;
    dprintf(ready, "not written for this machine");
    return 1;
}
#endif
