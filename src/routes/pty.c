/*
 * pty.c - GET /v1/sandbox/:id/pty: an interactive terminal on a socket (API.md 3.12, SEMANTICS 3).
 *
 * Which terminal: that of the terminal id; else the session's; else a new one of this connection alone, which
 * is hung up at its end. What is retained of an older one is gathered into one frame, then comes `ready`,
 * then everything as it happens.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/sha.h>

#include "base/mem.h"
#include "http/target.h"
#include "http/websocket.h"
#include "routes/answers.h"
#include "routes/attachment.h"
#include "routes/end_reason.h"
#include "routes/handlers.h"
#include "routes/terminal_size.h"

#define WORKSPACE  "/workspace"
#define REPLAY_MAX (512u << 10) /* bytes; an agent retains half of it */
#define WORDS_MAX  1000

struct pty {
	struct attachment a;
	unsigned flags;                /* enum terminal_flag */
	char name[NAME_ID_MAX + 1];    /* "" for a private one */
	char session[NAME_ID_MAX + 1]; /* "" for none */
	char cwd[PATH_LIMIT];          /* "": the session's */
	char shell[PATH_LIMIT];        /* "" for bash */
	uint16_t cols, rows; /* 0: the default; a terminal that lives takes both or stays as it is */
	struct buf replay;
};

static void pty_done(struct attachment *a)
{
	buf_done(&container_of(a, struct pty, a)->replay);
}

/* ---- what the client says ---- */

static void on_control(struct attachment *a, const struct control_message *m)
{
	switch (m->kind) {
	case CONTROL_MALFORMED: attachment_send_error(a, "Invalid control message"); break;
	case CONTROL_BAD_SIZE:
		attachment_send_error(a, "Invalid dimensions: cols and rows must be positive");
		break;
	case CONTROL_RESIZE:
		if (a->follow) terminal_resize(a->follow, m->cols, m->rows);
		break;
	case CONTROL_UNKNOWN:
	case CONTROL_INTERRUPT:
	case CONTROL_TERMINATE: break;
	}
}

static const struct attachment_class pty_class = {.on_control = on_control, .done = pty_done};

/* ---- what the terminal says ---- */

static void on_opened(void *ctx, const char *id, uint32_t pid)
{
	(void)id, (void)pid;
	attachment_accept(ctx);
}

static void on_log(void *ctx, const struct follow_event *event)
{
	struct attachment *a = ctx;
	struct pty *p = container_of(a, struct pty, a);

	if (a->ready || buf_add(&p->replay, event->bytes, event->len) < 0)
		websocket_send_binary(a->rq->x, event->bytes, event->len);
	attachment_sent(a, event->len);
}

static void on_gap(void *ctx, uint64_t seq)
{
	struct attachment *a = ctx;

	(void)seq;
	/* What is retained may begin anywhere; what is live has no holes. */
	if (a->ready) attachment_close(a, WEBSOCKET_TOO_SLOW, "the client cannot keep up");
}

static void become_ready(struct pty *p)
{
	struct attachment *a = &p->a;

	if (p->replay.len) websocket_send_binary(a->rq->x, p->replay.data, p->replay.len);
	buf_reset(&p->replay);
	attachment_send(a, json_pack("{s:s}", "type", "ready"));
}

static void on_now(void *ctx)
{
	struct attachment *a = ctx;

	become_ready(container_of(a, struct pty, a));
	attachment_ready(a);
}

static json_t *exit_frame(const struct operation_end *end)
{
	json_t *json = json_pack("{s:s, s:i}", "type", "exit", "code", end->code);
	const char *name = end->signo ? sigabbrev_np(end->signo) : NULL;

	if (name) json_object_set_new(json, "signal", json_sprintf("SIG%s", name));
	else if (end->signo) json_object_set_new(json, "signal", json_sprintf("SIG%d", end->signo));
	end_reason_add_of_limit(json, end);
	return json;
}

static void answer_failed(struct attachment *a, const char *why)
{
	char message[WORDS_MAX + 64];

	(void)snprintf(message, sizeof message, "terminal failed: %.*s", WORDS_MAX, why);
	http_reply_error(attachment_give_up(a)->x, 502, "exec_transport_error", message);
}

static void on_end(void *ctx, const struct operation_end *end)
{
	struct attachment *a = ctx;
	const char *why = *end->text ? end->text : "the sandbox did not answer";

	a->follow = NULL;
	if (!a->accepted) {
		answer_failed(a, why);
		return;
	}
	/* A program may be over before all that it left behind was told. */
	if (!a->ready) become_ready(container_of(a, struct pty, a));
	if (end->reason <= END_DISK) {
		attachment_send(a, exit_frame(end));
		attachment_close(a, WEBSOCKET_DONE, "");
	} else {
		attachment_send_error(a, why);
		attachment_close(a, WEBSOCKET_FAILED, "");
	}
}

static const struct follow_events events = {.on_opened = on_opened,
					    .on_log = on_log,
					    .on_gap = on_gap,
					    .on_now = on_now,
					    .on_room = attachment_on_room,
					    .on_end = on_end};

/* ---- the start ---- */

