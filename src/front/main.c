/*
 * main.c - tombolo-front: the network-facing program. The keeper starts it, as an unprivileged user, with
 *
 *     tombolo-front --control-fd N --config-fd N --listen-fds COUNT
 *
 * and these open: the control link, the settings in a sealed memory file, and COUNT listening sockets from
 * descriptor LISTEN_FIRST on. Every message is a line of the log on standard error. Exit status: 0 at an
 * ordinary end, 1 for a server that could not begin, 2 for arguments of another kind.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include <jansson.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/program.h"
#include "config/address.h"
#include "config/config.h"
#include "front/front.h"
#include "front/lockdown.h"

#define LISTEN_FIRST          5
#define FRONT_LISTEN_MAX      8
#define UID_SANDBOX           1000
#define HTTP_CONNECTIONS_MAX  10000
#define POOL_REFRESH_LEAST_MS 100

struct arguments {
	int config_fd, control_fd;
	int listen_fds[FRONT_LISTEN_MAX];
	size_t listen_count;
};

static int fail(const char *what)
{
	log_event(LOG_ERROR, "front_failed", "why", what, NULL);
	log_stop();
	return 1;
}

static bool parse_number(const char *text, int least, int most, int *ret)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end || n < least || n > most) return false;
	*ret = (int)n;
	return true;
}

static bool parse_arguments(int argc, char **argv, struct arguments *ret)
{
	static const struct option options[] = {
		{"control-fd", required_argument, NULL, 'k'},
		{"config-fd", required_argument, NULL, 'c'},
		{"listen-fds", required_argument, NULL, 'l'},
		{0},
	};
	bool fine = true;
	int option, listen_count = 0;

	*ret = (struct arguments){.config_fd = -1, .control_fd = -1};
	opterr = 0;
	while (fine && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'k': fine = parse_number(optarg, 3, 1023, &ret->control_fd); break;
		case 'c': fine = parse_number(optarg, 3, 1023, &ret->config_fd); break;
		case 'l': fine = parse_number(optarg, 1, FRONT_LISTEN_MAX, &listen_count); break;
		default: fine = false;
		}
	}
	for (int i = 0; i < listen_count; i++)
		ret->listen_fds[ret->listen_count++] = LISTEN_FIRST + i;
	return fine && optind == argc && ret->config_fd >= 0 && ret->control_fd >= 0 && listen_count > 0;
}

/* Whether what the arguments name is there; from here on no other program would get it. */
static bool own_descriptors(const struct arguments *args)
{
	int r = fd_set_cloexec(args->control_fd, true);

	if (r == 0) r = fd_set_cloexec(args->config_fd, true);
	for (size_t i = 0; r == 0 && i < args->listen_count; i++)
		r = fd_set_cloexec(args->listen_fds[i], true);
	return r == 0;
}

static int read_config(int fd, struct config *ret, struct err *e)
{
	int r = config_read_fd(fd, ret, e);

	fd_close(fd);
	return r;
}

/* The sockets are in the order of the addresses. */
static int take_profiles(const struct config *c, size_t listen_count, enum profile profiles[FRONT_LISTEN_MAX])
{
	struct address addresses[ADDRESSES_MAX];
	int count = addresses_parse(c->listen, addresses, NULL), r = 0;

	if (count < 0 || (size_t)count != listen_count) return -EINVAL;
	for (int i = 0; i < count && r == 0; i++)
		r = profile_parse(addresses[i].profile[0] ? addresses[i].profile : c->profile, &profiles[i]);
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
		.routes =
			{
				.api_key = c->api_key,
				.file_limit = c->file_limit,
				.hydrate_limit = c->hydrate_limit,
				.json_limit = c->json_limit,
				.keepalive_ms = (unsigned)MIN(c->keepalive_ms, UINT32_MAX),
				.kill_on_disconnect = strcmp(c->exec_on_disconnect, "kill") == 0,
				.uid = strcmp(c->user, "root") == 0 ? 0 : UID_SANDBOX,
				.instances = instances,
			},
		.pool =
			{
				.target = c->warm_pool_target,
				.batch = c->warm_pool_scale_batch_size,
				.refresh_ms = MAX(c->warm_pool_refresh_interval, POOL_REFRESH_LEAST_MS),
				.max_instances = c->warm_pool_max_instances,
			},
		.http =
			{
				.head_max = 64u << 10,
				.head_timeout_ms = 30000,
				.idle_timeout_ms = 120000,
				.body_idle_timeout_ms = 60000,
				.write_idle_timeout_ms = 0,
				.connections_max = HTTP_CONNECTIONS_MAX,
			},
		.sleep_after_ms = c->sleep_after,
		.control_fd = args->control_fd,
		.listen_fds = args->listen_fds,
		.listen_count = args->listen_count,
	};
	ret->routes.profiles = ret->profiles;
	return take_profiles(c, args->listen_count, ret->profiles);
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

	if (!parse_arguments(argc, argv, &args) || !own_descriptors(&args)) {
		(void)fprintf(stderr, "tombolo-front is started by tombolo-keeper, not by hand\n");
		return 2;
	}
	(void)prctl(PR_SET_NAME, "tombolo-front");
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
