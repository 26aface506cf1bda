/*
 * privilege.c - asks the host by doing: one sandbox is made like all others will be, from an empty image, and
 * ends before anything runs in it. What cannot be told from the failing step's errno is asked before (root,
 * capabilities).
 */
#include "isolation/privilege.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "isolation/contain.h"
#include "isolation/slot.h"
#include "isolation/tree.h"

/* A range far above what useradd hands out; the trial's files are gone before anybody could meet them. */
#define TRIAL_BASE_ID 0x7fff0000u

static const struct {
	unsigned number;
	const char *name;
} capabilities[] = {
	{CAP_CHOWN, "CAP_CHOWN"},         {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
	{CAP_FOWNER, "CAP_FOWNER"},       {CAP_FSETID, "CAP_FSETID"},
	{CAP_KILL, "CAP_KILL"},           {CAP_MKNOD, "CAP_MKNOD"},
	{CAP_NET_ADMIN, "CAP_NET_ADMIN"}, {CAP_SETFCAP, "CAP_SETFCAP"},
	{CAP_SETGID, "CAP_SETGID"},       {CAP_SETUID, "CAP_SETUID"},
	{CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}, {CAP_SYS_CHROOT, "CAP_SYS_CHROOT"},
};

static int capabilities_check(struct err *e)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3];

	if (geteuid() != 0) return err_say(e, -EPERM, "sandboxes are made by root: start the server as root");
	if (syscall(SYS_capget, &header, words) < 0) return err_set(e, -errno, "read capabilities");
	for (unsigned i = 0; i < ARRAY_LEN(capabilities); i++)
		if (!(words[capabilities[i].number / 32].effective & (1u << capabilities[i].number % 32)))
			return err_say(e, -EPERM, "root lacks %s here: run outside of a restricted container",
				       capabilities[i].name);
	return 0;
}

/* ---- the trial ---- */

struct trial {
	char dir[PATH_LIMIT];
	struct slot_kit kit;
	int data_tree_fd;
};

static int trial_dirs_make(struct trial *t, struct err *e)
{
	static const char *const parts[] = {"root",         "root/dev", "root/proc",  "root/run",
					    "root/run/shm", "data",     "data/upper", "data/work"};
	auto_close int fd = -1;

	if (!mkdtemp(t->dir)) return err_set(e, -errno, "make '%s'", t->dir);
	fd = open(t->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (unsigned i = 0; i < ARRAY_LEN(parts); i++)
		if (mkdirat(fd, parts[i], 0755) < 0)
			return err_set(e, -errno, "make '%s/%s'", t->dir, parts[i]);
	return 0;
}

static int trial_trees_make(struct trial *t, struct err *e)
{
	auto_close int dir_fd = open(t->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int root_fd = openat(dir_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int data_fd = openat(dir_fd, "data", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = slot_kit_make(TRIAL_BASE_ID, &(struct image){.root_fd = root_fd, .usr_fd = -1}, &t->kit, e);

	if (r == -ENOSPC) return err_add(e, "is user.max_user_namespaces too low?"), r;
	return r < 0 ? r : data_tree_open(data_fd, t->kit.userns_fd, &t->data_tree_fd, e);
}

/* The first child is the zygote, its child pid 1 of the sandbox. Both report through SHARED. */
static int trial_contain(const struct trial *t, struct err *shared)
{
	static struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog filter = {.len = 1, .filter = &allow};
	const struct contain_spec spec = {
		.run = "trial",
		.base_id = t->kit.base_id,
		.userns_fd = t->kit.userns_fd,
		.netns_fd = t->kit.netns_fd,
		.root_tree_fd = t->kit.root_tree_fd,
		.usr_tree_fd = -1,
		.data_tree_fd = t->data_tree_fd,
		.filter = &filter,
	};
	int status;
	pid_t pid;

	if (contain_prepare(shared) < 0) return 1;
	pid = (pid_t)syscall(SYS_clone, CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | SIGCHLD, 0,
			     0, 0, 0);
	if (pid < 0) return (void)err_set(shared, -errno, "make mount, pid, ipc and uts namespaces"), 1;
	if (pid == 0) _exit(contain(&spec, shared) < 0);
	if (waitpid(pid, &status, 0) < 0)
		return (void)err_set(shared, -errno, "wait for the trial sandbox"), 1;
	return status != 0;
}

static int trial_run(const struct trial *t, struct err *e)
{
	struct err *shared =
		mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0, r = 0;
	pid_t pid;

	if (shared == MAP_FAILED) return err_set(e, -errno, "map a page");
	pid = fork();
	if (pid == 0) _exit(trial_contain(t, shared));
	if (pid < 0 || waitpid(pid, &status, 0) < 0) r = err_set(e, -errno, "start a trial sandbox");
	else if (shared->code < 0) r = err_say(e, shared->code, "%s", shared->text);
	else if (status != 0) r = err_say(e, -EIO, "the trial sandbox ended without a word");
	(void)munmap(shared, sizeof *shared);
	return r;
}

static void trial_done(struct trial *t)
{
	slot_kit_done(&t->kit);
	(void)fd_close(t->data_tree_fd);
	(void)tree_delete(t->dir);
}

int privilege_check(const char *state_dir, struct err *e)
{
	struct trial t = {.kit = SLOT_KIT_EMPTY, .data_tree_fd = -1};
	int r = capabilities_check(e);

	if (r < 0) return r;
	if (snprintf(t.dir, sizeof t.dir, "%s/.trial-XXXXXX", state_dir) >= PATH_LIMIT)
		return err_set(e, -ENAMETOOLONG, "'%s'", state_dir);
	r = trial_dirs_make(&t, e);
	if (r == 0) r = trial_trees_make(&t, e);
	if (r == 0) r = trial_run(&t, e);
	trial_done(&t);
	if (r < 0) (void)err_add(e, "this host cannot make a sandbox");
	return r;
}
