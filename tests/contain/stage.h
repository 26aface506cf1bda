/*
 * stage.h - plays keeper, zygote and agent, so that a sandbox can be looked at from inside without any of the
 * three.
 *
 * A stage has one temporary state directory and one image; each actor on it is a process that called
 * contain(), is pid 1 of its sandbox, and runs programs when told. Errors end the test program with a
 * sentence.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "isolation/slot.h"

struct stage {
	char state_dir[64];
	struct image image;
	pid_t zygote_pid;
	int zygote_fd;
};

struct actor {
	uint32_t base_id;
	pid_t pid;
	int fd; /* to the mini-agent */
	char data_dir[128];
	unsigned kit_us, bind_us, clone_us, contain_us; /* what the steps took */
};

void stage_open(struct stage *s);
void stage_close(struct stage *s);

/* Makes a sandbox. FILE (NULL is fine) is copied to /guest in it. */
void actor_make(struct stage *s, unsigned slot, const char *file, struct actor *ret);
void actor_end(struct actor *a);

/* Removes what an ended actor left on disk, so that its slot can be used again. */
void actor_forget(struct actor *a);

#define STAGE_ARGS 6

/* Runs ARGS[0] inside as UID with stdout to OUT (appended); returns the wait status. */
int actor_run(struct actor *a, uid_t uid, const char *const args[STAGE_ARGS], struct buf *out);

void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
