/*
 * contain.c - theory of operation.
 *
 * The zygote calls contain_prepare() once. From then on its root is a tiny read-only tmpfs:
 *
 *     /dev      the device nodes and links that every sandbox gets, bound into each (one superblock for all)
 *     /empty    what hides directories of /proc
 *     /l /d     where a sandbox's lower tree and data tree are attached
 *     /m        where its root is put together
 *     /p /k     where its /proc and its /sys/fs/cgroup are, as soon as an agent is parked
 *
 * Each parked agent has a copy of that mount namespace (one mount) and calls contain() when it gets its
 * kit. Real root builds the tree first ("order B") and then enters the slot's user namespace, so that the
 * sandbox owns none of its mount, network, ipc, uts and cgroup namespaces: with a hole in the filter it could
 * still not mount.
 *
 * What the order guards against:
 *   - Layers are attached and then named by short paths. Linux 6.1 takes neither detached layers nor layers
 *     by descriptor, and /proc/self/mountinfo shows these strings to everybody inside: "/l" tells nothing.
 *   - Overlay keeps the mounter's credentials for all it does later. The upper tree is idmapped to the slot's
 *     range and knows no uid 0 of the host, so the mount is made with the slot's fsuid and fsgid - and,
 *     because that change drops the file capabilities, these are raised again. With uid 0 the mount "works",
 *     read-only.
 *   - pivot_root, not chroot: a chroot can be left, and it forbids user namespaces for ever.
 *   - The cgroup namespace comes from the clone, in the group for agents, else /proc/self/cgroup shows the
 * host's path.
 *   - The mm was made under the initial user namespace and is not dumpable, so nobody inside may trace pid 1
 *     or look into /proc/1, whatever capabilities he has in his own namespace.
 *   - The filter comes last: it forbids most of the calls above.
 */
#include "isolation/contain.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "isolation/machine.h"
#include "isolation/seccomp.h"

#define TTY_GID 5 /* group `tty` in the image's /etc/group */

/* ---- what hides of /proc ---- */

#define PROC "/p" /* where /proc is put together, before its sandbox is known */

enum mask_kind { HIDE_FILE, HIDE_DIR, READ_ONLY_DIR };

static const struct mask {
	enum mask_kind kind;
	const char *path;
} masks[] = {
#define MASK_FILE(name, why) {HIDE_FILE, PROC "/" name},
#define MASK_DIR(name, why)  {HIDE_DIR, PROC "/" name},
#define READ_ONLY(name, why) {READ_ONLY_DIR, PROC "/" name},
#include "isolation/proc_masks.def"
};

static uint32_t masks_present; /* a bit for each line of `masks`, set by contain_prepare() */
_Static_assert(ARRAY_LEN(masks) <= 32, "masks_present is too narrow");

static void masks_probe(void)
{
	auto_close int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (unsigned i = 0; i < ARRAY_LEN(masks); i++)
		if (faccessat(proc_fd, masks[i].path + strlen(PROC "/"), F_OK, 0) == 0)
			masks_present |= 1u << i;
}

static int mask_apply(const struct mask *m)
{
	const unsigned long locked = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;

	switch (m->kind) {
	case HIDE_FILE: return mount("/dev/null", m->path, NULL, MS_BIND, NULL);
	case HIDE_DIR: return mount("/empty", m->path, NULL, MS_BIND, NULL);
	case READ_ONLY_DIR:
		if (mount(m->path, m->path, NULL, MS_BIND, NULL) < 0) return -1;
		return mount(NULL, m->path, NULL, locked, NULL);
	}
	return -1;
}

/* ---- capabilities ---- */

/* What a process of the sandbox may hold beyond uid 0's name; all others are dropped. */
static uint64_t kept_caps(void)
{
#define BIT(cap) (UINT64_C(1) << (cap))
	return BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) | BIT(CAP_KILL) |
	       BIT(CAP_SETGID) | BIT(CAP_SETUID) | BIT(CAP_SETPCAP) | BIT(CAP_NET_BIND_SERVICE) |
	       BIT(CAP_SYS_CHROOT) | BIT(CAP_AUDIT_WRITE) | BIT(CAP_SETFCAP);
