/*
 * pipes.h - the pipes of a process, or its terminal: they are made here, and their output goes into the log
 * and to who wants to know. What it means for the process that they close, process.c knows.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct process;

/* ON_READ is called by the reactor: output was read of a pipe that is watched, or (CLOSED) it came to its
 * end. */
void process_pipes_init(struct process *p, void (*on_read)(struct process *p, bool closed));

/* THEIRS, which are -1, get the child's ends: _close_theirs() after the spawn, and after a failure. GIVEN:
 * NULL, or three that the child gets instead, -1 for none; taken, also when it fails. */
int process_pipes_make(struct process *p, const int *given, bool with_stdin, int theirs[3], struct err *e);
int process_pipes_make_terminal(struct process *p, uint32_t uid, uint16_t cols, uint16_t rows, int theirs[3],
				struct err *e);
void process_pipes_close_theirs(int theirs[3]);
int process_pipes_watch(struct process *p, struct err *e);
void process_pipes_close(struct process *p);
bool process_pipes_hold_output(const struct process *p); /* something lies in them */
bool process_pipes_closed(const struct process *p);      /* those of output */
void process_pipes_owe(struct process *p);               /* the leader died: note what still lies in them */
void process_pipes_read(struct process *p);              /* what is there, as far as the client has room */

/* The client or a follower may have room again. Whether output waited for it and goes on. */
bool process_pipes_resume(struct process *p);
