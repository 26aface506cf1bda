/*
 * follow.h - the channel of somebody who reads a log, and perhaps types: open_follow, and the terminal's own.
 *
 * Theory of operation: a follow has a *cursor*, the number of the next event to send, and sends from the log
 * whatever its credit pays for, whole events only. The log is its only buffer: events that were overwritten
 * before they could be sent are told as one gap, and the cursor moves on. So many may follow, and a slow one
 * costs nobody anything.
 *
 * A follow that *paces* (the channel of open_terminal) is waited for: see process.h. It has room as long as
 * it has credit and is not behind, so an attached reader that is alone never sees a gap. Whoever follows a
 * terminal live and may type (the sockets of API.md 3.26) paces as well, but our patience with it ends after
 * FOLLOW_PATIENCE_MS without room: a healthy client is not cut off by much output, and one that is stuck
 * stops the program for a moment only.
 *
 * Keys go the other way under our credit, KEYS_WINDOW for each follow, given back as the terminal takes them.
 */
#pragma once

#include "agent/input.h"
#include "agent/peers.h"
#include "agent/process.h"
#include "agent/starting.h"

#define FOLLOW_PATIENCE_MS 1000

struct follow {
	struct channel channel;
	struct process_follower follower;
	struct input_source keys;
	struct start_wait wait;  /* of a terminal that is to be started */
	struct process *process; /* NULL while waiting */
	bool is_live;            /* goes on until the process ends; otherwise until event UNTIL */
	bool takes_keys;
	bool hangs_up; /* a private terminal: it ends with this channel */
	bool gap_told, now_told;
	bool is_patience_limited;
	struct timer patience; /* armed while it has no room */
	uint64_t cursor, until;
	uint64_t credit;     /* bytes of output the front takes */
	size_t key_credit;   /* bytes of input the front may send */
	size_t keys_taken;   /* not yet given back */
	uint16_t cols, rows; /* a size that was asked for while waiting; 0: none */
};

/* As channel_opener, of open_follow. */
int follow_open(struct peer *p, const struct frame *f);

/* A channel that has nothing to follow yet. NULL: the peer broke the protocol. */
struct follow *follow_new(struct peer *p, uint32_t channel, uint32_t window);

/* To be waited for. */
void follow_pace(struct follow *f);

/* Sends `opened` and what there is. F may be freed by that. */
void follow_begin(struct follow *f, struct process *p);

/* Without a word to the front. */
void follow_free(struct follow *f);

/* The size may be given or left out (both 0). */
bool follow_size_is_fair(uint16_t cols, uint16_t rows);