#undef BIT
}

struct caps {
	struct __user_cap_header_struct header;
	struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3];
};

static int caps_raise_permitted(struct err *e)
{
	struct caps c = {.header.version = _LINUX_CAPABILITY_VERSION_3};

	if (syscall(SYS_capget, &c.header, c.words) < 0) return err_set(e, -errno, "read capabilities");
	for (unsigned i = 0; i < ARRAY_LEN(c.words); i++)
		c.words[i].effective = c.words[i].permitted;
	if (syscall(SYS_capset, &c.header, c.words) < 0) return err_set(e, -errno, "raise capabilities");
	return 0;
}

/*
 * The bounding set is left full on purpose: under no_new_privs no exec gains a capability that is not
 * permitted now, and thirty prctl calls are saved.
 */
static int caps_drop(struct err *e)
{
	const uint64_t kept = kept_caps();
	struct caps c = {.header.version = _LINUX_CAPABILITY_VERSION_3};

	for (unsigned i = 0; i < ARRAY_LEN(c.words); i++)
		c.words[i].permitted = c.words[i].effective = (uint32_t)(kept >> (32 * i));
	if (syscall(SYS_capset, &c.header, c.words) < 0) return err_set(e, -errno, "drop capabilities");
	return 0;
}

/* ---- the steps ---- */

static int network_join(int netns_fd, struct err *e)
{
	if (setns(netns_fd, CLONE_NEWNET) < 0) return err_set(e, -errno, "enter the network namespace");
	return 0;
}

