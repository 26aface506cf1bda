#include "agent/peers.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "agent/log.h"
#include "agent/reactor.h"
#include "base/fd.h"
#include "base/mem.h"
#include "wire/greeting.h"
#include "wire/link.h"

#define PEERS_MAX     64
#define READ_BUDGET   16 /* packets of one peer in one turn */
#define HELLO_WAIT_MS 5000
#define BUCKETS       32
#define SMALL_DATA    ((size_t)4 << 10) /* copied into the outbox rather than sent by themselves */

static void on_outbox_waited(struct timer *t);

enum standing { STANDING_STRANGER, STANDING_FRONT, STANDING_BOND };

struct peer {
	struct peer *next;
	struct link *link;
	struct watch watch;
	struct timer hello_wait;
	enum standing standing;
	bool broken; /* to be torn down at the end of the turn */
	unsigned channel_count;
	struct channel **channels; /* BUCKETS lists by id; made with the first channel */
};

static struct {
	struct peer *first;
	unsigned count;
	struct peer *bond;
	struct watch listener;
	const struct channel_kind *kinds;
	const struct bond_events *events;
	uint8_t cookie[COOKIE_MAX];
	size_t cookie_len;
	bool any_broken;
	struct peer *outbox_owner;
	bool outbox_waits;
	struct timer outbox_wait;
	struct packet outbox;
} peers = {.listener = {.fd = -1}, .outbox_wait = {.on_time = on_outbox_waited}};

static uint8_t outbox_room[OUTBOX_SIZE];

static void mark_broken(struct peer *p)
{
	p->broken = true;
	peers.any_broken = true;
	if (peers.outbox_owner == p) peers.outbox_owner = NULL;
}

/* ---- sending ---- */

static void sent(struct peer *p, int r)
{
	if (r < 0) mark_broken(p);
}

static void send_outbox(const int *fds, size_t fd_count)
{
	struct peer *p = take_ptr(peers.outbox_owner);

	peers.outbox_waits = false;
	timer_stop(&peers.outbox_wait);
	if (p && peers.outbox.len) sent(p, link_send(p->link, &peers.outbox, fds, fd_count));
	peers.outbox = (struct packet){.bytes = outbox_room, .room = sizeof outbox_room};
}

static void flush_outbox(void)
{
	send_outbox(NULL, 0);
}

struct packet *peer_outbox(struct peer *p, size_t need)
{
	if (peers.outbox_owner != p || peers.outbox.len + need > peers.outbox.room) flush_outbox();
	peers.outbox_waits = false;
	peers.outbox_owner = p->broken ? NULL : p;
	return &peers.outbox;
}

struct packet *peer_outbox_patient(struct peer *p, size_t need)
{
	bool patient = peers.outbox_owner != p || !peers.outbox.len || peers.outbox_waits;
	struct packet *packet = peer_outbox(p, need);

	peers.outbox_waits = patient;
	return packet;
}

static void on_outbox_waited(struct timer *t)
{
	(void)t;
	peers.outbox_waits = false;
}

void channel_send_data(struct channel *c, enum wire_stream stream, const struct iovec parts[2])
{
	struct peer *p = c->peer;

	if (parts[0].iov_len <= SMALL_DATA && !parts[1].iov_len) {
		struct msg_data m = {.stream = (uint8_t)stream,
				     .bytes = {.at = parts[0].iov_base, .len = (uint32_t)parts[0].iov_len}};

		CHANNEL_SEND(c, data, &m);
		return;
	}
	flush_outbox();
	if (!p->broken) sent(p, link_send_data(p->link, c->id, stream, parts, parts[1].iov_len ? 2 : 1));
}

void channel_send_log(struct channel *c, uint64_t seq, const struct log_event *event,
		      const struct iovec parts[2])
{
	struct peer *p = c->peer;

	if (parts[0].iov_len <= SMALL_DATA && !parts[1].iov_len) {
		struct msg_log m = {.seq = seq,
				    .at_ms = event->at_ms,
				    .stream = (uint8_t)event->stream,
				    .bytes = {.at = parts[0].iov_base, .len = (uint32_t)parts[0].iov_len}};

		CHANNEL_SEND(c, log, &m);
		return;
	}
	flush_outbox();
	if (p->broken) return;
	sent(p, link_send_log(p->link, c->id, seq, event->at_ms, (enum wire_stream)event->stream, parts,
			      parts[1].iov_len ? 2 : 1));
}

void channel_send_opened(struct channel *c, const struct msg_opened *m, int fd, const struct msg_end *end)
{
	flush_outbox(); /* descriptors belong to the first frame of a packet */
	CHANNEL_SEND(c, opened, m);
	if (end) CHANNEL_SEND(c, end, end);
	send_outbox(&fd, 1);
}

