#include "archive/ustar.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct ustar_block {
	char name[100];
	char mode[8], uid[8], gid[8];
	char size[12], mtime[12];
	char checksum[8];
	char type;
	char target[100];
	char magic[6], version[2];
	char user[32], group[32];
	char major[8], minor[8];
	char prefix[155];
	char unused[12];
};
_Static_assert(sizeof(struct ustar_block) == USTAR_BLOCK, "a header is one block");

#define ID_MAX    07777777u
#define ID_NOBODY 65534u

/* SIZE-1 digits and the NUL that is there already. */
static void put_octal(char *field, size_t size, uint64_t n)
{
	for (size_t i = size - 1; i-- > 0; n >>= 3)
		field[i] = (char)('0' + (n & 7));
	assert(n == 0);
}

static void put_checksum(struct ustar_block *b)
{
	const unsigned char *at = (const unsigned char *)b;
	unsigned sum = 0;

	memset(b->checksum, ' ', sizeof b->checksum);
	for (size_t i = 0; i < sizeof *b; i++)
		sum += at[i];
	put_octal(b->checksum, 7, sum);
	b->checksum[6] = '\0';
}

/* Where NAME is cut into prefix and name: the index of the '/' between them, 0 for no cut, -1 when nothing
 * fits. */
static int split_at(const char *name, size_t len)
{
	if (len <= sizeof((struct ustar_block *)0)->name) return 0;
	if (len > 155 + 1 + 100) return -1;
	/* The first cut whose rest fits; the '/' that ends a directory's name is no place to cut. */
	for (size_t i = len - 101; i < len - 1 && i <= 155; i++)
		if (i > 0 && name[i] == '/') return (int)i;
	return -1;
}

static size_t decimal_digits(size_t n)
{
	size_t digits = 1;

	while (n /= 10)
		digits++;
	return digits;
}

/* Length of "LENGTH KEY=VALUE\n", where LENGTH counts its own digits. */
static size_t pax_record_size(const char *key, size_t value_len)
{
	size_t rest = 1 + strlen(key) + 1 + value_len + 1;
	size_t digits = decimal_digits(rest);

	if (decimal_digits(rest + digits) > digits) digits++;
	return rest + digits;
}

static char *put_pax_record(char *out, const char *key, const char *value, size_t value_len)
{
	out += sprintf(out, "%zu %s=", pax_record_size(key, value_len), key);
	memcpy(out, value, value_len);
	out[value_len] = '\n';
	return out + value_len + 1;
}

static bool target_fits(const struct ustar_member *m)
{
	return m->target_len <= sizeof((struct ustar_block *)0)->target;
}

static size_t pax_body_size(const struct ustar_member *m)
{
	size_t size = 0;

	if (split_at(m->name, m->name_len) < 0) size += pax_record_size("path", m->name_len);
	if (!target_fits(m)) size += pax_record_size("linkpath", m->target_len);
	return size;
}

size_t ustar_header_size(const struct ustar_member *m)
{
	size_t body = pax_body_size(m);

	return USTAR_BLOCK + (body ? USTAR_BLOCK + body + ustar_padding(body) : 0);
}

static void put_block(struct ustar_block *b, const struct ustar_member *m)
{
	int cut = split_at(m->name, m->name_len);
	int64_t mtime = m->mtime < 0 ? 0 : m->mtime;

	memset(b, 0, sizeof *b);
	if (cut > 0) {
		memcpy(b->prefix, m->name, (size_t)cut);
		memcpy(b->name, m->name + cut + 1, m->name_len - (size_t)cut - 1);
	} else {
		/* A name that did not fit is in the pax header: what stands here is for readers older than
		 * that. */
		memcpy(b->name, m->name, m->name_len < sizeof b->name ? m->name_len : sizeof b->name);
	}
	if (m->target_len) memcpy(b->target, m->target, target_fits(m) ? m->target_len : sizeof b->target);
	put_octal(b->mode, sizeof b->mode, m->mode & 07777);
	put_octal(b->uid, sizeof b->uid, m->uid > ID_MAX ? ID_NOBODY : m->uid);
	put_octal(b->gid, sizeof b->gid, m->gid > ID_MAX ? ID_NOBODY : m->gid);
	put_octal(b->size, sizeof b->size, m->size);
	put_octal(b->mtime, sizeof b->mtime,
		  (uint64_t)mtime > USTAR_SIZE_MAX ? USTAR_SIZE_MAX : (uint64_t)mtime);
	b->type = (char)m->type;
	memcpy(b->magic, "ustar", 6);
	memcpy(b->version, "00", 2);
	put_checksum(b);
}

static char *put_pax(const struct ustar_member *m, size_t body, char *out)
{
	static const char name[] = "././@PaxHeader";
	struct ustar_member pax = {
		.type = USTAR_PAX, .name = name, .name_len = sizeof name - 1, .mode = 0644, .size = body};
	char *at = out + USTAR_BLOCK;

	put_block((struct ustar_block *)out, &pax);
	if (split_at(m->name, m->name_len) < 0) at = put_pax_record(at, "path", m->name, m->name_len);
	if (!target_fits(m)) at = put_pax_record(at, "linkpath", m->target, m->target_len);
	memset(at, 0, ustar_padding(body));
	return at + ustar_padding(body);
}

void ustar_write(const struct ustar_member *m, char *out)
{
	size_t body = pax_body_size(m);

	if (body) out = put_pax(m, body, out);
	put_block((struct ustar_block *)out, m);
}
