// legacy.test.mjs - POST /read and /write, the file routes of the oldest dialect (API 3.8, 3.9).
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import http from 'node:http';
import { join } from 'node:path';
import { rmSync, writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';

import { Wire, assertError, call, newId, sh } from './lib/client.mjs';
import { Server, cannotServe, memoryOf, programs, scratchDir } from './lib/server.mjs';

const skip = cannotServe();
const MiB = 1 << 20;
const limit = 33_554_432;

describe('read and write of the legacy dialect', { skip }, () => {
	let server, base;

	before(async () => {
		server = await Server.start();
		base = server.url;
	});
	after(() => server?.stop());

	const at = (id, what, prefix = '') => `${base}${prefix}/v1/sandbox/${id}/${what}`;
	const read = (id, body, headers = {}, prefix = '') => call(at(id, 'read', prefix), 'POST', { body: typeof body === 'string' ? body : JSON.stringify(body), headers });
	function form(fields) {
		const data = new FormData();
		for (const [name, value] of fields) {
			if (value instanceof Uint8Array) data.append(name, new Blob([value], { type: 'text/html' }), 'name.bin');
			else data.append(name, value);
		}
		return data;
	}
	const write = (id, fields, headers = {}, prefix = '') => call(at(id, 'write', prefix), 'POST', { body: fields instanceof FormData ? fields : form(fields), headers });

	test('what was written is read, byte by byte', async () => {
		const id = newId();
		const bytes = randomBytes(300_000);
		assert.deepEqual((await write(id, [['path', 'a/b.bin'], ['file', bytes]])).json, { ok: true });
		const answer = await fetch(at(id, 'read'), { method: 'POST', body: JSON.stringify({ path: '/workspace/a/b.bin' }) });
		assert.equal(answer.status, 200);
		assert.equal(answer.headers.get('content-type'), 'application/octet-stream');
		assert.deepEqual(Buffer.from(await answer.arrayBuffer()), bytes);
		assert.equal((await sh(base, id, 'stat -c %U:%a a/b.bin')).out, 'sandbox:644\n');
	});

	test('fields in any order, text parts, other fields, empty files', async () => {
		const id = newId();
		for (const [name, fields] of [
			['f1', [['file', Buffer.from('first')], ['path', 'f1']]],
			['f2', [['other', 'x'], ['path', './f2'], ['other', 'y'], ['file', 'text'], ['more', 'z']]],
			['f3', [['path', '/workspace/f3'], ['file', Buffer.alloc(0)]]],
			['f4', [['file', ''], ['path', 'f4']]],
			['f5', [['path', 'f5'], ['file', 'one'], ['file', 'two'], ['path', 'f6']]],
		]) {
			assert.deepEqual((await write(id, fields)).json, { ok: true }, name);
		}
		assert.equal((await sh(base, id, 'cat f1 f2 f5; wc -c < f3; wc -c < f4; ls f6 2>&1 | wc -l')).out, 'firsttextone0\n0\n1\n');
	});

	test("curl's -F works", async (t) => {
		const id = newId();
		const dir = scratchDir('curl');
		writeFileSync(join(dir, 'up'), 'from curl');
		const run = spawnSync('curl', ['-sS', '-F', 'path=c/f', '-F', `file=@${join(dir, 'up')}`, at(id, 'write')]);
		rmSync(dir, { recursive: true });
		if (run.error) return t.skip('curl is missing');
		assert.equal(run.stdout.toString(), '{"ok":true}');
		assert.equal((await read(id, { path: 'c/f' })).text, 'from curl');
	});

	test('the body may be cut anywhere', async () => {
		const id = newId();
		const body = '--B\r\nContent-Disposition: form-data; name="file"\r\n\r\n\r\n--B no\r\n\r\n--\r\r\n--B\r\nContent-Disposition: form-data; name="path"\r\n\r\ncut\r\n--B--\r\n'.replace('--B no', '--A no');
		for (let cut = 1; cut < body.length; cut += process.env.TOMBOLO_FULL ? 1 : 7) {
			const wire = await Wire.open(server.port);
			await wire.send(`POST /v1/sandbox/${id}/write HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=B\r\nTransfer-Encoding: chunked\r\n\r\n`);
			for (const piece of [body.slice(0, cut), body.slice(cut)]) await wire.send(`${piece.length.toString(16)}\r\n${piece}\r\n`);
			await wire.send('0\r\n\r\n');
			assert.equal((await wire.response()).status, 200, `cut at ${cut}`);
			wire.close();
			assert.equal((await read(id, { path: 'cut' })).text, '\r\n--A no\r\n\r\n--\r');
		}
	});

	test('what is wrong is told in the order of the contract', async () => {
		const id = newId();
		const bad = { 'Session-Id': 'a b' };
		assertError(await read(id, 'no json', bad), 400, 'invalid_request', 'Invalid JSON body');
		for (const body of [{}, { path: '' }, { path: 5 }, { path: null }, null, [], 7]) assertError(await read(id, body, bad), 400, 'invalid_request', 'path must be a non-empty string');
		for (const path of ['/etc/passwd', '../etc', '/workspacex', '/workspace/../x']) assertError(await read(id, { path }, bad), 403, 'invalid_request', 'within /workspace');
		assertError(await read(id, { path: 'f' }, bad), 400, 'invalid_request', 'Invalid session ID format');
		assertError(await read(id, { path: 'missing' }), 404, 'workspace_read_not_found', 'File not found: /workspace/missing');
		assertError(await read(id, { path: '.' }), 404, 'workspace_read_not_found');
		assertError(await read(id, { path: 'a\0b' }), 400, 'invalid_request');

		const file = ['file', Buffer.from('x')];
		for (const [body, type] of [['x', 'text/plain'], ['x', 'multipart/form-data'], ['x', 'multipart/form-data; boundary=B'], ['', 'multipart/form-data; boundary=B'], ['--B\r\nContent-Disposition: form-data; name="path"\r\n\r\nf\r\n', 'multipart/form-data; boundary=B'], ['{}', 'application/json']])
			assertError(await call(at(id, 'write'), 'POST', { body, headers: { 'Content-Type': type, ...bad } }), 400, 'invalid_request', 'Invalid multipart body');
		assertError(await write(id, [file], bad), 400, 'invalid_request', 'path must be a non-empty string');
		assertError(await write(id, [['path', ''], file], bad), 400, 'invalid_request', 'path must be a non-empty string');
		assertError(await write(id, [['path', '/etc/x']], bad), 400, 'invalid_request', 'file');
		assertError(await write(id, [['path', '/etc/x'], file], bad), 403, 'invalid_request', 'within /workspace');
		assertError(await write(id, [file, ['path', '../x']], bad), 403, 'invalid_request', 'within /workspace');
		assertError(await write(id, [['path', 'x'], file], bad), 400, 'invalid_request', 'Invalid session ID format');
		assertError(await write(id, [['path', `${'x'.repeat(5000)}`], file]), 400, 'invalid_request', 'too long');
		await sh(base, id, 'mkdir d');
		assertError(await write(id, [['path', 'd'], file]), 502, 'workspace_archive_write_error', 'write failed');
		assert.equal((await sh(base, id, 'ls -A')).out, 'd\n');
	});

	test('a file of exactly the limit is taken, one byte more is not, wherever the path comes', async () => {
		const id = newId();
		for (const order of ['path first', 'file first']) {
			const fields = (size) => (order === 'path first' ? [['path', 'f'], ['file', Buffer.alloc(size, 'x')]] : [['file', Buffer.alloc(size, 'y')], ['path', 'f']]);
			assert.deepEqual((await write(id, fields(limit))).json, { ok: true }, order);
			assert.equal((await sh(base, id, 'wc -c < f')).out, `${limit}\n`);
			assertError(await write(id, fields(limit + 1)), 413, 'payload_too_large', `exceeds the ${limit}-byte limit`);
			assert.equal((await sh(base, id, 'wc -c < f; ls -A')).out, `${limit}\nf\n`);
		}
	});

	test('large files pass with flat memory; a form that breaks off leaves the old file', { timeout: 120_000 }, async () => {
		const free = await Server.start({ flags: ['--file-limit', '0'] });
		try {
			const id = newId();
			const size = (process.env.TOMBOLO_FULL ? 512 : 96) * MiB;
			const piece = randomBytes(MiB);
			const digest = createHash('sha256');
			const front = programs(free.pid)['tombolo-front'];
			let peak = 0;
			const head = '--B\r\nContent-Disposition: form-data; name="path"\r\n\r\nbig\r\n--B\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n';
			const options = { method: 'POST', headers: { 'Content-Type': 'multipart/form-data; boundary=B' } };
			const status = await new Promise((done, failed) => {
				const request = http.request(`${free.url}/v1/sandbox/${id}/write`, options, (response) => response.resume().on('end', () => done(response.statusCode)));
				let sent = 0;
				const more = () => {
					for (; sent < size; ) {
						sent += piece.length;
						digest.update(piece);
						peak = Math.max(peak, memoryOf(front));
						if (!request.write(piece)) return;
					}
					request.off('drain', more);
					request.end('\r\n--B--\r\n');
				};
				request.on('error', failed).on('drain', more);
				request.write(head);
				more();
			});
			assert.equal(status, 200);
			assert.equal((await sh(free.url, id, 'sha256sum < big')).out, `${digest.digest('hex')}  -\n`);
			assert.ok(peak < 50 * MiB, `the front took ${peak >> 20} MiB`);

			const before = (await sh(free.url, id, 'sha256sum < big')).out;
			const broken = http.request(`${free.url}/v1/sandbox/${id}/write`, options);
			broken.on('error', () => {});
			broken.write(head);
			await new Promise((done) => broken.write(piece, done));
			broken.destroy();
			const unfinished = await call(`${free.url}/v1/sandbox/${id}/write`, 'POST', { body: `${head}no end`, headers: options.headers });
			assertError(unfinished, 400, 'invalid_request', 'Invalid multipart body');
			assert.equal((await sh(free.url, id, 'sha256sum < big')).out, before);
		} finally {
			await free.stop();
		}
	});

	test('only legacy and union have them', async () => {
		const id = newId();
		for (const prefix of ['/stable', '/preview', '/next']) {
			assert.equal((await read(id, { path: 'f' }, {}, prefix)).status, 404);
			assert.equal((await write(id, [['path', 'f'], ['file', 'x']], {}, prefix)).status, 404);
		}
		assert.equal((await write(id, [['path', 'f'], ['file', 'x']], {}, '/legacy')).status, 200);
		assert.equal((await read(id, { path: 'f' }, {}, '/legacy')).text, 'x');
	});
});
