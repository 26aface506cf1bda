// POST /v1/sandbox/:id/exec: API.md 3.5, SEMANTICS.md 1 and the end rule.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertError, call, eventually, exec, newId, sh, startExec } from './lib/client.mjs';
import { Server } from './lib/server.mjs';

let server, url, id;

before(async () => {
	server = await Server.start();
	url = server.url;
	id = newId();
});

after(() => server?.stop());

const post = (body, headers) => call(`${url}/v1/sandbox/${id}/exec`, 'POST', { body, headers });

// ---- validation

test('a body that is no JSON is 400', async () => {
	for (const body of ['', '{', 'argv', '{"argv":["true"]} x'])
		assertError(await post(body), 400, 'invalid_request', 'Invalid JSON');
});

test('argv must be a non-empty array', async () => {
	for (const body of ['{}', '{"argv":[]}', '{"argv":"ls"}', '{"argv":null}', '{"argv":{"0":"ls"}}', 'null', '7', '"x"', 'true', '[]'])
		assertError(await post(body), 400, 'invalid_request', 'argv must be a non-empty array');
});

test('a session id must be a name', async () => {
	for (const bad of ['a b', 'a/b', '..', 'a..b', 'x'.repeat(129), 'ä'])
		assertError(await post('{"argv":["true"]}', { 'Session-Id': encodeURI(bad) === bad ? bad : '%' }), 400, 'invalid_request', 'Invalid session ID format');
});

test('cwd must resolve below /workspace', async () => {
	for (const cwd of ['/', '/etc', '/workspacex', '/workspace/../etc', '../x', '/workspace/a/../../b'])
		assertError(await post(JSON.stringify({ argv: ['true'], cwd })), 403, 'invalid_request', 'cwd must resolve to a location within /workspace');
});

test('the checks come in their order', async () => {
	assertError(await post('{"cwd":"/etc"}', { 'Session-Id': '/' }), 400, 'invalid_request', 'argv');
	assertError(await post('{"argv":["a"],"cwd":"/etc"}', { 'Session-Id': '/' }), 400, 'invalid_request', 'session ID');
	assertError(await post('{"argv":[{}],"cwd":"/etc"}'), 403, 'invalid_request', 'cwd');
});

test('objects and arrays are no arguments, other values are their JSON text', async () => {
	for (const item of [{}, [], ['a']]) assertError(await post(JSON.stringify({ argv: ['echo', item] })), 400, 'invalid_request', 'argv items must be strings');
	const run = await exec(url, id, { argv: ['echo', 1, true, null, 2.5, -0.5] });
	assert.equal(run.stdout.toString(), '1 true null 2.5 -0.5\n');
});

test('a refused request starts no sandbox', async () => {
	const other = newId();
	assertError(await call(`${url}/v1/sandbox/${other}/exec`, 'POST', { body: '{}' }), 400, 'invalid_request');
	assert.equal((await call(`${url}/v1/sandbox/${other}/running`)).json.running, false);
});

test('unknown keys, wrong types and the content type are ignored; the last of two equal keys wins', async () => {
	const run = await exec(url, id, '{"argv":["false"],"timeout_ms":"1","cwd":7,"env":[],"zz":{"a":[1]},"argv":["pwd"]}', { headers: { 'Content-Type': 'text/plain' } });
	assert.equal(run.stdout.toString(), '/workspace\n');
	assert.equal(run.code, 0);
});

// ---- the stream

test('the documented example, byte by byte', async () => {
	const run = await exec(url, id, { argv: ['sh', '-lc', 'echo hi; echo no >&2; exit 3'], timeout_ms: 30000 });
	assert.equal(run.headers['content-type'], 'text/event-stream');
	assert.equal(run.headers['cache-control'], 'no-cache');
	assert.equal(run.headers['content-length'], undefined);
	assert.equal(run.headers['transfer-encoding'], 'chunked');
	const text = run.raw.toString();
	assert.ok(text.includes('event: stdout\ndata: aGkK\n\n'), text);
	assert.ok(text.includes('event: stderr\ndata: bm8K\n\n'), text);
	assert.match(text, /event: exit\ndata: \{[^\n]*"exit_code": ?3[^\n]*\}\n\n$/);
	assert.doesNotMatch(text, /^(id|retry):/m);
});

test('exit statuses are the command\'s', async () => {
	for (const code of [0, 1, 42, 124, 255]) assert.equal((await exec(url, id, ['exit', String(code)])).code, code);
	assert.equal((await exec(url, id, ['true'])).exit.exit_code, 0);
	assert.equal((await exec(url, id, ['false'])).exit.exit_code, 1);
});

