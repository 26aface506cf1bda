// The interactive terminal of /pty: API.md 3.12, SEMANTICS 3, CLIENTS.md 4.1 step 11, field cases C086 to C098.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { SandboxAddon } from 'sandbox-addon-stable/xterm';
import { WebSocket } from 'ws';
import { assertError, call, eventually, newId, sh, Wire } from './lib/client.mjs';
import { memoryOf, programs, Server } from './lib/server.mjs';
import { refusal, Socket } from './lib/socket.mjs';

const full = process.env.TOMBOLO_FULL === '1';
let server, url;

before(async () => {
	server = await Server.start();
	url = server.url;
});

after(() => server?.stop());

const at = (id, query = '', prefix = '') => `${url}${prefix}/v1/sandbox/${id}/pty${query}`;
const open = (id, query, options) => Socket.open(at(id, query), options);
const remove = (id) => call(`${url}/v1/sandbox/${id}`, 'DELETE');

/** A private terminal that is ready. */
async function ready(id, query = '?cols=80&rows=24', options) {
	const socket = await open(id, query, options);
	await socket.message('ready');
	const replay = socket.frames.slice(0, socket.frames.findIndex(({ json }) => json));
	socket.seen = replay.reduce((sum, { bytes }) => sum + bytes.length, 0);
	return socket;
}

/** A shell that says nothing of its own: no echo, no prompt, output as it is. */
async function quiet(id, query, options) {
	const socket = await ready(id, query, options);
	socket.type("stty -echo -opost; PS1=; bind 'set enable-bracketed-paste off' 2>/dev/null; printf 'qu''iet\\n'\n");
	await socket.saw('quiet\n');
	return socket;
}

/** Runs a line in a quiet shell and returns what it printed. */
async function line(socket, command) {
	const mark = randomBytes(6).toString('hex');
	socket.type(`${command}; printf '%s%s\\n' ${mark} .\n`);
	const [, output] = await socket.saw(new RegExp(`^([^]*?)${mark}\\.\\n`));
	return output;
}

// ---- the request

test('CLIENTS 4.1 step 11: refusals before the upgrade, in the order of the contract', async () => {
	const id = newId();
	assertError(await call(at(id)), 400, 'invalid_request', 'WebSocket upgrade required');
	assertError(await call(at(id, '?cols=abc')), 400, 'invalid_request', 'WebSocket upgrade required');
	const wire = await Wire.open(server.port);
	const half = async (query, headers = '') => {
		await wire.send(`GET /v1/sandbox/${id}/pty${query} HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n${headers}\r\n`);
		const { status, body } = await wire.response();
		return { status, ...JSON.parse(body.toString()) };
	};
	for (const query of ['?cols=abc', '?rows=xyz', '?cols=80px&terminalId=a..b', '?cols=%00'])
		assert.deepEqual(await half(query), { status: 400, error: 'cols and rows must be valid numbers', code: 'invalid_request' });
	for (const query of ['?terminalId=a..b&session=b%20c', '?terminal=a%2Fb', '?terminalId=', ''].slice(0, 2))
		assert.deepEqual(await half(query), { status: 400, error: 'Invalid terminal ID format', code: 'invalid_request' });
	assert.equal((await half('', 'Terminal-Id: a/b\r\n')).error, 'Invalid terminal ID format');
	assert.equal((await half('?session=b%20c')).error, 'Invalid session ID format');
	assert.equal((await half('?session=fine', 'Session-Id: b c\r\n')).error, 'Invalid session ID format');
	for (const query of ['', '?cols=80&rows=24', '?cols=0&rows=-1', '?cols=1e2&rows=0x10', '?cols=&rows=%2080%20'])
		assert.deepEqual(await half(query), { status: 400, error: 'WebSocket upgrade required', code: 'invalid_request' });
	wire.close();
	assert.equal((await call(`${url}/next/v1/sandbox/${id}/running`)).json.running, false, 'none of these started a sandbox');
	assertError(await refusal(at(id, '?shell=/no/such/shell')), 502, 'exec_transport_error', 'terminal failed: ');
	await remove(id);
});

