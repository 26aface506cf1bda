/*
 * multipart.h - multipart/form-data (RFC 7578) as it streams by: bytes in, parts out, nothing kept but the
 * headers of a part. Pure; a body may be cut into pieces anywhere.
 *
 * Theory of operation: a body is preamble, delimiter, headers, data, delimiter, headers, data, ..., closing
 * delimiter, epilogue. A delimiter is CR LF "--" and the boundary; the first may lack its CR LF. CR is in no
 * boundary, so wherever a match fails, what was matched was data and the next match can only begin at the
 * byte that failed it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define MULTIPART_BOUNDARY_MAX 70
#define MULTIPART_HEADERS_MAX  8192 /* bytes of one part's */
#define MULTIPART_NAME_MAX     255
#define MULTIPART_PARTS_MAX    1000

struct multipart_events {
	/* NAME is "" for a part without one, or with one that is too long. */
	void (*on_part)(void *ctx, const char *name);
	void (*on_data)(void *ctx, const void *bytes, size_t len);
	void (*on_part_end)(void *ctx);
};

enum multipart_state {
	MULTIPART_PREAMBLE,
	MULTIPART_AFTER,    /* the delimiter: its line is to end, or "--" closes the body */
	MULTIPART_CLOSING,  /* one "-" was there */
	MULTIPART_LINE_END, /* CR was there */
	MULTIPART_HEADERS,
	MULTIPART_DATA,
	MULTIPART_EPILOGUE,
	MULTIPART_BROKEN,
};

struct multipart {
	const struct multipart_events *events;
	void *ctx;
	enum multipart_state state;
	char delimiter[4 + MULTIPART_BOUNDARY_MAX + 1];
	size_t delimiter_len;
	size_t matched; /* bytes of the delimiter */
	unsigned parts;
	size_t headers_len;
	char headers[MULTIPART_HEADERS_MAX + 1];
};

/* CONTENT_TYPE is the header's value, NULL for none. -EINVAL: not multipart/form-data with a boundary.
 * Borrows EVENTS. */
int multipart_init(struct multipart *m, const char *content_type, const struct multipart_events *events,
		   void *ctx);

/* -EINVAL: it is no such body, or it is beyond the limits above. No call comes after that. */
int multipart_feed(struct multipart *m, const void *bytes, size_t len);

/* Whether the body is at its end as it should. */
bool multipart_is_complete(const struct multipart *m);
