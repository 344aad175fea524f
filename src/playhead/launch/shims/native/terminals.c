/* Pseudo-terminals that the command opens for its programs, as Codex, Qwen Code and `script` do.
 *
 * The output of a program on such a terminal reaches only the command, so it is recorded. The shim inserts a second
 * terminal for stdout and stderr; stdin, the session and job control stay with the first one. The terminal on which
 * the run itself was started belongs to its user, who may be typing: the shim leaves it alone.
 */
#define _GNU_SOURCE
#include "shim.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

/* Return the number of the launcher's terminal in /proc: 0 for none, -1 if it cannot be read. */
static long launcher_terminal(void) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%s/stat", settings.launcher);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = 0;
    const char *after = strrchr(text, ')'); /* ") S PPID PGRP SESSION TTY" */
    long number;
    return after && sscanf(after, ") %*c %*d %*d %*d %ld", &number) == 1 ? number : -1;
}

int is_made_terminal(int fd) {
    struct stat stat;
    char name[64];
    long launchers = launcher_terminal();
    if (launchers < 0 || !isatty(fd) || fstat(fd, &stat) < 0 || ttyname_r(fd, name, sizeof name) ||
        strncmp(name, "/dev/pts/", 9))
        return 0;
    long high = (long)major(stat.st_rdev), low = (long)minor(stat.st_rdev);
    return launchers != ((low & 0xff) | (high << 8) | ((low & ~0xffL) << 12));
}

void copy_size(int from, int to) {
    struct winsize size;
    if (!ioctl(from, TIOCGWINSZ, &size))
        ioctl(to, TIOCSWINSZ, &size);
}

/* The first terminal still turns \n into \r\n, so the second one must not. */
int join_terminal(int like, int ends[2]) {
    char name[64];
    struct termios mode;
    ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ends[0] < 0)
        return -1;
    ends[1] = grantpt(ends[0]) || unlockpt(ends[0]) || ptsname_r(ends[0], name, sizeof name)
                  ? -1
                  : open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ends[1] < 0 || tcgetattr(like, &mode) < 0) {
        close(ends[0]);
        if (ends[1] >= 0)
            close(ends[1]);
        return -1;
    }
    mode.c_oflag &= ~(tcflag_t)OPOST;
    tcsetattr(ends[1], TCSANOW, &mode);
    copy_size(like, ends[1]);
    return 0;
}
