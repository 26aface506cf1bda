/*
 * greeting.h - which version two of our processes speak, from what the other's `hello` says.
 *
 * Each side names the newest version it speaks and the oldest it still understands. Both come to the same
 * answer by themselves: the smaller of the two newest, unless that is older than either's oldest. So a new
 * server takes over the agents of an older one, and an older one those of a newer, as long as their ranges
 * meet.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/message.h"

struct speaker {
	uint16_t newest, oldest;
};

/* This build. */
#define WIRE_SPEAKER ((struct speaker){.newest = WIRE_VERSION, .oldest = WIRE_OLDEST})

/* Pure. The version of the conversation (at least 1), or -EPROTONOSUPPORT: there is none. */
int speakers_agree(struct speaker a, struct speaker b);

/* The same for this build and who sent HELLO. */
int wire_agree(const struct msg_hello *hello);

/* Why there is no conversation, for the log: "it is of build 2.0 and speaks versions 5 to 7, this build 1 to
 * 1". */
void wire_disagreement(const struct msg_hello *hello, char *text, size_t size);
