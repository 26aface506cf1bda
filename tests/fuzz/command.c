/* Whatever words a client sends: the line holds no line end, and reads back as the same words by the rules of
 * the contract. */
#include "agent/command.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Takes one word off *AT, as bash would read it. Length of what it writes to OUT. */
static size_t read_word(const char **at, const char *end, char *out)
{
	bool quoted = end - *at >= 2 && (*at)[0] == '$' && (*at)[1] == '\'';
	size_t len = 0;

	if (quoted) *at += 2;
	while (*at < end && **at != (quoted ? '\'' : ' ')) {
		char c = *(*at)++;

		assert(c != '\n' && c != '\r' && c != '\t');
		if (!quoted)
			assert(strchr("@%+=:,./-", c) || (c >= '0' && c <= '9') ||
			       ((c | 32) >= 'a' && (c | 32) <= 'z'));
		if (quoted && c == '\\') {
			c = *(*at)++;
			assert(strchr("\\'nrt", c));
			c = c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c;
		}
		out[len++] = c;
	}
	if (quoted) {
		assert(*at < end);
		(*at)++;
	}
	return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	auto_buf struct buf line = buf_with_cap((size_t)8 << 20);
	auto_free char *text = mem_new(len + 1), *got = mem_new(2 * len + 16);
	const char *at, *end;

	/* Words are C strings: NUL parts them. */
	memcpy(text, bytes, len);
	for (size_t i = 0; i <= len; i += strlen(text + i) + 1) {
		if (line.len) assert(buf_add(&line, " ", 1) == 0);
		assert(command_quote(&line, text + i, strlen(text + i)) == 0);
		(void)command_is_program(text + i);
	}
	at = line.data;
	end = line.data + line.len;
	for (size_t i = 0; i <= len; i += strlen(text + i) + 1) {
		size_t word = read_word(&at, end, got);

		assert(word == strlen(text + i) && memcmp(got, text + i, word) == 0);
		if (at < end) assert(*at++ == ' ');
	}
	assert(at == end);
	return 0;
}
