/*
 * idle.h - inside the room: which sandboxes nobody uses, and since when.
 *
 * Those without a user stand in a list, the longest idle first, so that one timer serves all of them. A
 * sandbox embeds an *idler*, which counts its users all its life, and is *watched* while it lives.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct idlers;
struct loop;

struct idler {
	struct idler *prev, *next;
	uint64_t since_ms;
	unsigned users;
	bool watched, listed;
};

/* I had no user for so long; it is no longer watched. */
typedef void on_idle(void *ctx, struct idler *i);

struct idlers *idlers_new(struct loop *loop, on_idle *on_due, void *ctx);
struct idlers *idlers_free(struct idlers *all);

/* 0, as at first: never. */
void idlers_set_after(struct idlers *all, uint64_t after_ms);

void idler_use(struct idlers *all, struct idler *i);
void idler_unuse(struct idlers *all, struct idler *i);

/* Again and again is once. From a first watch without a user on, I is idle. */
void idler_watch(struct idlers *all, struct idler *i);
void idler_unwatch(struct idlers *all, struct idler *i);
