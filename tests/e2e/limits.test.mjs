// What a sandbox may use, and what it sees of that: field cases of the group "Limits, OOM, argv, host view", and disks.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, rmdirSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { assertError, call, eventually, exec, newId, sh, startExec } from './lib/client.mjs';
import { programs, scratchDir, Server, tree } from './lib/server.mjs';

let server, url;

before(async () => {
	server = await Server.start();
	url = server.url;
});

after(() => server?.stop());

const json = { 'Content-Type': 'application/json' };
const create = (limits, more = {}) => call(`${url}/v1/sandbox`, 'POST', { body: JSON.stringify({ limits, ...more }), headers: json });
const inspect = async (box) => (await call(`${url}/v1/sandbox/${box}`)).json;
const remove = (box) => call(`${url}/v1/sandbox/${box}`, 'DELETE');
const put = (box, path, body) => call(`${url}/v1/sandbox/${box}/file/workspace/${path}`, 'PUT', { body });

/** A sandbox with these limits, removed at the end of the test. */
async function limited(t, limits) {
	const answer = await create(limits);
	assert.equal(answer.status, 200, answer.text);
	const box = answer.json.id;
	t.after(() => remove(box));
	assert.equal((await sh(url, box, 'true')).code, 0);
	return box;
}

/** Skips without disk limits; whether it did. */
async function withoutDisk(t, box) {
	const { limits } = await inspect(box);
	if (!limits.disk_enforced) t.skip(`disk limits are off here: ${limits.disk_backend}`);
	return !limits.disk_enforced;
}

test('limits at creation are taken, told, and judged', async (t) => {
	const box = await limited(t, { memory_mb: 300, pids: 77, cpu: 0.5, disk_mb: 200 });
	const { limits, usage } = await inspect(box);
	assert.equal(limits.memory_bytes, 300 << 20);
	assert.equal(limits.pids, 77);
	assert.equal(limits.cpu_milli, 500);
	assert.equal(limits.disk_bytes, 200 << 20);
	assert.equal(typeof limits.disk_enforced, 'boolean');
	assert.match(limits.disk_backend, /^(project|image|tmpfs|off)$/);
	assert.equal(usage.oom_kills, 0);
	assert.equal(usage.pids_max_hits, 0);

	const plain = await create(undefined, { instance: 'lite' });
	await sh(url, plain.json.id, 'true');
	assert.equal((await inspect(plain.json.id)).limits.memory_bytes, 256 << 20);
	await remove(plain.json.id);

	const wrong = [[], 'much', 7, { memory_mb: 'all' }, { memory_mb: 1 }, { memory_mb: 1.5 }, { memory_mb: 1e9 }, { memory_mb: -5 },
		{ pids: 1 }, { pids: 1e7 }, { cpu: 0 }, { cpu: 1e4 }, { disk_mb: 1 }, { disk_mb: 1e12 }, { memory: 5 }];
	for (const limits of wrong) assertError(await create(limits), 400, 'invalid_request', 'limits');
	for (const limits of [undefined, null, {}, { memory_mb: null }]) {
		const fine = await create(limits);
		assert.equal(fine.status, 200, fine.text);
	}
});

test('C038 memory hogs of every kind end, and the sandbox goes on', async (t) => {
	const box = await limited(t, { memory_mb: 96, pids: 256, disk_mb: 512 });
	const hogs = {
		'one large': `exec python3 -c 'x = bytearray(1 << 30)'`,
		'page by page': `exec python3 -c 'x = []
while True: x.append(bytearray(4096))'`,
		'many small': `for i in $(seq 20); do python3 -c 'x = bytearray(30 << 20); import time; time.sleep(20)' & done; wait -n; exit $?`,
		'a mapping': `exec python3 -c 'import mmap
m = mmap.mmap(-1, 1 << 30)
for i in range(0, 1 << 30, 4096): m[i] = 1'`,
		'forks that touch': `exec python3 -c 'import os
x = bytearray(20 << 20)
for i in range(30):
    if os.fork() == 0:
        for j in range(0, len(x), 4096): x[j] = 1
        import time; time.sleep(20); os._exit(0)
for i in range(30):
    s = os.wait()[1]
    if s: os._exit(137 if s == 9 else 1)'`,
	};
	await put(box, 'kept', 'kept');
	for (const [name, script] of Object.entries(hogs)) {
		const run = await exec(url, box, { argv: ['bash', '-c', script], timeout_ms: 60000 });
		assert.equal(run.exit?.reason, 'oom', `${name}: ${JSON.stringify(run.exit ?? run.error)} ${run.stderr}`);
		await sh(url, box, 'kill -KILL -1');
		assert.equal((await call(`${url}/v1/sandbox/${box}/file/workspace/kept`)).text, 'kept', name);
	}
	// files in what other systems keep in memory are on the disk here
	const shm = await sh(url, box, 'dd if=/dev/zero of=/dev/shm/x bs=1M count=200 && dd if=/dev/zero of=/tmp/x bs=1M count=200 && rm /dev/shm/x /tmp/x');
	assert.equal(shm.code, 0, shm.err);
	assert.ok((await inspect(box)).usage.oom_kills >= 5);
});

