// Twenty-odd ways to die: each command ends with exactly one terminal event, after its last byte, with the right code and reason.
//
// exec() of lib/client.mjs asserts for every run that there is one terminal event and nothing after it. The ways are run
// many times, many at once; those that need the whole of a sandbox (memory, processes, disk) have sandboxes of their own.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { call, eventually, exec, newId, sh, startExec } from './lib/client.mjs';
import { Server, tree } from './lib/server.mjs';

const full = process.env.TOMBOLO_FULL === '1';
const RUNS = full ? 200 : 24; // of each way
const PARALLEL = 64;

let server, url, id;
const agent = new http.Agent({ keepAlive: true, maxSockets: PARALLEL });

before(async () => {
	server = await Server.start({ flags: ['--disk-quota', 'auto'] });
	url = server.url;
	id = newId();
	await sh(url, id, 'true');
});

after(() => server?.stop());

async function limited(limits) {
	const answer = await call(`${url}/v1/sandbox`, 'POST', {
		body: JSON.stringify({ limits }), headers: { 'Content-Type': 'application/json' } });
	assert.equal(answer.status, 200, answer.text);
	await sh(url, answer.json.id, 'true');
	return answer.json.id;
}

const remove = (box) => call(`${url}/v1/sandbox/${box}`, 'DELETE');

/** Runs JOBS, functions, at most COUNT at once. */
async function pool(jobs, count = PARALLEL) {
	const queue = [...jobs];
	await Promise.all(Array.from({ length: Math.min(count, queue.length) }, async () => {
		for (let job; (job = queue.pop());) await job();
	}));
}

function check(run, { code, reason, signal, out, name }) {
	const told = `${name}: ${JSON.stringify(run.exit ?? run.error ?? run.json)} ${run.stderr}`;
	assert.ok(run.exit, told);
	assert.equal(run.exit.exit_code, code, told);
	assert.equal(run.exit.reason, reason, told);
	assert.equal(run.exit.signal, signal, told);
	for (const key of ['duration_ms', 'cpu_ms', 'max_memory', 'bytes', 'left_running'])
		assert.ok(Number.isInteger(run.exit[key]) && run.exit[key] >= 0, `${key} of ${told}`);
	if (out !== undefined) assert.equal(run.stdout.toString(), out, told);
	assert.equal(run.exit.bytes, run.stdout.length + run.stderr.length - (reason === 'timeout' ? lastWords(run) : 0), told);
}

/** The sentence about the time is ours, not the command's. */
const lastWords = (run) => /Command timed out after \d+ms\n$/.exec(run.stderr.toString())?.[0].length ?? 0;

