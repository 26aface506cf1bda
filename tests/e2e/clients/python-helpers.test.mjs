// What the Python client runs by itself, CLIENTS.md 1.4, and its terminals, 1.8. The scripts are not the client's but of the same
// programs and constructs, installed and called in the same way.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import { eventually, Wire } from '../lib/client.mjs';
import { Server } from '../lib/server.mjs';
import { head, Python, serve } from './lib/python.mjs';

const key = 'K';
const { server, python, id } = await serve(key);

/** The path that a helper of this text is installed at, and the command that does it. */
function helper(name, script) {
	const path = `/tmp/openai-agents/bin/${name}-${createHash('sha256').update(script).digest('hex').slice(0, 12)}`;
	const mark = `HELPER_${name.toUpperCase().replaceAll('-', '_')}`;
	const install = `set -eu
dest="$1"
tmp="$1.tmp.$$"
mkdir -p -- "$(dirname -- "$dest")"
cleanup() {
	rm -f -- "$tmp"
}
trap cleanup EXIT INT TERM
cat > "$tmp" <<'${mark}'
${script}
${mark}
chmod 0555 "$tmp"
if [ -d "$dest" ]; then
	rm -rf -- "$dest"
fi
if [ -x "$dest" ] && command -v cmp >/dev/null 2>&1 && cmp -s "$dest" "$tmp"; then
	rm -f -- "$tmp"
	trap - EXIT INT TERM
	exit 0
fi
rm -f -- "$dest"
mv -f -- "$tmp" "$dest"
trap - EXIT INT TERM`;
	return { path, install: ['sh', '-c', install, 'sh', path] };
}

const resolver = helper('resolve-workspace-path', `#!/bin/sh
set -eu
[ "$#" -ge 3 ] || exit 64
root=$1
candidate=$2
for_write=$3
shift 3
case "$for_write" in 0|1) ;; *) printf 'for_write: %s\\n' "$for_write" >&2; exit 64 ;; esac
[ $(( $# % 2 )) -eq 0 ] || exit 64
follow() {
	path=$1
	depth=$2
	[ "$depth" -lt 64 ] || { printf 'too many links: %s\\n' "$path" >&2; exit 112; }
	if [ -d "$path" ]; then ( cd "$path" && pwd -P ); return 0; fi
	parent=\${path%/*}
	base=\${path##*/}
	above=$(follow "\${parent:-/}" "$depth")
	if [ -L "$above/$base" ]; then
		target=$(readlink "$above/$base")
		case "$target" in
			/*) follow "$target" $((depth + 1)) ;;
			*) follow "$above/$target" $((depth + 1)) ;;
		esac
		return 0
	fi
	printf '%s/%s\\n' "\${above%/}" "$base"
}
real=$(follow "$candidate" 0)
top=$(follow "$root" 0)
case "$real" in "$top"|"$top"/*) printf '%s\\n' "$real"; exit 0 ;; esac
while [ "$#" -gt 0 ]; do
	grant=$(follow "$1" 0)
	[ "$grant" != / ] || exit 113
	case "$real" in
		"$grant"|"$grant"/*)
			if [ "$for_write" = 1 ] && [ "$2" = 1 ]; then exit 114; fi
			printf '%s\\n' "$real"
			exit 0 ;;
	esac
	shift 2
done
printf 'outside: %s\\n' "$real" >&2
exit 111`);

