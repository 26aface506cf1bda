/* mem.h - ownership of heap memory, said in the type. Sizes that *we* choose abort when there is no memory.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h> /* MIN, MAX */

/* A local marked auto_free is freed at the end of its scope, unless take_ptr() gave it away. */
#define auto_free __attribute__((cleanup(free_at)))
#define take_ptr(p) \
	({ \
		__auto_type kept_ = (p); \
		(p) = NULL; \
		kept_; \
	})

static inline void free_at(void *p)
{
	free(*(void **)p);
}

/* Zeroed memory; never NULL. For sizes chosen by this program only: what others choose lives in a buf. */
void *mem_new(size_t size);
void *mem_new_array(size_t count, size_t size);

/* Like realloc; never NULL. New bytes are not cleared. */
void *mem_grow(void *old, size_t count, size_t size);

/* A copy that the caller frees. */
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t len);

#define ARRAY_LEN(a)                    (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
