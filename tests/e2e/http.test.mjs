// The conversation itself: order of checks, keys, framing, and what strangers may send. API.md 1.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { assertError, call, eventually, exec, newId, sh, startExec, Wire } from './lib/client.mjs';
import { fdCount, programs, Server } from './lib/server.mjs';

const KEY = 'k3y-of-this-test';
const bearer = { Authorization: `Bearer ${KEY}` };
let open, locked; // a server without a key and one with

before(async () => {
	[open, locked] = await Promise.all([Server.start(), Server.start({ env: { SANDBOX_API_KEY: KEY } })]);
});

after(async () => {
	await Promise.all([open, locked].map((server) => server?.stop()));
});

const get = (target, more = '') => `GET ${target} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;

async function raw(bytes, server = open) {
	const wire = await Wire.open(server.port);
	await wire.send(bytes);
	const response = await wire.response();
	wire.close();
	return { ...response, text: response.body.toString(), json: tryJson(response.body) };
}

function tryJson(bytes) {
	try {
		return JSON.parse(bytes);
	} catch {
		return undefined;
	}
}

// ---- order of checks

test('health says ok without a key', async () => {
	for (const server of [open, locked]) {
		const answer = await call(`${server.url}/health`);
		assert.equal(answer.status, 200);
		assert.equal(answer.type, 'application/json');
		assert.equal(answer.json.ok, true);
	}
});

test('a bad id is 400 before the key is asked for', async () => {
	for (const id of ['BAD', 'foo;rm', 'abc1', 'a%62c', 'a'.repeat(129), '~', 'a:b'])
		assertError(await call(`${locked.url}/v1/sandbox/${id}/running`), 400, 'invalid_request', 'Invalid sandbox ID format');
	assertError(await call(`${locked.url}/v1/sandbox/BAD/zzz`, 'PATCH'), 400, 'invalid_request', 'Invalid sandbox ID format');
});

test('the key is asked for before the route is looked for', async () => {
	for (const path of ['/v1/sandbox/abc/zzz', '/v1/sandbox/abc', '/v1/sandbox', '/v1/sandbox/'])
		assertError(await call(locked.url + path, 'PATCH'), 401, 'unauthorized', 'Unauthorized');
});

test('the key is asked for before the body is judged', async () => {
	assertError(await call(`${locked.url}/v1/sandbox/${newId()}/exec`, 'POST', { body: '{' }), 401, 'unauthorized');
});

test('an unknown route or method below /v1 is a plain 404', async () => {
	for (const [method, path] of [['PATCH', '/v1/sandbox/abc/zzz'], ['GET', '/v1/sandbox/abc/exec'], ['POST', '/v1/sandbox/abc/exec/'], ['GET', '/v1/sandbox/'], ['OPTIONS', '/v1/sandbox'], ['GET', '/v1/nothing'], ['PUT', '/v1/sandbox']]) {
		const answer = await call(locked.url + path, method, { headers: bearer });
		assert.equal(answer.status, 404, `${method} ${path}`);
		assert.equal(answer.text, '404 Not Found');
		assert.equal(answer.type, 'text/plain; charset=UTF-8');
	}
});

test('a path outside of /v1 is 404 Not Found', async () => {
	const answer = await call(`${open.url}/favicon.ico`);
	assert.equal(answer.status, 404);
	assert.equal(answer.text, 'Not Found');
});

test('dot segments are resolved before routing, also when they are encoded', async () => {
	const id = newId();
	const health = await raw(get('/v1/../health'));
	assert.equal(health.status, 200);
	assert.equal((await raw(get('/v1/%2e%2E/health'))).status, 200);
	assert.equal((await raw(get(`/v1/sandbox/BAD/../${id}/running`))).json.running, false);
	const climbed = await raw(get(`/v1/sandbox/${id}/file/workspace/../tmp/x`));
	assert.equal(climbed.status, 403);
	assert.equal(climbed.json.code, 'invalid_request');
});

test('a profile prefix is stripped', async () => {
	const id = newId();
	assert.equal((await call(`${open.url}/next/v1/sandbox/${id}/exec`, 'POST', { body: '{"argv":["true"]}' })).status, 404);
	assert.equal((await exec(open.url, id, ['true'], { path: `/stable/v1/sandbox/${id}/exec` })).code, 0);
});

test('HEAD is answered like GET without a body', async () => {
	const wire = await Wire.open(open.port);
	await wire.send('HEAD /health HTTP/1.1\r\nHost: x\r\n\r\n');
	const head = await wire.response({ head: true });
	assert.equal(head.status, 200);
	await wire.send(get('/health'));
	assert.equal((await wire.response()).status, 200, 'the connection is still in step');
	wire.close();
});

// ---- keys

test('the scheme may be spelled in any case, the key may not', async () => {
	const running = (value) => call(`${locked.url}/v1/sandbox/abc/running`, 'GET', { headers: { Authorization: value } });
	for (const good of [`Bearer ${KEY}`, `bearer ${KEY}`, `BEARER ${KEY}`]) assert.equal((await running(good)).status, 200, good);
	for (const bad of [`Bearer ${KEY}x`, `Bearer ${KEY.toUpperCase()}`, `Bearer  ${KEY}`, `Basic ${KEY}`, KEY, 'Bearer ', `Bearer ${KEY.slice(0, -1)}`])
		assertError(await running(bad), 401, 'unauthorized', 'Unauthorized');
	assert.equal((await running(`Bearer x`)).headers.get('www-authenticate'), null);
});

test('an id needs the key too', async () => {
	assertError(await call(`${locked.url}/v1/sandbox`, 'POST'), 401, 'unauthorized');
	assert.match((await call(`${locked.url}/v1/sandbox`, 'POST', { headers: bearer })).json.id, /^[a-z2-7]{24}$/);
});

test('a key that is sent where none is wanted does no harm', async () => {
	assert.equal((await call(`${open.url}/v1/sandbox/abc/running`, 'GET', { headers: bearer })).status, 200);
});

test('the log holds neither the key nor a wrong key', async () => {
	await call(`${locked.url}/v1/sandbox/abc/running`, 'GET', { headers: { Authorization: 'Bearer sesame-open' } });
	await call(`${locked.url}/v1/openapi.json?token=${KEY}`);
	assert.ok(!locked.output.includes(KEY));
	assert.ok(!locked.output.includes('sesame-open'));
});

// ---- framing

test('requests on one connection are answered in order, also when sent at once', async () => {
	const wire = await Wire.open(open.port);
	await wire.send(get('/health') + get('/nowhere') + get('/v1/sandbox/abc/running') + get('/health'));
	const seen = [];
	for (let i = 0; i < 4; i++) seen.push((await wire.response()).status);
	assert.deepEqual(seen, [200, 404, 200, 200]);
	wire.close();
});

test('a request that follows an exec waits for its end', async () => {
	const wire = await Wire.open(open.port);
	const body = JSON.stringify({ argv: ['sh', '-c', 'echo one; sleep 0.1; echo two'] });
	await wire.send(`POST /v1/sandbox/${newId()}/exec HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}${get('/health')}`);
	const first = await wire.response();
	assert.match(first.body.toString(), /event: exit\ndata: \{[^\n]*"exit_code":0/);
	assert.equal((await wire.response()).json ?? 200, 200);
	wire.close();
});

test('a chunked request body is read whole', async () => {
	const body = '{"argv":["echo","hi"]}';
	const id = newId();
	const chunks = [...body].map((c) => `1\r\n${c}\r\n`).join('');
	const answer = await raw(`POST /v1/sandbox/${id}/exec HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`);
	assert.equal(answer.status, 200);
	assert.match(answer.text, /^event: stdout\ndata: aGkK\n\n/);
});

test('100 Continue comes before the body is sent', async () => {
	const wire = await Wire.open(open.port);
	const body = '{"argv":["true"]}';
	await wire.send(`POST /v1/sandbox/${newId()}/exec HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`);
	assert.equal((await wire.response()).status, 100);
	await wire.send(body);
	assert.equal((await wire.response()).status, 200);
	wire.close();
});

test('a request that is refused gets its answer instead of 100 Continue', async () => {
	const wire = await Wire.open(locked.port);
	await wire.send('PUT /v1/sandbox/abc/file/workspace/x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n');
	assert.equal((await wire.response()).status, 401);
	wire.close();
});

test('HTTP/1.0 gets its answer and a close', async () => {
	const wire = await Wire.open(open.port);
	await wire.send('GET /health HTTP/1.0\r\n\r\n');
	assert.match((await wire.rest()).toString(), /^HTTP\/1\.[01] 200 /);
});

test('Connection: close is honoured', async () => {
	const wire = await Wire.open(open.port);
	await wire.send(get('/health', 'Connection: close\r\n'));
	assert.match((await wire.rest()).toString(), /"ok":\s*true/);
});

test('a half-closed socket still gets its answer', async () => {
	const wire = await Wire.open(open.port);
	const body = '{"argv":["sh","-c","sleep 0.1; echo late"]}';
	await wire.send(`POST /v1/sandbox/${newId()}/exec HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
	wire.finish();
	assert.match((await wire.rest()).toString(), /bGF0ZQo=[^]*"exit_code":0/);
});

