// sleep.test.mjs - idle sleep: what nobody uses ends its processes and keeps its files. Field cases C033, C054 to C058, C074.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { assertError, call, eventually, exec, newId, sh, startExec } from './lib/client.mjs';
import { Server, cannotServe, tree } from './lib/server.mjs';

const skip = cannotServe();
let server, url;

before(async () => {
	if (skip) return;
	server = await Server.start({ flags: ['--sleep-after', '700ms'] });
	url = server.url;
});
after(() => server?.stop());

const look = async (id, base = url) => (await call(`${base}/v1/sandbox/${id}`)).json;
const state = async (id, base = url) => (await look(id, base)).state;
const asleep = (id, base = url) => eventually(async () => (await state(id, base)) === 'asleep', `${id} falls asleep`, 10_000);
const remove = (id, base = url) => call(`${base}/v1/sandbox/${id}`, 'DELETE');
const running = async (id, base = url) => (await call(`${base}/v1/sandbox/${id}/running`)).json.running;

/** Pids whose command line has WORD. */
function pidsOf(pid, word) {
	return tree(pid).filter((p) => {
		try {
			return readFileSync(`/proc/${p}/cmdline`, 'latin1').includes(word);
		} catch {
			return false;
		}
	});
}

test('C074: an idle sandbox sleeps, and wakes with its files', { skip }, async () => {
	const id = newId();
	await sh(url, id, 'umask 027; mkdir -p a/b; echo kept > a/b/f; ln -s a/b/f link; touch -d @1700000000 a/b/f; sleep 71001 >/dev/null 2>&1 &');
	const before = (await look(id)).createdAt;
	const seen = 'cat link; stat -c "%a %U %Y" a/b/f; ls -A | wc -l';
	const facts = (await sh(url, id, seen)).out;
	await asleep(id);
	assert.equal(await running(id), true, 'what sleeps is there');
	assert.deepEqual(pidsOf(server.pid, '71001'), [], 'its processes ended');
	assert.equal((await sh(url, id, seen)).out, facts);
	assert.equal(await state(id), 'running');
	assert.equal((await look(id)).createdAt, before);
	assert.equal((await sh(url, id, 'pgrep -c sleep || true')).out.trim(), '0');
	await remove(id);
	assert.equal(await running(id), false);
});

test('a sleeper holds no agent, no cgroup and no ids, and is in the list', { skip }, async () => {
	const ids = [newId(), newId(), newId()];
	for (const id of ids) await sh(url, id, 'echo x > f');
	for (const id of ids) await asleep(id);
	const listed = (await call(`${url}/v1/sandbox`)).json.sandboxes;
	for (const id of ids) assert.equal(listed.find((sandbox) => sandbox.id === id)?.state, 'asleep');
	assert.deepEqual(readdirSync(join(server.state, 'run')), [], 'sockets of agents');
	await Promise.all(ids.map((id) => remove(id)));
	await eventually(() => readdirSync(join(server.state, 'sandboxes')).length === 0, 'trees are gone');
});

test('C054: a stream is use, and so is each request; looking is not', { skip }, async () => {
	const id = newId();
	const run = startExec(url, id, ['sh', '-c', 'sleep 2; echo woke']);
	await run.begun;
	await run.done;
	assert.equal(Buffer.concat(run.stdout).toString(), 'woke\n');
	assert.equal(run.exit?.exit_code, 0, 'a silent stream was taken for idleness');
	const ended = performance.now();
	assert.equal(await state(id), 'running');
	await asleep(id); // it is looked at all the time meanwhile
	assert.ok(performance.now() - ended >= 600, 'it slept too early');
	await remove(id);
});

