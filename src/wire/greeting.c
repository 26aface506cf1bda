#include "wire/greeting.h"

#include <errno.h>
#include <stdio.h>

#include "base/mem.h"

int speakers_agree(struct speaker a, struct speaker b)
{
	uint16_t version = MIN(a.newest, b.newest);

	/* Who names an oldest above its newest speaks nothing at all, and fails here, too. */
	if (version == 0 || version < a.oldest || version < b.oldest) return -EPROTONOSUPPORT;
	return version;
}

static struct speaker speaker_of(const struct msg_hello *hello)
{
	return (struct speaker){.newest = hello->version, .oldest = hello->oldest};
}

int wire_agree(const struct msg_hello *hello)
{
	return speakers_agree(WIRE_SPEAKER, speaker_of(hello));
}

void wire_disagreement(const struct msg_hello *hello, char *text, size_t size)
{
	/* Trust: an agent made this text. It is a line of the log, which escapes it. */
	(void)snprintf(text, size, "it is of build %.40s and speaks versions %u to %u, this build %d to %d",
		       hello->build.at, hello->oldest, hello->version, WIRE_OLDEST, WIRE_VERSION);
}
