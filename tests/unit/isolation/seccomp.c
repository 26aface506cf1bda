/*
 * The filters, run through a small interpreter of the instructions they use: every row of syscalls.def, the
 * arguments, and what must hold for any table (each number is decided, the tree is shallow).
 */
#include "isolation/seccomp.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "isolation/seccomp_tree.h"
#include "isolation/syscall_numbers.h"
#include "unit.h"

#ifdef __x86_64__
#define OUR_ARCH AUDIT_ARCH_X86_64
#else
#define OUR_ARCH AUDIT_ARCH_AARCH64
#endif

#define ANSWER(no) (SECCOMP_RET_ERRNO | (no))

/* ---- the interpreter ---- */

static unsigned steps;

static uint32_t run(const struct sock_fprog *p, const struct seccomp_data *data)
{
	uint32_t a = 0;

	steps = 0;
	for (unsigned at = 0; at < p->len; at++) {
		const struct sock_filter *i = &p->filter[at];
		unsigned jump = 0;

		steps++;
		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(i->k % 4 == 0 && i->k + 4 <= sizeof *data);
			memcpy(&a, (const char *)data + i->k, 4);
			break;
		case BPF_JMP | BPF_JEQ | BPF_K: jump = a == i->k ? i->jt : i->jf; break;
		case BPF_JMP | BPF_JGE | BPF_K: jump = a >= i->k ? i->jt : i->jf; break;
		case BPF_JMP | BPF_JSET | BPF_K: jump = a & i->k ? i->jt : i->jf; break;
		case BPF_RET | BPF_K: return i->k;
		default: fail_msg("instruction %u has the unknown code %x", at, i->code);
		}
		at += jump;
	}
	fail_msg("the program ran off its end");
	return 0;
}

static uint32_t judge(const struct sock_fprog *p, long number, uint64_t a0, uint64_t a1, uint64_t a2)
{
	const struct seccomp_data data = {.nr = (int)number, .arch = OUR_ARCH, .args = {a0, a1, a2}};

	return run(p, &data);
}

static uint32_t inside(long number, uint64_t a0, uint64_t a1, uint64_t a2)
{
	return judge(seccomp_sandbox_filter(), number, a0, a1, a2);
}

static uint32_t in_front(long number, uint64_t a0, uint64_t a1, uint64_t a2)
{
	return judge(seccomp_front_filter(), number, a0, a1, a2);
}

/* ---- every row ---- */

struct row {
	const char *name;
	long number;
	enum verdict sandbox, front;
};

static const struct row rows[] = {
#define SYSCALL(name, sandbox, front) {#name, __NR_##name, VERDICT_##sandbox, VERDICT_##front},
#include "isolation/syscalls.def"
};

/* What a verdict answers whatever the arguments are; false for those that look at them. */
static bool plain_action(enum verdict v, uint32_t *ret)
{
	static const uint32_t actions[] = {
		[VERDICT_UNKNOWN] = ANSWER(ENOSYS), [VERDICT_ALLOW] = SECCOMP_RET_ALLOW,
		[VERDICT_EPERM] = ANSWER(EPERM),    [VERDICT_ENOSYS] = ANSWER(ENOSYS),
		[VERDICT_NOTHING] = ANSWER(0),      [VERDICT_KILL] = SECCOMP_RET_KILL_PROCESS,
	};

	if (v > VERDICT_KILL) return false;
	*ret = actions[v];
	return true;
}

TEST(every_row_is_answered_as_the_table_says)
{
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t wanted;

		if (plain_action(rows[i].sandbox, &wanted) &&
		    inside(rows[i].number, ~0ull, ~0ull, ~0ull) != wanted)
			fail_msg("sandbox: %s", rows[i].name);
		if (plain_action(rows[i].front, &wanted) &&
		    in_front(rows[i].number, ~0ull, ~0ull, ~0ull) != wanted)
			fail_msg("front: %s", rows[i].name);
	}
}

TEST(no_number_has_two_rows)
{
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		ASSERT_TRUE(rows[i].number >= 0 && rows[i].number < (long)SYSCALL_NUMBERS);
		for (unsigned k = 0; k < i; k++)
			if (rows[i].number == rows[k].number)
				fail_msg("%s and %s", rows[i].name, rows[k].name);
	}
}

static bool has_row(long number)
{
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].number == number) return true;
	return false;
}

TEST(what_has_no_row_does_not_exist)
{
	const long beyond[] = {SYSCALL_NUMBERS - 1, SYSCALL_NUMBERS, 1000,       0x3fffffff,
			       0x40000000,          0x40000001,      0x7fffffff, -1};

	for (long number = 0; number < (long)SYSCALL_NUMBERS; number++) {
		if (has_row(number)) continue;
		ASSERT_EQ(inside(number, 0, 0, 0), ANSWER(ENOSYS));
		ASSERT_EQ(in_front(number, 0, 0, 0), ANSWER(ENOSYS));
	}
	for (unsigned i = 0; i < ARRAY_LEN(beyond); i++) {
		ASSERT_EQ(inside(beyond[i], 0, 0, 0), ANSWER(ENOSYS));
		ASSERT_EQ(in_front(beyond[i], 0, 0, 0), ANSWER(ENOSYS));
	}
}

