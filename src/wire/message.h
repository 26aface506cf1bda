/*
 * message.h - the messages of messages.def as C structs, with one encoder and one decoder each.
 *
 *     struct msg_open_exec m = {...};
 *     msg_open_exec_add(&packet, 7, &m);      to a struct packet, for channel 7
 *     msg_open_exec_parse(&frame, &m);        from a struct frame
 *
 * A parsed message is a view: its texts and lists point into the packet and live as long as that. Every text
 * is followed by a NUL in the packet, so that `.at` can be used as a C string.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/frame.h"

/* ---- field types ---- */

struct wire_text {
	const char *at; /* NUL-terminated; never NULL after a parse */
	uint32_t len;
};

/* A list of texts. To send one, set ITEMS and COUNT; a parsed one is walked with wire_list_next(). */
struct wire_list {
	const char *const *items; /* sender's side: COUNT C strings; NULL after a parse */
	uint32_t count;
	const uint8_t *packed; /* reader's side: where the texts lie */
	uint32_t packed_len;
};

#define wire_text_of(s) ((struct wire_text){.at = (s), .len = (uint32_t)strlen(s)})

/* Walks a parsed list: AT begins as list->packed. Returns the text (a C string) or NULL at the end. */
const char *wire_list_next(const struct wire_list *list, const uint8_t **at, uint32_t *ret_len);

/* ---- packets to be sent ---- */

struct packet {
	uint8_t *bytes; /* the caller's */
	size_t room;    /* bytes there; WIRE_PACKET_MAX is what a peer takes at most */
	size_t len;
};

/* ---- one struct and two functions a message ---- */

typedef uint8_t wire_type_u8;
typedef uint16_t wire_type_u16;
typedef uint32_t wire_type_u32;
typedef uint64_t wire_type_u64;
typedef int32_t wire_type_i32;
typedef struct wire_text wire_type_str;
typedef struct wire_text wire_type_bytes;
typedef struct wire_list wire_type_list;

enum message_type {
#define MESSAGE(name, number, fields) MSG_##name = (number),
#include "wire/messages.def"
};

#define WIRE_FIELD(type, name) wire_type_##type name;
/*
 * _add: appends the frame; 0, or -EMSGSIZE when the packet has no room left (it is then unchanged).
 * _parse: 0, or -EPROTO when the payload is not such a message.
 * _size: bytes of the payload that _add would write.
 */
#define MESSAGE(name, number, fields) \
	struct msg_##name { \
		fields(WIRE_FIELD) \
	}; \
	int msg_##name##_add(struct packet *p, uint32_t channel, const struct msg_##name *m); \
	int msg_##name##_parse(const struct frame *f, struct msg_##name *ret); \
	size_t msg_##name##_size(const struct msg_##name *m);
#include "wire/messages.def"
#undef WIRE_FIELD

/* "open_exec" for MSG_open_exec; NULL for a number that no message has. */
const char *message_name(uint16_t type);

/* ---- meanings of the small numbers ---- */

enum wire_role { ROLE_FRONT = 1, ROLE_KEEPER = 2, ROLE_AGENT = 3 };
enum wire_stream { STREAM_IN = 0, STREAM_OUT = 1, STREAM_ERR = 2 };

enum exec_flag {
	EXEC_DIRECT = 1,     /* argv is executed as it is: no bash rules */
	EXEC_STDIN = 2,      /* stdin is a pipe fed by `data`; otherwise /dev/null */
	EXEC_BACKGROUND = 4, /* `end` follows `opened` at once; the process ends when its whole group has */
};

enum process_kind { KIND_PROCESS = 0, KIND_TERMINAL = 1 };

enum follow_flag {
	FOLLOW_SINCE = 1, /* start after event SINCE; otherwise at the oldest retained one */
	FOLLOW_NOW = 2,   /* start at the current end; SINCE is not used */
	FOLLOW_LIVE = 4,  /* go on until the process ends; otherwise stop at what is there */
	FOLLOW_INPUT = 8, /* `data` of stdin, `resize` and `signal` may be sent (terminals) */
};

enum terminal_flag {
	TERMINAL_PRIVATE = 1,  /* it is hung up when this channel ends */
	TERMINAL_SHARED = 2,   /* attach to a living one of that name if there is one */
	TERMINAL_DETACHED = 4, /* only start it: `end` follows `opened` at once */
};

enum signal_how {
	SIGNAL_SEND = 0,
	SIGNAL_TERMINATE = 1 /* SIGTERM, 500 ms, SIGKILL; done when it is gone */
};

enum session_how { SESSION_MAKE = 0, SESSION_END = 1 };

/* Why a channel ended. The words are those of DESIGN section 6; see end_reason_name(). */
enum end_reason {
	END_EXITED = 0,    /* CODE */
	END_SIGNAL = 1,    /* SIGNO, CODE = 128 + SIGNO */
	END_TIMEOUT = 2,   /* our deadline; CODE and SIGNO as observed */
	END_CANCELLED = 3, /* a `signal` of ours */
	END_OOM = 4,
	END_PIDS = 5,
	END_DISK = 6,
	END_DELETED = 7, /* the sandbox was removed */
	END_LOST = 8,    /* the agent died or could not be reached */
	END_FAILED = 9,  /* never started, or the file operation failed: ERROR (errno) and TEXT say why */
	END_DONE = 10,   /* a file operation or list that worked */
};
const char *end_reason_name(enum end_reason reason);

enum process_state { PROCESS_RUNNING = 0, PROCESS_EXITED = 1, PROCESS_LOST = 2 };

enum refusal {
	REFUSED_CAPACITY = 1, /* every slot is used: 503, may clear */
	REFUSED_BACKEND = 2,  /* could not be made: 502; TEXT says why */
	REFUSED_INSTANCE = 3, /* no such instance type: 400 */
};

enum gone_why { GONE_REMOVED = 0, GONE_DIED = 1 };

/* Descriptors of `bind`, in this order. */
enum bind_fd {
	BIND_USERNS,
	BIND_NETNS,
	BIND_ROOT_TREE,
	BIND_USR_TREE,
	BIND_DATA_TREE,
	BIND_LISTEN,
	BIND_FRONT,
	BIND_FDS
};

enum bind_flag {
	BIND_OWN_USR = 1, /* the image has its own /usr: there is no BIND_USR_TREE among the descriptors */
};

/*
 * Descriptors of `limits`. v1: three to enter. v2: LIMITS_PIDS_DIR, which is then the sandbox's one cgroup,
 * and as LIMITS_MEMORY_PROCS its cgroup.procs, opened by the keeper, when the agent may not enter by itself.
 * The rest is only read: counters, for the reasons of an end and for what the inside sees of its own machine.
 */
enum limits_fd {
	LIMITS_PIDS_DIR,
	LIMITS_MEMORY_PROCS,
	LIMITS_CPU_PROCS,
	LIMITS_MEMORY_EVENTS, /* v1 memory.oom_control, v2 memory.events: a line `oom_kill N` */
	LIMITS_MEMORY_USAGE,  /* v1 memory.usage_in_bytes, v2 memory.current */
	LIMITS_MEMORY_STAT,   /* memory.stat: v1 `total_cache N`, v2 `file N` */
	LIMITS_PIDS_EVENTS,   /* pids.events of the sandbox: `max N`; v1 counts in the leaf groups */
	LIMITS_FDS
};
