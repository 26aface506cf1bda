// @openai/agents-extensions: the published client drives a live server. CLIENTS.md section 2; what it does without a model.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { dir, file, Manifest, SandboxProviderError, SandboxWorkspaceReadNotFoundError } from '@openai/agents-core/sandbox';
import { CloudflareSandboxClient } from '@openai/agents-extensions/sandbox/cloudflare';
import { call, eventually, sh } from '../lib/client.mjs';
import { Server } from '../lib/server.mjs';
import { trickle } from './lib/trickle.mjs';

const key = 'key?&=+%2B/in.it';
let server, client, session;

before(async () => {
	server = await Server.start({ env: { SANDBOX_API_KEY: key } });
	client = new CloudflareSandboxClient({ workerUrl: server.url, apiKey: key });
	session = await client.create({ manifest: new Manifest({ environment: { GREETING: "it's ü" } }) });
});

after(() => server?.stop());

const auth = { Authorization: `Bearer ${key}` };
const text = (bytes) => Buffer.from(bytes).toString();

/** The parts of what the client tells a model. */
function parts(answer) {
	const [head, ...rest] = answer.split('Output:\n');
	const number = (pattern) => (pattern.test(head) ? Number(pattern.exec(head)[1]) : undefined);
	return { code: number(/exited with code (-?\d+)/), session: number(/session ID (\d+)/), output: rest.join('Output:\n') };
}

const run = async (cmd, more) => parts(await session.execCommand({ cmd, ...more }));

/** Types CHARS and reads on until TEXT came; ^Q asks for more, for it means nothing to a terminal that is not stopped. */
async function typed(number, chars, wanted) {
	let output = '';
	await eventually(async () => {
		output += parts(await session.writeStdin({ sessionId: number, chars: output ? '\x11' : chars })).output;
		return output.includes(wanted);
	}, `'${wanted}' came`);
	return output;
}

/** Reads on until the program has ended. */
async function finish(update, from = session) {
	let { output, session: number, code } = update;
	while (number !== undefined) {
		const next = parts(await from.writeStdin({ sessionId: number, chars: '', yieldTimeMs: 250 }));
		output += next.output;
		({ session: number, code } = next);
	}
	return { output, code };
}

/** A session of a test's own, deleted at its end. */
async function withSession(t, options = {}, manifest = new Manifest()) {
	const own = await client.create({ manifest, options });
	t.after(() => own.close());
	return own;
}

// ---- life cycle

test('J4 create: any option the client has is accepted, the id is of the contract', async (t) => {
	const own = await withSession(t, { exposedPorts: [8080], timeoutMs: 20_000, createTimeoutMs: 60_000, requestTimeoutMs: 60_000 });
	assert.match(own.state.sandboxId, /^[a-z2-7]{24}$/);
	assert.equal(await own.running(), true);
});

test('J1 J2 a wrong key: create is refused, in the words the client shows', async () => {
	const stranger = new CloudflareSandboxClient({ workerUrl: server.url, apiKey: 'wrong' });
	await assert.rejects(stranger.create({ manifest: new Manifest() }), (error) => {
		assert.ok(error instanceof SandboxProviderError);
		assert.match(error.message, /unauthorized: Unauthorized/);
		return true;
	});
});

test('J3 a base URL with a prefix selects the dialect', async (t) => {
	for (const profile of ['union', 'stable', 'legacy']) {
		const prefixed = new CloudflareSandboxClient({ workerUrl: `${server.url}/${profile}`, apiKey: key });
		const own = await prefixed.create({ manifest: new Manifest() });
		t.after(() => own.close());
		assert.equal(parts(await own.execCommand({ cmd: 'echo $((6*7))' })).output.trim(), '42');
		const { session: number } = parts(await own.execCommand({ cmd: 'tty', tty: true, yieldTimeMs: 250 }));
		const { code } = await finish(parts(await own.writeStdin({ sessionId: number, chars: 'exit 4\n' })), own);
		assert.equal(code, 4);
	}
});