test('the dialects differ in which terminal ids they know', async () => {
	const id = newId();
	assert.equal((await call(at(id, '', '/next'))).text, '404 Not Found');
	assertError(await refusal(at(id, '', '/preview')), 400, 'invalid_request', 'terminalId query parameter or Terminal-Id header required');
	// A session means nothing to preview, and a terminal id nothing to legacy and stable.
	const socket = await Socket.open(at(id, '?terminalId=t1&session=b%20c', '/preview'));
	await socket.message('ready');
	for (const prefix of ['/legacy', '/stable']) {
		const other = await Socket.open(at(id, '?terminalId=a..b', prefix));
		await other.message('ready');
		await other.close();
	}
	await remove(id);
});

test('a key is asked for, and may come in the query', async () => {
	const key = 'p7y-k3y-in-no-log';
	const own = await Server.start({ env: { SANDBOX_API_KEY: key } });
	const base = `${own.url}/v1/sandbox/${newId()}/pty`;
	assertError(await refusal(base), 401, 'unauthorized', 'Unauthorized');
	assertError(await refusal(`${base}?authorization=${key}`), 401, 'unauthorized', 'Unauthorized');
	const sockets = [await Socket.open(`${base}?authorization=bearer+${key}`), await Socket.open(`${base}?cols=80`, { headers: { Authorization: `Bearer ${key}` } })];
	for (const socket of sockets) await socket.message('ready');
	await own.stop();
	for (const socket of sockets) assert.equal((await socket.closed).code, 1012);
	assert.ok(!own.output.includes(key), 'the key is in the log');
});

// ---- a conversation

test('API 5: ready, a command, a resize, and the exit', async () => {
	const id = newId();
	const socket = await open(id, '?cols=80&rows=24');
	assert.deepEqual(await socket.message('ready'), { type: 'ready' });
	assert.equal(socket.frames[0].text, '{"type":"ready"}', 'a new terminal has nothing to replay');
	socket.type("sh -lc 'echo hi'\n");
	await socket.saw(/\rhi\r\n|\nhi\r\n/);
	socket.tell({ type: 'resize', cols: 120, rows: 40 });
	socket.type('stty size\n');
	await socket.saw(/[\r\n]40 120\r\n/);
	socket.type('exit 3\n');
	assert.deepEqual(await socket.closed, { code: 1000, reason: '' });
	assert.equal(socket.frames.at(-1).text, '{"type":"exit","code":3}');
	assert.match(socket.output, /exit\r\n$/);
	await remove(id);
});

test('an exit by signal names it', async () => {
	const id = newId();
	const socket = await ready(id);
	socket.type('kill -TERM $$; kill -KILL $$\n');
	const exit = await socket.message('exit');
	assert.deepEqual(exit, { type: 'exit', code: 137, signal: 'SIGKILL' });
	assert.equal((await socket.closed).code, 1000);
	await remove(id);
});

test('control messages that are wrong are told so, unknown ones are not, and the connection stays', async () => {
	const id = newId();
	const socket = await quiet(id);
	for (const wrong of ['x', '', '[1]', 'null']) {
		socket.tell(wrong);
		assert.equal((await socket.message('error')).message, 'Invalid control message');
	}
	for (const wrong of [{}, { cols: 0, rows: 5 }, { cols: 5 }, { cols: '5', rows: 5 }, { cols: 5, rows: -1 }]) {
		socket.tell({ type: 'resize', ...wrong });
		assert.match((await socket.message('error')).message, /^Invalid dimensions/);
	}
	socket.tell({ type: 'what' });
	socket.tell({});
	socket.tell({ type: 'terminate' });
	assert.equal(await line(socket, 'echo here'), 'here\n');
	assert.equal(socket.texts.filter(({ type }) => type === 'error').length, 9);
	await remove(id);
});

// ---- which terminal

