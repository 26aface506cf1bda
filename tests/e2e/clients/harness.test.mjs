// The agent harness, CLIENTS.md section 5, phase by phase without its model, and section 6: the programs that clients count on.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { eventually } from '../lib/client.mjs';
import { Server } from '../lib/server.mjs';
import { Python } from './lib/python.mjs';

let server, python, id;

before(async () => {
	server = await Server.start();
	python = await Python.connect(server.port);
	id = (await python.ask('POST', '/v1/sandbox')).json.id;
});

after(async () => {
	python?.close();
	await server?.stop();
});

async function sh(command, { code = 0, ...more } = {}) {
	const run = await python.sh(id, command, more);
	assert.equal(run.code, code, `${command.slice(0, 200)}: ${run.stderr}`);
	return run.stdout.toString();
}

const file = (name) => `/v1/sandbox/${id}/file/workspace/${name}`;
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

// ---- the phases

test('phase 1: echo, exit codes, stderr, binary files, nested directories, environment', async () => {
	assert.equal(await sh('echo hello'), 'hello\n');
	for (const code of [0, 1, 2, 42, 255]) await sh(`exit ${code}`, { code });
	assert.equal((await python.sh(id, 'echo problem >&2')).stderr.toString(), 'problem\n');
	assert.equal(await sh("printf '\\000\\001\\376\\377' > bin && xxd -p bin"), '0001feff\n');
	assert.equal(await sh('mkdir -p a/b/c/d/e && echo deep > a/b/c/d/e/f && cat a/b/c/d/e/f'), 'deep\n');
	assert.equal(await sh('echo "$ONE-$TWO"', { environment: { ONE: '1', TWO: 'two words' } }), '1-two words\n');
});

test('phase 2: 10 MB of random bytes, up and down, with their sum', async () => {
	const bytes = randomBytes(10 * 1024 * 1024);
	assert.equal((await python.ask('PUT', file('random'), { bytes })).status, 200);
	assert.equal((await sh('sha256sum random')).split(' ')[0], sha256(bytes));
	assert.equal(sha256((await python.ask('GET', file('random'))).body), sha256(bytes));
	const made = (await sh('head -c 10485760 /dev/urandom > made; sha256sum made')).split(' ')[0];
	assert.equal(sha256((await python.ask('GET', file('made'))).body), made);
});

test('phase 2: 5 MB as base64 through the output', async () => {
	const run = await python.sh(id, 'head -c 5242880 random | base64');
	const sent = Buffer.from(run.stdout.toString(), 'base64');
	assert.equal(sent.length, 5_242_880);
	assert.equal((await sh('head -c 5242880 random | sha256sum')).split(' ')[0], sha256(sent));
});

test('phase 2: JSON two hundred deep by Python', async (t) => {
	if ((await python.sh(id, 'command -v python3')).code !== 0) return t.skip('this host has no python3');
	const text = await sh(`python3 -c "import json; d = 'leaf'
for i in range(200): d = {'k': d}
print(json.dumps(d))"`);
	let depth = 0;
	for (let at = JSON.parse(text); typeof at === 'object'; at = at.k) depth++;
	assert.equal(depth, 200);
});

test('phase 2: Unicode in names, contents and output', async () => {
	const words = ['日本語', 'Ελληνικά', 'العربية', '🎉👩‍👩‍👧', 'e\u0301', 'ﬁ'];
	for (const word of words) {
		const path = `/v1/sandbox/${id}/file/workspace/unicode/${encodeURIComponent(word)}`;
		assert.equal((await python.ask('PUT', path, { bytes: Buffer.from(word) })).status, 200);
	}
	assert.deepEqual((await sh('LC_ALL=C ls unicode')).trimEnd().split('\n').sort(), [...words].sort());
	assert.equal((await sh('cat unicode/*')).length, words.join('').length);
});

test('phase 2: five hundred files', async () => {
	await sh('mkdir -p many && for i in $(seq 1 500); do echo "content $i" > many/f$i; done');
	assert.equal(await sh('ls many | wc -l'), '500\n');
	assert.equal(await sh('cat many/* | sort -u | wc -l'), '500\n');
});

test('phase 3: pipes, fifty thousand lines, jobs, kill', async () => {
	assert.equal(await sh("printf 'b\\na\\nc\\n' | sort | tr a-z A-Z | paste -sd, -"), 'A,B,C\n');
	assert.equal((await sh('yes | head -n 50000')).length, 100_000);
	assert.equal(await sh('for i in 1 2 3; do (sleep 0.1; echo $i > job$i) & done; wait; cat job1 job2 job3'), '1\n2\n3\n');
	assert.equal(await sh('sleep 300 & p=$!; kill $p; wait $p; echo $?'), '143\n');
	assert.equal(await sh('seq 10000 -1 1 | sort -n | awk "{ s += \\$1 } END { print NR, s }"'), '10000 50005000\n');
});

test('phase 4: two hundred writes and reads one after another', { timeout: 120_000 }, async () => {
	for (let i = 0; i < 200; i++) {
		await sh(`echo "line ${i}" >> seq.log`);
		if (i % 20 === 0) assert.equal(await sh('tail -n 1 seq.log'), `line ${i}\n`);
	}
	assert.equal(await sh('wc -l < seq.log'), '200\n');
});

