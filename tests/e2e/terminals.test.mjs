// Terminals as resources: API.md 3.23 to 3.27, SEMANTICS 4.3, CLIENTS.md 4.2 steps 9 and 10, and the vendor's browser addon.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SandboxAddon } from 'sandbox-addon-next/xterm';
import { WebSocket } from 'ws';
import { assertError, call, eventually, newId, sh, Wire } from './lib/client.mjs';
import { Server } from './lib/server.mjs';
import { framed, refusal, Socket } from './lib/socket.mjs';

let server, url;

before(async () => {
	server = await Server.start();
	url = server.url;
});

after(() => server?.stop());

const at = (id, path = '') => `${url}/v1/sandbox/${id}/terminals${path}`;
const make = (id, body) => call(at(id), 'POST', { body: typeof body === 'string' ? body : JSON.stringify(body) });
const start = async (id, script, more = {}) => {
	const answer = await make(id, { argv: ['sh', '-c', script], ...more });
	assert.equal(answer.status, 200, answer.text);
	return answer.json;
};
const connect = (id, tid, query = '') => Socket.open(at(id, `/${tid}/connect${query}`));
const snapshot = async (id, tid) => (await call(at(id, `/${tid}`))).json;
const remove = (id) => call(`${url}/v1/sandbox/${id}`, 'DELETE');

// ---- making and finding

