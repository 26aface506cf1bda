/* guest_sees.c - who we are and what we see. */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <mntent.h>
#include <net/if.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

/* The file's beginning, its white space made single spaces; "" when it cannot be read. */
static const char *file_words(const char *path)
{
	static char text[4096];
	FILE *f = fopen(path, "re");
	size_t len = 0;
	char word[1024];

	text[0] = '\0';
	while (f && fscanf(f, "%1023s", word) == 1 && len + strlen(word) + 2 < sizeof text)
		len += (size_t)sprintf(text + len, "%s%s", len ? " " : "", word);
	if (f) (void)fclose(f);
	return text;
}

static const char *status_field(const char *path, const char *field)
{
	static char value[256];
	char line[256];
	FILE *f = fopen(path, "re");

	value[0] = '\0';
	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, field, strlen(field)) == 0 && line[strlen(field)] == ':')
			(void)sscanf(line + strlen(field) + 1, " %255[^\n]", value);
	if (f) (void)fclose(f);
	return value;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Names in the directory, sorted, with commas. */
static void fact_list(const char *name, const char *dir)
{
	struct dirent **found;
	char text[2048] = "";
	int n = scandir(dir, &found, NULL, by_name);

	if (n < 0) {
		fact_call(name, -1);
		return;
	}
	for (int i = 0; i < n; i++) {
		const char *one = found[i]->d_name;

		if (strcmp(one, ".") == 0 || strcmp(one, "..") == 0) continue;
		if (text[0]) strncat(text, ",", sizeof text - strlen(text) - 1);
		strncat(text, one, sizeof text - strlen(text) - 1);
	}
	fact(name, "%s", text[0] ? text : "(nothing)");
}

static void fact_open(const char *name, const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	fact_call(name, fd);
	if (fd >= 0) (void)close(fd);
}

void tell_identity(void)
{
	static const char *const fields[] = {"CapInh",     "CapPrm",  "CapEff", "CapAmb",
					     "NoNewPrivs", "Seccomp", "Groups"};
	char name[64], host[65] = "";
	struct rlimit limit;
	mode_t mask = umask(022);

	fact("uid", "%d", (int)getuid());
	fact("gid", "%d", (int)getgid());
	fact("uid_map", "%s", file_words("/proc/self/uid_map"));
	fact("gid_map", "%s", file_words("/proc/self/gid_map"));
	for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++) {
		(void)snprintf(name, sizeof name, "self_%s", fields[i]);
		fact(name, "%s", status_field("/proc/self/status", fields[i]));
	}
	fact("umask", "%03o", (unsigned)mask);
	(void)gethostname(host, sizeof host);
	fact("host_name", "%s", host);
	(void)getrlimit(RLIMIT_CORE, &limit);
	fact("core_limit", "%lu", (unsigned long)limit.rlim_max);
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	fact("file_limit", "%lu", (unsigned long)limit.rlim_cur);
}

static unsigned visible_processes(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	unsigned n = 0;

	while (dir && (entry = readdir(dir)))
		n += entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
	if (dir) (void)closedir(dir);
	return n;
}

/* The descriptors we were born with. */
static void tell_descriptors(void)
{
	char text[256] = "";

	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			(void)sprintf(text + strlen(text), "%s%d", text[0] ? "," : "", fd);
	fact("open_descriptors", "%s", text);
}

void tell_processes(void)
{
	static const char *const shut[] = {"environ", "maps", "fd",        "exe",   "root",
					   "cwd",     "mem",  "map_files", "ns/mnt"};

	tell_descriptors();
	fact("parent", "%d", (int)getppid());
	fact("visible_processes", "%u", visible_processes());
	fact("pid1_Seccomp", "%s", status_field("/proc/1/status", "Seccomp"));
	fact("pid1_NoNewPrivs", "%s", status_field("/proc/1/status", "NoNewPrivs"));
	fact("pid1_CapPrm", "%s", status_field("/proc/1/status", "CapPrm"));
	for (unsigned i = 0; i < sizeof shut / sizeof *shut; i++) {
		char name[64], path[64];

		(void)snprintf(name, sizeof name, "open_pid1_%s", shut[i]);
		(void)snprintf(path, sizeof path, "/proc/1/%s", shut[i]);
		fact_open(name, path, O_RDONLY);
	}
	fact_call("kill_pid1", kill(1, SIGKILL));
	fact_call("stop_pid1", kill(1, SIGSTOP));
	fact_call("kill_all", kill(-1, 0));
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* By name: kernels list them in different orders. */
static void tell_mounts(void)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	char text[64 * 65] = "", cgroups[16] = "none";
	char dirs[64][64];
	size_t count = 0, len = 0;
	struct mntent *m;

	while (mounts && count < 64 && (m = getmntent(mounts))) {
		if (strncmp(m->mnt_type, "cgroup", 6) == 0) (void)strcpy(cgroups, "mounted");
		if (strncmp(m->mnt_dir, "/proc/", 6) == 0) continue; /* masks have facts of their own */
		(void)snprintf(dirs[count++], sizeof dirs[0], "%s", m->mnt_dir);
	}
	if (mounts) (void)endmntent(mounts);
	qsort(dirs, count, sizeof dirs[0], compare);
	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", i ? "," : "", dirs[i]);
	fact("mounts", "%s", text);
	fact("cgroup_mounts", "%s", cgroups);
}