const ways = [
	{ name: 'exit 0', script: 'echo last; exit 0', code: 0, reason: 'exited', out: 'last\n' },
	{ name: 'exit 1', script: 'echo last; exit 1', code: 1, reason: 'exited', out: 'last\n' },
	{ name: 'exit 42', script: 'echo last; exit 42', code: 42, reason: 'exited', out: 'last\n' },
	{ name: 'exit 255', script: 'echo last; exit 255', code: 255, reason: 'exited', out: 'last\n' },
	{ name: 'no such program', script: '/no/such/program', code: 127, reason: 'exited', out: '' },
	{ name: 'may not be executed', script: '/etc/passwd', code: 126, reason: 'exited', out: '' },
	{ name: 'SIGTERM by itself', script: 'echo last; kill -TERM $$', code: 143, reason: 'signal', signal: 'SIGTERM', out: 'last\n' },
	{ name: 'SIGKILL by itself', script: 'echo last; kill -KILL $$', code: 137, reason: 'signal', signal: 'SIGKILL', out: 'last\n' },
	{ name: 'SIGSEGV by itself', script: 'echo last; kill -SEGV $$', code: 139, reason: 'signal', signal: 'SIGSEGV', out: 'last\n' },
	{ name: 'SIGABRT by itself', script: 'echo last; kill -ABRT $$', code: 134, reason: 'signal', signal: 'SIGABRT', out: 'last\n' },
	{ name: 'SIGPIPE by itself', script: 'echo last; kill -PIPE $$', code: 141, reason: 'signal', signal: 'SIGPIPE', out: 'last\n' },
	{ name: 'a shell passes on 137', script: 'sh -c "kill -KILL \\$\\$"; exit $?', code: 137, reason: 'exited' },
	{ name: 'a time that SIGTERM ends', script: 'echo last; exec sleep 600', more: { timeout_ms: 2000 }, code: 124, reason: 'timeout', signal: 'SIGTERM', out: 'last\n' },
	{ name: 'a time, SIGTERM ignored', script: 'trap "" TERM; echo last; while :; do sleep 0.05; done', more: { timeout_ms: 2000, kill_grace_ms: 100 }, code: 124, reason: 'timeout', out: 'last\n', anySignal: true },
	{ name: 'a time that ends a program which exits 0', script: 'trap "exit 0" TERM; echo last; while :; do sleep 0.05; done', more: { timeout_ms: 2000 }, code: 124, reason: 'timeout', out: 'last\n' },
	{ name: 'a daemon holds the pipes', script: 'setsid sleep 20 & echo last; exit 7', code: 7, reason: 'exited', out: 'last\n', leftovers: true },
	{ name: 'output closed early', script: 'echo last; exec >&- 2>&-; sleep 0.05; exit 9', code: 9, reason: 'exited', out: 'last\n' },
	{ name: 'much output at the end', script: 'head -c 200000 /dev/zero | tr "\\0" x; exit 3', code: 3, reason: 'exited', out: 'x'.repeat(200000) },
	{ name: 'a child by SIGKILL, the parent goes on', script: 'sh -c "kill -KILL \\$\\$"; echo last; exit 5', code: 5, reason: 'exited', out: 'last\n' },
];

test(`${ways.length} ways to die, ${RUNS} times each, ${PARALLEL} at once`, async () => {
	const jobs = Array.from({ length: RUNS }, () => ways).flat().map((way) => async () => {
		const run = await sh(url, id, way.script, way.more, { agent });
		check(run, { ...way, signal: way.anySignal ? run.exit?.signal : way.signal });
		assert.equal(run.exit.left_running > 0, way.leftovers ?? false, `${way.name}: ${JSON.stringify(run.exit)}`);
	});
	await pool(jobs);
});

test('a working directory that is not there: an error event that names it, and no exit', async () => {
	await pool(Array.from({ length: RUNS }, () => async () => {
		const run = await exec(url, id, { argv: ['true'], cwd: '/workspace/nowhere' }, { agent });
		if (run.status !== 200) assert.match(run.json.error, /nowhere/);
		else assert.match(run.error.error, /nowhere/);
	}));
});

test('cancelled: a client that leaves with the policy `kill`, and a kill of the process', async () => {
	await pool(Array.from({ length: RUNS }, () => async () => {
		const run = startExec(url, id, { argv: ['sh', '-c', 'echo up; exec sleep 600'] }, { agent });
		await run.begun;
		await run.saw('up');
		const process_id = run.response.headers['x-process-id'] ?? run.response.headers['x-exec-process-id'];
		assert.ok(process_id, `no process id among ${Object.keys(run.response.headers)}`);
		const answer = await call(`${url}/v1/sandbox/${id}/processes/${process_id}/kill`, 'POST', {
			body: '{"signal":9}', headers: { 'Content-Type': 'application/json' } });
		assert.ok(answer.status < 300, answer.text);
		await run.done;
		assert.equal(run.exit?.reason, 'cancelled', JSON.stringify(run.exit ?? run.error));
		assert.equal(run.exit.signal, 'SIGKILL');
	}), 16);
});

