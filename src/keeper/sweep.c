#include "keeper/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "isolation/cgroup.h"
#include "keeper/blocks.h"
#include "keeper/bond.h"
#include "keeper/ending.h"
#include "keeper/parts.h"
#include "keeper/population.h"
#include "keeper/process.h"
#include "keeper/sandbox.h"
#include "keeper/trash.h"

#define CGROUP_TRIES   100
#define CGROUP_WAIT_US 5000
#define ADOPT_WAIT_MS  20000 /* nobody else waits for it */

static DIR *open_dir(int dir_fd)
{
	auto_close int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir) (void)take_fd(&fd);
	return dir;
}

/* A descriptor that is connected to the agent of REC and nobody else, or -errno. */
static int connect_agent(const struct state *state, const struct record *rec)
{
	auto_close int fd = state_socket_connect(state, rec->base_id);
	struct ucred peer;
	socklen_t len = sizeof peer;

	if (fd < 0) return take_fd(&fd);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0) return -errno;
	if (peer.pid != rec->pid || peer.uid != rec->base_id) return -EPERM;
	return take_fd(&fd);
}

static int read_record(const struct state *state, const char *run, struct record *ret, struct err *e)
{
	auto_close int dir_fd =
		openat(state->sandboxes_fd, run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (dir_fd < 0) return err_set(e, -errno, "open the sandbox's directory");
	r = record_read(dir_fd, ret, e);
	if (r == 0 && strcmp(ret->run, run) != 0) r = err_say(e, -EINVAL, "the record is of another sandbox");
	return r;
}

static void on_adopt_too_slow(void *ctx)
{
	ending_begin(ctx, GONE_DIED, "its agent does not answer");
}

/*
 * HAS_SLOT: its ids are ours. PIDFD -1: its agent is dead. CONNECTED_FD: to the agent; -1: there is none to
 * talk to. Takes both descriptors. What cannot live on ends.
 */
static void adopt(struct keeper *k, const struct record *rec, bool has_slot, int pidfd, int connected_fd)
{
	struct sandbox *s = sandbox_new(k, rec->id, SANDBOX_ADOPTING);

	s->record = *rec;
	population_add(k, s);
	if (rec->asleep) {
		ending_rest(s);
		return;
	}
	s->keeps_tree = rec->id[0] && k->settings->sleeps;
	s->has_slot = has_slot;
	s->dead = pidfd < 0;
	if (pidfd >= 0) bond_hold_agent(s, pidfd);
	if (connected_fd >= 0) bond_hold(s, connected_fd);
	if (pidfd < 0 || connected_fd < 0 || !has_slot || bond_greet(rec, connected_fd, ROLE_KEEPER) < 0)
		ending_begin(s, GONE_DIED, "the server was restarted without it");
	else sandbox_set_timer(s, on_adopt_too_slow, ADOPT_WAIT_MS);
}

static void sweep_sandbox(struct keeper *k, const char *run)
{
	struct err e = ERR_NONE;
	struct record rec;
	bool has_slot;
	int pidfd = -1, fd = -1;

	if (read_record(&k->state, run, &rec, &e) < 0) {
		log_event(LOG_WARN, "sandbox_without_record", "run", run, "why", e.text, NULL);
		(void)trash_put(k->trash, k->state.sandboxes_fd, run);
		return;
	}
	if (rec.asleep) {
		adopt(k, &rec, false, -1, -1);
		return;
	}
	has_slot = blocks_take_this(k->blocks, rec.base_id) == 0;
	/* Of another boot: the pid is somebody else's by now. */
	if (strcmp(rec.boot, k->boot) == 0) pidfd = process_open(rec.pid, rec.pid_start);
	if (pidfd >= 0) fd = connect_agent(&k->state, &rec);
	adopt(k, &rec, has_slot, pidfd < 0 ? -1 : pidfd, fd < 0 ? -1 : fd);
}

/* ---- sockets without a sandbox ---- */

static void each_compare(struct sandbox *s, void *ctx)
{
	uint32_t *base_id = ctx;

	if (s->record.base_id == *base_id) *base_id = 0;
}

/* Whoever listens there as the slot's uid is an agent whose record was lost. */
static void kill_listener(const struct state *state, uint32_t base_id)
{
	auto_close int fd = state_socket_connect(state, base_id);
	struct ucred peer;
	socklen_t len = sizeof peer;

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.uid != base_id ||
	    peer.pid <= 1)
		return;
	auto_close int pidfd = process_open(peer.pid, process_start(peer.pid));
	if (pidfd < 0) return;
	log_event(LOG_WARN, "stray_agent_killed", "pid", LOG_U(peer.pid), NULL);
	process_kill(pidfd);
}

static void sweep_socket(struct keeper *k, const char *name)
{
	uint32_t base_id = 0, unknown;

	(void)sscanf(name, "%8x.sock", &base_id);
	unknown = base_id;
	if (base_id) population_each(k, each_compare, &unknown);
	if (base_id && !unknown) return;
	if (base_id) kill_listener(&k->state, base_id);
	(void)fd_remove(k->state.run_fd, name, 0);
}

/* ---- cgroups without a sandbox ---- */

struct run_search {
	const char *run;
	bool found;
};

static void each_compare_run(struct sandbox *s, void *ctx)
{
	struct run_search *search = ctx;

	if (strcmp(s->record.run, search->run) == 0) search->found = true;
}

/* Before the loop runs; v1 has no event for "the last one in it is dead". */
static void sweep_cgroup(const char *run, void *ctx)
{
	struct run_search search = {.run = run};
	struct keeper *k = ctx;
	int r = -EBUSY;

	population_each(k, each_compare_run, &search);
	if (search.found) return;
	for (int i = 0; i < CGROUP_TRIES && r < 0 && r != -ENOENT; i++) {
		if (i) (void)usleep(CGROUP_WAIT_US);
		r = cgroup_remove(k->cgroups, run);
	}
	if (r < 0 && r != -ENOENT) log_event(LOG_WARN, "stray_cgroup_stays", "run", run, NULL);
}

static void sweep_dir(struct keeper *k, int dir_fd, void (*each)(struct keeper *k, const char *name))
{
	struct dirent *entry;
	DIR *dir = open_dir(dir_fd);

	if (!dir) return;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] != '.') each(k, entry->d_name);
	}
	closedir(dir);
}

int sweep(struct keeper *k, struct err *e)
{
	int r;

	trash_put_all(k->trash, k->state.spare_fd);
	sweep_dir(k, k->state.sandboxes_fd, sweep_sandbox);
	sweep_dir(k, k->state.run_fd, sweep_socket);
	r = cgroups_each(k->cgroups, sweep_cgroup, k);
	return r < 0 ? err_set(e, r, "look for left-over cgroups") : 0;
}
