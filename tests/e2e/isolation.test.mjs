// What a command sees and cannot do, asked over HTTP as anybody could. (tests/contain asks the kernel more closely.)
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { call, newId, sh } from './lib/client.mjs';
import { scratchDir, Server } from './lib/server.mjs';

let server, url, id;

before(async () => {
	server = await Server.start({ env: { SANDBOX_API_KEY: '', SECRET_OF_THE_HOST: 'host-secret' } });
	url = server.url;
	id = newId();
});

after(() => server?.stop());

const inside = (script) => sh(url, id, script);
const python = (code) => inside(`python3 - <<'EOF'\n${code}\nEOF`);

test('commands run as uid 1000 with no capability and no way to gain one', async () => {
	// the bounding set does not matter: under no_new_privs an exec never gains what is permitted there
	const run = await inside('id -u; id -g; id -G; grep -E "^(Cap[IPEA]|NoNewPrivs|Seccomp:)" /proc/self/status');
	assert.equal(run.out, '1000\n1000\n1000\n' + ['Inh', 'Prm', 'Eff', 'Amb'].map((set) => `Cap${set}:\t0000000000000000\n`).join('') + 'NoNewPrivs:\t1\nSeccomp:\t2\n');
});

test('only processes of the sandbox are seen', async () => {
	const run = await inside('for p in /proc/[0-9]*; do echo ${p#/proc/}; done');
	const pids = run.out.trim().split('\n').map(Number);
	assert.ok(pids.includes(1));
	assert.ok(pids.length < 10, run.out);
	assert.ok(!pids.includes(server.pid));
});

test('pid 1 shows nothing and does not die', async () => {
	for (const file of ['environ', 'root', 'cwd', 'exe', 'fd', 'mem', 'maps']) {
		const run = await inside(`ls /proc/1/${file}/ 2>/dev/null; cat /proc/1/${file} 2>/dev/null; readlink /proc/1/${file}`);
		assert.notEqual(run.code, 0, file);
		assert.equal(run.out, '', file);
	}
	await inside('kill -9 1; kill -TERM 1; kill -STOP 1; kill -SEGV 1');
	assert.equal((await inside('echo alive')).out, 'alive\n');
});

test('no file of the host outside of /usr is seen', async () => {
	const dir = scratchDir('secret');
	writeFileSync(join(dir, 'secret'), 'host-secret');
	try {
		assert.equal((await inside(`cat ${join(dir, 'secret')}`)).code, 1);
		assert.equal((await inside('find /root /home /srv /mnt /media /opt /boot -mindepth 1 -not -path "/home/sandbox*" 2>/dev/null')).out, '');
		assert.notEqual((await inside('ls /root')).code, 0);
		for (const file of ['/etc/shadow', '/etc/machine-id']) {
			const run = await inside(`cat ${file} 2>/dev/null`);
			if (run.code === 0) assert.notEqual(run.out, readFileSync(file, 'utf8'), file);
		}
		assert.equal((await inside(`ls ${server.state}`)).code, 2);
	} finally {
		rmSync(dir, { recursive: true });
	}
});

test('the environment of the server does not leak', async () => {
	const run = await inside('env; cat /proc/*/environ 2>/dev/null | tr "\\0" "\\n"');
	assert.ok(!run.out.includes('host-secret'));
	assert.ok(!run.out.includes(server.state));
});

test('/usr, /bin and /etc cannot be written, /workspace and /tmp can', async () => {
	for (const path of ['/usr/x', '/bin/x', '/etc/x', '/x', '/proc/sys/kernel/core_pattern', '/sys/x', '/dev/x'])
		assert.notEqual((await inside(`echo x > ${path}`)).code, 0, path);
	for (const path of ['/workspace/x', '/tmp/x', '/dev/shm/x']) assert.equal((await inside(`echo x > ${path} && rm ${path}`)).code, 0, path);
	assert.equal((await inside('stat -c "%u %a" /workspace; stat -c %a /tmp')).out, '1000 755\n1777\n');
});

test('devices are the harmless few, and no new ones can be made', async () => {
	const run = await inside('ls /dev');
	const allowed = new Set(['fd', 'full', 'mqueue', 'null', 'ptmx', 'pts', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'tty', 'urandom', 'zero', 'console', 'core']);
	for (const name of run.out.trim().split('\n')) assert.ok(allowed.has(name), name);
	assert.notEqual((await inside('mknod /tmp/sda b 8 0')).code, 0);
	assert.notEqual((await inside('mknod /tmp/mem c 1 1')).code, 0);
});

test('dangerous system calls fail', async () => {
	const run = await python(`
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
calls = {'mount': (165, b'x', b'/tmp', b'tmpfs', 0, 0), 'unshare_user': (272, 0x10000000), 'unshare_net': (272, 0x40000000), 'setns': (308, 0, 0),
         'bpf': (321, 0, 0, 0), 'keyctl': (250, 0, 0, 0), 'add_key': (248, b'user', b'a', b'b', 1, 0), 'ptrace_init': (101, 16, 1, 0, 0), 'pivot_root': (155, b'/', b'/'),
         'kexec': (246, 0, 0, 0, 0), 'perf': (298, 0, 0, 0, 0, 0), 'userfaultfd': (323, 0), 'io_uring': (425, 1, 0), 'reboot': (169, 0, 0, 0, 0),
         'init_module': (175, 0, 0, 0), 'open_by_handle': (304, 0, 0, 0), 'swapon': (167, b'/tmp/x', 0), 'sethostname': (170, b'x', 1), 'chroot': (161, b'/tmp'),
         'clone_user': (56, 0x10000000 | 17, 0, 0, 0, 0)}
for name, args in calls.items():
    r = libc.syscall(*args)
    if r == 0 and name.startswith('clone'): os._exit(0)
    print(name, 'allowed' if r >= 0 else 'refused')
`);
	const lines = run.out.trim().split('\n');
	assert.equal(lines.length, 20, run.err);
	assert.deepEqual(lines.filter((line) => !line.endsWith('refused')), []);
});

