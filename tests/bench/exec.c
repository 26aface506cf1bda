#include "exec.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "client.h"

#define KEPT 256

/*
 * A line of the event stream. Output lines are long and many: of those only the length and the last
 * characters matter, so that the reader never is what a measurement measures. Short lines are kept whole.
 */
struct sse {
	char kept[KEPT + 1]; /* the line's first bytes */
	char last[2];        /* its last two: the padding of base64 */
	size_t len;
	char event[16];
	uint64_t bytes; /* payload of stdout so far */
	int exit_code;
	bool ended;
	char problem[KEPT];
};

int sandbox_create(struct client *c, char *ret_id, size_t size, struct err *e)
{
	auto_buf struct buf body = buf_with_cap(4096);
	int r = client_request(c, "POST", "/v1/sandbox", "", 0, 200, &body, e);

	if (r < 0) return r;
	char *at = strstr(buf_text(&body), "\"id\"");
	at = at ? strchr(at + 4, '"') : NULL;
	size_t len = at ? strcspn(at + 1, "\"") : 0;
	if (len == 0 || len >= size) return err_say(e, -EPROTO, "POST /v1/sandbox answered without an id");
	memcpy(ret_id, at + 1, len);
	ret_id[len] = '\0';
	return 0;
}

int sandbox_delete(struct client *c, const char *id, struct err *e)
{
	char path[256];

	snprintf(path, sizeof path, "/v1/sandbox/%s", id);
	return client_request(c, "DELETE", path, NULL, 0, 204, NULL, e);
}

static void data_line(struct sse *s)
{
	size_t len = s->len - 6;

	if (strcmp(s->event, "stdout") == 0) {
		s->bytes += len / 4 * 3 - (len && s->last[1] == '=') - (len && s->last[0] == '=');
	} else if (strcmp(s->event, "exit") == 0) {
		const char *code = strstr(s->kept, "\"exit_code\":");
		s->exit_code = code ? atoi(code + 12) : -1;
		s->ended = true;
	} else if (strcmp(s->event, "error") == 0) {
		snprintf(s->problem, sizeof s->problem, "%s", s->kept + 6);
	}
}

static void end_of_line(struct sse *s)
{
	s->kept[MIN(s->len, (size_t)KEPT)] = '\0';
	if (strncmp(s->kept, "event: ", 7) == 0) snprintf(s->event, sizeof s->event, "%.15s", s->kept + 7);
	if (strncmp(s->kept, "data: ", 6) == 0) data_line(s);
	s->len = 0;
}

/* LEN more bytes of the line we are in. */
static void part_of_line(struct sse *s, const char *bytes, size_t len)
{
	if (len == 0) return;
	if (s->len < KEPT) memcpy(s->kept + s->len, bytes, MIN(len, KEPT - s->len));
	s->last[0] = len > 1 ? bytes[len - 2] : s->last[1];
	s->last[1] = bytes[len - 1];
	s->len += len;
}

static void sse_feed(struct sse *s, const char *bytes, size_t len)
{
	while (len) {
		const char *end = memchr(bytes, '\n', len);
		size_t part = end ? (size_t)(end - bytes) : len;
		part_of_line(s, bytes, part);
		if (!end) return;
		end_of_line(s);
		bytes = end + 1;
		len -= part + 1;
	}
}

int sandbox_exec(struct client *c, const char *id, const char *body, uint64_t *ret_bytes, struct err *e)
{
	char path[256];
	const char *bytes = NULL;
	struct sse s = {0};
	ssize_t n;

	snprintf(path, sizeof path, "/v1/sandbox/%s/exec", id);
	int r = client_send(c, "POST", path, body, strlen(body), e);
	if (r < 0) return r;
	int status = client_status(c, e);
	if (status < 0) return status;
	while ((n = client_body(c, &bytes, e)) > 0) {
		if (status != 200)
			return err_say(e, -EPROTO, "exec: status %d: %.*s", status, (int)MIN(n, (ssize_t)150),
				       bytes);
		sse_feed(&s, bytes, (size_t)n);
	}
	if (n < 0) return (int)n;
	if (*s.problem) return err_say(e, -EPROTO, "exec ended with an error: %.180s", s.problem);
	if (!s.ended) return err_say(e, -EPROTO, "the exec stream ended without exit (status %d)", status);
	if (s.exit_code) return err_say(e, -EPROTO, "%.150s: exit code %d", body, s.exit_code);
	if (ret_bytes) *ret_bytes = s.bytes;
	return 0;
}
