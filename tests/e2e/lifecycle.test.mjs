// Sandboxes come, go and leave nothing: create, delete, running, many at once, restarts. API.md 3.2 to 3.4, 1.6.
import assert from 'node:assert/strict';
import { readdirSync, rmSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { assertError, call, eventually, exec, newId, sh, startExec } from './lib/client.mjs';
import { fdCount, freePort, programs, Server, tree } from './lib/server.mjs';

let server, url;

before(async () => {
	server = await Server.start();
	url = server.url;
});

after(() => server?.stop());

const running = async (id, prefix = '') => (await call(`${url}${prefix}/v1/sandbox/${id}/running`)).json.running;
const remove = (id) => call(`${url}/v1/sandbox/${id}`, 'DELETE');

test('an id is 24 characters of base32, whatever body comes with the request', async () => {
	const ids = new Set();
	for (const body of [undefined, '', '{}', 'no json', '{"timeoutMs":5}', 'x'.repeat(100_000)]) {
		const answer = await call(`${url}/v1/sandbox`, 'POST', { body });
		assert.equal(answer.status, 200);
		assert.equal(answer.type, 'application/json');
		assert.match(answer.json.id, /^[a-z2-7]{24}$/);
		ids.add(answer.json.id);
	}
	assert.equal(ids.size, 6);
});

test('running: an issued id is, an unknown one is not, a deleted one is not', async () => {
	const { id } = (await call(`${url}/v1/sandbox`, 'POST')).json;
	assert.equal(await running(id), true);
	assert.equal(await running(id, '/next'), false);
	assert.equal(await running(newId()), false);
	await sh(url, id, 'true');
	assert.equal(await running(id), true);
	assert.equal(await running(id, '/next'), true);
	assert.equal((await remove(id)).status, 204);
	assert.equal(await running(id), false);
});

test('looking starts nothing', async () => {
	const id = newId();
	await running(id);
	await call(`${url}/v1/sandbox/${id}/processes`);
	assert.equal(await running(id, '/next'), false);
	assert.deepEqual((await call(`${url}/v1/sandbox/${id}/processes`)).json, []);
});

test('delete is 204 with nothing in it, also for what is not there', async () => {
	const id = newId();
	for (let i = 0; i < 2; i++) {
		const answer = await remove(id);
		assert.equal(answer.status, 204);
		assert.equal(answer.text, '');
		assert.equal(answer.type, null);
	}
});

test('a deleted id may be used again and is empty', async () => {
	const id = newId();
	await sh(url, id, 'echo mine > /workspace/mine; echo t > /tmp/t; sleep 614 >/dev/null 2>&1 &');
	await remove(id);
	const again = await sh(url, id, 'ls -A /workspace /tmp; ls -d /proc/[0-9]* | wc -l');
	assert.ok(!again.out.includes('mine') && !/\bt\n/.test(again.out), again.out);
	await remove(id);
});

test('ids of 1 and of 128 characters work', async () => {
	for (const id of [newId(1), newId(128)]) {
		assert.equal((await sh(url, id, 'echo hi')).out, 'hi\n');
		assert.equal((await remove(id)).status, 204);
	}
});

test('concurrent first requests make one sandbox', async () => {
	const id = newId();
	const runs = await Promise.all([
		...Array.from({ length: 20 }, () => sh(url, id, 'readlink /proc/self/ns/mnt')),
		...Array.from({ length: 5 }, (_, i) => call(`${url}/v1/sandbox/${id}/file/workspace/f${i}`, 'PUT', { body: 'x' })),
	]);
	assert.equal(new Set(runs.slice(0, 20).map((run) => run.out)).size, 1);
	assert.equal((await sh(url, id, 'ls f* | wc -l')).out, '5\n');
	await remove(id);
});

test('delete waits for a sandbox that is being made, and the other way round', async () => {
	const id = newId();
	await Promise.all(Array.from({ length: 20 }, async (_, i) => {
		if (i % 2) assert.equal((await remove(id)).status, 204);
		else {
			const run = await sh(url, id, 'echo hi');
			if (run.exit) assert.equal(run.out, 'hi\n');
			else if (run.error) assert.equal(run.error.code, 'exec_transport_error');
			else assertError(run, 502, 'pool_error', 'pool error: ');
		}
	}));
	await remove(id);
	assert.equal(await running(id, '/next'), false);
});

test('an answer to delete means that it is gone', async () => {
	const id = newId();
	const before = new Set(tree(server.pid));
	await sh(url, id, 'setsid sleep 615 >/dev/null 2>&1 & sleep 615 >/dev/null 2>&1 &');
	await remove(id);
	await eventually(() => readdirSync(join(server.state, 'sandboxes')).indexOf(id) < 0, 'its directory is gone');
	const { readFileSync } = await import('node:fs');
	const left = tree(server.pid).filter((pid) => !before.has(pid)).filter((pid) => {
		try {
			return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('\0' + '615');
		} catch {
			return false;
		}
	});
	assert.deepEqual(left, []);
});

test('an instance type of one\'s choice sets the limits', async () => {
	const { id } = (await call(`${url}/v1/sandbox`, 'POST', { body: '{"instance":"lite"}' })).json;
	await sh(url, id, 'true');
	const seen = (await call(`${url}/v1/sandbox/${id}`)).json;
	assert.equal(seen.instance, 'lite');
	const hog = await exec(url, id, ['python3', '-c', 'x = bytearray(600 << 20); print(len(x))']);
	assert.notEqual(hog.code, 0);
	assert.equal(hog.exit.reason, 'oom');
	assert.equal((await sh(url, id, 'echo still here')).out, 'still here\n');
	await remove(id);
});

test('the list shows what lives', async () => {
	const id = newId();
	const listed = async () => (await call(`${url}/v1/sandbox`)).json.sandboxes.map((sandbox) => sandbox.id);
	assert.ok(!(await listed()).includes(id));
	await sh(url, id, 'true');
	assert.ok((await listed()).includes(id));
	await remove(id);
	assert.ok(!(await listed()).includes(id));
});

test('200 sandboxes created, used and deleted in parallel: all right, nothing left', async () => {
	const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
	const { 'tombolo-keeper': keeper, 'tombolo-front': front } = programs(server.pid);
	await eventually(() => readdirSync(join(server.state, 'trash')).length === 0, 'the trash is empty');
	const there = readdirSync(join(server.state, 'sandboxes')).length;
	const baseline = { keeper: fdCount(keeper), front: fdCount(front), processes: tree(server.pid).length };
	await Promise.all(Array.from({ length: 200 }, async (_, i) => {
		const id = newId();
		const run = await exec(url, id, ['sh', '-c', `echo ${i} > me; cat me; exit ${i}`], { agent });
		assert.equal(run.stdout.toString(), `${i}\n`, JSON.stringify(run.error ?? run.json ?? {}));
		assert.equal(run.code, i);
		assert.equal((await remove(id)).status, 204);
	}));
	agent.destroy();
	await eventually(() => readdirSync(join(server.state, 'sandboxes')).length === there, 'directories are gone');
	await eventually(() => tree(server.pid).length <= baseline.processes, 'processes are back at the baseline', 15000);
	await eventually(() => fdCount(keeper) <= baseline.keeper + 8, 'descriptors of the keeper are back at the baseline', 15000);
	await eventually(() => fdCount(front) <= baseline.front + 8, 'descriptors of the front are back at the baseline', 15000);
});

test('64 parallel execs x 200 rounds in one sandbox: all right', async () => {
	const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
	const id = newId();
	await sh(url, id, 'true');
	await Promise.all(Array.from({ length: 64 }, async (_, lane) => {
		for (let round = 0; round < 200; round++) {
			const run = await exec(url, id, ['eval', `echo ${lane}.${round}; echo e${round} >&2; exit ${(lane + round) % 100}`], { agent });
			assert.equal(run.stdout?.toString(), `${lane}.${round}\n`, JSON.stringify(run.error ?? run.json ?? {}));
			assert.equal(run.stderr.toString(), `e${round}\n`);
			assert.equal(run.code, (lane + round) % 100);
		}
	}));
	agent.destroy();
	assert.equal((await sh(url, id, 'cat /proc/[0-9]*/stat 2>/dev/null | grep -c ") Z "')).out, '0\n', 'zombies');
	await remove(id);
});

test('when every slot is used the answer is 503, and clears', async () => {
	const small = await Server.start({ flags: ['--max-sandboxes', '2', '--parked', '0'] });
	try {
		const ids = [newId(), newId(), newId()];
		await sh(small.url, ids[0], 'true');
		await sh(small.url, ids[1], 'true');
		assertError(await call(`${small.url}/v1/sandbox/${ids[2]}/exec`, 'POST', { body: '{"argv":["true"]}' }), 503, 'capacity_exceeded', 'instance limit reached');
		assert.equal((await sh(small.url, ids[0], 'echo fine')).out, 'fine\n');
		await call(`${small.url}/v1/sandbox/${ids[0]}`, 'DELETE');
		assert.equal((await sh(small.url, ids[2], 'echo fine')).out, 'fine\n');
	} finally {
		await small.stop();
	}
});

test('several servers with their own state directories run side by side', async () => {
	const other = await Server.start();
	const id = newId();
	try {
		await sh(url, id, 'echo here > f');
		assert.equal((await sh(other.url, id, 'cat f 2>/dev/null || echo none')).out, 'none\n');
	} finally {
		await other.stop();
	}
	assert.equal((await sh(url, id, 'cat f')).out, 'here\n');
	await remove(id);
});

test('a second server on the same state directory, or on a used port, is refused with a sentence', async () => {
	await assert.rejects(Server.start({ state: server.state }), /another server .* uses/);
	await assert.rejects(Server.start({ listen: server.address }), /in use/);
	assert.equal((await call(`${url}/health`)).status, 200);
});

test('a front that dies is started again, and what runs goes on', async () => {
	const id = newId();
	await sh(url, id, 'echo kept > f; sleep 616 >/dev/null 2>&1 &');
	const { 'tombolo-front': front } = programs(server.pid);
	process.kill(front, 'SIGKILL');
	await eventually(async () => (await call(`${url}/health`).catch(() => ({}))).status === 200, 'a front serves again');
	assert.equal((await sh(url, id, 'cat f; grep -lz ^616 /proc/[0-9]*/cmdline 2>/dev/null | wc -l')).out, 'kept\n1\n');
	await remove(id);
});

test('a keeper that dies is started again and takes over what lives', async () => {
	const id = newId();
	await sh(url, id, 'echo kept > f; sleep 617 >/dev/null 2>&1 &');
	const { 'tombolo-keeper': keeper } = programs(server.pid);
	process.kill(keeper, 'SIGKILL');
	await eventually(async () => {
		const { 'tombolo-keeper': next } = programs(server.pid);
		return next && next !== keeper && (await call(`${url}/health`).catch(() => ({}))).status === 200;
	}, 'a keeper serves again', 10000);
	assert.equal((await sh(url, id, 'cat f; grep -lz ^617 /proc/[0-9]*/cmdline 2>/dev/null | wc -l')).out, 'kept\n1\n');
	await remove(id);
	assert.equal((await sh(url, newId(), 'echo new')).out, 'new\n');
});

test('SIGTERM ends running execs with an error event and leaves nothing', async () => {
	const mine = await Server.start();
	const run = startExec(mine.url, newId(), ['sh', '-c', 'echo on; sleep 618']);
	await run.begun;
	await run.saw('on\n');
	await mine.stop();
	await run.done.catch(() => {});
	assert.equal(run.exit, null);
	assert.equal(run.error?.code, 'exec_transport_error');
});

test('a start sweeps what an earlier server left when everything was killed', async () => {
	const port = await freePort();
	const first = await Server.start({ listen: `127.0.0.1:${port}` });
	for (let i = 0; i < 3; i++) await sh(first.url, newId(), 'echo x > f; sleep 619 >/dev/null 2>&1 &');
	await first.kill();
	const second = await Server.start({ state: first.state, listen: `127.0.0.1:${port}` });
	assert.equal((await sh(second.url, newId(), 'echo works')).out, 'works\n');
	await second.stop();
});

test('missing privileges, a bad option and an open address without a key are refused at once', async () => {
	for (const [flags, sentence] of [
		[['--listen', '0.0.0.0:0'], /key/],
		[['--listen', 'nonsense'], /nonsense/],
		[['--no-such-option'], /no-such-option/],
		[['--max-sandboxes', '0'], /max-sandboxes/],
	]) await assert.rejects(Server.start({ flags }), sentence, flags.join(' '));
	const blocked = join('/proc', 'nowhere');
	await assert.rejects(Server.start({ state: blocked }), /nowhere/);
	rmSync(blocked, { recursive: true, force: true });
});
