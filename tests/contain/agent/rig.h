/*
 * rig.h - plays the keeper and the front for one real agent in one real sandbox: zygote, slot, image,
 * cgroups.
 *
 * Needs root and cgroups, v1 or v2.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "wire/link.h"

#define RIG_WINDOW (1u << 20) /* credit that a run is given and keeps being given */

/* One channel and what came of it. */
struct run {
	struct run *next; /* private */
	uint32_t channel;
	struct link *link;   /* the front's link it is on */
	struct buf out, err; /* not filled when DISCARD; OUT also gets the content that `opened` brings */
	bool discard;
	bool no_credit; /* what arrives is not paid back */
	uint64_t out_bytes, err_bytes;
	bool opened, ended, data_after_end;
	struct msg_opened about;
	char process_id[40];
	int fd; /* of a file; -1 */
	struct msg_end end;
	char end_text[256];
	uint64_t input_credit;
	unsigned processes; /* `process` messages */
	struct msg_process last_process;
	uint64_t first_seq, last_seq; /* of `log` messages; their bytes go to OUT and ERR */
	unsigned gaps;
	uint64_t gap_seq;
	bool now, gap_after_now;
	size_t out_at_now;
	uint64_t ended_ms; /* clock_ms() */
};

/* Starts everything; asserts on failure, after which nothing works. */
void rig_open(void);
void rig_close(void);

/* Why this host cannot run it, or NULL. */
const char *rig_missing(void);

/* RIG_TESTS(RUN(one_test), RUN(another)): the main() of tests that share one rig; where it cannot run they
 * are skipped. */
int rig_setup(void **state);
int rig_teardown(void **state);
int rig_skip(void);
#define RIG_TESTS(...) \
	int main(void) \
	{ \
		const struct CMUnitTest tests[] = {__VA_ARGS__}; \
		return rig_missing() ? rig_skip() : cmocka_run_group_tests(tests, rig_setup, rig_teardown); \
	}

struct link *rig_front(void);
pid_t rig_agent(void);                    /* as the host sees it */
const char *rig_root(void);               /* "/proc/PID/root" of the agent */
unsigned rig_limits_wanted(void);         /* how often the agent asked */
unsigned rig_limits_idle(void);           /* how often it gave them back */
DIR *rig_groups_open(void);               /* the directory with the leaf groups of commands */
void rig_refuse_limits(const char *text); /* instead of giving them; NULL: give them again */

/* Connects to the listening socket and says hello; NULL: the agent hung up on us. */
struct link *rig_connect(const char *cookie, enum wire_role role);
const char *rig_cookie(void);
void rig_use_front(struct link *l); /* the one before is closed */
void rig_drop_bond(void);
void rig_take_bond(struct link *l);

/* Fills in what the tests do not care about: uid 1000, /workspace, a window. */
struct msg_open_exec rig_exec(const char *const *argv, uint32_t argc);
#define RIG_EXEC(...) \
	rig_exec((const char *const[]){__VA_ARGS__}, \
		 (uint32_t)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))
#define RIG_SH(script) RIG_EXEC("bash", "-c", script)

/* Sends the opening; the run stays the caller's and must live until it ended or rig_forget(). */
void rig_start(struct run *r, const struct msg_open_exec *m);
void rig_start_file(struct run *r, bool write, uint32_t uid, const char *path);
void rig_start_whole(struct run *r, uint32_t uid, const char *path, const char *text);
void rig_start_list(struct run *r);
void rig_forget(struct run *r);

/* Terminals and logs: rig_follow.c. What the tests do not care about is filled in as for rig_exec(). */
struct msg_open_terminal rig_terminal(const char *const *argv, uint32_t argc);
#define RIG_TERMINAL(...) \
	rig_terminal((const char *const[]){__VA_ARGS__}, \
		     (uint32_t)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))
void rig_start_terminal(struct run *r, const struct msg_open_terminal *m);
void rig_start_follow(struct run *r, const struct msg_open_follow *m);
void rig_follow(struct run *r, enum process_kind kind, const char *name, unsigned flags, uint64_t since);
void rig_list(struct run *r, enum process_kind kind, const char *name); /* and waits */
void rig_kill(struct run *r, enum process_kind kind, const char *name, int signo,
	      enum signal_how how); /* likewise */
void rig_resize(struct run *r, uint16_t cols, uint16_t rows);
void rig_type(struct run *r, const char *keys);
void rig_until_output(const struct run *r, const char *text); /* stdout contains TEXT, or R ended */
bool run_is_now(const struct run *r);
bool run_has(const struct run *r, const char *text); /* among its output */

/* What readline says when it is about to read keys, and has done with the terminal's modes and size. */
#define RIG_PROMPT "\x1b[?2004hsandbox@sandbox:/workspace$ "

/* A shell on a terminal, from its prompt to its `exit`. */
void rig_start_shell(struct run *r, const char *name, unsigned flags);
void rig_end_shell(struct run *r);

/* Until a process with the argument 98761, by which tests mark theirs, is there, or none is. */
void rig_until_marked(bool there);
void run_done(struct run *r);
#define auto_run __attribute__((cleanup(run_done)))

void rig_credit(struct run *r, uint32_t bytes);
void rig_input(struct run *r, const void *bytes, size_t len); /* waits for credit */
void rig_input_end(struct run *r);
void rig_signal(struct run *r, int signo);
void rig_reset(struct run *r, bool kill);
void rig_commit(struct run *r);

/* Handles what comes until CONDITION(R) or a minute passed (which fails the test). */
void rig_until(bool (*condition)(const struct run *r), const struct run *r);
bool run_ended(const struct run *r);
bool run_opened(const struct run *r); /* or ended */
void rig_pump(int timeout_ms); /* handles what comes within that time, returns after the first packets */

/* Start and wait. */
void rig_run(struct run *r, const struct msg_open_exec *m);

/* How many processes of the host show ARGUMENT as one of their arguments. */
unsigned rig_count_processes(const char *argument);