test('J5 the manifest: files and directories are written, its environment is that of each command', async (t) => {
	const own = await withSession(t, {}, new Manifest({
		entries: { 'notes/todo.txt': file({ content: 'buy milk — ☕\n' }), data: dir({ children: { 'a b.bin': file({ content: new Uint8Array([0, 255, 10]) }) } }) },
		environment: { LEVEL: '7' },
	}));
	assert.equal(text(await own.readFile({ path: 'notes/todo.txt' })), 'buy milk — ☕\n');
	assert.deepEqual([...(await own.readFile({ path: 'data/a b.bin' }))], [0, 255, 10]);
	assert.equal(parts(await own.execCommand({ cmd: 'echo $LEVEL; pwd' })).output.trim(), '7\n/workspace');
});

test('J5 a manifest that cannot be applied: the sandbox is deleted again', async () => {
	const manifest = new Manifest({ entries: { file: file({ content: 'x' }), 'file/below': file({ content: 'y' }) } });
	const before = await call(`${server.url}/v1/pool/stats`, 'GET', { headers: auth });
	await assert.rejects(client.create({ manifest, concurrencyLimits: { manifestEntries: 1 } }));
	const after = await call(`${server.url}/v1/pool/stats`, 'GET', { headers: auth });
	assert.equal(after.json.assigned, before.json.assigned);
});

test('J6 resume: true while it lives, also before its first command; a deleted one is gone', async () => {
	const own = await client.create({ manifest: new Manifest() });
	await own.execCommand({ cmd: 'echo kept > kept' });
	const again = await client.resume(own.state);
	assert.equal(await again.running(), true);
	assert.equal(text(await again.readFile({ path: 'kept' })), 'kept\n');
	await again.close();
	assert.equal(await own.running(), false);
	await assert.rejects(client.resume(own.state), /no longer running/);

	const { json } = await call(`${server.url}/v1/sandbox`, 'POST', { headers: auth });
	assert.equal((await client.resume({ ...own.state, sandboxId: json.id })).state.sandboxId, json.id);
});

test('J7 close twice is no error', async () => {
	const own = await client.create({ manifest: new Manifest() });
	await own.close();
	await own.close();
	await own.delete();
});

// ---- commands

test('J8 J9 J10 exec: both streams, the exit code, the environment, the directory', async () => {
	const { code, output } = await run('echo out; echo err >&2; echo "$GREETING"; exit 7');
	assert.equal(code, 7);
	assert.equal(output, "out\nit's ü\nerr");
	await session.execCommand({ cmd: 'mkdir -p "a dir/ü"' });
	assert.equal((await run('pwd', { workdir: 'a dir/ü' })).output, '/workspace/a dir/ü');
	const missing = await run('pwd', { workdir: 'none' });
	assert.notEqual(missing.code, 0);
	assert.match(missing.output, /none/);
});

test('J8 timeout_ms: 124 and its line', async (t) => {
	const own = await withSession(t, { timeoutMs: 700 });
	const { code, output } = parts(await own.execCommand({ cmd: 'echo before; sleep 60' }));
	assert.equal(code, 124);
	assert.equal(output, 'before\nCommand timed out after 700ms');
});

test('J9 text of many bytes a character is whole in every event', async () => {
	const { code, output } = await run(`awk 'BEGIN { for (i = 0; i < 40000; i++) printf "%s", (i % 3 ? "€" : "𝄞ä") }'`);
	assert.equal(code, 0);
	assert.ok(!output.includes('\ufffd'), 'a character was cut');
	assert.equal(output.trim(), Array.from({ length: 40_000 }, (_, i) => (i % 3 ? '€' : '𝄞ä')).join(''));
});

test('J9 a stream cut at every byte', async (t) => {
	const proxy = await trickle(server.port);
	t.after(() => proxy.close());
	const slow = new CloudflareSandboxClient({ workerUrl: proxy.url, apiKey: key });
	const own = await slow.resume({ ...session.state, workerUrl: proxy.url });
	const { code, output } = parts(await own.execCommand({ cmd: 'printf "naïve ☃ 𝄞\\n"; echo "größer" >&2; exit 5' }));
	assert.equal(code, 5);
	assert.equal(output, 'naïve ☃ 𝄞\ngrößer');
	assert.equal(await own.running(), true);
});

