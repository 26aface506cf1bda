// bombs.test.mjs - 20 ways to be a bad neighbour, all at once, for a while: the others do not notice. Field cases C022, C023.
// How fast the others are served is printed; what is asserted tells only a hang from an answer.
import assert from 'node:assert/strict';
import http from 'node:http';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { call, eventually, newId, sh, startExec } from './lib/client.mjs';
import { Server, cannotServe, fdCount, memoryOf, programs, tree } from './lib/server.mjs';

const skip = cannotServe();
const seconds = process.env.TOMBOLO_FULL === '1' ? 60 : 15;

const python = (text) => ['python3', '-c', text];
const shell = (text) => ['sh', '-c', text];
const loop = 'while :; do :; done';

/** Each a command, or a client that misbehaves: (url, id) -> its end. */
const bombs = {
	cpu: shell(`for i in 1 2 3 4 5 6 7 8; do (${loop}) & done; wait`),
	fork: shell('bomb() { bomb | bomb & }; bomb; sleep 600'),
	memory: python('import time\nkeep = []\nwhile True:\n try: keep.append(bytearray(8 << 20))\n except MemoryError: time.sleep(0.01)'),
	disk: shell('while :; do dd if=/dev/zero of=big$RANDOM bs=1M count=64 conv=notrunc 2>/dev/null || rm -f big*; done'),
	inodes: python('import os\ni = 0\nwhile True:\n try:\n  open("f%d" % i, "w").close(); i += 1\n except OSError: os.system("rm -rf f*"); i = 0'),
	output: ['yes', 'x'.repeat(200)],
	fds: python('import os, time\nkeep = []\nwhile True:\n try: keep.append(os.open("/dev/null", 0))\n except OSError:\n  for fd in keep: os.close(fd)\n  keep = []'),
	inotify: python('import ctypes, os, time\nc = ctypes.CDLL(None)\nwhile True:\n fd = c.inotify_init()\n if fd < 0: time.sleep(0.01); continue\n for i in range(2000):\n  os.makedirs("d%d" % i, exist_ok=True); c.inotify_add_watch(fd, b"d%d" % i, 0xfff)'),
	zombies: python('import os, time\nwhile True:\n try:\n  if os.fork() == 0: os._exit(0)\n except OSError: time.sleep(0.01)'),
	depth: python('import os\nwhile True:\n try:\n  os.mkdir("deep"); os.chdir("deep")\n except OSError: os.chdir("/workspace"); os.rename("deep", "old%d" % os.getpid()) if not os.path.exists("old%d" % os.getpid()) else os.system("sleep 1")'),
	smallFiles: python('import os\nd = 0\nwhile True:\n os.makedirs("s%d" % d, exist_ok=True)\n for i in range(1000):\n  try: open("s%d/%d" % (d, i), "w").write("x")\n  except OSError: os.system("rm -rf s*")\n d += 1'),
	signals: shell('trap : TERM USR1; while :; do kill -USR1 0 2>/dev/null; kill -TERM -1 2>/dev/null; done'),
	sparse: python('import os\ni = 0\nwhile True:\n try:\n  fd = os.open("sparse%d" % (i % 50), os.O_RDWR | os.O_CREAT); os.ftruncate(fd, 1 << 40); os.pwrite(fd, b"x", (i * 1048576) % (1 << 40)); os.close(fd); i += 1\n except OSError: os.system("rm -f sparse*")'),
	shm: shell('while :; do dd if=/dev/zero of=/dev/shm/x$RANDOM bs=1M count=32 2>/dev/null || rm -f /dev/shm/x*; done'),
	pipes: python('import os, time\nkeep = []\nwhile True:\n try:\n  r, w = os.pipe(); os.set_blocking(w, False); keep += [r, w]; os.write(w, bytes(65536))\n except OSError:\n  if len(keep) > 900:\n   for fd in keep: os.close(fd)\n   keep = []'),
	sockets: python('import socket, time\nkeep = []\nwhile True:\n try:\n  a, b = socket.socketpair(); a.setblocking(False); keep += [a, b]\n  for _ in range(64): a.send(bytes(4096))\n except OSError:\n  if len(keep) > 800: keep = []'),
	ptys: python('import os, time\nkeep = []\nwhile True:\n try: keep += os.openpty()\n except OSError:\n  for fd in keep: os.close(fd)\n  keep = []'),
	threads: python('import threading, time\nwhile True:\n try: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n except RuntimeError: time.sleep(0.01)'),
	manyExecs: async (base, id, over) => {
		while (!over()) await Promise.all(Array.from({ length: 32 }, () => sh(base, id, 'echo x; sleep 0.1').catch(() => {})));
	},
	slowReaders: async (base, id, over) => {
		const agent = new http.Agent({ maxSockets: 64 });
		const runs = Array.from({ length: 32 }, () => startExec(base, id, ['yes', 'x'.repeat(500)], { agent }));
		for (const run of runs) run.begun.then(() => run.response.pause(), () => {});
		await eventually(over, 'the time is over', (seconds + 60) * 1000);
		for (const run of runs) run.request.destroy();
		agent.destroy();
	},
};

