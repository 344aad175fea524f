/* The interfaces between the parts of a shim.
 *
 * A shim is on PATH under the name of a program, or a tracer has executed it in place of a program that was
 * just started. It reports its arguments to the sidecar of the run. Then it runs the real program and forwards
 * its streams, or stands in for a taped program, or becomes the program, because the program is an agent.
 *
 *   shim.c     finds out which program this is, and which of the three it does
 *   follow.c   the tracer, which is started by the launcher from the same file
 *   talk.c     the connection to the sidecar: frames of a letter, a length and bytes
 *   streams.c  examines stdin, stdout and stderr, and forwards bytes
 *   terminals.c  pseudo-terminals that the command has opened for its programs
 *   real.c     runs the real program
 *   played.c   stands in for a taped program
 */
#ifndef PLAYHEAD_SHIM_H
#define PLAYHEAD_SHIM_H

#include <stddef.h>
#include <sys/types.h>

#define CHUNK 65536
#define REFUSED 125 /* the exit code of `env` and `unshare` if the command was never run */

/* Written into each copy of this program when a run begins: see playhead/launch/shims/programs.py. */
struct settings {
    const char *mode;   /* "record", or "replay": then nothing runs without permission of the sidecar */
    const char *name;   /* the program that this shim replaces */
    const char *folder; /* the folder of the shims */
    const char *socket; /* the socket of the sidecar */
    const char *path;   /* PATH without the shims */
    const char *real;   /* the real program; empty: search PATH for it */
    const char *launcher; /* the pid of the process that runs the command */
};

extern struct settings settings;
extern char **environ;

/* The first words of this program's arguments: started by the launcher as the tracer of a command, or by the
 * tracer in the place of a program (then follow: `child` or `self`, the file, the path as it was executed). */
#define FOLLOW "playhead-follow"
#define FOLLOWED "playhead-followed"

/* follow.c */
enum { SAYS_AGENT = 1, SAYS_FREE = 2 }; /* answers of a shim to its tracer */
int follow(pid_t command, int ready, int report);
int can_follow(void);

/* talk.c */
extern int line; /* the connection to the sidecar; -1: not connected */
int call_up(void);
void hang_up(void);
void tell(char what, const void *data, size_t size);
void tell_call(char **argv, const char *real, const char *how);
void await_answer(void);
int hear(char *what, char **text, size_t *size, int *fd, int patience_ms);

/* streams.c */
struct pump {
    char what;     /* 'I', 'O', 'E': stdin, stdout, stderr */
    int from, to;  /* -1: this side is closed, and the pump has ended */
    int standard;  /* the standard descriptor that it reads or writes: 0, 1 or 2 */
    int also;      /* a second descriptor of the same stream (2>&1), or -1 */
    int is_socket; /* of `to` */
    size_t have, done;
    char data[CHUNK];
};

extern const char *kinds[3]; /* pipe, inherited, stdout, file, null, tty, device, closed */
extern int was_closed[3];
extern int is_made[3]; /* a terminal that the command has opened: its output is recorded */
void look_at_streams(void);
int open_pumps(struct pump pumps[3], int theirs[3]);
int is_open(const struct pump *pump);
void end_pump(struct pump *pump);
int pull(struct pump *pump); /* 1: read some bytes, 0: none available, -1: end of file */
void push(struct pump *pump);
void resize(const struct pump *pumps, int count);
void close_others(const struct pump *pumps, int count, const int *kept, int kept_count);

/* terminals.c */
int is_made_terminal(int fd);
int join_terminal(int like, int ends[2]); /* as `joined` of streams.c; -1: no terminal is available */
void copy_size(int from, int to);

/* real.c */
void become(const char *real, char **argv);
int run_real(const char *real, char **argv, const char *parent, const char *lane, char **changes);
void end_as(int code); /* as in `subprocess`: negative for a signal */
void listen_to_signals(void);
int next_signal(int *number, int *to_group);
extern int signals; /* readable when a signal has arrived; -1: no handler is installed */

/* played.c */
void write_file(const char *path, const char *end);
int be_played(int control);
void refuse(const char *told, size_t size); /* an exit code, a NUL, and the reason */

#endif
