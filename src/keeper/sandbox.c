#include "keeper/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "wire/link.h"

void sandbox_become(struct sandbox *s, enum sandbox_state state)
{
	s->keeper->in_state[s->state]--;
	s->state = state;
	s->keeper->in_state[state]++;
}

void sandbox_set_timer(struct sandbox *s, void (*on_due)(void *ctx), uint64_t ms)
{
	timer_free(s->timer);
	s->timer = timer_new(s->keeper->loop, on_due, s);
	timer_set(s->timer, ms);
}

void sandbox_clear_timer(struct sandbox *s)
{
	s->timer = timer_free(s->timer);
}

void sandbox_init(struct sandbox *s)
{
	s->has_slot = s->slow = s->silent = s->wakes = false;
	s->again = NULL;
	s->clear_tries = 0;
	s->slot = (struct slot){.kit = SLOT_KIT_EMPTY, .data_tree_fd = -1, .disk_fd = -1};
	s->pidfd = s->listen_fd = s->front_fds[0] = s->front_fds[1] = -1;
	s->limits = (struct limits_of){.phase = LIMITS_NONE};
	for (size_t i = 0; i < ARRAY_LEN(s->limits.fds); i++)
		s->limits.fds[i] = -1;
	s->dead = true;
}

struct sandbox *sandbox_new(struct keeper *k, const char *id, enum sandbox_state state)
{
	struct sandbox *s = mem_new(sizeof *s);

	s->keeper = k;
	s->state = state;
	sandbox_init(s);
	(void)snprintf(s->record.id, sizeof s->record.id, "%s", id);
	k->in_state[state]++;
	return s;
}

int sandbox_open_dir(const struct sandbox *s)
{
	int fd = openat(s->keeper->state.sandboxes_fd, s->record.run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

void sandbox_release(struct sandbox *s)
{
	sandbox_clear_timer(s);
	s->pid_watch = watch_free(s->pid_watch);
	s->bond_watch = watch_free(s->bond_watch);
	s->bond = link_free(s->bond);
	s->pidfd = fd_close(s->pidfd);
	s->listen_fd = fd_close(s->listen_fd);
	s->slot.disk_fd = fd_close(s->slot.disk_fd);
	s->front_fds[0] = fd_close(s->front_fds[0]);
	s->front_fds[1] = fd_close(s->front_fds[1]);
}

void sandbox_free(struct sandbox *s)
{
	s->keeper->in_state[s->state]--;
	sandbox_release(s);
	explicit_bzero(&s->record, sizeof s->record);
	free(s);
}
