/*
 * err.h - the reason of a failure, for a person to read.
 *
 * Functions return 0 or a negative errno. The spot that knows the reason sets it; each caller on the way up
 * may put what it was doing in front; exactly one place prints or answers. A success never touches the
 * struct.
 */
#pragma once

#include <stdarg.h>

struct err {
	int code;       /* the negative errno that was returned, 0 when nothing happened */
	char text[248]; /* "open '/x' for writing: Permission denied"; cut at its end when too long */
};

#define ERR_NONE ((struct err){0})

/* Sets E (NULL is fine) to the formatted text, then ": " and the name of CODE's errno; returns CODE. */
int err_set(struct err *e, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same without the errno's name: for failures that the text explains by itself. */
int err_say(struct err *e, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "formatted: " in front of the text there is; returns E's code. */
int err_add(struct err *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

#ifdef __clang_analyzer__
/* What the analyzer cannot know, because it looks at one file at a time: CODE is a failure, and is what is
 * returned. */
#define ERR_CODE(f, e, code, ...) \
	({ \
		int code_ = (code); \
		(void)(f)(e, code_, __VA_ARGS__); \
		if (code_ >= 0) __builtin_unreachable(); \
		code_; \
	})
#define err_set(e, code, ...) ERR_CODE(err_set, e, code, __VA_ARGS__)
#define err_say(e, code, ...) ERR_CODE(err_say, e, code, __VA_ARGS__)
#endif