test('a terminal answers with its snapshot', async () => {
	const id = newId();
	const { status, type, json } = await make(id, { argv: ['sleep', '300'], cwd: '/tmp', env: { A: '1' }, cols: 100, rows: 30 });
	assert.equal(status, 200);
	assert.equal(type, 'application/json');
	assert.match(json.id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
	assert.deepEqual({ ...json, id: '', pid: 0 }, { id: '', pid: 0, command: ['sleep', '300'], cwd: '/tmp', status: 'running' });
	assert.deepEqual(await snapshot(id, json.id), json);
	assert.deepEqual((await call(at(id))).json, [json]);
	assert.deepEqual((await call(`${url}/v1/sandbox/${id}/processes`)).json, [], 'a terminal is not a process');
	await remove(id);
});

test('a terminal is judged in the order of the contract, and starts no sandbox before', async () => {
	const id = newId();
	const wrong = [
		['', 'Invalid JSON body'],
		['null', 'Request body must be an object'],
		['[]', 'Request body must be an object'],
		['{"cwd":1}', 'argv must be a non-empty string array'],
		['{"argv":["a",1],"cwd":1}', 'argv must be a non-empty string array'],
		['{"argv":["a"],"cwd":1,"env":null}', 'cwd must be a string'],
		['{"argv":["a"],"env":null,"cols":0}', 'env must be an object'],
		['{"argv":["a"],"env":{"A":1},"cols":0}', 'env values must be strings'],
		['{"argv":["a"],"cols":0,"rows":0}', 'cols must be a positive integer'],
		['{"argv":["a"],"rows":1.5}', 'rows must be a positive integer'],
	];
	for (const [body, message] of wrong) assertError(await make(id, body), 400, 'invalid_request', message);
	assert.deepEqual((await call(at(id))).json, []);
	assert.equal((await call(`${url}/next/v1/sandbox/${id}/running`)).json.running, false);
	assertError(await make(id, { argv: ['/no/such/program'] }), 502, 'exec_transport_error', 'terminal failed: ');
	assertError(await make(id, { argv: ['true'], cwd: '/no/such/dir' }), 502, 'exec_transport_error', 'terminal failed: ');
	await remove(id);
});

test('what is not there: 404 without a runtime before anything else, then the format, then 404', async () => {
	const id = newId();
	for (const [method, path] of [['GET', '/..%2f'], ['GET', '/x/connect'], ['POST', '/a b/interrupt'], ['POST', '/x/terminate']])
		assertError(await call(at(id, path), method), 404, 'not_found', 'Terminal not found');
	await sh(url, id, 'true');
	for (const name of ['a%20b', 'a..b', '..%2fx', '%00', 'a'.repeat(129), 'a%2Fb'])
		for (const [method, path] of [['GET', ''], ['POST', '/interrupt'], ['POST', '/terminate']])
			assertError(await call(at(id, `/${name}${path}`), method), 400, 'invalid_request', 'Invalid terminal ID format');
	for (const [method, path] of [['GET', '/x'], ['POST', '/x/interrupt'], ['POST', '/x/terminate']])
		assertError(await call(at(id, path), method), 404, 'not_found', 'Terminal not found');
	await remove(id);
});

test('C091: a connect is refused before the upgrade, in the order of the contract', async () => {
	const id = newId();
	assertError(await refusal(at(id, '/x/connect')), 404, 'not_found', 'Terminal not found');
	const { id: tid } = await start(id, 'sleep 300');
	assertError(await call(at(id, '/a b/connect')), 400, 'invalid_request', 'WebSocket upgrade required');
	assertError(await refusal(at(id, '/a..b/connect?cols=0')), 400, 'invalid_request', 'Invalid terminal ID format');
	for (const value of ['', '0', '-1', '1.5', 'x', 'Infinity']) {
		assertError(await refusal(at(id, `/${tid}/connect?cols=${value}&rows=0`)), 400, 'invalid_request', 'cols must be a positive integer');
		assertError(await refusal(at(id, `/${tid}/connect?cols=80&rows=${value}`)), 400, 'invalid_request', 'rows must be a positive integer');
	}
	assertError(await refusal(at(id, '/x/connect')), 404, 'not_found', 'Terminal not found');
	// An upgrade without a key: the route's own checks come first.
	const wire = await Wire.open(server.port);
	const half = (path) => wire.send(`GET /v1/sandbox/${id}/terminals/${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n`);
	await half(`${tid}/connect?cols=0`);
	assert.match((await wire.response()).body.toString(), /cols must be a positive integer/);
	await half(`${tid}/connect?cols=80`);
	const answer = await wire.response();
	assert.equal(answer.status, 400);
	assert.match(answer.body.toString(), /WebSocket upgrade required/);
	wire.close();
	await remove(id);
	assertError(await refusal(at(id, `/${tid}/connect`)), 404, 'not_found', 'Terminal not found');
});

// ---- the socket

test('API 5 and CLIENTS 4.2 step 9: the frames of a conversation', async () => {
	const id = newId();
	const { id: tid } = await start(id, 'printf ready; read line; printf "received:%s" "$line"', { cols: 80, rows: 24 });
	const socket = await connect(id, tid);
	await socket.saw('ready');
	socket.type('hello\n');
	assert.deepEqual(await socket.closed, { code: 1000, reason: 'Terminal exited' });
	const { ready, chunks, others, output } = framed(socket.frames);
	assert.deepEqual(ready, { type: 'ready' });
	assert.equal(output.toString(), 'readyhello\r\nreceived:hello');
	assert.equal(chunks[0].bytes.toString(), 'ready');
	assert.equal(others.length, 1);
	assert.deepEqual({ ...others[0], cursor: '' }, { type: 'exit', cursor: '', exit: { code: 0, timedOut: false } });
	assert.equal(new Set([...chunks, ...others].map(({ cursor }) => cursor)).size, chunks.length + 1);
	for (const { cursor } of chunks) assert.match(cursor, /^[\w-]+$/);
	// Who comes later sees the same, and the same end.
	const again = await connect(id, tid);
	assert.deepEqual(await again.closed, { code: 1000, reason: 'Terminal exited' });
	assert.deepEqual(again.frames, socket.frames);
	assert.deepEqual(await snapshot(id, tid).then(({ status, exit }) => ({ status, exit })), { status: 'exited', exit: { code: 0, timedOut: false } });
	await remove(id);
});

test('what is typed after the exit is dropped', async () => {
	const id = newId();
	const { id: tid } = await start(id, 'stty -echo; printf ready; read line; echo "$line"');
	const first = await connect(id, tid);
	await first.saw('ready');
	first.ws.on('message', (bytes, isBinary) => {
		if (!isBinary && JSON.parse(bytes.toString()).type === 'exit') first.type('x'.repeat(300_000));
	});
	first.type('hello\n');
	assert.deepEqual(await first.closed, { code: 1000, reason: 'Terminal exited' });
	const later = new Set([await connect(id, tid), await connect(id, tid)]);
	for (const socket of later) {
		for (let i = 0; i < 10; i++) socket.type('y'.repeat(100_000));
		socket.tell({ type: 'resize', cols: 5, rows: 5 });
		assert.deepEqual(await socket.closed, { code: 1000, reason: 'Terminal exited' });
		assert.deepEqual(socket.frames, first.frames);
	}
	assert.equal(framed(first.frames).output.toString(), 'readyhello\r\n');
	await remove(id);
});

test('CLIENTS 4.2 step 10: close, still running, reconnect with a cursor, terminate', async () => {
	const id = newId();
	const { id: tid } = await start(id, 'printf ready; sleep 300');
	const first = await connect(id, tid);
	await first.saw('ready');
	const { cursor } = framed(first.frames).chunks.at(-1);
	assert.equal((await first.close()).code, 1000);
	assert.equal((await snapshot(id, tid)).status, 'running');
	const second = await connect(id, tid, `?cursor=${cursor}`);
	assert.deepEqual(await second.message('ready'), { type: 'ready', cursor });
	assert.equal((await call(at(id, `/${tid}/terminate`), 'POST')).status, 204);
	const exit = await second.message('exit');
	assert.deepEqual(exit.exit, { code: 143, signal: 15, timedOut: false });
	assert.equal((await second.closed).code, 1000);
	assert.equal(second.output, '', 'nothing came twice');
	assert.equal((await call(at(id, `/${tid}/terminate`), 'POST')).status, 204);
	assert.equal((await call(at(id, `/${tid}/interrupt`), 'POST')).status, 204);
	await remove(id);
});

test('from every cursor exactly the rest is told', async () => {
	const id = newId();
	const { id: tid } = await start(id, 'for i in 1 2 3 4 5; do echo $i; read x; done');
	const socket = await connect(id, tid);
	for (let i = 1; i <= 5; i++) {
		await socket.saw(`${i}\r\n`);
		socket.type('\n');
	}
	await socket.closed;
	const { chunks, output } = framed(socket.frames);
	for (let i = 0; i < chunks.length; i++) {
		const later = await connect(id, tid, `?cursor=${chunks[i].cursor}`);
		await later.closed;
		const rest = framed(later.frames);
		assert.equal(rest.ready.cursor, chunks[i].cursor);
		assert.deepEqual(Buffer.concat([...chunks.slice(0, i + 1).map(({ bytes }) => bytes), rest.output]), output);
		assert.equal(rest.others.at(-1).type, 'exit');
	}
	await remove(id);
});

test('cursors that are malformed, foreign or of the future: an error frame and 1011', async () => {
	const id = newId();
	const [one, other] = [await start(id, 'printf a; sleep 300'), await start(id, 'printf b')];
	const cursorOf = async ({ id: tid }) => {
		const socket = await connect(id, tid);
		await socket.until(() => socket.bytes.length);
		socket.close();
		return framed(socket.frames).chunks[0].cursor;
	};
	const own = await cursorOf(one);
	const [version, store] = Buffer.from(own, 'base64url').toString().split('.');
	const future = Buffer.from(`${version}.${store}.999`).toString('base64url');
	for (const cursor of ['junk', await cursorOf(other), future, `${own}x`, '%00', 'x'.repeat(5000), '%ff', '"}']) {
		const socket = await connect(id, one.id, `?cursor=${cursor}`);
		assert.equal((await socket.closed).code, 1011);
		assert.deepEqual(socket.texts.map(({ type, code }) => [type, code]), [['ready', undefined], ['error', 'INVALID_TERMINAL_CURSOR']]);
		assert.equal(socket.bytes.length, 0);
	}
	await remove(id);
});

test('what fell out of the ring is told as truncated, before the first chunk', async () => {
	const id = newId();
	const { id: tid } = await start(id, 'stty raw; printf first; read x; head -c 1000000 /dev/zero | tr "\\0" x; printf last; sleep 300');
	const socket = await connect(id, tid);
	await socket.saw('first');
	const early = framed(socket.frames).chunks[0].cursor;
	socket.type('\n');
	await socket.saw('last');
	await socket.close();
	for (const query of ['', `?cursor=${early}`]) {
		const later = await connect(id, tid, query);
		await later.saw('last');
		const { others, output } = framed(later.frames);
		assert.equal(later.frames[1].json.type, 'truncated');
		assert.deepEqual(others.map(({ type }) => type), ['truncated']);
		assert.ok(output.length > 100_000 && output.length <= 256 << 10, `${output.length} bytes`);
		await later.close();
	}
	await remove(id);
});

test('control messages: size, interrupt, terminate, and what is none of them', async () => {
	const id = newId();
	const { id: tid } = await start(id, 'trap "echo int" INT; trap "stty size" WINCH; echo go; while :; do sleep 0.05; done', { cols: 90, rows: 33 });
	const socket = await connect(id, tid);
	await socket.saw('go');
	socket.tell({ type: 'resize', cols: 131, rows: 47 });
	await socket.saw('47 131');
	socket.tell({ type: 'interrupt' });
	await socket.saw('int');
	for (const wrong of ['x', '[]', '{"type":"resize"}', '{"type":"resize","cols":0,"rows":1}', '{"type":"resize","cols":1.5,"rows":1}', '{"type":"what"}', '{}']) {
		socket.tell(wrong);
		assert.equal((await socket.message('error')).message, 'Invalid control message');
	}
	assert.equal((await call(at(id, `/${tid}/interrupt`), 'POST')).status, 204);
	await socket.saw('int');
	socket.tell({ type: 'terminate' });
	assert.deepEqual((await socket.message('exit')).exit, { code: 143, signal: 15, timedOut: false });
	assert.equal((await socket.closed).code, 1000);
	framed(socket.frames);
	await remove(id);
});

test('terminate ends also what does not want to', async () => {
	const id = newId();
	const { id: tid } = await start(id, 'trap "" TERM HUP; echo go; while :; do sleep 0.05; done');
	await (await connect(id, tid)).saw('go');
	assert.equal((await call(at(id, `/${tid}/terminate`), 'POST')).status, 204);
	assert.deepEqual((await snapshot(id, tid)).exit, { code: 137, signal: 9, timedOut: false });
	await remove(id);
});

test('C092: two clients see all, either may type, and one who looks on does not change the size', async () => {
	const id = newId();
	const { id: tid } = await start(id, 'echo go; while read line; do echo "got $line"; stty size; done', { cols: 100, rows: 40 });
	const one = await connect(id, tid, '?cols=101&rows=41');
	await one.saw('go');
	const other = await connect(id, tid, '?cols=50'); // one number alone is ignored
	await other.saw('go');
	one.type('a\n');
	for (const socket of [one, other]) await socket.saw('got a\r\n41 101');
	other.type('b\n');
	for (const socket of [one, other]) await socket.saw('got b\r\n41 101');
	await other.close();
	one.type('c\n');
	await one.saw('got c\r\n41 101');
	await remove(id);
});

test('TERM is xterm-256color, whatever the request says', async () => {
	const id = newId();
	const { id: tid } = await start(id, 'echo "$TERM $A"; tty; test -t 0 && test -t 1 && test -t 2 && echo yes', { env: { TERM: 'dumb', A: '7' } });
	const socket = await connect(id, tid);
	await socket.closed;
	assert.match(socket.output, /^xterm-256color 7\r\n\/dev\/pts\/\d+\r\nyes\r\n$/);
	await remove(id);
});

test('80 columns and 24 rows in /workspace, where the request says nothing else', async () => {
	const id = newId();
	for (const [more, wanted] of [[{}, '24 80\r\n/workspace\r\n'], [{ cols: 100 }, '24 100\r\n/workspace\r\n'], [{ rows: 7, cwd: '/tmp' }, '7 80\r\n/tmp\r\n']]) {
		const { id: tid } = await start(id, 'stty size; pwd', more);
		const socket = await connect(id, tid);
		await socket.closed;
		assert.equal(socket.output, wanted);
	}
	await remove(id);
});

test('a client that reads loses nothing, however much comes', async () => {
	const id = newId();
	const { id: tid } = await start(id, 'stty raw -echo; printf go; read x; head -c 40000000 /dev/zero; read x');
	const socket = await connect(id, tid);
	await socket.saw('go');
	socket.type('\n');
	await socket.until(() => socket.total === 40_000_002, 'all of it');
	assert.equal(framed(socket.frames).output.length, 40_000_002);
	await remove(id);
});

test('a client that cannot keep up is closed with 1013; the terminal and the others go on', async () => {
	const id = newId();
	const { id: tid } = await start(id, 'stty raw -echo; printf go; read x; head -c 40000000 /dev/zero; read x');
	const reader = await connect(id, tid);
	const slow = await connect(id, tid);
	for (const socket of [reader, slow]) await socket.saw('go');
	slow.ws.pause();
	reader.type('\n');
	await reader.until(() => reader.total === 40_000_002, 'all of it');
	slow.ws.resume();
	assert.equal((await slow.closed).code, 1013);
	framed(slow.frames);
	assert.equal(reader.end, undefined);
	await remove(id);
});

test('a client that is stuck does not stop the program for long', async () => {
	const id = newId();
	const { id: tid } = await start(id, 'stty raw -echo; printf go; read x; head -c 40000000 /dev/zero; echo >/workspace/done');
	const stuck = await connect(id, tid);
	await stuck.saw('go');
	stuck.type('\n');
	stuck.ws.pause();
	await eventually(async () => (await snapshot(id, tid)).status === 'exited', 'it ends', 20_000);
	assert.equal((await sh(url, id, 'cat done')).out, '\n');
	stuck.ws.resume();
	assert.equal((await stuck.closed).code, 1013);
	await remove(id);
});

test('25 finished terminals are kept', async () => {
	const id = newId();
	const all = [];
	for (let i = 0; i < 27; i++) {
		all.push((await start(id, 'exit 0')).id);
		await (await connect(id, all.at(-1))).closed;
	}
	const list = (await call(at(id))).json;
	assert.deepEqual(list.map((one) => one.id), all.slice(2));
	assertError(await call(at(id, `/${all[0]}`)), 404, 'not_found', 'Terminal not found');
	await remove(id);
});

// ---- ends

test('a terminal that is dropped while somebody connects is not there, or tells all it has', async () => {
	const id = newId();
	const old = await Promise.all(Array.from({ length: 10 }, () => start(id, 'echo told')));
	for (const { id: tid } of old) await eventually(async () => (await snapshot(id, tid)).status === 'exited', 'it is over');
	const outcome = async (tid) => {
		const socket = await connect(id, tid).catch(({ refused }) => refused);
		if (!(socket instanceof Socket)) return `${socket.status} ${socket.json.error}`;
		return `${(await socket.closed).code} ${framed(socket.frames).output}`;
	};
	const outcomes = [];
	for (let round = 0; round < 10; round++) {
		const seen = old.map(({ id: tid }) => outcome(tid));
		await Promise.all(Array.from({ length: 5 }, () => start(id, 'true')));
		outcomes.push(...(await Promise.all(seen)));
	}
	// 1008 is for those who were upgraded first; here nobody is before it is known to be there.
	assert.deepEqual([...new Set(outcomes)].sort(), ['1000 told\r\n', '404 Terminal not found']);
	await remove(id);
});

test('a sandbox that is deleted closes its sockets with an error frame and 1011', async () => {
	const id = newId();
	const { id: tid } = await start(id, 'echo go; sleep 300');
	const sockets = [await connect(id, tid), await connect(id, tid)];
	for (const socket of sockets) await socket.saw('go');
	assert.equal((await remove(id)).status, 204);
	for (const socket of sockets) {
		assert.ok([1011, 1012].includes((await socket.closed).code));
		assert.equal(typeof (await socket.message('error')).message, 'string');
	}
});

test('a server that ends says 1012, and a key in a query is accepted and never logged', async () => {
	const key = 'k3y-that-is-n0t-in-any-log';
	const own = await Server.start({ env: { SANDBOX_API_KEY: key } });
	const id = newId();
	const headers = { Authorization: `Bearer ${key}` };
	const base = `${own.url}/v1/sandbox/${id}/terminals`;
	const { json } = await call(base, 'POST', { headers, body: '{"argv":["sh","-c","echo go; sleep 300"]}' });
	const path = `${base}/${json.id}/connect`;
	assertError(await refusal(path), 401, 'unauthorized', 'Unauthorized');
	assertError(await refusal(`${path}?authorization=Bearer%20wrong`), 401, 'unauthorized', 'Unauthorized');
	assertError(await refusal(`${path}?token=${key}`), 401, 'unauthorized', 'Unauthorized');
	assertError(await call(`${base}?authorization=Bearer%20${key}`), 401, 'unauthorized', 'Unauthorized');
	const sockets = [await Socket.open(`${path}?authorization=Bearer%20${key}`), await Socket.open(`${path}?authorization=Bearer+${key}`), await Socket.open(path, { headers })];
	for (const socket of sockets) await socket.saw('go');
	await own.stop();
	for (const socket of sockets) assert.equal((await socket.closed).code, 1012);
	assert.ok(own.output.includes('"path":"/v1/sandbox/'), 'requests are logged');
	assert.ok(!own.output.includes(key), 'the key is in the log');
});

// ---- the vendor's browser addon

/** What the addon needs of an xterm.js Terminal. */
class Screen {
	constructor() {
		Object.assign(this, { cols: 100, rows: 30, written: [], clears: 0, listeners: { data: new Set(), resize: new Set() } });
	}
	on(kind, listener) {
		this.listeners[kind].add(listener);
		return { dispose: () => this.listeners[kind].delete(listener) };
	}
	onData(listener) {
		return this.on('data', listener);
	}
	onResize(listener) {
		return this.on('resize', listener);
	}
	write(bytes) {
		this.written.push(Buffer.from(bytes));
	}
	clear() {
		this.clears++;
	}
	focus() {}
	key(text) {
		for (const listener of this.listeners.data) listener(text);
	}
	get text() {
		return Buffer.concat(this.written).toString();
	}
}

test('the published browser addon types, resizes, loses its connection, and goes on where it was', async () => {
	const id = newId();
	const { id: tid } = await start(id, 'while read line; do echo "got $line"; stty size; done; echo bye');
	const sockets = [];
	globalThis.location = { protocol: 'http:', host: url.replace('http://', '') };
	globalThis.WebSocket = class extends WebSocket {
		constructor(...args) {
			super(...args);
			sockets.push(this);
		}
	};
	const screen = new Screen();
	const states = [];
	const addon = new SandboxAddon({
		getWebSocketUrl: ({ sandboxId, terminalId, cursor, origin }) => `${origin}/v1/sandbox/${sandboxId}/terminals/${terminalId}/connect${cursor ? `?cursor=${encodeURIComponent(cursor)}` : ''}`,
		onStateChange: (state, error) => states.push([state, error?.message]),
	});
	addon.activate(screen);
	addon.connect({ sandboxId: id, terminalId: tid });
	await eventually(() => addon.state === 'connected', 'it connects');
	screen.key('one\n');
	await eventually(() => screen.text.includes('got one\r\n30 100\r\n'), 'the first line comes back, in its size');
	// The connection breaks; while it is away something else is typed.
	sockets[0].terminate();
	await eventually(() => addon.state === 'disconnected', 'it notices');
	const other = await connect(id, tid);
	other.type('two\n');
	await other.saw('got two');
	await eventually(() => addon.state === 'connected', 'it reconnects by itself', 10_000);
	await eventually(() => screen.text.includes('got two'), 'what it missed comes');
	screen.key('three\n');
	await eventually(() => screen.text.includes('got three'), 'and it goes on');
	screen.key('\x04');
	await eventually(() => states.some(([, error]) => error === 'Session exited with code 0'), 'the end is told');
	assert.equal(addon.state, 'disconnected');
	assert.equal(sockets.length, 2);
	assert.match(new URL(sockets[1].url).searchParams.get('cursor'), /^[\w-]+$/);
	await other.closed;
	assert.equal(screen.text, framed(other.frames).output.toString(), 'all of it, once');
	assert.equal(screen.clears, 1, 'the screen was cleared at the begin only');
	assert.deepEqual(states.filter(([, error]) => error && !error.startsWith('Session exited')), []);
	addon.dispose();
	delete globalThis.location;
	await remove(id);
});