static int tree_attach(int tree_fd, const char *at, struct err *e)
{
	if (move_mount(tree_fd, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_set(e, -errno, "attach a tree at '%s'", at);
	return 0;
}

static int overlay_mount(uint32_t base_id, struct err *e)
{
	/*
	 * volatile: a sync inside, and the end of the sandbox, do not wait for the disk. Nothing in a sandbox
	 * outlives the host, so there is nobody to wait for; an upper directory that is used again needs its
	 * work/work/incompat removed.
	 */
	const char *layers = "lowerdir=/l,upperdir=/d/upper,workdir=/d/work,volatile";
	struct statvfs fs;
	int r;

	(void)setfsgid(base_id);
	(void)setfsuid(base_id);
	r = caps_raise_permitted(e);
	if (r < 0) return r;
	if (mount("overlay", "/m", "overlay", MS_NOSUID | MS_NODEV, layers) < 0)
		return err_set(e, -errno, "mount the overlay");
	(void)setfsuid(0);
	(void)setfsgid(0);
	/* An upper directory that the kernel could not use does not fail the mount. */
	if (statvfs("/m", &fs) < 0) return err_set(e, -errno, "look at the overlay");
	if (fs.f_flag & ST_RDONLY) return err_set(e, -EROFS, "the overlay came up read-only");
	return 0;
}

static int root_build(const struct contain_spec *spec, struct err *e)
{
	int r = tree_attach(spec->root_tree_fd, "/l", e);

	if (r == 0) r = tree_attach(spec->data_tree_fd, "/d", e);
	if (r == 0) r = overlay_mount(spec->base_id, e);
	if (r == 0 && spec->usr_tree_fd >= 0) r = tree_attach(spec->usr_tree_fd, "/m/usr", e);
	return r;
}

/* "prefix123" into OUT. Ours, because printf is half of what the agent would weigh. */
static void text_with_number(char *out, const char *prefix, uint32_t number)
{
	char digits[10];
	unsigned n = 0;
	size_t len = strlen(prefix);

	memcpy(out, prefix, len);
	do {
		digits[n++] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	while (n)
		out[len++] = digits[--n];
	out[len] = '\0';
}

/*
 * The terminals are made at birth and not at the first pty (docs/decisions/0003): a plain exec may run
 * `script`. /dev/shm is a directory of the sandbox's own overlay: a tmpfs would be one more superblock,
 * and each memory cgroup pays for every superblock there is.
 */
static int dev_build(uint32_t base_id, struct err *e)
{
	char options[64];

	/* Parsed in the initial user namespace, so the group is the slot's. */
	text_with_number(options, "newinstance,ptmxmode=0666,mode=620,gid=", base_id + TTY_GID);
	if (mount("/dev", "/m/dev", NULL, MS_BIND, NULL) < 0) return err_set(e, -errno, "bind /dev");
	if (mount("devpts", "/m/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, options) < 0)
		return err_set(e, -errno, "mount /dev/pts");
	if (mount("/m/run/shm", "/m/dev/shm", NULL, MS_BIND, NULL) < 0)
		return err_set(e, -errno, "bind /dev/shm");
	return 0;
}

static bool parked; /* contain_park() was called */

/* The pid namespace is all it depends on, and we were cloned into that. */
int contain_park(struct err *e)
{
	int r;

	if (mount("proc", PROC, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return err_set(e, -errno, "mount /proc");
	for (unsigned i = 0; i < ARRAY_LEN(masks); i++)
		if ((masks_present & (1u << i)) && mask_apply(&masks[i]) < 0)
			return err_set(e, -errno, "mask '%s'", masks[i].path);
	r = machine_park(PROC, e);
	parked = r == 0;
	return r;
}

static int proc_place(struct err *e)
{
	int r = parked ? 0 : contain_park(e);

	if (r < 0) return r;
	if (mount(PROC, "/m/proc", NULL, MS_MOVE, NULL) < 0) return err_set(e, -errno, "put /proc in place");
	/* An image without the mount point goes without. */
	if (mount(MACHINE_CGROUP_DIR, "/m/sys/fs/cgroup", NULL, MS_MOVE, NULL) < 0 && errno != ENOENT)
		return err_set(e, -errno, "put /sys/fs/cgroup in place");
	return 0;
}

/* The old root ends up on top of the new one, at the same place, and is taken off. */
static int root_enter(const char *root, struct err *e)
{
	if (chdir(root) < 0) return err_set(e, -errno, "enter '%s'", root);
	if (syscall(SYS_pivot_root, ".", ".") < 0) return err_set(e, -errno, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0) return err_set(e, -errno, "let go of the old root");
	if (chdir("/") < 0) return err_set(e, -errno, "enter the new root");
	return 0;
}

static int names_set(const struct contain_spec *spec, struct err *e)
{
	size_t len = MIN(strlen(spec->run), (size_t)64);

	if (sethostname(CONTAIN_HOST_NAME, strlen(CONTAIN_HOST_NAME)) < 0)
		return err_set(e, -errno, "set the host name");
	if (setdomainname(spec->run, len) < 0) return err_set(e, -errno, "set the domain name");
	return 0;
}

static int user_become(int userns_fd, struct err *e)
{
	if (setns(userns_fd, CLONE_NEWUSER) < 0) return err_set(e, -errno, "enter the user namespace");
	if (setgroups(0, NULL) < 0) return err_set(e, -errno, "drop groups");
	if (setresgid(0, 0, 0) < 0) return err_set(e, -errno, "become group 0 of the sandbox");
	if (setresuid(0, 0, 0) < 0) return err_set(e, -errno, "become user 0 of the sandbox");
	/* The session keyring came down from whoever started the server. A kernel without keys is fine. */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
		return err_set(e, -errno, "take a keyring of our own");
	return 0;
}

static int privileges_lock(struct err *e)
{
	/* setresuid made us undumpable only if fs.suid_dumpable says so: say it ourselves. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) return err_set(e, -errno, "become undumpable");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return err_set(e, -errno, "set no_new_privs");
	return caps_drop(e);
}

int contain(const struct contain_spec *spec, struct err *e)
{
	int r = network_join(spec->netns_fd, e);

	if (r == 0) r = root_build(spec, e);
	if (r == 0) r = dev_build(spec->base_id, e);
	if (r == 0) r = proc_place(e);
	if (r == 0) r = root_enter("/m", e);
	if (r == 0) r = names_set(spec, e);
	if (r == 0) r = user_become(spec->userns_fd, e); /* the host's power ends here */
	if (r == 0) r = privileges_lock(e);
	if (r == 0) r = seccomp_load(spec->filter, e); /* last: it forbids the calls above */
	return r;
}

/* ---- once, in the zygote ---- */

static const char *const template_dirs[] = {"dev", "dev/pts", "dev/shm", "empty", "l", "d", "m", "p"};

static const struct {
	const char *name;
	unsigned minor_of_mem; /* major 1 */
} template_nodes[] = {
	{"dev/null", 3}, {"dev/zero", 5}, {"dev/full", 7}, {"dev/random", 8}, {"dev/urandom", 9}};

static const struct {
	const char *name, *target;
} template_links[] = {
	{"dev/ptmx", "pts/ptmx"},          {"dev/fd", "/proc/self/fd"},
	{"dev/stdin", "/proc/self/fd/0"},  {"dev/stdout", "/proc/self/fd/1"},
	{"dev/stderr", "/proc/self/fd/2"},
};

static int template_fill(struct err *e)
{
	for (unsigned i = 0; i < ARRAY_LEN(template_dirs); i++)
		if (mkdir(template_dirs[i], 0755) < 0)
			return err_set(e, -errno, "make '%s'", template_dirs[i]);
	for (unsigned i = 0; i < ARRAY_LEN(template_nodes); i++)
		if (mknod(template_nodes[i].name, S_IFCHR | 0666,
			  makedev(1, template_nodes[i].minor_of_mem)) < 0)
			return err_set(e, -errno, "make '%s'", template_nodes[i].name);
	if (mknod("dev/tty", S_IFCHR | 0666, makedev(5, 0)) < 0) return err_set(e, -errno, "make 'dev/tty'");
	for (unsigned i = 0; i < ARRAY_LEN(template_links); i++)
		if (symlink(template_links[i].target, template_links[i].name) < 0)
			return err_set(e, -errno, "make '%s'", template_links[i].name);
	return 0;
}

/* Mounted over /proc: a directory that is there on every host, and whose cover nobody but us sees. */
static int template_mount(struct err *e)
{
	const unsigned long locked = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC;
	int r;

	if (unshare(CLONE_NEWNS) < 0) return err_set(e, -errno, "make a mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_set(e, -errno, "make mounts private");
	if (mount("sandbox", "/proc", "tmpfs", MS_NOSUID | MS_NOEXEC, "size=256m,nr_inodes=0,mode=0755") < 0)
		return err_set(e, -errno, "mount the template");
	if (chdir("/proc") < 0) return err_set(e, -errno, "enter the template");
	r = template_fill(e);
	if (r == 0) r = machine_template_make(e);
	if (r == 0) r = root_enter(".", e);
	if (r < 0) return r;
	/* Binds of /dev and /empty inherit this; the one bind that was made before does not (machine.c). */
	if (mount(NULL, "/", NULL, locked, NULL) < 0)
		return err_set(e, -errno, "make the template read-only");
	return 0;
}

/* Never raised: the server may itself stand under lower limits. */
static int limits_lower(struct err *e)
{
	static const struct {
		__rlimit_resource_t which;
		rlim_t soft, hard;
	} wanted[] = {
		{RLIMIT_CORE, 0, 0},
		{RLIMIT_NOFILE, 4096, 65536},
		{RLIMIT_MEMLOCK, 8 << 20, 8 << 20},
		{RLIMIT_RTPRIO, 0, 0},
	};

	for (unsigned i = 0; i < ARRAY_LEN(wanted); i++) {
		struct rlimit now, then;

		if (getrlimit(wanted[i].which, &now) < 0) return err_set(e, -errno, "read a resource limit");
		then.rlim_max = MIN(now.rlim_max, wanted[i].hard);
		then.rlim_cur = MIN(then.rlim_max, wanted[i].soft);
		if (setrlimit(wanted[i].which, &then) < 0) return err_set(e, -errno, "set a resource limit");
	}
	return 0;
}

int contain_prepare(struct err *e)
{
	int r;

	masks_probe();
	machine_remember();
	(void)umask(0);
	r = template_mount(e);
	(void)umask(022);
	if (r == 0) r = limits_lower(e);
	return r;
}
