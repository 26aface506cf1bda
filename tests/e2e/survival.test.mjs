// survival.test.mjs - the server may die: what runs goes on, and clients that come back by cursor miss nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call, eventually, newId, sh, startExec } from './lib/client.mjs';
import { Server, cannotServe, freePort, programs } from './lib/server.mjs';
import { Ticker, Typist, cutAtRandom } from './lib/tickers.mjs';

const skip = cannotServe();
const full = process.env.TOMBOLO_FULL === '1';
const remove = (url, id) => call(`${url}/v1/sandbox/${id}`, 'DELETE');

/** Kills NAME of SERVER; resolves when the next ones are there and answer, with how long that took. */
async function kill(server, name) {
	const begin = performance.now();
	await server.killProgram(name);
	return performance.now() - begin;
}

/** How long the longest request took while others kill: a connection waits in the backlog, and none is refused. */
function watchHealth(url) {
	const watch = { longest: 0, failed: 0, asked: 0, on: true };
	watch.ended = (async () => {
		while (watch.on) {
			const begin = performance.now();
			watch.asked++;
			// A kept-alive connection may die with its front; a fresh one may not.
			await call(`${url}/health`, 'GET', { headers: { Connection: 'close' } }).catch(() => watch.failed++);
			watch.longest = Math.max(watch.longest, performance.now() - begin);
			await new Promise((next) => setTimeout(next, 5));
		}
	})();
	watch.stop = () => ((watch.on = false), watch.ended);
	return watch;
}

test('100 tickers and 20 terminals, clients cut, front and keeper killed: every stream is what was written', { skip }, async (t) => {
	const [kills, cuts] = full ? [20, 1000] : [8, 200];
	const server = await Server.start();
	const ids = Array.from({ length: 10 }, () => newId());
	const streams = [];
	try {
		for (const id of ids) {
			for (let i = 0; i < 10; i++) streams.push(await Ticker.start(server.url, id, `ticker${i}`));
			for (let i = 0; i < 2; i++) streams.push(await Typist.start(server.url, id, `typist${i}`));
		}
		const followed = streams.map((stream) => stream.follow());
		const health = watchHealth(server.url);
		const cutting = cutAtRandom(streams, cuts);
		const gaps = [];
		for (let i = 0; i < kills; i++) {
			gaps.push(await kill(server, i % 2 ? 'tombolo-keeper' : 'tombolo-front'));
			// At no particular moment; two seconds of calm make a death an accident.
			await new Promise((next) => setTimeout(next, 500 + Math.random() * 2000));
		}
		await cutting;
		await Promise.all(ids.map((id) => call(`${server.url}/v1/sandbox/${id}/file/workspace/stop`, 'PUT', { body: 'x' })));
		await Promise.all(followed);
		await health.stop();

		for (const stream of streams) {
			const wrote = Buffer.from(await (await fetch(stream.fileUrl)).arrayBuffer());
			const read = stream.bytes();
			assert.ok(wrote.length > 500, `${stream.name} wrote only ${wrote.length} bytes`);
			assert.ok(read.equals(wrote), `${stream.name}: ${read.length} bytes read, ${wrote.length} written, equal up to ${firstDifference(read, wrote)}`);
			assert.equal(stream.truncated, 0, `${stream.name} was truncated`);
			assert.deepEqual(stream.exit, { code: 7, timedOut: false }, stream.name);
			assert.equal(stream.ends, 1, `${stream.name} ended ${stream.ends} times`);
		}
		t.diagnostic(`measured: ${streams.length} streams came back ${streams.reduce((sum, { returns }) => sum + returns, 0)} times; longest gap of a stream `
			+ `${Math.round(Math.max(...streams.map(({ longest }) => longest)))} ms, of ${health.asked} health requests ${Math.round(health.longest)} ms; `
			+ `kills were over after ${gaps.map(Math.round).join(' ')} ms`);
		// What a front had accepted dies with it; nothing else is refused or cut.
		assert.ok(health.failed <= kills, `${health.failed} health requests failed`);
		assert.ok(Math.max(...gaps) < 5000, 'a restart hangs');
	} finally {
		for (const stream of streams) stream.abandon();
		await Promise.all(ids.map((id) => remove(server.url, id)));
		await server.stop();
	}
});

function firstDifference(a, b) {
	let i = 0;
	while (i < a.length && i < b.length && a[i] === b[i]) i++;
	return i;
}

