/* measure_exec.c - one command after the other on one connection, and many at once on sixteen. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "bench.h"
#include "crowd.h"
#include "exec.h"
#include "floor_spawn.h"

#define EXECS       12 /* of each kind, in a round */
#define CROWD_EXECS 10 /* of each client, in a round */

static const char exec_true[] = "{\"argv\":[\"/bin/true\"]}";
static const char exec_static[] = "{\"argv\":[\"/workspace/true_static\"]}";
static const char make_executable[] = "{\"argv\":[\"chmod\",\"+x\",\"/workspace/true_static\"]}";

/* Brings the program into the sandbox the way a client would. */
static int put_static(struct bench *b, struct err *e)
{
	char path[256];
	struct stat st;
	auto_close int fd = open(b->static_path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0) return err_set(e, -errno, "open '%s'", b->static_path);
	auto_free char *bytes = mem_new((size_t)st.st_size);
	if (read(fd, bytes, (size_t)st.st_size) != st.st_size)
		return err_set(e, -EIO, "read '%s'", b->static_path);
	snprintf(path, sizeof path, "/v1/sandbox/%s/file/workspace/true_static", b->sandbox);
	int r = client_request(&b->client, "PUT", path, bytes, (size_t)st.st_size, 200, NULL, e);
	if (r < 0) return r;
	return sandbox_exec(&b->client, b->sandbox, make_executable, NULL, e);
}

static int exec_begin(struct bench *b, void **ret_state, struct err *e)
{
	(void)ret_state;
	return put_static(b, e);
}

static int exec_pair(struct bench *b, enum row row, const char *body, const char *path, struct err *e)
{
	double began = now_us();
	int r = sandbox_exec(&b->client, b->sandbox, body, NULL, e);
	double between = now_us();

	if (r == 0) r = spawn_and_wait(path, e);
	if (r < 0) return r;
	sample_ours(b, row, between - began);
	sample_floor(b, row, now_us() - between);
	return 0;
}

static int exec_round(struct bench *b, void *state, struct err *e)
{
	int r = 0;

	(void)state;
	for (int i = 0; r == 0 && i < EXECS; i++) {
		r = exec_pair(b, ROW_EXEC_STATIC, exec_static, b->static_path, e);
		if (r == 0) r = exec_pair(b, ROW_EXEC_TRUE, exec_true, "/bin/true", e);
	}
	return r;
}

const struct measurement measure_exec = {.begin = exec_begin, .round = exec_round};

struct crowd_clients {
	struct client client[CROWD_SIZE];
	const char *sandbox;
};

static void rate_end(void *state)
{
	struct crowd_clients *c = state;

	for (unsigned i = 0; c && i < CROWD_SIZE; i++)
		client_done(&c->client[i]);
	free(c);
}

static int rate_begin(struct bench *b, void **ret_state, struct err *e)
{
	struct crowd_clients *c = mem_new(sizeof *c);
	int r = 0;

	*ret_state = c;
	c->sandbox = b->sandbox;
	for (unsigned i = 0; r == 0 && i < CROWD_SIZE; i++)
		r = client_open(&c->client[i], &b->server_at, e);
	return r;
}

static int rate_ours(unsigned index, void *ctx, struct err *e)
{
	struct crowd_clients *c = ctx;
	int r = 0;

	for (int i = 0; r == 0 && i < CROWD_EXECS; i++)
		r = sandbox_exec(&c->client[index], c->sandbox, exec_true, NULL, e);
	return r;
}

static int rate_floor(unsigned index, void *ctx, struct err *e)
{
	int r = 0;

	(void)index;
	(void)ctx;
	for (int i = 0; r == 0 && i < CROWD_EXECS; i++)
		r = spawn_and_wait("/bin/true", e);
	return r;
}

static int rate_round(struct bench *b, void *state, struct err *e)
{
	const double execs = CROWD_SIZE * CROWD_EXECS;
	double ours_us, floor_us;
	int r = crowd_run(rate_ours, state, &ours_us, e);

	if (r == 0) r = crowd_run(rate_floor, NULL, &floor_us, e);
	if (r < 0) return r;
	sample_ours(b, ROW_EXEC_RATE, execs / ours_us * 1e6);
	sample_floor(b, ROW_EXEC_RATE, execs / floor_us * 1e6);
	return 0;
}

const struct measurement measure_rate = {.begin = rate_begin, .round = rate_round, .end = rate_end};