test('without an id each connection has a shell of its own, which ends with it', async () => {
	const id = newId();
	const sockets = await Promise.all(Array.from({ length: 20 }, () => quiet(id)));
	const pids = await Promise.all(sockets.map((socket) => line(socket, 'x=$$; echo $$')));
	assert.equal(new Set(pids).size, 20);
	sockets[0].type('sleep 301 & sleep 302\n');
	await eventually(async () => (await sh(url, id, 'pgrep -x sleep | wc -l')).out === '2\n', 'two sleeps run');
	await sockets[0].close();
	sockets[1].vanish();
	sockets[2].vanish({ reset: true });
	await eventually(async () => {
		const alive = (await sh(url, id, 'pgrep -x bash; pgrep -x sleep; true')).out.split('\n');
		return ![0, 1, 2].some((i) => alive.includes(pids[i].trim())) && alive.length === 18;
	}, 'three shells and the sleeps of one are gone', 15_000);
	assert.equal(await line(sockets[3], 'echo $x'), pids[3]);
	assert.equal((await call(`${url}/v1/sandbox/${id}/terminals`)).json.length, 17);
	await remove(id);
});

test('a terminal id is one terminal, which stays; who comes back gets the ring, then ready, then what comes', async () => {
	const id = newId();
	const one = await quiet(id, '?terminalId=build');
	assert.equal(await line(one, 'x=7; pwd'), '/workspace\n');
	const other = await open(id, '?terminal=ignored', { headers: { 'Terminal-Id': 'build' } });
	await other.message('ready');
	assert.equal(other.frames.length, 2, 'one replay frame, then ready');
	assert.deepEqual(other.frames[0].bytes, one.bytes);
	other.seen = other.total;
	assert.equal(await line(other, 'echo $x'), '7\n');
	await eventually(() => one.total === other.total, 'both see all');
	assert.deepEqual(one.bytes, other.bytes);
	await one.close();
	other.vanish();
	const again = await open(id, '?terminalId=build');
	await again.message('ready');
	assert.deepEqual(again.frames[0].bytes, other.bytes);
	again.seen = again.total;
	assert.equal(await line(again, 'echo $x'), '7\n');
	// Its end is everybody's; the next one is new.
	const third = await ready(id, '?terminalId=build');
	again.type('exit\n');
	for (const socket of [again, third]) {
		assert.equal((await socket.message('exit')).code, 0);
		assert.equal((await socket.closed).code, 1000);
	}
	const fresh = await open(id, '?terminalId=build');
	await fresh.message('ready');
	assert.equal(fresh.frames[0].json.type, 'ready');
	await remove(id);
});

test('a session has a terminal of its own, by header or query; a terminal id comes first', async () => {
	const id = newId();
	const one = await quiet(id, '?session=s1');
	await line(one, 'x=1');
	const other = await quiet(id, '?session=s2', { headers: { 'Session-Id': 's1' } });
	assert.equal(await line(other, 'echo $x'), '1\n');
	const elsewhere = await quiet(id, '?session=s1&terminalId=s1');
	assert.equal(await line(elsewhere, 'echo $x'), '\n');
	const long = 'a'.repeat(128);
	const far = await quiet(id, `?session=${long}`);
	await line(far, 'x=far');
	assert.equal(await line(await quiet(id, `?session=${long}`), 'echo $x'), 'far\n');
	assert.equal(await line(await quiet(id, `?session=${long.slice(1)}b`), 'echo $x'), '\n');
	await remove(id);
});

test('256 KiB are kept for who comes back, in one frame, without a gap or a byte twice', async () => {
	const id = newId();
	const socket = await quiet(id, '?terminalId=big');
	socket.type('i=0; while [ $i -lt 60000 ]; do echo line $i; i=$((i+1)); done; echo all\n');
	await socket.until(() => socket.frames.at(-1).bytes?.includes('all\n'), 'the end');
	const later = await open(id, '?terminalId=big');
	await later.message('ready');
	assert.equal(later.frames.length, 2);
	const replay = later.frames[0].bytes;
	assert.ok(replay.length > 200_000 && replay.length <= 256 << 10, `${replay.length}`);
	assert.deepEqual(replay, socket.bytes.subarray(-replay.length));
	// While it is attached to, output goes on.
	socket.type('i=0; while [ $i -lt 20000 ]; do echo more $i; i=$((i+1)); done; echo end\n');
	const between = await open(id, '?terminalId=big');
	for (const one of [socket, between]) await one.until(() => one.frames.at(-1).bytes?.includes('end\n'), 'the end');
	assert.deepEqual(between.bytes, socket.bytes.subarray(-between.total));
	await remove(id);
});

