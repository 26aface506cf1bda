/* survive.c - what a keeper makes of what an earlier one left: agents of other builds, and records that a
 * crash damaged. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/major.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "rig.h"
#include "unit.h"

/* ---- an agent of another build ---- */

static int on_hello(void *ctx, const uint8_t *bytes, size_t len, int *fds, size_t fd_count)
{
	(void)bytes, (void)len, (void)fds, (void)fd_count;
	(*(unsigned *)ctx)++;
	return 0;
}

/* Answers every greeting with VERSION and OLDEST, one connection after another, until it is killed. */
static _Noreturn void be_an_agent(int listen_fd, uid_t uid, uint16_t version, uint16_t oldest)
{
	struct msg_hello m = {
		.version = version, .oldest = oldest, .role = ROLE_AGENT, .build = wire_text_of("9.9")};

	/* Whoever connects sees who listened. */
	if (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0 || listen(listen_fd, 16) < 0)
		_exit(1);
	for (;;) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);

		if (fork()) { /* the one that was accepted is served beside the next */
			close(fd);
			continue;
		}
		struct link *l = link_new(fd);
		for (;;) {
			unsigned greetings = 0;

			(void)fcntl(fd, F_SETFL, 0);
			/* MSG_DONTWAIT is the link's: look first. */
			char byte;
			if (recv(fd, &byte, 1, MSG_PEEK) <= 0) _exit(0);
			if (link_read(l, 1, on_hello, &greetings) < 0) _exit(0);
			if (greetings && LINK_SEND(l, 0, hello, &m, NULL, 0) < 0) _exit(0);
		}
	}
}

static unsigned long long start_of(pid_t pid)
{
	char path[64], text[1024], *at;
	unsigned long long start = 0;

	(void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
	ASSERT_TRUE(fd_read_file(AT_FDCWD, path, text, sizeof text) > 0);
	at = strrchr(text, ')');
	ASSERT_TRUE(
		at &&
		sscanf(at,
		       ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		       &start) == 1);
	return start;
}

/* The one line NAME of TEXT gets VALUE. */
static void put_line(char *text, size_t size, const char *name, unsigned long long value)
{
	char after[2048], *at = strstr(text, name), *end;

	ASSERT_TRUE(at != NULL);
	end = strchr(at + 1, '\n');
	(void)snprintf(after, sizeof after, "%s", end);
	(void)snprintf(at, size - (size_t)(at - text), "%s%llu%s", name, value, after);
}

/* The server is dead, and so is the agent of ID: another takes its place. */
static pid_t replace_agent(const struct rig *r, const char *id, uint16_t version, uint16_t oldest)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char path[300], text[2048];
	unsigned base_id = (unsigned)rig_record_number(r, id, "\nbase_id ");
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	pid_t pid;

	(void)snprintf(a.sun_path, sizeof a.sun_path, "%.64s/state/run/%08x.sock", r->dir, base_id);
	(void)unlink(a.sun_path);
	ASSERT_OK(bind(fd, (struct sockaddr *)&a, sizeof a));
	pid = fork();
	if (pid == 0) be_an_agent(fd, base_id, version, oldest);
	rig_record_path(r, id, path, sizeof path);
	ASSERT_TRUE(fd_read_file(AT_FDCWD, path, text, sizeof text) > 0);
	put_line(text, sizeof text, "\npid ", (unsigned long long)pid);
	put_line(text, sizeof text, "\npid_start ", start_of(pid));
	auto_close int record_fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	ASSERT_OK(fd_write_all(record_fd, text, strlen(text)));
	/* Until it listens nobody could connect. */
	struct sockaddr_un probe = a;
	int probe_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	while (connect(probe_fd, (struct sockaddr *)&probe, sizeof probe) < 0)
		(void)usleep(1000);
	fd_close(probe_fd);
	fd_close(fd);
	return pid;
}

