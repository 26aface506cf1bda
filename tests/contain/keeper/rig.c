#include "rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "unit.h"

#define RIGS_MAX 8

static pid_t running[RIGS_MAX];         /* servers; a test that failed leaves its own to the end of the program */

static void wait_for_input(int fd, const char *what)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (poll(&p, 1, RIG_PATIENCE_MS) != 1) fail_msg("waited too long for %s", what);
}

/* ---- the rig's front ---- */

static struct sockaddr_un front_address(const char *dir)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	(void)snprintf(a.sun_path, sizeof a.sun_path, "%.80s/front.sock", dir);
	return a;
}

/* In a process of its own, as nobody: gives descriptor 3 to the test, then waits for the test to hang up. */
static _Noreturn void be_the_front(void)
{
	char own[64], byte = 0;
	struct iovec io = {.iov_base = &byte, .iov_len = 1};
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr msg = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
	ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), control_fd = 3;
	struct sockaddr_un a;

	own[n > 0 ? n : 0] = '\0';
	*strrchr(own, '/') = '\0';
	a = front_address(own);
	if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0) _exit(1);
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &control_fd, sizeof control_fd);
	if (getuid() == 0 || sendmsg(fd, &msg, 0) != 1) _exit(1);
	close(control_fd);
	while (read(fd, &byte, 1) > 0)
		;
	_exit(0);
}

/* Before main(): under the name of the front, this program is the front. */
static __attribute__((constructor)) void become_who_we_are(int argc, char **argv)
{
	if (argc > 0 && strcmp(argv[0], "tombolo-front") == 0) be_the_front();
}

/* ---- its directory ---- */

static void copy_program(const char *from, const char *dir, const char *name)
{
	char to[512];
	struct stat st;
	auto_close int in = open(from, O_RDONLY | O_CLOEXEC);

	(void)snprintf(to, sizeof to, "%s/bin/%s", dir, name);
	auto_close int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	ASSERT_TRUE(in >= 0 && out >= 0);
	ASSERT_OK(fstat(in, &st));
	for (off_t at = 0; at < st.st_size;) ASSERT_TRUE(sendfile(out, in, &at, (size_t)(st.st_size - at)) > 0);
	ASSERT_OK(fchmod(out, 0755));
}

static void stop_the_rest(void)
{
	for (size_t i = 0; i < RIGS_MAX; i++) {
		if (!running[i]) continue;
		(void)kill(running[i], SIGTERM);
		(void)waitpid(running[i], NULL, 0);
	}
}

static void replace_running(pid_t from, pid_t to)
{
	for (size_t i = 0; i < RIGS_MAX; i++) {
		if (running[i] != from) continue;
		running[i] = to;
		return;
	}
}

void rig_init(struct rig *r)
{
	static bool once;
	char path[512];
	struct sockaddr_un a;

	if (!once) (void)atexit(stop_the_rest);
	once = true;

	*r = (struct rig){.front_listen_fd = -1, .front_fd = -1};
	(void)snprintf(r->dir, sizeof r->dir, "/tmp/tombolo-keeper-XXXXXX");
	ASSERT_TRUE(mkdtemp(r->dir) != NULL);
	ASSERT_OK(chmod(r->dir, 0755));
	(void)snprintf(path, sizeof path, "%s/bin", r->dir);
	ASSERT_OK(mkdir(path, 0755));
	copy_program(TOMBOLO_PROGRAM, r->dir, "tombolo");
	copy_program(KEEPER_PROGRAM, r->dir, "tombolo-keeper");
	copy_program(AGENT_PROGRAM, r->dir, "tombolo-agent");
	copy_program("/proc/self/exe", r->dir, "tombolo-front");
	a = front_address(path);
	r->front_listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ASSERT_OK(bind(r->front_listen_fd, (struct sockaddr *)&a, sizeof a));
	ASSERT_OK(chmod(a.sun_path, 0777));
	ASSERT_OK(listen(r->front_listen_fd, 16));
}

