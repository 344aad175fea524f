/* The connection to the sidecar. Knows the socket and the frames; does not know their meaning.
 *
 * After an error the connection is closed without a message: the program matters more than its recording. Waits
 * are short for the same reason.
 */
#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_S 2

int line = -1;

int call_up(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    if (strlen(settings.socket) >= sizeof address.sun_path)
        return -1;
    strcpy(address.sun_path, settings.socket);
    line = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (line < 0)
        return -1;
    /* Limits `connect` as well, if the sidecar's backlog is full. */
    setsockopt(line, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(line, (struct sockaddr *)&address, sizeof address) < 0)
        hang_up();
    return line;
}

void hang_up(void) {
    if (line >= 0)
        close(line);
    line = -1;
}

/* Send bytes, and descriptors with the first of them. */
static void say(struct iovec *parts, int count, const int *fds, int fd_count) {
    char room[CMSG_SPACE(3 * sizeof(int))];
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
    if (fd_count) {
        memset(room, 0, sizeof room);
        message.msg_control = room;
        message.msg_controllen = CMSG_SPACE((size_t)fd_count * sizeof(int));
        struct cmsghdr *extra = CMSG_FIRSTHDR(&message);
        extra->cmsg_level = SOL_SOCKET;
        extra->cmsg_type = SCM_RIGHTS;
        extra->cmsg_len = CMSG_LEN((size_t)fd_count * sizeof(int));
        memcpy(CMSG_DATA(extra), fds, (size_t)fd_count * sizeof(int));
    }
    while (message.msg_iovlen) {
        ssize_t sent = sendmsg(line, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            hang_up();
            return;
        }
        message.msg_control = NULL;
        message.msg_controllen = 0;
        while (message.msg_iovlen && (size_t)sent >= message.msg_iov->iov_len) {
            sent -= (ssize_t)message.msg_iov->iov_len;
            message.msg_iov++;
            message.msg_iovlen--;
        }
        if (message.msg_iovlen) {
            message.msg_iov->iov_base = (char *)message.msg_iov->iov_base + sent;
            message.msg_iov->iov_len -= (size_t)sent;
        }
    }
}

static void tell_with(char what, const void *data, size_t size, const int *fds, int fd_count) {
    unsigned char head[5] = {(unsigned char)what, (unsigned char)(size >> 24),
                             (unsigned char)(size >> 16), (unsigned char)(size >> 8),
                             (unsigned char)size};
    struct iovec parts[2] = {{head, sizeof head}, {(void *)data, size}};
    if (line >= 0)
        say(parts, size ? 2 : 1, fds, fd_count);
}

void tell(char what, const void *data, size_t size) { tell_with(what, data, size, NULL, 0); }

struct text {
    char *bytes;
    size_t size;
};

static void add(struct text *text, const char *word) {
    size_t size = strlen(word) + 1;
    char *more = realloc(text->bytes, text->size + size);
    if (!more) {
        hang_up();
        return;
    }
    memcpy(more + text->size, word, size);
    text->bytes = more;
    text->size += size;
}

/* Choose the descriptors that the sidecar needs: files, to read them; in a replay all but the user's terminal,
 * because there the sidecar reads and writes. */
static int to_pass(int fds[3], char names[4]) {
    int count = 0;
    for (int fd = 0; fd < 3; fd++) {
        int file = !strcmp(kinds[fd], "file");
        int wanted = !strcmp(kinds[fd], "pipe") || !strcmp(kinds[fd], "device") || is_made[fd];
        if (file || (wanted && !strcmp(settings.mode, "replay"))) {
            names[count] = (char)('0' + fd);
            fds[count++] = fd;
        }
    }
    names[count] = 0;
    return count;
}

void tell_call(char **argv, const char *real, const char *how) {
    struct text text = {0};
    char number[32], cwd[4096], passed[4];
    int fds[3], count = to_pass(fds, passed), argc = 0;
    const char *lane = getenv("PLAYHEAD_LANE"), *parent = getenv("PLAYHEAD_PARENT");
    const char *run = getenv("PLAYHEAD_RUN");
    snprintf(number, sizeof number, "%ld", (long)getpid());
    add(&text, number);
    snprintf(number, sizeof number, "%ld", (long)getppid());
    add(&text, number);
    add(&text, how);
    add(&text, settings.name);
    add(&text, real ? real : "");
    add(&text, getcwd(cwd, sizeof cwd) ? cwd : "");
    add(&text, run ? run : "");
    add(&text, parent ? parent : "");
    add(&text, lane ? lane : "");
    for (int fd = 0; fd < 3; fd++)
        add(&text, kinds[fd]);
    add(&text, passed);
    while (argv[argc])
        argc++;
    snprintf(number, sizeof number, "%d", argc);
    add(&text, number);
    for (int at = 0; at < argc; at++)
        add(&text, argv[at]);
    for (char **entry = environ; *entry; entry++)
        add(&text, *entry);
    tell_with('C', text.bytes, text.size, fds, count);
    free(text.bytes);
}

static int hear_bytes(void *room, size_t size, int *fd) {
    char extra[CMSG_SPACE(sizeof(int))];
    for (size_t have = 0; have < size;) {
        struct iovec part = {(char *)room + have, size - have};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = extra,
                                 .msg_controllen = sizeof extra};
        ssize_t got = recvmsg(line, &message, MSG_CMSG_CLOEXEC);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        struct cmsghdr *with = CMSG_FIRSTHDR(&message);
        if (with && with->cmsg_type == SCM_RIGHTS && fd)
            memcpy(fd, CMSG_DATA(with), sizeof(int));
        have += (size_t)got;
    }
    return 0;
}

/* Wait until the sidecar has recorded the end, so that the caller's next action is later on the tape. */
void await_answer(void) {
    char what, *text;
    size_t size;
    int fd;
    if (line >= 0)
        hear(&what, &text, &size, &fd, PATIENCE_S * 1000);
}

/* Receive the next frame of the sidecar. -1: the connection has ended. `text` ends with a NUL. */
int hear(char *what, char **text, size_t *size, int *fd, int patience_ms) {
    unsigned char head[5];
    struct pollfd waiting = {.fd = line, .events = POLLIN};
    int ready;
    do
        ready = line < 0 ? 0 : poll(&waiting, 1, patience_ms);
    while (ready < 0 && errno == EINTR);
    *fd = -1;
    if (ready <= 0 || hear_bytes(head, sizeof head, fd) < 0)
        return -1;
    *what = (char)head[0];
    *size = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
    *text = calloc(1, *size + 1);
    return *text && hear_bytes(*text, *size, NULL) == 0 ? 0 : -1;
}
