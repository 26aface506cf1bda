// The commands of `tombolo` over the public API: bytes, exit statuses, and sentences for bad input.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually, newId, sh } from './lib/client.mjs';
import { freePort, scratchDir, Server, tombolo } from './lib/server.mjs';

const KEY = 'cli-key';
let server, id, dir;

before(async () => {
	server = await Server.start({ env: { SANDBOX_API_KEY: KEY } });
	dir = scratchDir('cli');
	id = newId();
});

after(async () => {
	rmSync(dir, { recursive: true, force: true });
	await server?.stop();
});

/** Starts the program; stdin is a pipe that stays open until it is ended. */
function start(args, { env = {}, url = server.url } = {}) {
	const child = spawn(tombolo, args, { env: { PATH: process.env.PATH, TOMBOLO_URL: url, TOMBOLO_API_KEY: KEY, ...env }, cwd: dir });
	child.out = [];
	child.err = [];
	child.stdout.on('data', (bytes) => child.out.push(bytes));
	child.stderr.on('data', (bytes) => child.err.push(bytes));
	child.stdin.on('error', () => {}); // it may end before it read everything
	child.result = new Promise((done) => child.on('close', (code, signal) => done({ code, signal, stdout: Buffer.concat(child.out), out: Buffer.concat(child.out).toString(), err: Buffer.concat(child.err).toString() })));
	return child;
}

function run(args, { stdin, ...options } = {}) {
	const child = start(args, options);
	if (stdin !== undefined) child.stdin.end(stdin);
	return child.result;
}

test('create prints an id that exec, ls, ps and rm take', async () => {
	const made = await run(['create']);
	assert.equal(made.code, 0, made.err);
	assert.match(made.out, /^[a-z2-7]{24}\n$/);
	const box = made.out.trim();
	assert.equal((await run(['exec', box, '--', 'sh', '-c', 'sleep 620 >/dev/null 2>&1 & echo hi'])).out, 'hi\n');
	const listed = await run(['ls']);
	assert.match(listed.out, /^SANDBOX +STATE +INSTANCE +CREATED\n/);
	assert.match(listed.out, new RegExp(`^${box} +running +\\S+ +20\\d\\d-`, 'm'));
	const processes = await run(['ps', box]);
	assert.match(processes.out, /^PROCESS +PID +STATE +STARTED +COMMAND\n/);
	assert.match(processes.out, /sleep 620/);
	assert.equal((await run(['rm', box])).code, 0);
	assert.doesNotMatch((await run(['ls'])).out, new RegExp(box));
});

test('an instance type is passed on', async () => {
	const box = (await run(['create', '--instance', 'lite'])).out.trim();
	await run(['exec', box, 'true']);
	assert.match((await run(['ls'])).out, new RegExp(`^${box} +running +lite `, 'm'));
	await run(['rm', box]);
});

test('exec: both streams byte by byte, and the exit status', async () => {
	const done = await run(['exec', id, '--', 'sh', '-c', "printf 'a\\0\\377\\r\\n'; printf 'e\\200' >&2; exit 42"]);
	assert.equal(done.code, 42);
	assert.ok(done.stdout.equals(Buffer.from('a\0\xff\r\n', 'latin1')));
	assert.equal(done.err.length, 2);
	assert.equal((await run(['exec', id, '--', 'sh', '-c', 'kill -9 $$'])).code, 137);
	assert.equal((await run(['exec', id, '--', 'nosuchcmd'])).code, 127);
	assert.equal((await run(['exec', id, 'true'])).code, 0, 'the dashes may be left out');
});

test('exec: 20 MB arrive whole', async () => {
	const done = await run(['exec', id, '--', 'sh', '-c', 'head -c 20000000 /dev/zero | tr "\\0" x']);
	assert.equal(done.stdout.length, 20_000_000);
	assert.ok(done.stdout.every((byte) => byte === 120));
});

test('exec: output comes as it is made', async () => {
	const child = start(['exec', id, '--', 'sh', '-c', 'echo first; while [ ! -e go ]; do sleep 0.02; done; echo last']);
	await eventually(() => Buffer.concat(child.out).toString() === 'first\n', 'the first line came');
	assert.equal((await run(['cp', '-', `${id}:go`], { stdin: '' })).code, 0);
	assert.equal((await child.result).out, 'first\nlast\n');
});

test('exec: options stand before the sandbox, what follows is the command\'s', async () => {
	await run(['exec', id, 'mkdir', '-p', 'sub']);
	const done = await run(['exec', '--cwd', 'sub', '-e', 'A=1 2', '--env', 'B=', '--timeout', '30s', id, '--', 'sh', '-c', 'pwd; echo "$A|$B"; echo "$@"', 'sh', '--cwd', '-e']);
	assert.equal(done.out, '/workspace/sub\n1 2|\n--cwd -e\n');
});

