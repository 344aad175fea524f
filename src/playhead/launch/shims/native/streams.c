/* Examines stdin, stdout and stderr, and forwards bytes.
 *
 * Knows descriptors; does not know processes. Forwards pipes, sockets and terminals that the command has opened (see
 * terminals.c). The program gets the user's terminal, files and /dev/null directly. It also gets a stdin directly
 * that the caller reads from: the caller would miss the bytes that the shim took.
 */
#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

const char *kinds[3];
int was_closed[3];
int is_made[3];
/* stdout and stderr are the same terminal. Tapes of older versions have no output of terminals, and call both `tty`. */
static int is_one_terminal = 0;

static int is_same(const struct stat *one, const struct stat *other) {
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* Whether the caller has the same stdin as this process. `own` is NULL if ours is closed. If /proc refuses to show
 * the caller's stdin, it counts as the same one. */
static int is_callers(const struct stat *own) {
    char path[64];
    struct stat callers;
    snprintf(path, sizeof path, "/proc/%ld/fd/0", (long)getppid());
    if (stat(path, &callers) < 0)
        return errno != ENOENT || !own; /* ENOENT: the caller's stdin is closed */
    return own && is_same(own, &callers);
}

static const char *kind_of(int fd, const struct stat *stat) {
    struct stat null;
    /* Before everything else: an inherited stdin is a pipe in one run, and a terminal or /dev/null in the next. */
    if (fd == 0 && is_callers(stat))
        return "inherited";
    if (S_ISCHR(stat->st_mode) && !lstat("/dev/null", &null) && null.st_rdev == stat->st_rdev)
        return "null";
    if (S_ISREG(stat->st_mode))
        return "file";
    if (S_ISFIFO(stat->st_mode) || S_ISSOCK(stat->st_mode))
        return "pipe";
    return isatty(fd) ? "tty" : "device";
}

void look_at_streams(void) {
    struct stat stats[3];
    for (int fd = 0; fd < 3; fd++) {
        if (fstat(fd, &stats[fd]) < 0) {
            /* Occupied, so that no file of the shim gets this number. */
            was_closed[fd] = open("/dev/null", O_RDWR | O_CLOEXEC) == fd;
            kinds[fd] = fd == 0 && is_callers(NULL) ? "inherited" : "closed";
        } else
            kinds[fd] = kind_of(fd, &stats[fd]);
    }
    for (int fd = 1; fd < 3; fd++)
        is_made[fd] = !strcmp(kinds[fd], "tty") && is_made_terminal(fd);
    is_one_terminal = is_made[1] && is_made[2] && is_same(&stats[1], &stats[2]);
    if (is_one_terminal)
        is_made[2] = 0; /* its output comes through stdout */
    int in = !strcmp(kinds[0], "pipe");
    int told = !strcmp(kinds[1], "pipe") || !strcmp(kinds[1], "file");
    if (told && !strcmp(kinds[1], kinds[2]) && is_same(&stats[1], &stats[2]))
        kinds[2] = "stdout"; /* two pipes into one could change the order of the output */
    for (int fd = 1; fd < 3; fd++)
        if (in && !strcmp(kinds[fd], "pipe") && is_same(&stats[0], &stats[fd]))
            kinds[0] = kinds[fd] = "device"; /* one socket for both directions */
}

/* Create a replacement for a pipe, a socket or a terminal: the reading end and the writing end. */
static int joined(int like, int ends[2]) {
    struct stat stat;
    if (is_made[like])
        return join_terminal(like, ends);
    if (!fstat(like, &stat) && S_ISSOCK(stat.st_mode)) /* bash checks for a socket, and then reads other start-up files */
        return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
    return pipe2(ends, O_CLOEXEC);
}

static int is_socket(int fd) {
    struct stat stat;
    return !fstat(fd, &stat) && S_ISSOCK(stat.st_mode);
}

/* Return a descriptor of our own for the same pipe: O_NONBLOCK on the shared one would affect other processes. */
static int unblocked(int fd, int flags) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = is_socket(fd) ? -1 : open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return own >= 0 ? own : fd;
}

static int has_one_output(void) { return is_one_terminal || !strcmp(kinds[2], "stdout"); }

int open_pumps(struct pump pumps[3], int theirs[3]) {
    int count = 0;
    for (int fd = 0; fd < 3; fd++) {
        int ends[2];
        theirs[fd] = -1;
        if ((strcmp(kinds[fd], "pipe") && !is_made[fd]) || joined(fd, ends) < 0)
            continue;
        struct pump *pump = &pumps[count++];
        memset(pump, 0, offsetof(struct pump, data));
        pump->what = "IOE"[fd];
        pump->standard = fd;
        pump->also = fd == 1 && has_one_output() ? 2 : -1;
        theirs[fd] = fd ? ends[1] : ends[0];
        pump->from = fd ? ends[0] : unblocked(0, O_RDONLY);
        pump->to = fd ? unblocked(fd, O_WRONLY) : ends[1];
        pump->is_socket = is_socket(pump->to);
        /* Not shared with another process, so O_NONBLOCK affects none. */
        int own = fd ? ends[0] : ends[1];
        fcntl(own, F_SETFL, fcntl(own, F_GETFL) | O_NONBLOCK);
    }
    if (has_one_output())
        theirs[2] = theirs[1];
    return count;
}