static const char *emptiness(const char *path)
{
	char byte;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *answer = "empty";

	if (fd < 0) return errno == ENOENT ? "absent" : strerrorname_np(errno);
	if (read(fd, &byte, 1) > 0) answer = "readable";
	(void)close(fd);
	return answer;
}

static const char *dir_emptiness(const char *path)
{
	struct dirent **found;
	int n = scandir(path, &found, NULL, NULL);

	if (n < 0) return errno == ENOENT ? "absent" : strerrorname_np(errno);
	return n == 2 ? "empty" : "readable";
}

static bool file_mentions(const char *path, const char *word)
{
	char line[4096];
	FILE *f = fopen(path, "re");
	bool found = false;

	while (f && fgets(line, sizeof line, f))
		found |= strstr(line, word) != NULL;
	if (f) (void)fclose(f);
	return found;
}

static bool is_read_only(const char *path)
{
	struct statvfs fs;

	return statvfs(path, &fs) == 0 && (fs.f_flag & ST_RDONLY);
}

void tell_proc(const char *host_word)
{
	tell_mounts();
	fact("mountinfo_names_host", "%s", file_mentions("/proc/self/mountinfo", host_word) ? "yes" : "no");
	fact("cgroup_names_host", "%s", file_mentions("/proc/self/cgroup", host_word) ? "yes" : "no");
	fact("pid1_names_host", "%s", file_mentions("/proc/1/mountinfo", host_word) ? "yes" : "no");
#define MASK_FILE(name, why) fact("mask_" name, "%s", emptiness("/proc/" name));
#define MASK_DIR(name, why)  fact("mask_" name, "%s", dir_emptiness("/proc/" name));
#define READ_ONLY(name, why) fact("read_only_" name, "%s", is_read_only("/proc/" name) ? "yes" : "no");
#include "isolation/proc_masks.def"
	fact_list("sys", "/sys");
	fact_open("write_sysctl", "/proc/sys/kernel/hostname", O_WRONLY);
	fact_open("write_oom_score_of_pid1", "/proc/1/oom_score_adj", O_WRONLY);
}

/* Runs a copy of ourselves at PATH with MODE, as uid 1000, and tells which euid it had. */
static void tell_exec_of_copy(const char *name, const char *path, mode_t mode)
{
	char *args[] = {(char *)path, (char *)"euid", NULL};
	char copy[128];
	int status = 0;
	pid_t pid;

	(void)snprintf(copy, sizeof copy, "cp /guest %s && chmod %o %s", path, (unsigned)mode, path);
	(void)unlink(path);
	if (system(copy) != 0) fact(name, "cannot copy");
	pid = fork();
	if (pid == 0) {
		if (getuid() == 0 && (setgid(1000) < 0 || setuid(1000) < 0)) _exit(99);
		(void)printf("%s_", name);
		(void)fflush(stdout);
		(void)execv(path, args);
		(void)printf("failed %s\n", strerrorname_np(errno));
		(void)fflush(stdout);
		_exit(1);
	}
	(void)waitpid(pid, &status, 0);
	(void)unlink(path);
}

static void tell_mode(const char *name, const char *path)
{
	struct stat st = {0};

	(void)stat(path, &st);
	fact(name, "%o %u:%u", st.st_mode & 07777, st.st_uid, st.st_gid);
}

static void fact_create(const char *name, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	fact_call(name, fd);
	if (fd >= 0) (void)close(fd);
}

