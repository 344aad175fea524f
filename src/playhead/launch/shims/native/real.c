/* Runs the real program. Knows processes and signals; does not know what is recorded of them.
 *
 * The program is a child of the shim, and the shim is the caller's child. So the shim forwards signals to the
 * program, and ends the way the program ended; but only after it has forwarded all output, because a caller
 * that waits for the end of a program may read its output immediately.
 */
#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

static const int passed_on[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,  SIGUSR1,
                                SIGUSR2, SIGALRM, SIGCONT, SIGWINCH, SIGURG};
#define PASSED_ON (int)(sizeof passed_on / sizeof *passed_on)

struct came {
    int number, code;
};

int signals = -1;
static int bell = -1;
static int witness = -1;

static void ring(int number, siginfo_t *info, void *unused) {
    struct came came = {number, info ? info->si_code : 0};
    int before = errno;
    (void)unused;
    if (write(bell, &came, sizeof came) < 0) {
        /* The pipe is full of signals; one more would change nothing. */
    }
    errno = before;
}

/* Signals that the caller ignores stay ignored, in the shim and in the program. */
void listen_to_signals(void) {
    int ends[2];
    struct sigaction listening = {.sa_sigaction = ring, .sa_flags = SA_SIGINFO | SA_RESTART}, was;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return;
    signals = ends[0];
    bell = ends[1];
    sigfillset(&listening.sa_mask);
    for (int at = 0; at < PASSED_ON; at++)
        if (!sigaction(passed_on[at], NULL, &was) && was.sa_handler != SIG_IGN)
            sigaction(passed_on[at], &listening, NULL);
    sigaction(SIGCHLD, &listening, NULL);
}

/* Start a process in our group that blocks every signal, so that a signal to the whole group is pending there as
 * well. Only if the shim leads the group: otherwise signals to the group come from the terminal, and the kernel
 * marks those. */
static void post_witness(void) {
    int ends[2];
    if (getpgrp() != getpid() || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return;
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        char asked;
        struct timespec now = {0, 0};
        close_others(NULL, 0, &ends[1], 1);
        for (int fd = 0; fd < 3; fd++)
            close(fd);
        while (read(ends[1], &asked, 1) == 1) {
            sigset_t one;
            sigemptyset(&one);
            sigaddset(&one, asked);
            char seen = sigtimedwait(&one, NULL, &now) > 0;
            if (write(ends[1], &seen, 1) < 0)
                break;
        }
        _exit(0);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    witness = pid < 0 ? -1 : ends[0];
    if (pid < 0)
        close(ends[0]);
}

static int was_for_all(const struct came *came) {
#ifdef SI_KERNEL
    if (came->code == SI_KERNEL)
        return 1;
#endif
    char number = (char)came->number, seen = 0;
    if (witness < 0 || write(witness, &number, 1) != 1 || read(witness, &seen, 1) != 1)
        return 0;
    return seen;
}

int next_signal(int *number, int *to_group) {
    struct came came;
    if (read(signals, &came, sizeof came) != sizeof came)
        return 0;
    *number = came.number;
    *to_group = came.number != SIGCHLD && was_for_all(&came);
    return 1;
}

static void default_signals(void) {
    for (int at = 0; at < PASSED_ON; at++) {
        struct sigaction was;
        if (!sigaction(passed_on[at], NULL, &was) && was.sa_handler != SIG_IGN)
            signal(passed_on[at], SIG_DFL);
    }
    signal(SIGCHLD, SIG_DFL);
}

void become(const char *real, char **argv) {
    int number, to_group;
    default_signals();
    while (signals >= 0 && next_signal(&number, &to_group))
        if (number != SIGCHLD)
            kill(getpid(), number); /* it arrived before the program was started */
    if (!real) {
        dprintf(2, "playhead: %s: not found on PATH.\n", settings.name);
        _exit(127);
    }
    execv(real, argv);
    if (errno == ENOEXEC) { /* a script without #!: shells run it with /bin/sh */
        int argc = 0;
        while (argv[argc])
            argc++;
        char **words = calloc((size_t)argc + 2, sizeof *words);
        if (words) {
            words[0] = "/bin/sh";
            words[1] = (char *)real;
            for (int at = 1; at < argc; at++)
                words[at + 1] = argv[at];
            execv(words[0], words);
        }
    }
    int code = errno == ENOENT ? 127 : 126;
    dprintf(2, "playhead: cannot run %s: %s.\n", real, strerror(errno));
    _exit(code);
}

void end_as(int code) {
    if (code >= 0)
        _exit(code);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none); /* the program itself has written a core file, if any */
    signal(-code, SIG_DFL);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, -code);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    kill(getpid(), -code);
    _exit(128 - code);
}

static pid_t start(const char *real, char **argv, const int theirs[3], const char *parent,
                   const char *lane, char **changes) {
    pid_t us = getpid(), pid = fork();
    if (pid)
        return pid;
    default_signals();
    signals = -1; /* the parent forwards its signals */
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* kill -9 is meant for the program, and reaches only the shim */
    if (getppid() != us)
        _exit(128 + SIGKILL);
#endif
    for (int fd = 0; fd < 3; fd++) {
        if (theirs[fd] >= 0)
            dup2(theirs[fd], fd);
        if (was_closed[fd])
            close(fd);
    }
    if (*parent)
        setenv("PLAYHEAD_PARENT", parent, 1);
    if (*lane)
        setenv("PLAYHEAD_LANE", lane, 1);
    while (*changes)
        putenv(*changes++);
    become(real, argv);
    return -1;
}

