/*
 * attachment.h - a client's socket attached to a terminal: what /pty and /terminals/:tid/connect share.
 *
 * Theory of operation: an attachment joins a follow (sandbox/terminal.h) and a socket (http/websocket.h),
 * each of which can stop the other. Output: the agent gets new credit while the socket's buffer is low, and
 * none above PENDING_MAX until the client has read it all. Input: what the terminal has no room for is held,
 * and the socket is not read until it is gone; what is held is never more than two pieces of the socket.
 *
 * It exists from before the upgrade until either side ends. Before: the follow may fail, and the failure is
 * an HTTP answer. After: a frame and a close code. The two dialects bring their own follow_events; their
 * callbacks get the attachment as ctx.
 */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "routes/control_message.h"
#include "routes/process_request.h"
#include "sandbox/terminal.h"

struct attachment;

struct attachment_class {
	/* A text message. May end the attachment. */
	void (*on_control)(struct attachment *a, const struct control_message *m);
	bool whole_numbers;                 /* in control messages */
	void (*done)(struct attachment *a); /* before its memory goes */
};

/* Embedded as the first member of each dialect's own struct, which is one piece of memory. */
struct attachment {
	struct request *rq;
	const struct attachment_class *class;
	struct follow *follow; /* NULL: not yet, or ended */
	bool accepted;         /* it is a socket now */
	bool ready;            /* input is acted on */
	size_t withheld;       /* bytes of output for which the agent has no new credit yet */
	struct buf held;       /* input without room */
};

/* A is all zero. From here on the client may go away. */
void attachment_begin(struct attachment *a, struct request *rq, const struct attachment_class *class);

/* The upgrade. */
void attachment_accept(struct attachment *a);

/* Input counts from here on; what came before was held. */
void attachment_ready(struct attachment *a);

/* Takes JSON. */
void attachment_send(struct attachment *a, json_t *json);

/* After output of LEN bytes was sent on. */
void attachment_sent(struct attachment *a, size_t len);

/* For follow_events. */
void attachment_on_room(void *ctx);

/* The last word: A's memory goes, the follow with it. */
void attachment_close(struct attachment *a, unsigned code, const char *reason);

/* {"type":"error","message":MESSAGE} */
void attachment_send_error(struct attachment *a, const char *message);

/* Before the upgrade, instead of it: the memory of ATTACHMENT goes, and the request may be answered. */
struct request *attachment_give_up(void *attachment);
