#include "agent/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

struct leaf_path {
	char text[40];
};

static struct leaf_path leaf_file(const struct tree *t, const char *file)
{
	struct leaf_path p;

	(void)snprintf(p.text, sizeof p.text, file ? "x%u/%s" : "x%u", t->seq, file);
	return p;
}

/* ---- how many there are ---- */

static void (*on_use)(bool in_use);
static unsigned open_trees;

void trees_init(void (*use)(bool in_use))
{
	on_use = use;
}

static void count_opened(void)
{
	if (!open_trees++) on_use(true);
}

static void count_removed(void)
{
	if (!--open_trees) on_use(false);
}

/* ---- a leaf's life ---- */

#define SPARES_MAX 32 /* as many as often run at once; they go when the sandbox falls idle */

static struct tree spares[SPARES_MAX];
static unsigned spare_count;

static void leaf_close(struct tree *t)
{
	(void)unlinkat(limits_dir(), leaf_file(t, NULL).text, AT_REMOVEDIR);
	fd_close(t->procs_fd);
	fd_close(t->count_fd);
	fd_close(t->events_fd);
}

static int leaf_make(struct tree *ret, struct err *e)
{
	static uint32_t last_seq;
	struct tree t = {.seq = ++last_seq, .procs_fd = -1, .count_fd = -1, .events_fd = -1};

	if (mkdirat(limits_dir(), leaf_file(&t, NULL).text, 0755) < 0) {
		return err_set(e, -errno, "make a control group for the command");
	}
	t.procs_fd = openat(limits_dir(), leaf_file(&t, limits_entry()).text, O_WRONLY | O_CLOEXEC);
	if (t.procs_fd < 0) {
		int r = err_set(e, -errno, "open the control group of the command");

		leaf_close(&t);
		return r;
	}
	t.count_fd = openat(limits_dir(), leaf_file(&t, "pids.current").text, O_RDONLY | O_CLOEXEC);
	t.events_fd = openat(limits_dir(), leaf_file(&t, "pids.events").text, O_RDONLY | O_CLOEXEC);
	*ret = t;
	return 0;
}

int tree_open(struct tree *t, int attach_fds[LIMITS_ATTACH_MAX], size_t *ret_count, struct err *e)
{
	struct tree leaf;
	int r = 0;

	if (spare_count) leaf = spares[--spare_count];
	else r = leaf_make(&leaf, e);
	if (r < 0) return r;
	*ret_count = limits_attach_order(leaf.procs_fd, attach_fds);
	*t = leaf;
	count_opened();
	return 0;
}

/* Whether the leaf could be given back. */
static bool leaf_give(struct tree *t)
{
	char count[2] = "";

	if (t->count_fd < 0) {
		if (unlinkat(limits_dir(), leaf_file(t, NULL).text, AT_REMOVEDIR) < 0 && errno != ENOENT)
			return false;
		fd_close(t->procs_fd);
		return true;
	}
	/* Counts the dead too until they are reaped. An error means that the keeper took it all away: nobody
	 * is left. */
	if (pread(t->count_fd, count, 2, 0) == 2 && (count[0] != '0' || count[1] != '\n')) return false;
	if (spare_count < SPARES_MAX)
		spares[spare_count++] = (struct tree){t->seq, t->procs_fd, t->count_fd, t->events_fd, 0};
	else leaf_close(t);
	return true;
}

bool tree_remove(struct tree *t)
{
	if (!t->seq) return true;
	if (!leaf_give(t)) return false;
	t->seq = 0;
	count_removed();
	return true;
}

void trees_forget(void)
{
	while (spare_count)
		leaf_close(&spares[--spare_count]);
}

uint64_t tree_forks_refused(const struct tree *t)
{
	char text[64];
	ssize_t n = t->seq && t->events_fd >= 0 ? pread(t->events_fd, text, sizeof text - 1, 0) : -1;

	if (n <= 0) return limits_forks_refused();
	text[n] = '\0';
	return limits_number(text, "max");
}

uint64_t tree_cpu_us(const struct tree *t)
{
	char text[256];

	/* v1 has no processor time in the hierarchy of the leaves. */
	if (!t->seq || t->count_fd >= 0) return 0;
	return fd_read_file(limits_dir(), leaf_file(t, "cpu.stat").text, text, sizeof text) > 0
		       ? limits_number(text, "usage_usec")
		       : 0;
}

/* ---- who is in it ---- */

/* Calls kill(SIGNO) for each process of the tree (0 only counts them), or of its part that is in process
 * group GROUP. How many there were; -errno: not readable. */
static int each_process(const struct tree *t, int signo, pid_t group)
{
	auto_close int fd = openat(limits_dir(), leaf_file(t, "cgroup.procs").text, O_RDONLY | O_CLOEXEC);
	char text[1024];
	pid_t pid = 0;
	int count = 0;
	ssize_t n;

	if (fd < 0) return -errno;
	while ((n = read(fd, text, sizeof text)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (text[i] >= '0' && text[i] <= '9') {
				pid = pid * 10 + (text[i] - '0');
				continue;
			}
			/* 0: not in our pid namespace; 1: ourselves. Neither can be here. */
			if (pid > 1 && (!group || getpgid(pid) == group)) {
				count++;
				if (signo) (void)kill(pid, signo);
			}
			pid = 0;
		}
	}
	return n < 0 ? -errno : count;
}

bool tree_group_is_gone(const struct tree *t)
{
	if (t->leader > 1 && kill(-t->leader, 0) < 0 && errno == ESRCH) return true;
	return !t->seq || each_process(t, 0, t->leader) == 0;
}

unsigned tree_count(const struct tree *t)
{
	int n = t->seq ? each_process(t, 0, 0) : 0;

	return n > 0 ? (unsigned)n : 0;
}

void tree_signal(const struct tree *t, int signo)
{
	if (!t->seq) return;
	/* All at once where the kernel can (v2): nothing forks away between two kills. */
	if (signo == SIGKILL && fd_write_file(limits_dir(), leaf_file(t, "cgroup.kill").text, "1") == 0)
		return;
	if (each_process(t, signo, 0) < 0 && t->leader > 1) (void)kill(-t->leader, signo);
}
