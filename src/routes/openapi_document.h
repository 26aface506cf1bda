/*
 * openapi_document.h - api/openapi.json, which lies inside the program, as each dialect has it.
 *
 * The file describes the union. A dialect gets the operations that routes.def gives it; parts that only some
 * dialects have (a parameter, an answer) say so with "x-profiles": ["preview", ...], which nobody outside
 * sees.
 */
#pragma once

#include <stddef.h>

#include "routes/router.h"

struct openapi_text {
	char *text; /* compact JSON */
	size_t len;
	char tag[35]; /* of these bytes, for ETag, with its quotes */
};

/* Once for each dialect; the caller frees the text. Aborts on a file that is no document: the tests read it,
 * too. */
struct openapi_text openapi_document_make(enum profile profile);

/* The file itself. */
extern const char openapi_document[], openapi_document_end[];
