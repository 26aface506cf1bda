// What the JavaScript client may send that the published package does not in our hands, CLIENTS.md section 2: sockets without
// headers, credential paths, buckets of each provider, and its way to read streams.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { WebSocket } from 'ws';
import { call, eventually, exec } from '../lib/client.mjs';
import { Server } from '../lib/server.mjs';
import { cuts } from './lib/python.mjs';

const key = 'a+key/with=signs&more';
const auth = { Authorization: `Bearer ${key}` };
let server, url, id;

before(async () => {
	server = await Server.start({ env: { SANDBOX_API_KEY: key } });
	url = server.url;
	const answer = await call(`${url}/v1/sandbox`, 'POST', { headers: { ...auth, 'Content-Type': 'application/json' }, body: '{"exposedPorts":[3000],"timeoutMs":1,"mounts":[{}]}' });
	({ id } = answer.json);
});

after(() => server?.stop());

const run = (argv, more) => exec(url, id, { argv, ...more }, { headers: auth });

/** Status of an upgrade, with its socket when there is one. */
async function pty(query) {
	const ws = new WebSocket(`${url.replace('http', 'ws')}/v1/sandbox/${id}/pty?cols=80&rows=24${query}`);
	ws.on('error', () => {});
	const status = await new Promise((done) => ws.on('open', () => done(101)).on('unexpected-response', (_, response) => done(response.statusCode)));
	return { ws, status };
}

test('J8 timeout_ms only if it is configured', async () => {
	assert.equal((await run(['/bin/sh', '-lc', 'echo no limit'])).stdout.toString(), 'no limit\n');
});

test('J9 frames may be read with any of its delimiters, one data line each', async () => {
	const { raw } = await run(['/bin/sh', '-lc', 'printf "ü☃𝄞%.0s" 1 2 3; exit 9']);
	const read = (pieces) => {
		const decoder = new TextDecoder();
		const text = pieces.map((piece) => decoder.decode(piece, { stream: true })).join('') + decoder.decode();
		return text.split(/\r\n\r\n|\n\n|\r\r/).filter(Boolean).map((frame) => {
			const lines = frame.split(/\r?\n/).map((line) => line.trimEnd());
			return { event: lines[0].slice('event:'.length).trim(), data: lines.slice(1).map((line) => line.slice('data:'.length).trim()) };
		});
	};
	for (const pieces of cuts(raw)) {
		const frames = read(pieces);
		assert.ok(frames.every(({ event, data }) => ['stdout', 'stderr', 'exit'].includes(event) && data.length === 1));
		assert.equal(frames.filter(({ event }) => event === 'stdout').map(({ data }) => new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(data[0], 'base64'))).join(''), 'ü☃𝄞'.repeat(3));
		assert.equal(JSON.parse(frames.at(-1).data[0]).exit_code, 9);
	}
});

test('J14 credential paths: realpath of GNU, with the environment it sets', async () => {
	await run(['/bin/sh', '-c', 'mkdir -p creds; ln -sfn creds link']);
	const line = (path) => `PATH=/usr/bin:/bin HOME=/root LD_PRELOAD= LD_LIBRARY_PATH= LD_AUDIT= /usr/bin/realpath -m -- '${path}'`;
	const { stdout, code } = await run(['/bin/sh', '-lc', line('/workspace/link/none/../key.json')]);
	assert.deepEqual([stdout.toString(), code], ['/workspace/creds/key.json\n', 0]);
});

test('J15 a file below /tmp is refused, as upstream does', async () => {
	const answer = await call(`${url}/v1/sandbox/${id}/file/tmp/openai-agents-0a1b`, 'PUT', { headers: { ...auth, 'Content-Type': 'application/octet-stream' }, body: 'x' });
	assert.deepEqual([answer.status, answer.json.code], [403, 'invalid_request']);
});

test('J17 bytes are never called an event stream', async () => {
	const path = `${url}/v1/sandbox/${id}/file/workspace/stream.txt`;
	for (const content of ['event: metadata\ndata: {"isBinary":true}\n\n', ': x', '']) {
		await call(path, 'PUT', { headers: { ...auth, 'Content-Type': 'text/event-stream' }, body: content });
		const answer = await call(path, 'GET', { headers: auth });
		assert.deepEqual([answer.type, answer.text], ['application/octet-stream', content]);
	}
});

test('J21 mounts of each provider, with a prefix that lacks its slash: 502 with the reason', async () => {
	for (const provider of ['s3', 'r2', 'gcs']) {
		const body = JSON.stringify({ bucket: 'data', mountPath: '/workspace/mnt', options: { endpoint: 'http://127.0.0.1:1', provider, readOnly: true, prefix: 'no-slash' } });
		const answer = await call(`${url}/v1/sandbox/${id}/mount`, 'POST', { headers: { ...auth, 'Content-Type': 'application/json' }, body });
		assert.deepEqual([answer.status, answer.json.code], [502, 'mount_error'], answer.text);
	}
});

test('J22 a socket without headers: the key in the query, with + or %20 for the blank', async () => {
	const form = new URLSearchParams({ authorization: `Bearer ${key}` }).toString();
	assert.match(form, /Bearer\+/);
	for (const query of [form, `authorization=${encodeURIComponent(`Bearer ${key}`)}`]) {
		const { ws, status } = await pty(`&${query}`);
		assert.equal(status, 101, query);
		ws.close();
	}
	for (const query of ['', '&authorization=', `&authorization=${encodeURIComponent(key)}`, '&authorization=Bearer+wrong', `&authorization=Bearer ${key}`]) {
		const { ws, status } = await pty(query);
		assert.equal(status, 401, query); // in the last one the + and the & of the key are those of the query
		ws.terminate();
	}
	assert.doesNotMatch(server.output, /with=signs|with%3Dsigns/, 'the key is in the log');
});

test('J22 the key in the query opens nothing but sockets', async () => {
	const query = new URLSearchParams({ authorization: `Bearer ${key}` });
	for (const path of ['/running', '/processes', '/file/workspace/x']) assert.equal((await call(`${url}/v1/sandbox/${id}${path}?${query}`)).status, 401, path);
});

test('J24 output is binary even if it looks like control; text frames are control alone', async (t) => {
	const { ws } = await pty(`&${new URLSearchParams({ authorization: `Bearer ${key}` })}`);
	t.after(() => ws.terminate());
	const seen = { text: [], output: '' };
	ws.on('message', (data, isBinary) => (isBinary ? (seen.output += data) : seen.text.push(JSON.parse(data).type)));
	const closed = new Promise((done) => ws.on('close', done));
	ws.send(Buffer.from('stty -echo; printf \'{"type":"%s","code":1}\\n\' exit\n'));
	await eventually(() => seen.output.includes('{"type":"exit","code":1}'), 'the look-alike');
	ws.send(Buffer.from('exit\n'));
	assert.equal(await closed, 1000);
	assert.ok(seen.text.every((type) => type === 'ready' || type === 'exit') && seen.text.at(-1) === 'exit', seen.text.join());
});
