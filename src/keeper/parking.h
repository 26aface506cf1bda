/*
 * parking.h - parked agents: cloned ahead of need, waiting for `bind`. Taking one costs a list operation;
 * another is cloned in the background.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct cgroups;
struct err;
struct loop;
struct parking;

struct parked {
	pid_t pid;
	uint64_t start; /* see process_start() */
	int pidfd;
	int bond_fd;
};

struct parking_events {
	void (*on_ready)(void *ctx);                       /* one more can be taken */
	void (*on_failed)(void *ctx, const struct err *e); /* one that was wanted will not come */
	void *ctx;
};

/* Starts the zygote and fills up to TARGET. */
int parking_new(struct loop *loop, struct cgroups *cgroups, unsigned target, struct parking_events events,
		struct parking **ret, struct err *e);

/* Parked agents end, and the zygote. */
struct parking *parking_free(struct parking *p);

unsigned parking_ready(const struct parking *p);

/* Only when parking_ready(). The caller owns what RET holds. */
void parking_take(struct parking *p, struct parked *ret);

/* WAITING sandboxes wait for an agent each: clones for them, and for TARGET more. */
void parking_refill(struct parking *p, unsigned waiting);
