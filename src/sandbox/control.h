/*
 * control.h - inside the room: the link to the keeper, as calls and callbacks. What the keeper says is
 * checked in form here; a keeper that breaks the protocol is as lost as one that is gone.
 */
#pragma once

#include <stddef.h>

#include "wire/message.h"

struct control;
struct limits;
struct loop;

struct control_callbacks {
	void (*on_attached)(void *ctx, const struct msg_attached *m, int fd); /* FD is the callee's */
	void (*on_refused)(void *ctx, const struct msg_refused *m);
	void (*on_gone)(void *ctx, const struct msg_gone *m);
	void (*on_usage)(void *ctx, const struct msg_usage *m);
	void (*on_ready)(void *ctx, const struct msg_ready *m);
	void (*on_parked)(void *ctx, const struct msg_parked *m);
	void (*on_asleep)(void *ctx, const struct msg_asleep *m);
	void (*on_issued)(void *ctx, const struct msg_issued *m);
	void (*on_lost)(void *ctx); /* once; from the loop */
};

/* Takes FD and greets. */
struct control *control_new(struct loop *loop, int fd, const struct control_callbacks *callbacks, void *ctx);
struct control *control_free(struct control *c);

/* 0, or -EPIPE: there is no keeper any more. */
int control_create(struct control *c, const char *id, const char *instance, const struct limits *own);
int control_sleep(struct control *c, const char *id);
int control_issue(struct control *c, const char *id, const char *instance, const struct limits *own);
int control_remove(struct control *c, const char *id);
/* Keep WANT sandboxes made ahead; answered by on_parked, also later whenever that changes. */
int control_park(struct control *c, unsigned want);
int control_inspect(struct control *c, const char *id);