test('setuid programs gain nothing', async () => {
	const run = await inside('for p in su mount umount passwd newgrp; do command -v $p; done >/dev/null; cp /bin/id /tmp/id && chmod 4755 /tmp/id; /tmp/id -u');
	assert.equal(run.out, '1000\n');
});

test('the kernel\'s secrets are masked', async () => {
	for (const file of ['/proc/kcore', '/proc/keys', '/proc/timer_list', '/proc/kmsg', '/proc/sysrq-trigger', '/proc/kallsyms'])
		assert.equal((await inside(`head -c 100 ${file} 2>/dev/null | tr -d '\\0' | grep -v "^0* " | wc -c`)).out.trim(), '0', file);
	assert.notEqual((await inside('echo 1 > /proc/sys/net/ipv4/ip_forward')).code, 0);
});

test('the network is the loopback, and it is not the host\'s', async () => {
	const listener = createServer((socket) => socket.end('host'));
	await new Promise((done) => listener.listen(0, '0.0.0.0', done));
	const run = await python(`
import socket
for host in ('127.0.0.1', '10.0.0.1', '169.254.169.254', '192.0.2.1'):
    s = socket.socket(); s.settimeout(3)
    try:
        s.connect((host, ${listener.address().port})); print(host, 'reached')
    except OSError as e:
        print(host, 'refused')
s = socket.socket(); s.bind(('127.0.0.1', 8080)); s.listen()
c = socket.create_connection(('127.0.0.1', 8080)); print('own loopback')
try:
    socket.socket(socket.AF_UNIX).connect('\\0/tmp/.X11-unix/X0'); print('abstract reached')
except OSError:
    print('abstract refused')
`);
	listener.close();
	assert.equal(run.out, '127.0.0.1 refused\n10.0.0.1 refused\n169.254.169.254 refused\n192.0.2.1 refused\nown loopback\nabstract refused\n', run.err);
	assert.equal((await inside('cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d " "')).out, 'lo\n');
});

test('the server\'s own sockets cannot be reached', async () => {
	const run = await inside(`cat /proc/net/unix | tail -n +2 | wc -l; find / -xdev -type s 2>/dev/null | wc -l`);
	assert.equal(run.out, '0\n0\n');
});

test('sandboxes do not see each other', async () => {
	const other = newId();
	await sh(url, other, 'echo theirs > /tmp/theirs; echo theirs > /workspace/theirs; sleep 640 >/dev/null 2>&1 &');
	const run = await inside('ls /tmp /workspace; cat /proc/[0-9]*/cmdline | tr "\\0" " "; ipcs 2>/dev/null | grep -c 0x');
	assert.ok(!run.out.includes('theirs') && !run.out.includes('sleep 640'));
	const names = await Promise.all([id, other].map((box) => sh(url, box, 'for n in cgroup ipc mnt net pid user uts; do readlink /proc/self/ns/$n; done')));
	const [mine, theirs] = names.map((run) => run.out.trim().split('\n'));
	mine.forEach((ns, i) => assert.notEqual(ns, theirs[i]));
	await call(`${url}/v1/sandbox/${other}`, 'DELETE');
});

test('every namespace is another one than the host\'s', async () => {
	const { readlinkSync } = await import('node:fs');
	for (const name of ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'user', 'uts'])
		assert.notEqual((await inside(`readlink /proc/self/ns/${name}`)).out.trim(), readlinkSync(`/proc/self/ns/${name}`), name);
	assert.notEqual((await inside('uname -n')).out.trim(), hostname());
});

test('the cgroup tree shows nothing of the host', async () => {
	const run = await inside('cat /proc/self/cgroup; ls /sys/fs/cgroup 2>/dev/null');
	assert.ok(!run.out.includes('tombolo'), run.out);
});

test('limits bite: processes and memory, and the sandbox goes on', async () => {
	const created = async (body) => (await call(`${url}/v1/sandbox`, 'POST', { body })).json.id;
	let box = await created('{"limits":{"pids":128}}');
	const forks = await sh(url, box, 'i=0; while [ $i -lt 200 ]; do sleep 641 & i=$((i+1)); done >/dev/null', { timeout_ms: 30000 });
	assert.match(forks.err, /fork|resource/i);
	assert.equal((await call(`${url}/v1/sandbox/${box}`)).json.limits.pids, 128);
	await call(`${url}/v1/sandbox/${box}`, 'DELETE');
	box = await created('{"instance":"lite"}');
	const hog = await sh(url, box, 'python3 -c "x = bytearray(1 << 30); print(len(x))"');
	assert.notEqual(hog.code, 0);
	assert.equal((await sh(url, box, 'echo alive')).out, 'alive\n');
	assert.equal((await call(`${url}/v1/sandbox/${box}`)).json.limits.pids, 512);
	await call(`${url}/v1/sandbox/${box}`, 'DELETE');
});
