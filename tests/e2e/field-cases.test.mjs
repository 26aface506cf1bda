// Faults that users of systems like this one really reported. Each test's name begins with the number of its case.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { assertError, call, eventually, exec, newId, sh, startExec } from './lib/client.mjs';
import { fdCount, memoryOf, programs, Server, tombolo, tree } from './lib/server.mjs';

const full = process.env.TOMBOLO_FULL === '1';
let server, url, id;
let slow; // C012 runs beside the others

before(async () => {
	server = await Server.start();
	url = server.url;
	id = newId();
	await sh(url, id, 'true');
	slow = sh(url, newId(), 'sleep 45; echo DONE', { timeout_ms: 60000 });
});

after(() => server?.stop());

const remove = (box) => call(`${url}/v1/sandbox/${box}`, 'DELETE');

/** How many processes of the sandbox have a command line that begins with WORDS. */
async function count(words, box = id) {
	const pattern = words.replaceAll(' ', '.');
	const run = await sh(url, box, `cat /proc/[0-9]*/cmdline 2>/dev/null >/dev/null; for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2>/dev/null | grep -q "^${pattern}" && echo; done | wc -l`);
	return Number(run.out);
}

/** Bars are generous: they tell a hang from an answer, not a fast machine from a slow one. */
async function within(ms, promise, what) {
	const start = performance.now();
	const value = await promise;
	assert.ok(performance.now() - start < ms, `${what} took ${Math.round(performance.now() - start)} ms`);
	return value;
}

function agentOf(marker) {
	// the sandbox's pid 1 is the parent, inside, of a command with this marker
	for (const pid of tree(server.pid)) {
		try {
			if (execFileSync('tr', ['\\0', ' '], { input: execFileSync('cat', [`/proc/${pid}/cmdline`]) }).toString().startsWith(marker))
				return Number(/^PPid:\s+(\d+)/m.exec(execFileSync('cat', [`/proc/${pid}/status`]).toString())[1]);
		} catch {
			// it ended
		}
	}
	throw new Error(`no process '${marker}'`);
}

test('C001 an exec on a sandbox whose init was killed fails or runs, and never stays silent', async () => {
	const box = newId();
	await sh(url, box, 'sleep 630 >/dev/null 2>&1 &');
	process.kill(agentOf('sleep 630'), 'SIGKILL');
	const run = await within(5000, exec(url, box, ['echo', 'hi']), 'the answer');
	if (run.exit) assert.equal(run.stdout.toString(), 'hi\n');
	else assert.ok(run.error?.code === 'exec_transport_error' || run.json?.code === 'pool_error', JSON.stringify(run.error ?? run.json));
	await eventually(async () => (await exec(url, box, ['echo', 'hi'])).code === 0, 'the id works again');
	await remove(box);
});

test('C002 an exec does not wait for what an earlier one left in the background', async () => {
	await sh(url, id, 'sleep 300 >/dev/null 2>&1 &');
	await within(2000, exec(url, id, ['true']), 'true');
});

test('C003 a background job that holds stdout does not hold up the end', async () => {
	const run = await within(3000, exec(url, id, ['sh', '-c', '(sleep 31; echo late) & echo now; exit 7']), 'the exec');
	assert.equal(run.stdout.toString(), 'now\n');
	assert.equal(run.code, 7);
	assert.equal(await count('sleep 31 '), 1);
});

test('C004 without stdin a command reads an end at once, and has no descriptor of ours', async () => {
	for (const argv of [['cat'], ['python3', '-'], ['read', 'x'], ['wc', '-c']]) await within(3000, exec(url, id, argv), argv[0]);
	const fds = await sh(url, id, 'for f in 0 1 2 3 4 5 6 7 8 9 10 11 12 63 255; do [ -e /proc/$$/fd/$f ] && echo $f $(readlink /proc/$$/fd/$f); done');
	const lines = fds.out.trim().split('\n');
	assert.equal(lines[0], '0 /dev/null');
	assert.deepEqual(lines.map((line) => line.split(' ')[0]), ['0', '1', '2']);
});