test('C040 the inside sees its own machine', async (t) => {
	const box = await limited(t, { memory_mb: 512, cpu: 1, pids: 100, disk_mb: 256 });
	const out = async (script) => {
		const run = await sh(url, box, script);
		assert.equal(run.code, 0, `${script}: ${run.err}`);
		return run.out.trim();
	};
	assert.equal(await out('nproc'), '1');
	assert.equal(await out(`python3 -c 'import os; print(os.cpu_count(), len(os.sched_getaffinity(0)))'`), '1 1');
	assert.equal(await out('grep -c ^processor /proc/cpuinfo'), '1');
	assert.equal(await out(`grep -c '^cpu[0-9]' /proc/stat`), '1');
	assert.equal(await out(`awk '/MemTotal/{print $2}' /proc/meminfo`), String(512 * 1024));
	assert.equal(await out(`free -m | awk '/Mem:/{print $2}'`), '512');
	assert.equal(await out('cat /proc/swaps | wc -l'), '1');
	assert.equal(await out('cat /sys/fs/cgroup/memory.max'), String(512 << 20));
	assert.equal(await out('cat /sys/fs/cgroup/memory/memory.limit_in_bytes'), String(512 << 20));
	assert.equal(await out('cat /sys/fs/cgroup/pids.max'), '100');
	assert.match(await out('cat /sys/fs/cgroup/cpu.max'), /^\d+ 100000$|^max 100000$/);
	assert.equal(await out(`node -p 'const os = require("os"); [os.totalmem() / 1048576, os.cpus().length].join()'`), '512,1');
	assert.ok(Number((await out('cut -d. -f1 /proc/uptime'))) < 300, 'the time since the sandbox began');
	assert.match(await out('cat /proc/loadavg'), /^\d+\.\d\d \d+\.\d\d \d+\.\d\d \d+\/\d+ \d+$/);
	assert.match(await out('top -bn1 | head -5'), /512\.0 total/);
	assert.equal(await out('test -w /proc/meminfo && echo writable || echo not'), 'not');
	if ((await inspect(box)).limits.disk_enforced) {
		const [size, inodes] = [Number(await out(`df -k --output=size / | tail -1`)), Number(await out('df --output=itotal / | tail -1'))];
		assert.ok(size <= 256 * 1024 && size > 200 * 1024, `df says ${size} KiB`);
		assert.ok(inodes <= 65536 && inodes > 50000, `df says ${inodes} inodes`);
	}
	// memory in use is seen, too, while it is in use
	const used = await exec(url, box, { argv: ['python3', '-c', `
import time
x = bytearray(200 << 20)
for i in range(0, len(x), 4096): x[i] = 1
until = time.time() + 20
while time.time() < until:
    free = next(int(l.split()[1]) for l in open('/proc/meminfo') if l.startswith('MemAvailable'))
    if free < 330 * 1024: print('seen'); break
    time.sleep(0.05)
`], timeout_ms: 30000 });
	assert.equal(used.stdout.toString(), 'seen\n', used.stderr.toString());
});

