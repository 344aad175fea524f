/* The stand-in of a taped program. The sidecar reads and writes the streams of this process.
 *
 * We are here to be waited for, to be sent signals, and to end as the program ended.
 */
#include "shim.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* `exit 3`, or `ulimit -c 0; kill -15 $$; exit 143`: what any stand-in is told. */
static int ending_of(const char *told) {
    const char *killed = strstr(told, "kill -");
    if (killed)
        return -atoi(killed + 6);
    return strncmp(told, "exit ", 5) ? REFUSED : atoi(told + 5);
}

void refuse(const char *told, size_t size) {
    size_t code = strlen(told);
    dprintf(2, "playhead: %s\n", code < size ? told + code + 1 : told);
    _exit(code < size ? atoi(told) : REFUSED);
}

/* A file that the taped program wrote, and that its caller will read: a path, a NUL, the content. We are
 * inside the fence and have no rights of our own, so this changes nothing that the program could not change. */
void write_file(const char *path, const char *end) {
    const char *content = path + strlen(path) + 1;
    int fd = content > end ? -1 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    while (fd >= 0 && content < end) {
        ssize_t put = write(fd, content, (size_t)(end - content));
        if (put <= 0)
            break;
        content += put;
    }
    if (fd >= 0)
        close(fd);
}

static void obey_sidecar(void) {
    char what = 0, *text = NULL;
    size_t size = 0;
    int fd;
    if (hear(&what, &text, &size, &fd, -1) < 0)
        refuse("the replay has ended before this program.", 0);
    if (what == 'F')
        refuse(text, size);
    if (what == 'D') /* a signal that is not on the tape */
        end_as(-atoi(text));
    if (what == 'Q')
        _exit(0); /* it was running when the recorded run ended, and so it is now */
    free(text);
}

int be_played(int control) {
    int number, to_group;
    char told[256] = "", text[16];
    size_t have = 0;
    for (;;) {
        struct pollfd asked[3] = {{.fd = line, .events = POLLIN},
                                  {.fd = control, .events = POLLIN},
                                  {.fd = signals, .events = POLLIN}};
        if (poll(asked, 3, -1) < 0)
            continue;
        while (asked[2].revents && next_signal(&number, &to_group))
            if (number != SIGCHLD && number != SIGCONT && number != SIGWINCH && number != SIGURG)
                tell('S', text, (size_t)snprintf(text, sizeof text, "%d", number));
        if (asked[0].revents)
            obey_sidecar();
        else if (asked[1].revents) {
            ssize_t got = read(control, told + have, sizeof told - 1 - have);
            if (got > 0)
                have += (size_t)got;
            if (strchr(told, '\n'))
                return ending_of(told);
            if (got <= 0)
                control = -1; /* the sidecar will send the reason */
        }
    }
}
