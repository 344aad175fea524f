/* Takes the place of a program: see shim.h. Knows which program, and whether it is recorded.
 *
 * Recording fails open: without a sidecar the shim becomes the real program.
 * A replay fails closed: without a sidecar nothing runs.
 */
#define _GNU_SOURCE
#include "shim.h"

#include <signal.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Written into each copy of this file (see programs.py). Not static and not const, so that a compiler cannot
 * assume its contents. */
char playhead_settings[16384] = "PLAYHEAD-SHIM-SETTINGS:";

struct settings settings;

/* How this shim was started; and for a program that the tracer redirected, the path that executes it again. */
static const char *how = "path";
static const char *executed = NULL;

static int read_settings(void) {
    char *at = playhead_settings + strlen("PLAYHEAD-SHIM-SETTINGS:");
    const char **fields[] = {&settings.mode,   &settings.name, &settings.folder,
                             &settings.socket, &settings.path, &settings.real,
                             &settings.launcher};
    for (size_t n = 0; n < sizeof fields / sizeof *fields; n++) {
        *fields[n] = at;
        at += strlen(at) + 1;
    }
    return *settings.mode != 0;
}

static int is_program(const char *path) {
    struct stat stat_;
    return !access(path, X_OK) && !stat(path, &stat_) && S_ISREG(stat_.st_mode);
}

static int is_shim(const char *path) {
    char own[4096];
    struct stat one, other;
    snprintf(own, sizeof own, "%s/%s", settings.folder, settings.name);
    return !stat(path, &one) && !stat(own, &other) && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

static const char *found_on(const char *path) {
    static char found[4096];
    while (path && *path) {
        size_t size = strcspn(path, ":");
        snprintf(found, sizeof found, "%.*s/%s", size ? (int)size : 1, size ? path : ".",
                 settings.name);
        if (is_program(found) && !is_shim(found))
            return found;
        path += size + (path[size] == ':');
    }
    return NULL;
}

static const char *find_real(void) {
    if (*settings.real)
        return settings.real;
    const char *found = found_on(getenv("PATH"));
    return found ? found : found_on(settings.path);
}

/* Return whether the parent has recorded this call already: a hooked Python puts the call's number, after its
 * own pid, into the environment of its child. A number of 0 is not a call: it is inherited by children that no
 * hook has seen. */
static int is_taped_already(void) {
    const char *parent = getenv("PLAYHEAD_PARENT");
    const char *seq = parent ? strrchr(parent, ':') : NULL;
    if (atol(settings.launcher) == (long)getppid())
        return 1; /* the command of the run itself, by way of `#!/usr/bin/env bash` */
    return seq && atol(parent) == (long)getppid() && atol(seq + 1) > 0;
}

/* Return whether this process is a stand-in that a hooked Python has started for a taped process: see
 * hooks/process/player.py. Stand-ins have an empty environment, and only an exit code or a signal. */
static int is_stand_in(int argc, char **argv) {
    if (*environ || (!*settings.real && !executed))
        return 0;
    return argc == 1 || (argc == 3 && !strcmp(argv[1], "-c") &&
                         (!strncmp(argv[2], "exit ", 5) || !strncmp(argv[2], "ulimit -c 0; kill -", 19)));
}

static int is_script(const char *path) {
    char first[2];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, first, sizeof first);
    if (fd >= 0)
        close(fd);
    return got == 2 && first[0] == '#' && first[1] == '!';
}

/* Return the name of a script if PATH leads to it, else its path: the kernel does not keep the name by which a
 * script was called. */
static char *called(char *path) {
    char *slash = strrchr(path, '/');
    const char *folder = getenv("PATH");
    size_t size = slash ? (size_t)(slash - path) : 0;
    while (size && folder) {
        size_t length = strcspn(folder, ":");
        if (length == size && !strncmp(folder, path, size))
            return slash + 1;
        folder = folder[length] ? folder + length + 1 : NULL;
    }
    return path;
}

/* Return the program's own arguments, without those of the tracer. For a script the kernel has inserted the
 * interpreter and its option before the path, and will insert them again. */
