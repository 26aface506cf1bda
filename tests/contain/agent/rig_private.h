/* rig_private.h - what rig.c (begin and end) and rig_talk.c (messages) share. */
#pragma once

#include "isolation/cgroup.h"
#include "isolation/image_host.h"
#include "isolation/slot.h"
#include "rig.h"

#define BASE_ID (1000000u * 1000)
#define RIG_RUN "abcdefgh"
#define COOKIE  "0123456789abcdef0123456789abcdef"
#define WAIT_MS 60000 /* only a hang takes as long, also on an emulated processor */

struct rig {
	char dir[64], socket[108], root[32];
	pid_t zygote, agent;
	struct link *control, *bond, *front;
	struct image image;
	struct slot_kit kit;
	struct cgroups *cgroups;
	int spawned, bound; /* what the answers said; 1 before */
	char bound_text[256];
	unsigned limits_wanted, limits_idle;
	const char *limits_refusal;
	uint32_t last_channel;
	struct run *runs;
	bool front_lost, hello_came;
};

extern struct rig rig;

/* rig_talk.c: R gets a channel. */
void run_begin(struct run *r);
