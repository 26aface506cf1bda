// GET and PUT /v1/sandbox/:id/file/*: API.md 3.6, 3.7 and 4.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { assertError, call, eventually, newId, sh, startExec, Wire } from './lib/client.mjs';
import { memoryOf, programs, Server } from './lib/server.mjs';

const LIMIT = 33554432;
let server, url, id;

before(async () => {
	server = await Server.start();
	url = server.url;
	id = newId();
});

after(() => server?.stop());

const at = (path, sandbox = id) => `${url}/v1/sandbox/${sandbox}/file/${path}`;
const put = (path, body, headers) => call(at(path), 'PUT', { body, headers });
const sha = (bytes) => createHash('sha256').update(bytes).digest('hex');

async function getBytes(path, headers) {
	const answer = await fetch(at(path), { headers });
	return { status: answer.status, headers: answer.headers, bytes: Buffer.from(await answer.arrayBuffer()) };
}

// ---- paths

test('an empty path is 400, no slash at all is another route', async () => {
	assertError(await call(at('')), 400, 'invalid_request', 'file path must not be empty');
	assert.equal((await call(`${url}/v1/sandbox/${id}/file`)).status, 404);
});

test('a path outside of /workspace is 403', async () => {
	for (const path of ['etc/passwd', 'workspacex/a', 'tmp/x', '%2e%2e%2fetc/passwd', 'workspace/%2e%2e%2fetc', 'workspace%2F..%2Fetc%2Fpasswd', 'workspace/../tmp/x'])
		for (const method of ['GET', 'PUT'])
			assertError(await call(at(path), method, method === 'PUT' ? { body: 'x' } : {}), 403, 'invalid_request', 'within /workspace');
});

test('the path is judged before the session id', async () => {
	assertError(await call(at('etc/x'), 'GET', { headers: { 'Session-Id': '/' } }), 403, 'invalid_request');
	assertError(await call(at('workspace/x'), 'GET', { headers: { 'Session-Id': '/' } }), 400, 'invalid_request', 'Invalid session ID format');
});

test('next has no sessions: whatever Session-Id says, it is ignored', async () => {
	const path = `${url}/next/v1/sandbox/${id}/file/workspace/of-next`, headers = { 'Session-Id': 'a/..' };
	assert.equal((await call(path, 'PUT', { body: 'x', headers })).status, 200);
	assert.equal((await call(path, 'GET', { headers })).text, 'x');
	assert.equal((await call(path.replace('/next', ''), 'GET', { headers: { 'Session-Id': '' } })).text, 'x', 'an empty one is none');
});

test('a NUL in the path is 400', async () => {
	assertError(await call(at('workspace/a%00b')), 400, 'invalid_request');
});

test('names are decoded exactly once', async () => {
	const names = { 'a%20b': 'a b', 'a+b': 'a+b', 'a%2Bb': 'a+b', 'a%40b': 'a@b', '100%25': '100%', 'a%2520': 'a%20', '%E2%82%AC': '€', 'x%3Fy%23z': 'x?y#z', "q'%22": 'q\'"', 'bad%zz': 'bad%zz', 'tail%': 'tail%' };
	for (const [sent, name] of Object.entries(names)) {
		const wire = await Wire.open(server.port);
		await wire.send(`PUT /v1/sandbox/${id}/file/workspace/names/${sent} HTTP/1.1\r\nHost: x\r\nContent-Length: ${Buffer.byteLength(name)}\r\n\r\n${name}`);
		assert.equal((await wire.response()).status, 200, sent);
		wire.close();
		assert.equal((await sh(url, id, 'cat -- "names/$N"', { env: { N: name } })).out, name);
	}
});

// ---- sizes

for (const size of [0, 1, 4095, 4096, 4097, 65535, 65536, 131072, 1048576, LIMIT]) {
	test(`${size} bytes go in and come out`, async () => {
		const bytes = randomBytes(size);
		const answer = await put('workspace/sized', bytes, { 'Content-Type': 'whatever/it-is' });
		assert.equal(answer.status, 200, answer.text);
		assert.deepEqual(answer.json, { ok: true });
		assert.equal((await sh(url, id, 'stat -c %s sized; sha256sum < sized')).out, `${size}\n${sha(bytes)}  -\n`);
		const back = await getBytes('workspace/sized');
		assert.equal(back.status, 200);
		assert.equal(back.headers.get('content-type'), 'application/octet-stream');
		assert.ok(back.bytes.equals(bytes));
	});
}

test('one byte more than the limit is 413, and says how many there were', async () => {
	await put('workspace/whole', 'old');
	const answer = await put('workspace/whole', Buffer.alloc(LIMIT + 1));
	assertError(answer, 413, 'payload_too_large', `${LIMIT + 1} bytes exceeds the ${LIMIT}-byte limit`);
	assert.equal((await getBytes('workspace/whole')).bytes.toString(), 'old');
});