test('J9 a sandbox that is deleted under a command: the error event throws', async () => {
	const own = await client.create({ manifest: new Manifest() });
	const running = own.execCommand({ cmd: 'touch begun; sleep 300' });
	running.catch(() => {}); // looked at below
	await eventually(() => own.pathExists('begun'), 'the command has begun');
	await own.close();
	await assert.rejects(running, (error) => {
		assert.match(JSON.stringify(error.details ?? error.context ?? error), /exec_transport_error/);
		return true;
	});
});

test('J8 dozens at once', async () => {
	const all = await Promise.all(Array.from({ length: 24 }, (_, i) => run(`echo n$((${i} * 2)); exit ${i}`)));
	all.forEach(({ code, output }, i) => assert.deepEqual([code, output], [i, `n${i * 2}`]));
});

// ---- files

test('J11 J15 as another user, from root: su, and base64 for reading', async (t) => {
	const asRoot = await Server.start({ flags: ['--user', 'root'] });
	t.after(() => asRoot.stop());
	const own = await new CloudflareSandboxClient({ workerUrl: asRoot.url }).create({ manifest: new Manifest() });
	const whoIs = async (runAs) => parts(await own.execCommand({ cmd: 'id -un', runAs }));
	assert.deepEqual({ ...(await whoIs('root')), session: 0 }, { code: 0, session: 0, output: 'root' });
	assert.deepEqual({ ...(await whoIs('nobody')), session: 0 }, { code: 0, session: 0, output: 'nobody' });
	await own.execCommand({ cmd: 'printf seen > for-all; chmod 644 for-all; printf no > for-none; chmod 600 for-none' });
	assert.equal(text(await own.readFile({ path: 'for-all', runAs: 'nobody' })), 'seen');
	await assert.rejects(own.readFile({ path: 'for-none', runAs: 'nobody' }), /denied/);
	assert.equal(await own.pathExists('for-all', 'nobody'), true);
	assert.equal(await own.pathExists('missing', 'nobody'), false);
});

test('J11 as the user one is already: no other program needed', async () => {
	assert.deepEqual(await run('id -un', { runAs: 'sandbox' }), { code: 0, session: undefined, output: 'sandbox' });
	assert.deepEqual(await run('id -u', { runAs: '1000' }), { code: 0, session: undefined, output: '1000' });
});

test('J12 J16 J18 files: any byte, any name, empty, read in part', async () => {
	const names = ['plain.txt', 'a b', 'ü/☃.bin', '100%25.txt', 'q?x=1&y#z', 'at@colon:semi;comma,', "quote's", '[x]+~!$(){}'];
	for (const name of names) {
		const content = Buffer.concat([randomBytes(300), Buffer.from(name)]);
		const entry = file({ content: new Uint8Array(content) });
		await session.materializeEntry({ path: name, entry });
		assert.deepEqual(Buffer.from(await session.readFile({ path: name })), content, name);
	}
	const listed = await sh(server.url, session.state.sandboxId, 'ls -1', {}, { headers: auth });
	assert.ok(listed.out.includes('at@colon:semi;comma,\n') && listed.out.includes('q?x=1&y#z\n'), listed.out);
	await session.materializeEntry({ path: 'empty', entry: file({ content: '' }) });
	assert.equal((await session.readFile({ path: 'empty' })).byteLength, 0);
	assert.equal((await session.readFile({ path: 'plain.txt', maxBytes: 10 })).byteLength, 10);
});

test('J16 a missing file, a directory: not found', async () => {
	for (const path of ['missing', 'missing/deeper', '.'])
		await assert.rejects(session.readFile({ path }), (error) => error instanceof SandboxWorkspaceReadNotFoundError, path);
});

test('J17 bodies that look like event streams come back as they are', async () => {
	for (const content of ['data: {"type":"metadata"}\n\n', ': comment\n\n', 'event: chunk\ndata: aGk=\n\n', '  \n id: 7\n', 'retry: 1']) {
		await session.materializeEntry({ path: 'looks-like', entry: file({ content }) });
		assert.equal(text(await session.readFile({ path: 'looks-like' })), content);
	}
});