// ---- field cases

test('C086: the size is there before the program, later ones take effect, odd ones are brought into bounds', async () => {
	const id = newId();
	await sh(url, id, "printf '#!/bin/sh\\nstty size\\n' >size; chmod +x size");
	for (let i = 0; i < (full ? 200 : 25); i++) {
		const socket = await open(id, '?cols=131&rows=47&shell=/workspace/size');
		assert.equal((await socket.closed).code, 1000);
		assert.equal(socket.output, '47 131\r\n');
	}
	for (const [query, size] of [['?cols=0&rows=-1', '1 80'], ['?cols=70000&rows=0x10', '16 1000'], ['?cols=99.9', '24 99'], ['', '24 80']]) {
		const socket = await open(id, `${query}${query ? '&' : '?'}shell=/workspace/size`);
		await socket.closed;
		assert.equal(socket.output, `${size}\r\n`);
	}
	const socket = await quiet(id);
	for (let i = 1; i <= 100; i++) socket.tell({ type: 'resize', cols: 100 + i, rows: 50 });
	assert.equal(await line(socket, 'stty size'), '50 200\n');
	socket.type('exit\n');
	socket.tell({ type: 'resize', cols: 5, rows: 5 });
	assert.equal((await socket.closed).code, 1000);
	assert.equal(socket.texts.some(({ type }) => type === 'error'), false);
	await remove(id);
});

test('one side alone is the size of a new terminal, and resizes none that lives', async () => {
	const id = newId();
	const size = async (query) => {
		const socket = await quiet(id, query);
		const seen = await line(socket, 'stty size');
		await socket.close();
		return seen;
	};
	assert.equal(await size('?terminalId=narrow&cols=50'), '24 50\n');
	assert.equal(await size('?terminalId=low&rows=10'), '10 80\n');
	assert.equal(await size('?terminalId=a&cols=100&rows=40'), '40 100\n');
	for (const query of ['', '&cols=50', '&rows=10', '&cols=50&rows=', '&cols=0&rows=10', '&cols=0&rows=0']) assert.equal(await size(`?terminalId=a${query}`), '40 100\n', query);
	assert.equal(await size('?terminalId=a&cols=90&rows=30'), '30 90\n');
	assert.equal(await size('?session=s&cols=50'), '24 50\n');
	assert.equal(await size('?session=s&rows=50'), '24 50\n');
	await remove(id);
});

test('what is typed after the exit is dropped', async () => {
	const id = newId();
	const sockets = [await quiet(id), await quiet(id, '?terminalId=a')];
	for (const socket of sockets) {
		socket.ws.on('message', (bytes, isBinary) => {
			if (!isBinary && JSON.parse(bytes.toString()).type === 'exit') socket.type('x'.repeat(300_000));
		});
		socket.type('exit 3\n');
		for (let i = 0; i < 20; i++) socket.type('echo late\n');
		assert.deepEqual(await socket.closed, { code: 1000, reason: '' });
		assert.deepEqual(socket.texts.at(-1), { type: 'exit', code: 3 });
		assert.doesNotMatch(socket.output, /late/);
		assert.equal(socket.texts.length, 2);
	}
	// Nobody who comes later gets it either.
	const next = await ready(id, '?terminalId=a');
	assert.equal(await line(await quiet(id, '?terminalId=a'), 'echo next'), 'next\n');
	assert.doesNotMatch(next.output, /late|xxx/);
	await remove(id);
});

