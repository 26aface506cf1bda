// The Python client's checklist, CLIENTS.md 1.1 to 1.3 and 1.5 to 1.7: its requests replayed byte by byte on raw connections, and
// the answers read by a parser as strict as its own, cut at every byte.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { call, eventually, newId } from '../lib/client.mjs';
import { cuts, dumps, execResult, head, Python, quote, serve, streamedPayload } from './lib/python.mjs';
import { entries } from './lib/tar.mjs';

const key = 'sk-self-hosted_0123';
const { server, python, id } = await serve(key);

const at = (path, of = id) => `/v1/sandbox/${of}${path}`;
const file = (path, of = id) => at(`/file/${quote(path.replace(/^\//, ''))}`, of);

/** A connection of a test's own. */
async function another(t, options) {
	const own = await Python.connect(server.port, { key, ...options });
	t.after(() => own.close());
	return own;
}

// ---- transport

test('P1 the requests are those of the library, to the byte', () => {
	const { text, body } = head('POST', '/v1/sandbox/x/exec', { host: 'h:1', key: 'K', json: { argv: ['sh', '-lc', 'echo "é𝄞"'], timeout_ms: 30000 } });
	assert.equal(body.toString(), '{"argv": ["sh", "-lc", "echo \\"\\u00e9\\ud834\\udd1e\\""], "timeout_ms": 30000}');
	assert.equal(text, [
		'POST /v1/sandbox/x/exec HTTP/1.1', 'Host: h:1', 'Authorization: Bearer K', 'Accept: */*', 'Accept-Encoding: gzip, deflate',
		'User-Agent: Python/3.12 aiohttp/3.12.15', `Content-Length: ${body.length}`, 'Content-Type: application/json', '', '',
	].join('\r\n'));
});

test('P1 the key on every request; without it, or with another one, 401 in JSON', async (t) => {
	for (const wrong of [undefined, 'sk-other', `${key}x`, key.slice(1)]) {
		const stranger = await another(t, { key: wrong });
		for (const [method, path] of [['POST', '/v1/sandbox'], ['GET', at('/running')], ['POST', at('/exec')], ['DELETE', at('')], ['GET', file('workspace/x')]]) {
			const answer = await stranger.ask(method, path);
			assert.equal(answer.status, 401, `${method} ${path}`);
			assert.deepEqual(answer.json, { error: 'Unauthorized', code: 'unauthorized' });
		}
	}
	assert.equal((await python.ask('GET', at('/running'))).json.running, true);
});

test('P1 a base URL with a prefix', async (t) => {
	const own = await another(t, { base: '/stable' });
	assert.equal((await own.sh(id, 'echo prefixed')).stdout.toString(), 'prefixed\n');
});

test('P4 errors are JSON with error and code', async () => {
	const refused = await python.ask('POST', at('/exec'), { json: { argv: [] } });
	assert.equal(refused.status, 400);
	assert.deepEqual([typeof refused.json.error, refused.json.code], ['string', 'invalid_request']);
	const failed = await python.ask('POST', at('/hydrate'), { bytes: Buffer.from('no archive') });
	assert.equal(failed.status, 502);
	assert.ok(failed.json.error.length < 2000);
});

test('P5 JSON answers are of the type application/json', async () => {
	for (const [method, path, content] of [['POST', '/v1/sandbox'], ['GET', at('/running')], ['PUT', file('workspace/p5'), { bytes: Buffer.from('x') }]]) {
		const answer = await python.ask(method, path, content);
		assert.equal(answer.status, 200);
		assert.equal(answer.headers['content-type'], 'application/json');
	}
});

test('P6 one connection for everything, kept alive', async (t) => {
	const own = await another(t);
	for (let i = 0; i < 20; i++) {
		assert.equal((await own.sh(id, `echo ${i}`)).stdout.toString(), `${i}\n`);
		assert.equal((await own.ask('PUT', file('workspace/p6'), { bytes: Buffer.from(`${i}`) })).status, 200);
		assert.equal((await own.ask('GET', file('workspace/p6'))).body.toString(), `${i}`);
	}
	assert.equal(own.wire.ended, false);
});

test('P6 many at once; an exec is dropped right after its exit', async (t) => {
	const all = await Promise.all(Array.from({ length: 30 }, () => another(t)));
	await Promise.all(all.map(async (own, i) => {
		await own.send('POST', at('/exec'), { json: { argv: ['sh', '-lc', `echo ${i}`], timeout_ms: 30_000 } });
		await own.wire.until((bytes) => bytes.includes('event: exit'));
		own.close();
	}));
	assert.equal((await python.sh(id, 'echo still here')).stdout.toString(), 'still here\n');
});