/* ---- running it ---- */

static pid_t launch(struct rig *r, const char *const *options, int stderr_fd)
{
	char state[128], program[128];
	const char *argv[32] = {"tombolo", "serve", "--listen", "127.0.0.1:0", "--state-dir", state};
	size_t argc = 6;
	pid_t pid;

	(void)snprintf(state, sizeof state, "%s/state", r->dir);
	(void)snprintf(program, sizeof program, "%s/bin/tombolo", r->dir);
	while (*options) argv[argc++] = *options++;
	pid = fork();
	if (pid == 0) {
		int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

		(void)dup2(null_fd, STDOUT_FILENO);
		(void)dup2(stderr_fd, STDERR_FILENO);
		(void)execv(program, (char *const *)argv);
		_exit(127);
	}
	ASSERT_TRUE(pid > 0);
	return pid;
}

static void start(struct rig *r, const char *const *options)
{
	char log[128];

	(void)snprintf(log, sizeof log, "%s/log", r->dir);
	auto_close int log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	r->serve = launch(r, options, log_fd);
	replace_running(0, r->serve);
}

unsigned rig_start_with(struct rig *r, const char *const *options)
{
	start(r, options);
	return rig_meet_front(r, NULL, 0);
}

unsigned rig_start_and_list(struct rig *r, char *told, size_t size)
{
	static const char *const none[] = {NULL};

	start(r, none);
	return rig_meet_front(r, told, size);
}

int rig_run(struct rig *r, const char *const *options, char *text, size_t size)
{
	int ends[2], status;
	size_t len = 0;
	ssize_t n;

	ASSERT_OK(pipe2(ends, O_CLOEXEC));
	pid_t pid = launch(r, options, ends[1]);
	fd_close(ends[1]);
	while (len < size - 1 && (n = read(ends[0], text + len, size - 1 - len)) > 0) len += (size_t)n;
	text[len] = '\0';
	fd_close(ends[0]);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void hang_up(struct rig *r)
{
	r->control = link_free(r->control);
	r->front_fd = fd_close(r->front_fd);
}

void rig_forget_serve(struct rig *r)
{
	replace_running(r->serve, 0);
	r->serve = 0;
}

void rig_kill_all(struct rig *r)
{
	pid_t keeper = rig_keeper(r), front = rig_child(keeper, "tombolo-front");

	ASSERT_OK(kill(r->serve, SIGKILL));
	ASSERT_OK(kill(keeper, SIGKILL));
	ASSERT_OK(kill(front, SIGKILL));
	ASSERT_EQ(waitpid(r->serve, NULL, 0), r->serve);
	rig_forget_serve(r);
	rig_wait_gone(keeper);
	rig_wait_gone(front);
}

int rig_stop(struct rig *r)
{
	int status;

	ASSERT_OK(kill(r->serve, SIGTERM));
	/* The keeper asks its front to end, and sees that it has when our copy of the link is closed, too. */
	wait_for_input(r->front_fd, "the front's end");
	hang_up(r);
	ASSERT_EQ(waitpid(r->serve, &status, 0), r->serve);
	rig_forget_serve(r);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- the front's part ---- */

static int receive_fd(int socket_fd)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec io = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
	int fd;

	ASSERT_EQ(recvmsg(socket_fd, &msg, MSG_CMSG_CLOEXEC), 1);
	ASSERT_TRUE(CMSG_FIRSTHDR(&msg) != NULL);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof fd);
	return fd;
}

static void say_hello(struct link *l, enum wire_role role)
{
	struct msg_hello m = {.version = WIRE_VERSION, .oldest = WIRE_OLDEST, .role = (uint8_t)role};

	ASSERT_OK(LINK_SEND(l, 0, hello, &m, NULL, 0));
}

