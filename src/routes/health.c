/* health.c - GET /health */
#include <string.h>

#include "routes/answers.h"
#include "routes/handlers.h"
#include "routes/request.h"

void handle_health(struct request *rq)
{
	json_t *errors;
	const char *fault;

	if (!sandboxes_fault(rq->routes->sandboxes, 0)) {
		answer_ok(rq->x);
		return;
	}
	errors = json_array();
	for (size_t i = 0; (fault = sandboxes_fault(rq->routes->sandboxes, i)); i++)
		json_array_append_new(errors, json_of_text(fault, strlen(fault)));
	answer_json(rq->x, 503, json_pack("{s:b, s:o}", "ok", 0, "errors", errors));
}
