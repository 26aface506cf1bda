#include "routes/status_json.h"

#include <string.h>

#include "base/clock.h"
#include "routes/answers.h"
#include "sandbox/operations.h"

json_t *time_json(uint64_t wall_ms)
{
	char text[CLOCK_ISO_SIZE];

	clock_iso(wall_ms, text);
	return json_string(text);
}

static json_t *json_of(const char *text)
{
	return json_of_text(text, strlen(text));
}

/* ---- the end ---- */

static json_t *exit_of(int code, int signo, bool timed_out)
{
	json_t *exit = json_pack("{s:i, s:b}", "code", code, "timedOut", timed_out);

	if (signo) json_object_set_new(exit, "signal", json_integer(signo));
	return exit;
}

json_t *exit_json(const struct operation_end *end)
{
	return exit_of(end->code, end->signo, end->timed_out);
}

static void add_end(json_t *json, const struct msg_process *p)
{
	if (p->state == PROCESS_LOST)
		json_object_set_new(
			json, "error",
			json_pack("{s:s, s:s}", "code", "process_error", "message", "its end was not seen"));
	else json_object_set_new(json, "exit", exit_of(p->code, p->signo, p->timed_out));
}

/* ---- what both have ---- */

static json_t *base_json(json_t *id, uint32_t pid, json_t *command, json_t *cwd)
{
	return json_pack("{s:o, s:i, s:o, s:o}", "id", id, "pid", (int)(pid & INT32_MAX), "command", command,
			 "cwd", cwd);
}

static json_t *json_of_process(const struct msg_process *p)
{
	json_t *command = json_array();
	const uint8_t *at = p->argv.packed;
	const char *word;
	uint32_t len;

	while ((word = wire_list_next(&p->argv, &at, &len)))
		json_array_append_new(command, json_of_text(word, len));
	return base_json(json_of_text(p->process_id.at, p->process_id.len), p->pid, command,
			 json_of_text(p->cwd.at, p->cwd.len));
}

static json_t *json_of_started(const struct started *s)
{
	json_t *command = json_array();

	for (uint32_t i = 0; i < s->argc; i++)
		json_array_append_new(command, json_of(s->argv[i]));
	return base_json(json_of(s->id), s->pid, command, json_of(s->cwd));
}

static const char *state_name(unsigned state)
{
	static const char *const names[] = {
		[PROCESS_RUNNING] = "running", [PROCESS_EXITED] = "exited", [PROCESS_LOST] = "error"};

	return names[state];
}

/* ---- processes ---- */

json_t *process_status_json(const struct msg_process *p)
{
	json_t *json = json_of_process(p);

	json_object_set_new(json, "startedAt", time_json(p->started_ms));
	json_object_set_new(json, "state", json_string(state_name(p->state)));
	json_object_set_new(json, "live", json_integer(p->live & INT32_MAX));
	if (p->state == PROCESS_RUNNING) return json;
	json_object_set_new(json, "endedAt", time_json(p->ended_ms));
	add_end(json, p);
	return json;
}

json_t *started_process_json(const struct started *s, uint64_t started_ms)
{
	json_t *json = json_of_started(s);

	json_object_set_new(json, "startedAt", time_json(started_ms));
	json_object_set_new(json, "state", json_string(state_name(PROCESS_RUNNING)));
	return json;
}

/* ---- terminals ---- */

json_t *terminal_snapshot_json(const struct msg_process *p)
{
	json_t *json = json_of_process(p);

	json_object_set_new(json, "status", json_string(state_name(p->state)));
	if (p->state != PROCESS_RUNNING) add_end(json, p);
	return json;
}

json_t *started_terminal_json(const struct started *s)
{
	json_t *json = json_of_started(s);

	json_object_set_new(json, "status", json_string(state_name(PROCESS_RUNNING)));
	return json;
}
