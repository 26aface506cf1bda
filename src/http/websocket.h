/*
 * websocket.h - RFC 6455 on the connection of an exchange: messages both ways, with back-pressure both ways.
 *
 * A handler asks for the upgrade with websocket_accept(), instead of a response. From then on the exchange
 * is a socket: its handlers hear of messages until on_closed, the last callback, or until they call
 * websocket_close() themselves. The exchange's own rules stay: its memory belongs to the server,
 * http_set_data() goes on to work, http_on_gone() is not heard any more.
 *
 * Pings are answered, fragments put together, and faults of the peer answered with the close code that the
 * RFC has for them, without the handler. A peer that goes away without a close frame (reset, half-closed)
 * is heard of as WEBSOCKET_VANISHED.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exchange;

/* Close codes, RFC 6455 7.4 and its registry. */
enum websocket_code {
	WEBSOCKET_DONE = 1000,
	WEBSOCKET_PROTOCOL_ERROR = 1002,
	WEBSOCKET_NO_CODE = 1005,  /* never sent: the peer closed without a code */
	WEBSOCKET_VANISHED = 1006, /* never sent: the peer is gone without a close frame */
	WEBSOCKET_TOO_LARGE = 1009,
	WEBSOCKET_FAILED = 1011,
	WEBSOCKET_RESTART = 1012, /* the server ends; it may be there again soon */
	WEBSOCKET_TOO_SLOW = 1013,
};

#define WEBSOCKET_PIECE_MAX 4096        /* bytes of a binary message's piece */
#define WEBSOCKET_TEXT_MAX  (64u << 10) /* of a text message; a longer one closes the socket with 1009 */
#define WEBSOCKET_FRAME_MAX (64u << 10) /* longer messages of ours leave in fragments */

/* Two questions, because what stands between them is the route's business (API 1.5). */
bool websocket_is_wanted(const struct exchange *x); /* "Upgrade: websocket" */
bool websocket_is_usable(const struct exchange *x); /* and a whole handshake of version 13 */

struct websocket_handlers {
	/*
	 * A piece of a binary message, good during the call; messages are not told apart. Return false to
	 * pause until websocket_resume(): what was read already still comes, at most WEBSOCKET_PIECE_MAX
	 * bytes.
	 */
	bool (*on_binary)(struct exchange *x, const void *bytes, size_t len, void *ctx);
	/* A whole text message: UTF-8, NUL-terminated, but NULs may be inside. Also comes while paused. */
	void (*on_text)(struct exchange *x, const char *text, size_t len, void *ctx);
	/* All that was sent has gone to the kernel. May be NULL. */
	void (*on_drain)(struct exchange *x, void *ctx);
	/* The peer closed (its code), failed (ours) or vanished, or the server ends (1012). Nothing comes
	 * after it. */
	void (*on_closed)(struct exchange *x, unsigned code, void *ctx);
};

/* Needs websocket_is_usable(). Copies HANDLERS. Sends may follow at once. */
void websocket_accept(struct exchange *x, const struct websocket_handlers *handlers, void *ctx);

/* One message each, copied. LEN of a binary one may exceed WEBSOCKET_FRAME_MAX. */
void websocket_send_text(struct exchange *x, const char *text, size_t len);
void websocket_send_binary(struct exchange *x, const void *bytes, size_t len);

/* Bytes that the kernel has not taken yet. Senders stop at a mark of their own until on_drain. */
size_t websocket_pending(const struct exchange *x);

/* Input may come again. Harmless when it was not paused. */
void websocket_resume(struct exchange *x);

/* After what was sent before it. REASON: at most 123 bytes of UTF-8, "" for none. The handlers hear nothing
 * any more. */
void websocket_close(struct exchange *x, unsigned code, const char *reason);
