/* follow_private.h - what follow.c (output) and terminal.c (the start, and input) share. For nobody else. */
#pragma once

#include "sandbox/agent_link.h"
#include "sandbox/follow.h"

struct follow {
	struct channel channel;
	const struct follow_events *events;
	void *ctx;
	bool opened, caught_up;
	bool only_started; /* TERMINAL_DETACHED */
	uint64_t seq;      /* of the newest event that was told, or of the one before a gap's end */
	uint32_t allowed;  /* bytes of output that the agent may still send */
	uint32_t consumed; /* bytes dealt with and not yet given back */
	uint32_t input_allowed;
};

/* The channel is open, nothing is sent yet. NULL: too many operations. */
struct follow *follow_new(struct agent_link *link, const struct follow_events *events, void *ctx);

/* Without a word to the agent. */
void follow_free(struct follow *f);
