/* keeper_peer.h - a front's picture of its sandboxes, and its keeper played by a test: see peer.h. */
#pragma once

#include "base/id.h"
#include "sandbox/peer.h"
#include "sandbox/registry.h"

static struct sandboxes *all;
static bool ready, keeper_lost, answered;
static struct sandbox_outcome outcome;
static char outcome_text[100];
static unsigned answers;

static void on_ready(void *ctx)
{
	(void)ctx;
	ready = true;
	loop_stop(loop);
}

static void on_keeper_lost(void *ctx)
{
	(void)ctx;
	keeper_lost = true;
	loop_stop(loop);
}

static const struct sandboxes_callbacks callbacks = {.on_ready = on_ready, .on_keeper_lost = on_keeper_lost};

static void on_answer(void *ctx, const struct sandbox_outcome *o)
{
	(void)ctx;
	outcome = *o;
	snprintf(outcome_text, sizeof outcome_text, "%s", o->text ? o->text : "");
	answers++;
	answered = true;
	loop_stop(loop);
}

/* SLEEP_AFTER_MS 0: never. */
static void begin(uint64_t sleep_after_ms)
{
	loop_begin();
	peer_open(ROLE_KEEPER);
	ready = keeper_lost = answered = false;
	answers = 0;
	all = sandboxes_new(loop, ours, 10, &callbacks, NULL);
	sandboxes_sleep_after(all, sleep_after_ms);
}

static void end(void)
{
	all = sandboxes_free(all);
	peer_close();
	loop_end();
}

/* The keeper hands over a link; the agent's end of it is returned. */
static int attach(const char *id)
{
	int pair[2];

	ASSERT_OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	PEER_SENDS_FDS(0, attached, pair, 1, .id = wire_text_of(id), .run = wire_text_of("run-1"),
		       .instance = wire_text_of("lite"), .created_ms = 1000);
	close(pair[0]);
	settle();
	return pair[1];
}