test('requests during the fall wait, and find the files', { skip }, async () => {
	const id = newId();
	await sh(url, id, 'echo 0 > n');
	// Requests that come at all phases of falling asleep and waking up.
	for (let round = 1; round <= 12; round++) {
		const seen = await eventually(async () => {
			const now = await state(id);
			return round % 3 === 0 ? now === 'asleep' && now : now !== 'running' && now;
		}, 'it stops running', 10_000);
		const runs = await Promise.all([
			sh(url, id, 'cat n'),
			sh(url, id, 'cat n'),
			call(`${url}/v1/sandbox/${id}/file/workspace/n`),
		]);
		assert.deepEqual([runs[0].out, runs[1].out, runs[2].text], Array(3).fill(`${round - 1}\n`), `${round}, from ${seen}`);
		await sh(url, id, `echo ${round} > n`);
	}
	await remove(id);
});

test('HEAD of a file of a sleeper wakes it; DELETE does not', { skip }, async () => {
	const id = newId();
	await sh(url, id, 'echo x > f');
	await asleep(id);
	assert.equal((await call(`${url}/v1/sandbox/${id}/file/workspace/f`, 'HEAD')).status, 200);
	await asleep(id);
	assert.equal((await remove(id)).status, 204);
	assert.equal((await call(`${url}/v1/sandbox/${id}/file/workspace/f`, 'HEAD')).status, 404);
	assert.equal((await sh(url, id, 'ls -A')).out, '');
	await remove(id);
});

test('deleted while it falls asleep and while it wakes, it is gone', { skip }, async () => {
	for (let i = 0; i < 6; i++) {
		const id = newId();
		await sh(url, id, 'echo x > f');
		await eventually(async () => (await state(id)) !== 'running', 'it stops running', 10_000);
		const waking = i % 2 ? sh(url, id, 'cat f; true') : null;
		assert.equal((await remove(id)).status, 204);
		await waking;
		await remove(id);
		assert.equal(await running(id), false);
	}
	await eventually(() => readdirSync(join(server.state, 'sandboxes')).length === 0, 'trees are gone');
});

test('C055, C074: sleepers survive the death of front, keeper and server, and a stop', { skip }, async () => {
	const mine = await Server.start({ flags: ['--sleep-after', '500ms'] });
	const id = newId(), awake = newId();
	await sh(mine.url, id, 'echo kept > f');
	await asleep(id, mine.url);
	for (const name of ['tombolo-front', 'tombolo-keeper']) {
		await mine.killProgram(name);
		assert.equal(await state(id, mine.url), 'asleep');
	}
	assert.equal((await sh(mine.url, id, 'cat f; echo more >> f')).out, 'kept\n');
	await asleep(id, mine.url);
	// As a host that crashes: everything is killed, agents, too; this one was awake.
	await sh(mine.url, awake, 'echo awake > f; sync');
	await mine.kill();
	const next = await Server.start({ state: mine.state, flags: ['--sleep-after', '10m'] });
	assert.equal((await sh(next.url, id, 'cat f')).out, 'kept\nmore\n');
	await eventually(async () => (await call(`${next.url}/v1/sandbox/${awake}/running`)).json.running, 'the other one is there');
	assert.equal((await sh(next.url, awake, 'cat f')).out, 'awake\n');
	// An ordinary stop: all of them sleep.
	next.child.kill('SIGTERM');
	await next.ended;
	const last = await Server.start({ state: mine.state, flags: ['--sleep-after', '10m'] });
	assert.deepEqual((await call(`${last.url}/v1/sandbox`)).json.sandboxes.map((sandbox) => sandbox.state), ['asleep', 'asleep']);
	assert.equal((await sh(last.url, id, 'cat f')).out, 'kept\nmore\n');
	await remove(id, last.url);
	await remove(awake, last.url);
	await last.stop();
});

test('a session ends with the sleep: its name denotes a new one', { skip }, async () => {
	const id = newId();
	const inSession = (line) => sh(url, id, line, {}, { headers: { 'Session-Id': 's' } });
	await call(`${url}/v1/sandbox/${id}/session`, 'POST', { body: '{"id":"s","cwd":"/tmp","env":{"A":"seeded"}}' });
	await inSession('x=1; mkdir -p /workspace/d; cd /workspace/d');
	assert.equal((await inSession('echo "$A $x $PWD"')).out, 'seeded 1 /workspace/d\n');
	await asleep(id);
	assert.equal((await inSession('echo "${A-none} ${x-none} $PWD"')).out, 'none none /workspace\n');
	await remove(id);
});