static char **followed(char **argv) {
    const char *file = argv[2], *path = argv[3];
    static char *none[] = {"", NULL};
    how = argv[1];
    argv = argv[4] ? argv + 4 : none;
    /* Not a path that has another meaning since this file was executed. */
    int is_path = *path && strncmp(path, "/proc/", 6) && strncmp(path, "/dev/fd/", 8);
    executed = is_path ? path : file;
    if (is_path && is_script(path))
        for (int at = 1; at < 8 && argv[at - 1] && argv[at]; at++)
            if (!strcmp(argv[at], path)) {
                argv += at;
                argv[0] = called(argv[0]);
                break;
            }
    const char *slash = strrchr(argv[0], '/');
    settings.name = slash ? slash + 1 : argv[0];
    return argv;
}

/* Notify the tracer, if there is one: only a tracer sees a signal that is ignored. */
static void tell_tracer(int what) {
    struct sigaction ignored = {.sa_handler = SIG_IGN}, was;
    if (!executed || sigaction(SIGTRAP, &ignored, &was) < 0)
        return;
    sigqueue(getpid(), SIGTRAP, (union sigval){.sival_int = what});
    sigaction(SIGTRAP, &was, NULL);
}

static void become_it(const char *real, char **argv) {
    hang_up();
    for (int fd = 0; fd < 3; fd++)
        if (was_closed[fd])
            close(fd);
    become(real, argv);
}

/* Return the texts of a frame from `at` on, terminated by NULL. */
static char **texts(char *at, const char *end) {
    int count = 0;
    char **made;
    for (char *one = at; one < end; one += strlen(one) + 1)
        count++;
    made = calloc((size_t)count + 1, sizeof *made);
    for (int n = 0; made && n < count; n++, at += strlen(at) + 1)
        made[n] = at;
    return made;
}

/* Become an agent, with the arguments and the variables that route it through the proxy. */
static void become_agent(const char *real, char **argv, char *text, const char *end) {
    int count = atoi(text), at = 0;
    char *words = text + strlen(text) + 1, **all = texts(words, end);
    tell_tracer(SAYS_AGENT);
    if (all && count > 0) {
        argv = calloc((size_t)count + 1, sizeof *argv);
        for (; argv && at < count && all[at]; at++)
            argv[at] = all[at];
        while (all[at])
            putenv(all[at++]);
    }
    become_it(real, argv);
}

int main(int argc, char **argv) {
    char what, *text, *lane;
    size_t size;
    int control;
    if (argc == 2 && !strcmp(argv[0], FOLLOW))
        return can_follow() ? 0 : 1;
    if (!read_settings())
        return argc == 1 ? 0 : REFUSED; /* a copy without settings: run once to check that it can be executed */
    if (!strcmp(argv[0], FOLLOW) && argc == 4)
        return follow(atoi(argv[1]), atoi(argv[2]), atoi(argv[3]));
    int is_replay = !strcmp(settings.mode, "replay");
    if (!strcmp(argv[0], FOLLOWED) && argc >= 4)
        argv = followed(argv);
    const char *real = executed ? executed : find_real();
    for (argc = 0; argv[argc];)
        argc++;
    int is_self = !strcmp(how, "self");
    if ((!is_self && is_taped_already()) || (is_replay && is_stand_in(argc, argv))) {
        tell_tracer(SAYS_FREE);
        become(real, argv);
    }
    look_at_streams();
    listen_to_signals();
    if (call_up() >= 0)
        tell_call(argv, real, how);
    int heard = hear(&what, &text, &size, &control, is_replay ? -1 : 5000);
    while (heard == 0 && is_replay && what == 'W') { /* files that the taped program wrote come before its end */
        write_file(text, text + size);
        free(text);
        heard = hear(&what, &text, &size, &control, -1);
    }
    if (heard < 0) {
        if (is_replay) {
            dprintf(2, "playhead: %s: the replay has ended; nothing was run.\n", settings.name);
            return REFUSED;
        }
        tell_tracer(is_self ? SAYS_AGENT : SAYS_FREE);
        become_it(real, argv);
    }
    if (what == 'A')
        become_agent(real, argv, text, text + size);
    tell_tracer(SAYS_FREE);
    switch (what) {
    case 'R':
        lane = text + strlen(text) + 1;
        if (lane > text + size)
            lane = text + size;
        end_as(run_real(real, argv, text, lane, texts(lane + strlen(lane) + 1, text + size)));
        break;
    case 'P':
        end_as(be_played(control));
        break;
    default:
        refuse(text, size);
    }
    return REFUSED;
}