static void kill_server_and_agent(struct rig *r, const char *id)
{
	pid_t agent = (pid_t)rig_record_number(r, id, "\npid ");

	rig_kill_all(r);
	ASSERT_OK(kill(agent, SIGKILL));
	rig_wait_gone(agent);
}

TEST(an_agent_of_a_newer_build_that_still_speaks_our_version_is_taken_over)
{
	struct rig r;
	char told[1024] = "";

	rig_init(&r);
	(void)rig_start(&r);
	rig_create(&r, "a", "");
	fd_close(rig_expect(&r, MSG_attached, "a").fd);
	kill_server_and_agent(&r, "a");
	pid_t agent = replace_agent(&r, "a", 9, 1);
	ASSERT_EQ(rig_start_and_list(&r, told, sizeof told), 1);
	rig_remove(&r, "a");
	(void)rig_expect(&r, MSG_gone, "a");
	ASSERT_EQ(waitpid(agent, NULL, 0), agent);
	rig_done(&r);
}

TEST(an_agent_that_speaks_no_version_of_ours_is_lost_and_the_others_are_not)
{
	struct rig r;
	struct said s;
	char told[1024] = "";
	static char log[65536];

	rig_init(&r);
	(void)rig_start(&r);
	rig_create(&r, "a", "");
	fd_close(rig_expect(&r, MSG_attached, "a").fd);
	rig_create(&r, "b", "");
	fd_close(rig_expect(&r, MSG_attached, "b").fd);
	kill_server_and_agent(&r, "a");
	pid_t agent = replace_agent(&r, "a", 9, 9);
	ASSERT_EQ(rig_start_and_list(&r, told, sizeof told), 1);
	assert_non_null(strstr(told, "b "));
	if (!strstr(told, "gone a\n")) {
		s = rig_expect(&r, MSG_gone, "a");
		ASSERT_EQ(s.why, GONE_DIED);
		assert_non_null(strstr(s.text, "cannot talk to"));
	}
	ASSERT_EQ(waitpid(agent, NULL, 0), agent);
	rig_read_log(&r, log, sizeof log);
	assert_non_null(strstr(log, "\"event\":\"agent_of_another_build\",\"id\":\"a\""));
	assert_non_null(strstr(log, "it is of build 9.9 and speaks versions 9 to 9, this build 1 to 1"));
	rig_remove(&r, "b");
	(void)rig_expect(&r, MSG_gone, "b");
	rig_done(&r);
}

/* ---- damaged records ---- */

#define SANDBOXES 13

static void name_of(unsigned n, char id[16])
{
	(void)snprintf(id, 16, "n%c", 'a' + (char)n);
}

/* As a disk may leave it: cut at AT, or with a wrong byte there. */
static void damage(const char *path, size_t at, bool cut)
{
	auto_close int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;

	ASSERT_OK(fstat(fd, &st));
	at %= (size_t)st.st_size;
	if (cut) ASSERT_OK(ftruncate(fd, (off_t)at));
	else ASSERT_EQ(pwrite(fd, "\xff", 1, (off_t)at), 1);
}

TEST(a_record_that_is_damaged_at_any_byte_costs_its_own_sandbox_and_leaves_nothing)
{
	struct rig r;
	char id[16], path[300], told[4096];
	size_t at = 0;

	rig_init(&r);
	(void)rig_start(&r, "--parked", "0");
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned i = 0; i < SANDBOXES; i++) {
			name_of(i, id);
			rig_create(&r, id, "");
		}
		for (unsigned i = 0; i < SANDBOXES; i++) {
			struct said s;

			do
				s = rig_hear(&r);
			while (s.type == MSG_gone); /* of the round before */
			ASSERT_EQ(s.type, MSG_attached);
			fd_close(s.fd);
		}
		rig_kill_all(&r);
		for (unsigned i = 1; i < SANDBOXES; i++, at += 13) {
			name_of(i, id);
			rig_record_path(&r, id, path, sizeof path);
			damage(path, at, i % 2);
		}
		ASSERT_EQ(rig_start_and_list(&r, told, sizeof told), 1);
		assert_non_null(strstr(told, "na "));
		rig_remove(&r, "na");
		(void)rig_expect(&r, MSG_gone, "na");
	}
	rig_done(&r);
}