test('an exec whose stream is cut by the crash is found again by its X-Process-Id', { skip }, async () => {
	const server = await Server.start();
	const id = newId();
	for (const name of ['tombolo-front', 'tombolo-keeper']) {
		const run = startExec(server.url, id, ['sh', '-c', 'echo begun; while [ ! -e go ]; do sleep 0.05; done; echo done; exit 9']);
		await run.begun;
		await run.saw('begun\n');
		const pid = run.response.headers['x-process-id'];
		assert.ok(pid, 'the process is named');
		await kill(server, name);
		const found = (await call(`${server.url}/v1/sandbox/${id}/processes/${pid}`)).json;
		assert.equal(found.state, 'running');
		const log = fetch(`${server.url}/v1/sandbox/${id}/processes/${pid}/logs?follow=true`).then((answer) => answer.text());
		await sh(server.url, id, 'touch go');
		const events = (await log).split('\n\n').filter((frame) => frame.startsWith('data: ')).map((frame) => JSON.parse(frame.slice(6)));
		const out = Buffer.concat(events.filter(({ type }) => type === 'stdout').map(({ data }) => Buffer.from(data, 'base64')));
		assert.equal(out.toString(), 'begun\ndone\n');
		assert.deepEqual(events.at(-1).exit, { code: 9, timedOut: false });
		await run.done.catch(() => {});
		assert.notEqual(run.exit?.exit_code, 0, 'a stream that was cut must not look like success');
		if (name === 'tombolo-keeper') assert.equal(run.exit?.exit_code ?? 9, 9, 'a front without its keeper ends the streams it has');
		await sh(server.url, id, 'rm go');
	}
	await remove(server.url, id);
	await server.stop();
});

test('issued ids survive a front, a keeper and a server', { skip }, async () => {
	let server = await Server.start();
	const issue = async (body) => (await call(`${server.url}/v1/sandbox`, 'POST', body ? { body } : {})).json.id;
	const running = async (id) => (await call(`${server.url}/v1/sandbox/${id}/running`)).json.running;
	const ids = [await issue(), await issue(), await issue('{"instance":"lite"}')];
	const deleted = await issue();
	await remove(server.url, deleted);
	for (const name of ['tombolo-front', 'tombolo-keeper']) {
		await kill(server, name);
		for (const id of ids) assert.equal(await running(id), true, `after the death of ${name}`);
		assert.equal(await running(deleted), false);
		assert.equal(await running(newId()), false);
	}
	await server.stop({ keep: true });
	server = await Server.start({ state: server.state });
	for (const id of ids) assert.equal(await running(id), true, 'after a stop');
	await sh(server.url, ids[2], 'true');
	assert.equal((await call(`${server.url}/v1/sandbox/${ids[2]}`)).json.instance, 'lite', 'with its wishes');
	assert.equal(await running(deleted), false);
	for (const id of ids) await remove(server.url, id);
	await server.stop();
});

/** What a service manager does that kills the whole server, and what a crash of all of it is: only agents are left. */
async function killAllButAgents(server) {
	const { tombolo, 'tombolo-keeper': keeper, 'tombolo-front': front } = programs(server.pid);
	for (const pid of [tombolo ?? server.pid, keeper, front]) process.kill(pid, 'SIGKILL');
	await server.ended;
}

for (const [what, end, flags] of [
	['kill -9 of all but the agents', killAllButAgents, []],
	['an upgrade: SIGTERM with keep-sandboxes, then a start', async (server) => { server.child.kill('SIGTERM'); await server.ended; }, ['--keep-sandboxes']],
]) {
	test(`C129 ${what} keeps sandboxes, processes, terminals and logs`, { skip }, async () => {
		const port = await freePort();
		let server = await Server.start({ flags, listen: `127.0.0.1:${port}` });
		const { url } = server;
		const id = newId();
		await sh(url, id, 'echo kept > f');
		const streams = [await Ticker.start(url, id, 'ticker'), await Typist.start(url, id, 'typist')];
		const followed = streams.map((stream) => stream.follow());
		await eventually(() => streams.every((stream) => stream.bytes().length > 100), 'they tick', 20_000);
		const before = (await call(`${url}/v1/sandbox/${id}`)).json;
		await end(server);
		const { state } = server;
		server = await Server.start({ state, listen: `127.0.0.1:${port}` });
		const seen = (await call(`${url}/v1/sandbox/${id}`)).json;
		assert.deepEqual([seen.state, seen.instanceId, seen.createdAt], ['running', before.instanceId, before.createdAt]);
		assert.equal((await sh(url, id, 'cat f')).out, 'kept\n');
		await call(`${url}/v1/sandbox/${id}/file/workspace/stop`, 'PUT', { body: 'x' });
		await Promise.all(followed);
		for (const stream of streams) {
			const wrote = Buffer.from(await (await fetch(stream.fileUrl)).arrayBuffer());
			assert.ok(stream.bytes().equals(wrote), `${stream.name}: ${stream.bytes().length} of ${wrote.length} bytes`);
			assert.deepEqual(stream.exit, { code: 7, timedOut: false });
		}
		await remove(url, id);
		await server.stop();
	});
}

