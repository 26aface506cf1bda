/* process_request.h - inside the room: what the routes below /processes and /terminals share. */
#pragma once

#include "routes/request.h"
#include "sandbox/process_list.h"

/*
 * For a route that looks for one process or terminal: the link to its sandbox and the name, which the caller
 * frees. NULL: the request has been answered, because there is no sandbox (404) or no terminal can have that
 * name (400).
 */
struct agent_link *request_process(struct request *rq, enum process_kind kind, char **ret_name);

/* The sandbox alone: 404 without one. */
struct agent_link *request_process_sandbox(struct request *rq, enum process_kind kind);

/* The name alone. 400 for what no terminal can be called; a process may be called anything. */
bool request_process_name(struct request *rq, enum process_kind kind, char **ret_name);

void answer_no_process(struct exchange *x, enum process_kind kind);

/* Why an operation could not be begun: R of exec_start() or terminal_start(). */
const char *why_not_begun(int r);