test('C005 here-documents, open quotes and the like end by themselves and poison nothing', async () => {
	const fine = await sh(url, id, "cat > h <<'EOF'\none\ntwo $x\nthree\nEOF\ncat h");
	assert.equal(fine.out, 'one\ntwo $x\nthree\n');
	for (const script of ['cat <<EOF\nnever closed', "echo 'open", 'exit 3', 'exec false', 'set -e; false', 'kill -9 $$', '(', 'if']) {
		await within(3000, exec(url, id, ['eval', script]), script);
		assert.equal((await sh(url, id, 'echo ok')).out, 'ok\n');
	}
});

test('C006 a program that does not exist is 127, one that may not run 126, both by name', async () => {
	const missing = await exec(url, id, ['nosuchcmd']);
	assert.equal(missing.code, 127);
	assert.match(missing.stderr.toString(), /nosuchcmd/);
	assert.equal((await exec(url, id, ['/etc/passwd'])).code, 126);
});

test('C007 an interactive bash does not stop itself', async () => {
	const run = await within(5000, exec(url, id, ['bash', '-ic', 'echo hi; exit 5']), 'bash -ic');
	assert.equal(run.stdout.toString(), 'hi\n');
	assert.equal(run.code, 5);
});

test('C008 a timeout ends the whole tree, also one that ignores SIGTERM', async () => {
	const run = await within(5000, sh(url, id, 'trap "" TERM; sleep 601 & sleep 601', { timeout_ms: 500 }), 'the timeout');
	assert.equal(run.code, 124);
	assert.equal(await count('sleep 601'), 0);
});

test('C009 a kill reaches double-forked daemons too', async () => {
	const run = startExec(url, id, ['sh', '-c', 'setsid nohup sh -c "sleep 999 & sleep 999" >/dev/null 2>&1 & echo on; sleep 999'], { headers: { 'X-Exec-On-Disconnect': 'kill' } });
	await run.begun;
	await run.saw('on\n');
	await eventually(async () => (await count('sleep 999')) === 3, 'all three run');
	run.request.destroy();
	await eventually(async () => (await count('sleep 999')) === 0, 'none is left');
});

test('C010 a runaway writer whose client does not read can be ended, in flat memory', async () => {
	const box = newId();
	await sh(url, box, 'true');
	const front = programs(server.pid)['tombolo-front'];
	const before = memoryOf(front);
	const run = startExec(url, box, ['yes']);
	await run.begun;
	await run.saw('y\n');
	run.response.pause();
	await sh(url, id, 'head -c 10000000 /dev/zero >/dev/null'); // others work meanwhile
	await within(3000, remove(box), 'the delete');
	assert.ok(memoryOf(front) - before < 16 << 20, 'the front grew');
	run.request.destroy();
});

test('C011 a long timeout is taken as it is, or refused by name', async () => {
	const answer = await exec(url, id, { argv: ['true'], timeout_ms: 10 * 86400 * 1000 });
	if (answer.status === 200) assert.equal(answer.code, 0);
	else assertError({ ...answer, type: answer.type }, 400, 'invalid_request', 'timeout');
});

test('C013 a silent command is kept alive by comments', async () => {
	const lively = await Server.start({ flags: ['--keepalive-ms', '50ms'] });
	try {
		const box = newId();
		const run = startExec(lively.url, box, ['sh', '-c', 'while [ ! -e go ]; do sleep 0.02; done; echo end']);
		await run.begun;
		await eventually(() => Buffer.concat(run.raw).toString().split(':').length > 3, 'comments came');
		await call(`${lively.url}/v1/sandbox/${box}/file/workspace/go`, 'PUT', { body: '' });
		await run.done;
		assert.match(Buffer.concat(run.raw).toString(), /^(: ?[a-z-]*\n\n)+event: stdout\ndata: ZW5kCg==\n\n(: ?[a-z-]*\n\n)*event: exit\n/);
		assert.equal(run.exit.exit_code, 0);
	} finally {
		await lively.stop();
	}
});

test('C014 process substitution and /dev/fd work', async () => {
	const run = await within(5000, exec(url, id, ['bash', '-c', 'diff <(echo a) <(echo b); cat /dev/stdin </etc/hostname >/dev/null; echo x > >(cat); wait $!']), 'bash');
	assert.equal(run.stdout.toString(), '1c1\n< a\n---\n> b\nx\n');
	assert.equal(run.code, 0);
});