test('a death by signal is 128+N, with the signal\'s name', async () => {
	for (const [name, number] of [['KILL', 9], ['TERM', 15], ['SEGV', 11]]) {
		const run = await sh(url, id, `kill -${name} $$`);
		assert.equal(run.code, 128 + number);
		assert.equal(run.exit.signal, `SIG${name}`);
		assert.equal(run.exit.reason, 'signal');
	}
});

test('not found is 127, not executable is 126, each with a sentence', async () => {
	const missing = await exec(url, id, ['nosuchcmd']);
	assert.equal(missing.code, 127);
	assert.match(missing.stderr.toString(), /nosuchcmd/);
	const plain = await exec(url, id, ['/etc/passwd']);
	assert.equal(plain.code, 126);
	assert.match(plain.stderr.toString(), /\/etc\/passwd/);
});

test('argv is a bash line: builtins, assignments and reserved words work', async () => {
	assert.equal((await exec(url, id, ['exit', '42'])).code, 42);
	assert.equal((await exec(url, id, ['cd', '/tmp'])).code, 0);
	assert.equal((await exec(url, id, ['FOO=1', 'printenv', 'FOO'])).stdout.toString(), '1\n');
	assert.match((await exec(url, id, ['time', 'true'])).stderr.toString(), /^real\t/m);
	assert.equal((await exec(url, id, ['type', '-t', 'cd'])).stdout.toString(), 'builtin\n');
});

test('each element is one word, whatever is in it', async () => {
	const words = ['', ' ', 'a b', "it's", '"', '\\', '$HOME', '`id`', '*', '~', '\n', '\r', '\t', '#x', 'ä€😀', ';', '&&', '|', '>x', '-n', '\u0001', '$(', '!!', '{a,b}', '\\n', "$'x'"];
	const run = await exec(url, id, ['printf', '%s\\0', ...words]);
	assert.equal(run.stdout.toString(), words.map((word) => `${word}\0`).join(''));
});

test('a NUL in an argument is refused or kept out, never a truncated command', async () => {
	const answer = await call(`${url}/v1/sandbox/${id}/exec`, 'POST', { body: '{"argv":["echo","a\\u0000b"]}' });
	if (answer.status !== 200) return assertError(answer, 400, 'invalid_request');
	assert.match(answer.text, /event: error\n/);
});

test('any bytes come out as they went in', async () => {
	const run = await sh(url, id, 'head -c 300000 /usr/bin/python3 2>/dev/null || head -c 300000 /bin/bash');
	const sum = await sh(url, id, '(head -c 300000 /usr/bin/python3 2>/dev/null || head -c 300000 /bin/bash) | sha256sum');
	const { createHash } = await import('node:crypto');
	assert.equal(run.stdout.length, 300000);
	assert.equal(createHash('sha256').update(run.stdout).digest('hex'), sum.out.slice(0, 64));
});

test('a character is never cut in two', async () => {
	const script = "python3 -c \"import sys; sys.stdout.buffer.write('aä€😀'.encode() * 40000)\" | dd bs=7 2>/dev/null";
	const run = await sh(url, id, script);
	const decoder = () => new TextDecoder('utf-8', { fatal: true });
	for (const chunk of run.chunks.stdout) decoder().decode(chunk);
	assert.equal(run.out, 'aä€😀'.repeat(40000));
});

test('an unfinished character is delivered at the end', async () => {
	const run = await sh(url, id, "printf 'x\\342\\202'; printf '\\360' >&2");
	assert.deepEqual([...run.stdout], [0x78, 0xe2, 0x82]);
	assert.deepEqual([...run.stderr], [0xf0]);
});

test('output comes as it is made', async () => {
	const run = startExec(url, id, ['sh', '-c', 'echo first; read x </workspace/never 2>/dev/null; while [ ! -e /workspace/go ]; do sleep 0.02; done; echo last']);
	await run.begun;
	await run.saw('first\n');
	assert.equal(run.exit, null);
	assert.equal((await call(`${url}/v1/sandbox/${id}/file/workspace/go`, 'PUT', { body: '' })).status, 200);
	await run.done;
	assert.equal(Buffer.concat(run.stdout).toString(), 'first\nlast\n');
});

test('headers come before the first output', async () => {
	const run = startExec(url, id, ['sh', '-c', 'while [ ! -e /workspace/head ]; do sleep 0.02; done']);
	await run.begun;
	assert.equal(run.status, 200);
	await call(`${url}/v1/sandbox/${id}/file/workspace/head`, 'PUT', { body: '' });
	await run.done;
});

test('events hold at most 64 KiB', async () => {
	const run = await sh(url, id, 'head -c 3000000 /dev/zero');
	assert.equal(run.stdout.length, 3000000);
	assert.ok(run.chunks.stdout.every((chunk) => chunk.length <= 65536));
});

