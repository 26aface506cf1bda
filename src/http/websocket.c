/*
 * websocket.c - between wslay, which knows frames, and a connection, which moves bytes.
 *
 * Theory of operation. Input: conn.c hands over what it read (socket_input), wslay takes it through receive()
 * and calls back for each piece. Between two calls nothing is left inside wslay, because it asks for more
 *until it gets none. Output: a message is queued at wslay and at once taken out again, as frames in the
 * connection's own output buffer (transmit() never refuses). So both queues are the connection's, and its
 * rules count: one send a turn, partial writes resumed, on_drain, resets. A large message goes past both: of
 * its frames wslay makes only the heads, and the bytes go to the kernel from where they lie.
 *
 * States of a socket, in this order only:
 *
 *	OPEN      the handlers hear of everything
 *	CLOSING   our close frame is out, the handlers are deaf; input is read for the peer's own and nothing
 *else OVER      both are out, or no sense can be made of the input any more; the exchange is complete
 */
#include "http/websocket.h"

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/uio.h>

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <wslay/wslay.h>

#include "base/mem.h"
#include "http/internal.h"

#define KEY_LEN 24 /* characters of 16 bytes in base64 */
#define OUT_MAX \
	(1u << 20) /* of unread output, beyond which no input is read: it could only be answers to pings */
#define UNSENT_MAX    (256u << 10)
#define REASON_MAX    123
#define LARGE_MIN     (16u << 10) /* bytes of a message that pays for a send of its own */
#define FRAMES_A_SEND 4           /* of such a message */
#define HEAD_MAX      14          /* bytes of a frame's head */

enum socket_state { SOCKET_OPEN, SOCKET_CLOSING, SOCKET_OVER };

struct websocket {
	struct exchange *x;
	wslay_event_context_ptr frames;
	struct websocket_handlers handlers;
	void *ctx;
	enum socket_state state;
	bool paused;
	uint8_t message;   /* opcode of the message that is being received */
	bool in_control;   /* a control frame stands between its fragments */
	struct buf text;   /* of a text message */
	const char *bytes; /* input, while wslay takes it */
	size_t len;
};

/* ---- the handshake ---- */

/* Whether the list VALUE ("keep-alive, Upgrade") has the word. */
static bool has_word(const char *value, const char *word)
{
	size_t word_len = strlen(word);

	while (value && *value) {
		size_t n = strcspn(value, ","), lead = strspn(value, " \t"), len;

		len = n > lead ? n - lead : 0;
		while (len && (value[lead + len - 1] == ' ' || value[lead + len - 1] == '\t'))
			len--;
		if (len == word_len && strncasecmp(value + lead, word, len) == 0) return true;
		value += n + (value[n] == ',');
	}
	return false;
}

/* 16 bytes in base64. */
static bool is_key(const char *key)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	return key && strlen(key) == KEY_LEN && strspn(key, alphabet) == KEY_LEN - 2 &&
	       strcmp(key + KEY_LEN - 2, "==") == 0;
}

bool websocket_is_wanted(const struct exchange *x)
{
	const char *upgrade = http_header(x, "upgrade");

	return upgrade && strcasecmp(upgrade, "websocket") == 0;
}

bool websocket_is_usable(const struct exchange *x)
{
	const char *version = http_header(x, "sec-websocket-version");

	return websocket_is_wanted(x) && has_word(http_header(x, "connection"), "upgrade") && version &&
	       strcmp(version, "13") == 0 && is_key(http_header(x, "sec-websocket-key")) &&
	       http_header_count(x, "sec-websocket-key") == 1 && strcmp(x->method, "GET") == 0 &&
	       !x->old_version && !http_has_body(x);
}

/* RFC 6455 4.2.2: proves that we read the key, and speak the protocol. */
static void accept_of(const char *key, char accept[EVP_ENCODE_LENGTH(SHA_DIGEST_LENGTH)])
{
	static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	unsigned char digest[SHA_DIGEST_LENGTH];
	char joined[KEY_LEN + sizeof guid];

	memcpy(joined, key, KEY_LEN);
	memcpy(joined + KEY_LEN, guid, sizeof guid);
	SHA1((const unsigned char *)joined, KEY_LEN + sizeof guid - 1, digest);
	(void)EVP_EncodeBlock((unsigned char *)accept, digest, sizeof digest);
}