void peer_refuse(struct peer *p, uint32_t channel, int error, const char *text)
{
	struct msg_end m = {
		.reason = END_FAILED, .error = error < 0 ? -error : error, .text = wire_text_of(text)};

	(void)msg_end_add(peer_outbox(p, msg_end_size(&m) + WIRE_HEADER), channel, &m);
}

static bool bond_usable(void)
{
	return peers.bond && !peers.bond->broken;
}

bool bond_send_limits_wanted(void)
{
	if (!bond_usable()) return false;
	sent(peers.bond,
	     LINK_SEND(peers.bond->link, 0, limits_wanted, &(struct msg_limits_wanted){}, NULL, 0));
	return bond_usable();
}

bool bond_send_limits_idle(void)
{
	if (!bond_usable()) return false;
	sent(peers.bond, LINK_SEND(peers.bond->link, 0, limits_idle, &(struct msg_limits_idle){}, NULL, 0));
	return bond_usable();
}

/* ---- channels ---- */

static struct channel **slot_of(struct peer *p, uint32_t id)
{
	struct channel **at;

	if (!p->channels) p->channels = mem_new_array(BUCKETS, sizeof *p->channels);
	at = &p->channels[id % BUCKETS];
	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

int channel_open(struct channel *c, struct peer *p, uint32_t id, const struct channel_ops *ops)
{
	struct channel **at = slot_of(p, id);

	if (!id || *at || p->channel_count >= CHANNELS_MAX) return -EPROTO;
	*c = (struct channel){.peer = p, .id = id, .ops = ops};
	*at = c;
	p->channel_count++;
	return 0;
}

void channel_close(struct channel *c)
{
	if (!c->peer) return;
	struct channel **at = slot_of(c->peer, c->id);
	*at = c->next;
	c->peer->channel_count--;
	c->peer = NULL;
}

static int on_channel_frame(struct peer *p, const struct frame *f)
{
	struct channel *c;

	for (const struct channel_kind *k = peers.kinds; k->type; k++) {
		if (k->type == f->type) return k->open(p, f);
	}
	/* For a channel that we do not know: its end and this frame met on their way. */
	c = *slot_of(p, f->channel);
	return c ? c->ops->on_frame(c, f) : 0;
}

/* ---- hello, and the bond ---- */

static void answer_hello(struct peer *p)
{
	struct msg_hello m = {.version = WIRE_VERSION,
			      .oldest = WIRE_OLDEST,
			      .role = ROLE_AGENT,
			      .build = wire_text_of(TOMBOLO_VERSION)};

	(void)msg_hello_add(peer_outbox(p, msg_hello_size(&m) + WIRE_HEADER), 0, &m);
}

/* Same time for every wrong cookie. */
static bool cookie_is_right(const struct wire_text *cookie)
{
	unsigned difference = 0;

	if (cookie->len != peers.cookie_len || !cookie->len) return false;
	for (size_t i = 0; i < cookie->len; i++)
		difference |= (uint8_t)cookie->at[i] ^ peers.cookie[i];
	return difference == 0;
}

static void become_bond(struct peer *p)
{
	if (peers.bond && peers.bond != p) mark_broken(peers.bond);
	p->standing = STANDING_BOND;
	peers.bond = p;
	peers.events->on_renewed();
}

static int on_hello(struct peer *p, const struct frame *f)
{
	struct msg_hello m;

	if (msg_hello_parse(f, &m) < 0) return -EPROTO;
	if (p->standing == STANDING_STRANGER) {
		if (!cookie_is_right(&m.cookie) || (m.role != ROLE_FRONT && m.role != ROLE_KEEPER))
			return -EPROTO;
		timer_stop(&p->hello_wait);
	}
	if (wire_agree(&m) < 0) {
		/* The answer tells the other what we speak, so that it can say why there is no conversation.
		 */
		answer_hello(p);
		flush_outbox();
		return -EPROTO;
	}
	if (p->standing == STANDING_STRANGER) {
		if (m.role == ROLE_KEEPER) become_bond(p);
		else p->standing = STANDING_FRONT;
	}
	answer_hello(p);
	return 0;
}

static int on_frame(struct peer *p, const struct frame *f, int *fds, size_t fd_count)
{
	if (f->type == MSG_hello) return on_hello(p, f);
	switch (p->standing) {
	case STANDING_STRANGER: return -EPROTO;
	case STANDING_FRONT: return f->channel ? on_channel_frame(p, f) : -EPROTO;
	case STANDING_BOND: break;
	}
	if (f->type == MSG_limits) {
		struct msg_limits m;

		if (msg_limits_parse(f, &m) < 0) return -EPROTO;
		peers.events->on_limits(&m, fds, fd_count);
	}
	return 0;
}

/* Of the frame that is being handled. */
static int *frame_fds;
static size_t frame_fd_count;

int peer_take_fd(void)
{
	for (size_t i = 0; i < frame_fd_count; i++) {
		if (frame_fds[i] >= 0) return take_fd(&frame_fds[i]);
	}
	return -1;
}

static int on_peer_packet(void *ctx, const uint8_t *bytes, size_t len, int *fds, size_t fd_count)
{
	struct frame_reader reader = frame_reader_of(bytes, len);
	struct peer *p = ctx;
	struct frame f;
	int r;

	while ((r = frame_reader_next(&reader, &f)) == 1) {
		auto_free void *memory = NULL;

		if (f.flags & FRAME_SPILLED) {
			if (!fd_count || frame_unspill(&f, fds[0], &memory) < 0) return -EPROTO;
		}
		frame_fds = fds;
		frame_fd_count = f.flags & FRAME_SPILLED ? 0 : fd_count;
		r = on_frame(p, &f, fds, fd_count);
		frame_fd_count = 0;
		if (r < 0) return r;
		if (p->broken) return -EPIPE;
	}
	return r;
}

/* ---- life of a peer ---- */

static void on_peer_event(struct watch *w, uint32_t events)
{
	struct peer *p = container_of(w, struct peer, watch);

	if (p->broken) return;
	if (events & EPOLLOUT) sent(p, link_flush(p->link));
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		sent(p, link_read(p->link, READ_BUDGET, on_peer_packet, p));
}

static void on_hello_missing(struct timer *t)
{
	mark_broken(container_of(t, struct peer, hello_wait));
}

/* Takes LINK. NULL: too many. */
static struct peer *peer_new(struct link *link, enum standing standing)
{
	struct peer *p;