// ---- life cycle

test('P7 create: no body, 200, an id', async () => {
	const answer = await python.ask('POST', '/v1/sandbox');
	assert.equal(answer.status, 200);
	assert.match(answer.json.id, /^[a-z2-7]{24}$/);
});

test('P8 the first command of a new sandbox', async () => {
	const { json } = await python.ask('POST', '/v1/sandbox');
	const made = await python.exec(json.id, ['mkdir', '-p', '--', '/workspace']);
	assert.deepEqual([made.code, made.stdout.length, made.stderr.length], [0, 0, 0]);
	assert.equal((await python.exec(json.id, ['test', '-d', '/workspace'])).code, 0);
	assert.equal((await python.ask('DELETE', at('', json.id))).status, 204);
});

test('P9 shutdown: 204, also a second time and for a stranger', async () => {
	const { json } = await python.ask('POST', '/v1/sandbox');
	await python.exec(json.id, ['true']);
	for (const of of [json.id, json.id, newId()]) {
		const answer = await python.ask('DELETE', at('', of));
		assert.equal(answer.status, 204);
		assert.equal(answer.body.length, 0);
	}
});

test('P10 running: true from create to DELETE, then false', async () => {
	const { json } = await python.ask('POST', '/v1/sandbox');
	const running = async () => {
		const answer = await python.ask('GET', at('/running', json.id));
		assert.equal(answer.status, 200);
		return answer.json.running;
	};
	assert.equal(await running(), true);
	await python.sh(json.id, 'echo state > f');
	assert.equal(await running(), true);
	await python.ask('DELETE', at('', json.id));
	assert.equal(await running(), false);
});

// ---- exec

test('P11 the forms of argv', async () => {
	const environment = { B: 'two words', A: "it's", Z_LAST: 'ü=1' };
	const plain = await python.sh(id, 'printf "%s|" "$0" "$A" "$B" "$Z_LAST"; pwd', { environment });
	assert.equal(plain.stdout.toString().split('|').slice(1).join('|'), "it's|two words|ü=1|/workspace\n");
	const direct = await python.exec(id, ['printf', '%s\n', 'a b', '$HOME', '', "q'q", '*', 'tab\there', 'é']);
	assert.equal(direct.stdout.toString(), "a b\n$HOME\n\nq'q\n*\ntab\there\né\n");
	assert.equal((await python.exec(id, ['echo', 'x'], { environment: { K: 'v' } })).stdout.toString(), 'x\n');
});

test('P11 with a user: sudo', async (t) => {
	if ((await python.sh(id, 'command -v sudo')).code !== 0) return t.skip('this host has no sudo');
	const asOther = await python.exec(id, ['sudo', '-u', 'nobody', '--', 'id', '-un']);
	assert.equal(asOther.stdout.toString(), 'nobody\n');
});

test('P12 400 is final, 401 and 404 carry their codes', async () => {
	assert.equal((await python.ask('POST', at('/exec'), { json: {} })).status, 400);
	assert.equal((await python.ask('POST', '/v1/sandbox/UPPER/exec', { json: { argv: ['true'] } })).status, 400);
	assert.equal((await python.ask('POST', at('/no-such-route'), { json: {} })).status, 404);
});

test('P13 streams cut at every byte give the same result', async () => {
	for (const [command, wanted] of [
		['printf "naïve ☃ 𝄞"; printf "größer" >&2; exit 3', { stdout: 'naïve ☃ 𝄞', stderr: 'größer', code: 3 }],
		['printf "\\000\\377\\376"; printf "\\303" >&2', { stdout: Buffer.from([0, 255, 254]), stderr: Buffer.from([0xc3]), code: 0 }],
		['printf "event: exit\\ndata: {}\\n\\n\\r\\r\\n"', { stdout: 'event: exit\ndata: {}\n\n\r\r\n', stderr: '', code: 0 }],
		['exit 255', { stdout: '', stderr: '', code: 255 }],
	]) {
		const { raw } = await python.sh(id, command);
		assert.ok(raw.every((byte) => byte < 0x80), 'not ASCII');
		for (const pieces of cuts(raw)) {
			const got = execResult(pieces);
			assert.deepEqual({ ...got }, { code: wanted.code, stdout: Buffer.from(wanted.stdout), stderr: Buffer.from(wanted.stderr) });
		}
	}
});

