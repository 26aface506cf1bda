#include "routes/process_request.h"

#include <errno.h>

#include "base/mem.h"
#include "http/target.h"
#include "routes/answers.h"

void answer_no_process(struct exchange *x, enum process_kind kind)
{
	http_reply_error(x, 404, "not_found",
			 kind == KIND_PROCESS ? "Process not found" : "Terminal not found");
}

struct agent_link *request_process_sandbox(struct request *rq, enum process_kind kind)
{
	struct sandbox *sb = sandboxes_find(rq->routes->sandboxes, rq->match.id);

	if (sb) return sandbox_link(sb);
	answer_no_process(rq->x, kind);
	return NULL;
}

bool request_process_name(struct request *rq, enum process_kind kind, char **ret_name)
{
	auto_free char *name = mem_new(rq->match.part_len + 1);
	size_t len;
	bool fine = target_decode(rq->match.part, rq->match.part_len, name, &len) == 0;

	if (kind == KIND_TERMINAL && !(fine && id_is_name(name, len))) {
		answer_invalid(rq->x, "Invalid terminal ID format");
		return false;
	}
	if (!fine) {
		answer_no_process(rq->x, kind);
		return false;
	}
	*ret_name = take_ptr(name);
	return true;
}

struct agent_link *request_process(struct request *rq, enum process_kind kind, char **ret_name)
{
	struct agent_link *link = request_process_sandbox(rq, kind);

	return link && request_process_name(rq, kind, ret_name) ? link : NULL;
}

const char *why_not_begun(int r)
{
	if (r == -E2BIG) return "the command is too long";
	if (r == -EMFILE) return "too much goes on in this sandbox";
	return "the server is out of memory";
}