const fingerprint = helper('workspace-fingerprint', `#!/bin/sh
set -eu
root=$1
version=$2
out=$3
digest=$4
shift 4
hash() {
	if command -v sha256sum >/dev/null 2>&1; then sha256sum | awk '{print $1}'; return; fi
	if command -v shasum >/dev/null 2>&1; then shasum -a 256 | awk '{print $1}'; return; fi
	openssl dgst -sha256 | awk '{print $NF}'
}
quote() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\\\\\''/g")"; }
tar_cmd=tar
if tar --help 2>/dev/null | grep -q -- '--no-wildcards'; then tar_cmd="$tar_cmd --no-wildcards"; fi
for rel in "$@"; do tar_cmd="$tar_cmd --exclude=$(quote "$rel") --exclude=$(quote "./$rel")"; done
tar_cmd="$tar_cmd -C $(quote "$root") -cf - ."
sum=$(sh -lc "$tar_cmd" | hash)
all=$(printf '%s\\n%s\\n' "$sum" "$digest" | hash)
payload=$(printf '{"fingerprint":"%s","version":"%s"}\\n' "$all" "$version")
mkdir -p -- "$(dirname -- "$out")"
tmp="$out.tmp.$$"
printf '%s' "$payload" > "$tmp"
mv -f -- "$tmp" "$out"
printf '%s' "$payload"`);

const probe = `LC_ALL=C
export LC_ALL
path=$1
if [ -L "$path" ]; then readlink -n "$path"; exit 2; fi
said=$(find "$path" -prune -print 2>&1) && { printf '%s' "$said"; exit 0; }
case "$said" in *': No such file or directory') exit 1 ;; esac
printf '%s' "$said" >&2
exit 3`;

/** Runs and asserts the exit code. */
async function expect(code, argv, options) {
	const run = await python.exec(id, argv, options);
	assert.equal(run.code, code, `${JSON.stringify(argv).slice(0, 200)}: ${run.stdout}${run.stderr}`);
	return run.stdout.toString();
}

const resolve = (candidate, forWrite = '0', ...grants) => [resolver.path, '/workspace', candidate, forWrite, ...grants];

// ---- helpers

test('P17 a helper is installed, again over itself, and over a directory', async () => {
	await expect(1, ['test', '-x', resolver.path]);
	await expect(0, resolver.install);
	await expect(0, ['test', '-x', resolver.path]);
	const stat = await expect(0, ['stat', '-c', '%a %i', resolver.path]);
	assert.match(stat, /^555 /);
	await expect(0, resolver.install);
	assert.equal(await expect(0, ['stat', '-c', '%a %i', resolver.path]), stat, 'the same one was made anew');
	await expect(0, ['sh', '-c', 'rm -f -- "$1" && mkdir -p "$1/x"', 'sh', resolver.path]);
	await expect(0, resolver.install);
	await expect(0, ['test', '-x', resolver.path]);
	assert.equal(await expect(0, ['sh', '-c', 'ls /tmp/openai-agents/bin | grep -c tmp || :']), '0\n');
});

test('P18 it runs by its path; every exit code it knows', async () => {
	await expect(0, resolver.install);
	await expect(0, ['sh', '-c', 'mkdir -p d "sp ace" /tmp/granted; touch d/f; ln -sfn d l; ln -sfn /etc out; ln -sfn b a; ln -sfn a b; ln -sfn "../workspace/sp ace" s; ln -sfn missing dangling']);
	assert.equal(await expect(0, resolve('/workspace')), '/workspace\n');
	assert.equal(await expect(0, resolve('/workspace/l/f', '1')), '/workspace/d/f\n');
	assert.equal(await expect(0, resolve('/workspace/new/deep er')), '/workspace/new/deep er\n');
	assert.equal(await expect(0, resolve('/workspace/s/x')), '/workspace/sp ace/x\n');
	assert.equal(await expect(0, resolve('/workspace/dangling')), '/workspace/missing\n');
	await expect(111, resolve('/workspace/out/passwd'));
	await expect(111, resolve('/etc'));
	await expect(112, resolve('/workspace/a'));
	await expect(64, resolve('/workspace', '2'));
	await expect(64, resolve('/workspace', '0', '/tmp'));
	await expect(113, resolve('/var/x', '0', '/', '0'));
	assert.equal(await expect(0, resolve('/tmp/granted/x', '1', '/tmp/granted', '0')), '/tmp/granted/x\n');
	await expect(114, resolve('/tmp/granted/x', '1', '/tmp/granted', '1'));
	assert.equal(await expect(0, resolve('/workspace/d'), { environment: { A: '1', B: 'x y' } }), '/workspace/d\n');
});

