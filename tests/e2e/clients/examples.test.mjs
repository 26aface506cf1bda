// The byte-level examples of the contract, API.md section 5, on raw connections: what varies is masked, all else must be equal.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { call, newId, Wire } from '../lib/client.mjs';
import { Server } from '../lib/server.mjs';

let server;
const id = 'aaaabbbbccccddddeeeeffff';

before(async () => {
	server = await Server.start({ env: { SANDBOX_API_KEY: 'K' } });
});

after(() => server?.stop());

const auth = { Authorization: 'Bearer K' };

/** A connection, and REQUEST sent on it as it stands here: LF becomes CRLF in the head. */
async function send(t, head, body = '') {
	const wire = await Wire.open(server.port);
	t.after(() => wire.close());
	await wire.send(`${head.trim().replaceAll('\n', '\r\n')}\r\nHost: h\r\n${body ? `Content-Length: ${Buffer.byteLength(body)}\r\n` : ''}\r\n${body}`);
	return wire;
}

/** The head's lines by name, each with a single blank behind its colon and CRLF at its end. */
function parseHead(bytes) {
	const end = bytes.indexOf('\r\n\r\n');
	const [first, ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
	assert.ok(lines.every((line) => /^[A-Za-z0-9-]+: \S/.test(line)), lines.join('\n'));
	return { first, headers: lines.map((line) => line.split(': ', 2)), rest: bytes.subarray(end + 4) };
}

const header = (headers, name) => headers.filter(([key]) => key.toLowerCase() === name.toLowerCase()).map(([, value]) => value);

/** Text of a chunked body; every frame of the stream came in a chunk, and the last one has no trailer. */
function unchunk(bytes) {
	const chunks = [];
	for (let at = 0; ;) {
		const end = bytes.indexOf('\r\n', at);
		const size = parseInt(bytes.subarray(at, end).toString('latin1'), 16);
		if (size === 0) {
			assert.equal(bytes.subarray(end + 2).toString('latin1'), '\r\n');
			return chunks;
		}
		chunks.push(bytes.subarray(end + 2, end + 2 + size).toString('latin1'));
		assert.equal(bytes.subarray(end + 2 + size, end + 4 + size).toString('latin1'), '\r\n');
		at = end + 4 + size;
	}
}

/** Keys that we add behind `exit_code` are free. */
const masked = (text) => text.replace(/^(data: \{"exit_code":\d+)[^\n]*\}$/m, '$1…}');

const whole = (bytes) => bytes.includes('\r\n0\r\n\r\n') && Buffer.from(bytes);

test('exec', async (t) => {
	const wire = await send(t, `
POST /v1/sandbox/${id}/exec HTTP/1.1
Authorization: Bearer K
Content-Type: application/json`, '{"argv":["sh","-lc","echo hi; echo no >&2; exit 3"],"timeout_ms":30000}');
	const { first, headers, rest } = parseHead(await wire.until(whole));
	assert.equal(first, 'HTTP/1.1 200 OK');
	assert.deepEqual(header(headers, 'Content-Type'), ['text/event-stream']);
	assert.deepEqual(header(headers, 'Cache-Control'), ['no-cache']);
	assert.deepEqual(header(headers, 'Transfer-Encoding'), ['chunked']);
	assert.deepEqual(header(headers, 'Content-Length'), []);
	const text = unchunk(rest).join('');
	const out = 'event: stdout\ndata: aGkK\n\n';
	const err = 'event: stderr\ndata: bm8K\n\n';
	const exit = 'event: exit\ndata: {"exit_code":3…}\n\n';
	assert.ok([out + err + exit, err + out + exit].includes(masked(text)), text); // the order of two streams is best effort
});

test('exec, one stream: there is one way to write it', async (t) => {
	const wire = await send(t, `
POST /v1/sandbox/${id}/exec HTTP/1.1
Authorization: Bearer K`, '{"argv":["printf","hi\\n"]}');
	const { rest } = parseHead(await wire.until(whole));
	assert.equal(masked(unchunk(rest).join('')), 'event: stdout\ndata: aGkK\n\nevent: exit\ndata: {"exit_code":0…}\n\n');
});

test('a process log that is followed', async (t) => {
	const body = JSON.stringify({ argv: ['sh', '-c', 'printf out; exit 7'] });
	const { json: process } = await call(`${server.url}/v1/sandbox/${id}/processes`, 'POST', { headers: auth, body });
	const wire = await send(t, `
GET /v1/sandbox/${id}/processes/${process.id}/logs?follow=true HTTP/1.1
Authorization: Bearer K`);
	const { first, headers, rest } = parseHead(await wire.until(whole));
	assert.equal(first, 'HTTP/1.1 200 OK');
	assert.deepEqual(header(headers, 'Content-Type'), ['text/event-stream']);
	const log = unchunk(rest).join('').replace(/"cursor":"[A-Za-z0-9_-]+"/g, '"cursor":C').replace(/"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"/g, 'T');
	const [output, terminal, end] = log.split('\n\n');
	assert.equal(end, '');
	assert.equal(output, 'data: {"type":"stdout","cursor":C,"timestamp":T,"data":"b3V0"}');
	assert.equal(terminal, 'data: {"type":"terminal","state":"exited","cursor":C,"timestamp":T,"exit":{"code":7,"timedOut":false}}');
});

// ---- sockets, frame by frame

/** A masked frame of ours. */
function clientFrame(opcode, content) {
	const bytes = Buffer.from(content);
	assert.ok(bytes.length < 126);
	const mask = randomBytes(4);
	return Buffer.concat([Buffer.of(0x80 | opcode, 0x80 | bytes.length), mask, bytes.map((byte, i) => byte ^ mask[i % 4])]);
}

/** The server's frames so far: unmasked, unfragmented, no extension bits. */
function serverFrames(bytes) {
	const found = [];
	for (let at = 0; at + 2 <= bytes.length;) {
		assert.equal(bytes[at] & 0xf0, 0x80, 'a fragment or an extension');
		assert.equal(bytes[at + 1] & 0x80, 0, 'a masked frame');
		let size = bytes[at + 1];
		let from = at + 2;
		if (size === 126) (size = bytes.readUInt16BE(from)), (from += 2);
		else if (size === 127) (size = Number(bytes.readBigUInt64BE(from))), (from += 8);
		if (from + size > bytes.length) break;
		const content = bytes.subarray(from, from + size);
		const kind = { 1: 'text', 2: 'binary', 8: 'close' }[bytes[at] & 0x0f];
		found.push(kind === 'close' ? { kind, code: content.readUInt16BE(0), reason: content.subarray(2).toString() } : { kind, text: content.toString() });
		at = from + size;
	}
	return found;
}

async function upgrade(t, path) {
	const wire = await send(t, `
GET ${path} HTTP/1.1
Authorization: Bearer K
Upgrade: websocket
Connection: Upgrade
Sec-WebSocket-Version: 13
Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==`);
	await wire.until((bytes) => bytes.includes('\r\n\r\n'));
	const { first, headers, rest } = parseHead(wire.bytes);
	assert.match(first, /^HTTP\/1\.1 101 /);
	assert.deepEqual(header(headers, 'Sec-WebSocket-Accept'), ['s3pPLMBiTxaQ9kYGzzhZRbK+xOo=']);
	const skip = wire.bytes.length - rest.length;
	return {
		wire,
		frames: () => serverFrames(wire.bytes.subarray(skip)),
		until: (look) => wire.until((bytes) => look(serverFrames(bytes.subarray(skip)))),
		send: (kind, content) => wire.send(clientFrame(kind === 'text' ? 1 : 2, content)),
	};
}

const output = (frames) => frames.filter(({ kind }) => kind === 'binary').map(({ text }) => text).join('');
const isClosed = (frames) => frames.at(-1)?.kind === 'close';

test('/pty without an id', async (t) => {
	const socket = await upgrade(t, `/v1/sandbox/${id}/pty`);
	await socket.until((frames) => frames.length > 0);
	assert.deepEqual(socket.frames()[0], { kind: 'text', text: '{"type":"ready"}' });
	await socket.send('binary', "sh -lc 'echo hi'\n");
	await socket.until((frames) => /sh -lc 'echo hi'\r\n[^]*hi\r\n[^]+$/.test(output(frames)));
	await socket.send('text', '{"type":"resize","cols":120,"rows":40}');
	await socket.send('binary', 'stty size\n');
	await socket.until((frames) => output(frames).includes('40 120\r\n'));
	await socket.send('binary', 'exit\n');
	await socket.until(isClosed);
	const frames = socket.frames();
	assert.match(output(frames), /exit\r\n$/);
	assert.deepEqual(frames.slice(-2), [{ kind: 'text', text: '{"type":"exit","code":0}' }, { kind: 'close', code: 1000, reason: frames.at(-1).reason }]);
	assert.equal(frames.filter(({ kind }) => kind === 'text').length, 2);
});

test('/terminals/:tid/connect', async (t) => {
	const body = JSON.stringify({ argv: ['sh', '-lc', 'printf ready; read line; printf "received:%s" "$line"'] });
	const other = newId();
	const { json: own } = await call(`${server.url}/v1/sandbox/${other}/terminals`, 'POST', { headers: auth, body });
	const socket = await upgrade(t, `/v1/sandbox/${other}/terminals/${own.id}/connect`);
	await socket.until((frames) => output(frames) === 'ready');
	await socket.send('binary', 'hello\n');
	await socket.until(isClosed);

	const seen = socket.frames().map(({ kind, text, code, reason }) => (kind === 'close' ? `close ${code} ${JSON.stringify(reason)}` : `${kind} ${text.replace(/"cursor":"[A-Za-z0-9_-]+"/, '"cursor":C')}`));
	assert.equal(seen[0], 'text {"type":"ready"}');
	assert.deepEqual(seen.slice(-2), ['text {"type":"exit","cursor":C,"exit":{"code":0,"timedOut":false}}', 'close 1000 "Terminal exited"']);
	const middle = seen.slice(1, -2);
	for (let i = 0; i < middle.length; i += 2) assert.equal(middle[i], `text {"type":"chunk","cursor":C,"byteLength":${Buffer.byteLength(middle[i + 1].slice('binary '.length))}}`);
	assert.equal(output(socket.frames()), 'readyhello\r\nreceived:hello');
});

// ---- and the plain answers of sections 1 and 3

test('answers without a stream', async (t) => {
	const cases = [
		['GET /health', '200 OK', 'application/json', '{"ok":true}'],
		['GET /v1/nothing', '404 Not Found', 'text/plain; charset=UTF-8', '404 Not Found'],
		['GET /elsewhere', '404 Not Found', 'text/plain', 'Not Found'],
		['GET /v1/sandbox/foo;rm/running', '400 Bad Request', 'application/json', '{"error":"Invalid sandbox ID format","code":"invalid_request"}'],
		['DELETE /v1/sandbox/zzzz', '204 No Content', undefined, ''],
		['GET /v1/sandbox/zzzz/running', '200 OK', 'application/json', '{"running":false}'],
		['GET /v1/sandbox/zzzz/processes', '200 OK', 'application/json', '[]'],
	];
	for (const [request, status, type, body] of cases) {
		const wire = await send(t, `${request} HTTP/1.1\nAuthorization: Bearer K\nConnection: close`);
		const { first, headers, rest } = parseHead(await wire.rest());
		assert.equal(first, `HTTP/1.1 ${status}`, request);
		assert.deepEqual(header(headers, 'Content-Type'), type ? [type] : [], request);
		assert.equal(rest.toString(), body, request);
	}
	const wire = await send(t, `GET /v1/sandbox/${id}/running HTTP/1.1\nConnection: close`);
	const { first, headers, rest } = parseHead(await wire.rest());
	assert.equal(first, 'HTTP/1.1 401 Unauthorized');
	assert.deepEqual(header(headers, 'WWW-Authenticate'), []);
	assert.equal(rest.toString(), '{"error":"Unauthorized","code":"unauthorized"}');
});
