/*
 * seccomp_tree.c - theory of operation.
 *
 * The program first ends what is not of this architecture (a 32-bit call has other numbers), then finds the
 * number's verdict by binary search over ranges of equal verdicts, six or seven comparisons deep:
 *
 *             >= 165 ?                       each inner node is one JGE: "yes" jumps over the left subtree,
 *            no/    \yes                     "no" falls into it;
 *       >= 101 ?     >= 300 ?                each leaf ends the program: one RET, or a test of arguments.
 *        /    \       /    \
 *
 * The kernel runs it once a number and remembers the plain ALLOWs in a bitmap, so its length matters for
 * loading only.
 */
#include "isolation/seccomp_tree.h"

#include <assert.h>
#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/personality.h>
#include <sys/socket.h>

#include "base/mem.h"

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "say which AUDIT_ARCH_ this is"
#endif

#define ALLOWED    SECCOMP_RET_ALLOW
#define ANSWER(no) (SECCOMP_RET_ERRNO | (no))

/* ---- instructions ---- */

static unsigned emit(struct seccomp_program *p, struct sock_filter insn)
{
	assert(p->prog.len < SECCOMP_PROGRAM_MAX);
	p->code[p->prog.len] = insn;
	return p->prog.len++;
}

static void load(struct seccomp_program *p, size_t offset)
{
	emit(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* The low half: the kernel cuts these arguments to 32 bits itself. Both architectures are little-endian. */
static void load_arg(struct seccomp_program *p, unsigned arg)
{
	load(p, offsetof(struct seccomp_data, args) + 8 * arg);
}

static void finish(struct seccomp_program *p, uint32_t action)
{
	emit(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static unsigned jump(struct seccomp_program *p, unsigned how, uint32_t value, unsigned yes, unsigned no)
{
	return emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | how | BPF_K, value, (uint8_t)yes, (uint8_t)no));
}

/* ---- leaves that look at an argument ---- */

struct values {
	const uint32_t *v;
	unsigned n;
};
#define VALUES(...) \
	((struct values){(const uint32_t[]){__VA_ARGS__}, ARRAY_LEN(((const uint32_t[]){__VA_ARGS__}))})

/* ARG is one of the values: IF_SO, else OTHERWISE. */
static void judge_value(struct seccomp_program *p, unsigned arg, struct values list, uint32_t if_so,
			uint32_t otherwise)
{
	load_arg(p, arg);
	for (unsigned i = 0; i < list.n; i++)
		jump(p, BPF_JEQ, list.v[i], list.n - i, 0);
	finish(p, otherwise);
	finish(p, if_so);
}

/* ARG has one of the bits: IF_SO, else OTHERWISE. */
static void judge_bits(struct seccomp_program *p, unsigned arg, uint32_t bits, uint32_t if_so,
		       uint32_t otherwise)
{
	load_arg(p, arg);
	jump(p, BPF_JSET, bits, 0, 1);
	finish(p, if_so);
	finish(p, otherwise);
}

/* Netlink: routes (`ip addr`), sockets (`ss`) and device events; the other families are attack surface. */
static void judge_socket(struct seccomp_program *p)
{
	const struct values families = VALUES(AF_UNIX, AF_INET, AF_INET6);
	const struct values protocols = VALUES(NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_KOBJECT_UEVENT);
	unsigned fork;

	load_arg(p, 0);
	fork = jump(p, BPF_JEQ, AF_NETLINK, 0, 0);
	judge_value(p, 2, protocols, ALLOWED, ANSWER(EPROTONOSUPPORT));
	p->code[fork].jf = (uint8_t)(p->prog.len - fork - 1);
	judge_value(p, 0, families, ALLOWED, ANSWER(EAFNOSUPPORT));
}

/* The bits mean this in clone(2) and unshare(2); CLONE_NEWTIME is unshare's only, in clone it is part of the
 * signal. */
#define NEW_NAMESPACES \
	((uint32_t)(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
		    CLONE_NEWPID | CLONE_NEWNET))

#define OPEN_CHANGES ((uint32_t)(O_ACCMODE | O_CREAT | O_TRUNC))

/* PER_LINUX32 is what `setarch i686 uname -m` wants; no randomisation and old uname are what debuggers want.
 */
#define PERSONALITIES \
	VALUES(PER_LINUX, PER_LINUX32, ADDR_NO_RANDOMIZE, UNAME26, PER_LINUX32 | UNAME26, \
	       ADDR_NO_RANDOMIZE | UNAME26, 0xffffffff)

static void leaf(struct seccomp_program *p, enum verdict verdict)
{
	switch (verdict) {
	case VERDICT_UNKNOWN:
	case VERDICT_ENOSYS: finish(p, ANSWER(ENOSYS)); break;
	case VERDICT_ALLOW: finish(p, ALLOWED); break;
	case VERDICT_EPERM: finish(p, ANSWER(EPERM)); break;
	case VERDICT_NOTHING: finish(p, ANSWER(0)); break;
	case VERDICT_KILL: finish(p, SECCOMP_RET_KILL_PROCESS); break;
	case VERDICT_CLONE: judge_bits(p, 0, NEW_NAMESPACES, ANSWER(EPERM), ALLOWED); break;
	case VERDICT_UNSHARE: judge_bits(p, 0, NEW_NAMESPACES | CLONE_NEWTIME, ANSWER(EPERM), ALLOWED); break;
	case VERDICT_IOCTL: judge_value(p, 1, VALUES(TIOCSTI, TIOCLINUX), ANSWER(EPERM), ALLOWED); break;
	case VERDICT_SOCKET: judge_socket(p); break;
	case VERDICT_UNIX_SOCKET: judge_value(p, 0, VALUES(AF_UNIX), ALLOWED, ANSWER(EAFNOSUPPORT)); break;
	case VERDICT_PERSONALITY: judge_value(p, 0, PERSONALITIES, ALLOWED, ANSWER(EPERM)); break;
	case VERDICT_THREAD: judge_bits(p, 0, CLONE_THREAD, ALLOWED, ANSWER(EPERM)); break;
	case VERDICT_READ_ONLY_OPEN: judge_bits(p, 1, OPEN_CHANGES, ANSWER(EPERM), ALLOWED); break;
	case VERDICT_READ_ONLY_OPENAT: judge_bits(p, 2, OPEN_CHANGES, ANSWER(EPERM), ALLOWED); break;
	case VERDICT_QUIET_IOCTL:
		judge_value(p, 1, VALUES(FIONBIO, FIONREAD, FIOCLEX, FIONCLEX, TCGETS, TIOCGWINSZ, TIOCOUTQ),
			    ALLOWED, ANSWER(EPERM));
		break;
	case VERDICT_QUIET_PRCTL:
		judge_value(p, 0, VALUES(PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_SET_VMA), ALLOWED,
			    ANSWER(EPERM));
		break;
	}
}

/* ---- the tree ---- */

struct range {
	uint32_t first; /* up to the next one's */
	enum verdict verdict;
};

static void tree(struct seccomp_program *p, const struct range *ranges, unsigned n)
{
	unsigned half = n / 2, node, left;

	if (n == 1) {
		leaf(p, ranges[0].verdict);
		return;
	}
	node = jump(p, BPF_JGE, ranges[half].first, 0, 0);
	tree(p, ranges, half);
	left = p->prog.len - node - 1;
	assert(left <= 255); /* what a conditional jump reaches */
	p->code[node].jt = (uint8_t)left;
	tree(p, ranges + half, n - half);
}

static unsigned ranges_find(const uint8_t verdicts[SYSCALL_NUMBERS], struct range ranges[SYSCALL_NUMBERS + 1])
{
	unsigned n = 0;

	for (uint32_t nr = 0; nr < SYSCALL_NUMBERS; nr++)
		/* cppcheck-suppress uninitvar; those below N are set */
		if (n == 0 || verdicts[nr] != ranges[n - 1].verdict)
			ranges[n++] = (struct range){nr, (enum verdict)verdicts[nr]};
	if (ranges[n - 1].verdict != VERDICT_UNKNOWN)
		ranges[n++] = (struct range){SYSCALL_NUMBERS, VERDICT_UNKNOWN};
	return n;
}

void seccomp_tree_build(const uint8_t verdicts[SYSCALL_NUMBERS], struct seccomp_program *ret)
{
	struct range ranges[SYSCALL_NUMBERS + 1];
	unsigned n = ranges_find(verdicts, ranges);

	ret->prog = (struct sock_fprog){.len = 0, .filter = ret->code};
	load(ret, offsetof(struct seccomp_data, arch));
	jump(ret, BPF_JEQ, OUR_ARCH, 1, 0);
	finish(ret, SECCOMP_RET_KILL_PROCESS);
	load(ret, offsetof(struct seccomp_data, nr));
	tree(ret, ranges, n);
}