test('P19 a file operation is one exec and one request, many of them at once', async () => {
	await expect(0, resolver.install);
	const own = await Promise.all(Array.from({ length: 10 }, () => Python.connect(server.port, { key })));
	await Promise.all(own.map(async (one, i) => {
		const { stdout } = await one.exec(id, resolve(`/workspace/many/f${i}`, '1'));
		const path = stdout.toString().trim();
		assert.equal((await one.ask('PUT', `/v1/sandbox/${id}/file${path}`, { bytes: Buffer.from(`${i}`) })).status, 200);
		assert.equal((await one.ask('GET', `/v1/sandbox/${id}/file${path}`)).body.toString(), `${i}`);
		one.close();
	}));
});

test('P20 the programs it calls directly', async () => {
	await expect(0, ['mkdir', '-p', 'p20/sub']);
	await expect(0, ['mkdir', 'p20/one']);
	await expect(1, ['mkdir', 'p20/one']);
	await expect(0, ['sh', '-c', 'echo text > "p20/a file"; ln -sfn "a file" p20/link']);
	const rows = (await expect(0, ['ls', '-la', '--', '/workspace/p20'])).trimEnd().split('\n');
	assert.match(rows[0], /^total \d+$/);
	assert.ok(rows.slice(1).every((row) => row.split(/\s+/).length >= 9), rows.join('\n'));
	const link = rows.find((row) => row.startsWith('l'));
	assert.match(link, /link -> a file$/);
	assert.equal(await expect(0, ['cat', '--', '/workspace/p20/a file']), 'text\n');
	await expect(1, ['rm', '--', '/workspace/p20/sub']);
	await expect(0, ['rm', '-rf', '--', '/workspace/p20/sub']);
	await expect(0, ['rm', '-f', '--', '/workspace/p20/missing']);
	await expect(0, ['rm', '--', '/workspace/p20/a file']);
	await expect(0, ['test', '-d', '/workspace']);
});

test('P21 access checks and the probe that tells missing from unreadable', async () => {
	const access = '[ -r "$1" ] && [ -w "$1" ] && [ -w "$(dirname -- "$1")" ]';
	await expect(0, ['sh', '-c', 'mkdir -p p21; echo x > p21/f; ln -sfn f p21/l; mkdir -p p21/shut/in; chmod 0 p21/shut']);
	await expect(0, ['sh', '-lc', access, 'sh', '/workspace/p21/f']);
	await expect(1, ['sh', '-lc', access, 'sh', '/etc/passwd']);
	assert.equal(await expect(0, ['sh', '-c', probe, 'sh', '/workspace/p21/f']), '/workspace/p21/f');
	await expect(1, ['sh', '-c', probe, 'sh', '/workspace/p21/none']);
	assert.equal(await expect(2, ['sh', '-c', probe, 'sh', '/workspace/p21/l']), 'f');
	if ((await expect(0, ['id', '-u'])) !== '0\n') await expect(3, ['sh', '-c', probe, 'sh', '/workspace/p21/shut/in']);
	const { stderr, code } = await python.exec(id, ['env', 'LC_ALL=C', 'find', '/workspace/p21/none', '-prune', '-print']);
	assert.equal(code, 1);
	assert.match(stderr.toString(), /: No such file or directory\n$/);
	await expect(0, ['chmod', '0755', 'p21/shut']);
});