test('C023: an agent that hangs costs only its own sandbox, also when the server starts again', { skip }, async (t) => {
	const server = await Server.start();
	const [hung, quiet] = [newId(), newId()];
	await sh(server.url, quiet, 'true');
	await sh(server.url, hung, 'sleep 72001 >/dev/null 2>&1 &');
	const record = await recordOf(server, hung);
	process.kill(record.pid, 'SIGSTOP');
	try {
		const stuck = startExec(server.url, hung, ['true']);
		stuck.begun.catch(() => {});
		const look = async () => {
			const times = [];
			for (let i = 0; i < 40; i++) {
				const begin = performance.now();
				assert.equal((await sh(server.url, quiet, 'echo fine')).out, 'fine\n');
				assert.equal((await call(`${server.url}/v1/sandbox`)).status, 200);
				times.push((performance.now() - begin) / 2);
			}
			return times.sort((a, b) => a - b).at(-1);
		};
		t.diagnostic(`measured: slowest control call beside a stopped agent: ${Math.round(await look())} ms`);
		assert.ok((await sh(server.url, newId(), 'echo new')).out === 'new\n');
		for (const name of ['tombolo-front', 'tombolo-keeper']) {
			const gap = await kill(server, name);
			assert.ok(gap < 2500, `${name} took ${gap} ms to come back`);
			assert.equal((await sh(server.url, quiet, 'echo fine')).out, 'fine\n');
		}
		stuck.request.destroy();
		// A question about the stopped one waits for it, and is answered when it goes on.
		const list = call(`${server.url}/v1/sandbox/${hung}/processes`);
		process.kill(record.pid, 'SIGCONT');
		assert.ok((await list).json.some(({ live }) => live > 0), 'what runs there is still there');
		assert.equal((await sh(server.url, hung, 'grep -lz ^72001 /proc/[0-9]*/cmdline 2>/dev/null | wc -l')).out, '1\n');
	} finally {
		process.kill(record.pid, 'SIGCONT');
	}
	for (const { id } of (await call(`${server.url}/v1/sandbox`)).json.sandboxes) await remove(server.url, id);
	await server.stop();
});

test('a sandbox that is lost is said to be lost: to its streams and to who asks later', { skip }, async () => {
	const server = await Server.start();
	const id = newId();
	const run = startExec(server.url, id, ['sh', '-c', 'echo on; sleep 72002']);
	await run.begun;
	await run.saw('on\n');
	process.kill((await recordOf(server, id)).pid, 'SIGKILL');
	await run.done;
	assert.equal(run.exit, null);
	assert.equal(run.error.code, 'exec_transport_error');
	const told = async () => (await call(`${server.url}/v1/sandbox/${id}`));
	const answer = await eventually(async () => { const a = await told(); return a.status === 404 && a; }, 'it is gone');
	assert.match(answer.json.hint, /lost: .*agent/);
	await kill(server, 'tombolo-front');
	// The keeper tells it when all of the sandbox is cleared away.
	await eventually(async () => /lost: /.test((await told()).json.hint), 'also by the next front');
	await remove(server.url, id);
	assert.equal((await told()).json.hint, undefined, 'what was removed is not lost');
	await server.stop();
});

/** What the keeper recorded of ID. */
async function recordOf(server, id) {
	const { readFileSync, readdirSync } = await import('node:fs');
	const { join } = await import('node:path');
	const dir = join(server.state, 'sandboxes');
	for (const run of readdirSync(dir)) {
		const text = readFileSync(join(dir, run, 'record'), 'latin1');
		if (text.includes(`\nid ${id}\n`)) return { run, pid: Number(/\npid (\d+)\n/.exec(text)[1]), text };
	}
	throw new Error(`there is no record of ${id}`);
}
