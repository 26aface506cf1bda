// The integration script of the next line, CLIENTS.md 4.2, as a program: BASE_URL=... [SANDBOX_API_KEY=...] node upstream-next.mjs
import assert from 'node:assert/strict';
import { ask, expectError, expectStatus, key, main, post, socket, step, within } from './lib/checks.mjs';

let id;
const at = (path) => `/v1/sandbox/${id}${path}`;

async function json(response, status = 200) {
	const text = await response.text();
	assert.equal(response.status, status, text);
	return JSON.parse(text);
}

/** The objects of a log, until it ends or ENOUGH likes what came. */
async function logs(process, { enough = () => false } = {}) {
	const response = await ask(at(`/processes/${process}/logs?replay=true&follow=true`));
	assert.equal(response.status, 200);
	assert.equal(response.headers.get('content-type'), 'text/event-stream');
	const found = [];
	const decoder = new TextDecoder();
	let rest = '';
	for await (const bytes of response.body) {
		rest += decoder.decode(bytes, { stream: true });
		const frames = rest.split('\n\n');
		rest = frames.pop();
		for (const frame of frames) {
			assert.ok(frame.startsWith('data: '), frame);
			found.push(JSON.parse(frame.slice(6)));
		}
		if (enough(found)) break; // leaving the loop cancels the stream
	}
	return found;
}

const text = (found, type) => Buffer.concat(found.filter((item) => item.type === type).map(({ data }) => Buffer.from(data, 'base64'))).toString();
const hasTerminal = (found) => found.some(({ type }) => type === 'terminal');

/** All output of a terminal's socket; a binary frame stands behind its chunk. */
function framed(frames) {
	let expected = 0;
	let output = '';
	for (const { json: message, bytes } of frames) {
		if (bytes) {
			assert.equal(bytes.length, expected, 'a binary frame without its chunk');
			output += bytes.toString();
			expected = 0;
		} else if (message.type === 'chunk') {
			expected = message.byteLength;
		}
	}
	return output;
}

const last = (frames, type) => frames.findLast(({ json: message }) => message?.type === type)?.json;

step('1 create', async () => {
	({ id } = await json(await ask('/v1/sandbox', { method: 'POST' })));
	assert.match(id, /^[a-z2-7]{24}$/);
});

step('2 health', async () => assert.equal((await json(await ask('/health'))).ok, true));

step('3 what is gone', async () => {
	await expectStatus(await ask(at('/exec'), { method: 'POST' }), 404);
	await expectStatus(await ask(at('/pty')), 404);
	await expectStatus(await ask(at('/session'), { method: 'POST' }), 404);
});

step('4 the document', async () => {
	const { paths } = await json(await ask('/v1/openapi.json'));
	for (const path of ['processes', 'terminals']) assert.ok(paths[`/v1/sandbox/{id}/${path}`], path);
	for (const path of ['exec', 'pty', 'session']) assert.equal(paths[`/v1/sandbox/{id}/${path}`], undefined, path);
});

step('5 authentication', async () => {
	if (!key) return;
	for (const headers of [{ Authorization: null }, { Authorization: 'Bearer wrong' }])
		await expectError(await ask(at('/processes'), { headers }), 401, 'unauthorized');
	await expectStatus(await ask('/v1/openapi.json', { headers: { Authorization: null } }), 401);
	await expectStatus(await ask('/v1/openapi.json'), 200);
});

step('6 refusals', async () => {
	await expectError(await post(at('/processes'), { argv: [] }), 400, 'invalid_request');
	await expectError(await ask(at('/file/tmp/secret')), 403, 'invalid_request');
	await expectError(await ask(at('/persist?excludes=../secret'), { method: 'POST' }), 400, 'invalid_request');
	await expectError(await post(at('/hydrate'), new Uint8Array()), 400, 'invalid_request');
	await expectError(await post(at('/mount'), { mountPath: 'relative', options: {} }), 400, 'invalid_request');
});

step('7 a process and its log', async () => {
	const started = await json(await post(at('/processes'), { argv: ['sh', '-lc', 'printf out; printf err >&2; exit 7'] }));
	const found = await logs(started.id);
	assert.equal(text(found, 'stdout'), 'out');
	assert.equal(text(found, 'stderr'), 'err');
	const end = found.at(-1);
	assert.deepEqual([end.type, end.exit.code, end.exit.timedOut], ['terminal', 7, false]);
	assert.equal((await json(await ask(at(`/processes/${started.id}`)))).id, started.id);
	const list = await json(await ask(at('/processes')));
	assert.ok(Array.isArray(list) && list.some((item) => item.id === started.id));
});

step('8 a process outlives its reader; kill', async () => {
	const started = await json(await post(at('/processes'), { argv: ['sh', '-lc', 'echo ready; sleep 300'] }));
	await logs(started.id, { enough: (found) => text(found, 'stdout').includes('ready') });
	assert.equal((await json(await ask(at(`/processes/${started.id}`)))).state, 'running');
	await expectStatus(await post(at(`/processes/${started.id}/kill`), { signal: 15 }), 204);
	assert.ok(hasTerminal(await logs(started.id)));
});

step('9 a terminal: framed output, input', async () => {
	const argv = ['sh', '-lc', 'printf ready; read line; printf "received:%s" "$line"'];
	const created = await json(await post(at('/terminals'), { argv, cols: 80, rows: 24 }));
	const { ws, frames, until } = await socket(at(`/terminals/${created.id}/connect`));
	await until(() => framed(frames).includes('ready'), 'ready in the output');
	ws.send(Buffer.from('hello\n'));
	await until(() => last(frames, 'exit'), 'exit');
	assert.match(framed(frames), /received:hello/);
	ws.close();
});

step('10 a terminal outlives its socket; reconnect, terminate', async () => {
	const created = await json(await post(at('/terminals'), { argv: ['sh', '-lc', 'printf ready; sleep 300'] }));
	const first = await socket(at(`/terminals/${created.id}/connect`));
	await first.until(() => framed(first.frames).includes('ready'), 'ready in the output');
	const { cursor } = last(first.frames, 'chunk');
	first.ws.close();
	await within(first.closed, 'the close');
	assert.equal((await json(await ask(at(`/terminals/${created.id}`)))).status, 'running');
	const second = await socket(at(`/terminals/${created.id}/connect?cursor=${encodeURIComponent(cursor)}`));
	await second.until(() => last(second.frames, 'ready'), 'ready');
	await expectStatus(await ask(at(`/terminals/${created.id}/terminate`), { method: 'POST' }), 204);
	await second.until(() => last(second.frames, 'exit') ?? last(second.frames, 'error'), 'exit');
	second.ws.close();
});

step('11 files, persist, hydrate', async () => {
	await expectStatus(await ask(at('/file/workspace/integration.txt'), { method: 'PUT', body: 'integration' }), 200);
	assert.equal(await expectStatus(await ask(at('/file/workspace/integration.txt')), 200), 'integration');
	const persisted = await ask(at('/persist'), { method: 'POST' });
	assert.equal(persisted.status, 200);
	const archive = new Uint8Array(await persisted.arrayBuffer());
	assert.ok(archive.length > 0);
	await expectStatus(await post(at('/hydrate'), archive, { 'Content-Type': 'application/octet-stream' }), 200);
});

step('the end', async () => {
	await expectStatus(await ask(at(''), { method: 'DELETE' }), 204);
});

await main();