static void run(void *ctx, struct agent_link *link)
{
	struct pty *p = ctx;
	const char *const argv[] = {p->shell};
	const struct terminal_spec spec = {
		.flags = p->flags,
		.name = p->name,
		.uid = p->a.rq->routes->settings.uid,
		.cols = p->cols,
		.rows = p->rows,
		.cwd = p->cwd,
		.argv = argv,
		.argc = *p->shell ? 1 : 0,
		.session = p->session,
	};
	int r = terminal_start(link, &spec, &events, &p->a, &p->a.follow);

	if (r < 0) answer_failed(&p->a, why_not_begun(r));
}

/* ---- the request, in the order of API.md 3.12 ---- */

/* The header, else the first of the query's NAMES that is not empty; "" for none. */
static void take_text(const struct request *rq, const char *header, const char *const *names, char *text,
		      size_t size)
{
	const char *sent = header ? http_header(rq->x, header) : NULL;

	*text = '\0';
	/* What does not fit, or has a NUL, is wrong in any case. */
	if (sent && *sent) (void)snprintf(text, size, "%s", strlen(sent) < size ? sent : "..");
	for (; !*text && *names; names++) {
		auto_buf struct buf value = buf_with_cap(size - 1);
		int r = target_query_get(http_query(rq->x), *names, &value);
		if (r < 0 && r != -ENOENT) (void)snprintf(text, size, "..");
		else if (r == 0) (void)snprintf(text, size, "%s", buf_text(&value));
	}
}

static bool take_size(struct pty *p, const char *query)
{
	enum size_verdict cols = size_of_pty(query, "cols", &p->cols),
			  rows = size_of_pty(query, "rows", &p->rows);

	return cols != SIZE_WRONG && rows != SIZE_WRONG;
}

/* The name of a session's terminal; a long one is told from others of its kind by a digest. */
static void name_of_session(struct pty *p)
{
	unsigned char digest[SHA_DIGEST_LENGTH];
	size_t len = strlen(p->session);
	int n;

	if (len <= NAME_ID_MAX - sizeof "session-") {
		(void)snprintf(p->name, sizeof p->name, "session-%s", p->session);
		return;
	}
	SHA1((const unsigned char *)p->session, len, digest);
	n = snprintf(p->name, sizeof p->name, "session-%.64s-", p->session);
	for (size_t i = 0; i < sizeof digest; i++)
		n += snprintf(p->name + n, sizeof p->name - (size_t)n, "%02x", digest[i]);
}

/* What is wrong, or NULL. */
static const char *choose_terminal(struct pty *p, const struct request *rq)
{
	static const char *const terminal_names[] = {"terminalId", "terminal", NULL},
				 *const session_names[] = {"session", NULL};
	bool has_ids = rq->profile == PROFILE_UNION || rq->profile == PROFILE_PREVIEW;

	if (has_ids) take_text(rq, "terminal-id", terminal_names, p->name, sizeof p->name);
	if (rq->profile != PROFILE_PREVIEW)
		take_text(rq, "session-id", session_names, p->session, sizeof p->session);
	if (rq->profile == PROFILE_PREVIEW && !*p->name)
		return "terminalId query parameter or Terminal-Id header required";
	if (*p->name && !id_is_name(p->name, strlen(p->name))) return "Invalid terminal ID format";
	if (*p->session && !id_is_name(p->session, strlen(p->session))) return "Invalid session ID format";
	if (!*p->name && *p->session) name_of_session(p);
	p->flags = *p->name ? TERMINAL_SHARED : TERMINAL_PRIVATE;
	return NULL;
}

static const char *choose_program(struct pty *p, const struct request *rq)
{
	static const char *const cwd_names[] = {"cwd", NULL}, *const shell_names[] = {"shell", NULL};
	char cwd[PATH_LIMIT];

	take_text(rq, NULL, shell_names, p->shell, sizeof p->shell);
	take_text(rq, NULL, cwd_names, cwd, sizeof cwd);
	/* A session remembers where it was: "" is there. */
	if (!*cwd && *p->session) return NULL;
	if (path_resolve(WORKSPACE, cwd, strlen(cwd), p->cwd) < 0) return "cwd is too long";
	return NULL;
}

/* What is wrong, or NULL. */
static const char *judge(struct pty *p, const struct request *rq)
{
	const char *fault;

	if (!websocket_is_wanted(rq->x)) return "WebSocket upgrade required";
	if (!take_size(p, http_query(rq->x))) return "cols and rows must be valid numbers";
	fault = choose_terminal(p, rq);
	if (!fault) fault = choose_program(p, rq);
	if (!fault && !websocket_is_usable(rq->x)) fault = "WebSocket upgrade required";
	return fault;
}

void handle_pty(struct request *rq)
{
	struct pty *p = mem_new(sizeof *p);
	const char *fault = judge(p, rq);

	if (fault) {
		free(p);
		answer_invalid(rq->x, fault);
		return;
	}
	p->replay = buf_with_cap(REPLAY_MAX);
	attachment_begin(&p->a, rq, &pty_class);
	request_sandbox(rq, run, attachment_give_up, &p->a);
}
