/*
 * frame.h - the outer form of what our processes say to each other, as pure functions: bytes in, value out.
 *
 * A *packet* is one message of a SOCK_SEQPACKET socket: one or more frames, one after the other. Descriptors
 * travel with a packet and belong to its first frame. A *frame* is a header of 12 bytes and a payload:
 *
 *     u32 length of the payload      u16 type (messages.def)   u16 flags   u32 channel
 *
 * Numbers are little-endian. Prose and rules: docs/wire.md.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_VERSION    1
#define WIRE_OLDEST     1
#define WIRE_HEADER     12
#define WIRE_DATA_MAX   (64u << 10)                  /* bytes of one data message */
#define WIRE_PACKET_MAX (WIRE_DATA_MAX + (8u << 10)) /* bytes of one packet */
#define WIRE_FDS_MAX    12                           /* descriptors of one packet */
#define WIRE_SPILL_MAX  (40u << 20) /* bytes of a message that travels in a memory file, see link.h */

/* The payload is not here but in a sealed memory file, the packet's first descriptor: see link.h. */
#define FRAME_SPILLED 1

struct frame {
	uint32_t channel;
	uint16_t type;
	uint16_t flags;         /* FRAME_… */
	const uint8_t *payload; /* inside the packet */
	uint32_t len;
};

/* Walks a packet. Trust: the bytes are a stranger's; every frame returned lies inside the packet. */
struct frame_reader {
	const uint8_t *at, *end;
};

struct frame_reader frame_reader_of(const void *packet, size_t len);

/* 1: *RET is the next frame; 0: the packet ended cleanly; -EPROTO: it did not. */
int frame_reader_next(struct frame_reader *r, struct frame *ret);

/* Writes a header of a frame whose payload has LEN bytes. */
void frame_header_write(uint8_t out[WIRE_HEADER], uint32_t channel, uint16_t type, uint16_t flags,
			uint32_t len);