TEST(all_calls_of_the_headers_have_a_row)
{
#ifdef __x86_64__
	for (long number = 0; number <= __NR_listns; number++) {
		if (number > __NR_rseq && number < __NR_pidfd_send_signal)
			continue; /* never given out, or uprobes' */
		if (!has_row(number)) fail_msg("%ld", number);
	}
#else
	skip();
#endif
}

TEST(the_tree_is_shallow_and_the_program_small)
{
	const struct sock_fprog *both[] = {seccomp_sandbox_filter(), seccomp_front_filter()};

	for (unsigned i = 0; i < 2; i++) {
		print_message("%u instructions\n", both[i]->len);
		ASSERT_TRUE(both[i]->len <= 400);
		for (long number = 0; number < (long)SYSCALL_NUMBERS; number++) {
			(void)judge(both[i], number, 0, 0, 0);
			ASSERT_TRUE(steps <= 3 + 8 + 12); /* prologue, depth, the longest leaf */
		}
	}
}

/* Any verdicts, not only ours: a table with a change at each number would not fit, one at each fourth must.
 */
TEST(a_tree_of_any_table_finds_what_went_in)
{
	static struct seccomp_program program;
	uint8_t verdicts[SYSCALL_NUMBERS];
	uint32_t seed = 1;

	for (unsigned round = 0; round < 50; round++) {
		for (unsigned i = 0; i < SYSCALL_NUMBERS; i++) {
			seed = seed * 1664525 + 1013904223;
			verdicts[i] = i % 4 ? verdicts[i - 1] : (uint8_t)((seed >> 24) % (VERDICT_KILL + 1));
		}
		seccomp_tree_build(verdicts, &program);
		for (unsigned i = 0; i < SYSCALL_NUMBERS; i++) {
			uint32_t wanted = 0;

			(void)plain_action((enum verdict)verdicts[i], &wanted);
			ASSERT_EQ(judge(&program.prog, (long)i, 0, 0, 0), wanted);
		}
		ASSERT_EQ(judge(&program.prog, SYSCALL_NUMBERS, 0, 0, 0), ANSWER(ENOSYS));
	}
}

TEST(another_architecture_ends_the_process)
{
	const struct seccomp_data data = {.nr = __NR_read, .arch = AUDIT_ARCH_I386};

	ASSERT_EQ(run(seccomp_sandbox_filter(), &data), SECCOMP_RET_KILL_PROCESS);
	ASSERT_EQ(run(seccomp_front_filter(), &data), SECCOMP_RET_KILL_PROCESS);
}

/* ---- arguments ---- */

TEST(clone_makes_processes_and_threads_but_no_namespaces)
{
	const uint64_t namespaces[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
				       CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};

	ASSERT_EQ(inside(__NR_clone, SIGCHLD, 0, 0), SECCOMP_RET_ALLOW);
	ASSERT_EQ(inside(__NR_clone, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, 0, 0),
		  SECCOMP_RET_ALLOW);
	for (unsigned i = 0; i < ARRAY_LEN(namespaces); i++) {
		ASSERT_EQ(inside(__NR_clone, namespaces[i] | SIGCHLD, 0, 0), ANSWER(EPERM));
		ASSERT_EQ(inside(__NR_unshare, namespaces[i] | CLONE_FILES, 0, 0), ANSWER(EPERM));
	}
	ASSERT_EQ(inside(__NR_unshare, CLONE_NEWTIME, 0, 0), ANSWER(EPERM));
	ASSERT_EQ(inside(__NR_unshare, CLONE_FILES | CLONE_FS, 0, 0), SECCOMP_RET_ALLOW);
	ASSERT_EQ(in_front(__NR_clone, CLONE_VM | CLONE_THREAD, 0, 0), SECCOMP_RET_ALLOW);
	ASSERT_EQ(in_front(__NR_clone, SIGCHLD, 0, 0), ANSWER(EPERM));
}

TEST(terminals_cannot_be_typed_into)
{
	ASSERT_EQ(inside(__NR_ioctl, 0, TIOCSTI, 0), ANSWER(EPERM));
	ASSERT_EQ(inside(__NR_ioctl, 0, TIOCLINUX, 0), ANSWER(EPERM));
	ASSERT_EQ(inside(__NR_ioctl, 0, (UINT64_C(1) << 32) | TIOCSTI, 0),
		  ANSWER(EPERM)); /* the kernel drops the high half */
	ASSERT_EQ(inside(__NR_ioctl, 0, TCGETS, 0), SECCOMP_RET_ALLOW);
	ASSERT_EQ(in_front(__NR_ioctl, 0, FIONBIO, 0), SECCOMP_RET_ALLOW);
	ASSERT_EQ(in_front(__NR_ioctl, 0, TIOCSTI, 0), ANSWER(EPERM));
}

