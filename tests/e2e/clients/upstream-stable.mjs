// The integration script of the stable line, CLIENTS.md 4.1, as a program: BASE_URL=... [SANDBOX_API_KEY=...] node upstream-stable.mjs
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { ask, base, expectError, expectStatus, key, main, post, socket, step, within } from './lib/checks.mjs';

let id;
const at = (path) => `/v1/sandbox/${id}${path}`;
const none = { Authorization: null };
const wrong = { Authorization: 'Bearer wrong-token' };

/** Raw path and headers, as fetch would not send them. */
function raw(path, headers = {}, method = 'GET') {
	const { hostname, port, pathname } = new URL(base);
	const all = { ...(key ? { Authorization: `Bearer ${key}` } : {}), ...headers };
	if (all.Authorization === null) delete all.Authorization;
	return within(new Promise((done, failed) => {
		const sent = request({ hostname, port, method, path: pathname.replace(/\/$/, '') + path, headers: all }, async (response) => {
			const pieces = [];
			for await (const piece of response) pieces.push(piece);
			const text = Buffer.concat(pieces).toString();
			done({ status: response.statusCode, text: async () => text });
		});
		sent.on('upgrade', (response, connection) => {
			connection.destroy();
			done({ status: response.statusCode, text: async () => '' });
		});
		sent.on('error', failed).end();
	}), path);
}

step('1 create', async () => {
	const response = await ask('/v1/sandbox', { method: 'POST' });
	assert.ok(response.ok);
	({ id } = await response.json());
	assert.ok(typeof id === 'string' && id.length > 0);
});

step('2 health', async () => {
	const response = await ask('/health', { headers: none });
	assert.equal(response.status, 200);
	assert.equal((await response.json()).ok, true);
});

step('3 authentication', async () => {
	if (key) {
		for (const headers of [none, wrong]) await expectError(await ask(at('/running'), { headers }), 401, 'unauthorized');
		await expectStatus(await ask('/v1/openapi.json', { headers: none }), 401);
	} else {
		await expectStatus(await ask(at('/running'), { headers: wrong }), 200);
	}
	await expectStatus(await ask(at('/running')), 200);
	await expectStatus(await ask('/v1/openapi.json'), 200);
});

step('4 ids', async () => {
	await expectError(await raw('/v1/sandbox/foo;rm/running'), 400, 'invalid_request', 'Invalid sandbox ID format');
	await expectError(await ask(`/v1/sandbox/${'a'.repeat(129)}/running`), 400, 'invalid_request');
});

step('5 exec: refusals', async () => {
	await expectError(await post(at('/exec'), '{not json'), 400, 'invalid_request');
	await expectError(await post(at('/exec'), { argv: [] }), 400, 'invalid_request');
	await expectError(await post(at('/exec'), {}), 400, 'invalid_request');
	await expectError(await post(at('/exec'), { argv: ['ls'], cwd: '/tmp' }), 403, 'invalid_request');
	await expectError(await post(at('/exec'), { argv: ['ls'], cwd: '/workspace/../etc' }), 403, 'invalid_request');
});

step('5 exec: a stream', async () => {
	const response = await post(at('/exec'), { argv: ['echo', 'hello'] });
	assert.equal(response.status, 200);
	assert.equal(response.headers.get('content-type'), 'text/event-stream');
	const events = (await response.text()).split('\n\n').filter(Boolean).map((frame) => {
		const rows = frame.split('\n');
		return { event: rows.find((row) => row.startsWith('event: '))?.slice(7), data: rows.find((row) => row.startsWith('data: '))?.slice(6) };
	});
	assert.ok(events.length >= 1 && events.every(({ event, data }) => event && data));
	assert.ok(['exit', 'error'].includes(events.at(-1).event));
	assert.equal(Buffer.from(events.find(({ event }) => event === 'stdout').data, 'base64').toString(), 'hello\n');
});

step('6 files: paths', async () => {
	await expectStatus(await ask(at('/file/')), 400, 404);
	await expectError(await raw(at('/file/workspace/../tmp/secret')), 403, 'invalid_request', 'within /workspace');
	await expectError(await ask(at('/file/tmp/secret')), 403, 'invalid_request', 'within /workspace');
	await expectError(await ask(at('/file/tmp/secret'), { method: 'PUT', body: 'x' }), 403, 'invalid_request', 'within /workspace');
	await expectError(await raw(at('/file/workspace/../tmp/secret'), {}, 'PUT'), 403, 'invalid_request', 'within /workspace');
});

step('7 running', async () => assert.equal(typeof (await (await ask(at('/running'))).json()).running, 'boolean'));

step('8 persist: excludes', async () => expectError(await ask(at('/persist?excludes=../secret'), { method: 'POST' }), 400, 'invalid_request', '..'));

step('9 hydrate: nothing', async () => expectError(await post(at('/hydrate'), new Uint8Array()), 400, 'invalid_request', 'Empty tar payload'));

step('10 delete', async () => {
	const { id: other } = await (await ask('/v1/sandbox', { method: 'POST' })).json();
	const response = await ask(`/v1/sandbox/${other}`, { method: 'DELETE' });
	assert.equal(response.status, 204);
	assert.equal(await response.text(), '');
});

step('11 pty: refusals', async () => {
	await expectError(await ask(at('/pty')), 400, 'invalid_request', 'WebSocket upgrade required');
	const upgrade = { Upgrade: 'websocket', Connection: 'Upgrade' };
	await expectError(await raw(at('/pty?cols=abc'), upgrade), 400, 'invalid_request', 'cols and rows must be valid numbers');
	await expectError(await raw(at('/pty?rows=xyz'), upgrade), 400, 'invalid_request', 'cols and rows must be valid numbers');
	if (key) await expectError(await raw(at('/pty'), { ...upgrade, ...none }), 401, 'unauthorized');
});

step('11 pty: a socket', async () => {
	const { ws, until, closed } = await socket(at('/pty?cols=80&rows=24'));
	await until((frames) => frames.some(({ json }) => json?.type === 'ready'), 'ready');
	ws.close();
	await within(closed, 'the close');
});

step('12 the document', async () => {
	const document = await (await ask('/v1/openapi.json')).json();
	assert.equal(document.openapi, '3.1.0');
	for (const path of ['exec', 'pty', 'file/{path}', 'running', 'persist', 'hydrate']) assert.ok(document.paths[`/v1/sandbox/{id}/${path}`], path);
	assert.ok(document.paths['/health']);
	const { get } = document.paths['/v1/sandbox/{id}/pty'];
	assert.equal(get.operationId, 'ptyTerminal');
	const names = get.parameters.map(({ name, $ref }) => name ?? $ref.split('/').pop());
	for (const name of ['cols', 'rows', 'shell', 'session', 'id']) assert.ok(names.includes(name), name);
	for (const status of ['101', '400', '502']) assert.ok(get.responses[status], status);
	const page = await ask('/v1/openapi.html');
	assert.equal(page.status, 200);
	assert.match((await page.text()).toLowerCase(), /^<!doctype html/);
});

step('the end', async () => {
	await expectStatus(await ask(at(''), { method: 'DELETE' }), 204);
});

await main();