test('P22 metadata, groups and users, as root', async (t) => {
	await expect(0, ['chmod', '0640', 'p21']);
	const asRoot = await Server.start({ flags: ['--user', 'root'] });
	t.after(() => asRoot.stop());
	const root = await Python.connect(asRoot.port);
	t.after(() => root.close());
	const { json } = await root.ask('POST', '/v1/sandbox');
	for (const argv of [
		['groupadd', 'analysts'], ['useradd', '-U', '-M', '-s', '/usr/sbin/nologin', 'alice'], ['usermod', '-aG', 'analysts', 'alice'],
		['sh', '-c', 'mkdir -p d && echo x > d/f'], ['chgrp', 'analysts', '/workspace/d'], ['chown', 'alice:alice', '--', '/workspace/d/f'], ['chmod', '0750', '/workspace/d'],
	]) {
		const run = await root.exec(json.id, argv);
		assert.equal(run.code, 0, `${argv.join(' ')}: ${run.stderr}`);
	}
	assert.equal((await root.exec(json.id, ['stat', '-c', '%a %U %G', 'd', 'd/f'])).stdout.toString(), '750 root analysts\n644 alice alice\n');
	assert.match((await root.exec(json.id, ['id', 'alice'])).stdout.toString(), /\(analysts\)/);
	assert.equal((await root.exec(json.id, ['su', '-s', '/bin/sh', 'alice', '-c', 'id -un'])).stdout.toString(), 'alice\n');
});

test('P23 git entries: clone by name, fetch by commit, copy', async (t) => {
	if ((await python.exec(id, ['sh', '-lc', 'command -v git'])).code !== 0) return t.skip('this host has no git');
	await expect(0, ['sh', '-c', 'set -e; mkdir -p origin; cd origin; git init -q -b main .; git config user.email a@b; git config user.name n; git config uploadpack.allowAnySHA1InWant true; echo v1 > f; git add f; git commit -qm one; echo v2 > f; git commit -qam two']);
	const sha = (await expect(0, ['git', '-C', 'origin', 'rev-parse', 'HEAD~1'])).trim();
	const url = 'file:///workspace/origin';
	await expect(0, ['rm', '-rf', '--', '/tmp/sandbox-git-1', '/tmp/sandbox-git-2']);
	await expect(0, ['git', 'clone', '--depth', '1', '--no-tags', '--branch', 'main', url, '/tmp/sandbox-git-1']);
	await expect(0, ['git', 'init', '/tmp/sandbox-git-2']);
	await expect(0, ['git', '-C', '/tmp/sandbox-git-2', 'remote', 'add', 'origin', url]);
	await expect(0, ['git', '-C', '/tmp/sandbox-git-2', 'fetch', '--depth', '1', '--no-tags', 'origin', sha]);
	await expect(0, ['git', '-C', '/tmp/sandbox-git-2', 'checkout', '--detach', 'FETCH_HEAD']);
	await expect(0, ['mkdir', '-p', 'r1', 'r2']);
	await expect(0, ['cp', '-R', '--', '/tmp/sandbox-git-1/.', '/workspace/r1/']);
	await expect(0, ['cp', '-R', '--', '/tmp/sandbox-git-2/.', '/workspace/r2/']);
	assert.equal(await expect(0, ['cat', 'r1/f', 'r2/f']), 'v2\nv1\n');
});

test('P24 the fingerprint: the same for the same files, another one for others, excludes count', async () => {
	await expect(0, fingerprint.install);
	const take = async (...excludes) => {
		const out = '/tmp/openai-agents/state/fingerprint.json';
		const said = JSON.parse(await expect(0, [fingerprint.path, '/workspace', 'v1', out, 'digest', ...excludes]));
		assert.deepEqual(JSON.parse(await expect(0, ['cat', '--', out])), said);
		assert.match(said.fingerprint, /^[0-9a-f]{64}$/);
		return said.fingerprint;
	};
	await expect(0, ['sh', '-c', 'mkdir -p p24/mnt; echo 1 > p24/f; echo 1 > p24/mnt/x']);
	const first = await take();
	const without = await take('p24/mnt');
	assert.equal(await take(), first);
	assert.notEqual(first, without);
	await expect(0, ['sh', '-c', 'echo 2 > p24/mnt/x']);
	assert.notEqual(await take(), first);
	assert.equal(await take('p24/mnt'), without);
});

test('P25 a mount helper that is missing is told by command -v', async () => {
	assert.notEqual((await python.exec(id, ['sh', '-lc', 'command -v mount-s3-not-there'])).code, 0);
});

// ---- terminals

