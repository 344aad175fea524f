/* Stands for a program: see shim.h. Knows who we are, and whether anybody wants to hear of us.
 *
 * Recording fails open: without a clerk we become the real program, as if we had never been there.
 * A replay fails closed: without a clerk nothing runs.
 */
#define _GNU_SOURCE
#include "shim.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Filled in by whoever puts a copy of this file on PATH. Not static and not const: a compiler must
 * not believe that it knows what stands here. */
char playhead_settings[16384] = "PLAYHEAD-SHIM-SETTINGS:";

struct settings settings;

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

/* Whether whoever started us has put this on the tape already: a Python of the run that is hooked
 * names the call in its child's environment, after its own pid. The first event of a process is no
 * call: that is what children inherit that nobody has seen start. */
static int is_taped_already(void) {
    const char *parent = getenv("PLAYHEAD_PARENT");
    const char *seq = parent ? strrchr(parent, ':') : NULL;
    if (atol(settings.launcher) == (long)getppid())
        return 1; /* the command of the run itself, by way of `#!/usr/bin/env bash` */
    return seq && atol(parent) == (long)getppid() && atol(seq + 1) > 0;
}

/* Whether we stand where the stand-ins of a hooked Python's taped processes are taken from: see
 * boundaries/process_player.py. They have no environment at all, and nothing to say but how to end. */
static int is_stand_in(int argc, char **argv) {
    if (*environ || !*settings.real)
        return 0;
    return argc == 1 || (argc == 3 && !strcmp(argv[1], "-c") &&
                         (!strncmp(argv[2], "exit ", 5) || !strncmp(argv[2], "ulimit -c 0; kill -", 19)));
}

int main(int argc, char **argv) {
    char what, *text, *lane;
    size_t size;
    int control;
    if (!read_settings())
        return argc == 1 ? 0 : REFUSED; /* nobody's copy: run once to see whether it can be run */
    int is_replay = !strcmp(settings.mode, "replay");
    const char *real = find_real();
    if (is_taped_already() || (is_replay && is_stand_in(argc, argv)))
        become(real, argv);
    look_at_streams();
    listen_to_signals();
    if (call_up() >= 0)
        tell_call(argv, real);
    if (hear(&what, &text, &size, &control, is_replay ? -1 : 5000) < 0) {
        if (is_replay) {
            dprintf(2, "playhead: %s: the replay has ended; nothing was run.\n", settings.name);
            return REFUSED;
        }
        hang_up();
        for (int fd = 0; fd < 3; fd++)
            if (was_closed[fd])
                close(fd);
        become(real, argv);
    }
    switch (what) {
    case 'R':
        lane = text + strlen(text) + 1;
        end_as(run_real(real, argv, text, lane <= text + size ? lane : ""));
        break;
    case 'P':
        end_as(be_played(control));
        break;
    default:
        refuse(text, size);
    }
    return REFUSED;
}