async function light(base, id, bomb, over) {
	if (typeof bomb === 'function') {
		await bomb(base, id, over);
		return;
	}
	while (!over()) {
		const run = startExec(base, id, bomb);
		run.stopped = new Promise((stop) => (run.stop = stop));
		await run.begun.catch(() => {});
		// The output is read and thrown away: that costs the server more than a client who does not read.
		run.response?.on('data', () => (run.stdout.length = run.events.length = run.raw.length = 0));
		await Promise.race([run.done?.catch(() => {}), eventually(over, 'the time is over', (seconds + 60) * 1000)]);
		run.request.destroy();
	}
}

const percentile = (times, p) => [...times].sort((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * p))];

test(`20 bombs for ${seconds} s: a quiet sandbox is served, deletes are done, nothing is left`, { skip }, async (t) => {
	const server = await Server.start({ flags: ['--max-sandboxes', '40'] });
	t.after(() => server.child.exitCode === null && server.kill()); // no bomb burns on when this fails
	const { url } = server;
	const { 'tombolo-keeper': keeper, 'tombolo-front': front } = programs(server.pid);
	const quiet = newId();
	await sh(url, quiet, 'echo here > f');
	const baseline = { keeper: fdCount(keeper), front: fdCount(front), processes: tree(server.pid).length };
	assert.equal(Object.keys(bombs).length, 20);

	const lit = await Promise.all(Object.entries(bombs).map(async ([name, bomb]) => {
		const { id } = (await call(`${url}/v1/sandbox`, 'POST', { body: '{"instance":"lite"}' })).json;
		await sh(url, id, 'true');
		return { name, id, bomb };
	}));
	const deadline = performance.now() + seconds * 1000;
	const over = () => performance.now() >= deadline;
	const burning = lit.map(({ id, bomb }) => light(url, id, bomb, over));

	const worker = new Worker(new URL('./lib/quiet.mjs', import.meta.url), { workerData: { url, id: quiet } });
	const measured = new Promise((done, failed) => worker.on('message', done).on('error', failed));
	measured.catch(() => {});
	let mostFront = 0, mostKeeper = 0;
	while (!over()) {
		mostFront = Math.max(mostFront, memoryOf(front));
		mostKeeper = Math.max(mostKeeper, memoryOf(keeper));
		await new Promise((next) => setTimeout(next, 100));
	}
	worker.postMessage('enough');
	const times = await measured;
	await Promise.all(burning);

	const deletes = await Promise.all(lit.map(async ({ name, id }) => {
		const begin = performance.now();
		assert.equal((await call(`${url}/v1/sandbox/${id}`, 'DELETE')).status, 204, name);
		return { name, ms: performance.now() - begin };
	}));
	const slowest = deletes.sort((a, b) => b.ms - a.ms)[0];
	t.diagnostic(`measured: ${Object.entries(times).map(([what, all]) => `${what} p50 ${percentile(all, 0.5).toFixed(1)} p99 ${percentile(all, 0.99).toFixed(1)} max ${percentile(all, 1).toFixed(1)}`).join(', ')} ms (${times.exec.length} rounds); `
		+ `slowest of 20 deletes at once ${Math.round(slowest.ms)} ms (${slowest.name}); most memory: front ${mostFront >> 20} MiB, keeper ${mostKeeper >> 20} MiB`);
	for (const [what, all] of Object.entries(times)) assert.ok(percentile(all, 0.99) < 5000, `${what} hangs`);
	assert.ok(slowest.ms < 20_000, `the delete of ${slowest.name} hangs`);
	assert.ok(mostFront < 400 << 20 && mostKeeper < 200 << 20, 'the memory of the server grows');
	assert.deepEqual([programs(server.pid)['tombolo-keeper'], programs(server.pid)['tombolo-front']], [keeper, front], 'somebody died');
	await call(`${url}/v1/sandbox/${quiet}`, 'DELETE');
	await eventually(() => readdirSync(join(server.state, 'sandboxes')).length === 0, 'the trees are gone', 30_000);
	await eventually(() => readdirSync(join(server.state, 'trash')).length === 0, 'the trash is empty', 120_000);
	await eventually(() => tree(server.pid).length <= baseline.processes, 'processes are back at the baseline', 30_000);
	await eventually(() => fdCount(keeper) <= baseline.keeper + 8, 'descriptors of the keeper are back at the baseline', 30_000);
	await eventually(() => fdCount(front) <= baseline.front + 8, 'descriptors of the front are back at the baseline', 30_000);
	await server.stop();
});