/* Copy the new window size to the program's terminals. */
void resize(const struct pump *pumps, int count) {
    for (int at = 0; at < count; at++)
        if (is_open(&pumps[at]) && is_made[pumps[at].standard])
            copy_size(pumps[at].to, pumps[at].from);
}

int is_open(const struct pump *pump) { return pump->from >= 0; }

/* Close both sides, so that the processes at their other ends notice. */
void end_pump(struct pump *pump) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (pump->from > 2)
        close(pump->from);
    if (pump->to > 2)
        close(pump->to);
    if (null >= 0) {
        dup2(null, pump->standard);
        if (pump->also >= 0)
            dup2(null, pump->also);
        close(null);
    }
    pump->from = pump->to = -1;
}

int pull(struct pump *pump) {
    ssize_t got = is_socket(pump->from)
                      ? recv(pump->from, pump->data, CHUNK, MSG_DONTWAIT)
                      : read(pump->from, pump->data, CHUNK);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got <= 0)
        return -1;
    pump->have = (size_t)got;
    pump->done = 0;
    return 1;
}

static int is_unread(const struct pump *pump) {
    int size = 0;
    if (!is_open(pump) || is_made[pump->standard])
        return 0;
    return ioctl(pump->to, pump->is_socket ? TIOCOUTQ : FIONREAD, &size) == 0 && size > 0;
}

/* Give the caller a moment to read the other stream first. A caller that finds both readable takes them in either order,
 * and the tape would have the other one: see PlayedStreams in hooks/process/played_streams.py. Waits at most 5 ms at
 * once, and 100 ms for one program. */
static void await_turn(const struct pump *pump) {
    static const struct pump *last = NULL;
    static long last_ms = 0, waits = 0;
    struct timespec now, moment = {.tv_nsec = 250000};
    if (pump->what == 'I')
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long now_ms = now.tv_sec * 1000 + now.tv_nsec / 1000000;
    if (last && last != pump && (now_ms - last_ms < 10 || is_unread(last)))
        for (int tries = 0, was_read = 0; tries < 20 && waits < 400 && was_read < 2; tries++, waits++) {
            was_read = is_unread(last) ? 0 : was_read + 1;
            if (was_read < 2)
                nanosleep(&moment, NULL);
        }
    last = pump;
    last_ms = now_ms;
}

/* Write as much as fits, and report it at once, before any reaction of the reader. */
void push(struct pump *pump) {
    size_t left = pump->have - pump->done;
    const char *data = pump->data + pump->done;
    ssize_t sent;
    await_turn(pump);
    if (pump->is_socket)
        sent = send(pump->to, data, left, MSG_DONTWAIT | MSG_NOSIGNAL);
    else /* if it may block: no more than certainly fits */
        sent = write(pump->to, data, pump->to > 2 || left < 4096 ? left : 4096);
    if (sent < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            if (pump->what != 'I')
                tell('M', pump->what == 'O' ? "closed stdout" : "closed stderr", 13);
            end_pump(pump);
        }
        return;
    }
    tell(pump->what, data, (size_t)sent);
    pump->done += (size_t)sent;
    if (pump->done == pump->have)
        pump->have = pump->done = 0;
}

static int is_kept(int fd, const struct pump *pumps, int count, const int *kept, int kept_count) {
    for (int at = 0; at < count; at++)
        if (fd == pumps[at].from || fd == pumps[at].to)
            return 1;
    for (int at = 0; at < kept_count; at++)
        if (fd == kept[at])
            return 1;
    return fd == line;
}

/* Close the inherited descriptors: if the program closes one of them, no other process may keep it open. */
void close_others(const struct pump *pumps, int count, const int *kept, int kept_count) {
    int from = 3, highest = 2;
    for (int at = 0; at < count; at++) {
        highest = pumps[at].from > highest ? pumps[at].from : highest;
        highest = pumps[at].to > highest ? pumps[at].to : highest;
    }
    for (int at = 0; at < kept_count; at++)
        highest = kept[at] > highest ? kept[at] : highest;
    highest = line > highest ? line : highest;
    for (int fd = from; fd <= highest; fd++)
        if (!is_kept(fd, pumps, count, kept, kept_count))
            close(fd);
#ifdef SYS_close_range
    if (!syscall(SYS_close_range, highest + 1, ~0U, 0))
        return;
#endif
    long most = sysconf(_SC_OPEN_MAX);
    for (int fd = highest + 1; fd < (most > 4096 ? 4096 : most); fd++)
        close(fd);
}
