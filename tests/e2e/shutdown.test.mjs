// shutdown.test.mjs - SIGTERM, clients that go away, proxies that lose patience, and a host that is full.
// Field cases C013, C019, C030, C055.
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import net from 'node:net';
import { test } from 'node:test';
import { Wire, assertError, call, eventually, exec, newId, sh, startExec } from './lib/client.mjs';
import { Server, cannotServe, programs } from './lib/server.mjs';
import { Socket } from './lib/socket.mjs';

const skip = cannotServe();
const full = process.env.TOMBOLO_FULL === '1';
const processes = async (url, id) => (await call(`${url}/v1/sandbox/${id}/processes`)).json;
const running = async (url, id) => (await processes(url, id)).filter(({ state }) => state === 'running').length;

test('SIGTERM lets short requests end, and says to the long ones what becomes of them', { skip }, async () => {
	const server = await Server.start();
	const { url, port } = server;
	const id = newId();
	await sh(url, id, 'true');
	const short = startExec(url, id, ['sh', '-c', 'echo short; sleep 0.7; echo done']);
	const long = startExec(url, id, ['sh', '-c', 'echo long; sleep 600']);
	const pty = await Socket.open(`${url}/v1/sandbox/${id}/pty`);
	const { id: tid } = (await call(`${url}/v1/sandbox/${id}/terminals`, 'POST', { body: '{"argv":["sleep","600"]}' })).json;
	const terminal = await Socket.open(`${url}/v1/sandbox/${id}/terminals/${tid}/connect`);
	const { id: pid } = (await call(`${url}/v1/sandbox/${id}/processes`, 'POST', { body: '{"argv":["sleep","600"]}' })).json;
	// A log that is cut has no end: whoever follows it comes back by cursor.
	const log = fetch(`${url}/v1/sandbox/${id}/processes/${pid}/logs?follow=true`).then((answer) => answer.text()).then(() => 'ended', () => 'cut');
	// Half a request: its sandbox would be new.
	const late = await Wire.open(port);
	const body = '{"argv":["true"]}';
	await late.send(`POST /v1/sandbox/${newId()}/exec HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`);
	await Promise.all([short.begun, long.begun]);
	await Promise.all([short.saw('short\n'), long.saw('long\n')]);
	const idle = await Wire.open(port);
	await idle.send('GET /health HTTP/1.1\r\nHost: x\r\n\r\n');
	await idle.response();

	const stopped = server.stop();
	await idle.rest(); // closed at once: nothing is under way on it
	await late.send(body.slice(5));
	const answer = await late.response();
	assert.equal(answer.status, 502);
	assert.equal(JSON.parse(answer.body).code, 'pool_error');
	await short.done;
	assert.equal(short.exit?.exit_code, 0, 'a short command may end');
	await long.done;
	assert.equal(long.exit, null);
	assert.equal(long.error.code, 'exec_transport_error');
	assert.equal(long.events.filter(({ event }) => event === 'error' || event === 'exit').length, 1);
	assert.equal((await pty.closed).code, 1012);
	assert.equal((await terminal.closed).code, 1012);
	assert.equal(await log, 'cut');
	await stopped;
});

test('a second SIGTERM, and a third, change nothing', { skip }, async () => {
	const server = await Server.start();
	const run = startExec(server.url, newId(), ['sh', '-c', 'echo on; sleep 600']);
	await run.begun;
	await run.saw('on\n');
	for (let i = 0; i < 3; i++) server.child.kill('SIGTERM');
	await server.stop();
	await run.done;
	assert.equal(run.error.code, 'exec_transport_error');
});

/** A proxy as many stand in front of such servers: whatever is silent for IDLE_MS is cut. */
async function idleProxy(port, idleMs) {
	const proxy = createServer((client) => {
		const upstream = net.connect(port, '127.0.0.1');
		const cut = () => (client.destroy(), upstream.destroy());
		for (const [from, to] of [[client, upstream], [upstream, client]]) {
			from.on('data', (bytes) => to.write(bytes)).on('end', () => to.end()).on('error', cut).on('close', cut);
			from.setTimeout(idleMs, from === upstream ? cut : undefined);
		}
	});
	await new Promise((done) => proxy.listen(0, '127.0.0.1', done));
	return { url: `http://127.0.0.1:${proxy.address().port}`, close: () => proxy.close() };
}

test('C013: a silent command outlives the patience of a proxy, thanks to comments', { skip }, async () => {
	const [keepalive, patience, seconds] = full ? ['15s', 60_000, 120] : ['300ms', 1200, 4];
	const server = await Server.start({ flags: ['--keepalive-ms', keepalive] });
	const proxy = await idleProxy(server.port, patience);
	const id = newId();
	const run = await exec(proxy.url, id, ['sh', '-c', `sleep ${seconds}; echo end`]);
	assert.equal(run.stdout.toString(), 'end\n');
	assert.equal(run.code, 0);
	assert.match(run.raw.toString(), /^: ?keepalive\n\n/m);
	proxy.close();
	await server.stop();
});

