/* control_message.h - what a client says on a socket in text: size and signals. Bytes in, value out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum control_kind {
	CONTROL_MALFORMED, /* no JSON object */
	CONTROL_UNKNOWN,   /* of no type that we know */
	CONTROL_RESIZE,    /* COLS and ROWS, each fit for a terminal */
	CONTROL_BAD_SIZE,  /* a resize to what is no size */
	CONTROL_INTERRUPT,
	CONTROL_TERMINATE,
};

struct control_message {
	enum control_kind kind;
	uint16_t cols, rows;
};

/* WHOLE_NUMBERS: a size with a fraction is none. */
struct control_message control_message_parse(const char *text, size_t len, bool whole_numbers);
