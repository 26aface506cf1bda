#include "wire/frame.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

static uint32_t get32(const uint8_t *p)
{
	uint32_t n;

	memcpy(&n, p, sizeof n);
	return le32toh(n);
}

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

struct frame_reader frame_reader_of(const void *packet, size_t len)
{
	return (struct frame_reader){.at = packet, .end = (const uint8_t *)packet + len};
}

int frame_reader_next(struct frame_reader *r, struct frame *ret)
{
	size_t left = (size_t)(r->end - r->at);
	uint32_t len;

	if (left == 0) return 0;
	if (left < WIRE_HEADER) return -EPROTO;
	len = get32(r->at);
	if (len > left - WIRE_HEADER || get16(r->at + 6) & ~FRAME_SPILLED) return -EPROTO;
	*ret = (struct frame){.channel = get32(r->at + 8),
			      .type = get16(r->at + 4),
			      .flags = get16(r->at + 6),
			      .payload = r->at + WIRE_HEADER,
			      .len = len};
	r->at += WIRE_HEADER + len;
	return 1;
}

void frame_header_write(uint8_t out[WIRE_HEADER], uint32_t channel, uint16_t type, uint16_t flags,
			uint32_t len)
{
	uint32_t n = htole32(len), c = htole32(channel);

	memcpy(out, &n, sizeof n);
	out[4] = (uint8_t)type;
	out[5] = (uint8_t)(type >> 8);
	out[6] = (uint8_t)flags;
	out[7] = (uint8_t)(flags >> 8);
	memcpy(out + 8, &c, sizeof c);
}
