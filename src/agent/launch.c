#include "agent/launch.h"

#include <errno.h>

#include "agent/command.h"
#include "agent/environment.h"
#include "agent/process.h"
#include "base/err.h"
#include "wire/message.h"

/* LAUNCH_SHELL as a list, the way one lies in a packet. */
static const uint8_t shell_packed[] = "\x09\0\0\0" LAUNCH_SHELL;
static const struct wire_list shell = {.count = 1, .packed = shell_packed, .packed_len = sizeof shell_packed};

static int explain(struct err *e, int r, enum spawn_step step, const struct process_spec *spec,
		   const char *program)
{
	switch (step) {
	case SPAWN_CLONE: return r;
	case SPAWN_CGROUP: return err_set(e, r, "put the command into its control group");
	case SPAWN_USER: return err_set(e, r, "become user %u", spec->uid);
	case SPAWN_CWD: return err_set(e, r, "working directory '%.160s'", spec->cwd);
	case SPAWN_TERMINAL: return err_set(e, r, "take control of the terminal");
	case SPAWN_EXEC: return err_set(e, r, "execute '%.160s'", program);
	case SPAWN_BASH:
		if (r == -ENOENT) return err_say(e, r, "bash is missing in the image: /bin/bash");
		return err_set(e, r, "execute /bin/bash");
	}
	return r;
}

int launch(const struct wire_list *argv, const struct wire_list *env, bool direct, struct process_spec *spec,
	   struct process **ret, struct err *e)
{
	static char term[] = "TERM=xterm-256color", bash[] = "bash";
	bool is_terminal = spec->kind == KIND_TERMINAL, is_shell = is_terminal && !argv->count;
	struct environment environment = {0};
	struct command command;
	enum spawn_step step;
	int r;

	if (is_shell) argv = &shell;
	r = environment_build(spec->uid, spec->cwd, env, &environment, e);
	if (r < 0) return r;
	if (is_terminal) environment_put(&environment, term);
	r = command_plan(argv, direct, &environment, env, &command, e);
	if (r == 0) {
		char *program = command.argv[0];

		if (is_shell) command.argv[0] = bash;
		spec->command = &command;
		spec->env = &environment;
		spec->argv = argv;
		r = process_start(spec, ret, &step, e);
		if (r < 0) r = explain(e, r, step, spec, program);
		command_done(&command);
	}
	environment_done(&environment);
	return r;
}
