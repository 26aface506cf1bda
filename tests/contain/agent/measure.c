/*
 * What the agent costs, beside the host's own way in the same run: not a test, for numbers that are read by a
 * person.
 *
 *     contain-agent-measure [ROUNDS]
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "rig.h"
#include "unit.h"

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint64_t host_spawn(const char *path, char *const *argv)
{
	uint64_t began = now_us();
	posix_spawn_file_actions_t actions;
	char *env[] = {"PATH=/usr/bin:/bin", NULL}, text[4096];
	int out[2], err[2], status;
	pid_t pid;

	ASSERT_OK(pipe2(out, O_CLOEXEC));
	ASSERT_OK(pipe2(err, O_CLOEXEC));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	posix_spawn_file_actions_adddup2(&actions, err[1], 2);
	ASSERT_OK(posix_spawn(&pid, path, &actions, NULL, argv, env));
	fd_close(out[1]);
	fd_close(err[1]);
	while (read(out[0], text, sizeof text) > 0)
		continue;
	while (read(err[0], text, sizeof text) > 0)
		continue;
	waitpid(pid, &status, 0);
	fd_close(out[0]);
	fd_close(err[0]);
	posix_spawn_file_actions_destroy(&actions);
	return now_us() - began;
}

static uint64_t agent_exec(const struct msg_open_exec *m)
{
	uint64_t began = now_us();
	auto_run struct run r = {0};

	rig_run(&r, m);
	ASSERT_EQ(r.end.reason, END_EXITED);
	return now_us() - began;
}

static void compare(const char *name, size_t rounds, const char *path, char *const *argv,
		    const struct msg_open_exec *m)
{
	auto_free uint64_t *host = mem_new_array(rounds, sizeof *host),
			   *agent = mem_new_array(rounds, sizeof *agent);

	for (size_t i = 0; i < rounds; i++) {
		host[i] = host_spawn(path, argv);
		agent[i] = agent_exec(m);
	}
	qsort(host, rounds, sizeof *host, by_size);
	qsort(agent, rounds, sizeof *agent, by_size);
	printf("%-24s host %5llu / %5llu   agent %5llu / %5llu us (min / median)   ratio of medians %.2f\n",
	       name, (unsigned long long)host[0], (unsigned long long)host[rounds / 2],
	       (unsigned long long)agent[0], (unsigned long long)agent[rounds / 2],
	       (double)agent[rounds / 2] / (double)host[rounds / 2]);
}

static void memory(const char *when)
{
	char path[64], text[4096];

	(void)snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)rig_agent());
	if (fd_read_file(AT_FDCWD, path, text, sizeof text) < 0) return;
	printf("memory %s:", when);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (strncmp(line, "Rss", 3) == 0 || strncmp(line, "Anon", 4) == 0 ||
		    strncmp(line, "Private_D", 9) == 0) {
			printf("  %s", line);
		}
	}
	printf("\n");
}

static void copy_in(const char *from, const char *to)
{
	auto_run struct run file = {0};
	auto_close int fd = open(from, O_RDONLY | O_CLOEXEC);
	struct msg_open_exec m = RIG_EXEC("chmod", "755", to);
	char bytes[65536];
	ssize_t n;

	rig_start_file(&file, true, 1000, to);
	rig_until(run_opened, &file);
	while ((n = read(fd, bytes, sizeof bytes)) > 0)
		ASSERT_OK(fd_write_all(file.fd, bytes, (size_t)n));
	rig_commit(&file);
	rig_until(run_ended, &file);
	(void)agent_exec(&m);
}

int main(int argc, char **argv)
{
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
	char *true_argv[] = {"true", NULL}, *sh_argv[] = {"sh", "-c", "echo hello", NULL};
	auto_run struct run big = {.discard = true};
	struct msg_open_exec m_true = RIG_EXEC("/usr/bin/true"), m_sh = RIG_EXEC("sh", "-c", "echo hello"),
			     m_big = RIG_SH("head -c 256M /dev/zero"), m_static;
	const char *static_true = getenv("TRUE_STATIC");
	uint64_t began;

	rig_open();
	printf("agent %d\n", (int)rig_agent());
	(void)fflush(stdout);
	memory("fresh");
	agent_exec(&m_true);
	memory("after one command");
	if (static_true) {
		copy_in(static_true, "/workspace/true");
		m_static = RIG_EXEC("/workspace/true");
		compare("static true", rounds, static_true, true_argv, &m_static);
	}
	compare("/usr/bin/true", rounds, "/usr/bin/true", true_argv, &m_true);
	compare("sh -c 'echo hello'", rounds, "/usr/bin/sh", sh_argv, &m_sh);
	memory("after many commands");
	began = now_us();
	m_big.window = 4 << 20;
	rig_run(&big, &m_big);
	printf("256 MiB of output: %.0f MB/s\n", (double)big.out_bytes / (double)(now_us() - began));
	memory("after 256 MiB of output");
	rig_close();
	return 0;
}