test('phase 4: fifty writers at once', { timeout: 120_000 }, async () => {
	const writers = await Promise.all(Array.from({ length: 50 }, () => Python.connect(server.port)));
	const codes = await Promise.all(writers.map(async (writer, i) => {
		const { code } = await writer.sh(id, `mkdir -p par; for n in 1 2 3 4; do echo "${i}-$n" >> par/w${i}; done`);
		writer.close();
		return code;
	}));
	assert.ok(codes.every((code) => code === 0));
	assert.equal(await sh('ls par | wc -l; cat par/* | sort -u | wc -l'), '50\n200\n');
});

test('phase 4: a clock in nanoseconds', async () => {
	const [first, second] = (await sh('date +%s%N; date +%s%N')).trim().split('\n').map(BigInt);
	assert.ok(second > first && Math.abs(Number(first / 1_000_000n) - Date.now()) < 60_000);
});

test('phases 5 and 8: sentinels and sums survive pause and resume', { timeout: 120_000 }, async () => {
	const sums = "find . -type f -not -path './tmp/*' -print0 | sort -z | xargs -0 sha256sum";
	await sh('echo sentinel-1 > .sentinel; mkdir -p nested/deep; echo sentinel-2 > nested/deep/.sentinel; rm -f random made');
	const before = await sh(sums);
	assert.ok(before.split('\n').length > 500);
	const paused = await python.ask('POST', `/v1/sandbox/${id}/persist`);
	assert.equal(paused.status, 200);
	assert.equal((await python.ask('DELETE', `/v1/sandbox/${id}`)).status, 204);
	assert.equal((await python.ask('GET', `/v1/sandbox/${id}/running`)).json.running, false);
	id = (await python.ask('POST', '/v1/sandbox')).json.id;
	assert.equal((await python.ask('POST', `/v1/sandbox/${id}/hydrate`, { bytes: paused.body })).status, 200);
	assert.equal(await sh(sums), before);
});

test('phases 6 and 7: without a bucket to mount, mount and unmount say why', async () => {
	const mount = await python.ask('POST', `/v1/sandbox/${id}/mount`, { json: { bucket: 'r2', mountPath: '/workspace/r2-test', options: { endpoint: 'http://127.0.0.1:9', readOnly: false } } });
	assert.deepEqual([mount.status, mount.json.code], [502, 'mount_error']);
	const unmount = await python.ask('POST', `/v1/sandbox/${id}/unmount`, { json: { mountPath: '/workspace/r2-test' } });
	assert.deepEqual([unmount.status, unmount.json.code], [502, 'unmount_error']);
	assert.equal(await sh('test -e r2-test; echo $?'), '1\n');
});

// ---- the programs

/** Those of NAMES that PATH does not find inside. */
async function missing(names, path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin') {
	const { stdout } = await python.exec(id, ['env', `PATH=${path}`, 'sh', '-c', 'for p in "$@"; do command -v "$p" > /dev/null || echo "$p"; done', 'sh', ...names]);
	return stdout.toString().split('\n').filter(Boolean);
}

const mandatory = 'bash sh env mkdir cat rm mv cp ls chmod test dirname basename readlink wc tr pwd find printf id';
const rows = {
	'persist, hydrate, fingerprint': 'tar grep sed awk sha256sum',
	'users and permissions': 'chown chgrp su sudo groupadd useradd usermod base64',
	'git entries': 'git',
	optional: 'cmp realpath mountpoint nohup timeout ps pkill rg curl wget jq python3 xxd stdbuf',
	'the harness': 'seq xargs date sort head tail',
};

test('programs: the mandatory ones are in /usr/bin and /bin alone', async () => {
	assert.deepEqual(await missing(mandatory.split(' '), '/usr/bin:/bin'), []);
	await sh('test -x /bin/bash && test -x /bin/sh');
});

for (const [what, names] of Object.entries(rows))
	test(`programs: ${what}`, async (t) => {
		const lacking = await missing(names.split(' '));
		if (lacking.length > 0) t.skip(`this host lacks ${lacking.join(', ')}`);
	});

test('programs: the GNU ways that clients rely on', async () => {
	assert.equal(await sh('readlink -n /proc/self/fd/0'), '/dev/null');
	assert.equal(await sh('realpath -m -- /workspace/none/../x'), '/workspace/x\n');
	assert.match(await sh('tar --help'), /--no-wildcards/);
	const { stderr, code } = await python.sh(id, 'LC_ALL=C find /workspace/none -prune -print');
	assert.equal(code, 1);
	assert.match(stderr.toString(), /: No such file or directory\n$/);
});

test('the sandbox itself: directories, HOME, locale, devices', async () => {
	assert.equal(await sh("printf '#!/bin/sh\\necho ran\\n' > /tmp/x; chmod +x /tmp/x; /tmp/x; rm /tmp/x"), 'ran\n');
	await sh('touch /workspace/.w && rm /workspace/.w; test -d "$HOME" && test -w "$HOME"');
	assert.equal(await sh('stat -c %a /tmp'), '1777\n');
	assert.match(await sh('locale charmap 2>/dev/null || echo UTF-8'), /UTF-8/);
	assert.equal(await sh('echo "$LANG|$LC_ALL"'), 'C.UTF-8|C.UTF-8\n');
	await sh('test -c /dev/null && test -c /dev/urandom && test -e /dev/ptmx && test -r /proc/self/status && test -e /dev/fd/1');
	await eventually(async () => (await sh('head -c 16 /dev/urandom | wc -c')) === '16\n', 'random bytes');
});