test('C041 the ceiling of processes is told', async (t) => {
	const box = await limited(t, { pids: 64 });
	const run = await sh(url, box, 'for i in $(seq 200); do sleep 5 & done; wait', { timeout_ms: 20000 });
	assert.match(run.err, /fork|Resource temporarily unavailable/);
	assert.equal(run.exit.reason, 'pids');
	const { limits, usage } = await inspect(box);
	assert.equal(limits.pids, 64);
	assert.ok(usage.pids_max_hits > 0, JSON.stringify(usage));
	await exec(url, box, { argv: ['bash', '-c', 'kill -KILL -1'] });
	await eventually(async () => (await sh(url, box, '/bin/true; exit 0')).code === 0, 'the sandbox is usable');
});

test('C042 seven that allocate without bound do not disturb the eighth, nor the server', async () => {
	const boxes = await Promise.all(Array.from({ length: 8 }, async () => (await create({ memory_mb: 64 })).json.id));
	const beating = startExec(url, boxes[7], ['sh', '-c', 'for i in $(seq 8); do echo beat; sleep 0.5; done']);
	await beating.begun;
	await beating.saw('beat');
	const hogs = await Promise.all(boxes.slice(0, 7).map((box) => exec(url, box, { argv: ['python3', '-c', 'x = bytearray(1 << 30)'] })));
	for (const hog of hogs) assert.equal(hog.exit.reason, 'oom');
	await beating.done;
	assert.equal(Buffer.concat(beating.stdout).toString(), 'beat\n'.repeat(8));
	assert.equal(beating.exit.reason, 'exited');
	assert.deepEqual(Object.keys(programs(server.pid)).filter((name) => name.startsWith('tombolo-')).length >= 2, true);
	await Promise.all(boxes.map(remove));
});

test('C043 a hog is killed, not slowed down for ever', async (t) => {
	const box = await limited(t, { memory_mb: 64 });
	const start = performance.now();
	const run = await exec(url, box, { argv: ['python3', '-c', 'x = []\nwhile True: x.append(bytearray(1 << 20))'], timeout_ms: 60000 });
	assert.equal(run.exit.reason, 'oom');
	assert.ok(performance.now() - start < 20000);
});

const availableMiB = () => Number(/MemAvailable:\s+(\d+)/.exec(readFileSync('/proc/meminfo', 'utf8'))[1]) >> 10;

test('C044 what the host has no room for is refused; what runs is left alone', async () => {
	const host = await Server.start({ flags: ['--memory-reserve', `${availableMiB() - 1024}MiB`, '--max-sandboxes', '100'] });
	const jobs = [];
	let refused;
	for (let i = 0; i < 80 && !refused; i++) {
		const id = newId();
		const job = startExec(host.url, id, ['python3', '-c', 'import os, time\nx = bytearray(100 << 20)\nprint("full", flush=True)\nwhile not os.path.exists("go"): time.sleep(0.05)\nprint("whole")']);
		await job.begun;
		if (job.status === 200) {
			await job.saw('full');
			jobs.push({ id, job });
		} else refused = job;
	}
	assert.ok(jobs.length > 0, 'there was room for one');
	assert.equal(refused?.status, 503, 'and none for eighty');
	for (const { id, job } of jobs) {
		assert.equal((await call(`${host.url}/v1/sandbox/${id}/file/workspace/go`, 'PUT', { body: '' })).status, 200);
		await job.done;
		assert.equal(job.exit.reason, 'exited');
		assert.match(Buffer.concat(job.stdout).toString(), /whole/);
	}
	await host.stop();
});

test('C045 a host without usable control groups is told which, and nothing is served without limits', async () => {
	const hide = ['unshare', '-m', 'sh', '-c', 'umount -R -l /sys/fs/cgroup && exec "$@"', 'sh'];
	await assert.rejects(async () => (await Server.start({ under: hide })).kill(), /no usable cgroups: v2: not mounted; v1: the pids controller is mounted nowhere/);
	const box = newId();
	await sh(url, box, 'true');
	const { limits } = await inspect(box);
	assert.ok(limits.memory_bytes > 0 && limits.pids > 0 && limits.cpu_milli > 0);
	await remove(box);
});

test('C046 processes are counted for each sandbox', async (t) => {
	const [full, other] = [await limited(t, { pids: 64 }), await limited(t, { pids: 160 })];
	await sh(url, full, 'for i in $(seq 100); do sleep 30 & done', { timeout_ms: 20000 });
	const run = await sh(url, other, 'for i in $(seq 100); do sleep 1 & done; wait; echo fine');
	assert.equal(run.out, 'fine\n', run.err);
});

