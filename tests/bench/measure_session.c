/* measure_session.c - the same command with a session and without. */
#include "base/err.h"
#include "base/mem.h"
#include "bench.h"
#include "exec.h"

#define EXECS 6 /* of each kind, in a round */

static const struct {
	enum row row;
	const char *body;
} commands[] = {
	{ROW_SESSION_BUILTIN, "{\"argv\":[\"cd\",\"/tmp\"]}"},
	{ROW_SESSION_BASH, "{\"argv\":[\"bash\",\"-lc\",\"echo $PWD\"]}"},
	{ROW_SESSION_SH, "{\"argv\":[\"sh\",\"-lc\",\"echo $PWD\"]}"},
	{ROW_SESSION_TRUE, "{\"argv\":[\"/bin/true\"]}"},
};

static int session_begin(struct bench *b, void **ret_state, struct err *e)
{
	struct client *c = mem_new(sizeof *c);
	int r = client_open(c, &b->server_at, e);

	*ret_state = c;
	c->headers = "Session-Id: bench\r\n";
	return r;
}

static int timed_exec(struct bench *b, struct client *c, const char *body, double *ret_us, struct err *e)
{
	double began = now_us();
	int r = sandbox_exec(c, b->sandbox, body, NULL, e);

	*ret_us = now_us() - began;
	return r;
}

static int session_round(struct bench *b, void *state, struct err *e)
{
	double with_us = 0, without_us = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < EXECS * ARRAY_LEN(commands); i++) {
		size_t kind = i % ARRAY_LEN(commands);

		r = timed_exec(b, state, commands[kind].body, &with_us, e);
		if (r == 0) r = timed_exec(b, &b->client, commands[kind].body, &without_us, e);
		if (r < 0) break;
		sample_ours(b, commands[kind].row, with_us);
		sample_floor(b, commands[kind].row, without_us);
	}
	return r;
}

static void session_end(void *state)
{
	if (state) client_done(state);
	free(state);
}

const struct measurement measure_session = {
	.begin = session_begin, .round = session_round, .end = session_end};