test('an unread body on POST /v1/sandbox does no harm', async () => {
	const wire = await Wire.open(open.port);
	await wire.send('POST /v1/sandbox HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\nnot json at ');
	const answer = await wire.response();
	assert.equal(answer.status, 200);
	await wire.send(get('/health'));
	assert.equal((await wire.response()).status, 200);
	wire.close();
});

// ---- what strangers send

const smuggling = {
	'both lengths': 'POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG',
	'two different lengths': 'POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!',
	'a negative length': 'POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n',
	'a length with a sign': 'POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello',
	'a length beyond all numbers': 'POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n',
	'an unknown transfer coding': 'POST /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
	'chunked not last': 'POST /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n',
	'chunked on HTTP/1.0': 'POST /health HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
	'a bare CR that hides a header': 'GET /health HTTP/1.1\r\nHost: x\r\nA: b\rTransfer-Encoding: chunked\r\n\r\n',
	'bare LF line ends': 'GET /health HTTP/1.1\nHost: x\n\n',
	'a folded header': 'GET /health HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n',
	'a NUL in a header': 'GET /health HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n',
	'a blank before the colon': 'GET /health HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\nhello',
	'no Host': 'GET /health HTTP/1.1\r\n\r\n',
	'two Hosts': 'GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n',
	'HTTP/0.9': 'GET /health\r\n\r\n',
	'HTTP/2 preface': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
	'a TLS hello': Buffer.from('16030100a5010000a10303', 'hex'),
	'garbage': Buffer.from([0, 255, 13, 10, 13, 10, 1, 2, 3]),
	'a chunk size that is no number': 'POST /v1/sandbox/abc/exec HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
};

