/* rig_follow.c - what the rig says about terminals and logs. */
#include "base/clock.h"
#include "rig_private.h"
#include "unit.h"

struct msg_open_terminal rig_terminal(const char *const *argv, uint32_t argc)
{
	return (struct msg_open_terminal){.uid = 1000,
					  .window = RIG_WINDOW,
					  .cwd = wire_text_of("/workspace"),
					  .name = wire_text_of(""),
					  .session = wire_text_of(""),
					  .argv = {.items = argv, .count = argc}};
}

void rig_start_terminal(struct run *r, const struct msg_open_terminal *m)
{
	run_begin(r);
	ASSERT_OK(LINK_SEND(rig.front, r->channel, open_terminal, m, NULL, 0));
}

void rig_start_follow(struct run *r, const struct msg_open_follow *m)
{
	run_begin(r);
	ASSERT_OK(LINK_SEND(rig.front, r->channel, open_follow, m, NULL, 0));
}

void rig_follow(struct run *r, enum process_kind kind, const char *name, unsigned flags, uint64_t since)
{
	struct msg_open_follow m = {.kind = (uint8_t)kind,
				    .name = wire_text_of(name),
				    .flags = flags,
				    .since = since,
				    .window = RIG_WINDOW};

	rig_start_follow(r, &m);
}

void rig_list(struct run *r, enum process_kind kind, const char *name)
{
	struct msg_open_list m = {.kind = (uint8_t)kind, .name = wire_text_of(name)};

	run_begin(r);
	ASSERT_OK(LINK_SEND(rig.front, r->channel, open_list, &m, NULL, 0));
	rig_until(run_ended, r);
}

void rig_kill(struct run *r, enum process_kind kind, const char *name, int signo, enum signal_how how)
{
	struct msg_open_signal m = {
		.kind = (uint8_t)kind, .name = wire_text_of(name), .signo = signo, .how = (uint8_t)how};

	run_begin(r);
	ASSERT_OK(LINK_SEND(rig.front, r->channel, open_signal, &m, NULL, 0));
	rig_until(run_ended, r);
}

void rig_resize(struct run *r, uint16_t cols, uint16_t rows)
{
	struct msg_resize m = {.cols = cols, .rows = rows};

	ASSERT_OK(LINK_SEND(r->link, r->channel, resize, &m, NULL, 0));
}

void rig_type(struct run *r, const char *keys)
{
	rig_input(r, keys, strlen(keys));
}

static const char *wanted_text;

static bool has_wanted(const struct run *r)
{
	return r->ended || (r->out.len && memmem(r->out.data, r->out.len, wanted_text, strlen(wanted_text)));
}

void rig_until_output(const struct run *r, const char *text)
{
	wanted_text = text;
	rig_until(has_wanted, r);
}

bool run_is_now(const struct run *r)
{
	return r->now || r->ended;
}

bool run_has(const struct run *r, const char *text)
{
	return r->out.len && memmem(r->out.data, r->out.len, text, strlen(text));
}

void rig_start_shell(struct run *r, const char *name, unsigned flags)
{
	struct msg_open_terminal m = rig_terminal(NULL, 0);

	m.name = wire_text_of(name);
	m.flags = flags;
	rig_start_terminal(r, &m);
	rig_until_output(r, RIG_PROMPT);
	ASSERT_FALSE(r->ended);
}

void rig_end_shell(struct run *r)
{
	rig_type(r, "\x15"
		    "exit\n");
	rig_until(run_ended, r);
}

void rig_until_marked(bool there)
{
	uint64_t until = clock_ms() + 20000;

	while ((rig_count_processes("98761") > 0) != there) {
		if (clock_ms() > until) fail_msg("marked processes: %u", rig_count_processes("98761"));
		rig_pump(20);
	}
}