test('C015 orphans are reaped at once', async () => {
	await sh(url, id, `i=0; while [ $i -lt ${full ? 5000 : 500} ]; do sh -c '(true &) ; exit'; i=$((i+1)); done`);
	await eventually(async () => (await sh(url, id, 'cat /proc/[0-9]*/stat 2>/dev/null | grep -c ") Z "')).out === '0\n', 'no zombie is left');
});

test('C016 what commands leave running is listed, and ends with the sandbox', async () => {
	const box = newId();
	for (let i = 0; i < 20; i++) assert.equal((await sh(url, box, 'sleep 631 >/dev/null 2>&1 &')).exit.left_running, 1);
	const list = (await call(`${url}/v1/sandbox/${box}/processes`)).json;
	assert.equal(list.filter((process) => process.command.join(' ').includes('sleep 631')).length, 20);
	await remove(box);
	assert.deepEqual(tree(server.pid).filter((pid) => {
		try {
			return execFileSync('cat', [`/proc/${pid}/cmdline`]).toString().startsWith('sleep\0' + '631');
		} catch {
			return false;
		}
	}), []);
});

test('C017 many rounds of create, exec and delete leave no zombie and no descriptor', async () => {
	const { 'tombolo-keeper': keeper, 'tombolo-front': front } = programs(server.pid);
	const zombies = () => execFileSync('ps', ['-eo', 'stat,ppid']).toString().split('\n').filter((line) => /^Z/.test(line) && line.trim().endsWith(` ${keeper}`)).length;
	const round = async () => {
		const box = newId();
		assert.equal((await exec(url, box, ['true'])).code, 0);
		await remove(box);
	};
	for (let i = 0; i < 10; i++) await round();
	const before = [fdCount(keeper), fdCount(front)];
	for (let i = 0; i < (full ? 10000 : 200); i++) await round();
	await eventually(() => zombies() === 0, 'no zombies');
	await eventually(() => fdCount(keeper) <= before[0] + 4 && fdCount(front) <= before[1] + 4, 'descriptors are back', 10000);
});

test('C018 the command line client never waits for a stdin that nobody closes', async () => {
	const child = spawn(tombolo, ['exec', id, '--', 'echo', 'hi'], { env: { PATH: process.env.PATH, TOMBOLO_URL: url } }); // stdin: an open pipe
	let out = '';
	child.stdout.on('data', (bytes) => (out += bytes));
	assert.equal(await within(5000, new Promise((done) => child.on('close', done)), 'the client'), 0);
	assert.equal(out, 'hi\n');
});

test('C019 a client that leaves decides what becomes of the command', async () => {
	for (const [on, left] of [['kill', 0], ['keep', 1]]) {
		const run = startExec(url, id, ['sh', '-c', `echo on; sleep 632 & wait`], { headers: { 'X-Exec-On-Disconnect': on } });
		await run.begun;
		await run.saw('on\n');
		run.request.destroy();
		if (left === 0) await eventually(async () => (await count('sleep 632')) === 0, 'the tree is gone');
		else assert.equal(await count('sleep 632'), 1);
	}
});

test('C020 5 MiB of stdin with an end: the right digest, and cat ends', async () => {
	const stdin = 'x'.repeat(5 << 20);
	const sum = await exec(url, id, { argv: ['sha256sum'], stdin });
	assert.equal(sum.stdout.toString().slice(0, 64), createHash('sha256').update(stdin).digest('hex'));
	assert.equal((await exec(url, id, { argv: ['wc', '-c'], stdin })).stdout.toString().trim(), String(5 << 20));
});

test('C021 no signal is ignored or blocked in a new command', async () => {
	const run = await exec(url, id, ['grep', '-E', 'Sig(Ign|Blk)', '/proc/self/status']);
	assert.equal(run.stdout.toString(), 'SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n');
	assert.equal((await exec(url, id, ['bash', '-c', 'yes | head -n 1 >/dev/null; echo ${PIPESTATUS[0]}'])).stdout.toString(), '141\n');
});