test('P13 the same with CR or CRLF for LF, with comments, ids and retries in between', async () => {
	const { raw } = await python.sh(id, 'printf "☃"; exit 4');
	const extended = raw.toString().replace(/^event:/gm, ': keepalive\n\nid: 7\nretry: 10\nevent:');
	for (const ending of ['\n', '\r\n', '\r'])
		for (const pieces of cuts(Buffer.from(extended.replaceAll('\n', ending))))
			assert.deepEqual([execResult(pieces).code, execResult(pieces).stdout.toString()], [4, '☃'], JSON.stringify(ending));
});

test('P13 an error event is ASCII whatever the message says', async () => {
	const answer = await python.ask('POST', at('/exec'), { json: { argv: ['true'], cwd: '/workspace/ключ/𝄞' } });
	assert.equal(answer.status, 200);
	assert.ok(answer.body.every((byte) => byte < 0x80), answer.body.toString());
	for (const pieces of cuts(answer.body)) assert.throws(() => execResult(pieces), /ключ/);
});

test('P14 every stream ends with exit or error, also one whose sandbox is deleted', async (t) => {
	const { json } = await python.ask('POST', '/v1/sandbox');
	const own = await another(t);
	await own.send('POST', at('/exec', json.id), { json: { argv: ['sh', '-lc', 'echo begun; sleep 300'], timeout_ms: 300_000 } });
	await own.wire.until((bytes) => bytes.includes('event: stdout'));
	await python.ask('DELETE', at('', json.id));
	const { body } = await own.wire.response();
	assert.throws(() => execResult([body]), (error) => {
		assert.match(error.message, /^exec failed: /);
		assert.equal(error.partial.stdout.toString(), 'begun\n');
		return true;
	});
});

test('P15 P16 the server\'s own 124 comes before the client gives up', async () => {
	const begun = performance.now();
	const stubborn = await python.sh(id, "trap '' TERM; echo deaf; while :; do sleep 1; done", { timeout_ms: 1000 });
	assert.equal(stubborn.code, 124);
	assert.equal(stubborn.stdout.toString(), 'deaf\n');
	assert.match(stubborn.stderr.toString(), /Command timed out after 1000ms\n$/);
	assert.ok(performance.now() - begun < 1000 + 5000, 'later than the client waits');
	assert.equal((await python.sh(id, 'exit 124')).code, 124);
});

// ---- files

test('P26 names with every character that needs escaping', async () => {
	for (const name of ['a b', 'ä/☃', '100%', 'x%2Fy', 'q?x&y=z', 'h#h', 'a+b', "it's", 'semi;colon:at@', '~tilde', '[b]{c}', '\\back', 'new\nline', 'é'.normalize('NFD')]) {
		const content = randomBytes(64);
		assert.equal((await python.ask('PUT', file(`/workspace/names/${name}`), { bytes: content })).status, 200, name);
		assert.deepEqual((await python.ask('GET', file(`/workspace/names/${name}`))).body, content, name);
		assert.equal((await python.exec(id, ['test', '-f', `/workspace/names/${name}`])).code, 0, name);
	}
});

test('P26 404, 403 and nothing else', async () => {
	const missing = await python.ask('GET', file('/workspace/none'));
	assert.deepEqual([missing.status, missing.json.code], [404, 'workspace_read_not_found']);
	assert.equal((await python.ask('GET', file('/workspace'))).status, 404);
	for (const path of ['/etc/passwd', '/tmp/x']) {
		const outside = await python.ask('GET', file(path));
		assert.deepEqual([outside.status, outside.json.code], [403, 'invalid_request']);
	}
});

test('P27 bodies that look like the envelope are served raw; what the client makes of them is its own affair', async () => {
	for (const content of ['data: {', 'data: {"a":1}\n\n', 'data: {"type":"other"}\n\nmore', 'data: {"type":"chunk","data":"x"}\n\n', 'data: {broken\n\n']) {
		await python.ask('PUT', file('/workspace/like'), { bytes: Buffer.from(content) });
		const answer = await python.ask('GET', file('/workspace/like'));
		assert.equal(answer.headers['content-type'], 'application/octet-stream');
		assert.equal(answer.body.toString(), content);
		assert.equal(streamedPayload(answer.body).toString(), content);
	}
	const envelope = 'data: {"type":"metadata","isBinary":false}\n\ndata: {"type":"chunk","data":"x"}\n\n';
	await python.ask('PUT', file('/workspace/like'), { bytes: Buffer.from(envelope) });
	const { body } = await python.ask('GET', file('/workspace/like'));
	assert.equal(body.toString(), envelope);
	assert.throws(() => streamedPayload(body), /without complete/);
});

