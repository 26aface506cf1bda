// The other public clients of the bridge, CLIENTS.md section 3: a test each, with the requests as that client shapes them.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { call, eventually, exec, newId, Wire } from '../lib/client.mjs';
import { Server } from '../lib/server.mjs';
import { entries, pack } from './lib/tar.mjs';

const key = 'client-key';
const bearer = { Authorization: `Bearer ${key}` };
const json = { ...bearer, 'Content-Type': 'application/json' };
let server, url;

before(async () => {
	server = await Server.start({ env: { SANDBOX_API_KEY: key } });
	url = server.url;
});

after(() => server?.stop());

const ask = (path, method = 'GET', { headers = bearer, body } = {}) => call(`${url}${path}`, method, { headers, body });
const post = (path, body, headers = json) => ask(path, 'POST', { headers, body: body === undefined ? undefined : JSON.stringify(body) });
const run = async (id, request, headers = {}) => {
	const result = await exec(url, id, request, { headers: { ...bearer, ...headers } });
	return { ...result, out: result.stdout?.toString(), err: result.stderr?.toString() };
};

/** A sandbox of a test's own. */
async function create(t, body) {
	const answer = await post('/v1/sandbox', body, body === undefined ? bearer : json);
	assert.equal(answer.status, 200);
	t.after(() => ask(`/v1/sandbox/${answer.json.id}`, 'DELETE'));
	return answer.json.id;
}

test('Mastra: bash with an environment, sessions, mounts that are probed', async (t) => {
	const id = await create(t);
	assert.equal((await ask(`/v1/sandbox/${id}/running`)).json.running, true);
	const accept = { accept: 'text/event-stream' };
	const bash = (command, more) => run(id, { argv: ['env', 'A=1', 'B=two words', '/bin/bash', '-c', command], timeout_ms: 300_000, ...more }, accept);
	assert.deepEqual([(await bash('echo "$A $B"; exit 3')).out, (await bash('exit 3')).code], ['1 two words\n', 3]);
	assert.equal((await run(id, { argv: ['ls', '-d', '/workspace'], timeout_ms: 300_000 }, accept)).out, '/workspace\n');
	assert.equal((await bash('pwd', { cwd: '/tmp' })).status, 403);

	const made = await post(`/v1/sandbox/${id}/session`, { id: 'mastra-1', cwd: '/workspace', env: { S: 's' } });
	assert.deepEqual([made.status, made.json.id], [200, 'mastra-1']);
	assert.equal((await run(id, { argv: ['/bin/bash', '-c', 'echo $S'], timeout_ms: 300_000 }, { 'Session-Id': 'mastra-1' })).out, 's\n');
	assert.ok([200, 204].includes((await ask(`/v1/sandbox/${id}/session/mastra-1`, 'DELETE')).status));

	const probe = await bash('for p in /workspace/m /proc; do mountpoint -q "$p" || echo "$p"; done');
	assert.equal(probe.out, '/workspace/m\n');
	const mount = await post(`/v1/sandbox/${id}/mount`, { bucket: 'b', mountPath: '/workspace/m', options: {} });
	assert.deepEqual([mount.status, mount.json.code], [400, 'invalid_request']);

	assert.ok((await ask(`/v1/sandbox/${id}/file/workspace/f`, 'PUT', { body: 'x' })).status < 300);
	const archive = await fetch(`${url}/v1/sandbox/${id}/persist`, { method: 'POST', headers: bearer });
	const bytes = Buffer.from(await archive.arrayBuffer());
	assert.ok((await ask(`/v1/sandbox/${id}/hydrate`, 'POST', { body: bytes, headers: { ...bearer, 'Content-Type': 'application/octet-stream' } })).status < 300);
});

test('Mastra: a fetch that is aborted at its timeout leaves the sandbox well', async (t) => {
	const id = await create(t);
	const aborted = new AbortController();
	const response = await fetch(`${url}/v1/sandbox/${id}/exec`, {
		method: 'POST', headers: { ...json, accept: 'text/event-stream' }, signal: aborted.signal,
		body: JSON.stringify({ argv: ['/bin/bash', '-c', 'echo on; sleep 300'], timeout_ms: 300_000 }),
	});
	await response.body.getReader().read();
	aborted.abort();
	assert.equal((await run(id, { argv: ['echo', 'well'], timeout_ms: 300_000 })).out, 'well\n');
});

