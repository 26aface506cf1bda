/*
 * measure_archive.c - persist and hydrate against GNU tar to and from a pipe. Tar runs where our archiver
 * runs: in the sandbox, as its user, within its limits and on its file system.
 *
 * What was unpacked stays until the server ends: ext4 takes the inodes of removed files again only after a
 * while and steps over each of them until then, so that a second run after a removal takes ten times as long.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "bench.h"
#include "exec.h"

#define SH(script) "{\"argv\":[\"bash\",\"-c\",\"" script "\"]}"

/* Small files in a hundred directories, and one large file. */
#define MANY(count) \
	SH("mkdir d{0..99}; for i in {1.." count "}; do printf %01000d $i > d$((i % 100))/file$i; done")
#define LARGE(mebibytes) SH("dd if=/dev/urandom of=large bs=1M status=none count=" mebibytes)

#define KEPT_ARCHIVE "/home/sandbox/archive.tar"

#define UNPACK SH("set -o pipefail; mkdir ~/x%u; cat " KEPT_ARCHIVE " | tar xf - -C ~/x%u")

static const char keep_archive[] = SH("tar cf " KEPT_ARCHIVE " .");
static const char pack[] = SH("set -o pipefail; tar cf - . | cat > /dev/null");

struct archive {
	enum row persist_row, hydrate_row;
	char tree[129];    /* the sandbox with the tree, and an archive of it outside of that */
	char *path;        /* of the archive, on the host */
	unsigned unpacked; /* times */
};

static int begin(struct bench *b, struct archive *a, const char *make, const char *name, struct err *e)
{
	int r = sandbox_create(&b->client, a->tree, sizeof a->tree, e);

	if (asprintf(&a->path, "%s/%s.tar", b->dir, name) < 0) abort();
	if (r == 0) r = sandbox_exec(&b->client, a->tree, make, NULL, e);
	return r < 0 ? r : sandbox_exec(&b->client, a->tree, keep_archive, NULL, e);
}

/* ---- ours ---- */

static int receive_archive(struct bench *b, int fd, struct err *e)
{
	const char *bytes;
	ssize_t n;
	int r = client_status(&b->client, e);

	if (r < 0) return r;
	if (r != 200) return err_say(e, -EPROTO, "persist: status %d", r);
	while ((n = client_body(&b->client, &bytes, e)) > 0) {
		r = fd_write_all(fd, bytes, (size_t)n);
		if (r < 0) return err_set(e, r, "keep the archive");
	}
	return (int)n;
}

/* The first archive is kept, to be hydrated. */
static int persist(struct bench *b, struct archive *a, struct err *e)
{
	bool kept = access(a->path, F_OK) == 0;
	auto_close int fd = open(kept ? "/dev/null" : a->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char path[256];
	double began;
	int r;

	if (fd < 0) return err_set(e, -errno, "open '%s'", a->path);
	snprintf(path, sizeof path, "/v1/sandbox/%s/persist", a->tree);
	began = now_us();
	r = client_send(&b->client, "POST", path, "", 0, e);
	if (r == 0) r = receive_archive(b, fd, e);
	if (r == 0 && kept) sample_ours(b, a->persist_row, now_us() - began);
	return r;
}

static int send_archive(struct bench *b, const char *id, int fd, struct err *e)
{
	static char piece[256 << 10];
	char path[256];
	struct stat st;
	ssize_t n;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0) return err_set(e, -errno, "open the archive");
	snprintf(path, sizeof path, "/v1/sandbox/%s/hydrate", id);
	r = client_send_head(&b->client, "POST", path, (size_t)st.st_size, e);
	while (r == 0 && (n = read(fd, piece, sizeof piece)) > 0)
		r = fd_write_all(b->client.fd, piece, (size_t)n);
	if (r < 0) return err_set(e, r, "send the archive");
	r = client_finish(&b->client, 200, NULL, e);
	return r < 0 ? err_add(e, "hydrate") : 0;
}

/* Into a sandbox of its own, which is there already. */
static int hydrate(struct bench *b, struct archive *a, struct err *e)
{
	auto_close int fd = open(a->path, O_RDONLY | O_CLOEXEC);
	char id[129];
	double began;
	int r = sandbox_create(&b->client, id, sizeof id, e);

	if (r == 0) r = sandbox_exec(&b->client, id, SH(":"), NULL, e);
	began = now_us();
	if (r == 0) r = send_archive(b, id, fd, e);
	if (r < 0) return r;
	sample_ours(b, a->hydrate_row, now_us() - began);
	return 0;
}

/* ---- tar ---- */

static int timed(struct bench *b, struct archive *a, const char *body, enum row row, struct err *e)
{
	double began = now_us();
	int r = sandbox_exec(&b->client, a->tree, body, NULL, e);

	if (r == 0) sample_floor(b, row, now_us() - began);
	return r;
}

static int unpack(struct bench *b, struct archive *a, struct err *e)
{
	char body[sizeof UNPACK + 32];

	a->unpacked++;
	snprintf(body, sizeof body, UNPACK, a->unpacked, a->unpacked);
	return timed(b, a, body, a->hydrate_row, e);
}

static int archive_round(struct bench *b, void *state, struct err *e)
{
	struct archive *a = state;
	int r = access(a->path, F_OK) < 0 ? persist(b, a, e) : 0;

	if (r == 0) r = persist(b, a, e);
	if (r == 0) r = timed(b, a, pack, a->persist_row, e);
	if (r == 0) r = hydrate(b, a, e);
	return r < 0 ? r : unpack(b, a, e);
}

static int many_begin(struct bench *b, void **ret_state, struct err *e)
{
	struct archive *a = mem_new(sizeof *a);

	*ret_state = a;
	a->persist_row = ROW_PERSIST_MANY;
	a->hydrate_row = ROW_HYDRATE_MANY;
	return begin(b, a, b->quick ? MANY("2000") : MANY("10000"), "many", e);
}

static int large_begin(struct bench *b, void **ret_state, struct err *e)
{
	struct archive *a = mem_new(sizeof *a);

	*ret_state = a;
	a->persist_row = ROW_PERSIST_LARGE;
	a->hydrate_row = ROW_HYDRATE_LARGE;
	return begin(b, a, b->quick ? LARGE("64") : LARGE("1024"), "large", e);
}

static void archive_end(void *state)
{
	struct archive *a = state;

	if (a) free(a->path);
	free(a);
}

const struct measurement measure_archive_many = {
	.begin = many_begin, .round = archive_round, .end = archive_end};
const struct measurement measure_archive_large = {
	.begin = large_begin, .round = archive_round, .end = archive_end};