/*
 * What the kernel holds unsent is old by the time it leaves: at a key that stops a flood of output, as little
 * as keeps the line busy should still be on its way.
 */
static void keep_fresh(int fd)
{
	const int most = UNSENT_MAX;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, sizeof most);
}

static void send_head(struct exchange *x)
{
	char accept[EVP_ENCODE_LENGTH(SHA_DIGEST_LENGTH)];
	struct buf *head = &x->conn->server->head;

	accept_of(http_header(x, "sec-websocket-key"), accept);
	buf_clear(head);
	(void)buf_addf(head,
		       "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		       "Sec-WebSocket-Accept: %s\r\n\r\n",
		       accept);
	memcpy(output_reserve(x->conn, head->len), head->data, head->len);
	buf_grew(&x->conn->out, head->len);
	x->status = 101;
}

/* ---- output ---- */

static ssize_t transmit(wslay_event_context_ptr frames, const uint8_t *bytes, size_t len, int flags,
			void *user)
{
	struct conn *c = ((struct websocket *)user)->x->conn;

	(void)frames, (void)flags;
	memcpy(output_reserve(c, len), bytes, len);
	buf_grew(&c->out, len);
	return (ssize_t)len;
}

/* There was no memory: to the handlers it is as if the peer were gone. A gap must not look like a stream. */
static void lose_peer(struct exchange *x)
{
	x->conn->broken = true;
	conn_mark(x->conn);
}

/* Moves what wslay has queued into the connection's output. */
static void flush_frames(struct websocket *ws)
{
	struct conn *c = ws->x->conn;
	size_t before = c->out.len;

	if (wslay_event_send(ws->frames) != 0) lose_peer(ws->x);
	if (c->out.len == before) return;
	ws->x->drain_due = true;
	if (c->out.len >= OUT_HIGH) output_flush(c);
	conn_mark(c);
}

/* ---- large messages ---- */

struct frame_head {
	uint8_t bytes[HEAD_MAX];
	size_t len;
};

/* wslay gives the head first, then the bytes as they were given to it. */
static ssize_t take_head(const uint8_t *bytes, size_t len, int flags, void *user)
{
	struct frame_head *head = user;

	(void)flags;
	if (head->len) return (ssize_t)len;
	memcpy(head->bytes, bytes, len);
	head->len = len;
	return (ssize_t)len;
}

/* The head of FRAME. false: there is no memory. */
static bool frame_head_make(struct frame_head *head, struct wslay_frame_iocb *frame)
{
	static const struct wslay_frame_callbacks take = {.send_callback = take_head};
	wslay_frame_context_ptr maker;

	head->len = 0;
	if (wslay_frame_context_init(&maker, &take, head) != 0) return false;
	bool made = wslay_frame_send(maker, frame) == (ssize_t)frame->payload_length;
	wslay_frame_context_free(maker);
	return made;
}

/* false: there is no memory. */
static bool send_large(struct websocket *ws, uint8_t opcode, const uint8_t *bytes, size_t len)
{
	struct conn *c = ws->x->conn;
	struct frame_head heads[FRAMES_A_SEND];
	struct iovec parts[2 * FRAMES_A_SEND];
	size_t count = 0;

	for (size_t at = 0; at < len;) {
		struct frame_head *head = &heads[count / 2];
		size_t n = MIN(len - at, (size_t)WEBSOCKET_FRAME_MAX);
		struct wslay_frame_iocb frame = {.fin = at + n == len,
						 .opcode = at ? WSLAY_CONTINUATION_FRAME : opcode,
						 .payload_length = n,
						 .data = bytes + at,
						 .data_length = n};

		if (!frame_head_make(head, &frame)) return false;
		parts[count++] = (struct iovec){.iov_base = head->bytes, .iov_len = head->len};
		parts[count++] = (struct iovec){.iov_base = (void *)(bytes + at), .iov_len = n};
		at += n;
		if (count < ARRAY_LEN(parts) && at < len) continue;
		output_send_parts(c, parts, count);
		count = 0;
	}
	ws->x->drain_due = true;
	conn_mark(c);
	return true;
}

static bool send_small(struct websocket *ws, uint8_t opcode, const uint8_t *bytes, size_t len)
{
	const struct wslay_event_msg message = {.opcode = opcode, .msg = bytes, .msg_length = len};

	if (wslay_event_queue_msg(ws->frames, &message) != 0) return false;
	flush_frames(ws);
	return true;
}

