#include "rig_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "unit.h"

struct rig rig;

const char *rig_missing(void)
{
	static struct err e;
	struct cgroups *cgroups;
	char name[32];

	if (geteuid() != 0) return "needs root";
	(void)snprintf(name, sizeof name, "rig-%d", (int)getpid());
	if (cgroups_open(name, &cgroups, &e) < 0) return e.text;
	(void)cgroups_free(cgroups);
	return NULL;
}

struct link *rig_front(void)
{
	return rig.front;
}

pid_t rig_agent(void)
{
	return rig.agent;
}

const char *rig_root(void)
{
	return rig.root;
}

DIR *rig_groups_open(void)
{
	const struct limits none = {0};
	struct err e = ERR_NONE;
	int fds[3];

	/* What is there is taken over; only its descriptor is wanted. */
	if (cgroup_make(rig.cgroups, RIG_RUN, &none, BASE_ID, fds, &e) < 0) fail_msg("%s", e.text);
	for (size_t i = 1; i < 3; i++)
		fd_close(fds[i]);
	return fdopendir(fds[0]);
}

unsigned rig_limits_wanted(void)
{
	return rig.limits_wanted;
}

unsigned rig_limits_idle(void)
{
	return rig.limits_idle;
}

void rig_refuse_limits(const char *text)
{
	rig.limits_refusal = text;
}

const char *rig_cookie(void)
{
	return COOKIE;
}

/* ---- begin and end ---- */

static void start_zygote(void)
{
	int pair[2];

	ASSERT_OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	rig.zygote = fork();
	if (rig.zygote == 0) {
		char *argv[] = {AGENT_PROGRAM, "zygote", "cgroup-ns", NULL}, *env[] = {NULL};
		int home = open("/dev/null", O_WRONLY);

		if (dup2(pair[1], 3) < 0 || fd_set_cloexec(3, false) < 0 || dup2(home, 4) < 0) _exit(126);
		execve(AGENT_PROGRAM, argv, env);
		_exit(127);
	}
	fd_close(pair[1]);
	rig.control = link_new(pair[0]);
}

static bool is_spawned(const struct run *r)
{
	(void)r;
	return rig.spawned != 1;
}

static bool is_bound(const struct run *r)
{
	(void)r;
	return rig.bound != 1 || !rig.bond;
}

static void spawn_parked(void)
{
	int pair[2];

	ASSERT_OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	rig.spawned = 1;
	ASSERT_OK(LINK_SEND(rig.control, 0, spawn, &(struct msg_spawn){}, &pair[1], 1));
	fd_close(pair[1]);
	rig.bond = link_new(pair[0]);
	rig_until(is_spawned, NULL);
	ASSERT_TRUE(rig.spawned > 1);
	rig.agent = rig.spawned;
	(void)snprintf(rig.root, sizeof rig.root, "/proc/%d/root", (int)rig.agent);
}

static int make_data_tree(struct err *e)
{
	char path[128];
	int tree = -1;

	(void)snprintf(path, sizeof path, "%s/data", rig.dir);
	ASSERT_OK(mkdir(path, 0755));
	auto_close int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ASSERT_OK(mkdirat(dir, "upper", 0755));
	ASSERT_OK(mkdirat(dir, "work", 0755));
	if (data_tree_open(dir, rig.kit.userns_fd, &tree, e) < 0) fail_msg("%s", e->text);
	return tree;
}

static int make_listener(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(rig.socket, sizeof rig.socket, "%s/sock", rig.dir);
	memcpy(at.sun_path, rig.socket, sizeof rig.socket);
	ASSERT_OK(bind(fd, (struct sockaddr *)&at, sizeof at));
	return fd;
}

static void bind_agent(struct err *e)
{
	struct msg_bind m = {
		.run = wire_text_of(RIG_RUN), .base_id = BASE_ID, .cookie = wire_text_of(COOKIE)};
	int pair[2], fds[BIND_FDS];

	ASSERT_OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	rig.front = link_new(pair[0]);
	fds[BIND_USERNS] = rig.kit.userns_fd;
	fds[BIND_NETNS] = rig.kit.netns_fd;
	fds[BIND_ROOT_TREE] = rig.kit.root_tree_fd;
	fds[BIND_USR_TREE] = rig.kit.usr_tree_fd;
	fds[BIND_DATA_TREE] = make_data_tree(e);
	fds[BIND_LISTEN] = make_listener();
	fds[BIND_FRONT] = pair[1];
	rig.bound = 1;
	ASSERT_OK(LINK_SEND(rig.bond, 0, bind, &m, fds, BIND_FDS));
	for (size_t i = BIND_DATA_TREE; i < BIND_FDS; i++)
		fd_close(fds[i]);
	rig_until(is_bound, NULL);
	if (rig.bound) fail_msg("bound: %d, %s", rig.bound, rig.bound_text);
}

void rig_open(void)
{
	struct err e = ERR_NONE;
	char path[96];

	(void)snprintf(rig.dir, sizeof rig.dir, "/tmp/agent-rig-%d", (int)getpid());
	ASSERT_OK(mkdir(rig.dir, 0700));
	(void)snprintf(path, sizeof path, "rig-%d", (int)getpid());
	if (cgroups_open(path, &rig.cgroups, &e) < 0) fail_msg("%s", e.text);
	(void)snprintf(path, sizeof path, "%s/image", rig.dir);
	if (image_host_open(path, &rig.image, &e) < 0) fail_msg("%s", e.text);
	rig.kit = SLOT_KIT_EMPTY;
	if (slot_kit_make(BASE_ID, &rig.image, &rig.kit, &e) < 0) fail_msg("%s", e.text);
	start_zygote();
	spawn_parked();
	bind_agent(&e);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)kind;
	(void)where;
	return remove(path);
}

/* The hierarchies may hold a dying process for some more moments. */
static void remove_groups(void)
{
	uint64_t until = clock_ms() + 5000;

	while (cgroup_remove(rig.cgroups, RIG_RUN) == -EBUSY && clock_ms() < until)
		(void)poll(NULL, 0, 5);
	rig.cgroups = cgroups_free(rig.cgroups);
}

void rig_close(void)
{
	if (rig.agent) (void)kill(rig.agent, SIGKILL);
	rig.front = link_free(rig.front);
	rig.bond = link_free(rig.bond);
	rig.control = link_free(rig.control);
	while (wait(NULL) > 0)
		continue;
	slot_kit_done(&rig.kit);
	remove_groups();
	(void)nftw(rig.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* ---- the tests' main() ---- */

int rig_setup(void **state)
{
	(void)state;
	rig_open();
	return 0;
}

int rig_teardown(void **state)
{
	(void)state;
	rig_close();
	return 0;
}

int rig_skip(void)
{
	(void)fprintf(stderr, "skipped: %s\n", rig_missing());
	return 77;
}

/* ---- looking at the host ---- */

static bool has_argument(const char *pid, const char *argument)
{
	char path[300], line[4096];
	ssize_t len;

	(void)snprintf(path, sizeof path, "/proc/%s/cmdline", pid);
	len = fd_read_file(AT_FDCWD, path, line, sizeof line);
	for (char *at = line; len > 0 && at < line + len; at += strlen(at) + 1) {
		if (strcmp(at, argument) == 0) return true;
	}
	return false;
}

unsigned rig_count_processes(const char *argument)
{
	DIR *dir = opendir("/proc");
	unsigned count = 0;
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		if (d->d_name[0] > '0' && d->d_name[0] <= '9' && has_argument(d->d_name, argument)) count++;
	}
	if (dir) closedir(dir);
	return count;
}