test('oom: one large process, a shell with many small ones; the agent never', async () => {
	const box = await limited({ memory_mb: 96, pids: 256 });
	const big = `python3 -c 'x = bytearray(400 << 20)'`;
	const many = 'for i in 1 2 3 4 5 6 7 8; do python3 -c "x = bytearray(60 << 20); import time; time.sleep(30)" & done; wait -n; exit $?';
	for (let i = 0; i < (full ? 40 : 4); i++) {
		const run = await exec(url, box, { argv: ['bash', '-c', `exec ${big}`] });
		check(run, { name: 'one large', code: 137, reason: 'oom', signal: 'SIGKILL' });
		assert.equal(run.exit.detail.limit, 96 << 20);
		assert.ok(run.exit.detail.oom_kills >= 1);
		assert.match(run.exit.hint, /memory limit \(96 MiB\).*memory_mb/);
	}
	const shell = await exec(url, box, { argv: ['bash', '-c', `${big}; exit $?`] });
	check(shell, { name: 'a shell passes it on', code: 137, reason: 'oom' });
	const crowd = await exec(url, box, { argv: ['bash', '-c', many], timeout_ms: 30000 });
	check(crowd, { name: 'many small', code: 137, reason: 'oom' });
	const aside = await exec(url, box, { argv: ['bash', '-c', `${big}; echo went on; exit 3`] });
	check(aside, { name: 'told, but not the reason', code: 3, reason: 'exited', out: 'went on\n' });
	assert.ok(aside.exit.detail.oom_kills >= 1);
	assert.match(aside.exit.hint, /killed/);
	const { json } = await call(`${url}/v1/sandbox/${box}`);
	assert.ok(json.usage.oom_kills >= 3, JSON.stringify(json.usage));
	await remove(box);
});

test('pids: forks that are refused', async () => {
	const box = await limited({ pids: 32 });
	for (let i = 0; i < (full ? 40 : 4); i++) {
		const run = await sh(url, box, 'for i in $(seq 100); do sleep 600 & done; wait', { timeout_ms: 30000 });
		assert.equal(run.exit.reason, 'pids', JSON.stringify(run.exit));
		assert.notEqual(run.exit.exit_code, 0);
		assert.equal(run.exit.detail.limit, 32);
		assert.match(run.exit.hint, /limit of 32 processes/);
		// what it left is found by its name, by a shell that needs no fork
		await exec(url, box, { argv: ['bash', '-c', 'kill -KILL -1'] });
		await eventually(async () => (await exec(url, box, { argv: ['sh', '-c', '/bin/true; exit 0'] })).code === 0, 'room again');
	}
	await remove(box);
});

test('disk: nothing is left of it', async (t) => {
	const box = await limited({ disk_mb: 64 });
	const { json } = await call(`${url}/v1/sandbox/${box}`);
	if (!json.limits.disk_enforced) {
		t.skip(`disk limits are off here: ${json.limits.disk_backend}`);
		return;
	}
	for (let i = 0; i < (full ? 40 : 4); i++) {
		const run = await sh(url, box, 'dd if=/dev/zero of=/workspace/x bs=64k count=5000');
		check({ ...run, stdout: run.stdout }, { name: 'disk', code: 1, reason: 'disk' });
		assert.match(run.err, /No space left/);
		assert.match(run.exit.hint, /disk .*full/);
		assert.equal((await sh(url, box, 'rm /workspace/x')).code, 0);
		check(await sh(url, box, 'exit 4'), { name: 'room again', code: 4, reason: 'exited' });
	}
	await remove(box);
});

test('the sandbox is deleted, or its agent is killed: one error event, and never an exit', async () => {
	await pool(Array.from({ length: full ? 40 : 6 }, (_, i) => async () => {
		const box = newId();
		const run = startExec(url, box, { argv: ['sh', '-c', `echo up; exec sleep 6${100 + i}`] });
		await run.begun;
		await run.saw('up');
		if (i % 2) process.kill(await eventually(() => agentOf(`sleep\0${6100 + i}\0`), 'it sleeps'), 'SIGKILL');
		else assert.equal((await remove(box)).status, 204);
		await run.done;
		assert.equal(run.exit, null);
		assert.equal(run.error.code, 'exec_transport_error');
		assert.equal(run.error.reason, i % 2 ? 'lost' : 'sandbox_deleted', JSON.stringify(run.error));
		await remove(box);
	}), 6);
});

/** The agent is the parent, on the host, of the command with this command line; null as long as there is none. */
function agentOf(cmdline) {
	for (const pid of tree(server.pid)) {
		try {
			if (readFileSync(`/proc/${pid}/cmdline`, 'utf8') === cmdline)
				return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
		} catch {
			// it ended
		}
	}
	return null;
}
