// The OpenAPI document against real answers, and the explorer in a real browser: API.md 3.29, CLIENTS.md 3, 4.1 and 4.2.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import http from 'node:http';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { call, newId } from './lib/client.mjs';
import { Server, tombolo } from './lib/server.mjs';

const KEY = 'key-that-no-log-may-show';
const headers = { Authorization: `Bearer ${KEY}` };
let server, url, spec;

before(async () => {
	server = await Server.start({ env: { SANDBOX_API_KEY: KEY }, flags: ['--log-level', 'debug'] });
	url = server.url;
	spec = await document('');
});

after(() => server?.stop());

const document = async (prefix) => (await call(`${url}${prefix}/v1/openapi.json`, 'GET', { headers })).json;

/* ---- what clients look for ---- */

test('the document is what the stable script and Bernstein look for', () => {
	assert.equal(spec.openapi, '3.1.0');
	assert.equal(spec.info.title, 'Cloudflare Sandbox Service API');
	assert.match(spec.info.version, /^1\./);
	assert.deepEqual(spec.security, [{ BearerAuth: [] }]);
	assert.deepEqual([spec.components.securitySchemes.BearerAuth.type, spec.components.securitySchemes.BearerAuth.scheme], ['http', 'bearer']);
	assert.deepEqual(spec.paths['/health'].get.security, []);
	const wanted = ['/health', '/v1/sandbox', '/v1/sandbox/{id}', '/v1/pool/stats', ...['exec', 'pty', 'file/{path}', 'running', 'persist', 'hydrate', 'session'].map((end) => `/v1/sandbox/{id}/${end}`)];
	for (const path of wanted) assert.ok(path in spec.paths, path);
	const pty = spec.paths['/v1/sandbox/{id}/pty'].get;
	assert.equal(pty.operationId, 'ptyTerminal');
	const names = namesOf(spec, pty);
	for (const name of ['id', 'cols', 'rows', 'shell', 'session']) assert.ok(names.includes(name), name);
	for (const status of ['101', '400', '502']) assert.ok(status in pty.responses, status);
});

const namesOf = (doc, operation) => operation.parameters.map((p) => (p.$ref ? doc.components.parameters[p.$ref.split('/').pop()] : p).name);

test('each dialect describes what it has', async () => {
	const [legacy, stable, preview, next] = await Promise.all(['/legacy', '/stable', '/preview', '/next'].map(document));
	const has = (doc, end) => Object.keys(doc.paths).some((path) => path.includes(end));
	for (const end of ['/exec', '/pty', '/session']) assert.deepEqual([legacy, stable, preview, next].map((doc) => has(doc, end)), [true, true, true, false], end);
	for (const end of ['/processes', '/terminals']) assert.deepEqual([legacy, stable, preview, next].map((doc) => has(doc, end)), [false, false, false, true], end);
	for (const end of ['/read', '/write']) assert.deepEqual([legacy, stable, preview, next].map((doc) => has(doc, `{id}${end}`)), [true, false, false, false], end);
	assert.ok(!has(legacy, '/tunnel') && has(stable, '/tunnel'));
	const pty = (doc) => namesOf(doc, doc.paths['/v1/sandbox/{id}/pty'].get);
	assert.ok(pty(stable).includes('Session-Id') && !pty(stable).includes('terminalId'));
	assert.ok(pty(preview).includes('terminalId') && pty(preview).includes('Terminal-Id') && !pty(preview).includes('session'));
	const status = next.components.schemas.ProcessStatus;
	assert.equal(status.discriminator.propertyName, 'state');
	assert.ok(Array.isArray(status.oneOf) && !('ProcessSnapshot' in next.components.schemas));
	for (const doc of [legacy, stable, preview, next]) assert.ok(!JSON.stringify(doc).includes('x-profiles'));
});

test('every reference leads somewhere, every operation has a name of its own and says what 401 is', () => {
	const ids = [];
	JSON.stringify(spec, (key, value) => {
		if (key === '$ref') assert.ok(value.slice(2).split('/').reduce((at, part) => at?.[part.replaceAll('~1', '/')], spec), value);
		return value;
	});
	for (const [path, methods] of Object.entries(spec.paths))
		for (const [method, operation] of Object.entries(methods)) {
			ids.push(operation.operationId);
			if (path !== '/health') assert.ok('401' in operation.responses, `${method} ${path}`);
			const parts = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
			for (const name of parts) assert.ok(namesOf(spec, operation).includes(name), `${method} ${path} does not describe ${name}`);
		}
	assert.equal(new Set(ids).size, ids.length);
});

/* ---- real answers ---- */

