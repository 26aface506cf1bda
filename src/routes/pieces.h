/*
 * pieces.h - a byte stream cut into pieces that can each be decoded alone: several clients decode the text of
 * every event on its own, so no piece ends inside a UTF-8 character. Bytes that are not UTF-8 pass as they
 * are.
 */
#pragma once

#include <stddef.h>

/* Most bytes of a piece: as base64 it stays on a line that readers with a 64 KiB line limit can take. */
#define PIECE_MAX (32u << 10)

struct pieces {                /* all zero: at the stream's start */
	unsigned char held[3]; /* the begin of a character whose rest has not come */
	unsigned held_len;
};

typedef void on_piece(void *ctx, const void *bytes, size_t len);

/* GIVE for all of what was held and of BYTES that can go now; a piece is good during the call. */
void pieces_add(struct pieces *p, const void *bytes, size_t len, on_piece *give, void *ctx);

/* The stream is at its end: what is held will never be completed. */
void pieces_end(struct pieces *p, on_piece *give, void *ctx);
