// Processes that outlive their request, and their logs: API.md 3.18 to 3.22, SEMANTICS 4.1 and 4.2, CLIENTS.md 4.2 steps 6 to 8.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertError, call, eventually, newId, sh, Wire } from './lib/client.mjs';
import { Server } from './lib/server.mjs';

let server, url;

before(async () => {
	server = await Server.start();
	url = server.url;
});

after(() => server?.stop());

const at = (id, path = '') => `${url}/v1/sandbox/${id}/processes${path}`;
const launch = (id, body, prefix = '') => call(`${url}${prefix}/v1/sandbox/${id}/processes`, 'POST', { body: typeof body === 'string' ? body : JSON.stringify(body) });
const start = async (id, argv, more = {}) => {
	const answer = await launch(id, { argv, ...more });
	assert.equal(answer.status, 200, answer.text);
	return answer.json;
};
const script = (id, text, more) => start(id, ['sh', '-c', text], more);
const status = async (id, pid) => (await call(at(id, `/${pid}`))).json;
const kill = (id, pid, body) => call(at(id, `/${pid}/kill`), 'POST', body === undefined ? {} : { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } });
const remove = (id) => call(`${url}/v1/sandbox/${id}`, 'DELETE');

/** The objects of a log stream; asserts the frames' form. */
function parseLog(text) {
	assert.match(text, /^(data: [\x20-\x7e]+\n\n)*$/);
	return text.split('\n\n').filter(Boolean).map((frame) => JSON.parse(frame.slice('data: '.length)));
}

async function log(id, pid, query = '') {
	const answer = await call(at(id, `/${pid}/logs${query}`));
	assert.equal(answer.status, 200, answer.text);
	assert.equal(answer.type, 'text/event-stream');
	assert.equal(answer.headers.get('cache-control'), 'no-cache');
	return parseLog(answer.text);
}

const dataOf = (events, type) => Buffer.concat(events.filter((event) => event.type === type).map(({ data }) => Buffer.from(data, 'base64')));

/** A log that is followed: events as they come. */
async function follow(id, pid, query = '?follow=true') {
	const abort = new AbortController();
	const answer = await fetch(at(id, `/${pid}/logs${query}`), { signal: abort.signal });
	assert.equal(answer.status, 200);
	const reader = answer.body.getReader();
	const stream = { events: [], abort };
	let text = '';
	stream.next = async () => {
		for (;;) {
			const end = text.indexOf('\n\n');
			if (end >= 0) {
				const [event] = parseLog(text.slice(0, end + 2));
				text = text.slice(end + 2);
				stream.events.push(event);
				return event;
			}
			const { value, done } = await reader.read();
			if (done) return null;
			text += Buffer.from(value).toString('latin1');
		}
	};
	stream.until = async (test) => {
		for (let event; (event = await stream.next()); ) if (test(event)) return event;
		throw new Error(`the log ended: ${JSON.stringify(stream.events.slice(-3))}`);
	};
	return stream;
}

// ---- launch

