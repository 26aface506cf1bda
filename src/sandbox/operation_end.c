#include "sandbox/operation_end.h"

#include <errno.h>
#include <string.h>

#include "base/id.h"

int operation_end_parse(const struct frame *f, struct operation_end *ret)
{
	struct msg_end m;

	if (msg_end_parse(f, &m) < 0) return -EPROTO;
	if (m.reason > END_DONE || m.code < 0 || m.code > 255 || m.signo < 0 || m.signo > 64) return -EPROTO;
	/* errno either way round: the sign is the agent's habit, the meaning is the same. */
	if (m.error < -4095 || m.error > 4095) return -EPROTO;
	if (m.at_ms > WALL_MS_MAX) return -EPROTO;
	*ret = (struct operation_end){
		.reason = (enum end_reason)m.reason,
		.code = m.code,
		.signo = m.signo,
		.error = m.error < 0 ? -m.error : m.error,
		.text = m.text.at,
		.duration_ms = m.duration_ms,
		.cpu_ms = m.cpu_ms,
		.max_memory = m.max_memory,
		.bytes = m.bytes,
		.left_running = m.left_running,
		.timed_out = m.timed_out,
		.limit = m.limit,
		.oom_kills = m.oom_kills,
		.forks_refused = m.forks_refused,
		.seq = m.seq,
		.at_ms = m.at_ms,
	};
	return 0;
}

struct operation_end operation_end_lost(enum end_reason reason, const char *text)
{
	return (struct operation_end){.reason = reason, .error = EPIPE, .text = text};
}

struct wire_text name_sent(const char *name)
{
	return (struct wire_text){.at = name ? name : "",
				  .len = name ? (uint32_t)strnlen(name, NAME_ID_MAX + 1) : 0};
}