test('ComputeSDK: exports in front, background servers, text files, a tunnel without a body', async (t) => {
	const id = await create(t);
	assert.match(id, /^[a-z2-7]{1,128}$/);
	const quoted = (value) => `'${value.replaceAll("'", "'\\''")}'`;
	const shell = (command, env = {}) => run(id, { argv: ['sh', '-lc', [...Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}`), command].join('; ')] });
	assert.equal((await shell('printf %s "$K"', { K: "it's; $HOME" })).out, "it's; $HOME");

	const begun = performance.now();
	const background = await shell('nohup sh -c "sleep 0.2; echo later > done; exec sleep 300" > /dev/null 2>&1 &');
	assert.deepEqual([background.code, background.out], [0, '']);
	assert.ok(performance.now() - begun < 5000, 'a background command held the response');
	await eventually(async () => (await shell('cat done')).out === 'later\n', 'the background command lives on');

	assert.ok((await ask(`/v1/sandbox/${id}/file/workspace/t.txt`, 'PUT', { headers: { ...bearer, 'Content-Type': 'text/plain; charset=utf-8' }, body: 'täxt' })).status < 300);
	assert.equal((await ask(`/v1/sandbox/${id}/file/workspace/t.txt`)).text, 'täxt');
	for (const [command, code] of [['mkdir -p a/b', 0], ['test -e a/b', 0], ['ls -la', 0], ['rm -rf a', 0], ['test -e a', 1], ['true', 0]]) assert.equal((await shell(command)).code, code, command);

	const tunnel = await ask(`/v1/sandbox/${id}/tunnel/8080`, 'POST');
	if (tunnel.status === 200) assert.match(tunnel.json.url, /^https?:\/\//);
	else assert.deepEqual([tunnel.status, tunnel.json.code], [502, 'tunnel_error']);
});

test('LangChain: a shell, and the three answers for a file', async (t) => {
	const id = await create(t);
	const { out, err, code } = await run(id, { argv: ['sh', '-lc', 'echo a; echo b >&2; exit 2'], timeout_ms: 120_000 });
	assert.deepEqual([out, err, code], ['a\n', 'b\n', 2]);
	assert.equal((await ask(`/v1/sandbox/${id}/file/workspace/none`)).status, 404);
	assert.equal((await ask(`/v1/sandbox/${id}/file/etc/passwd`)).status, 403);
});

test('Dynamiq: sessions, raw reserved characters in URLs, no redirect, a full server says so', async (t) => {
	const id = await create(t);
	const { json: session } = await post(`/v1/sandbox/${id}/session`, { cwd: '/workspace', env: { D: 'd' } });
	assert.match(session.id, /^[a-zA-Z0-9._-]{1,128}$/);
	assert.equal((await run(id, { argv: ['bash', '-c', 'echo $D'] }, { 'Session-Id': session.id })).out, 'd\n');
	assert.equal((await run(id, { argv: ['env', 'E=e', 'bash', '-c', 'echo $E'] })).out, 'e\n');

	const wire = await Wire.open(server.port);
	t.after(() => wire.close());
	const name = "a@b:c;d=e,f+g&h!i$j'k(l)*m";
	for (const [method, body] of [['PUT', 'raw'], ['GET', '']]) {
		await wire.send(`${method} /v1/sandbox/${id}/file/workspace/${name} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
		assert.equal((await wire.response()).status, 200);
	}
	assert.equal((await run(id, { argv: ['bash', '-c', 'ls'] })).out, `${name}\n`);
	for (const path of ['/v1', '/v1/', '/v1/sandbox/', `/v1/sandbox/${id}/exec/`, '/']) {
		const { status } = await fetch(`${url}${path}`, { redirect: 'manual', headers: bearer });
		assert.ok(status < 300 || status >= 400, `${path}: ${status}`);
	}

	const small = await Server.start({ flags: ['--max-sandboxes', '1'] });
	t.after(() => small.stop());
	assert.equal((await exec(small.url, newId(), { argv: ['true'] })).code, 0);
	const full = await exec(small.url, newId(), { argv: ['true'] });
	assert.deepEqual([full.status, full.json.code], [503, 'capacity_exceeded']);
	assert.match(full.json.error, /instance limit reached/);
});

test('ZenML: empty objects for bodies, sessions on files, a stream with its blank line, gone is false', async (t) => {
	const id = await create(t, {});
	for (const body of [{ env: {} }, undefined]) {
		const { status, json: session } = await post(`/v1/sandbox/${id}/session`, body);
		assert.equal(status, 200);
		const header = { 'Session-Id': session.id };
		assert.equal((await run(id, { argv: ['sh', '-c', 'pwd'], timeout_ms: 60_000 }, header)).out, '/workspace\n');
		assert.equal((await ask(`/v1/sandbox/${id}/file/workspace/z`, 'PUT', { headers: { ...bearer, ...header }, body: 'z' })).status, 200);
		assert.equal((await ask(`/v1/sandbox/${id}/file/workspace/z`, 'GET', { headers: { ...bearer, ...header } })).text, 'z');
	}
	assert.match((await run(id, { argv: ['true'] })).raw.toString(), /event: exit\ndata: \{[^\n]*\}\n\n$/);
	await ask(`/v1/sandbox/${id}`, 'DELETE');
	const gone = await ask(`/v1/sandbox/${id}/running`);
	assert.ok(gone.status === 404 || gone.status === 410 || gone.json.running === false);
});

test('ZenML: 32 MiB is the limit, to the byte', async (t) => {
	const id = await create(t, {});
	const path = `/v1/sandbox/${id}/file/workspace/big`;
	const limit = Buffer.alloc(33_554_432, 7);
	assert.equal((await ask(path, 'PUT', { body: limit })).status, 200);
	const more = await ask(path, 'PUT', { body: Buffer.alloc(33_554_433) });
	assert.deepEqual([more.status, more.json.code], [413, 'payload_too_large']);
	assert.equal((await run(id, { argv: ['stat', '-c', '%s', 'big'] })).out, '33554432\n');
});

test('Bernstein: the document first, 401 without the key, the pool after DELETE, tar with ./', async () => {
	const document = await ask('/v1/openapi.json');
	for (const path of ['', '/{id}', '/{id}/exec', '/{id}/hydrate', '/{id}/persist', '/{id}/session'])
		assert.ok(document.json.paths[`/v1/sandbox${path}`], path);
	assert.ok(document.json.paths['/v1/pool/stats']);
	assert.match(document.json.info.version, /^1\./);
	assert.equal((await ask('/v1/sandbox', 'POST', { headers: {} })).status, 401);

	const { json: made } = await post('/v1/sandbox');
	const hydrated = await ask(`/v1/sandbox/${made.id}/hydrate`, 'POST', { body: pack({ './': '', './src/': '', './src/main.py': 'print(1)\n' }) });
	assert.deepEqual([hydrated.status, hydrated.json], [200, { ok: true }]);
	assert.equal((await run(made.id, { argv: ['cat', 'src/main.py'] })).out, 'print(1)\n');
	const persisted = await fetch(`${url}/v1/sandbox/${made.id}/persist`, { method: 'POST', headers: bearer });
	const names = entries(Buffer.from(await persisted.arrayBuffer())).map(({ name }) => name);
	assert.deepEqual([names[0], names.slice(1).sort()], ['./', ['./src/', './src/main.py']]);
	assert.equal((await ask(`/v1/sandbox/${made.id}`, 'DELETE')).status, 204);
	const stats = await ask('/v1/pool/stats');
	for (const name of ['warm', 'assigned', 'total']) assert.equal(typeof stats.json[name], 'number', name);
});

test('Catamorphic: a session around each command, background jobs outlive it, siblings one after another', async (t) => {
	const id = await create(t);
	const command = async (script) => {
		const { json: session } = await post(`/v1/sandbox/${id}/session`, { cwd: '/workspace', env: { C: 'c' } });
		const result = await run(id, { argv: ['sh', '-lc', script], timeout_ms: 60_000 }, { 'Session-Id': session.id });
		assert.ok([200, 204, 404].includes((await ask(`/v1/sandbox/${id}/session/${session.id}`, 'DELETE')).status));
		return result;
	};
	assert.equal((await command('echo $C > f; cat f; exit 0')).out, 'c\n');
	await command('(sleep 0.3; echo survived > job) > /dev/null 2>&1 &');
	await eventually(async () => (await run(id, { argv: ['cat', 'job'] })).out === 'survived\n', 'the job outlives its session');
	for (const name of ['@scope/a.ts', '@scope/b.ts', '@scope/c d.ts']) {
		const path = `/v1/sandbox/${id}/file/workspace/${name.split('/').map((part) => encodeURIComponent(part).replace('%40', '@')).join('/')}`;
		assert.equal((await ask(path, 'PUT', { body: name })).status, 200);
	}
	assert.equal((await run(id, { argv: ['ls', '@scope'] })).out, 'a.ts\nb.ts\nc d.ts\n');
});

test('the vendor-neutral core client: stdin, named tunnels, an unknown session', async (t) => {
	const id = await create(t);
	const { out } = await run(id, { argv: ['sh', '-c', 'tr a-z A-Z'], stdin: 'größe\n' });
	assert.equal(out, 'GRößE\n');
	assert.equal((await run(id, { argv: ['cat'] })).out, '');
	const big = await run(id, { argv: ['head', '-c', '524288', '/dev/zero'] });
	assert.equal(big.stdout.length, 524_288);
	assert.ok([200, 204, 404, 502].includes((await ask(`/v1/sandbox/${id}/session/none`, 'DELETE')).status));
	const tunnel = await post(`/v1/sandbox/${id}/tunnel/8081`, { name: 'my-app' });
	if (tunnel.status === 200) assert.deepEqual([typeof tunnel.json.id, tunnel.json.port, typeof tunnel.json.url], ['string', 8081, 'string']);
	else assert.deepEqual([tunnel.status, tunnel.json.code], [502, 'tunnel_error']);
	assert.equal((await post(`/v1/sandbox/${id}/tunnel/8081`, { name: 'Not_A_Label' })).status, 400);
});

test('SourceWeft: a heartbeat from a background child streams while the command runs', async (t) => {
	const id = await create(t);
	const script = 'cd /workspace && ( while sleep 0.1; do echo beat >&2; done & hb=$!; echo started; read x < gate; kill $hb; wait $hb 2>/dev/null; echo finished )';
	await run(id, { argv: ['mkfifo', 'gate'] });
	const response = await fetch(`${url}/v1/sandbox/${id}/exec`, { method: 'POST', headers: json, body: JSON.stringify({ argv: ['sh', '-lc', script], timeout_ms: 180_000 }) });
	let text = '';
	let opened = false;
	for await (const bytes of response.body) {
		text += Buffer.from(bytes).toString();
		if (!opened && text.includes('event: stderr')) {
			opened = true; // it came while the command was still waiting for us
			await run(id, { argv: ['sh', '-c', 'echo go > gate'] });
		}
	}
	assert.ok(opened);
	assert.match(text, /event: exit\ndata: \{[^\n]*"exit_code": ?0/);

	const marker = `/v1/sandbox/${id}/file/workspace/.sourceweft-sandbox-id`;
	assert.equal((await ask(marker, 'PUT', { body: id })).status, 200);
	assert.equal((await ask(marker)).text, id);
	await ask(`/v1/sandbox/${id}`, 'DELETE');
	assert.equal((await ask(marker)).status, 404);
});

test('OpenMetal: running right after create, existence by GET, ranges', async (t) => {
	const id = await create(t);
	const running = await ask(`/v1/sandbox/${id}/running`);
	assert.equal(running.json.running, true);
	assert.equal((await ask(`/v1/sandbox/${id}/file/workspace/r`)).status, 404);
	await ask(`/v1/sandbox/${id}/file/workspace/r`, 'PUT', { body: '0123456789' });
	const alive = await ask(`/v1/sandbox/${id}/running`);
	assert.equal(typeof alive.json.instanceId, 'string');
	const part = await ask(`/v1/sandbox/${id}/file/workspace/r`, 'GET', { headers: { ...bearer, Range: 'bytes=2-5' } });
	if (part.status === 206) assert.deepEqual([part.text, part.headers.get('content-range')], ['2345', 'bytes 2-5/10']);
	else assert.deepEqual([part.status, part.text], [200, '0123456789']);
});

test('the agent tool module: env in the body, bare sessions, its find', async (t) => {
	const id = await create(t);
	assert.equal((await run(id, { argv: ['sh', '-lc', 'echo "$T"'], env: { T: 'tööl', N: 7 } })).out, 'tööl\n');
	assert.equal((await ask(`/v1/sandbox/${id}/session`, 'POST')).status, 200);
	await run(id, { argv: ['sh', '-c', 'mkdir -p 1/2/3/4; touch top 1/2/3/near 1/2/3/4/far'] });
	assert.equal((await run(id, { argv: ['sh', '-lc', 'find . -maxdepth 4 -type f | sort'] })).out, './1/2/3/near\n./top\n');
	assert.equal((await run(id, { argv: ['rm', '-f', '--', 'top', 'none'] })).code, 0);
	const mount = await post(`/v1/sandbox/${id}/mount`, { binding: 'UNKNOWN', mountPath: '/workspace/m', options: {} });
	assert.deepEqual([mount.status, mount.json.code], [502, 'mount_error']);
});

test('a base URL that ends with a slash or /v1 is the client\'s affair: paths are never doubled by us', async (t) => {
	const id = await create(t);
	assert.equal((await ask(`//v1/sandbox/${id}/running`)).status, 404);
	assert.equal((await ask(`/v1/v1/sandbox/${id}/running`)).status, 404);
});