test('C087: much output arrives whole, in frames of 64 KiB at most', async () => {
	const id = newId();
	const socket = await quiet(id);
	const size = (full ? 200 : 32) << 20;
	const before = socket.total;
	socket.type(`head -c ${size} /dev/zero | tr '\\0' x; printf .\n`);
	await socket.until(() => socket.total >= before + size + 1, 'all of it');
	const bytes = socket.bytes.subarray(before);
	assert.equal(bytes.length, size + 1);
	assert.equal(bytes.indexOf('.'), size);
	assert.ok(socket.frames.every((frame) => !frame.bytes || frame.bytes.length <= 65536));
	await remove(id);
});

test('C088: bytes that are no text arrive as they are', async () => {
	const id = newId();
	await sh(url, id, 'head -c 1000000 /dev/urandom >random');
	const socket = await quiet(id);
	const from = socket.total;
	socket.type(''); // an empty frame is nothing
	socket.type("printf '\\xff\\xfe\\x00\\x80'; cat random; printf END\n");
	await socket.until(() => socket.total >= from + 1_000_007, 'all of it');
	const bytes = socket.bytes.subarray(from);
	assert.equal(bytes.subarray(0, 4).toString('hex'), 'fffe0080');
	const { out } = await sh(url, id, 'sha256sum <random');
	assert.equal(createHash('sha256').update(bytes.subarray(4, 1_000_004)).digest('hex'), out.split(' ')[0]);
	assert.equal(bytes.subarray(1_000_004).toString(), 'END');
	assert.equal(socket.end, undefined);
	await remove(id);
});

test('C089: clients that vanish at any moment leave nothing behind', async () => {
	const id = newId();
	await sh(url, id, 'true');
	const key = randomBytes(16).toString('base64');
	const head = `GET /v1/sandbox/${id}/pty HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`;
	for (let i = 0; i < (full ? 5000 : 120); i++) {
		const wire = await Wire.open(server.port);
		if (i % 4 === 0) {
			await wire.send(head.slice(0, 1 + (i * 7) % head.length));
		} else {
			await wire.send(head);
			if (i % 4 > 1) await wire.until((bytes) => bytes.includes('"ready"'));
			if (i % 8 > 3) await wire.send(Buffer.from([0x82, 0x85, 0, 0, 0, 0, 0x65, 0x78, 0x69, 0x74, 0x0a])); // "exit\n", masked with zeros
		}
		if (i % 3 === 0) wire.finish();
		else if (i % 3 === 1) wire.socket.resetAndDestroy();
		else wire.close();
	}
	await eventually(async () => (await sh(url, id, 'pgrep -x bash | wc -l; ls /dev/pts | grep -vc ptmx; true')).out === '0\n0\n', 'no shell and no terminal is left', 20_000);
	await remove(id);
});

test('C090: a large paste arrives whole; one that nobody reads costs nothing and can be ended', async () => {
	const id = newId();
	const socket = await quiet(id);
	const paste = randomBytes(10 << 20);
	socket.type('stty raw; printf READY; head -c 10485760 >in; stty -raw -echo -opost; printf DONE\n');
	await socket.saw('READY');
	socket.ws.send(paste);
	await socket.saw('DONE');
	assert.equal((await sh(url, id, 'sha256sum <in')).out.split(' ')[0], createHash('sha256').update(paste).digest('hex'));
	// To a program that does not read: other terminals go on, the server keeps none of it.
	const front = programs(server.pid)['tombolo-front'];
	const before = memoryOf(front);
	const deaf = await quiet(id, '?terminalId=deaf');
	deaf.type('stty raw; printf READY; exec sleep 300\n');
	await deaf.saw('READY');
	for (let i = 0; i < 4; i++) deaf.ws.send(paste);
	assert.equal(await line(socket, 'echo here'), 'here\n');
	assert.ok(memoryOf(front) < before + (8 << 20), `${memoryOf(front) - before} bytes more`);
	assert.equal((await call(`${url}/v1/sandbox/${id}/terminals/deaf/terminate`, 'POST')).status, 204);
	assert.equal((await deaf.message('exit')).signal, 'SIGTERM');
	await remove(id);
});

