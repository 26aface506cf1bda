/* A packet from a peer that lies: every frame lies inside it, every text of every message inside its frame
 * and ended. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void check_text(const struct frame *f, const struct wire_text *t, int is_text)
{
	const char *end = (const char *)f->payload + f->len;

	assert(t->at);
	if (t->len == 0) return; /* perhaps not sent */
	assert(t->at >= (const char *)f->payload && t->at + t->len < end);
	assert(t->at[t->len] == '\0');
	assert(!is_text || strlen(t->at) == t->len);
}

static void check_list(const struct frame *f, const struct wire_list *list)
{
	const uint8_t *at = list->packed;
	uint32_t count = 0, len;
	const char *text;

	while ((text = wire_list_next(list, &at, &len))) {
		check_text(f, &(struct wire_text){.at = text, .len = len}, 1);
		count++;
	}
	assert(count == list->count);
}

#define CHECK_u8(field)    (void)(field)
#define CHECK_u16(field)   (void)(field)
#define CHECK_u32(field)   (void)(field)
#define CHECK_u64(field)   (void)(field)
#define CHECK_i32(field)   (void)(field)
#define CHECK_str(field)   check_text(f, &(field), 1)
#define CHECK_bytes(field) check_text(f, &(field), 0)
#define CHECK_list(field)  check_list(f, &(field))
#define CHECK(type, name)  CHECK_##type(m.name);

static void check_frame(const struct frame *f)
{
	switch (f->type) {
#define MESSAGE(name, number, fields) \
	case number: { \
		struct msg_##name m; \
		if (msg_##name##_parse(f, &m) == 0) { \
			fields(CHECK) \
		} \
		break; \
	}
#include "wire/messages.def"
	default: break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct frame_reader reader = frame_reader_of(bytes, len);
	struct frame f;

	while (frame_reader_next(&reader, &f) == 1) {
		assert(f.payload >= bytes && f.payload + f.len <= bytes + len);
		check_frame(&f);
	}
	return 0;
}
