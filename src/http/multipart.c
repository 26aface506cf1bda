#include "http/multipart.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

/* ---- headers with parameters ---- */

static const char *skip_blanks(const char *at)
{
	while (*at == ' ' || *at == '\t')
		at++;
	return at;
}

/* A value, quoted or not, into OUT of SIZE bytes; one that is too long becomes "". Where it ends. */
static const char *take_value(const char *at, char *out, size_t size)
{
	bool quoted = *at == '"';
	size_t len = 0;

	if (quoted) at++;
	while (*at && (quoted ? *at != '"' : !strchr("; \t", *at))) {
		/* A backslash escapes a quote or itself; elsewhere it stands for itself, as in the paths of
		 * some clients. */
		if (quoted && *at == '\\' && (at[1] == '"' || at[1] == '\\')) at++;
		if (len < size) out[len] = *at;
		len++;
		at++;
	}
	out[len < size ? len : 0] = '\0';
	if (quoted && *at) at++;
	return at;
}

/* The parameter NAME behind the first ";" of VALUE. Whether it is there. */
static bool parameter(const char *value, const char *name, char *out, size_t size)
{
	const char *at = strchr(value, ';');
	size_t name_len = strlen(name);

	while (at && *at == ';') {
		bool wanted;

		at = skip_blanks(at + 1);
		wanted = strncasecmp(at, name, name_len) == 0 && at[name_len] == '=';
		at += strcspn(at, "=;");
		if (*at == '=') {
			char other[2];

			at = wanted ? take_value(at + 1, out, size) : take_value(at + 1, other, sizeof other);
			if (wanted) return true;
		}
		at = strchr(at, ';');
	}
	return false;
}

static bool is_boundary(const char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] > '~') return false;
	return len > 0 && text[len - 1] != ' ';
}

int multipart_init(struct multipart *m, const char *content_type, const struct multipart_events *events,
		   void *ctx)
{
	static const char type[] = "multipart/form-data";
	char boundary[MULTIPART_BOUNDARY_MAX + 1];

	if (!content_type) return -EINVAL;
	content_type = skip_blanks(content_type);
	if (strncasecmp(content_type, type, sizeof type - 1) != 0) return -EINVAL;
	if (*skip_blanks(content_type + sizeof type - 1) != ';') return -EINVAL;
	if (!parameter(content_type, "boundary", boundary, sizeof boundary) || !is_boundary(boundary))
		return -EINVAL;
	m->events = events;
	m->ctx = ctx;
	m->state = MULTIPART_PREAMBLE;
	m->parts = 0;
	m->headers_len = 0;
	m->delimiter_len = 4 + strlen(boundary);
	memcpy(m->delimiter, "\r\n--", 4);
	memcpy(m->delimiter + 4, boundary, strlen(boundary) + 1);
	m->matched = 2; /* the first one needs no line before it */
	return 0;
}

/* ---- the headers of a part ---- */

static void find_name(char *headers, char name[MULTIPART_NAME_MAX + 1])
{
	static const char disposition[] = "content-disposition:";
	char *line = headers, *next;

	name[0] = '\0';
	for (; line; line = next) {
		next = strstr(line, "\r\n");
		if (next) {
			*next = '\0';
			next += 2;
		}
		if (strncasecmp(line, disposition, sizeof disposition - 1) != 0) continue;
		(void)parameter(line, "name", name, MULTIPART_NAME_MAX + 1);
		return;
	}
}

static bool headers_end(const struct multipart *m)
{
	if (m->headers_len == 2) return memcmp(m->headers, "\r\n", 2) == 0;
	return m->headers_len >= 4 && memcmp(m->headers + m->headers_len - 4, "\r\n\r\n", 4) == 0;
}

static void add_header_byte(struct multipart *m, char c)
{
	char name[MULTIPART_NAME_MAX + 1];

	if (c == '\0' || m->headers_len == MULTIPART_HEADERS_MAX) {
		m->state = MULTIPART_BROKEN;
		return;
	}
	m->headers[m->headers_len++] = c;
	if (!headers_end(m)) return;
	m->headers[m->headers_len] = '\0';
	find_name(m->headers, name);
	m->headers_len = 0;
	m->matched = 0;
	m->state = MULTIPART_DATA;
	m->events->on_part(m->ctx, name);
}

/* ---- data, up to the next delimiter ---- */

static void emit(struct multipart *m, const char *bytes, size_t len)
{
	if (len && m->state == MULTIPART_DATA) m->events->on_data(m->ctx, bytes, len);
}

static void delimiter_found(struct multipart *m)
{
	if (m->state == MULTIPART_DATA) m->events->on_part_end(m->ctx);
	m->matched = 0;
	m->state = ++m->parts > MULTIPART_PARTS_MAX ? MULTIPART_BROKEN : MULTIPART_AFTER;
}

/* Takes what is no delimiter, and goes on with one that has begun. How many bytes it used. */
static size_t take_data(struct multipart *m, const char *bytes, size_t len)
{
	const char *end = bytes + len, *at = bytes;

	while (at < end) {
		const char *cr;

		for (; m->matched && at < end && *at == m->delimiter[m->matched]; at++) {
			if (++m->matched == m->delimiter_len) {
				delimiter_found(m);
				return (size_t)(at + 1 - bytes);
			}
		}
		if (at == end) break;
		if (m->matched) emit(m, m->delimiter, m->matched);
		cr = memchr(at, '\r', (size_t)(end - at));
		emit(m, at, (size_t)((cr ? cr : end) - at));
		m->matched = cr ? 1 : 0;
		at = cr ? cr + 1 : end;
	}
	return len;
}

/* ---- what lies between ---- */

static enum multipart_state after_delimiter(enum multipart_state state, char c)
{
	if (state == MULTIPART_CLOSING) return c == '-' ? MULTIPART_EPILOGUE : MULTIPART_BROKEN;
	if (state == MULTIPART_LINE_END) return c == '\n' ? MULTIPART_HEADERS : MULTIPART_BROKEN;
	if (c == ' ' || c == '\t') return MULTIPART_AFTER;
	if (c == '-') return MULTIPART_CLOSING;
	return c == '\r' ? MULTIPART_LINE_END : MULTIPART_BROKEN;
}

int multipart_feed(struct multipart *m, const void *bytes, size_t len)
{
	const char *at = bytes, *end = at + len;

	while (at < end) {
		switch (m->state) {
		case MULTIPART_PREAMBLE:
		case MULTIPART_DATA: at += take_data(m, at, (size_t)(end - at)); break;
		case MULTIPART_AFTER:
		case MULTIPART_CLOSING:
		case MULTIPART_LINE_END: m->state = after_delimiter(m->state, *at++); break;
		case MULTIPART_HEADERS: add_header_byte(m, *at++); break;
		case MULTIPART_EPILOGUE: return 0;
		case MULTIPART_BROKEN: return -EINVAL;
		}
	}
	return m->state == MULTIPART_BROKEN ? -EINVAL : 0;
}

bool multipart_is_complete(const struct multipart *m)
{
	return m->state == MULTIPART_EPILOGUE;
}
