/*
 * process.h - agents as processes. They are our children in our first life and our parent's after a restart,
 * so they are only ever held by pidfd, and reaped by whoever happens to be the parent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The pidfd of our child PID; -ECHILD when it is not ours: somebody told us a wrong number. */
int process_open_child(pid_t pid);

/* The pidfd of PID if it is the process that started at START; -ESRCH otherwise. */
int process_open(pid_t pid, uint64_t start);

/* The clock tick at which PID started; 0 when there is no such process. */
uint64_t process_start(pid_t pid);

/* SIGKILL, again when that fails for no reason. With the first process of a pid namespace all others of it
 * die. */
void process_kill(int pidfd);

/* Takes the exit status of a dead one off the kernel if we are its parent. Waits for its death if it must. */
void process_reap(int pidfd);
