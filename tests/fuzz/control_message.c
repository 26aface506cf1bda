/* Whatever a client says in text: a size that passes fits a terminal. */
#include <assert.h>

#include "routes/control_message.h"
#include "routes/terminal_size.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	for (int whole = 0; whole < 2; whole++) {
		struct control_message m = control_message_parse((const char *)bytes, len, whole);

		assert(m.kind <= CONTROL_TERMINATE);
		if (m.kind != CONTROL_RESIZE) continue;
		assert(m.cols >= 1 && m.cols <= TERMINAL_SIDE_MAX && m.rows >= 1 &&
		       m.rows <= TERMINAL_SIDE_MAX);
	}
	return 0;
}