test('C047 arguments up to the limits of the kernel, and its own word beyond', async () => {
	const box = newId();
	const long = 'x'.repeat(120 << 10);
	assert.equal((await exec(url, box, ['printf', '%s', long])).stdout.length, long.length);
	const many = Array.from({ length: 2000 }, () => 'y'.repeat(512));
	assert.equal((await exec(url, box, ['sh', '-c', 'echo $#', 'sh', ...many])).stdout.toString(), '2000\n');
	const beyond = await exec(url, box, ['/usr/bin/printf', '%s', 'z'.repeat(140 << 10)]);
	assert.ok(!beyond.exit || beyond.code !== 0, 'it did not run');
	assert.match(JSON.stringify(beyond.json ?? beyond.error ?? beyond.stderr.toString()), /too long/i);
	await remove(box);
});

test('C048 a build inside does what it does outside; the ratio of their times is printed', async (t) => {
	if (!existsSync('/usr/bin/gcc')) return t.skip('no gcc in /usr');
	const box = await limited(t, {});
	const build = `for i in $(seq 12); do
	printf '#include <stdio.h>\\n#include <stdlib.h>\\n#include <string.h>\\nint f%d(int x) { printf("%%d", x); return x + %d; }\\n' $i $i > f$i.c; gcc -O2 -c f$i.c; done
ar rc lib.a f?.o f??.o; for i in $(seq 500); do echo $i > small$i; done; cat small* | wc -c; nm lib.a | grep -c ' T f'; rm small*`;
	const outside = scratchDir('build');
	t.after(() => rmSync(outside, { recursive: true }));
	const times = { inside: [], outside: [] }, expected = '1892\n12\n';
	for (let i = 0; i < 3; i++) {
		let begin = performance.now();
		assert.equal(execFileSync('sh', ['-c', build], { cwd: outside, encoding: 'utf8' }), expected);
		times.outside.push(performance.now() - begin);
		begin = performance.now();
		const run = await sh(url, box, build);
		assert.equal(run.out, expected, run.err);
		times.inside.push(performance.now() - begin);
	}
	t.diagnostic(`measured: ${(Math.min(...times.inside) / Math.min(...times.outside)).toFixed(2)} times as long inside`);
	return undefined;
});

test('C049 headless Chromium opens a page', async (t) => {
	if (!existsSync('/usr/lib/chromium/chromium')) return t.skip('no chromium in /usr');
	const box = await limited(t, { memory_mb: 1024, pids: 512 });
	await put(box, 'page.html', '<body><script>document.body.append("made " + 6 * 7)</script></body>');
	const run = await sh(url, box, '/usr/lib/chromium/chromium --headless --no-sandbox --disable-gpu --dump-dom file:///workspace/page.html', { timeout_ms: 60000 });
	assert.match(run.out, /made 42/, run.err);
	return undefined;
});

test('C049 shared memory and worker pools work', async (t) => {
	const box = await limited(t, { memory_mb: 1024 });
	const shm = await sh(url, box, 'dd if=/dev/zero of=/dev/shm/x bs=1M count=200');
	assert.equal(shm.code, 0, shm.err);
	const pool = await exec(url, box, { argv: ['python3', '-c', 'import multiprocessing as m\nprint(len(m.Pool(8).map(abs, range(10**5))))'] });
	assert.equal(pool.stdout.toString(), '100000\n', pool.stderr.toString());
});