test('50,000 lines and 6.7 MB of text arrive whole', async () => {
	const run = await sh(url, id, 'seq 1 50000; base64 -w0 /dev/zero | head -c 6700000');
	assert.equal(run.stdout.length, 288894 + 6700000);
	assert.ok(run.out.startsWith('1\n2\n') && run.out.includes('\n50000\nAAAA'));
});

// ---- surroundings of the command

test('cwd is where it runs', async () => {
	await sh(url, id, 'mkdir -p /workspace/sub/deep');
	for (const [cwd, where] of [[undefined, '/workspace'], ['', '/workspace'], ['sub', '/workspace/sub'], ['/workspace/sub/deep/', '/workspace/sub/deep'], ['/workspace/../workspace/sub', '/workspace/sub'], ['./sub//deep/..', '/workspace/sub']])
		assert.equal((await exec(url, id, { argv: ['pwd'], cwd })).stdout.toString(), `${where}\n`);
});

test('env is for this command only; what is no string is dropped', async () => {
	const env = { FOO_BAR: 'a b\n"c"', EMPTY: '', N: 1, O: {}, X: null, PATH_LIKE: '/x:/y' };
	const run = await exec(url, id, { argv: ['sh', '-c', 'printf "%s|%s|%s|%s" "$FOO_BAR" "${EMPTY-unset}" "${N-unset}" "$PATH_LIKE"'], env });
	assert.equal(run.stdout.toString(), 'a b\n"c"||unset|/x:/y');
	assert.equal((await sh(url, id, 'echo ${FOO_BAR-unset}')).out, 'unset\n');
});

test('the environment is the sandbox\'s own', async () => {
	const run = await exec(url, id, ['env']);
	const env = Object.fromEntries(run.stdout.toString().trim().split('\n').map((line) => [line.split('=')[0], line.slice(line.indexOf('=') + 1)]));
	assert.ok(env.PATH.includes('/usr/bin'));
	assert.ok(env.HOME.startsWith('/'));
	assert.ok(!Object.keys(env).some((name) => /^(TOMBOLO|SANDBOX_API|SUDO|SSH|NODE)_/.test(name)), Object.keys(env).join());
});

test('stdin is at its end unless it is given', async () => {
	assert.equal((await exec(url, id, ['cat'])).stdout.length, 0);
	assert.equal((await exec(url, id, ['readlink', '/proc/self/fd/0'])).stdout.toString(), '/dev/null\n');
});

test('stdin is fed exactly and then ends', async () => {
	for (const stdin of ['', 'x', 'ä€😀\n\0\r\n', 'y'.repeat(3_000_000)]) {
		const run = await exec(url, id, { argv: ['cat'], stdin });
		assert.equal(run.code, 0);
		assert.ok(run.stdout.equals(Buffer.from(stdin)), `${stdin.length} characters`);
	}
});

test('a command that does not read its stdin ends all the same', async () => {
	const run = await exec(url, id, { argv: ['true'], stdin: 'z'.repeat(1_000_000) });
	assert.equal(run.code, 0);
});

test('no state but files survives between two requests', async () => {
	await sh(url, id, 'cd /tmp; export LEFT=1; echo kept > /workspace/kept');
	const run = await exec(url, id, ['eval', 'pwd; echo ${LEFT-unset}; cat kept']);
	assert.equal(run.stdout.toString(), '/workspace\nunset\nkept\n');
});

test('a script larger than the kernel takes as one argument runs', async () => {
	const run = await exec(url, id, { argv: ['eval', `: '${'x'.repeat(300_000)}'; echo ran`] });
	assert.equal(run.stdout.toString(), 'ran\n');
});

test('a cwd that is not there is an error event that names it', async () => {
	await sh(url, id, 'echo > file; mkdir -p shut; chmod 0 shut');
	for (const [cwd, text] of [['nope', 'No such file'], ['file', 'Not a directory'], ['shut', 'Permission denied']]) {
		const run = await exec(url, id, { argv: ['true'], cwd });
		assert.equal(run.exit, null);
		assert.equal(run.error.code, 'exec_error');
		assert.ok(run.error.error.includes(cwd) && run.error.error.includes(text), run.error.error);
	}
});

// ---- the end

test('a timeout is 124 and a line on stderr, and takes the whole tree', async () => {
	const run = await sh(url, id, 'trap "" TERM; sleep 611 & sleep 611', { timeout_ms: 300 });
	assert.equal(run.code, 124);
	assert.equal(run.exit.reason, 'timeout');
	assert.ok(run.err.endsWith('Command timed out after 300ms\n'), run.err);
	assert.equal(run.events.at(-2).event, 'stderr');
	assert.equal((await sh(url, id, 'grep -lz ^611 /proc/[0-9]*/cmdline 2>/dev/null | wc -l')).out.trim(), '0');
});

