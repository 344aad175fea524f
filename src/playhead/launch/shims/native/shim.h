/* What the parts of a shim tell each other.
 *
 * A shim stands on PATH under the name of a program, or a tracer has put it in the place of a program that was
 * just executed. It tells the clerk of the run what it was asked, and then either runs the real program and
 * passes everything on, or is the stand-in of a taped one, or becomes the program because that is an agent.
 *
 *   shim.c     who we are, what we were asked, which of these it will be
 *   follow.c   the tracer, which is started by the launcher from the same file
 *   talk.c     the line to the clerk: frames of a letter, a length and bytes
 *   streams.c  what stdin, stdout and stderr are, and how bytes get from one side to the other
 *   terminals.c  terminals that the command has made for its programs
 *   real.c     the real program, from its start to its end
 *   played.c   the stand-in of a taped program
 */
#ifndef PLAYHEAD_SHIM_H
#define PLAYHEAD_SHIM_H

#include <stddef.h>
#include <sys/types.h>

#define CHUNK 65536
#define REFUSED 125 /* as `env` and `unshare` leave when the command was never run */

/* Written into each copy of this program when a run begins: see playhead/launch/shims/programs.py. */
struct settings {
    const char *mode;   /* "record", or "replay": then nothing runs that the clerk does not allow */
    const char *name;   /* the program that we stand for */
    const char *folder; /* where the shims are */
    const char *socket; /* where the clerk listens */
    const char *path;   /* PATH as it was before the shims */
    const char *real;   /* the real program, where it is known; else it is looked for on PATH */
    const char *launcher; /* the pid of whoever runs the command, which is no subprocess of anybody */
};

extern struct settings settings;
extern char **environ;

/* The first words of this program's arguments: started by the launcher as the tracer of a command, or by the
 * tracer in the place of a program (then follow: `child` or `self`, the file, the path as it was executed). */
#define FOLLOW "playhead-follow"
#define FOLLOWED "playhead-followed"

/* follow.c */
enum { SAYS_AGENT = 1, SAYS_FREE = 2 }; /* what a shim tells its tracer */
int follow(pid_t command, int ready, int report);
int can_follow(void);

/* talk.c */
extern int line; /* the connection to the clerk; -1: there is none (any more) */
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
    int standard;  /* our own descriptor that it reads or writes: 0, 1 or 2 */
    int also;      /* a second one that shares it (2>&1), or -1 */
    int is_socket; /* of `to` */
    size_t have, done;
    char data[CHUNK];
};

extern const char *kinds[3]; /* pipe, inherited, stdout, file, null, tty, device, closed */
extern int was_closed[3];
extern int is_made[3]; /* a terminal that the command has made: its output is recorded */
void look_at_streams(void);
int open_pumps(struct pump pumps[3], int theirs[3]);
int is_open(const struct pump *pump);
void end_pump(struct pump *pump);
int pull(struct pump *pump); /* 1: something came, 0: nothing now, -1: the end */
void push(struct pump *pump);
void resize(const struct pump *pumps, int count);
void close_others(const struct pump *pumps, int count, const int *kept, int kept_count);

/* terminals.c */
int is_made_terminal(int fd);
int join_terminal(int like, int ends[2]); /* as `joined` of streams.c; -1: there is none to be had */
void copy_size(int from, int to);

/* real.c */
void become(const char *real, char **argv);
int run_real(const char *real, char **argv, const char *parent, const char *lane, char **changes);
void end_as(int code); /* as `subprocess` has it: negative for a signal */
void listen_to_signals(void);
int next_signal(int *number, int *to_group);
extern int signals; /* readable where one has come; -1: nobody listens */

/* played.c */
int be_played(int control);
void refuse(const char *told, size_t size); /* an exit code, a NUL, and why */

#endif
