/*
 * main.c - sets up, runs the rounds, reports, and cleans up whatever happens.
 *
 * Theory of operation: SIGINT, SIGTERM and SIGHUP are blocked everywhere; one thread waits for them, ends the
 * server, removes our directory and exits. So no measurement needs to be interruptible. The normal end takes
 * the same path. A measurement that fails says why and is out for the rest of the run; the others go on, and
 * the exit status tells.
 */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "bench.h"
#include "exec.h"
#include "floor_namespaces.h"
#include "options.h"
#include "report.h"
#include "server.h"

#define ROUNDS_LEAST 2

struct running {
	const char *name;
	unsigned every;
	const struct measurement *m;
	void *state;
	bool wanted, begun, failed;
};

static struct bench bench;
static pthread_mutex_t clean_up_once = PTHREAD_MUTEX_INITIALIZER;

static struct running measurements[] = {
#define MEASUREMENT(name, every) {#name, every, &measure_##name, NULL, false, false, false},
#include "measurements.def"
};

double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	(void)remove(path);
	return 0;
}

/* Ends the server and removes our files. Whoever comes second waits for ever: the first one exits. */
static int clean_up(void)
{
	struct err e = ERR_NONE;

	pthread_mutex_lock(&clean_up_once);
	int r = server_stop(bench.server, &e);
	if (r < 0) fprintf(stderr, "%s\n", e.text);
	(void)nftw(bench.dir, remove_one, 32, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	return r;
}

static void *wait_for_signal(void *signals)
{
	int number;

	sigwait(signals, &number);
	(void)clean_up();
	_exit(128 + number);
}

static void start_signal_thread(void)
{
	static sigset_t signals;
	pthread_t thread;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	if (pthread_create(&thread, NULL, wait_for_signal, &signals) == 0) pthread_detach(thread);
}

/* NAME relative to the directory of the running program. */
static char *beside(const char *name)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	self[MAX(n, (ssize_t)0)] = '\0';
	char *slash = strrchr(self, '/'), *path;
	if (slash) *slash = '\0';
	if (asprintf(&path, "%s/%s", self, name) < 0) abort();
	return path;
}

static int make_dir(char **ret, struct err *e)
{
	const char *parent = getenv("TMPDIR");
	auto_free char *path = NULL;

	if (asprintf(&path, "%s/tombolo-bench-XXXXXX", parent && *parent ? parent : "/tmp") < 0) abort();
	if (!mkdtemp(path)) return err_set(e, -errno, "make a directory for the run");
	*ret = take_ptr(path);
	return 0;
}

/* One question on a connection of its own: a server that answers is one that has set itself up completely. */
static int first_contact(struct err *e)
{
	struct client c = {0};
	int r = client_open(&c, &bench.server_at, e);

	if (r == 0) r = client_request(&c, "GET", "/health", NULL, 0, 200, NULL, e);
	client_done(&c);
	return r;
}

static int find_server(const struct options *o, struct err *e)
{
	auto_free char *tombolo = o->tombolo ? mem_strdup(o->tombolo) : beside("../../tombolo");
	int r = o->url ? endpoint_parse(o->url, &bench.server_at, e)
		       : server_start(tombolo, bench.dir, &bench.server, &bench.server_at, e);

	if (r < 0) return r;
	bench.server_at.key = getenv("SANDBOX_API_KEY");
	r = first_contact(e);
	if (r == 0) r = client_open(&bench.client, &bench.server_at, e);
	if (r < 0) return r;
	return sandbox_create(&bench.client, bench.sandbox, sizeof bench.sandbox, e);
}

/* After a failure the connection may be in the middle of a response. */
static void fresh_client(void)
{
	struct err e = ERR_NONE;

	client_done(&bench.client);
	if (client_open(&bench.client, &bench.server_at, &e) < 0) fprintf(stderr, "%s\n", e.text);
}

static void take_turn(struct running *run)
{
	struct err e = ERR_NONE;
	int r = 0;

	if (!run->begun && run->m->begin) r = run->m->begin(&bench, &run->state, &e);
	run->begun = true;
	if (r == 0) r = run->m->round(&bench, run->state, &e);
	if (r == 0) return;
	run->failed = true;
	fprintf(stderr, "%s failed: %s\n", run->name, e.text);
	fresh_client();
}

static void run_rounds(unsigned seconds)
{
	double end = now_us() + seconds * 1e6;
	bool talks = isatty(2);

	while (bench.round < ROUNDS_LEAST || now_us() < end) {
		if (talks)
			fprintf(stderr, "\rround %u, %.0f s left ", bench.round + 1,
				MAX(0, (end - now_us()) / 1e6));
		for (size_t i = 0; i < ARRAY_LEN(measurements); i++) {
			struct running *run = &measurements[i];
			if (run->wanted && !run->failed && bench.round % run->every == 0) take_turn(run);
		}
		bench.round++;
	}
	if (talks) fprintf(stderr, "\r%30s\r", "");
}

static bool end_measurements(void)
{
	bool good = true;

	for (size_t i = 0; i < ARRAY_LEN(measurements); i++) {
		if (measurements[i].m->end) measurements[i].m->end(measurements[i].state);
		good &= !measurements[i].failed;
	}
	return good;
}

static int set_up(const struct options *o, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(measurements); i++)
		measurements[i].wanted = options_wants(o, measurements[i].name);
	bench.quick = o->quick;
	bench.static_path = beside("true_static");
	int r = make_dir(&bench.dir, e);
	if (r < 0) return r;
	r = namespace_floor_new(bench.dir, &bench.namespaces, e);
	if (r < 0) return r;
	start_signal_thread();
	return find_server(o, e);
}

/* Returns whether everything ran. */
static bool measure(const struct options *o)
{
	struct err e = ERR_NONE;
	bool good = set_up(o, &e) == 0;

	if (good) {
		run_rounds(o->seconds);
		report_print(&bench);
		if (o->json) good = report_write_json(&bench, o->json, &e) == 0;
		good &= end_measurements();
		struct err ignored = ERR_NONE;
		(void)sandbox_delete(&bench.client, bench.sandbox, &ignored);
	}
	if (e.code) fprintf(stderr, "%s\n", e.text);
	client_done(&bench.client);
	bench.namespaces = namespace_floor_free(bench.namespaces);
	return good;
}

int main(int argc, char **argv)
{
	struct options options;
	struct err e = ERR_NONE;

	if (options_parse(argc, argv, &options, &e) < 0) {
		fprintf(stderr, "tombolo-bench: %s\n", e.text);
		return 2;
	}
	if (options.help) {
		options_print_help();
		return 0;
	}
	bool good = measure(&options);
	if (bench.dir && clean_up() < 0) good = false;
	for (enum row row = 0; row < ROW_COUNT; row++) {
		series_done(&bench.ours[row]);
		series_done(&bench.floor[row]);
	}
	free(bench.static_path);
	free(bench.dir);
	return good ? 0 : 1;
}
