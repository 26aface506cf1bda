/*
 * main.c - tombolo-front: the network-facing program. The keeper starts it, as an unprivileged user, with
 *
 *     tombolo-front --config-fd N --control-fd N --listen-fd N [--listen-fd N ...]
 *
 * and those descriptors open: the settings in a sealed memory file, the control link, the listening sockets. Every
 * message is a line of the log on standard error. Exit status: 0 at an ordinary end, 1 for a server that could not
 * begin, 2 for arguments of another kind.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/program.h"
#include "config/config.h"
#include "front/front.h"
#include "front/lockdown.h"

#define LISTEN_MAX 8
#define UID_SANDBOX 1000
#define HTTP_CONNECTIONS_MAX 10000

struct arguments {
	int config_fd, control_fd;
	int listen_fds[LISTEN_MAX];
	size_t listen_count;
};

static int fail(const char *what)
{
	log_event(LOG_ERROR, "front_failed", "why", what, NULL);
	log_stop();
	return 1;
}

static bool parse_fd(const char *text, int *ret)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end || n < 3 || n > 1023) return false;
	*ret = (int)n;
	(void)fd_set_cloexec(*ret, true);
	return true;
}

static bool parse_arguments(int argc, char **argv, struct arguments *ret)
{
	static const struct option options[] = {
		{"config-fd", required_argument, NULL, 'c'},
		{"control-fd", required_argument, NULL, 'k'},
		{"listen-fd", required_argument, NULL, 'l'},
		{0},
	};
	bool fine = true;
	int option;

	*ret = (struct arguments){.config_fd = -1, .control_fd = -1};
	opterr = 0;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'c': fine &= parse_fd(optarg, &ret->config_fd); break;
		case 'k': fine &= parse_fd(optarg, &ret->control_fd); break;
		case 'l':
			fine &= ret->listen_count < LISTEN_MAX;
			if (fine) fine = parse_fd(optarg, &ret->listen_fds[ret->listen_count++]);
			break;
		default: fine = false;
		}
	}
	return fine && optind == argc && ret->config_fd >= 0 && ret->control_fd >= 0 && ret->listen_count > 0;
}

static int read_config(int fd, struct config *ret, struct err *e)
{
	int r = config_read_fd(fd, ret, e);

	fd_close(fd);
	return r;
}

/* The settings as the rooms below take them; they know nothing of config. */
static int take_settings(const struct config *c, const struct arguments *args, struct front_settings *ret)
{
	static const char *const instances[] = {
#define INSTANCE(name, cpu, memory, disk, pids) name,
#include "isolation/instance.def"
		NULL,
	};

	*ret = (struct front_settings){
		.routes = {
			.api_key = c->api_key,
			.file_limit = c->file_limit,
			.json_limit = c->json_limit,
			.keepalive_ms = (unsigned)MIN(c->keepalive_ms, UINT32_MAX),
			.kill_on_disconnect = strcmp(c->exec_on_disconnect, "kill") == 0,
			.uid = strcmp(c->user, "root") == 0 ? 0 : UID_SANDBOX,
			.instances = instances,
		},
		.http = {
			.head_max = 64u << 10,
			.head_timeout_ms = 30000,
			.idle_timeout_ms = 120000,
			.body_idle_timeout_ms = 60000,
			.write_idle_timeout_ms = 0,
			.connections_max = HTTP_CONNECTIONS_MAX,
		},
		.control_fd = args->control_fd,
		.listen_fds = args->listen_fds,
		.listen_count = args->listen_count,
	};
	return profile_parse(c->profile, &ret->routes.profile);
}

/* What a library would otherwise open or start at a moment of its own, when it is too late for that. */
static void prepare_libraries(void)
{
	size_t seed;

	id_random(&seed, sizeof seed);
	json_object_seed(seed | 1);
	(void)setenv("UV_THREADPOOL_SIZE", "8", 1);
}

int main(int argc, char **argv)
{
	struct front_settings settings;
	struct arguments args;
	struct config config;
	struct front *front = NULL;
	struct err e = ERR_NONE;
	enum log_level level;
	int status;

	if (!parse_arguments(argc, argv, &args)) {
		(void)fprintf(stderr, "tombolo-front is started by tombolo-keeper, not by hand\n");
		return 2;
	}
	config_init(&config);
	if (read_config(args.config_fd, &config, &e) < 0) return fail(e.text);
	if (!log_level_parse(config.log_level, &level) || take_settings(&config, &args, &settings) < 0)
		return fail("a setting has a value that the options do not allow");
	program_raise_fd_limit();
	prepare_libraries();
	if (front_new(&settings, &front, &e) < 0) return fail(e.text);
	if (lockdown(&e) < 0) return fail(e.text);
	(void)log_start("front", level);
	status = front_run(front);
	front_free(front);
	config_done(&config);
	log_stop();
	return status;
}