test('C030: a client that goes away is noticed within a second, silent command or not; then the policy', { skip }, async () => {
	for (const [flags, headers, stays] of [
		[[], { 'X-Exec-On-Disconnect': 'kill' }, false],
		[['--exec-on-disconnect', 'kill'], {}, false],
		[['--exec-on-disconnect', 'kill'], { 'X-Exec-On-Disconnect': 'keep' }, true],
		[[], {}, true],
	]) {
		const server = await Server.start({ flags: [...flags, '--keepalive-ms', '200'] });
		const id = newId();
		const run = startExec(server.url, id, ['sh', '-c', 'sleep 73001 & sleep 73001'], { headers });
		await run.begun;
		assert.equal(await running(server.url, id), 1);
		run.request.destroy();
		if (stays) {
			const other = await exec(server.url, id, ['sh', '-c', 'sleep 1.5; cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" "\\n" | grep -c ^73001']);
			assert.equal(other.stdout.toString(), '2\n', 'it goes on');
			assert.equal(await running(server.url, id), 1, 'and is listed');
		} else {
			await eventually(async () => (await running(server.url, id)) === 0, 'its tree is gone', 3000);
		}
		await server.stop();
	}
});

test('C019: a running command is ended with all that it started, and its stream says so', { skip }, async () => {
	const server = await Server.start();
	const id = newId();
	const run = startExec(server.url, id, ['sh', '-c', 'setsid sleep 73002 & sleep 73002 & echo on; wait']);
	await run.begun;
	await run.saw('on\n');
	const pid = run.response.headers['x-process-id'];
	const begin = performance.now();
	assert.equal((await call(`${server.url}/v1/sandbox/${id}/processes/${pid}/kill`, 'POST', { body: '{"signal":9}', headers: { 'Content-Type': 'application/json' } })).status, 204);
	await run.done;
	assert.ok(performance.now() - begin < 2000, 'it takes too long');
	assert.notEqual(run.exit.exit_code, 0);
	assert.match(run.exit.reason, /^(cancelled|signal)$/);
	const left = await sh(server.url, id, 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" "\\n" | grep -c ^73002');
	assert.equal(left.out, '0\n');
	await server.stop();
});

test('C055: deleted in the middle of 50 streams, uploads and terminals, again and again: each ends once, and nobody dies', { skip }, async () => {
	const server = await Server.start();
	const before = programs(server.pid);
	for (let round = 0; round < (full ? 1000 : 12); round++) {
		const id = newId();
		await sh(server.url, id, 'true');
		const runs = Array.from({ length: 50 }, () => startExec(server.url, id, ['sh', '-c', 'echo on; sleep 600']));
		await Promise.all(runs.slice(0, 5).map(async (run) => (await run.begun, run.saw('on\n'))));
		const sockets = await Promise.all([1, 2].map(() => Socket.open(`${server.url}/v1/sandbox/${id}/pty`)));
		const uploads = [1, 2, 3].map((i) => fetch(`${server.url}/v1/sandbox/${id}/file/workspace/u${i}`, { method: 'PUT', body: new Uint8Array(3 << 20) }).then((answer) => answer.status, () => 0));
		assert.equal((await call(`${server.url}/v1/sandbox/${id}`, 'DELETE')).status, 204);
		for (const run of runs) {
			await run.begun;
			await run.done;
			if (run.status !== 200) continue; // it came after the end: 502
			const ends = run.events.filter(({ event }) => event === 'exit' || event === 'error');
			assert.equal(ends.length, 1);
			assert.notEqual(run.exit?.exit_code, 0);
		}
		await Promise.all([...uploads, ...sockets.map(({ closed }) => closed)]);
		await call(`${server.url}/v1/sandbox/${id}`, 'DELETE');
	}
	assert.deepEqual(programs(server.pid)['tombolo-front'], before['tombolo-front']);
	assert.deepEqual(programs(server.pid)['tombolo-keeper'], before['tombolo-keeper']);
	await server.stop();
});

test('a host that is short of something says so with 503 before it tips over', { skip }, async () => {
	for (const [flag, piece] of [
		['--memory-reserve=900000GiB', 'short of memory'],
		['--disk-reserve=900000GiB', 'nearly full'],
		['--process-reserve=4194304', 'short of processes'],
	]) {
		const server = await Server.start({ flags: flag.split('=') });
		assertError(await exec(server.url, newId(), ['true']), 503, 'capacity_exceeded', piece);
		assert.equal((await call(`${server.url}/health`)).status, 200);
		await server.stop();
	}
});