test('a chunked body may have any size up to the limit', async () => {
	const pieces = Array.from({ length: 37 }, (_, i) => randomBytes(i * 1000));
	const stream = () => new ReadableStream({ start: (c) => { pieces.forEach((p) => p.length && c.enqueue(p)); c.close(); } });
	assert.equal((await put('workspace/chunked', stream())).status, 200);
	assert.ok((await getBytes('workspace/chunked')).bytes.equals(Buffer.concat(pieces)));
});

test('a chunked body that grows past the limit is 413 and leaves nothing', async () => {
	const wire = await Wire.open(server.port);
	const piece = `100000\r\n${'x'.repeat(0x100000)}\r\n`;
	await wire.send(`PUT /v1/sandbox/${id}/file/workspace/flood HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`);
	for (let i = 0; i < 33; i++) wire.socket.write(piece);
	assert.equal((await wire.response()).status, 413);
	wire.close();
	assert.equal((await getBytes('workspace/flood')).status, 404);
	assert.equal((await sh(url, id, 'ls -A | grep -c flood')).out, '0\n');
});

// ---- reading

test('a missing file is 404 and is named', async () => {
	assertError(await call(at('workspace/none/such')), 404, 'workspace_read_not_found', 'File not found: /workspace/none/such');
});

test('what is no regular file is 404, and holds nobody up', async () => {
	await sh(url, id, 'mkdir -p dir; mkfifo fifo 2>/dev/null; ln -sf loop loop; ln -sf /dev/zero zero');
	for (const path of ['workspace/dir', 'workspace/fifo', 'workspace', 'workspace/dir/', 'workspace/loop', 'workspace/zero'])
		assert.ok([404, 502].includes((await call(at(path))).status), path);
	assert.equal((await call(at('workspace/dir'))).json.code, 'workspace_read_not_found');
});

test('a file that may not be read is 502 with the reason', async () => {
	await sh(url, id, 'echo secret > shut; chmod 0 shut');
	assertError(await call(at('workspace/shut')), 502, 'exec_transport_error', 'read failed: ');
});

test('the body is the file and nothing else', async () => {
	for (const body of ['data: {"x":1}\n\n', '\0\xff', '{"error":"x"}']) {
		await put('workspace/tricky', Buffer.from(body, 'latin1'));
		assert.equal((await getBytes('workspace/tricky')).bytes.toString('latin1'), body);
	}
});

test('a single range is honoured', async () => {
	await put('workspace/digits', '0123456789');
	for (const [range, status, text, content] of [
		['bytes=0-3', 206, '0123', 'bytes 0-3/10'], ['bytes=4-', 206, '456789', 'bytes 4-9/10'], ['bytes=-2', 206, '89', 'bytes 8-9/10'],
		['bytes=8-100', 206, '89', 'bytes 8-9/10'], ['bytes=9-9', 206, '9', 'bytes 9-9/10'], ['bytes=-100', 206, '0123456789', 'bytes 0-9/10'],
	]) {
		const part = await getBytes('workspace/digits', { Range: range });
		assert.equal(part.status, status, range);
		assert.equal(part.bytes.toString(), text, range);
		assert.equal(part.headers.get('content-range'), content, range);
	}
	assert.equal((await getBytes('workspace/digits', { Range: 'bytes=10-' })).status, 416);
	for (const odd of ['bytes=3-1', 'lines=1-2', 'bytes=a-b', 'bytes=0-1,3-4', 'bytes=']) {
		const whole = await getBytes('workspace/digits', { Range: odd });
		assert.ok(whole.status === 200 ? whole.bytes.toString() === '0123456789' : whole.status === 416, odd);
	}
});

test('files of /proc that claim to be empty do no harm', async () => {
	await sh(url, id, 'ln -sf /proc/self/status claims');
	assert.ok([200, 404, 502].includes((await call(at('workspace/claims'))).status));
});

// ---- writing

test('missing parents are made, new files are 0644, both belong to the user', async () => {
	assert.equal((await put('workspace/a/b/c/new', 'x')).status, 200);
	assert.equal((await sh(url, id, 'stat -c "%a %u" a/b/c/new; stat -c %u a a/b; id -u')).out, '644 1000\n1000\n1000\n1000\n');
});

test('an existing file keeps its mode', async () => {
	await sh(url, id, 'echo old > tool; chmod 751 tool');
	await put('workspace/tool', 'new');
	assert.equal((await sh(url, id, 'stat -c %a tool; cat tool')).out, '751\nnew');
});

test('a file is replaced at once: readers see the old or the new one', async () => {
	const [a, b] = [Buffer.alloc(500_000, 'a'), Buffer.alloc(500_000, 'b')];
	await put('workspace/swap', a);
	let writing = true;
	const writer = (async () => {
		for (let i = 0; i < 30; i++) await put('workspace/swap', i % 2 ? a : b);
		writing = false;
	})();
	while (writing) {
		const { bytes } = await getBytes('workspace/swap');
		assert.ok(bytes.equals(a) || bytes.equals(b), 'a mixture was read');
	}
	await writer;
});