test('C056 ten times to sleep and back, once with a crash: all lines, the same bytes, the same time', { skip }, async () => {
	const flags = ['--sleep-after', '300ms'];
	let mine = await Server.start({ flags });
	const id = newId();
	const bytes = (process.env.TOMBOLO_FULL === '1' ? 100 : 8) << 20;
	const seen = 'sha256sum <big; stat -c "%Y %a" big';
	await sh(mine.url, id, `head -c ${bytes} /dev/urandom >big; chmod 640 big; touch -d @1600000000 big; : >lines; sync`);
	const facts = (await sh(mine.url, id, seen)).out;
	assert.match(facts, /^[0-9a-f]{64}  -\n1600000000 640\n$/);
	for (let round = 1; round <= 10; round++) {
		await sh(mine.url, id, `echo ${round} >>lines`);
		await asleep(id, mine.url);
		if (round === 5) {
			await mine.kill();
			mine = await Server.start({ state: mine.state, flags });
		}
		const lines = Array.from({ length: round }, (_, i) => `${i + 1}\n`).join('');
		assert.equal((await sh(mine.url, id, 'cat lines')).out, lines, `round ${round}`);
	}
	assert.equal((await sh(mine.url, id, seen)).out, facts);
	await remove(id, mine.url);
	await mine.stop();
});

// The contract knows no fork: what it has is an archive that another sandbox takes.
test('C057 C058 a copy is made of one that runs, of one that sleeps, of an archive and of a copy; writes stay apart', { skip }, async () => {
	const [source, ofRunning, ofSleeping, ofArchive, ofCopy] = Array.from({ length: 5 }, () => newId());
	const persist = async (id) => {
		const answer = await fetch(`${url}/v1/sandbox/${id}/persist`, { method: 'POST' });
		assert.equal(answer.status, 200);
		return Buffer.from(await answer.arrayBuffer());
	};
	const hydrate = async (id, body) => assert.equal((await call(`${url}/v1/sandbox/${id}/hydrate`, 'POST', { body })).status, 200);
	await sh(url, source, 'mkdir d; echo one >d/f; ln -s d/f link');
	const archive = await persist(source);
	await hydrate(ofRunning, archive);
	await asleep(source);
	await hydrate(ofSleeping, await persist(source));
	await hydrate(ofArchive, archive);
	await hydrate(ofCopy, await persist(ofRunning));
	const all = [source, ofRunning, ofSleeping, ofArchive, ofCopy];
	for (const id of all) assert.equal((await sh(url, id, `cat link; echo ${id} >>link; ls -A`)).out, 'one\nd\nlink\n');
	for (const id of all) assert.equal((await sh(url, id, 'cat d/f')).out, `one\n${id}\n`);
	await Promise.all(all.map((id) => remove(id)));
});

test('sleepers do not count among max-sandboxes', { skip }, async () => {
	const mine = await Server.start({ flags: ['--sleep-after', '300ms', '--max-sandboxes', '1'] });
	const ids = [newId(), newId()];
	try {
		for (const id of ids) {
			await sh(mine.url, id, 'echo x > f');
			await asleep(id, mine.url);
		}
		const busy = startExec(mine.url, ids[0], ['sleep', '60']);
		await busy.begun;
		assertError(await exec(mine.url, ids[1], ['true']), 503, 'capacity_exceeded', 'instance limit reached');
		assert.equal(await state(ids[1], mine.url), 'asleep', 'a refusal leaves it asleep');
		await remove(ids[0], mine.url);
		await busy.done.catch(() => {});
		assert.equal((await sh(mine.url, ids[1], 'cat f')).out, 'x\n');
	} finally {
		for (const id of ids) await remove(id, mine.url);
		await mine.stop();
	}
});
