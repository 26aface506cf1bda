// archives.test.mjs - persist and hydrate (API 3.10, 3.11; CLIENTS P29 to P32, J19, J20). Hostile archives are made by hand.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';

import { assertError, call, eventually, newId, sh, Wire } from './lib/client.mjs';
import { Server, cannotServe, memoryOf, programs, scratchDir } from './lib/server.mjs';
import { header, members, pax, read, tar } from './lib/tar.mjs';

const skip = cannotServe();
const full = Boolean(process.env.TOMBOLO_FULL);
const MiB = 1 << 20;

describe('archives', { skip }, () => {
	let server, base;

	before(async () => {
		server = await Server.start({ flags: ['--hydrate-limit', '0', '--instance', 'lite'] });
		base = server.url;
	});
	after(() => server?.stop());

	const url = (id, what, query = '', prefix = '') => `${base}${prefix}/v1/sandbox/${id}/${what}${query}`;
	const hydrate = (id, body, query = '') => call(url(id, 'hydrate', query), 'POST', { body, headers: { 'Content-Type': 'application/octet-stream' } });
	async function persist(id, query = '', prefix = '') {
		const answer = await fetch(url(id, 'persist', query, prefix), { method: 'POST' });
		const bytes = Buffer.from(await answer.arrayBuffer());
		assert.equal(answer.status, 200, bytes.toString('latin1').slice(0, 300));
		assert.equal(answer.headers.get('content-type'), 'application/octet-stream');
		return bytes;
	}
	const out = async (id, script) => {
		const run = await sh(base, id, script);
		assert.equal(run.code, 0, run.err);
		return run.out;
	};
	/** A sandbox with limits of its own. */
	const sandboxWith = async (limits) => (await call(`${base}/v1/sandbox`, 'POST', { body: JSON.stringify({ limits }) })).json.id;
	/** An archive of COUNT empty files. */
	const many = (count) => tar(Array.from({ length: count }, (_, i) => ({ name: `many/${i}` })));
	const names = (bytes) => read(bytes).map(({ name }) => name).sort();
	/** What a tree looks like, for comparing two. */
	const listing = (id) => out(id, "cd /workspace && find . -printf '%p %y %m %l %T@\\n' | sort && find . -type f -exec sha256sum {} + | sort");

	test('an empty workspace is an archive of its root', async () => {
		const bytes = await persist(newId());
		assert.deepEqual(read(bytes).map(({ name, type }) => [name, type]), [['./', '5']]);
	});

	test('C069 modes, times, links, odd names and empty directories come back as they were', async () => {
		const id = newId();
		await out(
			id,
			[
				'cd /workspace; mkdir -p d/empty "sp ace"; echo hi > d/f; chmod 755 d/f; chmod 1777 "sp ace"; chmod 2750 d; chmod 600 d/f',
				'printf x > "-dash"; printf x > "quo\'te\\"s"; printf x > "new\nline"; printf x > "$(printf \'\\377\\376bytes\')"; printf x > ünï',
				': > zero; ln -s d/f link; ln -s /etc/passwd out; ln -s gone dangling; ln d/f hard',
				'n=$(printf %200s | tr " " n); mkdir -p $n/$n/$n; echo deep > $n/$n/$n/f; ln -s $n/$n/$n/f long',
				'touch -d @1600000000.5 zero; touch -d @1500000000 d/empty; mkfifo fifo; chmod 0755 d/f',
			].join('\n'),
		);
		const bytes = await persist(id);
		const list = read(bytes);
		assert.equal(list[0].name, './');
		assert.ok(!list.some(({ name }) => name === './fifo'), 'a fifo is in it');
		assert.equal(list.find(({ name }) => name === './hard').data.toString(), 'hi\n');
		const other = newId();
		assert.deepEqual((await hydrate(other, bytes)).json, { ok: true });
		await out(id, 'rm /workspace/fifo; cd /workspace; rm hard; cp -p d/f hard; touch -d @1600000000 zero; find . ! -type l -exec touch -d @1 {} +');
		await out(other, 'cd /workspace; find . ! -type l -exec touch -d @1 {} +');
		const strip = (text) => text.replace(/ [\d.]+$/gm, (time) => (time.startsWith(' 1.') ? time : ''));
		assert.equal(strip(await listing(other)), strip(await listing(id)));
		assert.equal(await out(other, 'stat -c %U:%a /workspace/d/f'), 'sandbox:755\n');
	});

	test('times are restored', async () => {
		const [id, other] = [newId(), newId()];
		await out(id, 'cd /workspace; mkdir d; echo x > d/f; touch -d @1500000001 d/f; touch -d @1500000002 d');
		await hydrate(other, await persist(id));
		assert.equal(await out(other, 'stat -c %Y /workspace/d/f /workspace/d'), '1500000001\n1500000002\n');
	});

	test('C070 excludes leave out what they name and nothing else', async () => {
		const id = newId();
		await out(id, 'cd /workspace; mkdir -p .git/x a/b/c node_modules/m ab with; touch .git/x/y .gitignore a/b/c/d a/k node_modules/m/n ab/z "with,comma" x.log a/y.log');
		const query = (text) => `?excludes=${text}`;
		assert.deepEqual(names(await persist(id, query('.git,./node_modules,a/b/'))), ['./', './.gitignore', './a/', './a/k', './a/y.log', './ab/', './ab/z', './with,comma', './with/', './x.log']);
		assert.deepEqual(names(await persist(id, query('*.log,/.git,,.%2Fnode_modules,a'))), ['./', './.gitignore', './ab/', './ab/z', './with,comma', './with/']);
		const all = names(await persist(id));
		for (const nothing of ['', '.', './', '/', ',', 'nothing', '.,/'])
			assert.deepEqual(names(await persist(id, query(nothing))), all, `excludes=${nothing}`);
		assert.deepEqual(names(await persist(id, '?root=/etc')), all);
		for (const body of ['{"root":"/etc","excludes":"a"}', 'x'.repeat(3 * MiB)]) {
			const answer = await fetch(url(id, 'persist'), { method: 'POST', body });
			assert.deepEqual(names(Buffer.from(await answer.arrayBuffer())), all, 'a body counts for nothing');
		}
		for (const bad of ['..', 'a/../b', 'a..b', 'x,..', '%2e%2e'])
			assertError(await call(url(id, 'persist', query(bad)), 'POST'), 400, 'invalid_request', 'exclude paths must not contain ".."');
		for (const bad of ['/abs', '.', 'a,/b'])
			assertError(await call(url(id, 'persist', query(bad), '/next'), 'POST'), 502, 'workspace_archive_read_error', 'persist failed');
		assert.equal((await call(url(id, 'persist', query('a'), '/next'), 'POST')).status, 200);
	});

	test('a workspace that changes while it is read is no error', async () => {
		const id = newId();
		await sh(base, id, 'cd /workspace; head -c 4194304 /dev/zero > grows; (while [ ! -e stop ]; do echo more >> grows; echo x > new; rm new; done) >/dev/null 2>&1 &');
		for (let i = 0; i < 5; i++) assert.ok(names(await persist(id)).includes('./grows'));
		await out(id, 'touch /workspace/stop');
	});

	test('what cannot be read makes an honest failure, small or large', async () => {
		const id = newId();
		await out(id, 'cd /workspace; mkdir closed; touch closed/f; chmod 000 closed');
		const small = await call(url(id, 'persist'), 'POST');
		assertError(small, 502, 'workspace_archive_read_error', 'tar failed (exit 2)');
		await out(id, 'cd /workspace; head -c 3000000 /dev/urandom > large; mv closed zz-closed');
		const cut = await new Promise((done) => {
			const request = http.request(url(id, 'persist'), { method: 'POST' }, (response) => {
				let bytes = 0;
				response.on('data', (piece) => (bytes += piece.length));
				response.on('end', () => done({ bytes, status: response.statusCode, whole: true }));
				response.on('error', () => done({ bytes, status: response.statusCode, whole: false }));
			});
			request.on('error', () => done({ whole: false }));
			request.end();
		});
		assert.equal(cut.whole, false, 'an archive that is not whole looked like one');
	});

	test('hydrate: bodies that are no archive', async () => {
		const id = newId();
		assertError(await hydrate(id, undefined), 400, 'invalid_request', 'Empty tar payload');
		assertError(await hydrate(id, ''), 400, 'invalid_request', 'Empty tar payload');
		const wire = await Wire.open(server.port);
		await wire.send(`POST /v1/sandbox/${id}/hydrate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`);
		const empty = await wire.response();
		assert.equal(empty.status, 400);
		assert.match(empty.body.toString(), /Empty tar payload/);
		wire.close();
		assertError(await hydrate(id, 'this is no archive'), 502, 'workspace_archive_write_error', 'tar extract failed (exit 2): ');
		assert.equal((await hydrate(id, Buffer.alloc(1024))).status, 200, 'an empty archive is fine');
	});

	test('hydrate: over what is there, plain and compressed, chunked and whole', async () => {
		const id = newId();
		await out(id, 'cd /workspace; echo old > a; echo stays > b; mkdir d; echo x > d/x');
		const archive = tar([{ name: 'a', data: 'new\n' }, { name: './d/', type: '5', mode: 0o755 }, { name: 'd/run', data: '#!/bin/sh\necho ran\n', mode: 0o755 }, { name: 'h', type: '1', link: 'a' }]);
		for (const body of [archive, gzipSync(archive), new ReadableStream({ start: (c) => { c.enqueue(archive.subarray(0, 700)); c.enqueue(archive.subarray(700)); c.close(); } })]) {
			await out(id, 'cd /workspace; rm -rf h d/run; echo old > a');
			assert.deepEqual((await hydrate(id, body)).json, { ok: true });
			assert.equal(await out(id, 'cd /workspace; cat a b h d/x; d/run; stat -c %U a'), 'new\nstays\nnew\nx\nran\nsandbox\n');
		}
	});

	test('a root in the query of a hydrate means nothing', async () => {
		const id = newId();
		for (const [i, root] of ['/tmp', '/etc', 'd', '..', '/workspace/d', '', '%00', '/no/such'].entries()) {
			assert.deepEqual((await hydrate(id, tar([{ name: `root${i}`, data: root }]), `?root=${root}`)).json, { ok: true });
			assert.equal(await out(id, `cat /workspace/root${i}; find / -xdev -name root${i} 2>/dev/null | wc -l`), `${root}1\n`);
		}
	});

	test('C073 archives of other programs, with records nobody knows', async () => {
		const archive = Buffer.concat([
			members([
				{ name: 'pax_global', type: 'g', data: pax('comment', 'x') },
				{ name: 'PaxHeader/f', type: 'x', data: Buffer.concat([pax('LIBARCHIVE.creationtime', '1.5'), pax('SCHILY.xattr.com.apple.quarantine', 'q\0q'), pax('VENDOR.unknown', 'é')]) },
				{ name: './f', data: 'f' },
				{ name: '._f', data: 'apple' },
				{ name: '././@LongLink', type: 'L', magic: 'ustar  \0', data: `${'l'.repeat(150)}\0` },
				{ name: 'l'.repeat(99), magic: 'ustar  \0', data: 'long' },
				{ name: 'v7', magic: '\0\0\0\0\0\0\0\0', data: 'v7' },
			]),
			Buffer.alloc(1024),
		]);
		const id = newId();
		assert.deepEqual((await hydrate(id, archive)).json, { ok: true });
		assert.equal(await out(id, `cd /workspace; cat f v7 ${'l'.repeat(150)}`), 'fv7long');

		const dir = scratchDir('tars');
		mkdirSync(join(dir, 'in/sub'), { recursive: true });
		writeFileSync(join(dir, 'in/sub', 'n'.repeat(90)), 'data');
		writeFileSync(join(dir, 'in/plain'), 'plain');
		for (const format of ['v7', 'oldgnu', 'gnu', 'ustar', 'posix']) {
			const made = spawnSync('tar', ['cf', '-', `--format=${format}`, '-C', join(dir, 'in'), '.'], { maxBuffer: 1 << 24 });
			assert.equal(made.status, 0, made.stderr.toString());
			const there = newId();
			assert.deepEqual((await hydrate(there, made.stdout)).json, { ok: true }, format);
			assert.equal(await out(there, 'cat /workspace/plain'), 'plain', format);
		}
		rmSync(dir, { recursive: true });
	});

	test('C076 hostile and broken archives leave the old tree as it was, and nothing outside', async () => {
		const id = newId();
		await out(id, 'cd /workspace; mkdir d; echo good > d/f; ln -s /tmp away; echo keep > keep; echo outside > /tmp/target; ln -s /tmp/target to-file');
		const before = await listing(id);
		const good = { name: 'd/f', data: 'evil' };
		const flipped = tar([good, { name: 'second', data: 'x'.repeat(3000) }, { name: 'third', data: 'y' }]);
		flipped[512 * 9 + 3] ^= 0x40;
		for (const [what, body] of [
			['an absolute name', tar([good, { name: '/tmp/evil', data: 'x' }])],
			['a way up', tar([good, { name: 'd/../../tmp/evil', data: 'x' }])],
			['only a way up', tar([{ name: '..', type: '5' }])],
			['a way through a symlink of the archive', tar([good, { name: 'l', type: '2', link: '/tmp' }, { name: 'l/evil', data: 'x' }])],
			['a hard link to the outside', tar([good, { name: 'p', type: '1', link: '/etc/passwd' }])],
			['a hard link up', tar([good, { name: 'p', type: '1', link: '../../etc/passwd' }])],
			['a hard link to nothing', tar([good, { name: 'p', type: '1', link: 'nothing' }])],
			['a device', tar([good, { name: 'null', type: '3', raw: { 329: '0000001\0', 337: '0000003\0' } }])],
			['a pax path up', tar([good, { name: 'x', type: 'x', data: pax('path', '../evil') }, { name: 'fine', data: 'x' }])],
			['a flipped bit in a header', flipped],
			['a cut member', tar([good, { name: 'x', data: 'x'.repeat(5000) }]).subarray(0, 3000)],
			['a cut header', tar([good, { name: 'x' }]).subarray(0, 1024 + 100)],
			['no end', members([good])],
			['a damaged gzip stream', (() => { const z = gzipSync(tar([good, { name: 'r', data: Buffer.from(Array.from({ length: 9999 }, (_, i) => (i * 7919) & 255)) }])); z[z.length >> 1] ^= 0xff; return z; })()],
		]) {
			const answer = await hydrate(id, body);
			assertError(answer, 502, 'workspace_archive_write_error');
			assert.equal(await listing(id), before, what);
			assert.equal(await out(id, 'cat /tmp/target; ls /tmp/evil /workspace/../evil 2>/dev/null; true'), 'outside\n', what);
		}
		const through = await hydrate(id, tar([{ name: 'away/evil', data: 'x' }]));
		assert.equal(await out(id, 'ls /tmp'), 'target\n', `through a symlink of the tree (${through.status})`);
		await hydrate(id, tar([{ name: 'to-file', data: 'replaced' }]));
		assert.equal(await out(id, 'cat /tmp/target'), 'outside\n');
	});

	test('C068 bombs end at the sandbox, soon, and leave the old tree whole', async () => {
		const id = newId();
		await out(id, 'cd /workspace; mkdir d; echo good > d/f');
		const before = await listing(id);
		const huge = members([{ name: 'd/f', data: 'evil' }]);
		const sparse = Buffer.concat([huge, header({ name: 'GNUSparse', type: 'S', magic: 'ustar  \0', size: 0, raw: { 386: '00000000000\0', 398: '00000000000\0', 483: '\x80\0\0\0\0\0\x01\0\0\0\0\0' } }), Buffer.alloc(1024)]);
		const deep = tar([...Array(full ? 10_000 : 2000)].map((_, i) => ({ name: 'x', type: 'x', data: pax('path', 'd/'.repeat(i + 1)) })).flatMap((x) => [x, { name: 'd', type: '5', mode: 0o755 }]));
		const zeros = gzipSync(Buffer.concat([members([{ name: 'd/f', data: 'evil' }]), header({ name: 'zeros', size: 0o77777777777 }), Buffer.alloc(64 * MiB)]));
		for (const [what, body] of [['1 TiB sparse', sparse], ['8 GiB said, 64 MiB sent, gzipped', zeros]]) {
			const answer = await hydrate(id, body);
			if (answer.status !== 200) assertError(answer, 502, 'workspace_archive_write_error');
			if (answer.status !== 200) assert.equal(await listing(id), before, what);
		}
		const answer = await hydrate(id, deep);
		assert.ok([200, 502].includes(answer.status));
		assert.deepEqual((await hydrate(await sandboxWith({ cpu: 1 }), many(full ? 100_000 : 5000))).json, { ok: true });
		assert.ok(memoryOf(programs(server.pid)['tombolo-front']) < 50 * MiB);
	});

	test('C068 more files than the disk takes: the error says so, and the old tree is whole', async (t) => {
		const id = await sandboxWith({ cpu: 1, disk_mb: full ? 2048 : 64 });
		await out(id, 'cd /workspace; mkdir d; echo good > d/f');
		const before = await listing(id);
		const [free, all] = (await out(id, 'df --output=iavail,itotal /workspace | tail -1')).trim().split(/ +/).map(Number);
		if (free === 0 || free > 200_000) {
			t.skip('this host limits no number of files');
			return;
		}
		const answer = await hydrate(id, many(free + 100));
		assertError(answer, 502, 'workspace_archive_write_error', 'tar extract failed (exit 2): ');
		assert.ok(answer.json.error.includes(`the disk takes no more than ${all} files and directories`), answer.json.error);
		assert.equal(await listing(id), before);
		assert.ok(Number(await out(id, 'df --output=iavail /workspace | tail -1')) > free - 100, 'what was staged is gone');
		assert.ok(memoryOf(programs(server.pid)['tombolo-front']) < 50 * MiB);
	});

	test('C068 C130 an archive larger than the disk of the sandbox fails and leaves the old tree', async (t) => {
		const id = await sandboxWith({ disk_mb: 64 });
		await out(id, 'cd /workspace; echo good > f');
		const free = Number(await out(id, 'df --output=avail -B1 /workspace | tail -1'));
		if (free > 128 * MiB) {
			t.skip('this host limits no disk');
			return;
		}
		const size = Math.ceil(free / MiB) * MiB + 16 * MiB;
		const piece = Buffer.alloc(MiB, 'x');
		let sent = 0;
		const answer = await new Promise((done, failed) => {
			const request = http.request(url(id, 'hydrate'), { method: 'POST', headers: { 'Content-Length': size + 2048 } }, (response) => {
				const pieces = [];
				response.on('data', (bytes) => pieces.push(bytes));
				response.on('end', () => done({ status: response.statusCode, text: Buffer.concat(pieces).toString() }));
			});
			request.on('error', failed);
			request.write(header({ name: 'big', size }));
			const more = () => {
				while (sent < size && !request.destroyed) {
					sent += piece.length;
					if (!request.write(piece)) return;
				}
			};
			request.on('drain', more);
			more();
		});
		assert.equal(answer.status, 502, answer.text);
		assert.match(JSON.parse(answer.text).error, /No space left on device/);
		assert.equal(await out(id, 'ls -A /workspace; cat /workspace/f'), 'f\ngood\n');
	});

	test('C071 C072 what persists can be hydrated, with flat memory and without a copy', { timeout: 300_000 }, async () => {
		const [id, other] = [newId(), newId()];
		const size = (full ? 500 : 40) * MiB;
		await out(id, `cd /workspace; head -c ${size} /dev/urandom > big`);
		const answer = await fetch(url(id, 'persist'), { method: 'POST' });
		assert.equal(answer.status, 200);
		const front = programs(server.pid)['tombolo-front'];
		const digest = createHash('sha256');
		let peak = 0;
		const body = answer.body.pipeThrough(new TransformStream({ transform: (piece, c) => { digest.update(piece); peak = Math.max(peak, memoryOf(front)); c.enqueue(piece); } }));
		assert.deepEqual((await hydrate(other, body)).json, { ok: true });
		assert.equal(await out(other, 'sha256sum < /workspace/big'), await out(id, 'sha256sum < /workspace/big'));
		assert.ok(peak < 50 * MiB, `the front took ${peak >> 20} MiB`);
		assert.equal(await out(id, 'ls -A /workspace /tmp | grep -v "^big$\\|:$\\|^$" | wc -l'), '0\n');
	});

	test('the limit of 32 MiB: announced and counted, with its sentence', async () => {
		const limited = await Server.start();
		try {
			const id = newId();
			const at = `${limited.url}/v1/sandbox/${id}/hydrate`;
			const limit = 33_554_432;
			const post = (body, headers) => call(at, 'POST', { body, headers });
			const announced = await post(Buffer.alloc(limit + 1));
			assertError(announced, 400, 'invalid_request', 'tar payload too large: 33554433 bytes exceeds the 33554432-byte limit');
			const wire = await Wire.open(limited.port);
			await wire.send(`POST /v1/sandbox/${id}/hydrate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`);
			for (let i = 0; i < 34; i++) wire.send(Buffer.concat([Buffer.from('100000\r\n'), Buffer.alloc(MiB), Buffer.from('\r\n')]));
			const counted = await wire.response();
			assert.equal(counted.status, 400);
			assert.match(counted.body.toString(), /tar payload too large: \d+ bytes exceeds the 33554432-byte limit/);
			wire.close();
			const fits = tar([{ name: 'x', data: Buffer.alloc(limit - 3 * 512) }]);
			assert.equal(fits.length, limit);
			assert.equal((await post(fits)).status, 200);
		} finally {
			await limited.stop();
		}
	});

	test('C075 a workspace that is missing', async () => {
		const id = newId();
		await sh(base, id, 'rm -rf /workspace/* && cd / && rmdir /workspace');
		const answer = await fetch(url(id, 'persist'), { method: 'POST' });
		const bytes = Buffer.from(await answer.arrayBuffer());
		if (answer.status === 200) assert.deepEqual(names(bytes).filter((name) => name !== './'), []);
		else assert.equal(JSON.parse(bytes).code, 'workspace_archive_read_error');
		assert.deepEqual((await hydrate(id, tar([{ name: 'f', data: 'back' }]))).json, { ok: true });
		assert.equal(await out(id, 'pwd; cat f'), '/workspace\nback');
	});

	test('C085 the files belong to whoever runs commands: git works', async () => {
		const source = newId();
		const has = await sh(base, source, 'command -v git');
		if (has.code !== 0) return;
		await out(source, 'cd /workspace; git init -q r; cd r; echo 1 > f; git add f; git -c user.name=n -c user.email=e commit -qm one');
		const id = newId();
		await hydrate(id, await persist(source));
		await call(`${base}/v1/sandbox/${id}/file/workspace/r/g`, 'PUT', { body: '2' });
		assert.equal(await out(id, 'cd /workspace/r; git status --porcelain; git add g; git -c user.name=n -c user.email=e commit -qm two; git log --oneline | wc -l'), '?? g\n2\n');
	});

	test('a client that leaves in the middle of a hydrate changes nothing and leaves nothing', async () => {
		const id = newId();
		await out(id, 'cd /workspace; echo good > f');
		const request = http.request(url(id, 'hydrate'), { method: 'POST', headers: { 'Content-Length': 10 * MiB } });
		request.on('error', () => {});
		request.write(tar([{ name: 'f', data: 'evil' }, { name: 'x', data: Buffer.alloc(MiB) }]).subarray(0, MiB));
		await eventually(async () => (await sh(base, id, 'ls -A /workspace')).out.includes('.tombolo-'), 'the unpacker at work');
		request.destroy();
		await eventually(async () => (await sh(base, id, 'ls -A /workspace')).out === 'f\n', 'the end of the unpacker');
		assert.equal(await out(id, 'cat /workspace/f'), 'good\n');
	});

	test('a body that breaks off anywhere, also between two members or behind the end mark, changes nothing', async () => {
		const id = newId();
		const whole = tar([{ name: 'f', data: 'evil' }, { name: 'd/g', data: Buffer.alloc(3000, 'g') }, { name: 'h', data: 'evil' }]);
		const all = Buffer.concat([whole, Buffer.alloc(10240 - whole.length)]); // as tar pads it
		const tree = 'cd /workspace; find . | sort; cat f';
		await out(id, 'cd /workspace; echo good > f; mkdir d; echo old > d/h');
		const before = await out(id, tree);
		const marks = [512, 1024, 1536, 1500, 5120, whole.length - 1024, whole.length - 512, whole.length, all.length - 1];
		for (const headers of [{ 'Content-Length': all.length }, { 'Transfer-Encoding': 'chunked' }]) {
			for (const cut of marks) {
				const request = http.request(url(id, 'hydrate'), { method: 'POST', headers });
				request.on('error', () => {});
				request.write(all.subarray(0, cut));
				await eventually(async () => (await out(id, 'ls -A /workspace')).includes('.tombolo-'), `the unpacker at work on ${cut} bytes`);
				request.destroy();
				await eventually(async () => !(await out(id, 'ls -A /workspace')).includes('.tombolo-'), 'the end of the unpacker');
				assert.equal(await out(id, tree), before, `cut after ${cut} of ${all.length} bytes`);
			}
		}
		assert.deepEqual((await hydrate(id, all)).json, { ok: true });
		assert.match(await out(id, tree), /evil/);
	});

	test('a client that leaves in the middle of a persist ends the packer; one that does not read stops it', async () => {
		const id = newId();
		await out(id, 'cd /workspace; head -c 50000000 /dev/zero > big');
		const wire = await Wire.open(server.port);
		wire.socket.pause();
		await wire.send(`POST /v1/sandbox/${id}/persist HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`);
		const packers = async () => Number(await out(id, 'cat /proc/[0-9]*/comm 2>/dev/null | grep -c "^tombolo-tar\\|^3$" || true'));
		await eventually(async () => (await packers()) === 1, 'the packer at work');
		wire.close();
		await eventually(async () => (await packers()) === 0, 'the end of the packer');
	});

	test('64 persists at once', async () => {
		const id = newId();
		await out(id, 'cd /workspace; for i in $(seq 20); do echo $i > $i; done');
		const all = await Promise.all(Array.from({ length: 64 }, () => persist(id)));
		for (const bytes of all) assert.equal(read(bytes).length, 21);
	});
});