void tell_files(const char *host_path)
{
	char name[64];

	fact_list("root", "/");
	fact_list("home", "/home");
	fact_open("host_path", host_path, O_RDONLY);
	fact_open("host_path_by_cwd", "../../../../../../../../etc/ssh", O_RDONLY);
	fact_list("root_home", "/root");
	tell_mode("mode_tmp", "/tmp");
	tell_mode("mode_var_tmp", "/var/tmp");
	tell_mode("mode_dev_shm", "/dev/shm");
	tell_mode("mode_workspace", "/workspace");
	tell_mode("mode_root_home", "/root");
	tell_mode("mode_shadow", "/etc/shadow");
	(void)snprintf(name, sizeof name, "/workspace/of-%d", (int)getuid());
	fact_create("create_workspace", name);
	fact_create("create_etc", "/etc/new");
	fact_create("create_usr", "/usr/new");
	fact_create("create_dev", "/dev/new");
	fact_create("create_proc", "/proc/new");
	fact_call("mknod_device", mknod("/tmp/disk", S_IFBLK | 0666, makedev(254, 0)));
	fact_call("mknod_fifo", mknod("/tmp/fifo", S_IFIFO | 0666, 0));
	(void)unlink("/tmp/fifo");
	tell_exec_of_copy("tmp", "/tmp/copy", 0755);
	tell_exec_of_copy("setuid", "/tmp/setuid", 04755);
}

static void tell_terminal(void)
{
	char byte = 0, name[64] = "";
	int ours, theirs;

	fact_call("openpty", openpty(&ours, &theirs, NULL, NULL, NULL));
	(void)ttyname_r(theirs, name, sizeof name);
	fact("terminal_name", "%s", name);
	fact("terminal_echo", "%s",
	     write(ours, "x", 1) == 1 && read(ours, &byte, 1) == 1 && byte == 'x' ? "yes" : "no");
	fact_call("terminal_mode", fchmod(theirs, 0600));
	(void)close(ours);
	(void)close(theirs);
}

static void tell_shared_memory(void)
{
	int fd = shm_open("/guest", O_RDWR | O_CREAT | O_EXCL, 0600);
	char *page;

	fact_call("shm_open", fd);
	fact_call("shm_size", ftruncate(fd, 4096));
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page != MAP_FAILED) page[0] = 'x';
	fact("shm_map", "%s", page == MAP_FAILED ? strerrorname_np(errno) : "OK");
	(void)shm_unlink("/guest");
	(void)close(fd);
}

void tell_devices(void)
{
	char bytes[16] = "";
	int fd;

	fact_list("dev", "/dev");
	fact_open("dev_null", "/dev/null", O_WRONLY);
	fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	fact_call("dev_urandom", read(fd, bytes, sizeof bytes));
	(void)close(fd);
	fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	fact("dev_zero", "%s", read(fd, bytes, 1) == 1 && bytes[0] == 0 ? "OK" : "no");
	(void)close(fd);
	fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	fact_call("dev_full", write(fd, bytes, 1));
	(void)close(fd);
	tell_terminal();
	tell_shared_memory();
}

static int connect_udp(const char *address)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;

	(void)inet_pton(AF_INET, address, &to.sin_addr);
	r = connect(fd, (struct sockaddr *)&to, sizeof to);
	(void)close(fd);
	return r;
}

static void tell_loopback(void)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(80), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
	    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	(void)setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	fact_call("bind_port_80", bind(server, (struct sockaddr *)&at, sizeof at));
	(void)listen(server, 1);
	fact_call("connect_loopback", connect(client, (struct sockaddr *)&at, sizeof at));
	(void)close(client);
	(void)close(server);
	client = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMP);
	fact_call("ping_socket", client);
	(void)close(client);
}

void tell_network(const char *host_socket)
{
	struct if_nameindex *names = if_nameindex();
	char text[256] = "";
	struct sockaddr_un host = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(host_socket));

	for (struct if_nameindex *one = names; one && one->if_name; one++)
		(void)snprintf(text + strlen(text), 32, "%s%s", text[0] ? "," : "", one->if_name);
	fact("interfaces", "%s", text);
	tell_loopback();
	fact_call("connect_internet", connect_udp("192.0.2.1"));
	(void)memcpy(host.sun_path + 1, host_socket, strlen(host_socket));
	fact_call("connect_host_abstract", connect(fd, (struct sockaddr *)&host, len));
	(void)close(fd);
}
