#include "keeper/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"

#define FIRST_LINE "tombolo-record 4"
#define NOBODYS    "-" /* in place of an id */

static void format_hex(const uint8_t *bytes, size_t len, char *out)
{
	for (size_t i = 0; i < len; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

size_t record_format(const struct record *rec, char text[RECORD_MAX])
{
	char cookie[2 * RECORD_COOKIE + 1];

	format_hex(rec->cookie, RECORD_COOKIE, cookie);
	return (size_t)snprintf(
		text, RECORD_MAX,
		FIRST_LINE "\nid %s\nrun %s\ninstance %s\nbase_id %u\npid %d\npid_start %llu\n"
			   "boot %s\ncookie %s\ncreated_ms %llu\n"
			   "memory_bytes %llu\npids %u\ncpu_milli %u\ndisk_bytes %llu\nasleep %d\n",
		rec->id[0] ? rec->id : NOBODYS, rec->run, rec->instance, rec->base_id, rec->pid,
		(unsigned long long)rec->pid_start, rec->boot, cookie, (unsigned long long)rec->created_ms,
		(unsigned long long)rec->own.memory_bytes, rec->own.pids, rec->own.cpu_milli,
		(unsigned long long)rec->own.disk_bytes, rec->asleep);
}

/* ---- reading ---- */

struct lines {
	char *at;
	struct err *e;
	int failed;
};

/* The value of the next line, which must be called NAME; "" once something is wrong. */
static const char *next_value(struct lines *l, const char *name)
{
	size_t name_len = strlen(name);
	char *line = l->at, *end = strchr(line, '\n');

	if (l->failed) return "";
	if (!end || strncmp(line, name, name_len) != 0 || line[name_len] != ' ') {
		l->failed = err_say(l->e, -EINVAL, "no line '%s' where it belongs", name);
		return "";
	}
	*end = '\0';
	l->at = end + 1;
	return line + name_len + 1;
}

static void judge(struct lines *l, bool good, const char *name)
{
	if (!good && !l->failed) l->failed = err_say(l->e, -EINVAL, "the value of '%s' is none", name);
}

static uint64_t next_number(struct lines *l, const char *name, uint64_t least, uint64_t most)
{
	const char *text = next_value(l, name);
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	judge(l, text[0] >= '0' && text[0] <= '9' && !*end && !errno && n >= least && n <= most, name);
	return n;
}

static void next_uuid(struct lines *l, const char *name, char out[UUID_LEN + 1])
{
	const char *text = next_value(l, name);
	size_t len = strlen(text);

	judge(l, len == UUID_LEN && strspn(text, "0123456789abcdef-") == len, name);
	if (!l->failed) memcpy(out, text, UUID_LEN + 1);
}

static void next_id(struct lines *l, char out[SANDBOX_ID_MAX + 1])
{
	const char *text = next_value(l, "id");
	size_t len = strlen(text);

	if (strcmp(text, NOBODYS) == 0) return;
	judge(l, id_is_sandbox(text, len), "id");
	if (!l->failed) memcpy(out, text, len + 1);
}

static void next_instance(struct lines *l, char out[INSTANCE_MAX + 1])
{
	const char *text = next_value(l, "instance");
	size_t len = strlen(text);

	judge(l,
	      len >= 1 && len <= INSTANCE_MAX && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == len,
	      "instance");
	if (!l->failed) memcpy(out, text, len + 1);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9') return c - '0';
	if (c >= 'a' && c <= 'f') return c - 'a' + 10;
	return -1;
}

static void next_cookie(struct lines *l, uint8_t out[RECORD_COOKIE])
{
	const char *text = next_value(l, "cookie");

	judge(l, strlen(text) == 2 * RECORD_COOKIE, "cookie");
	for (size_t i = 0; i < RECORD_COOKIE && !l->failed; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		judge(l, high >= 0 && low >= 0, "cookie");
		if (!l->failed) out[i] = (uint8_t)(high << 4 | low);
	}
}

int record_parse(const char *text, size_t len, struct record *ret, struct err *e)
{
	char copy[RECORD_MAX + 1];
	struct lines l = {.at = copy, .e = e};
	struct record rec = {.pid = 0};

	if (len > RECORD_MAX || memchr(text, '\0', len))
		return err_say(e, -EINVAL, "too long, or not a text");
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (strcmp(next_value(&l, "tombolo-record"), "4") != 0) judge(&l, false, "tombolo-record");
	next_id(&l, rec.id);
	next_uuid(&l, "run", rec.run);
	next_instance(&l, rec.instance);
	rec.base_id = (uint32_t)next_number(&l, "base_id", 1u << 16, UINT32_MAX - (1u << 16));
	judge(&l, rec.base_id % (1u << 16) == 0, "base_id");
	rec.pid = (pid_t)next_number(&l, "pid", 2, INT32_MAX);
	rec.pid_start = next_number(&l, "pid_start", 1, UINT64_MAX);
	next_uuid(&l, "boot", rec.boot);
	next_cookie(&l, rec.cookie);
	rec.created_ms = next_number(&l, "created_ms", 0, UINT64_MAX);
	rec.own.memory_bytes = next_number(&l, "memory_bytes", 0, UINT64_MAX);
	rec.own.pids = (uint32_t)next_number(&l, "pids", 0, UINT32_MAX);
	rec.own.cpu_milli = (uint32_t)next_number(&l, "cpu_milli", 0, UINT32_MAX);
	rec.own.disk_bytes = next_number(&l, "disk_bytes", 0, UINT64_MAX);
	rec.asleep = next_number(&l, "asleep", 0, 1);
	if (!l.failed && *l.at) l.failed = err_say(e, -EINVAL, "something follows the last line");
	if (l.failed) return l.failed;
	*ret = rec;
	return 0;
}

int record_read(int dir_fd, struct record *ret, struct err *e)
{
	char text[RECORD_MAX + 2];
	ssize_t n = fd_read_file(dir_fd, "record", text, sizeof text);

	if (n < 0) return err_set(e, (int)n, "read the record");
	return record_parse(text, (size_t)n, ret, e);
}

/* ---- writing ---- */

int record_write(int dir_fd, const struct record *rec, struct err *e)
{
	char text[RECORD_MAX];
	size_t len = record_format(rec, text);
	auto_close int fd = openat(dir_fd, "record.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int r;

	if (fd < 0) return err_set(e, -errno, "make the record");
	r = fd_write_all(fd, text, len);
	if (r == 0 && renameat(dir_fd, "record.new", dir_fd, "record") < 0) r = -errno;
	explicit_bzero(text, sizeof text);
	return r < 0 ? err_set(e, r, "write the record") : 0;
}

int record_sync(int dir_fd)
{
	auto_close int fd = openat(dir_fd, "record", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) < 0 || fsync(dir_fd) < 0) return -errno;
	return 0;
}

int record_boot(char boot[UUID_LEN + 1])
{
	ssize_t n = fd_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, UUID_LEN + 1);

	return n == UUID_LEN ? 0 : n < 0 ? (int)n : -EIO;
}