/* Return 1 if the program has ended, with its exit code in `code`. */
static int look_after(pid_t pid, int *code) {
    int status;
    pid_t found;
    while ((found = waitpid(pid, &status, WNOHANG | WUNTRACED)) > 0) {
        if (WIFSTOPPED(status)) {
            raise(SIGSTOP); /* the caller must see a stopped child; SIGCONT continues both */
            kill(pid, SIGCONT);
            continue;
        }
        *code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
        return 1;
    }
    return 0;
}

static void obey(pid_t pid, int *code, int *gone, const struct pump *pumps, int count) {
    int number, to_group;
    char text[16];
    while (next_signal(&number, &to_group)) {
        if (number == SIGCHLD) {
            *gone = *gone || look_after(pid, code);
        } else if (*gone) {
            end_as(-number); /* the program has ended; the signal ends the wait for a reader */
        } else {
            if (number != SIGWINCH && number != SIGCONT && number != SIGURG)
                tell('S', text, (size_t)snprintf(text, sizeof text, "%d", number));
            if (number == SIGWINCH)
                resize(pumps, count);
            if (!to_group || number == SIGWINCH) /* it may have read the size before it was changed */
                kill(pid, number);
        }
    }
}

/* Wait for an event, and forward what can be forwarded. Return 0 if no pump is open. */
static int turn(struct pump *pumps, int count) {
    struct pollfd asked[7] = {{.fd = signals, .events = POLLIN}};
    int open = 0;
    for (int at = 0; at < count; at++) {
        struct pump *pump = &pumps[at];
        int full = pump->have > 0;
        /* Our own descriptor of a named pipe would not report the end of writers that left before it was opened. */
        int from = pump->what == 'I' && is_open(pump) ? pump->standard : pump->from;
        asked[1 + 2 * at] = (struct pollfd){.fd = full ? -1 : from, .events = POLLIN};
        asked[2 + 2 * at] = (struct pollfd){.fd = pump->to, .events = full ? POLLOUT : 0};
        open += is_open(pump);
    }
    int ready = poll(asked, (nfds_t)(1 + 2 * count), -1);
    for (int at = 0; at < count && ready > 0; at++) {
        struct pump *pump = &pumps[at];
        short from = asked[1 + 2 * at].revents, to = asked[2 + 2 * at].revents;
        if (!is_open(pump))
            continue;
        if (to & (POLLERR | POLLHUP) && !pump->have) {
            if (pump->what != 'I')
                tell('M', pump->what == 'O' ? "closed stdout" : "closed stderr", 13);
            end_pump(pump); /* its reader has closed it */
        } else if (pump->have) {
            if (to)
                push(pump);
        } else if (from && pull(pump) < 0) {
            if (pump->what == 'I')
                tell('M', "closed stdin", 12);
            end_pump(pump);
        }
        if (is_open(pump) && pump->have && !to)
            push(pump); /* usually there is room */
    }
    return open;
}

/* Forward what is in the pipes when the program has ended. Later output comes from children of the program:
 * `fork_forwarder` forwards that. */
static void drain(struct pump *pumps, int count, pid_t pid) {
    int code = 0, gone = 1;
    for (int at = 0; at < count; at++) {
        struct pump *pump = &pumps[at];
        if (pump->what == 'I' && is_open(pump))
            end_pump(pump);
        while (is_open(pump)) {
            while (is_open(pump) && pump->have) {
                struct pollfd room[2] = {{.fd = pump->to, .events = POLLOUT},
                                         {.fd = signals, .events = POLLIN}};
                poll(room, 2, -1);
                obey(pid, &code, &gone, pumps, count);
                if (room[0].revents)
                    push(pump);
            }
            int came = is_open(pump) ? pull(pump) : 0;
            if (came < 0)
                end_pump(pump);
            if (came == 0)
                break;
        }
    }
}

/* Fork a process that forwards the output of children that outlive the program. */
static void fork_forwarder(struct pump *pumps, int count) {
    int open = 0;
    for (int at = 0; at < count; at++)
        open += is_open(&pumps[at]);
    if (!open || fork() != 0)
        return;
    default_signals();
    hang_up();
    close(signals);
    signals = -1;
    close_others(pumps, count, NULL, 0);
    while (open) {
        turn(pumps, count);
        open = 0;
        for (int at = 0; at < count; at++)
            open += is_open(&pumps[at]);
    }
    _exit(0);
}

int run_real(const char *real, char **argv, const char *parent, const char *lane, char **changes) {
    static struct pump pumps[3];
    int theirs[3], code = 0, gone = 0;
    char text[16];
    int count = open_pumps(pumps, theirs);
    if (signals < 0)
        become(real, argv);
    post_witness();
    pid_t pid = start(real, argv, theirs, parent, lane, changes);
    if (pid < 0)
        become(real, argv); /* a second process cannot be started */
    signal(SIGPIPE, SIG_IGN);
    int kept[] = {signals, bell, witness};
    close_others(pumps, count, kept, 3);
    while (!gone) {
        turn(pumps, count);
        obey(pid, &code, &gone, pumps, count);
    }
    drain(pumps, count, pid);
    tell('X', text, (size_t)snprintf(text, sizeof text, "%d", code));
    fork_forwarder(pumps, count);
    await_answer();
    return code;
}
