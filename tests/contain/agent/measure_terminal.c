/*
 * What a terminal through the agent costs beside a bare one in the same run: the echo of a key, and much
 * output. Not a test, for numbers that are read by a person.
 *
 *     contain-agent-measure-terminal [ROUNDS]
 */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "rig.h"
#include "unit.h"

#define ECHO_SCRIPT "stty raw -echo; printf go; exec cat"
#define BULK_SCRIPT "stty -opost; head -c 67108864 /dev/zero"
#define BULK_BYTES  67108864u

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

static int bare_pty(const char *script, pid_t *ret_pid)
{
	int master = -1;

	*ret_pid = forkpty(&master, NULL, NULL, NULL);
	if (*ret_pid == 0) {
		execl("/bin/bash", "bash", "-c", script, NULL);
		_exit(127);
	}
	return master;
}

static void bare_read(int master, size_t len)
{
	static char text[64 << 10];
	ssize_t n = 0;

	for (size_t got = 0; got < len && n >= 0; got += (size_t)n)
		n = read(master, text, sizeof text);
}

static bool has_byte(const struct run *r)
{
	return r->out_bytes > 0;
}

static void measure_echo(unsigned rounds)
{
	uint64_t *bare = mem_new_array(rounds, sizeof *bare), *ours = mem_new_array(rounds, sizeof *ours);
	struct msg_open_terminal m = RIG_TERMINAL("bash", "-c", ECHO_SCRIPT);
	struct run r = {0};
	pid_t pid;
	int master = bare_pty(ECHO_SCRIPT, &pid);

	rig_start_terminal(&r, &m);
	rig_until_output(&r, "go");
	bare_read(master, 2);
	for (unsigned i = 0; i < rounds; i++) {
		uint64_t began = now_us();

		(void)!write(master, "x", 1);
		bare_read(master, 1);
		bare[i] = now_us() - began;
		r.out_bytes = 0;
		began = now_us();
		rig_type(&r, "x");
		rig_until(has_byte, &r);
		ours[i] = now_us() - began;
	}
	qsort(bare, rounds, sizeof *bare, by_size);
	qsort(ours, rounds, sizeof *ours, by_size);
	printf("echo of a key, us: bare p50 %lu p99 %lu, ours p50 %lu p99 %lu\n",
	       (unsigned long)bare[rounds / 2], (unsigned long)bare[rounds * 99 / 100],
	       (unsigned long)ours[rounds / 2], (unsigned long)ours[rounds * 99 / 100]);
	fd_close(master);
	waitpid(pid, NULL, 0);
	rig_reset(&r, true);
	run_done(&r);
	free(bare);
	free(ours);
}

static void measure_bulk(void)
{
	auto_run struct run r = {.discard = true};
	struct msg_open_terminal m = RIG_TERMINAL("bash", "-c", BULK_SCRIPT);
	uint64_t began = now_us(), bare, ours;
	pid_t pid;
	int master = bare_pty(BULK_SCRIPT, &pid);

	bare_read(master, BULK_BYTES);
	bare = now_us() - began;
	fd_close(master);
	waitpid(pid, NULL, 0);
	began = now_us();
	rig_start_terminal(&r, &m);
	rig_until(run_ended, &r);
	ours = now_us() - began;
	printf("64 MiB of output: bare %lu MB/s, ours %lu MB/s (%lu bytes, %u gaps)\n",
	       (unsigned long)(BULK_BYTES / bare), (unsigned long)(BULK_BYTES / ours),
	       (unsigned long)r.out_bytes, r.gaps);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;

	if (rig_missing()) return rig_skip();
	rig_open();
	measure_echo(rounds);
	for (int i = 0; i < 3; i++)
		measure_bulk();
	rig_close();
	return 0;
}
