/* ends.c - the end of an exchange, and the refusal of a request, with which its connection ends, too. */
#include "http/internal.h"

#include <stdlib.h>

void exchange_free(struct exchange *x)
{
	buf_done(&x->body);
	socket_free(x->socket);
	free(x->url_room);
	free(x);
}

void exchange_end(struct conn *c, bool gone)
{
	struct exchange *x = c->x;
	bool tell = gone && !x->aborted && x->answer != ANSWER_FILE && x->answer != ANSWER_COMPLETE;

	x->aborted |= gone; /* whatever a handler still says is ignored */
	if (tell && x->on_gone) x->on_gone(x, x->gone_ctx);
	if (c->server->callbacks.on_finished) c->server->callbacks.on_finished(x, c->server->ctx);
	if (x->done) x->done(x->data);
	file_drop(c);
	exchange_free(x);
	c->x = NULL;
	output_release(c);
}

void conn_refuse(struct conn *c, unsigned status, const char *code, const char *message)
{
	bool begun = c->x && c->x->answer != ANSWER_NONE;
	auto_buf struct buf json = buf_with_cap(READ_ROOM), head = buf_with_cap(READ_ROOM);

	if (c->x) exchange_end(c, true);
	if (begun) {
		/* Half a response is out: only a reset cannot be taken for its end. */
		c->cut = true;
		c->state = CONN_DEAD;
		return;
	}
	error_json(&json, code, message);
	(void)buf_addf(
		&head,
		"HTTP/1.1 %u %s\r\nDate: %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
		"Connection: close\r\n\r\n",
		status, status_text(status), reply_date(c->server), json.len);
	output_send(c, head.data, head.len, json.data, json.len);
	c->state = CONN_PARTING;
}
