/* guest_calls.c - system calls that a sandbox must not have, made for real; each argument would do the deed.
 */
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/reboot.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

void tell_mounting(void)
{
	int ns = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

	fact_call("mount_tmpfs", mount("none", "/tmp", "tmpfs", 0, NULL));
	fact_call("mount_bind", mount("/tmp", "/mnt", NULL, MS_BIND, NULL));
	fact_call("remount_usr", mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
	fact_call("umount_proc", umount2("/proc/sys", MNT_DETACH));
	fact_call("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
	fact_call("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE));
	fact_call("move_mount", syscall(SYS_move_mount, ns, "", AT_FDCWD, "/mnt", MOVE_MOUNT_F_EMPTY_PATH));
	fact_call("mount_setattr", syscall(SYS_mount_setattr, AT_FDCWD, "/usr", 0, NULL, 0));
	fact_call("pivot_root", syscall(SYS_pivot_root, ".", "."));
	fact_call("chroot", chroot("/tmp"));
	fact_call("setns", setns(ns, 0));
	fact_call("unshare_user", unshare(CLONE_NEWUSER));
	fact_call("unshare_mount", unshare(CLONE_NEWNS));
	fact_call("unshare_net", unshare(CLONE_NEWNET));
	fact_call("unshare_files", unshare(CLONE_FILES));
	fact_call("clone_user", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
	fact_call("clone3", syscall(SYS_clone3, NULL, 0));
	fact_call("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, 0));
	(void)close(ns);
}

void tell_machinery(void)
{
	struct perf_event_attr perf = {.type = PERF_TYPE_SOFTWARE, .size = sizeof perf};
	union bpf_attr bpf = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
	struct timespec now;
	char byte;
	struct iovec ours = {&byte, 1}, theirs = {(void *)&now, 1};
	int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);

	(void)clock_gettime(CLOCK_REALTIME, &now);
	fact_call("bpf", syscall(SYS_bpf, BPF_MAP_CREATE, &bpf, sizeof bpf));
	fact_call("perf_event_open", syscall(SYS_perf_event_open, &perf, 0, -1, -1, 0));
	fact_call("userfaultfd", syscall(SYS_userfaultfd, 1));
	fact_call("io_uring_setup", syscall(SYS_io_uring_setup, 1, NULL));
	fact_call("keyctl", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0));
	fact_call("add_key", syscall(SYS_add_key, "user", "name", "value", 5, KEY_SPEC_PROCESS_KEYRING));
	fact_call("request_key", syscall(SYS_request_key, "user", "name", NULL, 0));
	fact_call("ptrace_pid1", ptrace(PTRACE_SEIZE, 1, NULL, NULL));
	fact_call("read_memory_of_pid1", process_vm_readv(1, &ours, 1, &theirs, 1, 0));
	fact_call("pidfd_getfd_of_pid1", syscall(SYS_pidfd_getfd, pidfd, 0, 0));
	fact_call("init_module", syscall(SYS_init_module, NULL, 0, ""));
	fact_call("finit_module", syscall(SYS_finit_module, 0, "", 0));
	fact_call("delete_module", syscall(SYS_delete_module, "none", 0));
	fact_call("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
	fact_call("reboot", syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
				    LINUX_REBOOT_CMD_CAD_OFF, NULL));
	fact_call("swapon", swapon("/tmp/none", 0));
	fact_call("acct", acct(NULL));
	fact_call("syslog", syscall(SYS_syslog, 10, NULL, 0));
	fact_call("clock_settime", clock_settime(CLOCK_REALTIME, &now));
	fact_call("sethostname", sethostname("host", 4));
	fact_call("quotactl", syscall(SYS_quotactl, 0, NULL, 0, NULL));
	fact_call("memfd_secret", syscall(SYS_memfd_secret, 0));
	fact_call("fanotify_init", syscall(SYS_fanotify_init, 0, 0));
	(void)close(pidfd);
}

static void fact_socket(const char *name, int family, int type, int protocol)
{
	int fd = socket(family, type, protocol);

	fact_call(name, fd);
	if (fd >= 0) (void)close(fd);
}

void tell_sockets(void)
{
	fact_socket("socket_unix", AF_UNIX, SOCK_STREAM, 0);
	fact_socket("socket_inet6", AF_INET6, SOCK_STREAM, 0);
	fact_socket("socket_raw", AF_INET, SOCK_RAW, IPPROTO_ICMP);
	fact_socket("socket_packet", AF_PACKET, SOCK_RAW, 0);
	fact_socket("socket_vsock", AF_VSOCK, SOCK_STREAM, 0);
	fact_socket("socket_crypto", AF_ALG, SOCK_SEQPACKET, 0);
	fact_socket("socket_route", AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	fact_socket("socket_netfilter", AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
}

#ifdef __x86_64__
/* The numbers of 32-bit calls are others: 20 is getpid there. */
static void tell_other_architectures(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		long r;

		__asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory");
		_exit(r > 0 ? 0 : 1);
	}
	(void)waitpid(pid, &status, 0);
	fact("call_32bit", "%s", WIFSIGNALED(status) ? "killed" : "answered");
	fact_call("call_x32", syscall(0x40000000 | SYS_getpid));
}
#else
static void tell_other_architectures(void) {}
#endif

void tell_filter(void)
{
	int ours = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);

	fact_call("ioctl_tiocsti", ioctl(ours, TIOCSTI, "x"));
	fact_call("ioctl_tiocsti_high_bits", syscall(SYS_ioctl, ours, (1UL << 32) | TIOCSTI, "x"));
	(void)close(ours);
	fact_call("personality_read", personality(0xffffffff));
	fact_call("personality_execute", personality(READ_IMPLIES_EXEC));
	fact_call("unknown_call", syscall(500));
	tell_other_architectures();
}
