#include "agent/rehearsal.h"

#include "agent/launch.h"
#include "agent/process.h"
#include "base/err.h"
#include "wire/message.h"

#define UID_SANDBOX 1000

/* bash -c "sh -c /bin/true", the way a list lies in a packet: the shells that clients use, and what they
 * load. */
static const uint8_t packed[] = "\x04\0\0\0bash\0\x02\0\0\0-c\0\x0f\0\0\0sh -c /bin/true";
static const struct wire_list argv = {.count = 3, .packed = packed, .packed_len = sizeof packed};
static const struct wire_list no_env = {.packed = packed};

void rehearse(void)
{
	struct process_spec spec = {
		.kind = KIND_PROCESS, .forgotten = true, .cwd = "/workspace", .uid = UID_SANDBOX};
	struct process *process;
	struct err e = ERR_NONE;

	(void)launch(&argv, &no_env, false, &spec, &process, &e);
}
