/*
 * rig.h - a real server without its front: `tombolo serve`, the keeper and agents, in a directory of their
 * own. The test itself plays the front: the rig's tombolo-front only hands its end of the control link over
 * and waits.
 *
 * Everything waits for an event, RIG_PATIENCE_MS at most, and fails the test after that.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/link.h"

#define RIG_PATIENCE_MS 20000

struct rig {
	char dir[64];         /* bin/, state/, log */
	pid_t serve;          /* 0: not running */
	int front_listen_fd;  /* where its fronts report */
	int front_fd;         /* to the process of the current one */
	struct link *control; /* our end of the control link, as the front has it */
};

/* A message of the keeper. The texts are copies. */
struct said {
	uint16_t type; /* MSG_attached, MSG_refused, MSG_gone, MSG_ready, MSG_usage, MSG_parked */
	char id[129], run[37], text[256];
	unsigned why;
	uint32_t limit, pids;
	uint32_t ready; /* of `parked`; WHY is its `full` */
	int fd;         /* of `attached`; the test's to close */
};

/* Makes the directory; programs are copied there, so that the keeper finds the rig's front next to it. */
void rig_init(struct rig *r);

/* Starts a server with more options (ended by NULL) and waits until it is ready. What lives already is in
 * ATTACHED_COUNT. */
#define rig_start(r, ...) rig_start_with(r, (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})
unsigned rig_start_with(struct rig *r, const char *const *options);

/* The same with no options of its own, and lines about what was told before `ready`: see rig_meet_front(). */
unsigned rig_start_and_list(struct rig *r, char *told, size_t size);

/* Runs a server that is expected to end by itself. Its exit status; TEXT gets its standard error. */
int rig_run(struct rig *r, const char *const *options, char *text, size_t size);

/* It is dead and reaped already. */
void rig_forget_serve(struct rig *r);

/* SIGKILL for the server, its keeper and its front; agents live on. */
void rig_kill_all(struct rig *r);

/* SIGTERM, and waits. The exit status. */
int rig_stop(struct rig *r);

/* Stops it if it runs, checks that nothing is left on the host, removes the directory. */
void rig_done(struct rig *r);

/* ---- playing the front ---- */

void rig_create(struct rig *r, const char *id, const char *instance);
void rig_remove(struct rig *r, const char *id);
void rig_inspect(struct rig *r, const char *id);
void rig_park(struct rig *r, unsigned want);
void rig_send_garbage(struct rig *r);
struct said rig_hear(struct rig *r);

/* The next message must be this one about ID (any id when NULL). */
struct said rig_expect(struct rig *r, uint16_t type, const char *id);

/* Meets the next front; counts what is `attached` before `ready` and closes those links. RUNS gets "id run"
 * lines, and "gone id", "asleep id", "issued id" of the others. */
unsigned rig_meet_front(struct rig *r, char *runs, size_t size);

/* Says hello on a link to an agent and hears one back. */
void rig_greet_agent(int fd);

/* ---- looking around ---- */

/* The first child of PARENT whose name begins with NAME; waits for it. */
pid_t rig_child(pid_t parent, const char *name);
void rig_wait_gone(pid_t pid);
pid_t rig_keeper(const struct rig *r);

/* What the programs have logged so far. */
void rig_read_log(const struct rig *r, char *text, size_t size);

/* The file of the record of ID; and a line's value in it. */
void rig_record_path(const struct rig *r, const char *id, char *path, size_t size);
unsigned long long rig_record_number(const struct rig *r, const char *id, const char *name);