/** The operation of a real request: its path template matches. */
function operationOf(method, path) {
	const plain = path.replace(/\?.*/, '');
	for (const [template, methods] of Object.entries(spec.paths)) {
		const pattern = template.replace(/\{path\}/, '.*').replace(/\{\w+\}/g, '[^/]+');
		if (new RegExp(`^${pattern}$`).test(plain) && methods[method.toLowerCase()]) return { template, operation: methods[method.toLowerCase()] };
	}
	return assert.fail(`${method} ${path} is not described`);
}

const pointer = (...parts) => parts.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1')).map(encodeURIComponent).join('/');

function makeValidator() {
	const ajv = new Ajv2020({ strict: false, allErrors: true });
	addFormats(ajv);
	ajv.addSchema(spec, 'spec');
	return (where, value) => {
		const check = ajv.getSchema(`spec#/${where}`);
		assert.ok(check, where);
		assert.ok(check(value), `${where}: ${ajv.errorsText(check.errors)} in ${JSON.stringify(value)}`);
	};
}

test('real answers are as described: status, type and schema', async () => {
	const validate = makeValidator();
	const seen = new Map();
	const id = newId();
	const box = `/v1/sandbox/${id}`;

	const ask = async (method, path, status, { body, more = {} } = {}) => {
		const answer = await call(url + path, method, { body, headers: { ...headers, ...more } });
		const { template, operation } = operationOf(method, path);
		assert.equal(answer.status, status, `${method} ${path}: ${answer.text}`);
		const described = operation.responses[status];
		assert.ok(described, `${method} ${template}: ${status} is not described`);
		seen.set(operation.operationId, [...(seen.get(operation.operationId) ?? []), status]);
		if (method === 'HEAD' || status === 204) return answer;
		const content = described.content?.[answer.type];
		assert.ok(content, `${method} ${template}: ${status} with type ${answer.type} is not described`);
		if (answer.type === 'application/json')
			validate(pointer('paths', template, method.toLowerCase(), 'responses', String(status), 'content', answer.type, 'schema'), answer.json);
		return answer;
	};

	await ask('GET', '/health', 200);
	await ask('POST', '/v1/sandbox', 200);
	await ask('GET', '/v1/sandbox', 200);
	await ask('GET', box, 404);
	await ask('GET', `${box}/running`, 200);
	await ask('POST', `${box}/exec`, 400, { body: '{' });
	await ask('POST', `${box}/exec`, 403, { body: '{"argv":["ls"],"cwd":"/tmp"}' });
	await ask('POST', `${box}/exec`, 200, { body: '{"argv":["echo","hi"]}' });
	await ask('GET', `${box}/running`, 200);
	await ask('GET', box, 200);
	await ask('PUT', `${box}/file/workspace/a.txt`, 200, { body: 'hello' });
	await ask('GET', `${box}/file/workspace/a.txt`, 200);
	await ask('GET', `${box}/file/workspace/a.txt`, 206, { more: { Range: 'bytes=1-2' } });
	await ask('HEAD', `${box}/file/workspace/a.txt`, 200);
	await ask('GET', `${box}/file/workspace/none`, 404);
	await ask('GET', `${box}/file/etc/passwd`, 403);
	await ask('PUT', `${box}/file/workspace`, 502, { body: 'x' });
	await ask('POST', `${box}/read`, 200, { body: '{"path":"a.txt"}' });
	await ask('POST', `${box}/read`, 404, { body: '{"path":"none"}' });
	const form = new FormData();
	form.set('path', 'b.txt');
	form.set('file', new Blob(['bytes']), 'b.txt');
	await ask('POST', `${box}/write`, 200, { body: form });
	await ask('POST', `${box}/write`, 400, { body: '' });
	const archive = await fetch(`${url}${box}/persist`, { method: 'POST', headers });
	const tar = Buffer.from(await archive.arrayBuffer());
	await ask('POST', `${box}/persist`, 200);
	await ask('POST', `${box}/persist?excludes=..`, 400);
	await ask('POST', `${box}/hydrate`, 200, { body: tar });
	await ask('POST', `${box}/hydrate`, 400);
	await ask('POST', `${box}/hydrate`, 502, { body: 'no archive, but bytes enough' });
	await ask('GET', `${box}/pty`, 400);
	const session = (await ask('POST', `${box}/session`, 200, { body: '{"env":{"A":"1"}}' })).json.id;
	await ask('DELETE', `${box}/session/${session}`, 200);
	await ask('DELETE', `${box}/session/nobody`, 502);
	await ask('POST', `${box}/mount`, 400, { body: '{}' });
	await ask('POST', `${box}/mount`, 502, { body: '{"bucket":"b","mountPath":"/workspace/m","options":{"endpoint":"http://127.0.0.1:1"}}' });
	await ask('POST', `${box}/unmount`, 502, { body: '{"mountPath":"/workspace/m"}' });
	await ask('POST', `${box}/tunnel/80`, 400);
	await ask('DELETE', `${box}/tunnel/8080`, 204);
	await ask('POST', `${box}/processes`, 400, { body: '{}' });
	await ask('POST', `${box}/processes`, 502, { body: '{"argv":["/no/such/program"]}' });
	const running = (await ask('POST', `${box}/processes`, 200, { body: '{"argv":["sleep","616"]}' })).json;
	const ended = (await ask('POST', `${box}/processes`, 200, { body: '{"argv":["sh","-c","echo out; echo err >&2; exit 7"]}' })).json;
	const logs = await ask('GET', `${box}/processes/${ended.id}/logs?follow=true`, 200);
	const events = logs.text.split('\n\n').filter((frame) => frame.startsWith('data: ')).map((frame) => JSON.parse(frame.slice(6)));
	assert.ok(events.length >= 3);
	for (const event of events) validate('components/schemas/LogEvent', event);
	await ask('GET', `${box}/processes/${ended.id}`, 200);
	await ask('POST', `${box}/processes/${running.id}/kill`, 204, { body: '{"signal":9}', more: { 'Content-Type': 'application/json' } });
	await ask('GET', `${box}/processes/${running.id}/logs?follow=true`, 200);
	await ask('GET', `${box}/processes/${running.id}`, 200);
	await ask('GET', `${box}/processes`, 200);
	await ask('GET', `${box}/processes/none`, 404);
	await ask('GET', `${box}/processes/none/logs`, 404);
	await ask('POST', `${box}/processes/none/kill`, 404);
	const terminal = (await ask('POST', `${box}/terminals`, 200, { body: '{"argv":["sh"],"cols":80,"rows":24}' })).json;
	await ask('GET', `${box}/terminals/${terminal.id}`, 200);
	await ask('GET', `${box}/terminals/${terminal.id}/connect`, 400);
	await ask('POST', `${box}/terminals/${terminal.id}/interrupt`, 204);
	await ask('POST', `${box}/terminals/${terminal.id}/terminate`, 204);
	await ask('GET', `${box}/terminals`, 200);
	await ask('GET', `${box}/terminals/none`, 404);
	await ask('POST', `${box}/terminals`, 400, { body: '{}' });
	await ask('GET', '/v1/pool/stats', 200);
	await ask('POST', '/v1/pool/prime', 200);
	await ask('POST', '/v1/pool/shutdown-prewarmed', 200);
	await ask('GET', '/v1/openapi.json', 200);
	await ask('GET', '/v1/openapi.html', 200);
	await ask('GET', '/v1/openapi', 200);
	await ask('GET', '/v1/pool/stats', 401, { more: { Authorization: 'Bearer wrong' } });
	await ask('DELETE', box, 204);

	const all = Object.values(spec.paths).flatMap((methods) => Object.values(methods).map((operation) => operation.operationId));
	assert.deepEqual(all.filter((operation) => !seen.has(operation)), [], 'operations nobody asked for');
});