TEST(sockets_are_of_four_families)
{
	const uint64_t allowed[] = {AF_UNIX, AF_INET, AF_INET6};

	for (uint64_t family = 0; family < 64; family++) {
		bool plain = false;

		for (unsigned i = 0; i < ARRAY_LEN(allowed); i++)
			plain |= family == allowed[i];
		if (family == AF_NETLINK) continue;
		ASSERT_EQ(inside(__NR_socket, family, SOCK_STREAM, 0),
			  plain ? SECCOMP_RET_ALLOW : ANSWER(EAFNOSUPPORT));
	}
	for (uint64_t protocol = 0; protocol < 32; protocol++) {
		bool known = protocol == NETLINK_ROUTE || protocol == NETLINK_SOCK_DIAG ||
			     protocol == NETLINK_KOBJECT_UEVENT;

		ASSERT_EQ(inside(__NR_socket, AF_NETLINK, SOCK_RAW, protocol),
			  known ? SECCOMP_RET_ALLOW : ANSWER(EPROTONOSUPPORT));
	}
	ASSERT_EQ(inside(__NR_socketpair, AF_UNIX, SOCK_STREAM, 0), SECCOMP_RET_ALLOW);
	ASSERT_EQ(in_front(__NR_socket, AF_INET, SOCK_STREAM, 0), ANSWER(EAFNOSUPPORT));
	ASSERT_EQ(in_front(__NR_socket, AF_UNIX, SOCK_STREAM, 0), SECCOMP_RET_ALLOW);
}

TEST(personalities_of_debuggers_are_allowed_and_weakening_ones_not)
{
	const uint64_t allowed[] = {PER_LINUX, PER_LINUX32, ADDR_NO_RANDOMIZE, 0xffffffff};
	const uint64_t refused[] = {READ_IMPLIES_EXEC, MMAP_PAGE_ZERO, ADDR_COMPAT_LAYOUT, PER_SVR4};

	for (unsigned i = 0; i < ARRAY_LEN(allowed); i++)
		ASSERT_EQ(inside(__NR_personality, allowed[i], 0, 0), SECCOMP_RET_ALLOW);
	for (unsigned i = 0; i < ARRAY_LEN(refused); i++)
		ASSERT_EQ(inside(__NR_personality, refused[i], 0, 0), ANSWER(EPERM));
}

TEST(the_front_opens_for_reading_only)
{
	ASSERT_EQ(in_front(__NR_openat, (uint64_t)AT_FDCWD, 0, O_RDONLY | O_CLOEXEC), SECCOMP_RET_ALLOW);
	ASSERT_EQ(in_front(__NR_openat, (uint64_t)AT_FDCWD, 0, O_WRONLY), ANSWER(EPERM));
	ASSERT_EQ(in_front(__NR_openat, (uint64_t)AT_FDCWD, 0, O_RDWR), ANSWER(EPERM));
	ASSERT_EQ(in_front(__NR_openat, (uint64_t)AT_FDCWD, 0, O_RDONLY | O_CREAT), ANSWER(EPERM));
	ASSERT_EQ(in_front(__NR_openat, (uint64_t)AT_FDCWD, 0, O_RDONLY | O_TRUNC), ANSWER(EPERM));
	ASSERT_EQ(in_front(__NR_execve, 0, 0, 0), SECCOMP_RET_KILL_PROCESS);
	ASSERT_EQ(in_front(__NR_prctl, PR_SET_NAME, 0, 0), SECCOMP_RET_ALLOW);
	ASSERT_EQ(in_front(__NR_prctl, PR_SET_SECCOMP, 0, 0), ANSWER(EPERM));
}

/* ---- and in the kernel ---- */

TEST(the_kernel_takes_the_program)
{
	const struct sock_fprog *both[] = {seccomp_sandbox_filter(), seccomp_front_filter()};

	for (unsigned i = 0; i < 2; i++) {
		int status = -1;
		pid_t pid = fork();

		if (pid == 0) {
			if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_load(both[i], NULL) < 0)
				_exit(1);
			_exit(syscall(SYSCALL_NUMBERS - 1) < 0 && errno == ENOSYS && setns(-1, 0) < 0 ? 0
												      : 2);
		}
		ASSERT_EQ(waitpid(pid, &status, 0), pid);
		if (i == 0) ASSERT_EQ(status, 0);
		else ASSERT_EQ(WTERMSIG(status), SIGSYS); /* a front that calls setns is not ours any more */
	}
}

TESTS(RUN(every_row_is_answered_as_the_table_says), RUN(no_number_has_two_rows),
      RUN(what_has_no_row_does_not_exist), RUN(all_calls_of_the_headers_have_a_row),
      RUN(the_tree_is_shallow_and_the_program_small), RUN(a_tree_of_any_table_finds_what_went_in),
      RUN(another_architecture_ends_the_process), RUN(clone_makes_processes_and_threads_but_no_namespaces),
      RUN(terminals_cannot_be_typed_into), RUN(sockets_are_of_four_families),
      RUN(personalities_of_debuggers_are_allowed_and_weakening_ones_not),
      RUN(the_front_opens_for_reading_only), RUN(the_kernel_takes_the_program))
