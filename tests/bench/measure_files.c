/* measure_files.c - small and large files in and out of a sandbox. */
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "bench.h"
#include "floor_relay.h"

#define SMALL       1024
#define LARGE       ((size_t)16 << 20)
#define SMALL_FILES 20 /* in a round */

struct files {
	struct file_floor *floor;
	char *bytes;
	char small_path[256], large_path[256];
};

static void files_end(void *state)
{
	struct files *f = state;

	if (!f) return;
	file_floor_free(f->floor);
	free(f->bytes);
	free(f);
}

static int files_begin(struct bench *b, void **ret_state, struct err *e)
{
	struct files *f = mem_new(sizeof *f);

	*ret_state = f;
	f->bytes = mem_new(LARGE);
	for (size_t i = 0; i < LARGE; i++)
		f->bytes[i] = (char)(i * 2654435761u >> 13);
	snprintf(f->small_path, sizeof f->small_path, "/v1/sandbox/%s/file/workspace/small", b->sandbox);
	snprintf(f->large_path, sizeof f->large_path, "/v1/sandbox/%s/file/workspace/large", b->sandbox);
	return file_floor_new(b->dir, &f->floor, e);
}

static int put_pair(struct bench *b, struct files *f, enum row row, const char *path, size_t size,
		    struct err *e)
{
	double began = now_us();
	int r = client_request(&b->client, "PUT", path, f->bytes, size, 200, NULL, e);
	double between = now_us();

	if (r == 0) r = file_floor_put(f->floor, f->bytes, size, e);
	if (r < 0) return r;
	sample_ours(b, row, between - began);
	sample_floor(b, row, now_us() - between);
	return 0;
}

static int get_pair(struct bench *b, struct files *f, enum row row, const char *path, size_t size,
		    struct err *e)
{
	double began = now_us();
	int r = client_request(&b->client, "GET", path, NULL, 0, 200, NULL, e);
	double between = now_us();

	if (r == 0) r = file_floor_get(f->floor, size, e);
	if (r < 0) return r;
	sample_ours(b, row, between - began);
	sample_floor(b, row, now_us() - between);
	return 0;
}

static int files_round(struct bench *b, void *state, struct err *e)
{
	struct files *f = state;
	int r = 0;

	for (int i = 0; r == 0 && i < SMALL_FILES; i++) {
		r = put_pair(b, f, ROW_PUT_SMALL, f->small_path, SMALL, e);
		if (r == 0) r = get_pair(b, f, ROW_GET_SMALL, f->small_path, SMALL, e);
	}
	for (int i = 0; r == 0 && i < 2; i++) {
		r = put_pair(b, f, ROW_PUT_LARGE, f->large_path, LARGE, e);
		if (r == 0) r = get_pair(b, f, ROW_GET_LARGE, f->large_path, LARGE, e);
	}
	return r;
}

const struct measurement measure_files = {.begin = files_begin, .round = files_round, .end = files_end};
