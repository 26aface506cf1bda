/*
 * exec.c - tombolo exec: a command in a sandbox, its output on ours as it comes, its exit status as ours.
 *
 * Theory of operation: one request whose answer is a stream of events (sse.h). `stdout` and `stderr` carry
 * bytes in base64 and are written at once; `exit` or `error` comes last. Standard input is read only with
 * --stdin and then before the request: a program that holds ours open can never keep us from ending.
 */
#include "cli/commands.h"

#include <errno.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cli/client.h"
#include "cli/sse.h"

#define STDIN_MAX ((size_t)1 << 20) /* it travels inside the JSON of the request */

struct exec_args {
	const char *url, *cwd;
	struct args_texts env;
	uint64_t timeout_ms;
	bool with_stdin, keep;
};

static const struct args_option exec_options[] = {
	{"cwd", 'C', "DIR", "where to run it: /workspace or below", ARGS_TEXT,
	 offsetof(struct exec_args, cwd)},
	{"env", 'e', "NAME=VALUE", "one more environment variable", ARGS_TEXTS,
	 offsetof(struct exec_args, env)},
	{"timeout", 't', "TIME", "end it and all it started after 500ms, 30s, 5m", ARGS_DURATION,
	 offsetof(struct exec_args, timeout_ms)},
	{"stdin", 'i', NULL, "send standard input (UTF-8, at most 1 MiB)", ARGS_SWITCH,
	 offsetof(struct exec_args, with_stdin)},
	{"keep", 'k', NULL, "let it run on when this program is interrupted", ARGS_SWITCH,
	 offsetof(struct exec_args, keep)},
	OPTION_URL(exec_args),
};

const struct args_syntax exec_syntax = {
	.command = "exec",
	.operands = "SANDBOX -- COMMAND [ARGUMENT...]",
	.summary = "Runs a command in a sandbox, which is made if there is none of this id.",
	.options = exec_options,
	.option_count = ARRAY_LEN(exec_options),
	.least = 2,
	.most = -1,
	.operands_end_options = true,
	.more = "Exit status: the command's own, 128+N when signal N ended it, 124 after a timeout; 2 when "
		"the request was\n"
		"wrong, 1 when the server failed. A sentence on standard error tells those apart from the "
		"command's own.",
};

/* ---- the request ---- */

static int add_env(json_t *body, const struct args_texts *env, struct err *e)
{
	json_t *object = json_object();

	json_object_set_new(body, "env", object);
	for (size_t i = 0; i < env->count; i++) {
		const char *equals = strchr(env->items[i], '=');
		auto_free char *name = NULL;

		if (!equals || equals == env->items[i])
			return err_say(e, -EINVAL, "--env wants NAME=VALUE, not '%s'", env->items[i]);
		name = mem_strndup(env->items[i], (size_t)(equals - env->items[i]));
		if (json_object_set_new(object, name, json_string(equals + 1)) < 0)
			return err_say(e, -EINVAL, "the environment variable %s is not UTF-8", name);
	}
	return 0;
}

static int add_stdin(json_t *body, struct err *e)
{
	auto_buf struct buf in = buf_with_cap(STDIN_MAX + 1);

	for (;;) {
		char piece[16384];
		ssize_t n = read(STDIN_FILENO, piece, sizeof piece);

		if (n < 0 && errno == EINTR) continue;
		if (n < 0) return err_set(e, -errno, "read standard input");
		if (n == 0) break;
		if (buf_add(&in, piece, (size_t)n) < 0 || in.len > STDIN_MAX)
			return err_say(
				e, -EINVAL,
				"standard input is larger than 1 MiB: send it with 'tombolo cp' first");
	}
	if (!utf8_valid(in.data ? in.data : "", in.len))
		return err_say(e, -EINVAL, "standard input is not UTF-8: send it with 'tombolo cp' first");
	json_object_set_new(body, "stdin", json_stringn(in.data ? in.data : "", in.len));
	return 0;
}

static int request_body(const struct exec_args *args, char **argv, char **ret, struct err *e)
{
	json_t *body = json_object(), *words = json_array();
	int r = 0;

	json_object_set_new(body, "argv", words);
	for (; r == 0 && *argv; argv++)
		if (json_array_append_new(words, json_string(*argv)) < 0)
			r = err_say(e, -EINVAL, "an argument is not UTF-8");
	if (r == 0 && args->cwd && json_object_set_new(body, "cwd", json_string(args->cwd)) < 0)
		r = err_say(e, -EINVAL, "the directory is not UTF-8");
	if (args->timeout_ms > 0)
		json_object_set_new(body, "timeout_ms", json_integer((json_int_t)args->timeout_ms));
	if (r == 0 && args->env.count > 0) r = add_env(body, &args->env, e);
	if (r == 0 && args->with_stdin) r = add_stdin(body, e);
	if (r == 0) *ret = json_dumps(body, JSON_COMPACT);
	json_decref(body);
	return r;
}