/** The library's handshake on a raw connection. */
async function handshake(t) {
	const wire = await Wire.open(server.port);
	t.after(() => wire.close());
	await wire.send(head('GET', `/v1/sandbox/${id}/pty?cols=80&rows=24`, { host: `127.0.0.1:${server.port}`, key, upgrade: 'dGhlIHNhbXBsZSBub25jZQ==' }).text);
	return wire;
}

/** What the client keeps: binary before `ready` is discarded, after it output; `exit` ends it. */
function terminal(t) {
	const ws = new WebSocket(`ws://127.0.0.1:${server.port}/v1/sandbox/${id}/pty?cols=80&rows=24`, { headers: { Authorization: `Bearer ${key}` } });
	const entry = { ws, output: '', isReady: false, ended: false, code: undefined };
	ws.on('message', (data, isBinary) => {
		if (isBinary) entry.output += entry.isReady ? data.toString() : '';
		else {
			const message = JSON.parse(data.toString());
			if (message.type === 'ready') entry.isReady = true;
			if (message.type === 'exit') Object.assign(entry, { ended: true, code: message.code });
		}
	});
	ws.on('close', () => (entry.ended = true));
	t.after(() => ws.terminate());
	return entry;
}

async function started(t, line) {
	const entry = terminal(t);
	await eventually(() => entry.isReady, 'ready', 30_000);
	entry.ws.send(Buffer.from(`${line}\n`));
	return entry;
}

test('P35 P36 the handshake, then a text frame that is `ready`', async (t) => {
	const wire = await handshake(t);
	const bytes = await wire.until((all) => all.includes('"ready"') && all);
	const [answer] = bytes.toString('latin1').split('\r\n\r\n');
	assert.match(answer, /^HTTP\/1\.1 101 /);
	assert.match(answer, /sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/i);
	assert.doesNotMatch(answer, /sec-websocket-(protocol|extensions)/i);
	const frame = bytes.subarray(answer.length + 4);
	assert.equal(frame[0], 0x81, 'not one unfragmented text frame');
	assert.deepEqual(JSON.parse(frame.subarray(2, 2 + frame[1]).toString()), { type: 'ready' });
});

test('P36 without the key there is no terminal', async () => {
	const ws = new WebSocket(`ws://127.0.0.1:${server.port}/v1/sandbox/${id}/pty?cols=80&rows=24`);
	const status = await new Promise((done) => ws.on('unexpected-response', (_, response) => done(response.statusCode)).on('error', () => {}));
	assert.equal(status, 401);
	ws.terminate();
});

test('P37 P38 a command line typed, its output, exit with an integer', async (t) => {
	const entry = await started(t, "sh -lc 'printf \"h\\303\\244llo \"; stty size; tty'");
	await eventually(() => /hällo 24 80\r\n\/dev\/pts\/\d+/.test(entry.output), 'the output');
	entry.ws.send(Buffer.from('exit 5\n'));
	await eventually(() => entry.ended, 'the end');
	assert.equal(entry.code, 5);
});

test('P39 closing is killing', async (t) => {
	const entry = await started(t, "sh -lc 'echo $$ > /workspace/p39; exec sleep 317'");
	const alive = async () => (await python.sh(id, 'kill -0 "$(cat p39)" 2>/dev/null && echo yes')).stdout.toString() === 'yes\n';
	await eventually(alive, 'it runs');
	entry.ws.close();
	await eventually(async () => !(await alive()), 'it is gone', 10_000);
});

test('P39 sixty-four independent shells', { timeout: 120_000 }, async (t) => {
	const all = await Promise.all(Array.from({ length: 64 }, (_, i) => started(t, `X=mine-${i}; sleep 0; echo "<$X-$((${i} + 1000))>"`)));
	await eventually(() => all.every((entry, i) => entry.output.includes(`<mine-${i}-${i + 1000}>`)), 'each has its own answer', 60_000);
	all.forEach((entry, i) => assert.equal([...entry.output.matchAll(/<mine-(\d+)-/g)].every(([, n]) => Number(n) === i), true));
});