	if (peers.count >= PEERS_MAX) {
		link_free(link);
		return NULL;
	}
	p = mem_new(sizeof *p);
	p->link = link;
	p->standing = standing;
	p->watch = (struct watch){.fd = -1, .on_event = on_peer_event};
	p->hello_wait.on_time = on_hello_missing;
	p->next = peers.first;
	peers.first = p;
	peers.count++;
	if (watch_start(&p->watch, link_fd(link), EPOLLIN) < 0) mark_broken(p);
	return p;
}

static void lose_channels(struct peer *p)
{
	if (!p->channels) return;
	for (unsigned i = 0; i < BUCKETS; i++) {
		while (p->channels[i]) {
			struct channel *c = p->channels[i];

			channel_close(c);
			c->ops->on_lost(c);
		}
	}
	free(p->channels);
}

static void peer_free(struct peer *p)
{
	if (peers.bond == p) peers.bond = NULL;
	if (peers.outbox_owner == p) peers.outbox_owner = NULL;
	watch_stop(&p->watch);
	timer_stop(&p->hello_wait);
	lose_channels(p);
	link_free(p->link);
	peers.count--;
	free(p);
}

static void on_connection(struct watch *w, uint32_t events)
{
	int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct peer *p;

	(void)events;
	if (fd < 0) return;
	p = peer_new(link_new(fd), STANDING_STRANGER);
	if (p) timer_start(&p->hello_wait, HELLO_WAIT_MS);
}

int peers_open(int listen_fd, struct link *bond, struct link *front, const void *cookie, size_t cookie_len,
	       const struct channel_kind *kinds, const struct bond_events *events)
{
	peers.kinds = kinds;
	peers.events = events;
	peers.cookie_len = MIN(cookie_len, sizeof peers.cookie);
	memcpy(peers.cookie, cookie, peers.cookie_len);
	peers.outbox = (struct packet){.bytes = outbox_room, .room = sizeof outbox_room};
	peers.bond = peer_new(bond, STANDING_BOND);
	if (front) (void)peer_new(front, STANDING_FRONT);
	/* Not to be heard by them is told now, while somebody waits for how it went. */
	if (peers.any_broken) return -ENOMEM;
	peers.listener.on_event = on_connection;
	(void)fd_set_nonblocking(listen_fd);
	return watch_start(&peers.listener, listen_fd, EPOLLIN);
}

void peers_turn(void)
{
	if (!peers.outbox_waits) flush_outbox();
	else if (!peers.outbox_wait.armed) timer_start(&peers.outbox_wait, OUTBOX_WAIT_MS);
	while (peers.any_broken) {
		peers.any_broken = false;
		for (struct peer **at = &peers.first; *at;) {
			struct peer *p = *at;

			if (!p->broken) {
				at = &p->next;
				continue;
			}
			*at = p->next;
			peer_free(p);
		}
		flush_outbox();
	}
	for (struct peer *p = peers.first; p; p = p->next) {
		(void)watch_change(&p->watch, link_wants_out(p->link) ? EPOLLIN | EPOLLOUT : EPOLLIN);
	}
}