test('C130 a full disk: an error inside, the host untouched, and room again after a removal', async (t) => {
	const box = await limited(t, { disk_mb: 256 });
	if (await withoutDisk(t, box)) return;
	const free = () => { const fs = statfsSync(server.state); return fs.bavail * fs.bsize; };
	const before = free();

	for (const dir of ['/workspace', '/tmp', '/home/sandbox', '/var/tmp', '/dev/shm']) {
		const run = await sh(url, box, `dd if=/dev/zero of=${dir}/x bs=1M count=1000`);
		assert.match(run.err, /No space left on device/, dir);
		assert.equal(run.exit.reason, 'disk', `${dir}: ${JSON.stringify(run.exit)}`);
		// what is deleted but open counts until it is closed; then it is free
		assert.equal((await sh(url, box, `rm ${dir}/x`)).code, 0);
	}
	await sh(url, box, 'dd if=/dev/zero of=/workspace/x bs=1M count=1000 2>/dev/null; dd if=/dev/zero of=/workspace/y bs=4k count=1000 2>/dev/null');
	const refused = await put(box, 'z', Buffer.alloc(8 << 20));
	assert.equal(refused.status, 502, refused.text);
	assert.match(refused.json.error, /No space left/);
	assert.equal((await sh(url, box, 'ls /workspace')).out, 'x\ny\n', 'nothing of what did not fit stays');
	assert.ok(before - free() < 300 << 20, `the host lost ${(before - free()) >> 20} MiB`);
	const { usage } = await inspect(box);
	assert.ok(usage.disk_bytes > 150 << 20 && usage.disk_bytes < 300 << 20, JSON.stringify(usage));

	assert.equal((await sh(url, box, 'rm /workspace/x /workspace/y')).code, 0);
	assert.equal((await put(box, 'z', Buffer.alloc(8 << 20))).status, 200);
	assert.equal((await sh(url, box, 'stat -c %s /workspace/z')).out, `${8 << 20}\n`);
});

test('C130 a flood of empty files meets the limit of inodes', async (t) => {
	const box = await limited(t, { disk_mb: 64 });
	if (await withoutDisk(t, box)) return;
	const run = await exec(url, box, { argv: ['python3', '-c', `
import errno, os
os.makedirs('/workspace/many')
n = 0
try:
    while n < 1000000:
        os.close(os.open(f'/workspace/many/{n}', os.O_CREAT | os.O_WRONLY))
        n += 1
except OSError as e:
    print(errno.errorcode[e.errno], n > 5000)
    raise SystemExit(1)
`], timeout_ms: 100000 });
	assert.equal(run.stdout.toString(), 'ENOSPC True\n', run.stderr.toString());
	assert.equal(run.exit.reason, 'disk');
	assert.equal((await sh(url, box, 'rm -r /workspace/many && echo x > /workspace/one')).code, 0);
});

test('a sandbox with much unwritten data goes away at once, and its disk with it', async (t) => {
	const box = await limited(t, { disk_mb: 1024 });
	await sh(url, box, 'dd if=/dev/zero of=/workspace/x bs=1M count=400 2>/dev/null');
	const start = performance.now();
	assert.equal((await remove(box)).status, 204);
	assert.ok(performance.now() - start < 2000, `the removal took ${Math.round(performance.now() - start)} ms`);
});

test('without an enforced limit the use of the disk is counted all the same, and who passes it is named in the log', async () => {
	const soft = await Server.start({ flags: ['--disk-quota', 'off'] });
	const { id } = (await call(`${soft.url}/v1/sandbox`, 'POST', { body: JSON.stringify({ limits: { disk_mb: 64 } }), headers: json })).json;
	const look = async () => (await call(`${soft.url}/v1/sandbox/${id}`)).json;
	await sh(soft.url, id, 'dd if=/dev/zero of=/workspace/x bs=1M count=10 2>/dev/null; mkdir -p a/b/c; echo x > a/b/c/d');
	await eventually(async () => (await look()).usage.disk_bytes >= 10 << 20, 'ten MiB are seen', 30000);
	assert.ok((await look()).usage.disk_bytes < 12 << 20);
	assert.equal((await look()).limits.disk_enforced, false);
	assert.doesNotMatch(soft.output, /disk_limit_passed/);
	await sh(soft.url, id, 'dd if=/dev/zero of=/workspace/y bs=1M count=60 2>/dev/null');
	await eventually(() => soft.output.includes('disk_limit_passed') && soft.output.includes(id), 'the log names it', 30000);
	assert.equal((await sh(soft.url, id, 'rm x y')).code, 0, 'nothing was ended');
	await eventually(async () => (await look()).usage.disk_bytes < 1 << 20, 'what is deleted is seen, too', 30000);
	await soft.stop();
});

// ---- accounts

