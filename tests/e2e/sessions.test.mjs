// sessions.test.mjs - commands that share what a session remembers (API 3.13, 3.14; SEMANTICS 2.3).
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { assertError, call, eventually, exec, newId, sh, startExec } from './lib/client.mjs';
import { Server, cannotServe } from './lib/server.mjs';

const skip = cannotServe();

describe('sessions', { skip }, () => {
	let server, base;

	before(async () => {
		server = await Server.start();
		base = server.url;
	});
	after(() => server?.stop());

	/** One sandbox with one session: run(argv or line, more) in it. */
	function session(name = `s-${newId(8)}`, id = newId()) {
		const run = async (line, more = {}, headers = {}) => {
			const argv = Array.isArray(line) ? line : ['sh', '-c', line];
			const result = await exec(base, id, { argv, ...more }, { headers: { 'Session-Id': name, ...headers } });
			return { ...result, out: result.stdout?.toString(), err: result.stderr?.toString() };
		};
		return { id, name, run };
	}

	const post = (id, body) => call(`${base}/v1/sandbox/${id}/session`, 'POST', { body: typeof body === 'string' ? body : JSON.stringify(body) });
	const del = (id, name, prefix = '') => call(`${base}${prefix}/v1/sandbox/${id}/session/${name}`, 'DELETE');

	test('cd and variables persist, also when the command is wrapped', async () => {
		const { run } = session();
		await run(['mkdir', '-p', 'src/deep']);
		assert.equal((await run(['cd', 'src'])).code, 0);
		await run(['sh', '-lc', 'cd deep; export A="x y"; B=unexported']);
		const seen = await run(['bash', '-c', 'pwd; printf "%s|%s\\n" "$A" "$B"; sh -c \'echo "[$A$B]"\'']);
		assert.equal(seen.out, '/workspace/src/deep\nx y|unexported\n[x y]\n');
	});

	test('functions, aliases, umask and options persist', async () => {
		const { run } = session();
		await run("f() { echo \"f:$1\"; }; shopt -s expand_aliases extglob; alias hi='echo hello'; umask 027; set -f");
		const seen = await run('f 1; hi there; umask; shopt -q extglob && echo ext; echo *');
		assert.equal(seen.out, 'f:1\nhello there\n0027\next\n*\n');
	});

	test('arrays, odd bytes, attributes and read-only variables persist', async () => {
		const { run } = session();
		await run('a=(1 "2 3" $\'\\n\'); declare -A m=([k 1]=v); declare -i n=4; readonly r=fixed; bytes=$\'\\xff\\x01\'; q="\'\\"\\$x\\`"');
		const seen = await run('echo "${#a[@]} ${a[1]} ${m[k 1]}"; n=n+1; echo $n; (r=2) 2>/dev/null; echo $r; printf %s "$bytes$q" | od -An -tx1');
		assert.equal(seen.out, '3 2 3 v\n5\nfixed\n ff 01 27 22 24 78 60\n');
		assert.equal((await run('echo still')).out, 'still\n');
	});

	test('C005 no text of a command spoils the session', async () => {
		const { run } = session();
		const heredoc = await run("cat > f <<'EOF'\none\n$two\n`three`\nEOF");
		assert.equal(heredoc.code, 0);
		assert.equal((await run('cat f')).out, 'one\n$two\n`three`\n');
		await run('kept=yes');
		for (const [line, code] of [
			["cat <<EOF\nnever ends", 0],
			["echo 'unbalanced", 2],
			['echo "unbalanced', 2],
			['if true', 2],
			['exit 3', 3],
			['exec false', 1],
			['(exit 4)', 4],
			['set -e; false; echo not reached', 1],
			['set +e; false', 1],
			['kill -9 $$', 137],
			['kill -TERM $$; sleep 10', 143],
			['return 5', 2],
			['trap "echo bye" EXIT; exit 6', 6],
			['set -u; echo $nothing', 127],
			['set +u', 0],
			['builtin() { exit 9; }; unset -f builtin', 0],
			['exec 10>/dev/null 11>&- 63>&- 64>&- 65>&- 66>&-', 0],
			['set -n; echo never', 0],
		]) {
			const run1 = await run(line);
			assert.equal(run1.code, code, `${line}: ${run1.err}`);
			const ok = await run('echo "ok $kept"');
			assert.deepEqual([ok.out, ok.code], ['ok yes\n', 0], `after ${line}`);
		}
	});

	test('exit keeps what was done before it, a signal and a timeout do not', async () => {
		const { run } = session();
		await run('cd /tmp; x=1; exit 7');
		assert.equal((await run('echo "$PWD $x"')).out, '/tmp 1\n');
		await run('leave() { cd /usr; exit 8; }; leave');
		assert.equal((await run('pwd')).out, '/usr\n');
		await run('x=2; kill -9 $$');
		assert.equal((await run('echo $x')).out, '1\n');
		const late = await run('x=3; sleep 60', { timeout_ms: 300 });
		assert.equal(late.code, 124);
		assert.equal((await run('echo $x')).out, '1\n');
	});

	test("the command's own EXIT trap runs, and the state is kept all the same", async () => {
		const { run } = session();
		const ended = await run('trap "echo bye; pwd" EXIT; cd /tmp');
		assert.equal(ended.out, 'bye\n/tmp\n');
		assert.equal((await run('pwd')).out, '/tmp\n');
		const left = await run('trap "echo bye; pwd" EXIT; cd /usr; exit 3');
		assert.deepEqual([left.out, left.code], ['bye\n/usr\n', 3]);
		assert.equal((await run('pwd')).out, '/usr\n');
		assert.equal((await run('trap "echo E" ERR; false')).out, 'E\n');
		assert.equal((await run("trap -p ERR DEBUG")).out, "");
	});

	test('aliases and options of a command do not come between, and are kept', async () => {
		const { run } = session();
		await run("x=1; shopt -s expand_aliases nullglob; alias local=false builtin=false case=false [=false; mkdir given");
		const line = 'trap "echo bye" EXIT; echo $x ${A-unset} ${PWD##*/} none*; x=$((x + 1)); case; echo $?';
		assert.equal((await run(line)).out, '1 unset workspace\n1\nbye\n');
		assert.equal((await run(line, { cwd: '/workspace/given', env: { A: 'given' } })).out, '2 given given\n1\nbye\n');
		assert.equal((await run(line)).out, '3 unset workspace\n1\nbye\n');
		await run('unalias -a; shopt -u expand_aliases; set -u; export -n HOME; unset LANG LC_ALL');
		const seen = await run('sh -c "echo \\${HOME-unset} \\${LANG-unset}"; echo $HOME; shopt -q expand_aliases || echo off; echo $LANG; echo no');
		assert.equal(seen.out, 'unset unset\n/home/sandbox\noff\n');
	});

	test('cwd and env of a request count for that command only, unless it changes them', async () => {
		const { run } = session();
		await run('mkdir -p a/b; A=own; cd a');
		assert.equal((await run('pwd; echo $A $C', { cwd: '/workspace', env: { A: 'given', C: 'c' } })).out, '/workspace\ngiven c\n');
		assert.equal((await run('pwd; echo $A ${C-unset}')).out, '/workspace/a\nown unset\n');
		await run('cd a/b; A=changed; unset C', { cwd: '/workspace', env: { A: 'given', C: 'c' } });
		assert.equal((await run('pwd; echo $A ${C-unset}')).out, '/workspace/a/b\nchanged unset\n');
		await run('unset A; cd /tmp', { env: { A: 'given' } });
		assert.equal((await run('echo ${A-unset}; pwd; cd -')).out, 'unset\n/tmp\n/workspace/a/b\n');
		assert.equal((await run('true', { cwd: '/workspace/missing' })).error?.code, 'exec_error');
		assert.equal((await run('true', { cwd: '/etc' })).status, 403);
	});

	test('nothing of ours is in the way of a command', async () => {
		const { run } = session();
		await run('true');
		assert.equal((await run('ls /proc/self/fd | tr "\\n" " "')).out, '0 1 2 3 ');
		assert.equal((await run(['bash', '-c', 'echo "$0 $# $-"; [ -t 0 ] || cat; echo $?'])).out, 'bash 0 hBc\n0\n');
		assert.equal((await run(['sh', '-c', 'echo $0'])).out, 'sh\n');
		assert.equal((await run('env | grep -c tombolo')).out, '0\n');
		assert.equal((await run('nosuchcommand')).err, 'sh: line 1: nosuchcommand: command not found\n');
		assert.equal((await run('echo in', { stdin: 'x' })).out, 'in\n');
		assert.equal((await run('cat', { stdin: 'from stdin' })).out, 'from stdin');
	});

	test('a long command line and a large state', async () => {
		const { run } = session();
		const text = 'x'.repeat(300_000);
		assert.equal((await run(`big=${text}; echo \${#big}`)).out, '300000\n');
		assert.equal((await run('echo ${#big}')).out, '300000\n');
	});

	test('what is seeded at creation, and a default timeout', async () => {
		const { id, name, run } = session();
		const made = await post(id, { id: name, cwd: '/tmp', env: { A: '1', B: null, N: 5, 'odd-name': 'o' }, commandTimeoutMs: 400 });
		assert.deepEqual([made.status, made.json], [200, { id: name }]);
		assert.equal((await run('pwd; echo $A ${B-unset} $N; env | grep odd')).out, '/tmp\n1 unset 5\nodd-name=o\n');
		await run('unset A');
		assert.equal((await run('echo ${A-gone}')).out, 'gone\n');
		const late = await run('sleep 60');
		assert.equal(late.code, 124);
		assert.match(late.err, /Command timed out after \d+ms\n$/);
		assert.equal((await run('sleep 0.6; echo on time', { timeout_ms: 30_000 })).out, 'on time\n');
	});

	test('variables given at creation are the commands\', not settings of the bash that runs them', async () => {
		const { id, name, run } = session();
		await sh(base, id, "echo 'echo startup; x=startup' >/tmp/startup");
		const env = { BASH_ENV: '/tmp/startup', ENV: '/tmp/startup', SHELLOPTS: 'xtrace:verbose:noexec', BASHOPTS: 'failglob', PS4: '$(touch /tmp/ps4)> ', IFS: '/_', BASH_XTRACEFD: '1', FOO: "a 'b' \"$c\" \n", 'odd-name': 'o', 'BASH_FUNC_builtin%%': '() { echo hidden; }' };
		await post(id, { id: name, env });
		for (let i = 0; i < 2; i++) {
			const seen = await run('echo "${x-unset}|$-|$FOO|$BASH_ENV"; echo none*; env | grep -c "^odd-name=o$"; bash -c "echo \\$x"; [ -e /tmp/ps4 ] || echo quiet; printf "%q\\n" "$IFS"');
			assert.equal(seen.out, `unset|hBc|${env.FOO}|/tmp/startup\nnone*\n1\nstartup\nstartup\nquiet\n/_\n`);
			assert.equal(seen.err, '');
		}
		await run('unset BASH_ENV FOO IFS');
		assert.equal((await run('echo "${BASH_ENV-gone} ${FOO-gone}"; bash -c :')).out, 'gone gone\n');
	});

	test('a cwd that is not there falls back to the home directory', async () => {
		const { id, name, run } = session();
		await post(id, { id: name, cwd: '/nowhere' });
		assert.equal((await run('[ "$PWD" = "$HOME" ] && echo home')).out, 'home\n');
		await run('mkdir -p /tmp/gone; cd /tmp/gone');
		await run('rmdir /tmp/gone');
		assert.equal((await run('[ "$PWD" = "$HOME" ] && echo home')).out, 'home\n');
	});

	test('errors of creation and deletion', async () => {
		const { id, name } = session();
		assert.equal((await post(id, { id: name })).status, 200);
		assertError(await post(id, { id: name }), 502, 'session_error', 'session create failed');
		assertError(await post(id, { id: 'a/b' }), 400, 'invalid_request', 'Invalid session ID format');
		assertError(await post(id, { id: 'a..b' }), 400, 'invalid_request', 'Invalid session ID format');
		assertError(await call(`${base}/v1/sandbox/${id}/exec`, 'POST', { body: '{"argv":["true"]}', headers: { 'Session-Id': 'a b' } }), 400, 'invalid_request', 'Invalid session ID format');
		for (const body of ['', 'no json', 'null', '[]', '7']) {
			const made = await post(id, body);
			assert.match(made.json.id, /^session-[a-zA-Z0-9._-]{16,}$/);
		}
		const gone = await del(id, name);
		assert.equal(gone.status, 200);
		assert.deepEqual([gone.json.success, gone.json.sessionId], [true, name]);
		assert.match(gone.json.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
		assertError(await del(id, name), 502, 'session_error', 'session delete failed');
		assertError(await del(id, 'default'), 502, 'session_error', 'session delete failed');
		assertError(await del(newId(), 'never'), 502, 'session_error', 'session delete failed');
	});

	test('deletion ends the commands that are listened to, and leaves what was detached', async () => {
		const { id, name, run } = session();
		await run('(trap "" HUP; exec sleep 1000) >/dev/null 2>&1 & echo $! > /tmp/detached');
		// A child that is just being forked would miss the signal, and be killed after the grace.
		const listening = startExec(base, id, ['sh', '-c', 'sleep 1000 & echo begun; wait'], { headers: { 'Session-Id': name } });
		await listening.saw('begun');
		assert.equal((await del(id, name)).status, 200);
		await listening.done;
		assert.equal(listening.exit.exit_code, 143);
		assert.equal((await sh(base, id, 'kill -0 $(cat /tmp/detached) && echo lives')).out, 'lives\n');
		assert.equal((await run('echo ${x-new}')).out, 'new\n');
	});

	test('deletion kills what does not want to end, 5 s after it was asked, and is answered then', async () => {
		const { id, name } = session();
		const stubborn = startExec(base, id, ['sh', '-c', 'trap "" TERM; echo begun; while :; do sleep 0.1; done'], { headers: { 'Session-Id': name } });
		await stubborn.saw('begun');
		const asked = performance.now();
		assert.equal((await del(id, name)).status, 200);
		const ms = performance.now() - asked;
		assert.ok(ms > 4500 && ms < 15_000, `answered after ${Math.round(ms)} ms`);
		await stubborn.done;
		assert.deepEqual([stubborn.exit.exit_code, stubborn.exit.signal], [137, 'SIGKILL']);
	});

	test('the name in the path of a deletion is decoded, once', async () => {
		const { id } = session();
		for (const [name, path] of [['a.b', 'a%2Eb'], ['A_-9', '%41_%2d9']]) {
			await post(id, { id: name });
			const gone = await del(id, path);
			assert.deepEqual([gone.status, gone.json.sessionId], [200, name]);
		}
		await post(id, { id: 'c.d' });
		for (const path of ['c%252Ed', 'c%2Fd', '%00', '%ff', '..%2f', 'x'.repeat(3000)]) assertError(await del(id, path), 502, 'session_error', 'session delete failed');
		assert.equal((await del(id, 'c.d')).status, 200);
		assert.equal((await del(id, '')).text, '404 Not Found');
	});

	test('a session that was deleted while a command ran gets nothing of it', async () => {
		const { id, name, run } = session();
		const running = startExec(base, id, ['sh', '-c', 'trap "exit 0" TERM; x=old; echo begun; while :; do sleep 0.05; done'], { headers: { 'Session-Id': name } });
		await running.saw('begun');
		await del(id, name);
		await running.done;
		assert.equal((await run('echo ${x-new}')).out, 'new\n');
	});

	test('parallel sessions are apart, and overlapping commands of one end in the order of their ends', async () => {
		const { id, run } = session();
		const names = Array.from({ length: 8 }, (_, i) => `p${i}`);
		await Promise.all(names.map((name) => run(`x=${name}; cd /tmp`, {}, { 'Session-Id': name })));
		const seen = await Promise.all(names.map((name) => run('echo $x', {}, { 'Session-Id': name })));
		assert.deepEqual(seen.map(({ out }) => out), names.map((name) => `${name}\n`));

		const first = startExec(base, id, ['sh', '-c', 'x=slow; echo begun; until [ -e go ]; do sleep 0.02; done'], { headers: { 'Session-Id': 'one' } });
		await first.saw('begun');
		await run('x=quick', {}, { 'Session-Id': 'one' });
		await sh(base, id, 'touch go');
		await first.done;
		assert.equal((await run('echo $x', {}, { 'Session-Id': 'one' })).out, 'slow\n');
	});

	test('C052 twenty commands at once in one session do not mix', async () => {
		const { run } = session();
		const runs = await Promise.all(Array.from({ length: 20 }, (_, i) => run(`t=token${i}; for i in {1..1000}; do echo $t; done`)));
		runs.forEach(({ out, code }, i) => {
			assert.equal(code, 0);
			assert.equal(out, `token${i}\n`.repeat(1000));
		});
	});

	test('C050 delete and create again under the same names', async () => {
		const id = newId();
		for (let i = 0; i < (process.env.TOMBOLO_FULL ? 100 : 10); i++) {
			assert.equal((await post(id, { id: 's' })).status, 200);
			const { run } = session('s', id);
			assert.equal((await run('[ ! -e old ] && [ -z "$x" ] && touch old && x=1 && echo clean')).out, 'clean\n');
			assert.equal((await call(`${base}/v1/sandbox/${id}`, 'DELETE')).status, 204);
		}
	});

	test('C053 made-up ids never meet', async () => {
		const id = newId();
		const ids = new Set();
		const rounds = process.env.TOMBOLO_FULL ? 200 : 10;
		for (let round = 0; round < rounds; round++) {
			const made = await Promise.all(Array.from({ length: 50 }, () => post(id, '{}')));
			for (const { json } of made) ids.add(json.id);
		}
		assert.equal(ids.size, rounds * 50);
	});

	test('the session used longest ago is forgotten when there are too many', async () => {
		const { id, run } = session('oldest');
		await run('x=1');
		for (let round = 0; round < 20; round++) await Promise.all(Array.from({ length: 50 }, () => post(id, '{}')));
		assert.equal((await run('echo ${x-forgotten}')).out, 'forgotten\n');
	});

	test('legacy: commands without a Session-Id share one session, which cannot be deleted', async () => {
		const id = newId();
		const run = async (path, line) => (await exec(base, id, ['sh', '-c', line], { path: `${path}/v1/sandbox/${id}/exec` })).stdout.toString();
		await run('/legacy', 'x=1; cd /tmp');
		assert.equal(await run('/legacy', 'echo $x; pwd'), '1\n/tmp\n');
		assert.equal(await run('/stable', 'echo ${x-none}; pwd'), 'none\n/workspace\n');
		assertError(await del(id, 'default', '/legacy'), 502, 'session_error');
		const made = await call(`${base}/legacy/v1/sandbox/${id}/session`, 'POST', { body: '{"id":"a"}' });
		assert.equal(made.status, 200);
		const gone = await del(id, 'a', '/legacy');
		assert.deepEqual([gone.status, gone.text], [204, '']);
		assert.equal((await call(`${base}/next/v1/sandbox/${id}/session`, 'POST', { body: '{}' })).status, 404);
	});

	test('a client that left loses its command nothing: the state is kept', async () => {
		const { id, name, run } = session();
		const leaving = startExec(base, id, ['sh', '-c', 'echo begun; until [ -e go ]; do sleep 0.02; done; x=kept; echo $$ > done'], { headers: { 'Session-Id': name } });
		await leaving.saw('begun');
		leaving.request.destroy();
		// To its end: a command that overlaps it would put its own state in the place of this one's.
		await sh(base, id, 'touch go; until [ -s done ]; do sleep 0.02; done; while kill -0 $(cat done) 2>/dev/null; do sleep 0.02; done');
		await eventually(async () => (await run('echo $x')).out === 'kept\n', 'the state of the abandoned command');
	});
});