static void send_message(struct exchange *x, uint8_t opcode, const void *bytes, size_t len)
{
	struct websocket *ws = x->socket;

	if (x->aborted || ws->state != SOCKET_OPEN) return;
	if (!(len < LARGE_MIN ? send_small : send_large)(ws, opcode, bytes, len)) lose_peer(x);
}

void websocket_send_text(struct exchange *x, const char *text, size_t len)
{
	send_message(x, WSLAY_TEXT_FRAME, text, len);
}

void websocket_send_binary(struct exchange *x, const void *bytes, size_t len)
{
	send_message(x, WSLAY_BINARY_FRAME, bytes, len);
}

size_t websocket_pending(const struct exchange *x)
{
	return x->conn->out.len;
}

void websocket_close(struct exchange *x, unsigned code, const char *reason)
{
	struct websocket *ws = x->socket;
	size_t len = MIN(strlen(reason), (size_t)REASON_MAX);

	if (x->aborted || ws->state != SOCKET_OPEN) return;
	ws->state = SOCKET_CLOSING;
	ws->paused = false;
	if (wslay_event_queue_close(ws->frames, (uint16_t)code, (const uint8_t *)reason, len) == 0)
		flush_frames(ws);
	else lose_peer(x);
}

/* ---- input ---- */

static ssize_t receive(wslay_event_context_ptr frames, uint8_t *room, size_t len, int flags, void *user)
{
	struct websocket *ws = user;
	size_t n = MIN(len, ws->len);

	(void)flags;
	if (n == 0 || ws->paused || ws->x->aborted) {
		wslay_event_set_error(frames, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	memcpy(room, ws->bytes, n);
	ws->bytes += n;
	ws->len -= n;
	return (ssize_t)n;
}

static bool is_control(uint8_t opcode)
{
	return opcode & 8;
}

static void on_frame(wslay_event_context_ptr frames, const struct wslay_event_on_frame_recv_start_arg *frame,
		     void *user)
{
	struct websocket *ws = user;

	(void)frames;
	ws->in_control = is_control(frame->opcode);
	if (!ws->in_control && frame->opcode != WSLAY_CONTINUATION_FRAME) ws->message = frame->opcode;
}

static void on_piece(wslay_event_context_ptr frames, const struct wslay_event_on_frame_recv_chunk_arg *piece,
		     void *user)
{
	struct websocket *ws = user;

	(void)frames;
	if (ws->in_control || ws->state != SOCKET_OPEN || ws->x->aborted || !piece->data_length) return;
	if (ws->message == WSLAY_TEXT_FRAME) {
		if (buf_add(&ws->text, piece->data, piece->data_length) == 0) return;
		websocket_close(ws->x, WEBSOCKET_TOO_LARGE, "text message too large");
		ws->handlers.on_closed(ws->x, WEBSOCKET_TOO_LARGE, ws->ctx);
	} else if (!ws->handlers.on_binary(ws->x, piece->data, piece->data_length, ws->ctx)) {
		ws->paused = ws->state == SOCKET_OPEN;
	}
}

static void on_message(wslay_event_context_ptr frames, const struct wslay_event_on_msg_recv_arg *message,
		       void *user)
{
	struct websocket *ws = user;

	(void)frames;
	if (message->opcode != WSLAY_TEXT_FRAME) return;
	if (ws->state == SOCKET_OPEN && !ws->x->aborted)
		ws->handlers.on_text(ws->x, buf_text(&ws->text), ws->text.len, ws->ctx);
	buf_reset(&ws->text); /* rare and small: an idle socket holds no buffer */
}

static const struct wslay_event_callbacks callbacks = {
	.recv_callback = receive,
	.send_callback = transmit,
	.on_frame_recv_start_callback = on_frame,
	.on_frame_recv_chunk_callback = on_piece,
	.on_msg_recv_callback = on_message,
};

/* The handlers' last callback, unless they closed the socket themselves. */
static void tell_closed(struct websocket *ws, unsigned code)
{
	bool heard = ws->state == SOCKET_OPEN && !ws->x->aborted;

	ws->state = SOCKET_OVER;
	if (heard) ws->handlers.on_closed(ws->x, code, ws->ctx);
}

/* Both close frames are out, or the peer's input is beyond use: then what follows it is thrown away. */
static void finish_socket(struct websocket *ws, unsigned code, bool input_lost)
{
	struct exchange *x = ws->x;

	tell_closed(ws, code);
	x->conn->input_lost |= input_lost;
	x->answer = ANSWER_COMPLETE;
	x->keep_alive = false;
	conn_mark(x->conn);
}

/* The peer said goodbye, or something that wslay refused. */
static void judge_input(struct websocket *ws)
{
	if (wslay_event_get_close_received(ws->frames))
		finish_socket(ws, wslay_event_get_status_code_received(ws->frames), false);
	else if (!wslay_event_get_read_enabled(ws->frames))
		finish_socket(ws, wslay_event_get_status_code_sent(ws->frames), true);
}

/* A frame that is none. wslay has queued a close frame for it, but one without a code, which we do not send.
 */
static void refuse_frame(struct websocket *ws)
{
	static const uint8_t frame[] = {0x80 | WSLAY_CONNECTION_CLOSE, 2, WEBSOCKET_PROTOCOL_ERROR >> 8,
					WEBSOCKET_PROTOCOL_ERROR & 0xff};

	if (ws->state == SOCKET_OPEN) (void)transmit(ws->frames, frame, sizeof frame, 0, ws);
	finish_socket(ws, WEBSOCKET_PROTOCOL_ERROR, true);
}

size_t socket_input(struct conn *c, const char *bytes, size_t len)
{
	struct websocket *ws = c->x->socket;

	ws->bytes = bytes;
	ws->len = len;
	switch (wslay_event_recv(ws->frames)) {
	case 0:
		flush_frames(ws);
		judge_input(ws);
		break;
	case WSLAY_ERR_CALLBACK_FAILURE: refuse_frame(ws); break;
	default: lose_peer(c->x);
	}
	size_t used = len - ws->len;
	ws->bytes = NULL;
	ws->len = 0;
	return used;
}

bool socket_wants_input(const struct exchange *x)
{
	const struct websocket *ws = x->socket;

	return ws->state != SOCKET_OVER && !ws->paused && x->conn->out.len < OUT_MAX;
}

bool socket_is_closing(const struct exchange *x)
{
	return x->socket && x->socket->state == SOCKET_CLOSING;
}

void websocket_resume(struct exchange *x)
{
	struct websocket *ws = x->socket;

	if (!ws->paused) return;
	ws->paused = false;
	conn_mark(x->conn);
}

/* ---- life ---- */

static void on_vanished(struct exchange *x, void *ctx)
{
	(void)x;
	struct websocket *ws = ctx;
	bool heard = ws->state == SOCKET_OPEN;

	ws->state = SOCKET_OVER;
	if (heard) ws->handlers.on_closed(ws->x, WEBSOCKET_VANISHED, ws->ctx);
}

static void on_drained(struct exchange *x, void *ctx)
{
	struct websocket *ws = ctx;

	if (ws->state == SOCKET_OPEN && ws->handlers.on_drain) ws->handlers.on_drain(x, ws->ctx);
}

void websocket_accept(struct exchange *x, const struct websocket_handlers *handlers, void *ctx)
{
	struct websocket *ws;

	if (x->aborted) return;
	assert(x->answer == ANSWER_NONE && x->body_done);
	ws = mem_new(sizeof *ws);
	ws->x = x;
	ws->handlers = *handlers;
	ws->ctx = ctx;
	ws->text = buf_with_cap(WEBSOCKET_TEXT_MAX);
	x->socket = ws;
	x->answer = ANSWER_SOCKET;
	http_on_gone(x, on_vanished, ws);
	http_on_drain(x, on_drained, ws);
	keep_fresh(x->conn->fd);
	send_head(x);
	if (wslay_event_context_server_init(&ws->frames, &callbacks, ws) == 0)
		wslay_event_config_set_no_buffering(ws->frames, 1);
	else lose_peer(x);
	conn_mark(x->conn);
}

void socket_leave(struct exchange *x)
{
	struct websocket *ws = x->socket;

	if (ws->state != SOCKET_OPEN || x->aborted) return;
	websocket_close(x, WEBSOCKET_RESTART, "the server ends");
	ws->handlers.on_closed(x, WEBSOCKET_RESTART, ws->ctx);
}

void socket_free(struct websocket *ws)
{
	if (!ws) return;
	wslay_event_context_free(ws->frames);
	buf_done(&ws->text);
	free(ws);
}
