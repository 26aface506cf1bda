/* status_json.h - ProcessStatus (API 3.18) and TerminalSnapshot (3.23), wherever they are told. */
#pragma once

#include <jansson.h>

#include "wire/message.h"

struct operation_end;

/* P is judged in form (sandbox/process_list.h); its texts are a stranger's. */
json_t *process_status_json(const struct msg_process *p);
json_t *terminal_snapshot_json(const struct msg_process *p);

/* {"code","signal"?,"timedOut"} of an end with a reason up to END_DISK. */
json_t *exit_json(const struct operation_end *end);

/* "2026-01-01T00:00:00.000Z" */
json_t *time_json(uint64_t wall_ms);

/* Something just started; ARGV as it was asked for. */
struct started {
	const char *id; /* a stranger's text */
	uint32_t pid;
	const char *const *argv;
	uint32_t argc;
	const char *cwd;
};
json_t *started_process_json(const struct started *s, uint64_t started_ms);
json_t *started_terminal_json(const struct started *s);