test('J12 J13 paths: exists, directories, links inside and out', async () => {
	await session.execCommand({ cmd: 'mkdir -p real/sub; echo x > real/sub/f; ln -sfn real link; ln -sfn /etc out; ln -sfn loop loop; ln -sfn nowhere dangling' });
	assert.equal(await session.pathExists('real/sub/f'), true);
	assert.equal(await session.pathExists('link/sub/f'), true);
	assert.equal(await session.pathExists('real/none'), false);
	assert.equal(await session.directoryExists('link/sub'), true);
	assert.equal(await session.directoryExists('real/sub/f'), false);
	assert.equal(await session.directoryExists('none'), false);
	assert.equal(text(await session.readFile({ path: 'link/sub/f' })), 'x\n');
	await assert.rejects(session.readFile({ path: 'out/passwd' }), /workspace escape/);
	await assert.rejects(session.readFile({ path: 'loop' }), /depth exceeded/);
	const left = await run('ls -d /tmp/openai-agents-resolve-path-* 2>/dev/null | wc -l');
	assert.equal(left.output.trim(), '0', 'a helper was left in /tmp');
});

test('J13 the editor: create, update, move, delete', async () => {
	const editor = session.createEditor();
	await editor.createFile({ type: 'create_file', path: 'src/deep/a.txt', diff: '+one\n+two\n+ünf' });
	assert.equal(text(await session.readFile({ path: 'src/deep/a.txt' })), 'one\ntwo\nünf');
	await assert.rejects(editor.createFile({ type: 'create_file', path: 'src/deep/a.txt', diff: '+x' }), /exists/);
	await editor.updateFile({ type: 'update_file', path: 'src/deep/a.txt', diff: '@@\n one\n-two\n+zwei\n ünf' });
	assert.equal(text(await session.readFile({ path: 'src/deep/a.txt' })), 'one\nzwei\nünf');
	await editor.updateFile({ type: 'update_file', path: 'src/deep/a.txt', moveTo: 'src/b.txt', diff: '@@\n-one\n+eins' });
	assert.equal(await session.pathExists('src/deep/a.txt'), false);
	assert.match(text(await session.readFile({ path: 'src/b.txt' })), /^eins/);
	await editor.deleteFile({ type: 'delete_file', path: 'src/b.txt' });
	assert.equal(await session.pathExists('src/b.txt'), false);
});

test('viewImage reads an image whole', async () => {
	const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
	await session.materializeEntry({ path: 'dot.png', entry: file({ content: new Uint8Array(png) }) });
	const image = await session.viewImage({ path: 'dot.png' });
	assert.ok(JSON.stringify(image).includes('image/png'), JSON.stringify(image).slice(0, 200));
});

// ---- terminals

test('J22 to J26 a program on a terminal: asked, answered, over', async () => {
	const { session: number } = await run('read line; printf "got:%s\\n" "$line"; test -t 0 && echo a tty; exec sleep 300', { tty: true, yieldTimeMs: 250 });
	assert.ok(number >= 1000);
	const output = await typed(number, 'hällo\n', 'a tty');
	assert.match(output, /got:hällo\r\na tty/);
	const { code } = await finish(parts(await session.writeStdin({ sessionId: number, chars: '\x03exit 3\n' })));
	assert.equal(code, 3);
});

test('J26 the exit frame, then the close: the code reaches the caller', async () => {
	const update = await run('echo working', { tty: true, yieldTimeMs: 250 });
	const { code, output } = await finish({ ...update, ...parts(await session.writeStdin({ sessionId: update.session, chars: 'exit 9\n' })) });
	assert.equal(code, 9);
	assert.doesNotMatch(output, /"type"/);
});

