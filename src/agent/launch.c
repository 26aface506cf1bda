#include "agent/launch.h"

#include <errno.h>

#include "agent/command.h"
#include "agent/environment.h"
#include "agent/process.h"
#include "agent/session.h"
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

static int run(struct command *command, struct environment *environment, const struct wire_list *argv,
	       const char *program, struct process_spec *spec, struct process **ret, struct err *e)
{
	enum spawn_step step;
	int r;

	spec->command = command;
	spec->env = environment;
	spec->argv = argv;
	r = process_start(spec, ret, &step, e);
	return r < 0 ? explain(e, r, step, spec, program) : 0;
}

static int launch_alone(const struct wire_list *argv, const struct wire_list *env, bool direct, bool is_shell,
			struct environment *environment, struct process_spec *spec, struct process **ret,
			struct err *e)
{
	static char bash[] = "bash";
	struct command command;
	const char *program;
	int r = command_plan(argv, direct, environment, env, &command, e);

	if (r < 0) return r;
	program = command.argv[0];
	if (is_shell) command.argv[0] = bash;
	r = run(&command, environment, argv, program, spec, ret, e);
	command_done(&command);
	return r;
}

/* Whether the command shares what a session remembers. What is started in the background is on its own. */
static bool is_in_session(const struct process_spec *spec, bool direct)
{
	if (!spec->session || !*spec->session || spec->background) return false;
	return spec->kind == KIND_TERMINAL || !direct;
}

int launch(const struct wire_list *argv, const struct wire_list *env, bool direct, struct process_spec *spec,
	   struct process **ret, struct err *e)
{
	static char term[] = "TERM=xterm-256color";
	bool is_terminal = spec->kind == KIND_TERMINAL, is_shell = is_terminal && !argv->count;
	struct session_start start = {.command = COMMAND_NONE};
	bool in_session = is_in_session(spec, direct);
	struct environment environment = {0};
	int r = 0;

	if (is_shell) argv = &shell;
	if (in_session) {
		r = session_start(spec->session, argv, env, spec->cwd, is_terminal, &start, e);
		if (r < 0) return r;
		env = &start.env;
		spec->cwd = start.cwd;
		spec->session_run = start.run;
		if (!spec->timeout_ms && !is_terminal) spec->timeout_ms = start.timeout_ms;
	}
	r = environment_build(spec->uid, spec->cwd, env, &environment, e);
	if (r == 0 && is_terminal) environment_put(&environment, term);
	if (r < 0) (void)session_run_end(start.run, false);
	else if (in_session) r = run(&start.command, &environment, argv, "/bin/bash", spec, ret, e);
	else r = launch_alone(argv, env, direct, is_shell, &environment, spec, ret, e);
	environment_done(&environment);
	session_start_done(&start);
	return r;
}
