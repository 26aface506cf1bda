/* thread.h - a thread of our own beside a loop: no signal reaches it, and it waits by the monotonic clock. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* With every signal blocked. 0 or -errno. */
int thread_start(pthread_t *ret, void *(*run)(void *ctx), void *ctx);

/* For thread_wait(): WAKE goes by the monotonic clock. */
void thread_wake_init(pthread_mutex_t *lock, pthread_cond_t *wake);

/* Until somebody wakes it or the monotonic time UNTIL_MS has come. False: it has. The lock is held. */
bool thread_wait(pthread_mutex_t *lock, pthread_cond_t *wake, uint64_t until_ms);

/* The thread TID: the last of all for processors and disks, or again as any other. */
void thread_set_lowest(pid_t tid, bool lowest);
