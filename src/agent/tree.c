#include "agent/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "agent/limits.h"
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

int tree_open(struct tree *t, int attach_fds[SPAWN_ATTACH_MAX], size_t *ret_count, int *ret_own, struct err *e)
{
	static uint32_t last_seq;
	struct tree made = {.seq = ++last_seq};
	int own;

	if (mkdirat(limits_dir(), leaf_file(&made, NULL).text, 0755) < 0) {
		return err_set(e, -errno, "make a control group for the command");
	}
	own = openat(limits_dir(), leaf_file(&made, "cgroup.procs").text, O_WRONLY | O_CLOEXEC);
	if (own < 0) {
		int r = err_set(e, -errno, "open the control group of the command");

		(void)tree_remove(&made);
		return r;
	}
	*ret_count = limits_attach_order(own, attach_fds);
	*ret_own = own;
	*t = made;
	limits_use();
	return 0;
}

bool tree_remove(struct tree *t)
{
	if (!t->seq) return true;
	if (unlinkat(limits_dir(), leaf_file(t, NULL).text, AT_REMOVEDIR) < 0 && errno != ENOENT) return false;
	t->seq = 0;
	limits_unuse();
	return true;
}

/* Calls kill(SIGNO) for each process of the tree (0 only counts them). How many there were; -errno: not readable. */
static int each_process(const struct tree *t, int signo)
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
			if (pid > 1) {
				count++;
				if (signo) (void)kill(pid, signo);
			}
			pid = 0;
		}
	}
	return n < 0 ? -errno : count;
}

unsigned tree_count(const struct tree *t)
{
	int n = t->seq ? each_process(t, 0) : 0;

	return n > 0 ? (unsigned)n : 0;
}

void tree_signal(const struct tree *t, int signo)
{
	if (!t->seq) return;
	/* All at once where the kernel can (v2): nothing forks away between two kills. */
	if (signo == SIGKILL && fd_write_file(limits_dir(), leaf_file(t, "cgroup.kill").text, "1") == 0) return;
	if (each_process(t, signo) < 0 && t->leader > 1) (void)kill(-t->leader, signo);
}
