#include "http/guard.h"

#include <string.h>
#include <strings.h>

unsigned guard_status(enum guard_fault fault)
{
	switch (fault) {
	case GUARD_FINE: return 0;
#define GUARD_CASE(name, status, text) \
	case GUARD_##name: return status;
		GUARD_FAULTS(GUARD_CASE)
#undef GUARD_CASE
	}
	return 400;
}

const char *guard_text(enum guard_fault fault)
{
	switch (fault) {
	case GUARD_FINE: return "";
#define GUARD_CASE(name, status, text) \
	case GUARD_##name: return text;
		GUARD_FAULTS(GUARD_CASE)
#undef GUARD_CASE
	}
	return "";
}

/* ---- before the parser ---- */

enum state {
	BEFORE, /* nothing yet, or only empty lines (RFC 9112, 2.2 asks us to skip them) */
	BEFORE_CR,
	METHOD,
	TARGET_START, /* a second space here is something that only some servers skip */
	REQUEST_LINE, /* target and version: judged by the parser */
	LINE_START,
	NAME,
	VALUE,
	LINE_CR, /* a line feed must follow */
	LAST_CR, /* of the empty line */
};

/* RFC 9110, 5.6.2: the characters of a token. */
static bool is_token(unsigned char b)
{
	static const bool others[128] = {
		['!'] = true,  ['#'] = true, ['$'] = true, ['%'] = true, ['&'] = true,
		['\''] = true, ['*'] = true, ['+'] = true, ['-'] = true, ['.'] = true,
		['^'] = true,  ['_'] = true, ['`'] = true, ['|'] = true, ['~'] = true};

	if ((b | 0x20) >= 'a' && (b | 0x20) <= 'z') return true;
	if (b >= '0' && b <= '9') return true;
	return b < 128 && others[b];
}

static bool is_control(unsigned char b)
{
	return (b < 0x20 && b != '\t') || b == 0x7f;
}

static enum guard_fault in_line(struct guard *g, unsigned char b)
{
	if (!is_control(b)) return GUARD_FINE;
	if (b == '\n') return GUARD_BARE_LF;
	if (b != '\r') return GUARD_CONTROL;
	g->state = LINE_CR;
	return GUARD_FINE;
}

static enum guard_fault at_line_start(struct guard *g, unsigned char b)
{
	if (b == '\r') {
		g->state = LAST_CR;
		return GUARD_FINE;
	}
	if (b == '\n') return GUARD_BARE_LF;
	if (b == ' ' || b == '\t') return GUARD_FOLDED;
	if (!is_token(b)) return GUARD_FIELD_NAME;
	g->state = NAME;
	return GUARD_FINE;
}

static enum guard_fault step(struct guard *g, unsigned char b)
{
	switch ((enum state)g->state) {
	case BEFORE:
		if (b == '\r') {
			g->state = BEFORE_CR;
			return GUARD_FINE;
		}
		g->state = METHOD;
		return b >= 'A' && b <= 'Z' ? GUARD_FINE : GUARD_NOT_HTTP;
	case BEFORE_CR:
		g->state = BEFORE;
		g->skipped = g->seen;
		return b == '\n' ? GUARD_FINE : GUARD_BARE_CR;
	case METHOD:
		if (b == ' ') g->state = TARGET_START;
		else if (!is_token(b)) return GUARD_NOT_HTTP;
		return GUARD_FINE;
	case TARGET_START:
		g->state = REQUEST_LINE;
		g->wide += b >= 0x80;
		return b <= ' ' || b == 0x7f ? GUARD_NOT_HTTP : GUARD_FINE;
	case REQUEST_LINE: g->wide += b >= 0x80; return in_line(g, b);
	case VALUE: return in_line(g, b);
	case LINE_START: return at_line_start(g, b);
	case NAME:
		if (b == ':') g->state = VALUE;
		else if (!is_token(b)) return GUARD_FIELD_NAME;
		return GUARD_FINE;
	case LINE_CR:
		g->state = LINE_START;
		return b != '\n' ? GUARD_BARE_CR : ++g->lines > GUARD_LINES_MAX ? GUARD_TOO_MANY : GUARD_FINE;
	case LAST_CR: g->complete = b == '\n'; return b == '\n' ? GUARD_FINE : GUARD_BARE_CR;
	}
	return GUARD_NOT_HTTP;
}

struct guard guard_of_trailers(void)
{
	return (struct guard){.state = LINE_START};
}

enum guard_fault guard_feed(struct guard *g, const char *bytes, size_t len, size_t head_max, size_t *ret_used)
{
	enum guard_fault fault = GUARD_FINE;
	size_t at = 0;

	while (at < len && !g->complete && fault == GUARD_FINE) {
		unsigned char b = (unsigned char)bytes[at++];

		if (++g->seen > head_max) fault = GUARD_TOO_LARGE;
		else fault = step(g, b);
	}
	*ret_used = at;
	return fault;
}

/* ---- after the parser ---- */

static bool is(const char *name, const char *text, size_t len)
{
	return strlen(name) == len && strncasecmp(name, text, len) == 0;
}

static bool is_host(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 0x7f ||
		    strchr("/\\@?#,\"<>^`{|}", text[i]))
			return false;
	return true;
}

static bool is_number(const char *text, size_t len)
{
	if (len == 0 || len > 18) return false; /* fits into 63 bits without a look at its value */
	for (size_t i = 0; i < len; i++)
		if (text[i] < '0' || text[i] > '9') return false;
	return true;
}

void guard_note(struct guard_facts *f, const char *name, size_t name_len, const char *value, size_t value_len)
{
	if (is("host", name, name_len)) {
		f->hosts++;
		f->host_wrong |= !is_host(value, value_len);
	} else if (is("content-length", name, name_len)) {
		f->lengths++;
		f->length_wrong |= !is_number(value, value_len);
	} else if (is("transfer-encoding", name, name_len)) {
		f->codings++;
		f->coding_unknown |= !is("chunked", value, value_len);
	} else if (is("expect", name, name_len)) {
		f->continue_expected = is("100-continue", value, value_len);
		f->expectation_unknown |= !f->continue_expected;
	}
}

enum guard_fault guard_judge(const struct guard_facts *f, unsigned major, unsigned minor)
{
	if (major != 1 || minor > 1) return GUARD_VERSION;
	if (f->hosts > 1) return GUARD_TWO_HOSTS;
	if (f->host_wrong) return GUARD_BAD_HOST;
	if (f->codings && minor == 0) return GUARD_CODING_OLD;
	if (f->codings && f->lengths) return GUARD_LENGTH_AND_CODING;
	if (f->codings > 1) return GUARD_TWO_CODINGS;
	if (f->coding_unknown) return GUARD_CODING;
	if (f->lengths > 1) return GUARD_TWO_LENGTHS;
	if (f->length_wrong) return GUARD_BAD_LENGTH;
	if (f->expectation_unknown) return GUARD_EXPECTATION;
	if (f->hosts == 0 && minor == 1) return GUARD_NO_HOST;
	return GUARD_FINE;
}