test('exec: a timeout is 124 and is said', async () => {
	const done = await run(['exec', '--timeout', '200ms', id, '--', 'sleep', '60']);
	assert.equal(done.code, 124);
	assert.match(done.err, /timed out after 200ms/);
});

test('exec: stdin is sent only when asked for', async () => {
	assert.equal((await run(['exec', '-i', id, '--', 'wc', '-c'], { stdin: 'ä€\n' })).out.trim(), '6');
	assert.equal((await run(['exec', id, '--', 'wc', '-c'], { stdin: 'ignored' })).out.trim(), '0');
	const binary = await run(['exec', '-i', id, '--', 'cat'], { stdin: Buffer.from([0xff, 0xfe]) });
	assert.equal(binary.code, 2);
	assert.match(binary.err, /not UTF-8/);
	const large = await run(['exec', '-i', id, '--', 'cat'], { stdin: 'x'.repeat(2_000_000) });
	assert.equal(large.code, 2);
	assert.match(large.err, /larger than 1 MiB/);
});

test('exec: an interrupted client ends the command, with --keep it runs on', async () => {
	for (const keep of [false, true]) {
		const child = start(['exec', ...(keep ? ['--keep'] : []), id, '--', 'sh', '-c', 'echo on; sleep 621']);
		await eventually(() => Buffer.concat(child.out).toString() === 'on\n', 'it runs');
		child.kill('SIGINT');
		assert.equal((await child.result).signal, 'SIGINT');
		const count = async () => Number((await sh(server.url, id, 'grep -lz ^621 /proc/[0-9]*/cmdline 2>/dev/null | wc -l', {}, { headers: { Authorization: `Bearer ${KEY}` } })).out);
		if (keep) assert.equal(await count(), 1);
		else await eventually(async () => (await count()) === 0, 'the command is gone');
	}
});

test('exec: a reader that has enough ends us like any program', async () => {
	const shell = spawn('bash', ['-c', `"${tombolo}" exec ${id} -- yes | head -n 1; echo "\${PIPESTATUS[0]}"`], { env: { PATH: process.env.PATH, TOMBOLO_URL: server.url, TOMBOLO_API_KEY: KEY } });
	let out = '';
	shell.stdout.on('data', (bytes) => (out += bytes));
	await new Promise((done) => shell.on('close', done));
	assert.equal(out, 'y\n141\n');
});

test('exec: a cwd that is not there is an error of its own', async () => {
	const done = await run(['exec', '-C', 'nope', id, 'true']);
	assert.equal(done.code, 1);
	assert.match(done.err, /nope/);
});

test('cp: files of all sizes there and back', async () => {
	for (const size of [0, 1, 65537, 3_000_000]) {
		const bytes = randomBytes(size);
		writeFileSync(join(dir, 'there'), bytes);
		assert.equal((await run(['cp', 'there', `${id}:sub/copied`])).code, 0);
		const back = await run(['cp', `${id}:/workspace/sub/copied`, 'back']);
		assert.equal(back.code, 0, back.err);
		assert.ok(readFileSync(join(dir, 'back')).equals(bytes));
	}
	assert.equal(statSync(join(dir, 'back')).mode & 0o777, 0o666 & ~process.umask());
});

test('cp: - is standard input and output', async () => {
	const bytes = randomBytes(200_000);
	assert.equal((await run(['cp', '-', `${id}:piped`], { stdin: bytes })).code, 0);
	assert.ok((await run(['cp', `${id}:piped`, '-'])).stdout.equals(bytes));
});

test('cp: a directory keeps the name, a program stays one, odd names are names', async () => {
	writeFileSync(join(dir, "odd ä%41'?#"), 'odd');
	writeFileSync(join(dir, 'tool'), '#!/bin/sh\necho tool\n');
	chmodSync(join(dir, 'tool'), 0o755);
	mkdirSync(join(dir, 'into'));
	assert.equal((await run(['cp', "odd ä%41'?#", `${id}:names/`])).code, 0);
	assert.equal((await run(['cp', `${id}:names/odd ä%41'?#`, 'into'])).code, 0);
	assert.deepEqual(readdirSync(join(dir, 'into')), ["odd ä%41'?#"]);
	assert.equal((await run(['cp', 'tool', `${id}:`])).code, 0);
	assert.equal((await run(['exec', id, '--', './tool'])).out, 'tool\n');
	writeFileSync(join(dir, 'abc:def'), 'colon');
	assert.equal((await run(['cp', './abc:def', `${id}:colon`])).code, 0);
});

test('cp: a failure leaves an older file whole and no other', async () => {
	writeFileSync(join(dir, 'older'), 'older');
	const before = readdirSync(dir);
	const missing = await run(['cp', `${id}:not/there`, 'older']);
	assert.equal(missing.code, 2);
	assert.match(missing.err, /File not found: \/workspace\/not\/there/);
	assert.equal(readFileSync(join(dir, 'older'), 'utf8'), 'older');
	assert.deepEqual(readdirSync(dir), before);
});

