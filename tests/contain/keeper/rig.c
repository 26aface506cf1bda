#include "rig_private.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "unit.h"

#define RIGS_MAX 8

static pid_t running[RIGS_MAX]; /* servers; a test that failed leaves its own to the end of the program */

void rig_wait_for_input(int fd, const char *what)
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
	struct msghdr msg = {.msg_iov = &io,
			     .msg_iovlen = 1,
			     .msg_control = control.room,
			     .msg_controllen = sizeof control.room};
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
	for (off_t at = 0; at < st.st_size;)
		ASSERT_TRUE(sendfile(out, in, &at, (size_t)(st.st_size - at)) > 0);
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
	while (*options)
		argv[argc++] = *options++;
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
	while (len < size - 1 && (n = read(ends[0], text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	fd_close(ends[0]);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
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
	rig_wait_for_input(r->front_fd, "the front's end");
	rig_hang_up(r);
	ASSERT_EQ(waitpid(r->serve, &status, 0), r->serve);
	rig_forget_serve(r);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- its end ---- */

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
	rig_hang_up(r);
	rig_check_nothing_left(r);
	r->front_listen_fd = fd_close(r->front_listen_fd);
	ASSERT_OK(nftw(r->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS));
}
