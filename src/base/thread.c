#include "base/thread.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { IOPRIO_WHO_PROCESS = 1, IOPRIO_CLASS_NONE = 0, IOPRIO_CLASS_IDLE = 3, IOPRIO_CLASS_SHIFT = 13 };

int thread_start(pthread_t *ret, void *(*run)(void *ctx), void *ctx)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(ret, NULL, run, ctx);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

void thread_wake_init(pthread_mutex_t *lock, pthread_cond_t *wake)
{
	pthread_condattr_t attr;

	pthread_mutex_init(lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(wake, &attr);
	pthread_condattr_destroy(&attr);
}

bool thread_wait(pthread_mutex_t *lock, pthread_cond_t *wake, uint64_t until_ms)
{
	struct timespec at = {.tv_sec = (time_t)(until_ms / 1000),
			      .tv_nsec = (long)(until_ms % 1000) * 1000000};

	return pthread_cond_timedwait(wake, lock, &at) == 0;
}

void thread_set_lowest(pid_t tid, bool lowest)
{
	int io_class = lowest ? IOPRIO_CLASS_IDLE : IOPRIO_CLASS_NONE;

	(void)setpriority(PRIO_PROCESS, (id_t)tid, lowest ? 19 : 0);
	(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, tid, io_class << IOPRIO_CLASS_SHIFT);
}
