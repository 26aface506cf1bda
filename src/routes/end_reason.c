#include "routes/end_reason.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "routes/answers.h"

#define WORDS_MAX 1000 /* bytes of the agent's own words */
#define HINT_MAX  320
#define MIB       (1u << 20)

static json_t *json_of_signal(int signo)
{
	const char *name = sigabbrev_np(signo);

	return name ? json_sprintf("SIG%s", name) : json_sprintf("SIG%d", signo);
}

/* " (256 MiB)", or nothing when it is not known. */
static const char *megabytes(uint64_t bytes, char text[32])
{
	text[0] = '\0';
	if (bytes) (void)snprintf(text, 32, " (%" PRIu64 " MiB)", (bytes + MIB / 2) / MIB);
	return text;
}

static void say_memory(const struct operation_end *end, char hint[HINT_MAX])
{
	char size[32];

	(void)snprintf(
		hint, HINT_MAX,
		"the kernel killed it because the sandbox reached its memory limit%s: use less, or a larger "
		"\"instance\" or \"limits\":{\"memory_mb\":...} at POST /v1/sandbox",
		megabytes(end->limit, size));
}

static void say_pids(const struct operation_end *end, char hint[HINT_MAX])
{
	(void)snprintf(hint, HINT_MAX,
		       "the sandbox reached its limit of %" PRIu64
		       " processes and threads: end some, or use a larger "
		       "\"instance\" or \"limits\":{\"pids\":...} at POST /v1/sandbox",
		       end->limit);
}

static void say_disk(const struct operation_end *end, char hint[HINT_MAX])
{
	char size[32];

	(void)snprintf(
		hint, HINT_MAX,
		"the sandbox's disk%s is full, or has no more room for files: remove some, or use a larger "
		"\"instance\" or \"limits\":{\"disk_mb\":...} at POST /v1/sandbox",
		megabytes(end->limit, size));
}

/* What the kernel did is told even when it does not explain the end. */
static void say_aside(const struct operation_end *end, char hint[HINT_MAX])
{
	if (end->oom_kills)
		(void)snprintf(
			hint, HINT_MAX,
			"while it ran, the kernel killed %u of the sandbox's processes for want of memory",
			end->oom_kills);
}

static void say(const struct operation_end *end, char hint[HINT_MAX])
{
	switch (end->reason) {
	case END_OOM: say_memory(end, hint); return;
	case END_PIDS: say_pids(end, hint); return;
	case END_DISK: say_disk(end, hint); return;
	case END_TIMEOUT:
		(void)snprintf(
			hint, HINT_MAX,
			"its time was up: give it more with \"timeout_ms\", or start it in the background");
		return;
	case END_EXITED:
	case END_SIGNAL:
	case END_CANCELLED: say_aside(end, hint); return;
	case END_DELETED:
	case END_LOST:
	case END_FAILED:
	case END_DONE: return;
	}
}

static void add_number(json_t *json, const char *name, uint64_t number)
{
	if (number) json_object_set_new(json, name, json_integer((json_int_t)(number & INT64_MAX)));
}

static json_t *detail_of(const struct operation_end *end)
{
	json_t *detail = json_object();

	if (*end->text)
		json_object_set_new(detail, "message",
				    json_of_text(end->text, strnlen(end->text, WORDS_MAX)));
	add_number(detail, "limit", end->limit);
	add_number(detail, "oom_kills", end->oom_kills);
	add_number(detail, "forks_refused", end->forks_refused);
	return detail;
}

static void add(json_t *json, const struct operation_end *end)
{
	json_t *detail = detail_of(end);
	char hint[HINT_MAX] = "";

	json_object_set_new(json, "reason", json_string(end_reason_name(end->reason)));
	if (json_object_size(detail)) json_object_set(json, "detail", detail);
	json_decref(detail);
	say(end, hint);
	if (*hint) json_object_set_new(json, "hint", json_string(hint));
}

void end_reason_add(json_t *json, const struct operation_end *end)
{
	if (end->signo) json_object_set_new(json, "signal", json_of_signal(end->signo));
	add(json, end);
}

void end_reason_add_of_limit(json_t *json, const struct operation_end *end)
{
	if (end->reason == END_OOM || end->reason == END_PIDS || end->reason == END_DISK) add(json, end);
}