test('what orphans of a command used is in its account', async (t) => {
	const box = await limited(t, { memory_mb: 512 });
	await put(box, 'burn.py', 'import os, time\nopen("pid", "w").write(str(os.getpid()))\nx = bytearray(60 << 20)\nwhile time.process_time() < 0.4: pass\n');
	const run = await sh(url, box, '(setsid -w true; python3 burn.py &); while ! [ -s pid ]; do sleep 0.02; done; while kill -0 $(cat pid) 2>/dev/null; do sleep 0.02; done');
	assert.equal(run.code, 0, run.err);
	assert.ok(run.exit.cpu_ms >= 400, JSON.stringify(run.exit));
	assert.ok(run.exit.max_memory >= 60 << 20, JSON.stringify(run.exit));
	const next = await sh(url, box, 'true');
	assert.ok(next.exit.cpu_ms < 400 && next.exit.max_memory < 60 << 20, 'and in no other one');
});

test('of two that die at once only the one that the kernel took is out of memory', async (t) => {
	const box = await limited(t, { memory_mb: 64 });
	for (let i = 0; i < 5; i++) {
		const small = startExec(url, box, ['sleep', '777']);
		await small.begun;
		await put(box, 'hog.py', 'import os\nos.fork() or os.execlp("sh", "sh", "-c", "while kill -0 %d 2>/dev/null; do :; done; pkill -KILL -x sleep" % os.getppid())\nx = []\nwhile True: x.append(bytearray(1 << 20))\n');
		const hog = await exec(url, box, { argv: ['python3', 'hog.py'], timeout_ms: 60000 });
		await small.done;
		assert.equal(hog.exit.reason, 'oom', JSON.stringify(hog.exit));
		assert.deepEqual([small.exit.reason, small.exit.signal], ['signal', 'SIGKILL'], JSON.stringify(small.exit));
	}
});

// ---- ends of sandboxes

/** Freezes a process from outside; returns what thaws it. */
function freeze(pid) {
	const v1 = '/sys/fs/cgroup/freezer';
	const dir = existsSync(v1) ? join(v1, `tombolo-test-${process.pid}`) : join('/sys/fs/cgroup', readFileSync(`/proc/${pid}/cgroup`, 'utf8').trim().replace('0::', ''));
	if (!existsSync(v1)) {
		writeFileSync(join(dir, 'cgroup.freeze'), '1');
		return () => existsSync(dir) && writeFileSync(join(dir, 'cgroup.freeze'), '0');
	}
	mkdirSync(dir);
	writeFileSync(join(dir, 'cgroup.procs'), String(pid));
	writeFileSync(join(dir, 'freezer.state'), 'FROZEN');
	return async () => {
		writeFileSync(join(dir, 'freezer.state'), 'THAWED');
		await eventually(() => readFileSync(join(dir, 'cgroup.procs'), 'utf8') === '', 'the thawed die');
		rmdirSync(dir);
	};
}

test('C126 a process that cannot die holds up no delete, and the rest follows when it can', async () => {
	const own = await Server.start();
	const id = newId();
	const run = startExec(own.url, id, ['sleep', '4711']);
	await run.begun;
	const is = (pid) => {
		try {
			return readFileSync(`/proc/${pid}/cmdline`, 'utf8') === 'sleep\0' + '4711\0';
		} catch {
			return false; // it ended while we looked
		}
	};
	let pid;
	await eventually(() => (pid = tree(own.pid).find(is)), 'it runs');
	const thaw = freeze(pid);
	try {
		const begin = performance.now();
		assert.equal((await call(`${own.url}/v1/sandbox/${id}`, 'DELETE')).status, 204);
		assert.ok(performance.now() - begin < 10_000, 'the delete hangs');
		assert.equal((await call(`${own.url}/v1/sandbox/${id}`, 'DELETE')).status, 204, 'and again');
		await run.done;
		assert.equal(run.error.code, 'exec_transport_error');
		assert.equal((await sh(own.url, newId(), 'echo fine')).out, 'fine\n');
	} finally {
		await thaw();
	}
	assert.equal((await sh(own.url, id, 'ls /workspace')).out, '', 'the id is free, and its tree is new');
	await call(`${own.url}/v1/sandbox/${id}`, 'DELETE');
	await eventually(() => !is(pid), 'nothing runs on');
	await own.stop();
});

test('C125 directories that everybody writes to are sticky', async (t) => {
	const box = await limited(t, {});
	assert.equal((await sh(url, box, 'stat -c %a /tmp /var/tmp /dev/shm')).out, '1777\n1777\n1777\n');
});
