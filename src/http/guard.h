/*
 * guard.h - what we refuse before and after the parser sees a request head.
 *
 * llhttp is lenient where leniency lets two servers disagree about where a request ends (request
 * smuggling). We are behind and in front of proxies, so the bytes of a head pass a state machine first:
 * one spelling of everything. Both halves are pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What is wrong with a head: name, status of the answer, and the sentence for its reader. */
#define GUARD_FAULTS(X) \
	X(NOT_HTTP, 400, "This is not an HTTP request") \
	X(BARE_CR, 400, "A carriage return stands without its line feed") \
	X(BARE_LF, 400, "A line feed stands without its carriage return") \
	X(CONTROL, 400, "The request head holds a control character") \
	X(FOLDED, 400, "A header line begins with white space") \
	X(FIELD_NAME, 400, "A header name is malformed") \
	X(TOO_LARGE, 431, "The request head is too large") \
	X(TOO_MANY, 431, "The request has too many headers") \
	X(VERSION, 505, "Only HTTP/1.1 and HTTP/1.0 are spoken here") \
	X(TWO_HOSTS, 400, "The request has more than one Host header") \
	X(BAD_HOST, 400, "The Host header is malformed") \
	X(CODING_OLD, 400, "HTTP/1.0 has no Transfer-Encoding") \
	X(LENGTH_AND_CODING, 400, "The request has both Content-Length and Transfer-Encoding") \
	X(TWO_CODINGS, 400, "The request has more than one Transfer-Encoding header") \
	X(CODING, 501, "The only transfer coding understood here is 'chunked'") \
	X(TWO_LENGTHS, 400, "The request has more than one Content-Length header") \
	X(BAD_LENGTH, 400, "The Content-Length header is not a number") \
	X(EXPECTATION, 417, "The only expectation understood here is '100-continue'") \
	X(NO_HOST, 400, "The Host header is missing")

enum guard_fault {
	GUARD_FINE,
#define GUARD_ENUM(name, status, text) GUARD_##name,
	GUARD_FAULTS(GUARD_ENUM)
#undef GUARD_ENUM
};

unsigned guard_status(enum guard_fault fault);  /* 0 for GUARD_FINE */
const char *guard_text(enum guard_fault fault); /* "" for GUARD_FINE */

#define GUARD_LINES_MAX 256 /* header lines of one request */

/* ---- before the parser ---- */

struct guard { /* all zero: a new request */
	unsigned state;
	size_t seen;    /* bytes judged so far, empty lines in front of the request included */
	size_t skipped; /* of these: the empty lines */
	unsigned lines; /* line ends in the head, the last empty one included */
	unsigned wide;  /* bytes above ASCII in the request line */
	bool complete;  /* the head ends at SEEN */
};

/*
 * To judge the trailers of a chunked body, which have the form of header lines; ends behind their empty
 * line.
 */
struct guard guard_of_trailers(void);

/*
 * Judges the next LEN bytes, stopping behind the head's empty line. *RET_USED bytes were judged. HEAD_MAX
 * is the most that a head may have; it is refused at the first byte beyond.
 */
enum guard_fault guard_feed(struct guard *g, const char *bytes, size_t len, size_t head_max,
			    size_t *ret_used);

/* ---- after the parser ---- */

struct guard_facts { /* all zero before the first field */
	unsigned hosts, lengths, codings;
	bool host_wrong, length_wrong, coding_unknown, expectation_unknown;
	bool continue_expected;
};

/* Notes one header field. The value has no white space around it. */
void guard_note(struct guard_facts *f, const char *name, size_t name_len, const char *value,
		size_t value_len);

/* Judges the whole. GUARD_NO_HOST comes last: it is the only fault that a later field could still mend. */
enum guard_fault guard_judge(const struct guard_facts *f, unsigned major, unsigned minor);
