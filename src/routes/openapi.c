/* openapi.c - GET /v1/openapi.json and the explorer at /v1/openapi.html, both from inside the program. */
#include "routes/openapi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "routes/handlers.h"
#include "routes/openapi_headers.h" /* made by api/build.mjs */
#include "routes/openapi_document.h"
#include "routes/request.h"

extern const char openapi_page[], openapi_page_end[], openapi_page_gzip[], openapi_page_gzip_end[];

/* Made when first asked for: most servers are never asked. */
struct openapi {
	struct openapi_text documents[PROFILES];
};

struct openapi *openapi_new(void)
{
	return mem_new(sizeof(struct openapi));
}

struct openapi *openapi_free(struct openapi *o)
{
	if (!o) return NULL;
	for (unsigned i = 0; i < PROFILES; i++)
		free(o->documents[i].text);
	free(o);
	return NULL;
}

static bool list_has(const char *list, const char *word)
{
	return list && strstr(list, word) != NULL;
}

/* What changes only with the program; a page that somebody needs a key for is nobody else's to keep. */
#define CACHE_HEADERS "Cache-Control: private, no-cache\r\nVary: Authorization, Accept-Encoding\r\n"

/* True: the client has it. */
static bool answer_known(struct exchange *x, const char *tag, const char *headers)
{
	if (!list_has(http_header(x, "if-none-match"), tag)) return false;
	http_reply(x, 304, NULL, headers, NULL, 0);
	return true;
}

void handle_openapi_json(struct request *rq)
{
	struct openapi_text *document = &rq->routes->openapi->documents[rq->profile];
	char headers[256];

	if (!document->text) *document = openapi_document_make(rq->profile);
	(void)snprintf(headers, sizeof headers, CACHE_HEADERS "ETag: %s\r\n", document->tag);
	if (answer_known(rq->x, document->tag, headers)) return;
	http_reply(rq->x, 200, "application/json", headers, document->text, document->len);
}

#define PAGE_HEADERS(tag) \
	CACHE_HEADERS "ETag: \"" tag \
		      "\"\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n" \
		      "Content-Security-Policy: " OPENAPI_PAGE_POLICY "\r\n"

void handle_openapi_page(struct request *rq)
{
	static const char plain[] = PAGE_HEADERS(OPENAPI_PAGE_TAG);
	static const char packed[] = PAGE_HEADERS(OPENAPI_PAGE_TAG "-gzip") "Content-Encoding: gzip\r\n";
	static const char type[] = "text/html; charset=utf-8";

	if (list_has(http_header(rq->x, "accept-encoding"), "gzip")) {
		if (answer_known(rq->x, "\"" OPENAPI_PAGE_TAG "-gzip\"", packed)) return;
		http_reply(rq->x, 200, type, packed, openapi_page_gzip,
			   (size_t)(openapi_page_gzip_end - openapi_page_gzip));
		return;
	}
	if (answer_known(rq->x, "\"" OPENAPI_PAGE_TAG "\"", plain)) return;
	http_reply(rq->x, 200, type, plain, openapi_page, (size_t)(openapi_page_end - openapi_page));
}
