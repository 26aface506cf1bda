#include "agent/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/command.h"
#include "agent/environment.h"
#include "agent/view.h"
#include "base/priority.h"

/* The kernel's victim is a command, never the agent. */
#define OOM_SCORE_COMMAND "500"
#define OOM_SCORE_AGENT   "0"

/* Where the child has the program that it is to become, when that is given as a descriptor. */
#define PROGRAM_FD 3

/* What child and parent share while the child runs. */
struct birth {
	const struct spawn_spec *spec;
	volatile int error; /* errno; 0: a program was executed */
	volatile enum spawn_step step;
};

/* The child needs a few hundred bytes; vfork means that there is never more than one. */
static char child_stack[8192] __attribute__((aligned(16)));

/* The score of the agent, in a file that we may write but not open again: see spawn_init(). */
static int oom_fd = -1;

int spawn_init(void)
{
	/* Files of /proc/self belong to us only while we are dumpable. Nobody else lives here yet. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0) return -errno;
	oom_fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) return -errno;
	return oom_fd < 0 ? -errno : 0;
}

static void set_oom_score(const char *score)
{
	(void)!write(oom_fd, score, strlen(score));
}

static void enter_cgroups(struct birth *b)
{
	/* Back to back: where the first attach waits for a grace period of the kernel, the others ride on it.
	 */
	for (size_t i = 0; i < b->spec->attach_count; i++) {
		if (write(b->spec->attach_fds[i], "0", 1) != 1) b->error = errno;
	}
}

/* Closes all from FIRST on but those of a session, which get their places. */
static int close_others(unsigned first, const int session_fds[COMMAND_SESSION_FDS])
{
	if (session_fds[0] < 0) return (int)syscall(SYS_close_range, first, ~0u, 0);
	if (syscall(SYS_close_range, first, COMMAND_SESSION_FD + COMMAND_SESSION_FDS - 1, 0) < 0) return -1;
	for (int i = 0; i < COMMAND_SESSION_FDS; i++) {
		if (session_fds[i] >= 0 && dup2(session_fds[i], COMMAND_SESSION_FD + i) < 0) return -1;
	}
	return (int)syscall(SYS_close_range, COMMAND_SESSION_FD + COMMAND_SESSION_FDS, ~0u, 0);
}

/* The order of descriptors: stdio first, then the script; all sources are above 3 or are gone afterwards. */
static int set_descriptors(const struct spawn_spec *spec)
{
	unsigned first_closed = 3;

	for (int i = 0; i < 3; i++) {
		if (dup2(spec->stdio[i], i) < 0) return -1;
	}
	if (spec->command->script_fd >= 0) {
		if (spec->command->script_fd == COMMAND_SCRIPT_FD) {
			if (fcntl(COMMAND_SCRIPT_FD, F_SETFD, 0) < 0) return -1;
		} else if (dup2(spec->command->script_fd, COMMAND_SCRIPT_FD) < 0) {
			return -1;
		}
		first_closed = COMMAND_SCRIPT_FD + 1;
	}
	if (spec->command->program_fd >= 0) {
		/* It closes itself in the program that it becomes. */
		if (spec->command->program_fd != PROGRAM_FD &&
		    dup3(spec->command->program_fd, PROGRAM_FD, O_CLOEXEC) < 0)
			return -1;
		first_closed = PROGRAM_FD + 1;
	}
	return close_others(first_closed, spec->command->session_fds);
}

/* Raw calls: libc's wrappers would tell other threads. The user's capabilities go with uid 0. */
static int become(uint32_t uid)
{
	if (syscall(SYS_setgroups, 0, NULL) < 0) return -1;
	if (syscall(SYS_setresgid, uid, uid, uid) < 0) return -1;
	return (int)syscall(SYS_setresuid, uid, uid, uid);
}

/* Returns only when none of the candidates could be executed; errno is then the most telling one. */
static void execute_directly(const struct spawn_spec *spec)
{
	struct environment *env = spec->env;
	int telling = ENOENT;

	for (char *const *c = spec->command->candidates; *c; c++) {
		if (spec->command->bash_argv) {
			env->vars[env->count] = "SHLVL=0";
			env->vars[env->count + 1] = *c;
		}
		(void)execve(*c + 2, spec->command->argv, env->vars);
		if (errno != ENOENT && errno != ENOTDIR) telling = errno;
	}
	env->vars[env->count] = env->vars[env->count + 1] = NULL;
	errno = telling;
}

static int child(void *arg)
{
	struct birth *b = arg;
	const struct spawn_spec *spec = b->spec;
	sigset_t none;

	(void)setsid();
	set_oom_score(OOM_SCORE_AGENT); /* our parent's: see spawn() */
	(void)priority_set(0, 0);       /* the agent's is the server's: see keeper/main.c */
	b->step = SPAWN_CGROUP;
	enter_cgroups(b);
	if (b->error) return 127;
	view_take_processors();
	b->step = SPAWN_USER;
	if (become(spec->uid) < 0) goto fail;
	b->step = SPAWN_CWD;
	if (chdir(spec->cwd) < 0) goto fail;
	b->step = SPAWN_TERMINAL;
	if (spec->terminal && ioctl(spec->stdio[0], TIOCSCTTY, 0) < 0) goto fail;
	b->step = SPAWN_EXEC;
	if (set_descriptors(spec) < 0) goto fail;
	(void)umask(022);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (spec->command->program_fd >= 0)
		(void)syscall(SYS_execveat, PROGRAM_FD, "", spec->command->argv, spec->env->vars,
			      AT_EMPTY_PATH);
	else execute_directly(spec);
	if (!spec->command->bash_argv) goto fail;
	b->step = SPAWN_BASH;
	(void)execve("/bin/bash", (char *const *)spec->command->bash_argv, spec->env->vars);
fail:
	b->error = errno;
	return 127;
}

pid_t spawn(const struct spawn_spec *spec, enum spawn_step *ret_step)
{
	struct birth b = {.spec = spec, .step = SPAWN_CLONE};
	pid_t pid;

	/*
	 * A child inherits our score, so we put on the command's. The child takes it off us again while we
	 * stand still: nobody ever runs while the agent looks like a command.
	 */
	set_oom_score(OOM_SCORE_COMMAND);
	/* Not clone3: the sandbox's filter refuses it. Every signal is blocked in us, so no handler runs on
	 * that stack. */
	pid = clone(child, child_stack + sizeof child_stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &b);
	if (pid < 0) {
		set_oom_score(OOM_SCORE_AGENT);
		*ret_step = SPAWN_CLONE;
		return -errno;
	}
	if (!b.error) return pid;
	(void)waitpid(pid, NULL, 0);
	*ret_step = b.step;
	return -b.error;
}