/* ---- the answer ---- */

struct output {
	struct sse sse;
	struct buf bytes; /* of one event, decoded */
	bool ended;       /* `exit` or `error` was seen */
	int status;
	struct err *e; /* of the call in progress */
};

static int write_output(struct output *out, int fd, const struct sse_event *event)
{
	size_t padding = 0;
	char *room;
	int n;

	if (event->len == 0) return 0;
	buf_clear(&out->bytes);
	room = buf_reserve(&out->bytes, event->len);
	n = room ? EVP_DecodeBlock((unsigned char *)room, (const unsigned char *)event->data, (int)event->len)
		 : -1;
	if (n < 0) return err_say(out->e, -EPROTO, "the server sent output that is not base64");
	while (padding < 2 && event->data[event->len - 1 - padding] == '=')
		padding++; /* libcrypto counts it as bytes */
	n = fd_write_all(fd, room, (size_t)n - padding);
	return n < 0 ? err_set(out->e, n, "write to standard %s", fd == STDOUT_FILENO ? "output" : "error")
		     : 0;
}

/* Why a command was ended from outside, where the exit status alone would leave one guessing. */
static void explain(const char *reason)
{
	static const struct {
		const char *reason, *sentence;
	} known[] = {
		{"oom", "the command was ended: the sandbox's memory limit was reached"},
		{"pids", "the command failed at the sandbox's limit of processes"},
		{"disk", "the command failed: the sandbox's disk is full"},
		{"cancelled", "the command was ended on request"},
		{"sandbox_deleted", "the command was ended: the sandbox was deleted"},
	};

	for (size_t i = 0; reason && i < ARRAY_LEN(known); i++)
		if (strcmp(reason, known[i].reason) == 0) fprintf(stderr, "tombolo: %s\n", known[i].sentence);
}

static int take_end(struct output *out, const struct sse_event *event, bool failed)
{
	json_t *json = json_loadb(event->data, event->len, 0, NULL);
	json_t *code = json_object_get(json, "exit_code");
	const char *text = json_string_value(json_object_get(json, "error"));
	int r = 0;

	out->ended = true;
	if (failed) {
		r = err_say(out->e, -EREMOTEIO, "%s", text ? text : "the server could not run the command");
	} else if (json_is_integer(code)) {
		out->status = (int)(json_integer_value(code) & 0xff);
		explain(json_string_value(json_object_get(json, "reason")));
	} else {
		r = err_say(out->e, -EPROTO, "the server's exit event holds no exit_code");
	}
	json_decref(json);
	return r;
}

static int on_event(void *ctx, const struct sse_event *event)
{
	struct output *out = ctx;

	if (strcmp(event->name, "stdout") == 0) return write_output(out, STDOUT_FILENO, event);
	if (strcmp(event->name, "stderr") == 0) return write_output(out, STDERR_FILENO, event);
	if (strcmp(event->name, "exit") == 0) return take_end(out, event, false);
	if (strcmp(event->name, "error") == 0) return take_end(out, event, true);
	return 0; /* a newer server's event */
}

static int on_bytes(void *ctx, const char *bytes, size_t len, struct err *e)
{
	struct output *out = ctx;
	int r;

	out->e = e;
	r = sse_feed(&out->sse, bytes, len, on_event, out);
	if (r == -E2BIG) return err_say(e, -EPROTO, "the server sent an event that is too large");
	return r;
}

static int run(const struct exec_args *args, const char *id, char **command)
{
	struct output out = {.bytes = buf_with_cap(SSE_EVENT_MAX + 4)};
	struct err e = ERR_NONE;
	auto_free char *body = NULL;
	auto_free char *path = NULL;
	struct client *c;
	int r;

	if (request_body(args, command, &body, &e) < 0) return command_failed(&e);
	if (asprintf(&path, "/v1/sandbox/%s/exec", id) < 0) abort();
	c = command_client(args->url);
	sse_init(&out.sse);

	struct client_request q = {
		.method = "POST",
		.path = path,
		.json = body,
		.header = args->keep ? NULL : "X-Exec-On-Disconnect: kill",
		.on_bytes = on_bytes,
		.ctx = &out,
	};
	r = client_call(c, &q, NULL, &e);
	if (r == 0 && !out.ended)
		r = err_say(&e, -EPROTO, "the server's stream ended before the command did");
	sse_done(&out.sse);
	buf_done(&out.bytes);
	client_free(c);
	return r < 0 ? command_failed(&e) : out.status;
}

int exec_main(int argc, char **argv)
{
	struct exec_args args = {0};
	int first = args_parse(&exec_syntax, argc, argv, &args);
	const char *id = command_sandbox(argv[first]);
	char **command = argv + first + 1;
	int status = EXIT_USAGE;

	if (strcmp(command[0], "--") == 0) command++;
	if (*command) status = run(&args, id, command);
	else fprintf(stderr, "tombolo exec: no command after --\n");
	free(args.env.items);
	return status;
}