test('J27 closing kills what runs there, and only that', async (t) => {
	const own = await withSession(t);
	const one = parts(await own.execCommand({ cmd: 'echo $$ > one; exec sleep 301', tty: true, yieldTimeMs: 250 }));
	await own.execCommand({ cmd: 'echo $$ > two; exec sleep 302', tty: true, yieldTimeMs: 250 });
	assert.ok(one.session);
	const count = async (n) => parts(await own.execCommand({ cmd: `cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -o 'sleep ${n}' | wc -l` })).output.trim();
	await eventually(async () => (await own.pathExists('one')) && (await own.pathExists('two')), 'both run');
	assert.equal(await count('30[1]'), '1');
	await own.ptyProcesses.terminateAll();
	await eventually(async () => (await count('30[12]')) === '0', 'both are gone', 10_000);
});

test('J27 sixty-four terminals at once, each its own', { timeout: 120_000 }, async (t) => {
	const own = await withSession(t);
	const all = await Promise.all(Array.from({ length: 64 }, (_, i) => own.execCommand({ cmd: `exec 2>&1; touch t${i}; cat`, tty: true, yieldTimeMs: 250 })));
	assert.equal(new Set(all.map((answer) => parts(answer).session)).size, 64);
	const made = async () => parts(await own.execCommand({ cmd: 'ls t* | wc -l' })).output.trim();
	await eventually(async () => (await made()) === '64', 'every shell ran its own command', 30_000);
});

// ---- snapshots

test('J19 J20 persist and hydrate: what one had, another has', async (t) => {
	const from = await withSession(t);
	const script = [
		'mkdir -p d/e empty; printf "\\000\\377" > d/e/bin; echo hello > "a name with ü"; chmod 750 d/e/bin; ln d/e/bin hard; ln -s d/e/bin soft',
		`mkdir -p ${'long/'.repeat(40)}; echo far > ${'long/'.repeat(40)}${'n'.repeat(120)}; mkfifo pipe; truncate -s 1M sparse; touch -d @86400 old`,
	].join('; ');
	assert.equal(parts(await from.execCommand({ cmd: script })).code, 0);
	const archive = await from.persistWorkspace(); // the client checks each member by itself
	assert.equal(archive.byteLength % 512, 0);

	const to = await withSession(t);
	await to.hydrateWorkspace(archive);
	const list = "find . -not -name pipe -printf '%P %y %m %l ' -exec sh -c 'test -f \"$1\" -a ! -L \"$1\" && sha256sum < \"$1\" || echo' sh {} \\; | sort";
	assert.equal(parts(await to.execCommand({ cmd: list })).output, parts(await from.execCommand({ cmd: list })).output);
	assert.equal(parts(await to.execCommand({ cmd: 'stat -c %Y old; stat -c %h hard' })).output, '86400\n1');
	assert.equal(await to.pathExists('pipe'), false);
});

test('J19 ephemeral entries of the manifest are excluded', async (t) => {
	const own = await withSession(t, {}, new Manifest({
		entries: { keep: file({ content: 'k' }), scratch: dir({ ephemeral: true, children: { big: file({ content: 'b' }) } }) },
	}));
	const archive = Buffer.from(await own.persistWorkspace());
	assert.ok(archive.includes('./keep\0'));
	assert.ok(!archive.includes('scratch/big'));
});

test('J20 an archive that is none: the server\'s answer reaches the caller', async (t) => {
	const own = await withSession(t);
	const junk = Buffer.from(await own.persistWorkspace());
	assert.ok(junk.length >= 1024);
	const bad = await call(`${server.url}/v1/sandbox/${own.state.sandboxId}/hydrate`, 'POST', { headers: auth, body: Buffer.alloc(2048, 0x41) });
	assert.equal(bad.status, 502);
	assert.equal(bad.json.code, 'workspace_archive_write_error');
});

test('J21 a mount that cannot be: the reason reaches the caller', async () => {
	const options = { endpoint: 'http://127.0.0.1:1', provider: 's3', readOnly: true, prefix: 'no-slash' };
	await assert.rejects(session.mountBucket({ bucket: 'data', mountPath: 'mnt', options }), (error) => {
		assert.match(JSON.stringify(error.details ?? error), /mount failed: /);
		return true;
	});
	await assert.rejects(session.unmountBucket('mnt'), (error) => {
		assert.match(JSON.stringify(error.details ?? error), /No active mount found/);
		return true;
	});
});
