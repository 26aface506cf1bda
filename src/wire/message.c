#include "wire/message.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* ---- writing: the room was checked by _size before the first byte ---- */

static uint8_t *put_number(uint8_t *at, uint64_t n, size_t bytes)
{
	n = htole64(n);
	memcpy(at, &n, bytes);
	return at + bytes;
}

static uint8_t *put_text(uint8_t *at, const char *text, uint32_t len)
{
	at = put_number(at, len, 4);
	if (len) memcpy(at, text, len);
	at[len] = '\0';
	return at + len + 1;
}

#define put_u8(at, v)    put_number(at, (v), 1)
#define put_u16(at, v)   put_number(at, (v), 2)
#define put_u32(at, v)   put_number(at, (v), 4)
#define put_u64(at, v)   put_number(at, (v), 8)
#define put_i32(at, v)   put_number(at, (uint32_t)(v), 4)
#define put_str(at, v)   put_text(at, (v).at, (v).len)
#define put_bytes(at, v) put_text(at, (v).at, (v).len)
#define put_list(at, v)  put_texts(at, &(v))

static uint8_t *put_texts(uint8_t *at, const struct wire_list *list)
{
	uint8_t *size_at = put_number(at, list->count, 4);
	uint8_t *first = size_at + 4;

	at = first;
	for (uint32_t i = 0; i < list->count; i++)
		at = put_text(at, list->items[i], (uint32_t)strlen(list->items[i]));
	put_number(size_at, (uint64_t)(at - first), 4);
	return at;
}

#define size_u8(v)    ((size_t)1)
#define size_u16(v)   ((size_t)2)
#define size_u32(v)   ((size_t)4)
#define size_u64(v)   ((size_t)8)
#define size_i32(v)   ((size_t)4)
#define size_str(v)   ((size_t)(v).len + 5)
#define size_bytes(v) ((size_t)(v).len + 5)
#define size_list(v)  size_texts(&(v))

static size_t size_texts(const struct wire_list *list)
{
	size_t size = 8;

	for (uint32_t i = 0; i < list->count; i++)
		size += strlen(list->items[i]) + 5;
	return size;
}

/* ---- reading: each step is checked against the end; a field that begins at the end was not sent ---- */

struct reader {
	const uint8_t *at, *end;
	bool bad;
};

static bool has(struct reader *r, size_t bytes)
{
	if ((size_t)(r->end - r->at) >= bytes) return true;
	r->bad = true;
	return false;
}

static uint64_t get_number(struct reader *r, size_t bytes)
{
	uint64_t n = 0;

	if (r->at == r->end || !has(r, bytes)) return 0;
	memcpy(&n, r->at, bytes);
	r->at += bytes;
	return le64toh(n);
}

static struct wire_text get_text(struct reader *r, bool is_str)
{
	struct wire_text t = {.at = ""};
	uint32_t len;

	if (r->at == r->end) return t;
	len = (uint32_t)get_number(r, 4);
	if (r->bad || !has(r, (size_t)len + 1)) return t;
	if (r->at[len] != '\0' || (is_str && memchr(r->at, '\0', len))) {
		r->bad = true;
		return t;
	}
	t = (struct wire_text){.at = (const char *)r->at, .len = len};
	r->at += len + 1;
	return t;
}

static struct wire_list get_texts(struct reader *r)
{
	struct wire_list list = {0};
	struct reader inner;

	if (r->at == r->end) return list;
	list.count = (uint32_t)get_number(r, 4);
	list.packed_len = (uint32_t)get_number(r, 4);
	list.packed = r->at;
	if (r->bad || !has(r, list.packed_len)) return (struct wire_list){0};
	inner = (struct reader){.at = r->at, .end = r->at + list.packed_len};
	for (uint32_t i = 0; i < list.count && !r->bad; i++) {
		if (inner.at == inner.end) r->bad = true;
		else get_text(&inner, true);
		r->bad |= inner.bad;
	}
	if (inner.at != inner.end) r->bad = true;
	r->at += list.packed_len;
	return list;
}

const char *wire_list_next(const struct wire_list *list, const uint8_t **at, uint32_t *ret_len)
{
	if (!list->packed) return NULL; /* not sent */

	struct reader r = {.at = *at, .end = list->packed + list->packed_len};

	if (r.at == r.end) return NULL;
	struct wire_text t = get_text(&r, true);
	*at = r.at;
	if (ret_len) *ret_len = t.len;
	return t.at;
}

/* clang-format off */
#define get_u8(r)    (uint8_t)get_number(r, 1)
#define get_u16(r)   (uint16_t)get_number(r, 2)
#define get_u32(r)   (uint32_t)get_number(r, 4)
#define get_u64(r)   get_number(r, 8)
#define get_i32(r)   (int32_t)(uint32_t)get_number(r, 4)
#define get_str(r)   get_text(r, true)
#define get_bytes(r) get_text(r, false)
#define get_list(r)  get_texts(r)

/* ---- the table makes the rest ---- */

#define SIZE_FIELD(type, name) size += size_##type(m->name);
#define PUT_FIELD(type, name)  at = put_##type(at, m->name);
#define GET_FIELD(type, name)  ret->name = get_##type(&r);

#define MESSAGE(name, number, fields)                                                                        \
	size_t msg_##name##_size(const struct msg_##name *m)                                                 \
	{                                                                                                    \
		size_t size = 0;                                                                             \
                                                                                                             \
		(void)m;                                                                                     \
		fields(SIZE_FIELD);                                                                          \
		return size;                                                                                 \
	}                                                                                                    \
                                                                                                             \
	int msg_##name##_add(struct packet *p, uint32_t channel, const struct msg_##name *m)                 \
	{                                                                                                    \
		size_t size = msg_##name##_size(m);                                                          \
		uint8_t *at = p->bytes + p->len;                                                             \
                                                                                                             \
		if (WIRE_HEADER + size > p->room - p->len) return -EMSGSIZE;                                 \
		frame_header_write(at, channel, number, 0, (uint32_t)size);                                  \
		at += WIRE_HEADER;                                                                           \
		fields(PUT_FIELD);                                                                           \
		p->len = (size_t)(at - p->bytes);                                                            \
		return 0;                                                                                    \
	}                                                                                                    \
                                                                                                             \
	int msg_##name##_parse(const struct frame *f, struct msg_##name *ret)                                \
	{                                                                                                    \
		struct reader r = {.at = f->payload, .end = f->payload + f->len};                            \
                                                                                                             \
		if (f->type != (number)) return -EPROTO;                                                     \
		(void)ret;                                                                                   \
		fields(GET_FIELD);                                                                           \
		return r.bad ? -EPROTO : 0;                                                                  \
	}
#include "wire/messages.def"

const char *message_name(uint16_t type)
{
	switch (type) {
#define MESSAGE(name, number, fields)                                                                        \
	case number: return #name;
#include "wire/messages.def"
	}
	return NULL;
}
/* clang-format on */

const char *end_reason_name(enum end_reason reason)
{
	switch (reason) {
	case END_EXITED: return "exited";
	case END_SIGNAL: return "signal";
	case END_TIMEOUT: return "timeout";
	case END_CANCELLED: return "cancelled";
	case END_OOM: return "oom";
	case END_PIDS: return "pids";
	case END_DISK: return "disk";
	case END_DELETED: return "sandbox_deleted";
	case END_LOST: return "lost";
	case END_FAILED: return "failed";
	case END_DONE: return "done";
	}
	return "lost";
}