test('C022 files, status and delete stay quick while the sandbox burns all it has', async () => {
	const { id: box } = (await call(`${url}/v1/sandbox`, 'POST', { body: '{"instance":"lite"}' })).json;
	const hog = startExec(url, box, ['sh', '-c', 'for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; echo on; while :; do (sleep 5 &) ; done 2>/dev/null']);
	await hog.begun;
	await hog.saw('on\n');
	for (let i = 0; i < 5; i++) {
		await within(2000, call(`${url}/v1/sandbox/${box}/running`), 'running');
		assert.equal((await within(2000, call(`${url}/v1/sandbox/${box}/file/workspace/f`, 'PUT', { body: 'x' }), 'PUT')).status, 200);
		assert.equal((await within(2000, call(`${url}/v1/sandbox/${box}/file/workspace/f`), 'GET')).text, 'x');
	}
	await within(5000, remove(box), 'DELETE');
	await hog.done;
});

test('C023 a sandbox whose init is stopped holds up no other', async () => {
	const box = newId();
	await sh(url, box, 'sleep 633 >/dev/null 2>&1 &');
	const init = agentOf('sleep 633');
	process.kill(init, 'SIGSTOP');
	const stuck = startExec(url, box, ['true'], {});
	for (let i = 0; i < 5; i++) {
		assert.equal((await within(2000, sh(url, id, 'echo hi'), 'exec elsewhere')).out, 'hi\n');
		const fresh = newId();
		await within(2000, sh(url, fresh, 'true'), 'create elsewhere');
		await remove(fresh);
	}
	await within(10000, remove(box), 'the delete of the stopped one');
	await stuck.begun.then((run) => run.done).catch(() => {});
});

test('C024 a command that asks a question gets an end of input at once', async () => {
	const run = await within(3000, exec(url, id, ['bash', '-c', 'read -p q x; echo got:$x; exit 9']), 'read');
	assert.equal(run.stdout.toString(), 'got:\n');
	assert.equal(run.code, 9);
});

test('C025 output that looks like events changes no event', async () => {
	const text = 'a\r\nb\rc\n\n\ndata: x\nevent: exit\n';
	const run = await exec(url, id, ['printf', '%s', text]);
	assert.equal(run.stdout.toString(), text);
	assert.ok(!run.raw.includes(0x0d));
});

test('C026 169 MB of output arrive whole', async () => {
	const run = startExec(url, id, ['seq', '1', full ? '20000000' : '4000000']);
	await run.begun;
	await run.done;
	const hash = createHash('sha256');
	for (const piece of run.stdout) hash.update(piece);
	const sum = await sh(url, id, `seq 1 ${full ? 20000000 : 4000000} | sha256sum`);
	assert.equal(hash.digest('hex'), sum.out.slice(0, 64));
	assert.equal(run.exit.exit_code, 0);
});

test('C028 writers whose clients do not read cost bounded memory and disturb nobody', async () => {
	const front = programs(server.pid)['tombolo-front'];
	const before = memoryOf(front);
	const runs = await Promise.all(Array.from({ length: 20 }, async () => {
		const run = startExec(url, id, ['yes'], { headers: { 'X-Exec-On-Disconnect': 'kill' } });
		await run.begun;
		await run.saw('y\n');
		run.response.pause();
		return run;
	}));
	for (let i = 0; i < 10; i++) await within(2000, sh(url, id, 'true'), 'exec');
	assert.ok(memoryOf(front) - before < 20 * (1 << 20) + (10 << 20), `the front grew by ${memoryOf(front) - before}`);
	for (const run of runs) run.request.destroy();
	await eventually(async () => (await count('yes')) === 0, 'the writers are gone');
});

test('C029 a command whose client left runs to its end', async () => {
	const run = startExec(url, id, ['sh', '-c', 'seq 1 3000000; echo done > ok']);
	await run.begun;
	run.request.destroy();
	await eventually(async () => (await call(`${url}/v1/sandbox/${id}/file/workspace/ok`)).text === 'done\n', 'it wrote its file', 15000);
});