test('a launch answers with the status of the process', async () => {
	const id = newId();
	const before = Date.now();
	const { status: code, type, json } = await launch(id, { argv: ['sleep', '300'] });
	assert.equal(code, 200);
	assert.equal(type, 'application/json');
	assert.match(json.id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
	assert.ok(Number.isInteger(json.pid) && json.pid > 1);
	assert.deepEqual(json.command, ['sleep', '300']);
	assert.equal(json.cwd, '/workspace');
	assert.equal(json.state, 'running');
	assert.match(json.startedAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
	assert.ok(Math.abs(Date.parse(json.startedAt) - before) < 60_000);
	for (const key of ['endedAt', 'exit', 'error']) assert.ok(!(key in json), key);
	const again = await status(id, json.id);
	for (const key of ['id', 'pid', 'command', 'cwd', 'state', 'startedAt']) assert.deepEqual(again[key], json[key]);
	await remove(id);
});

test('a launch is judged in the order of the contract, and starts no sandbox before', async () => {
	const id = newId();
	const wrong = [
		['', 400, 'Invalid JSON body'],
		['{"argv":', 400, 'Invalid JSON body'],
		['null', 400, 'argv must be a non-empty array'],
		['{"argv":[]}', 400, 'argv must be a non-empty array'],
		['{"argv":["a",1]}', 400, 'argv items must be strings'],
		['{"argv":[""]}', 400, 'argv executable must be non-empty'],
		['{"argv":["a"],"timeout":null}', 400, 'timeout must be a positive finite number'],
		['{"argv":["a"],"timeout":0}', 400, 'timeout must be a positive finite number'],
		['{"argv":["a"],"cwd":"/tmp"}', 403, 'cwd must resolve to a location within /workspace'],
		['{"argv":["a"],"cwd":"/workspace/../etc"}', 403, 'cwd must resolve to a location within /workspace'],
		['{"argv":["a"],"env":{"A":1}}', 400, 'env must be an object of strings'],
	];
	for (const [body, code, message] of wrong) assertError(await launch(id, body), code, 'invalid_request', message);
	assert.equal((await call(`${url}/next/v1/sandbox/${id}/running`)).json.running, false);
});

test('what cannot be launched is a process_error', async () => {
	const id = newId();
	for (const body of [
		{ argv: ['/no/such/program'] },
		{ argv: ['nosuchprogram'] },
		{ argv: ['/etc/passwd'] },
		{ argv: ['true'], cwd: 'not/there' },
		{ argv: ['true'], env: { '': 'x' } },
		{ argv: ['true'], env: { 'A=B': 'x' } },
		{ argv: ['true'], timeout: 0.5 },
	])
		assertError(await launch(id, body), 502, 'process_error', 'process launch failed: ');
	await remove(id);
});

test('argv is executed as it is, in its directory, with its environment over the base', async () => {
	const id = newId();
	await sh(url, id, 'mkdir -p sub');
	const { id: pid } = await start(id, ['sh', '-c', 'pwd; echo "$1"; echo "$A"; cat; echo end', 'x', '$(id) *'], { cwd: 'sub', env: { A: '1 2' } });
	const events = await log(id, pid, '?follow=true');
	assert.equal(dataOf(events, 'stdout').toString(), '/workspace/sub\n$(id) *\n1 2\nend\n');
	await remove(id);
});

test('the program is looked for in the PATH of its own environment', async () => {
	const id = newId();
	await sh(url, id, "mkdir bin; printf '#!/bin/sh\\necho \"own $PATH\"\\n' >bin/tool; chmod +x bin/tool");
	const PATH = '/workspace/bin:/bin';
	const { id: pid } = await start(id, ['tool'], { env: { PATH } });
	assert.equal(dataOf(await log(id, pid, '?follow=true'), 'stdout').toString(), `own ${PATH}\n`);
	assertError(await launch(id, { argv: ['tool'] }), 502, 'process_error', 'process launch failed: ');
	assertError(await launch(id, { argv: ['true'], env: { PATH: '/workspace/bin' } }), 502, 'process_error', 'process launch failed: ');
	await remove(id);
});

test('the dialects before next do not know processes and terminals', async () => {
	const id = newId();
	for (const prefix of ['/legacy', '/stable', '/preview']) {
		for (const [method, path] of [['POST', '/processes'], ['GET', '/processes'], ['GET', '/processes/x'], ['GET', '/processes/x/logs'], ['POST', '/processes/x/kill'], ['GET', '/terminals'], ['GET', '/terminals/x/connect']]) {
			const answer = await call(`${url}${prefix}/v1/sandbox/${id}${path}`, method);
			assert.equal(answer.status, 404);
			assert.equal(answer.text, '404 Not Found');
		}
	}
	for (const path of ['/processes/x/interrupt', '/processes/x/terminate', '/processes/', '/processes/x/'])
		assert.equal((await call(`${url}/v1/sandbox/${id}${path}`, 'POST')).text, '404 Not Found');
});

test('lookups start nothing', async () => {
	const id = newId();
	assert.deepEqual((await call(at(id))).json, []);
	assertError(await call(at(id, '/x')), 404, 'not_found', 'Process not found');
	assertError(await call(at(id, '/x/logs?since=junk')), 404, 'not_found', 'Process not found');
	assertError(await kill(id, 'x', { signal: 'junk' }), 404, 'not_found', 'Process not found');
	assert.equal((await call(`${url}/next/v1/sandbox/${id}/running`)).json.running, false);
	await sh(url, id, 'true');
	for (const name of ['x', '..%2fx', '%00', 'a'.repeat(3000), '%ff', 'A.B'])
		for (const path of ['', '/logs', '/logs?since=junk']) assertError(await call(at(id, `/${name}${path}`)), 404, 'not_found', 'Process not found');
	assertError(await kill(id, 'x'), 404, 'not_found', 'Process not found');
	assertError(await kill(id, 'x', { signal: 'junk' }), 404, 'not_found', 'Process not found');
	await remove(id);
});

// ---- logs

test('API 5: the bytes of a followed log', async () => {
	const id = newId();
	const { id: pid } = await start(id, ['sh', '-c', 'printf out; exit 7']);
	const answer = await call(at(id, `/${pid}/logs?follow=true`));
	const iso = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z';
	assert.match(
		answer.text,
		new RegExp(
			`^data: {"type":"stdout","cursor":"djE[\\w-]+","timestamp":"${iso}","data":"b3V0"}\n\n` +
				`data: {"type":"terminal","state":"exited","cursor":"djE[\\w-]+","timestamp":"${iso}","exit":{"code":7,"timedOut":false}}\n\n$`,
		),
	);
	await remove(id);
});

test('CLIENTS 4.2 step 7: out, err and the exit code; by id and in the list', async () => {
	const id = newId();
	const { id: pid } = (await launch(id, { argv: ['sh', '-lc', 'printf out; printf err >&2; exit 7'] }, '/next')).json;
	const events = await log(id, pid, '?replay=true&follow=true');
	assert.equal(dataOf(events, 'stdout').toString(), 'out');
	assert.equal(dataOf(events, 'stderr').toString(), 'err');
	assert.deepEqual(events.at(-1).exit, { code: 7, timedOut: false });
	const found = await status(id, pid);
	assert.equal(found.state, 'exited');
	assert.deepEqual(found.exit, { code: 7, timedOut: false });
	assert.ok(Date.parse(found.endedAt) >= Date.parse(found.startedAt));
	assert.ok((await call(at(id))).json.some((one) => one.id === pid));
	await remove(id);
});

test('CLIENTS 4.2 step 8: the end of a log stream is not the end of the process', async () => {
	const id = newId();
	const { id: pid } = await script(id, 'echo ready; sleep 300');
	const first = await follow(id, pid);
	await first.until((event) => event.type === 'stdout');
	first.abort.abort();
	assert.equal((await status(id, pid)).state, 'running');
	const second = await follow(id, pid);
	assert.equal((await kill(id, pid, { signal: 15 })).status, 204);
	const end = await second.until((event) => event.type === 'terminal');
	assert.deepEqual(end.exit, { code: 143, signal: 15, timedOut: false });
	assert.equal(await second.next(), null);
	await remove(id);
});

test('replay, follow and since choose what is told', async () => {
	const id = newId();
	await sh(url, id, 'mkfifo first second');
	const { id: pid } = await script(id, 'echo one; read x <first; echo two; read x <second');
	const live = await follow(id, pid);
	const one = await live.until((event) => event.type === 'stdout');
	const now = await follow(id, pid, '?replay=false&follow=1&since=junk');
	// What is there: no end, because it goes on.
	assert.deepEqual((await log(id, pid)).map(({ type }) => type), ['stdout']);
	assert.deepEqual(await log(id, pid, '?replay=false'), []);
	assert.deepEqual(await log(id, pid, '?replay=yes'), []); // neither true nor 1
	assert.deepEqual(await log(id, pid, `?since=${one.cursor}`), []);
	await sh(url, id, 'echo >first');
	const two = await live.until((event) => event.type === 'stdout');
	assert.equal(Buffer.from(two.data, 'base64').toString(), 'two\n');
	assert.deepEqual(await now.next(), two);
	assert.deepEqual(await log(id, pid, `?since=${one.cursor}`), [two]);
	await sh(url, id, 'echo >second');
	const end = await live.until((event) => event.type === 'terminal');
	assert.deepEqual(await now.next(), end);
	// A finished one closes with its end, from wherever it is read.
	assert.deepEqual(await log(id, pid), [one, two, end]);
	assert.deepEqual(await log(id, pid, `?since=${two.cursor}&follow=true`), [end]);
	assert.deepEqual(await log(id, pid, `?since=${end.cursor}`), [end]);
	await remove(id);
});

test('cursors that are malformed, foreign or of the future are refused', async () => {
	const id = newId();
	const [one, other] = [await script(id, 'echo a; sleep 300'), await script(id, 'echo a; echo b; echo c')];
	const own = await (await follow(id, one.id)).until((event) => event.type === 'stdout');
	const foreign = (await log(id, other.id, '?follow=true')).at(-1).cursor;
	const [version, store] = Buffer.from(own.cursor, 'base64url').toString().split('.');
	const future = Buffer.from(`${version}.${store}.999`).toString('base64url');
	for (const cursor of ['junk', '', foreign, future, own.cursor.slice(1), `${own.cursor}x`, 'x'.repeat(5000), '%00'])
		for (const more of ['', '&follow=true']) assertError(await call(at(id, `/${one.id}/logs?since=${cursor}${more}`)), 400, 'invalid_request', 'Invalid log cursor');
	await remove(id);
});

test('bytes of every value come through exactly', async () => {
	const id = newId();
	const { id: pid } = await script(id, 'i=0; while [ $i -lt 256 ]; do printf "\\\\$(printf %o $i)"; i=$((i+1)); done >all; cat all all all');
	const expected = Buffer.from(Array.from({ length: 768 }, (_, i) => i & 255));
	assert.deepEqual(dataOf(await log(id, pid, '?follow=true'), 'stdout'), expected);
	await remove(id);
});

test('C027 what fell out of the log is told as truncated, once and first; its end and the exit code are there', async () => {
	const id = newId();
	const { id: pid } = await script(id, 'echo first; head -c 3000000 /dev/zero | tr "\\0" x; echo last; exit 4');
	const early = await follow(id, pid);
	const first = await early.until((event) => event.type === 'stdout');
	await eventually(async () => (await status(id, pid)).state === 'exited', 'it ends', 20_000);
	for (const query of ['', `?since=${first.cursor}`]) {
		const events = await log(id, pid, query);
		assert.deepEqual(Object.keys(events[0]).sort(), ['timestamp', 'type']);
		assert.equal(events[0].type, 'truncated');
		assert.equal(events.filter(({ type }) => type === 'truncated').length, 1);
		const bytes = dataOf(events, 'stdout');
		assert.ok(bytes.length > 500_000 && bytes.length <= 1 << 20, `${bytes.length} bytes`);
		assert.ok(bytes.toString().endsWith('xlast\n'));
		assert.equal(events.at(-1).type, 'terminal');
		assert.deepEqual(events.at(-1).exit, { code: 4, timedOut: false });
	}
	early.abort.abort();
	await remove(id);
});

test('a reader that does not read stops neither the process nor other readers', async () => {
	const id = newId();
	const { id: pid } = await script(id, 'head -c 30000000 /dev/zero | tr "\\0" x; echo last');
	const stuck = await Wire.open(server.port);
	stuck.socket.pause();
	await stuck.send(`GET /v1/sandbox/${id}/processes/${pid}/logs?follow=true HTTP/1.1\r\nHost: a\r\n\r\n`);
	await eventually(async () => (await status(id, pid)).state === 'exited', 'it ends', 20_000);
	assert.equal((await log(id, pid)).at(-1).type, 'terminal');
	// It is told where it lost something, and goes on with what is still there, to the end.
	stuck.socket.resume();
	const events = parseLog((await stuck.response()).body.toString('latin1'));
	const gap = events.findIndex(({ type }) => type === 'truncated');
	assert.ok(gap > 0 && gap < events.length - 2, `a gap at ${gap} of ${events.length}`);
	assert.ok(dataOf(events, 'stdout').length < 30_000_000);
	assert.ok(dataOf(events.slice(gap), 'stdout').toString().endsWith('xlast\n'));
	assert.equal(events.at(-1).type, 'terminal');
	stuck.close();
	await remove(id);
});

test('a sandbox that is deleted ends the log with an error', async () => {
	const id = newId();
	const { id: pid } = await script(id, 'echo ready; sleep 300');
	const stream = await follow(id, pid);
	await stream.until((event) => event.type === 'stdout');
	assert.equal((await remove(id)).status, 204);
	const end = await stream.until((event) => event.type === 'terminal');
	assert.equal(end.state, 'error');
	assert.equal(typeof end.error.code, 'string');
	assert.equal(typeof end.error.message, 'string');
	assert.equal(await stream.next(), null);
});

// ---- the end

test('kill: the body is judged after the process, and only where there is a Content-Type', async () => {
	const id = newId();
	const { id: pid } = await script(id, 'trap "echo usr1" USR1; trap "" TERM; echo ready; while :; do sleep 0.05; done');
	const stream = await follow(id, pid);
	await stream.until((event) => event.type === 'stdout');
	const post = (body, type) => call(at(id, `/${pid}/kill`), 'POST', { body: body && new TextEncoder().encode(body), headers: type ? { 'Content-Type': type } : {} });
	assertError(await post('{', 'application/json'), 400, 'invalid_request', 'Invalid JSON body');
	assertError(await post('', 'application/json'), 400, 'invalid_request', 'Invalid JSON body');
	assertError(await post('[]', 'text/plain'), 400, 'invalid_request', 'Request body must be an object');
	for (const signal of [0, 65, -1, 1.5, '"15"', null, true]) assertError(await post(`{"signal":${signal}}`, 'application/json'), 400, 'invalid_request', 'signal must be an integer between 1 and 64');
	assert.equal((await post('{"signal":9}')).status, 204); // not read: SIGTERM, which it ignores
	assert.equal((await post('{}', 'application/json')).status, 204); // likewise
	assert.equal((await post('{"signal":10}', 'application/json')).status, 204);
	await stream.until((event) => event.type === 'stdout' && Buffer.from(event.data, 'base64').includes('usr1'));
	assert.equal((await post('{"signal":9}', 'application/json')).status, 204);
	const end = await stream.until((event) => event.type === 'terminal');
	assert.deepEqual(end.exit, { code: 137, signal: 9, timedOut: false });
	assert.equal((await kill(id, pid)).status, 204); // it is over
	await remove(id);
});

test('a signal reaches the whole group, and the process is over when all of it is', async () => {
	const id = newId();
	await sh(url, id, 'mkfifo gate');
	const group = await script(id, 'sleep 300 & sleep 300 & echo ready; wait');
	const stream = await follow(id, group.id);
	await stream.until((event) => event.type === 'stdout');
	await kill(id, group.id, { signal: 9 });
	await stream.until((event) => event.type === 'terminal');
	assert.equal((await sh(url, id, 'pgrep sleep || true')).out, '');
	// The leader is gone, with its status; the child keeps the process running.
	const leader = await script(id, '(read x <gate; echo late) & exit 3');
	const lines = await follow(id, leader.id);
	assert.equal((await status(id, leader.id)).state, 'running');
	await sh(url, id, 'echo >gate');
	assert.equal(Buffer.from((await lines.next()).data, 'base64').toString(), 'late\n');
	assert.deepEqual((await lines.next()).exit, { code: 3, timedOut: false });
	await remove(id);
});

test('a timeout ends it with SIGTERM, then SIGKILL, and says so', async () => {
	const id = newId();
	const polite = await script(id, 'sleep 300', { timeout: 50 });
	assert.deepEqual((await log(id, polite.id, '?follow=true')).at(-1).exit, { code: 143, signal: 15, timedOut: true });
	const stubborn = await script(id, 'trap "" TERM; while :; do sleep 0.05; done', { timeout: 50 });
	assert.deepEqual((await log(id, stubborn.id, '?follow=true')).at(-1).exit, { code: 137, signal: 9, timedOut: true });
	const quick = await script(id, 'exit 0', { timeout: 60_000 });
	assert.deepEqual((await log(id, quick.id, '?follow=true')).at(-1).exit, { code: 0, timedOut: false });
	await remove(id);
});

test('64 finished ones are kept, running ones all', async () => {
	const id = newId();
	const long = await script(id, 'sleep 300');
	const pids = [];
	for (let i = 0; i < 66; i++) {
		const { id: pid } = await start(id, ['true']);
		pids.push(pid);
		await log(id, pid, '?follow=true'); // over, in this order
	}
	const list = (await call(at(id))).json;
	assert.equal(list.filter(({ state }) => state === 'exited').length, 64);
	assert.ok(list.some((one) => one.id === long.id && one.state === 'running'));
	assertError(await call(at(id, `/${pids[0]}`)), 404, 'not_found', 'Process not found');
	assertError(await call(at(id, `/${pids[0]}/logs`)), 404, 'not_found', 'Process not found');
	assert.equal((await status(id, pids[65])).state, 'exited');
	assert.deepEqual(list.map(({ startedAt }) => startedAt), list.map(({ startedAt }) => startedAt).sort(), 'oldest first');
	await remove(id);
});

test('of too many finished ones the first to end goes first, whenever it began', async () => {
	const id = newId();
	await sh(url, id, 'mkfifo gate');
	const oldest = await script(id, 'read x <gate');
	const over = async ({ id: pid }) => (await log(id, pid, '?follow=true'), pid);
	const first = await over(await start(id, ['true']));
	for (let i = 0; i < 62; i++) await over(await start(id, ['true']));
	await sh(url, id, 'echo >gate');
	await over(oldest);
	await over(await start(id, ['true']));
	assertError(await call(at(id, `/${first}`)), 404, 'not_found', 'Process not found');
	assert.equal((await status(id, oldest.id)).state, 'exited');
	await remove(id);
});

test('many processes at once, each with its own log', async () => {
	const id = newId();
	const all = await Promise.all(Array.from({ length: 40 }, (_, i) => script(id, `echo ${i}; exit ${i}`)));
	const logs = await Promise.all(all.map(({ id: pid }) => log(id, pid, '?follow=true')));
	logs.forEach((events, i) => {
		assert.equal(dataOf(events, 'stdout').toString(), `${i}\n`);
		assert.equal(events.at(-1).exit.code, i);
	});
	await remove(id);
});