/* ---- the disk of one that was taken over ---- */

/* The loop device of ID's disk image; 0: it has none. */
static dev_t disk_of(const struct rig *r, const char *id)
{
	char path[160], number[24];
	ssize_t n;

	rig_record_path(r, id, path, sizeof path);
	strcpy(strrchr(path, '/'), "/device");
	n = readlink(path, number, sizeof number - 1);
	if (n < 0) return 0;
	number[n] = '\0';
	return makedev(LOOP_MAJOR, (unsigned)atoi(number));
}

/* Whether PID has something open on DEVICE. */
static bool holds(pid_t pid, dev_t device)
{
	char path[300];
	struct dirent *entry;
	struct stat st;
	bool found = false;

	(void)snprintf(path, sizeof path, "/proc/%d/fd", pid);
	DIR *dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		(void)snprintf(path, sizeof path, "/proc/%d/fd/%.200s", pid, entry->d_name);
		found = stat(path, &st) == 0 && st.st_dev == device;
	}
	if (dir) closedir(dir);
	return found;
}

TEST(the_disk_of_a_sandbox_that_was_taken_over_is_held_so_that_its_death_need_not_write_it)
{
	struct rig r;
	dev_t device;

	rig_init(&r);
	(void)rig_start(&r, "--disk-quota", "auto");
	rig_create(&r, "a", "");
	fd_close(rig_expect(&r, MSG_attached, "a").fd);
	device = disk_of(&r, "a");
	if (!device) {
		rig_done(&r);
		print_message("skip: no disk images here\n");
		skip();
	}
	ASSERT_TRUE(holds(rig_keeper(&r), device));
	rig_kill_all(&r);
	ASSERT_EQ(rig_start(&r, "--disk-quota", "auto"), 1);
	for (unsigned ms = 0; !holds(rig_keeper(&r), device); ms++) {
		ASSERT_TRUE(ms < RIG_PATIENCE_MS);
		(void)usleep(1000);
	}
	rig_remove(&r, "a");
	(void)rig_expect(&r, MSG_gone, "a");
	rig_done(&r);
}

TEST(a_skeleton_of_an_older_host_stays_while_a_sandbox_may_live_on_it)
{
	struct rig r;
	struct said s;
	char old[128];

	rig_init(&r);
	(void)rig_start(&r);
	rig_create(&r, "a", "");
	s = rig_expect(&r, MSG_attached, "a");
	rig_greet_agent(s.fd);
	fd_close(s.fd);
	(void)snprintf(old, sizeof old, "%s/state/images/host/0123456789abcdef", r.dir);
	ASSERT_OK(mkdir(old, 0755));
	ASSERT_OK(kill(rig_keeper(&r), SIGKILL));
	ASSERT_EQ(rig_meet_front(&r, NULL, 0), 1);
	ASSERT_OK(access(old, F_OK));
	ASSERT_EQ(rig_stop(&r), 0);
	ASSERT_EQ(rig_start(&r), 0);
	ASSERT_EQ(access(old, F_OK), -1);
	rig_done(&r);
}

TESTS(RUN(an_agent_of_a_newer_build_that_still_speaks_our_version_is_taken_over),
      RUN(an_agent_that_speaks_no_version_of_ours_is_lost_and_the_others_are_not),
      RUN(a_record_that_is_damaged_at_any_byte_costs_its_own_sandbox_and_leaves_nothing),
      RUN(the_disk_of_a_sandbox_that_was_taken_over_is_held_so_that_its_death_need_not_write_it),
      RUN(a_skeleton_of_an_older_host_stays_while_a_sandbox_may_live_on_it))