test('P28 PUT: 200 only; empty files, new directories, any bytes', async () => {
	for (const [path, content] of [['/workspace/new/deep/er/file', randomBytes(100_000)], ['/workspace/new/empty', Buffer.alloc(0)], ['/workspace/new/empty', Buffer.from('now not')]]) {
		const put = await python.ask('PUT', file(path), { bytes: content });
		assert.equal(put.status, 200, put.body.toString());
		const got = await python.ask('GET', file(path));
		assert.equal(got.status, 200);
		assert.deepEqual(got.body, content);
	}
});

// ---- persist and hydrate

test('P29 persist: excludes joined and encoded, a raw archive', async () => {
	const { json } = await python.ask('POST', '/v1/sandbox');
	await python.sh(json.id, 'mkdir -p keep skip/deep mnt; echo k > keep/k; echo s > skip/deep/s; echo m > mnt/m; ln keep/k keep/hard');
	const answer = await python.ask('POST', at(`/persist?excludes=${quote(['mnt', 'skip'].join(','), '')}`, json.id));
	assert.equal(answer.status, 200, answer.body.toString());
	assert.equal(answer.headers['content-type'], 'application/octet-stream');
	const members = entries(streamedPayload(answer.body));
	assert.deepEqual(members.map(({ name }) => name).sort(), ['./', './keep/', './keep/hard', './keep/k']);
	assert.ok(members.every(({ type }) => type === '0' || type === '5'));
});

test('P30 P32 stop and resume: persist, clear, hydrate, and all is as it was', async () => {
	const { json: first } = await python.ask('POST', '/v1/sandbox');
	await python.sh(first.id, 'mkdir -p a/b; head -c 100000 /dev/urandom > a/b/random; ln -s b/random a/link; printf x > "a/ü name"; chmod 755 "a/ü name"; touch .hidden');
	const sum = "find . -type f -exec sha256sum {} + | sort; find . -printf '%p %m %y %l\\n' | sort";
	const was = await python.sh(first.id, sum);
	const { body: archive } = await python.ask('POST', at('/persist', first.id));
	await python.ask('DELETE', at('', first.id));

	const { json: second } = await python.ask('POST', '/v1/sandbox');
	await python.sh(second.id, 'mkdir old; touch old/gone "old file"');
	const listed = await python.exec(second.id, ['ls', '-la', '--', '/workspace']);
	const names = listed.stdout.toString().split('\n').slice(1, -1).map((row) => row.split(/\s+/).slice(8).join(' ')).filter((name) => name !== '.' && name !== '..');
	assert.deepEqual(names.sort(), ['old', 'old file']);
	for (const name of names) assert.equal((await python.exec(second.id, ['rm', '-rf', '--', `/workspace/${name}`])).code, 0);
	const hydrated = await python.ask('POST', at('/hydrate', second.id), { bytes: archive });
	assert.deepEqual([hydrated.status, hydrated.json], [200, { ok: true }]);
	assert.equal((await python.sh(second.id, sum)).stdout.toString(), was.stdout.toString());
});

test('P30 an empty archive body is 400', async () => {
	const empty = await python.ask('POST', at('/hydrate'), { bytes: Buffer.alloc(0) });
	assert.deepEqual([empty.status, empty.json.error], [400, 'Empty tar payload']);
});

// ---- mounts

test('P31 P33 P34 mount and unmount: the reason is in error', async () => {
	const body = { bucket: 'my-bucket', mountPath: '/workspace/mnt', options: { endpoint: 'http://127.0.0.1:1', readOnly: true, prefix: '/x/', credentials: { accessKeyId: 'a', secretAccessKey: 'b' } } };
	const mount = await python.ask('POST', at('/mount'), { json: body });
	assert.deepEqual([mount.status, mount.json.code], [502, 'mount_error']);
	assert.match(mount.json.error, /^mount failed: ./);
	const unmount = await python.ask('POST', at('/unmount'), { json: { mountPath: '/workspace/mnt' } });
	assert.deepEqual([unmount.status, unmount.json.code], [502, 'unmount_error']);
	assert.match(unmount.json.error, /No active mount found/);
});

test('the JSON writer escapes as the library does', () => {
	assert.equal(dumps({ a: [1, true, null, '\u007f\u2028"\\\n'] }), '{"a": [1, true, null, "\\u007f\\u2028\\"\\\\\\n"]}');
});