test('C030 a client that leaves a silent command is noticed at once', async () => {
	const run = startExec(url, id, ['sleep', '634'], { headers: { 'X-Exec-On-Disconnect': 'kill' } });
	await run.begun;
	await eventually(async () => (await count('sleep 634')) === 1, 'it runs');
	run.request.destroy();
	await within(3000, eventually(async () => (await count('sleep 634')) === 0, 'it is gone'), 'the kill');
});

test('C031 a process that ended is listed as ended', async () => {
	await sh(url, id, 'exit 3 # C031');
	const mine = (await call(`${url}/v1/sandbox/${id}/processes`)).json.find((process) => process.command.join(' ').includes('# C031'));
	assert.equal(mine.state, 'exited');
	assert.equal(mine.exit.code, 3);
});

test('C032 deleting the sandbox ends its streams with an error event', async () => {
	const box = newId();
	const run = startExec(url, box, ['sh', '-c', 'echo on; sleep 60']);
	await run.begun;
	await run.saw('on\n');
	await remove(box);
	await within(2000, run.done, 'the end of the stream');
	assert.equal(run.error.code, 'exec_transport_error');
	assert.match(run.error.error, /delet|gone|removed/i);
});

test('C034 a timeout leaves no spinning orphan', async () => {
	for (let i = 0; i < 5; i++) await sh(url, id, 'sh -c "while :; do :; done # spin" & sh -c "while :; do :; done # spin" & wait', { timeout_ms: 100 });
	assert.equal(await count('sh -c while'), 0);
});

test('C035 a working directory that does not serve is named, with the reason', async () => {
	await sh(url, id, 'echo > afile; mkdir -p nox; chmod 600 nox');
	for (const [cwd, reason] of [['/workspace/nope', /nope.*No such file/], ['/workspace/afile', /afile.*Not a directory/], ['/workspace/nox', /nox.*Permission denied/]]) {
		const run = await exec(url, id, { argv: ['true'], cwd });
		assert.equal(run.error?.code, 'exec_error', JSON.stringify(run.exit));
		assert.match(run.error.error, reason);
	}
});

test('C036 both streams keep their order and hold nothing else', async () => {
	const n = full ? 200000 : 30000;
	const run = await exec(url, id, ['python3', '-c', `import sys\nfor i in range(1, ${n + 1}):\n print(i); print(i, file=sys.stderr)`]);
	const expected = Array.from({ length: n }, (_, i) => `${i + 1}\n`).join('');
	assert.equal(run.stdout.toString(), expected);
	assert.equal(run.stderr.toString(), expected);
});

test('C037 bytes that are no UTF-8 arrive unchanged', async () => {
	const run = await exec(url, id, ['head', '-c', '100000', '/bin/ls']);
	const sum = await sh(url, id, 'head -c 100000 /bin/ls | sha256sum');
	assert.equal(createHash('sha256').update(run.stdout).digest('hex'), sum.out.slice(0, 64));
});

test('C039 kill -9 -1 inside leaves the sandbox usable', async () => {
	const box = newId();
	await exec(url, box, ['sh', '-c', 'kill -9 -1; kill -9 1']);
	assert.equal((await sh(url, box, 'echo still')).out, 'still\n');
	assert.equal((await call(`${url}/v1/sandbox/${box}/file/workspace/f`, 'PUT', { body: 'x' })).status, 200);
	await remove(box);
});

test('C041 a full process table is an error inside and nothing else', async () => {
	const { id: box } = (await call(`${url}/v1/sandbox`, 'POST', { body: '{"limits":{"pids":128}}' })).json;
	const run = await sh(url, box, 'i=0; while [ $i -lt 200 ]; do sleep 635 >/dev/null & i=$((i+1)); done; echo made', { timeout_ms: 30000 });
	assert.match(run.err, /fork|resource/i);
	assert.equal((await call(`${url}/v1/sandbox/${box}/running`)).json.running, true);
	await within(10000, remove(box), 'the delete');
	assert.equal((await sh(url, id, 'echo fine')).out, 'fine\n');
});


test('C012 there is no hidden cap between the request and the process', async () => {
	const run = await slow;
	assert.equal(run.out, 'DONE\n');
	assert.equal(run.code, 0);
});
