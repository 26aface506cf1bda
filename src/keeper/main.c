/* main.c - the program tombolo-keeper: started by `tombolo serve`, which passes settings and sockets as
 * descriptors. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/priority.h"
#include "base/program.h"
#include "config/config.h"
#include "keeper/keeper.h"
#include "loop/loop.h"

#define PRIORITY (-5)
#define SLICE_US 100

/* Descriptors as `tombolo serve` numbers them; see cli/serve.c. */
enum { LOCK_FD = 3, CONFIG_FD, SERVE_FD, FIRST_LISTEN_FD };

static int look_up_user(const char *text, struct keeper_settings *settings, struct err *e)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);
	struct passwd *user;

	if (text[0] && !*end && number < UINT32_MAX) {
		settings->front_uid = settings->front_gid = (uid_t)number;
	} else {
		user = getpwnam(text);
		if (!user) return err_say(e, -ENOENT, "front-user: there is no user '%s'", text);
		settings->front_uid = user->pw_uid;
		settings->front_gid = user->pw_gid;
	}
	if (settings->front_uid == 0) return err_say(e, -EINVAL, "front-user: the front must not be root");
	return 0;
}

static int settle(const struct config *c, const char *listen_count, struct keeper_settings *settings,
		  struct err *e)
{
	unsigned long count = strtoul(listen_count, NULL, 10);

	if (count > KEEPER_LISTEN_MAX)
		return err_say(e, -EINVAL, "%lu listening sockets are too many", count);
	*settings = (struct keeper_settings){
		.state_dir = c->state_dir,
		.instance = c->instance,
		.disk_quota = c->disk_quota,
		.max_sandboxes = c->warm_pool_max_instances
					 ? MIN(c->max_sandboxes, c->warm_pool_max_instances)
					 : c->max_sandboxes,
		.parked = c->parked,
		.keep_sandboxes = c->keep_sandboxes,
		.sleeps = c->sleep_after > 0,
		.reserves = {.memory_bytes = c->memory_reserve,
			     .disk_bytes = c->disk_reserve,
			     .processes = c->process_reserve},
		.config_fd = CONFIG_FD,
		.serve_fd = SERVE_FD,
		.listen_count = count,
	};
	for (size_t i = 0; i < count; i++)
		settings->listen_fds[i] = FIRST_LISTEN_FD + (int)i;
	for (int fd = LOCK_FD; fd < FIRST_LISTEN_FD + (int)count; fd++) {
		if (fd_set_cloexec(fd, true) < 0) return err_say(e, -EBADF, "descriptor %d is missing", fd);
	}
	return look_up_user(c->front_user, settings, e);
}

static void on_stop_signal(void *ctx)
{
	struct keeper *k = ctx;

	log_event(LOG_INFO, "stopping", NULL);
	keeper_stop(k, k->settings->keep_sandboxes);
}

/* `tombolo serve` starts us with these blocked, so that none is lost before we listen. */
static void listen_to_signals(struct keeper *k)
{
	sigset_t none;

	(void)signal_new(k->loop, SIGTERM, on_stop_signal, k);
	(void)signal_new(k->loop, SIGINT, on_stop_signal, k);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The log is for machines; `tombolo serve` passes the sentence on to the person who started it. */
static _Noreturn void fail(const struct err *e)
{
	(void)dprintf(SERVE_FD, "%s\n", e->text);
	log_event(LOG_ERROR, "keeper_not_started", "why", e->text, NULL);
	log_stop();
	_exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	enum log_level level = LOG_INFO;
	struct keeper_settings settings;
	struct err e = ERR_NONE;
	struct keeper *keeper;
	struct config config;
	int result;

	if (argc != 2) {
		(void)fputs("tombolo-keeper is started by `tombolo serve` and is of no use by itself\n",
			    stderr);
		return 2;
	}
	config_init(&config);
	if (config_read_fd(CONFIG_FD, &config, &e) < 0) fail(&e);
	(void)log_level_parse(config.log_level, &level);
	(void)log_start("keeper", level);
	(void)prctl(PR_SET_NAME, "tombolo-keeper");
	(void)signal(SIGPIPE, SIG_IGN);
	(void)umask(022);
	program_raise_fd_limit();
	/* Whoever serves all sandboxes goes before any of them, for a moment at a time. Front and agents
	 * inherit it, commands do not. */
	program_set_priority(PRIORITY);
	(void)priority_set(PRIORITY, SLICE_US);
	/* Most of them wait for the kernel most of the time. */
	(void)setenv("UV_THREADPOOL_SIZE", "8", 1);
	if (settle(&config, argv[1], &settings, &e) < 0) fail(&e);
	/* The key is the front's business; the keeper never looks at it. */
	explicit_bzero(config.api_key, strlen(config.api_key));
	if (keeper_new(&settings, &keeper, &e) < 0) fail(&e);
	listen_to_signals(keeper);
	result = keeper_run(keeper);
	if (result < 0) (void)dprintf(SERVE_FD, "the server could not start: its log says why\n");
	keeper_end(keeper);
	log_stop();
	/* What is left is memory and descriptors: the kernel's work. */
	_exit(result < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}
