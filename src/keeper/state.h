/* state.h - the state directory: the descriptors of its parts (see ARCHITECTURE.md, "State on disk"). */
#pragma once

#include <limits.h>
#include <stdint.h>

struct err;

#define STATE_NAME_LEN 12

struct state {
	char path[PATH_MAX];           /* absolute, without links */
	char name[STATE_NAME_LEN + 1]; /* [a-z2-7], made once: tells this server's cgroups from another's */
	int dir_fd;
	int sandboxes_fd; /* sandboxes/RUN/record, sandboxes/RUN/data/{upper,work} */
	int spare_fd;     /* spare/BASE/data/{upper,work}: directories for the next sandboxes */
	int run_fd;       /* run/BASE.sock */
	int trash_fd;
	int images_fd; /* images/host is the generated skeleton */
};

/* Makes what is missing. The directory itself must be there and locked by us. */
int state_open(const char *path, struct state *ret, struct err *e);

/*
 * A slot's socket: named by its base id, because a sandbox's own id may be longer than a socket's name can
 * be. The address goes through /proc/self/fd, so that the length of the state directory's path does not
 * matter either. Both return a descriptor or -errno.
 */
int state_socket_bind(const struct state *s, uint32_t base_id);
int state_socket_connect(const struct state *s, uint32_t base_id);
int state_socket_unlink(const struct state *s, uint32_t base_id); /* 0 or -errno */
