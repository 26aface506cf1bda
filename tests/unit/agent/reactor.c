#include "agent/reactor.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

enum { FIRST_CAME = 10, SECOND_CAME };

static struct watch first, second;
static struct timer timer;
static int refused_fd, pipe_fds[2];

static void on_nothing(pid_t named)
{
	(void)named;
}

static void on_first(struct watch *w, uint32_t events)
{
	(void)w, (void)events;
	_exit(FIRST_CAME);
}

static void on_second(struct watch *w, uint32_t events)
{
	(void)w, (void)events;
	_exit(SECOND_CAME);
}

/* From now on the kernel grants what it refused. */
static void on_time(struct timer *t)
{
	(void)t;
	if (dup2(pipe_fds[0], refused_fd) < 0) _exit(1);
}

/* A pipe with a byte in it, and a descriptor that cannot be watched yet: that of a plain file. */
static void open_reactor(void)
{
	char path[] = "/tmp/tombolo-unit-reactor-XXXXXX";

	refused_fd = mkstemp(path);
	if (refused_fd < 0 || unlink(path) < 0 || pipe2(pipe_fds, O_CLOEXEC) < 0) _exit(1);
	if (write(pipe_fds[1], "x", 1) != 1 || reactor_open(on_nothing) < 0) _exit(1);
	first = (struct watch){.fd = -1, .on_event = on_first};
	second = (struct watch){.fd = -1, .on_event = on_second};
}

/* A reactor never returns, so each runs in a process of its own, whose status tells what came. */
static int run(void (*child)(void))
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		open_reactor();
		child();
		reactor_run();
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_TRUE(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void insist(void)
{
	if (watch_start(&first, refused_fd, EPOLLIN) == 0) _exit(1);
	watch_insist(&first, refused_fd, EPOLLIN);
	timer.on_time = on_time;
	timer_start(&timer, 30);
}

TEST(what_is_insisted_on_is_watched_once_the_kernel_grants_it)
{
	ASSERT_EQ(run(insist), FIRST_CAME);
}

static void insist_and_stop(void)
{
	watch_insist(&second, refused_fd, EPOLLIN);
	insist();
	watch_stop(&first);
}

TEST(a_watch_that_was_stopped_is_not_insisted_on)
{
	ASSERT_EQ(run(insist_and_stop), SECOND_CAME);
}

TESTS(RUN(what_is_insisted_on_is_watched_once_the_kernel_grants_it),
      RUN(a_watch_that_was_stopped_is_not_insisted_on))