test('cp: a file over the limit is refused with the server\'s sentence', async () => {
	writeFileSync(join(dir, 'large'), Buffer.alloc(33554433));
	const done = await run(['cp', 'large', `${id}:large`]);
	assert.equal(done.code, 2);
	assert.match(done.err, /33554433 bytes exceeds the 33554432-byte limit/);
	rmSync(join(dir, 'large'));
});

test('bad input is a sentence and exit status 2', async () => {
	for (const [args, sentence] of [
		[[], /usage: tombolo/], [['nonsense'], /no command 'nonsense'/], [['help', 'nonsense'], /no command/],
		[['exec'], /wants SANDBOX/], [['exec', id], /wants SANDBOX/], [['exec', id, '--'], /no command after --/],
		[['exec', 'BAD', 'true'], /'BAD' is no sandbox id/], [['exec', '--nope', id, 'true'], /no such option: --nope/],
		[['exec', '--cwd'], /needs a value/], [['exec', '--timeout', 'soon', id, 'true'], /wants a duration.*soon/],
		[['exec', '-e', 'NAME', id, 'true'], /NAME=VALUE/], [['exec', '-C', '/etc', id, 'true'], /within \/workspace/],
		[['cp', 'a'], /wants FILE/], [['cp', 'a', 'b'], /one of the two must be SANDBOX:PATH/], [['cp', `${id}:a`, `${id}:b`], /one of the two/],
		[['cp', 'not-here', `${id}:x`], /not-here.*No such file/], [['cp', '.', `${id}:x`], /is a directory/], [['cp', `${id}:/etc/passwd`, '-'], /within \/workspace/],
		[['rm'], /wants SANDBOX/], [['rm', id, 'NO'], /no sandbox id/], [['ps'], /wants SANDBOX/], [['ls', 'x'], /no operands/],
		[['ls', '--url', 'ftp://x'], /must begin with http/],
	]) {
		const done = await run(args, { stdin: '' });
		assert.equal(done.code, 2, `${args.join(' ')}: ${done.err}`);
		assert.match(done.err, sentence, args.join(' '));
		assert.equal(done.out, '');
	}
});

test('a wrong key and a missing one are said', async () => {
	for (const env of [{ TOMBOLO_API_KEY: 'wrong' }, { TOMBOLO_API_KEY: '' }]) {
		const done = await run(['ls'], { env });
		assert.equal(done.code, 2);
		assert.match(done.err, /TOMBOLO_API_KEY/);
	}
	assert.equal((await run(['ls'], { env: { TOMBOLO_API_KEY: '', SANDBOX_API_KEY: KEY } })).code, 0);
});

test('a server that is not there, or is none, is exit status 1', async () => {
	const gone = await run(['ls'], { url: `http://127.0.0.1:${await freePort()}` });
	assert.equal(gone.code, 1);
	assert.match(gone.err, /connect/i);

	const odd = http.createServer((request, response) => {
		request.resume();
		if (request.url.endsWith('/exec')) response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end('event: stdout\ndata: aGkK\n\n');
		else response.writeHead(500).end('Internal Server Error');
	});
	await new Promise((done) => odd.listen(0, '127.0.0.1', done));
	const url = `http://127.0.0.1:${odd.address().port}/`;
	const failed = await run(['ls'], { url });
	assert.equal(failed.code, 1);
	assert.match(failed.err, /answered 500: Internal Server Error/);
	const cut = await run(['exec', id, 'true'], { url });
	assert.equal(cut.code, 1);
	assert.equal(cut.out, 'hi\n');
	assert.match(cut.err, /ended before the command did/);
	odd.close();
});

test('help explains every command from its table', async () => {
	const overview = (await run(['help'])).out;
	for (const name of ['serve', 'create', 'exec', 'cp', 'ls', 'ps', 'rm']) {
		assert.match(overview, new RegExp(`^  ${name} `, 'm'));
		for (const args of [['help', name], [name, '--help']]) {
			const done = await run(args, { stdin: '' });
			assert.equal(done.code, 0, args.join(' '));
			assert.match(done.out, new RegExp(`tombolo ${name}`));
		}
	}
	assert.match((await run(['version'])).out, /^tombolo \d+\.\d+/);
});

test('no command line of ours shows the key', async () => {
	assert.ok(!existsSync(join(dir, KEY)));
	const child = start(['exec', id, '--', 'sh', '-c', 'echo on; while [ ! -e over ]; do sleep 0.02; done']);
	await eventually(() => Buffer.concat(child.out).length > 0, 'it runs');
	assert.ok(!readFileSync(`/proc/${child.pid}/cmdline`, 'utf8').includes(KEY));
	await run(['cp', '-', `${id}:over`], { stdin: '' });
	await child.result;
});