unsigned rig_meet_front(struct rig *r, char *runs, size_t size)
{
	unsigned attached = 0;
	size_t len = 0;

	hang_up(r);
	wait_for_input(r->front_listen_fd, "a front");
	r->front_fd = accept4(r->front_listen_fd, NULL, NULL, SOCK_CLOEXEC);
	ASSERT_TRUE(r->front_fd >= 0);
	wait_for_input(r->front_fd, "the control link");
	r->control = link_new(receive_fd(r->front_fd));
	say_hello(r->control, ROLE_FRONT);
	for (;;) {
		struct said s = rig_hear(r);

		if (s.type == MSG_ready) return attached;
		/* What an earlier front knew is told, too: tests that care look for it in RUNS. */
		if (s.type == MSG_asleep || s.type == MSG_gone || s.type == MSG_issued) {
			if (runs) len += (size_t)snprintf(runs + len, size - len, "%s %s\n", message_name(s.type), s.id);
			continue;
		}
		ASSERT_EQ(s.type, MSG_attached);
		rig_greet_agent(s.fd);
		if (runs) len += (size_t)snprintf(runs + len, size - len, "%s %s\n", s.id, s.run);
		fd_close(s.fd);
		attached++;
	}
}

#define COPY(to, from) (void)snprintf(to, sizeof(to), "%s", (from).at)

static int on_said(void *ctx, const uint8_t *bytes, size_t len, int *fds, size_t fd_count)
{
	struct frame_reader reader = frame_reader_of(bytes, len);
	struct said *s = ctx;
	struct msg_attached attached;
	struct msg_refused refused;
	struct msg_ready ready;
	struct msg_usage usage;
	struct msg_gone gone;
	struct msg_parked parked;
	struct msg_asleep asleep;
	struct msg_issued issued;
	struct frame f;

	ASSERT_EQ(frame_reader_next(&reader, &f), 1);
	s->type = f.type;
	if (msg_attached_parse(&f, &attached) == 0) {
		COPY(s->id, attached.id);
		COPY(s->run, attached.run);
		ASSERT_EQ(fd_count, 1);
		s->fd = take_fd(&fds[0]);
	} else if (msg_refused_parse(&f, &refused) == 0) {
		COPY(s->id, refused.id);
		COPY(s->text, refused.text);
		s->why = refused.why;
	} else if (msg_gone_parse(&f, &gone) == 0) {
		COPY(s->id, gone.id);
		COPY(s->text, gone.text);
		s->why = gone.why;
	} else if (f.type == MSG_asleep && msg_asleep_parse(&f, &asleep) == 0) {
		COPY(s->id, asleep.id);
		COPY(s->run, asleep.run);
	} else if (f.type == MSG_issued && msg_issued_parse(&f, &issued) == 0) {
		COPY(s->id, issued.id);
	} else if (msg_ready_parse(&f, &ready) == 0) {
		s->limit = ready.limit;
	} else if (msg_usage_parse(&f, &usage) == 0) {
		COPY(s->id, usage.id);
		s->why = usage.known;
		s->pids = usage.pids;
	} else if (msg_parked_parse(&f, &parked) == 0) {
		s->ready = parked.ready;
		s->why = parked.full;
	}
	return 0;
}

struct said rig_hear(struct rig *r)
{
	struct said s;

	do {
		s = (struct said){.fd = -1};
		/* What the kernel did not take at once, when many wishes were sent. */
		ASSERT_OK(link_flush(r->control));
		wait_for_input(link_fd(r->control), "the keeper's next message");
		ASSERT_OK(link_read(r->control, 1, on_said, &s));
	} while (s.type == MSG_hello);
	return s;
}

struct said rig_expect(struct rig *r, uint16_t type, const char *id)
{
	struct said s = rig_hear(r);

	if (s.type != type) fail_msg("heard %s of '%s' (%s), expected %s", message_name(s.type), s.id, s.text, message_name(type));
	if (id) ASSERT_STR(s.id, id);
	return s;
}