for (const [name, bytes] of Object.entries(smuggling)) {
	test(`${name}: 400 or a close, and nothing of it is taken for a second request`, async () => {
		const wire = await Wire.open(open.port);
		await wire.send(bytes);
		if (typeof bytes !== 'string' || name === 'HTTP/0.9') wire.finish();
		const all = (await wire.rest()).toString('latin1');
		const statuses = [...all.matchAll(/HTTP\/1\.[01] (\d{3})/g)].map((m) => m[1]);
		assert.ok(statuses.length <= 1, all);
		for (const status of statuses) assert.match(status, /^(400|431|501|505)$/);
		wire.close();
		assert.equal((await call(`${open.url}/health`)).status, 200, 'others are served');
	});
}

test('an oversize head is 431 and a close', async () => {
	const wire = await Wire.open(open.port);
	await wire.send(get('/health', `A: ${'x'.repeat(200_000)}\r\n`));
	assert.match((await wire.rest()).toString(), /^HTTP\/1\.1 431 /);
});

test('an oversize request line is refused with a 4xx and a close', async () => {
	const wire = await Wire.open(open.port);
	await wire.send(get(`/${'x'.repeat(200_000)}`));
	assert.match((await wire.rest()).toString(), /^HTTP\/1\.1 (414|431) /);
});

test('a sender of one byte at a time is served', async () => {
	const wire = await Wire.open(open.port);
	for (const c of get('/health')) await wire.send(c);
	assert.equal((await wire.response()).status, 200);
	wire.close();
});

test('clients that vanish in the middle of things cost nothing', async () => {
	const front = programs(open.pid)['tombolo-front'];
	const id = newId();
	await sh(open.url, id, 'true');
	const before = fdCount(front);
	for (let i = 0; i < 50; i++) {
		const wire = await Wire.open(open.port);
		await wire.send(['GET /hea', `POST /v1/sandbox/${id}/exec HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"argv"`, `PUT /v1/sandbox/${id}/file/workspace/f HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc`, ''][i % 4]);
		wire.close();
	}
	await eventually(() => fdCount(front) <= before, 'the descriptors of lost clients are closed');
	assert.equal((await call(`${open.url}/health`)).status, 200);
});

test('200 idle connections keep nobody else waiting', async () => {
	const idle = await Promise.all(Array.from({ length: 200 }, () => Wire.open(open.port)));
	const run = await sh(open.url, newId(), 'echo hi');
	assert.equal(run.out, 'hi\n');
	for (const wire of idle) wire.close();
});

test('keep-alive connections are reused after every kind of answer', async () => {
	const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
	const id = newId();
	const sockets = new Set();
	for (const [path, method, body] of [['/health', 'GET'], [`/v1/sandbox/${id}/running`, 'GET'], [`/v1/sandbox/${id}/exec`, 'POST', '{}'], [`/v1/sandbox/${id}/exec`, 'POST', '{"argv":["true"]}'], [`/v1/sandbox/${id}/file/workspace/f`, 'PUT', 'x'], [`/v1/sandbox/${id}/file/workspace/f`, 'GET'], [`/v1/sandbox/${id}/file/workspace/none`, 'GET'], [`/v1/sandbox/${id}`, 'DELETE'], ['/nowhere', 'GET']])
		await new Promise((done, failed) => {
			const request = http.request(open.url + path, { method, agent, headers: body ? { 'Content-Length': body.length } : {} }, (response) => {
				sockets.add(response.socket.localPort);
				response.resume().on('end', done);
			});
			request.on('error', failed).end(body);
		});
	agent.destroy();
	assert.equal(sockets.size, 1);
});

test('an exec that nobody reads stops the program, not the server', async () => {
	const id = newId();
	const run = startExec(open.url, id, ['yes']);
	await run.begun;
	run.response.pause();
	assert.equal((await sh(open.url, newId(), 'echo fine')).out, 'fine\n');
	assert.equal((await call(`${open.url}/v1/sandbox/${id}`, 'DELETE')).status, 204);
	run.request.destroy();
});