/* ---- the page ---- */

/** node:http, which neither decodes nor adds an Accept-Encoding. */
const raw = (path, more = {}) =>
	new Promise((done, failed) => {
		http.get(`${url}${path}`, { headers: { ...headers, ...more } }, (answer) => {
			const pieces = [];
			answer.on('data', (piece) => pieces.push(piece)).on('end', () => done({ status: answer.statusCode, headers: answer.headers, body: Buffer.concat(pieces) }));
		}).on('error', failed);
	});

test('the page comes plain or packed, with a tag and a policy that lets nothing out', async () => {
	const [plain, packed] = [await raw('/v1/openapi.html'), await raw('/v1/openapi', { 'Accept-Encoding': 'br, gzip' })];
	assert.equal(plain.headers['content-type'], 'text/html; charset=utf-8');
	assert.match(plain.body.toString(), /^<!doctype html/i);
	assert.equal(packed.headers['content-encoding'], 'gzip');
	assert.ok(gunzipSync(packed.body).equals(plain.body));
	assert.ok(packed.body.length < plain.body.length / 3);
	const policy = plain.headers['content-security-policy'];
	for (const part of ["default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"]) assert.ok(policy.includes(part), policy);
	assert.ok(!/unsafe-eval|https?:|\*/.test(policy.replace(/sha256-\S+/g, '')), policy);
	assert.ok(!/<(script|link|img|iframe)[^>]+(src|href)=["']?(https?:)?\/\//i.test(plain.body.toString()), 'it names a file of somebody else');
	for (const [path, more] of [['/v1/openapi.html', {}], ['/v1/openapi.html', { 'Accept-Encoding': 'gzip' }], ['/v1/openapi.json', {}], ['/next/v1/openapi.json', {}]]) {
		const first = await raw(path, more);
		const again = await raw(path, { ...more, 'If-None-Match': first.headers.etag });
		assert.deepEqual([again.status, again.body.length], [304, 0], path);
		assert.equal(again.headers.etag, first.headers.etag);
	}
	assert.notEqual((await raw('/v1/openapi.json')).headers.etag, (await raw('/next/v1/openapi.json')).headers.etag);
});

test('the key of the query opens the page and is in no log', async () => {
	for (const path of ['/v1/openapi.json', '/v1/openapi.html', '/v1/openapi']) {
		assert.equal((await call(`${url}${path}?token=${KEY}`)).status, 200);
		assert.equal((await call(`${url}${path}?token=x`)).status, 401);
	}
	assert.ok(server.output.includes('/v1/openapi.html'), 'the requests are logged');
	assert.ok(!server.output.includes(KEY));
});

/* ---- in a browser ---- */

function findChromium() {
	for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
		try {
			return execFileSync('which', [name], { encoding: 'utf8' }).trim();
		} catch {
			// the next
		}
	}
	return undefined;
}

const browserPath = findChromium();

test('the explorer in a browser: offline, every operation, one tried for real', { skip: browserPath ? false : 'needs chromium' }, async () => {
	const { chromium } = await import('playwright-core');
	const browser = await chromium.launch({
		executablePath: browserPath,
		args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
	});
	try {
		const page = await browser.newPage({ viewport: { width: 1280, height: 1000 } });
		page.setDefaultTimeout(120_000); // a browser beside other suites takes its time; only a hang reaches it
		const requests = [], complaints = [];
		page.on('request', (request) => requests.push(request.url()));
		page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
		page.on('pageerror', (error) => complaints.push(String(error)));
		await page.goto(`${url}/v1/openapi.html?token=${KEY}`);
		await page.waitForSelector('body[data-ready=yes] .opblock');
		await page.screenshot({ path: join(dirname(tombolo), 'explorer.png') });

		const operations = Object.values(spec.paths).flatMap((methods) => Object.keys(methods));
		assert.equal(await page.locator('.opblock').count(), operations.length);

		// The key came with the page: one click tries.
		const block = page.locator('#operations-Pool-getPoolStats');
		await block.locator('.opblock-summary').click();
		await block.locator('button.execute').click();
		const status = block.locator('.live-responses-table .response-col_status');
		await status.first().waitFor();
		await block.locator('.live-responses-table td.response-col_status', { hasText: '200' }).waitFor();
		assert.match(await block.locator('.live-responses-table').innerText(), /"warm"/);
		await block.scrollIntoViewIfNeeded();
		await page.screenshot({ path: join(dirname(tombolo), 'explorer-tried.png') });

		// Each of them can be tried.
		await page.evaluate(() => document.querySelectorAll('.opblock:not(.is-open) .opblock-summary-control').forEach((button) => button.click()));
		await page.waitForFunction((count) => document.querySelectorAll('.opblock button.execute').length === count, operations.length);

		// What wants to leave does not get far: the policy stops it before a packet is sent.
		const escape = await page.evaluate(() => fetch('https://example.com/').then(() => 'out', () => 'stopped'));
		assert.equal(escape, 'stopped');
		const foreign = requests.filter((to) => !to.startsWith(url) && !to.startsWith('data:') && !to.startsWith('https://example.com/'));
		assert.deepEqual(foreign, []);
		assert.deepEqual(complaints.filter((text) => !/example\.com|Content Security Policy|Failed to fetch/.test(text)), []);

		await page.goto(`${url}/next/v1/openapi?token=${KEY}`);
		await page.waitForSelector('body[data-ready=yes] .opblock');
		assert.equal(await page.locator('#operations-Commands-execCommand').count(), 0);
		await page.locator('#operations-Sandboxes-createSandbox .opblock-summary').click();
		await page.locator('#operations-Sandboxes-createSandbox button.execute').click();
		await page.locator('#operations-Sandboxes-createSandbox .live-responses-table td.response-col_status', { hasText: '200' }).waitFor();
		assert.ok(requests.some((to) => to === `${url}/next/v1/sandbox`), 'it tries in the dialect it shows');
		assert.ok(existsSync(join(dirname(tombolo), 'explorer.png')));
	} finally {
		await browser.close();
	}
});