void rig_create(struct rig *r, const char *id, const char *instance)
{
	struct msg_create m = {.id = wire_text_of(id), .instance = wire_text_of(instance)};

	ASSERT_OK(LINK_SEND(r->control, 0, create, &m, NULL, 0));
}

void rig_remove(struct rig *r, const char *id)
{
	struct msg_remove m = {.id = wire_text_of(id)};

	ASSERT_OK(LINK_SEND(r->control, 0, remove, &m, NULL, 0));
}

void rig_inspect(struct rig *r, const char *id)
{
	struct msg_inspect m = {.id = wire_text_of(id)};

	ASSERT_OK(LINK_SEND(r->control, 0, inspect, &m, NULL, 0));
}

void rig_park(struct rig *r, unsigned want)
{
	struct msg_park m = {.want = want};

	ASSERT_OK(LINK_SEND(r->control, 0, park, &m, NULL, 0));
}

void rig_send_garbage(struct rig *r)
{
	ASSERT_EQ(send(link_fd(r->control), "what is this?", 13, MSG_NOSIGNAL), 13);
}

static int on_agent_hello(void *ctx, const uint8_t *bytes, size_t len, int *fds, size_t fd_count)
{
	struct frame_reader reader = frame_reader_of(bytes, len);
	struct msg_hello m;
	struct frame f;

	(void)fds;
	(void)fd_count;
	ASSERT_EQ(frame_reader_next(&reader, &f), 1);
	ASSERT_OK(msg_hello_parse(&f, &m));
	*(unsigned *)ctx = m.role;
	return 0;
}

void rig_greet_agent(int fd)
{
	struct link *l = link_new(fcntl(fd, F_DUPFD_CLOEXEC, 3));
	unsigned role = 0;

	say_hello(l, ROLE_FRONT);
	wait_for_input(fd, "an agent's hello");
	ASSERT_OK(link_read(l, 1, on_agent_hello, &role));
	ASSERT_EQ(role, ROLE_AGENT);
	link_free(l);
}

/* ---- looking around ---- */

static bool comm_begins(pid_t pid, const char *name)
{
	char path[64], comm[32];

	(void)snprintf(path, sizeof path, "/proc/%d/comm", pid);
	return fd_read_file(AT_FDCWD, path, comm, sizeof comm) > 0 && strncmp(comm, name, strlen(name)) == 0;
}

/* Children of any thread: the one that forked need not be the first. */
static pid_t find_child(pid_t parent, const char *name)
{
	char path[300], text[8192];
	struct dirent *entry;
	pid_t found = 0;
	DIR *dir;

	(void)snprintf(path, sizeof path, "/proc/%d/task", parent);
	dir = opendir(path);
	if (!dir) return 0;
	while (!found && (entry = readdir(dir))) {
		(void)snprintf(path, sizeof path, "/proc/%d/task/%s/children", parent, entry->d_name);
		if (entry->d_name[0] == '.' || fd_read_file(AT_FDCWD, path, text, sizeof text) <= 0) continue;
		for (char *at = strtok(text, " "); at && !found; at = strtok(NULL, " ")) {
			if (comm_begins(atoi(at), name)) found = atoi(at);
		}
	}
	closedir(dir);
	return found;
}

pid_t rig_child(pid_t parent, const char *name)
{
	uint64_t until = clock_ms() + RIG_PATIENCE_MS;
	pid_t pid = 0;

	/* The kernel has no event for "has a child"; this looks again and again, and nothing is timed. */
	while (!(pid = find_child(parent, name)) && clock_ms() < until) (void)usleep(1000);
	if (!pid) fail_msg("%d has no child %s", parent, name);
	return pid;
}

pid_t rig_keeper(const struct rig *r)
{
	return rig_child(r->serve, "tombolo-keeper");
}

void rig_wait_gone(pid_t pid)
{
	auto_close int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd >= 0) wait_for_input(fd, "the end of a process");
}

void rig_read_log(const struct rig *r, char *text, size_t size)
{
	char path[128];

	(void)snprintf(path, sizeof path, "%s/log", r->dir);
	ASSERT_TRUE(fd_read_file(AT_FDCWD, path, text, size) >= 0);
}

