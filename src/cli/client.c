#include "cli/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"

#define DEFAULT_URL "http://127.0.0.1:8787"
#define ANSWER_MAX  ((size_t)16 << 20) /* bytes of a collected answer: lists of sandboxes and processes */
#define REASON_MAX  ((size_t)64 << 10) /* bytes of an error's body that we care to read */

struct client {
	CURL *curl;
	char *url;           /* without a trailing slash */
	char *authorization; /* the whole header line, or NULL */
	char detail[CURL_ERROR_SIZE];
};

/* One call in progress, as curl's callbacks see it. */
struct call {
	struct client *client;
	const struct client_request *q;
	struct buf answer; /* of a 2xx response without on_bytes */
	struct buf reason; /* of any other */
	int failed;        /* what a callback of ours returned */
	struct err *e;
};

int client_new(const char *url, struct client **ret, struct err *e)
{
	const char *key = getenv("TOMBOLO_API_KEY");
	struct client *c;
	size_t len;

	if (!url || url[0] == '\0') url = getenv("TOMBOLO_URL");
	if (!url || url[0] == '\0') url = DEFAULT_URL;
	if (!key || key[0] == '\0') key = getenv("SANDBOX_API_KEY");
	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return err_say(e, -EINVAL, "the server's URL must begin with http:// or https://, not '%s'",
			       url);

	c = mem_new(sizeof *c);
	c->curl = curl_easy_init();
	if (!c->curl) {
		client_free(c);
		return err_say(e, -ENOMEM, "libcurl could not be set up");
	}
	c->url = mem_strdup(url);
	for (len = strlen(c->url); len > 0 && c->url[len - 1] == '/'; len--)
		c->url[len - 1] = '\0';
	if (key && key[0] != '\0' && asprintf(&c->authorization, "Authorization: Bearer %s", key) < 0)
		abort();
	*ret = c;
	return 0;
}

struct client *client_free(struct client *c)
{
	if (!c) return NULL;
	curl_easy_cleanup(c->curl);
	free(c->url);
	free(c->authorization);
	free(c);
	return NULL;
}

static long status_of(const struct call *call)
{
	long status = 0;

	curl_easy_getinfo(call->client->curl, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static size_t on_body(char *bytes, size_t one, size_t len, void *ctx)
{
	struct call *call = ctx;
	long status = status_of(call);

	(void)one;
	if (status < 200 || status > 299) {
		(void)buf_add(&call->reason, bytes, MIN(len, REASON_MAX - call->reason.len));
		return len;
	}
	if (call->q->on_bytes) {
		call->failed = call->q->on_bytes(call->q->ctx, bytes, len, call->e);
	} else if (buf_add(&call->answer, bytes, len) < 0) {
		call->failed =
			err_say(call->e, -E2BIG, "the server's answer is larger than %zu bytes", ANSWER_MAX);
	}
	return call->failed < 0 ? 0 : len;
}

static size_t on_upload(char *room, size_t one, size_t len, void *ctx)
{
	struct call *call = ctx;
	ssize_t n;

	do
		n = read(call->q->upload_fd, room, one * len);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		call->failed = err_set(call->e, -errno, "read what is to be sent");
		return CURL_READFUNC_ABORT;
	}
	return (size_t)n;
}

/* The `error` (and `hint`) of a JSON answer, or its first line when it is something else. */
static int server_refused(const struct call *call, struct err *e)
{
	struct buf *reason = (struct buf *)&call->reason;
	long status = status_of(call);
	int code = status >= 400 && status < 500 ? -EINVAL : -EREMOTEIO;
	json_t *json = json_loadb(reason->data ? reason->data : "", reason->len, 0, NULL);
	const char *text = json_string_value(json_object_get(json, "error"));
	const char *hint = json_string_value(json_object_get(json, "hint"));

	if (status == 401) err_say(e, code, "the server wants its key: set TOMBOLO_API_KEY");
	else if (text) err_say(e, code, "%s%s%s", text, hint ? "; " : "", hint ? hint : "");
	else
		err_say(e, code, "the server answered %ld: %.*s", status,
			(int)strcspn(buf_text(reason), "\r\n"), buf_text(reason));
	json_decref(json);
	return code;
}

static struct curl_slist *headers_of(const struct client *c, const struct client_request *q)
{
	/* Without "Expect:" given or emptied here, curl asks for 100-continue before large uploads: that is
	 * wanted. */
	struct curl_slist *list = NULL;

	if (c->authorization) list = curl_slist_append(list, c->authorization);
	if (q->json) list = curl_slist_append(list, "Content-Type: application/json");
	if (q->uploads) list = curl_slist_append(list, "Content-Type: application/octet-stream");
	if (q->header) list = curl_slist_append(list, q->header);
	return list;
}

static void set_up(struct call *call, const char *url, struct curl_slist *headers)
{
	const struct client_request *q = call->q;
	CURL *curl = call->client->curl;

	curl_easy_reset(curl);
	call->client->detail[0] = '\0';
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, call->client->detail);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 10L);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE,
			 1L); /* a host that vanished is noticed during a silent exec */
	curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 256L << 10);
	curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	if (!getenv("no_proxy")) /* a proxy of the office cannot reach this machine's loopback */
		curl_easy_setopt(curl, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, call);
	if (q->json) {
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(q->json));
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, q->json);
	} else if (q->uploads) {
		curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)q->upload_size);
		curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_upload);
		curl_easy_setopt(curl, CURLOPT_READDATA, call);
	} else if (strcmp(q->method, "POST") == 0) {
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, 0L);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "");
	}
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, q->method);
}

int client_call(struct client *c, const struct client_request *q, struct buf *ret_body, struct err *e)
{
	struct call call = {.client = c,
			    .q = q,
			    .e = e,
			    .answer = buf_with_cap(ANSWER_MAX),
			    .reason = buf_with_cap(REASON_MAX)};
	struct curl_slist *headers = headers_of(c, q);
	auto_free char *url = NULL;
	CURLcode done;
	long status;
	int r = 0;

	if (asprintf(&url, "%s%s", c->url, q->path) < 0) abort();
	set_up(&call, url, headers);
	done = curl_easy_perform(c->curl);
	status = status_of(&call);

	if (call.failed < 0) r = call.failed;
	else if (status >=
		 300) /* also when the upload was cut short: the answer says more than the broken pipe */
		r = server_refused(&call, e);
	else if (done != CURLE_OK)
		r = err_say(e, -ENOTCONN, "%s: %s", c->url,
			    c->detail[0] != '\0' ? c->detail : curl_easy_strerror(done));
	else if (ret_body) *ret_body = call.answer;
	if (r < 0 || !ret_body) buf_done(&call.answer);
	buf_done(&call.reason);
	curl_slist_free_all(headers);
	return r;
}

int client_add_path(struct buf *path, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
	int r = 0;

	for (; r == 0 && *text != '\0'; text++)
		r = strchr(plain, *text) ? buf_add(path, text, 1)
					 : buf_addf(path, "%%%02X", (unsigned char)*text);
	return r;
}