test('C093: keys that are signals reach the foreground program only', async () => {
	const id = newId();
	const socket = await quiet(id);
	// Without readline, whose modes come and go: in raw mode ^\ is no signal, and what ^D was before it is no key.
	await line(socket, 'set +o emacs');
	const started = async (n) => eventually(async () => (await sh(url, id, `ps -eo stat=,args= | grep -q '^S[^ ]*+ *sleep ${n}$'; echo $?`)).out === '0\n', `sleep ${n} runs in the foreground`);
	socket.type('sleep 1001\n');
	await started(1001);
	socket.type('\x03');
	assert.match(await line(socket, 'echo "code $?"'), /code 130\n$/);
	socket.type('sleep 1002\n');
	await started(1002);
	socket.type('\x1c');
	assert.match(await line(socket, 'echo "code $?"'), /code 131\n$/);
	socket.type('sleep 1003\n');
	await started(1003);
	socket.type('\x1a');
	assert.match(await line(socket, 'jobs'), /Stopped/);
	socket.type('fg\n');
	await socket.saw('sleep 1003');
	await started(1003); // fg names the program before it lets it run
	socket.type('\x03');
	assert.match(await line(socket, 'echo "code $?"'), /code 130\n$/);
	socket.type('\x04');
	assert.equal((await socket.message('exit')).code, 0);
	await remove(id);
});

test('C094: a controlling terminal and job control, without a complaint', async () => {
	const id = newId();
	const socket = await ready(id);
	socket.type('stty -echo; printf "%s" st; echo art\n');
	await socket.saw('start\r\n');
	assert.doesNotMatch(socket.output, /cannot set terminal process group|no job control|warning/i);
	socket.type("PS1=; tty; test -c $(tty) && echo is-a-device; set -o | grep monitor; echo x >/dev/tty; ps -o tpgid= -p $$ | grep -c '^ *[1-9]'\n");
	await socket.saw(/\/dev\/pts\/\d+\r\nis-a-device\r\nmonitor\s+on\r\nx\r\n1\r\n/);
	await remove(id);
});

test('C095: very short programs end at once', async () => {
	const id = newId();
	await sh(url, id, 'true');
	for (let i = 0; i < (full ? 2000 : 60); i++) {
		const socket = await open(id, '?shell=/bin/true');
		assert.equal((await socket.closed).code, 1000);
		assert.deepEqual(socket.texts, [{ type: 'ready' }, { type: 'exit', code: 0 }]);
	}
	await remove(id);
});

test('C096: each key is forwarded at once, also beside a hundred busy terminals', async () => {
	const id = newId();
	const busy = await Promise.all(Array.from({ length: full ? 100 : 30 }, () => quiet(id)));
	for (const socket of busy) socket.type('while sleep 0.02; do echo busy; done\n');
	const socket = await quiet(id);
	socket.type('stty raw; cat\n');
	for (let i = 0; i < 200; i++) {
		const key = String.fromCharCode(97 + (i % 26));
		socket.type(key); // the next one is only typed when this one has come back
		await socket.saw(key);
	}
	await remove(id);
});

test('C097: a terminal that waits for input keeps nobody else waiting', async () => {
	const id = newId();
	const socket = await quiet(id);
	socket.type('printf wai; echo ting; cat\n');
	await socket.saw('waiting');
	assert.equal((await sh(url, id, 'echo ok')).out, 'ok\n');
	socket.type('typed\n');
	await socket.saw('typed');
	await remove(id);
});