/* The directories are called by their runs. */
void rig_record_path(const struct rig *r, const char *id, char *path, size_t size)
{
	char text[2048], line[160];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	(void)snprintf(path, size, "%s/state/sandboxes", r->dir);
	(void)snprintf(line, sizeof line, "\nid %s\n", id);
	dir = opendir(path);
	while (!found && (entry = readdir(dir))) {
		(void)snprintf(path, size, "%s/state/sandboxes/%.64s/record", r->dir, entry->d_name);
		found = entry->d_name[0] != '.' && fd_read_file(AT_FDCWD, path, text, sizeof text) > 0 &&
		        strstr(text, line);
	}
	closedir(dir);
	if (!found) fail_msg("there is no record of '%s'", id);
}

unsigned long long rig_record_number(const struct rig *r, const char *id, const char *name)
{
	char path[512], text[2048], *at;

	rig_record_path(r, id, path, sizeof path);
	ASSERT_TRUE(fd_read_file(AT_FDCWD, path, text, sizeof text) > 0);
	at = strstr(text, name);
	ASSERT_TRUE(at != NULL);
	return strtoull(at + strlen(name), NULL, 10);
}

/* ---- nothing is left ---- */

static unsigned count_entries(const struct rig *r, const char *part)
{
	char path[256];
	struct dirent *entry;
	unsigned count = 0;
	DIR *dir;

	(void)snprintf(path, sizeof path, "%s/state/%s", r->dir, part);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) count += entry->d_name[0] != '.';
	if (dir) closedir(dir);
	return count;
}

static void check_no_cgroup(const struct rig *r)
{
	static const char *const places[] = {"memory", "pids", "cpu", "unified", "."};
	char path[512], name[64] = "";

	(void)snprintf(path, sizeof path, "%s/state/name", r->dir);
	ASSERT_TRUE(fd_read_file(AT_FDCWD, path, name, sizeof name) > 0);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		(void)snprintf(path, sizeof path, "/sys/fs/cgroup/%s/tombolo-%s", places[i], name);
		if (access(path, F_OK) == 0) fail_msg("%s is left", path);
	}
}

/* Whatever ran from the rig's programs, or in a mount namespace with its directories, names them here. */
static bool process_mentions(const char *pid, const char *what, const char *dir)
{
	char path[300], link[512];
	ssize_t n;

	(void)snprintf(path, sizeof path, "/proc/%s/%s", pid, what);
	n = readlink(path, link, sizeof link - 1);
	if (n < 0) return false;
	link[n] = '\0';
	return strncmp(link, dir, strlen(dir)) == 0;
}

static void check_no_process(const struct rig *r)
{
	char dir_name[128];
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	(void)snprintf(dir_name, sizeof dir_name, "%s/", r->dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
		if (process_mentions(entry->d_name, "exe", dir_name)) fail_msg("process %s of the rig is left", entry->d_name);
	}
	closedir(dir);
}

static void check_no_mount(const struct rig *r)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = fopen("/proc/self/mountinfo", "re");

	while (getline(&text, &size, f) > 0) {
		if (strstr(text, r->dir)) fail_msg("a mount is left: %s", text);
	}
	free(text);
	(void)fclose(f);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void rig_done(struct rig *r)
{
	if (r->serve) ASSERT_EQ(rig_stop(r), 0);
	hang_up(r);
	check_no_process(r);
	check_no_mount(r);
	check_no_cgroup(r);
	ASSERT_EQ(count_entries(r, "sandboxes"), 0);
	ASSERT_EQ(count_entries(r, "spare"), 0);
	ASSERT_EQ(count_entries(r, "run"), 0);
	ASSERT_EQ(count_entries(r, "trash"), 0);
	r->front_listen_fd = fd_close(r->front_listen_fd);
	ASSERT_OK(nftw(r->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS));
}