test('output up to the timeout is delivered', async () => {
	const run = await sh(url, id, 'trap "echo bye; exit 0" TERM; echo hi; while :; do sleep 0.05; done', { timeout_ms: 200 });
	assert.equal(run.out, 'hi\nbye\n');
	assert.equal(run.code, 124);
});

test('a timeout of zero or less is none', async () => {
	for (const timeout_ms of [0, -5]) assert.equal((await sh(url, id, 'sleep 0.1; echo done', { timeout_ms })).out, 'done\n');
});

test('a command that ends in time is not touched by its timeout', async () => {
	const run = await sh(url, id, 'echo ok', { timeout_ms: 60000 });
	assert.equal(run.code, 0);
	assert.equal(run.exit.reason, 'exited');
});

test('a background child holds nothing up, lives on, and gets no SIGPIPE', async () => {
	const before = performance.now();
	const run = await sh(url, id, '(sleep 1; echo late; echo late >&2; echo alive > /workspace/alive) & echo now; exit 7');
	assert.ok(performance.now() - before < 1000, 'the end waited for the child');
	assert.equal(run.out, 'now\n');
	assert.equal(run.code, 7);
	assert.ok(run.exit.left_running >= 1);
	await eventually(async () => (await call(`${url}/v1/sandbox/${id}/file/workspace/alive`)).status === 200, 'the child wrote its file');
});

test('the exit event tells how it was', async () => {
	const { exit } = await sh(url, id, 'echo 12345');
	assert.equal(exit.reason, 'exited');
	for (const key of ['duration_ms', 'cpu_ms', 'max_memory', 'bytes', 'left_running']) assert.ok(Number.isInteger(exit[key]), key);
	assert.equal(exit.bytes, 6);
	assert.equal(exit.left_running, 0);
});

test('a client that goes away leaves the command running', async () => {
	const run = startExec(url, id, ['sh', '-c', 'echo on; while [ ! -e /workspace/gone ]; do sleep 0.02; done; echo went on > /workspace/went']);
	await run.begun;
	await run.saw('on\n');
	run.request.destroy();
	await call(`${url}/v1/sandbox/${id}/file/workspace/gone`, 'PUT', { body: '' });
	await eventually(async () => (await call(`${url}/v1/sandbox/${id}/file/workspace/went`)).text === 'went on\n', 'the command went on');
});

test('X-Exec-On-Disconnect: kill ends the tree of a client that goes away', async () => {
	const run = startExec(url, id, ['sh', '-c', 'sleep 612 & echo on; sleep 612'], { headers: { 'X-Exec-On-Disconnect': 'kill' } });
	await run.begun;
	await run.saw('on\n');
	run.request.destroy();
	await eventually(async () => (await sh(url, id, 'grep -lz ^612 /proc/[0-9]*/cmdline 2>/dev/null | wc -l')).out.trim() === '0', 'the tree is gone');
});

test('deleting the sandbox ends a running exec with an error event', async () => {
	const other = newId();
	const run = startExec(url, other, ['sh', '-c', 'echo on; sleep 613']);
	await run.begun;
	await run.saw('on\n');
	assert.equal((await call(`${url}/v1/sandbox/${other}`, 'DELETE')).status, 204);
	await run.done;
	assert.equal(run.error.code, 'exec_transport_error');
	assert.match(run.error.error, /^exec failed: /);
	assert.equal(run.events.at(-1).event, 'error');
});

test('many commands at once do not disturb each other', async () => {
	const runs = await Promise.all(Array.from({ length: 50 }, (_, i) => sh(url, id, `seq ${i} ${i + 500}; echo err ${i} >&2; exit ${i}`)));
	runs.forEach((run, i) => {
		assert.equal(run.out, Array.from({ length: 501 }, (_, n) => `${i + n}\n`).join(''));
		assert.equal(run.err, `err ${i}\n`);
		assert.equal(run.code, i);
	});
});

test('git, python3 and node of the host work inside', async () => {
	const run = await sh(url, id, 'cd $(mktemp -d) && git init -q . && git -c user.name=a -c user.email=b commit -q --allow-empty -m x && git log --oneline | wc -l && python3 -c "print(6*7)"');
	assert.equal(run.out, '1\n42\n', run.err);
	const node = await sh(url, id, 'command -v node >/dev/null || { echo 42; exit; }; node -e "console.log(6*7)"');
	assert.equal(node.out, '42\n', node.err);
});