test('a client that breaks off leaves the old file whole and no other', async () => {
	await put('workspace/steady', 'old');
	for (let i = 0; i < 5; i++) {
		const wire = await Wire.open(server.port);
		await wire.send(`PUT /v1/sandbox/${id}/file/workspace/steady HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n${'n'.repeat(500_000)}`);
		wire.close();
	}
	await eventually(async () => (await sh(url, id, 'ls -A | grep -v "^steady$" | grep -c steady; ls -A | grep -c "^\\.[^.].*tmp"')).out === '0\n0\n', 'temporary files are gone');
	assert.equal((await getBytes('workspace/steady')).bytes.toString(), 'old');
});

test('a target that cannot be written is 502 with the reason', async () => {
	await sh(url, id, 'mkdir -p target locked; chmod 500 locked; echo f > plain');
	for (const path of ['workspace/target', 'workspace/locked/x', 'workspace/plain/x'])
		assertError(await put(path, 'x'), 502, 'workspace_archive_write_error', 'write failed: ');
});

// ---- symlinks are judged by the sandbox's own kernel

test('a symlink inside is followed, for reading and writing', async () => {
	await sh(url, id, 'echo there > real; ln -sf real link; mkdir -p d; ln -sfn d dl');
	assert.equal((await getBytes('workspace/link')).bytes.toString(), 'there\n');
	assert.equal((await put('workspace/link', 'new')).status, 200);
	assert.equal((await put('workspace/dl/f', 'f')).status, 200);
	assert.equal((await sh(url, id, 'cat real d/f; readlink link')).out, 'newfreal\n');
});

test('a symlink to the outside shows the sandbox\'s own file, never the host\'s', async () => {
	const { readFileSync } = await import('node:fs');
	await sh(url, id, 'ln -sf /etc/shadow shadow; ln -sf /proc/1/root/etc/passwd p1; ln -sf ../../../../../../etc/hostname up; ln -sf /etc/passwd users');
	for (const name of ['shadow', 'p1']) assert.ok([404, 502].includes((await call(at(`workspace/${name}`))).status), name);
	const users = await getBytes('workspace/users');
	if (users.status === 200) assert.ok(!users.bytes.equals(readFileSync('/etc/passwd')));
	const hostname = await getBytes('workspace/up');
	if (hostname.status === 200) assert.notEqual(hostname.bytes.toString(), readFileSync('/etc/hostname', 'utf8'));
});

test('a symlink raced against a directory never leads out of the sandbox', async () => {
	const racer = startExec(url, id, ['sh', '-c', 'mkdir -p r1; echo inside > r1/passwd; echo go; while [ ! -e stop ]; do ln -sfn r1 race; ln -sfn /etc race; done']);
	await racer.begun;
	await racer.saw('go\n');
	const { readFileSync } = await import('node:fs');
	const host = readFileSync('/etc/passwd');
	for (let i = 0; i < 100; i++) {
		const { status, bytes } = await getBytes('workspace/race/passwd');
		assert.ok(status !== 200 || !bytes.equals(host), 'the host\'s file was read');
	}
	await put('workspace/stop', '');
	await racer.done;
});

// ---- volume

test('a large file is served in flat memory', async () => {
	await sh(url, id, 'head -c 300000000 /dev/zero > big');
	const front = programs(server.pid)['tombolo-front'];
	const before = memoryOf(front);
	let peak = 0, total = 0;
	for await (const piece of (await fetch(at('workspace/big'))).body) {
		total += piece.length;
		peak = Math.max(peak, memoryOf(front));
	}
	assert.equal(total, 300000000);
	assert.ok(peak - before < 8 << 20, `the front grew by ${peak - before} bytes`);
	await sh(url, id, 'rm big');
});

test('with the limit raised a large file is taken in flat memory', async () => {
	const roomy = await Server.start({ flags: ['--file-limit', '0'] });
	try {
		const box = newId();
		await sh(roomy.url, box, 'true');
		const front = programs(roomy.pid)['tombolo-front'];
		const before = memoryOf(front);
		const piece = Buffer.alloc(1 << 20, 7);
		let peak = 0;
		const status = await new Promise((done, failed) => {
			const request = http.request(`${roomy.url}/v1/sandbox/${box}/file/workspace/big`, { method: 'PUT' }, (response) => response.resume().on('end', () => done(response.statusCode)));
			request.on('error', failed);
			let left = 200;
			const more = () => {
				while (left > 0) {
					left--;
					peak = Math.max(peak, memoryOf(front));
					if (!request.write(piece)) return request.once('drain', more);
				}
				request.end();
			};
			more();
		});
		assert.equal(status, 200);
		assert.equal((await sh(roomy.url, box, 'stat -c %s big')).out, `${200 << 20}\n`);
		assert.ok(peak - before < 8 << 20, `the front grew by ${peak - before} bytes`);
	} finally {
		await roomy.stop();
	}
});

test('?mode= is the mode of a new file; what is no mode counts for nothing', async () => {
	for (const mode of ['755', '600', '4755', '9', '', '-1'])
		assert.equal((await put(`workspace/modes/m${mode}?mode=${mode}`, 'x')).status, 200);
	assert.equal((await sh(url, id, 'cd modes; stat -c "%n %a" *')).out, 'm 644\nm-1 644\nm4755 644\nm600 600\nm755 755\nm9 644\n');
});
