/* bucket.c - POST /mount and /unmount. */
#include <stdio.h>

#include "routes/answers.h"
#include "routes/bucket_request.h"
#include "routes/handlers.h"
#include "routes/request.h"

static void on_mount_body(struct exchange *x, const char *body, size_t len, void *ctx)
{
	struct request *rq = ctx;
	struct mount_request mount;
	bucket_fault fault;

	if (!body) {
		answer_too_large(x, "JSON body too large", len, rq->routes->settings.json_limit);
		return;
	}
	fault = mount_request_parse(body, len, rq->profile, &mount);
	/* What cannot work is no reason to start a sandbox. */
	if (fault) answer_invalid(x, fault);
	else
		http_reply_error(x, 502, "mount_error",
				 "mount failed: bucket mounts are not available in this version");
	mount_request_done(&mount);
}

void handle_mount(struct request *rq)
{
	http_body_collect(rq->x, rq->routes->settings.json_limit, on_mount_body, rq);
}

static void on_unmount_body(struct exchange *x, const char *body, size_t len, void *ctx)
{
	struct request *rq = ctx;
	char path[PATH_LIMIT], message[PATH_LIMIT + 64];
	bucket_fault fault;

	if (!body) {
		answer_too_large(x, "JSON body too large", len, rq->routes->settings.json_limit);
		return;
	}
	fault = unmount_request_parse(body, len, path);
	if (fault) {
		answer_invalid(x, fault);
		return;
	}
	(void)snprintf(message, sizeof message, "unmount failed: No active mount found at path: %s", path);
	http_reply_error(x, 502, "unmount_error", message);
}

void handle_unmount(struct request *rq)
{
	http_body_collect(rq->x, rq->routes->settings.json_limit, on_unmount_body, rq);
}