test('C098: the environment, directory and user of a command, and a terminal that programs know', async () => {
	const id = newId();
	await sh(url, id, 'mkdir -p /workspace/p');
	const socket = await quiet(id, '?cwd=p');
	assert.equal(await line(socket, 'pwd; echo $TERM; locale charmap'), '/workspace/p\nxterm-256color\nUTF-8\n');
	const { out } = await sh(url, id, 'id -u; echo $HOME; echo $PATH');
	assert.equal(await line(socket, 'id -u; echo $HOME; echo $PATH'), out);
	// A session's terminal is in the session: its variables, its directory.
	await call(`${url}/v1/sandbox/${id}/session`, 'POST', { body: JSON.stringify({ id: 's1', cwd: '/workspace/p', env: { A: '1' } }) });
	const inside = await quiet(id, '?session=s1');
	assert.equal(await line(inside, 'echo $A; pwd; echo $TERM; locale charmap'), '1\n/workspace/p\nxterm-256color\nUTF-8\n');
	assert.equal(await line(await quiet(id, '?session=s1&terminalId=t&cwd=/tmp'), 'echo $A; pwd'), '1\n/tmp\n');
	const outside = await quiet(id, '?cwd=/tmp&shell=/bin/bash');
	assert.equal(await line(outside, 'pwd'), '/tmp\n');
	assertError(await refusal(at(id, '?cwd=/no/such')), 502, 'exec_transport_error', 'terminal failed: ');
	await remove(id);
});

test('a reader that stops stops the program, and no memory grows', async () => {
	const id = newId();
	const socket = await quiet(id);
	const front = programs(server.pid)['tombolo-front'];
	const before = memoryOf(front);
	socket.type("(while :; do echo x >>count; done) & head -c 300000000 /dev/zero | tr '\\0' x; printf END\n");
	await socket.until(() => socket.total > 100_000, 'it begins');
	socket.ws.pause();
	const size = async () => Number((await sh(url, id, 'stat -c %s count')).out);
	const then = await size();
	await eventually(async () => (await size()) > then + 100_000, 'time goes by inside');
	assert.ok(memoryOf(front) < before + (8 << 20), `${memoryOf(front) - before} bytes more`);
	assert.equal((await sh(url, id, 'pgrep -x tr | wc -l')).out, '1\n', 'it waits');
	socket.vanish();
	await remove(id);
});

test('a sandbox that is deleted closes its sockets with an error frame', async () => {
	const id = newId();
	const sockets = [await quiet(id), await quiet(id, '?terminalId=a')];
	assert.equal((await remove(id)).status, 204);
	for (const socket of sockets) {
		assert.ok([1011, 1012].includes((await socket.closed).code));
		assert.equal(typeof (await socket.message('error')).message, 'string');
	}
});

test('the published browser addon of the stable line types into a session and finds it again', async () => {
	const id = newId();
	const sockets = [];
	globalThis.location = { protocol: 'http:', host: url.replace('http://', '') };
	globalThis.WebSocket = class extends WebSocket {
		constructor(...args) {
			super(...args);
			sockets.push(this);
		}
	};
	const keys = new Set();
	const none = { dispose() {} };
	let text = '';
	const screen = {
		cols: 101,
		rows: 31,
		onData: (listener) => (keys.add(listener), { dispose: () => keys.delete(listener) }),
		onResize: () => none,
		write: (bytes) => (text += typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString()),
		clear() {},
		focus() {},
	};
	const type = (key) => keys.forEach((listener) => listener(key));
	const addon = new SandboxAddon({ getWebSocketUrl: ({ sandboxId, sessionId, origin }) => `${origin}/v1/sandbox/${sandboxId}/pty?session=${sessionId}` });
	addon.activate(screen);
	addon.connect({ sandboxId: id, sessionId: 's1' });
	await eventually(() => addon.state === 'connected', 'it connects');
	type('x=kept; stty size; printf "o%s" ne\n');
	await eventually(() => text.includes('31 101\r\none'), 'it types and has its size');
	sockets[0].terminate();
	await eventually(() => addon.state === 'disconnected', 'it notices');
	await eventually(() => addon.state === 'connected', 'it reconnects by itself', 10_000);
	type('\necho "again $x"\n');
	await eventually(() => text.includes('again kept'), 'the shell is the same');
	addon.disconnect();
	addon.dispose();
	delete globalThis.location;
	await remove(id);
});
