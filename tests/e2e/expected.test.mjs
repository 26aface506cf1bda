// Method x path x profile x credentials x body: what expected.mjs says, asked of a server. No case may start a sandbox, save
// those that say so.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { badIds, bodyFaults, credentials, id, KEY, nowhere, profiles, rows } from './expected.mjs';
import { freePort, Server } from './lib/server.mjs';

const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
let server, asked = 0;

before(async () => {
	server = await Server.start({ env: { SANDBOX_API_KEY: KEY } });
});

after(async () => {
	agent.destroy();
	await server?.stop();
});

/** node:http, because fetch refuses to send some of these. */
function ask(method, path, { body, headers = {}, port = server.port } = {}) {
	asked++;
	return new Promise((done, failed) => {
		const bytes = body === undefined ? undefined : Buffer.from(body);
		const request = http.request({ host: '127.0.0.1', port, method, path, agent: headers.Upgrade ? false : agent, headers: { ...(bytes ? { 'Content-Length': bytes.length } : {}), ...headers } });
		request.on('error', failed);
		request.on('upgrade', (answer, socket) => {
			socket.destroy();
			done({ status: answer.statusCode, headers: answer.headers, text: '' });
		});
		request.on('response', (answer) => {
			const pieces = [];
			answer.on('data', (piece) => pieces.push(piece));
			answer.on('end', () => done({ status: answer.statusCode, headers: answer.headers, text: Buffer.concat(pieces).toString() }));
			answer.on('error', failed);
		});
		request.end(bytes);
	});
}

const keyed = (headers = {}) => ({ Authorization: `Bearer ${KEY}`, ...headers });

/** What is wrong with the answer; undefined: nothing. */
function difference(got, wanted) {
	const type = got.headers['content-type'] ?? null;
	if (got.status !== wanted.status) return `status ${got.status}, not ${wanted.status}: ${got.text.slice(0, 200)}`;
	if (wanted.code === undefined) return type === wanted.type ? undefined : `type ${type}, not ${wanted.type}`;
	if (type !== 'application/json') return `type ${type}`;
	const json = JSON.parse(got.text);
	if (json.code !== wanted.code) return `code ${json.code}, not ${wanted.code}`;
	if (!json.error.includes(wanted.text)) return `'${json.error}' does not say '${wanted.text}'`;
	const keys = Object.keys(json).filter((key) => key !== 'hint').sort();
	return keys.join() === 'code,error' ? undefined : `keys ${keys}`;
}

const unauthorized = { status: 401, code: 'unauthorized', text: 'Unauthorized' };
const unknown = { status: 404, type: 'text/plain; charset=UTF-8' };
const outside = { status: 404, type: 'text/plain' };
const noRoute = (path) => (path === '/v1' || path.startsWith('/v1/') ? unknown : outside);
const isProtected = (path) => /^\/v1\/(sandbox|pool)(\/|$)/.test(path) || path.startsWith('/v1/openapi');

/** Asks all of CASES ({name, method, path, wanted, ...}) and tells all that are answered otherwise. */
async function askAll(cases) {
	const wrong = [];
	assert.ok(cases.length > 0);
	for (const { name, method, path, wanted, ...more } of cases) {
		const what = difference(await ask(method, path, more), wanted);
		if (what) wrong.push(`${name ?? `${method} ${path} ${more.body ?? ''}`}: ${what}`);
	}
	assert.deepEqual(wrong, []);
	return cases.length;
}

/** What the contract does not have and every dialect of ours does. */
const ours = ['listSandboxes', 'getSandbox', 'headFile'];

test('the table of the server has the rows of the contract, with its dialects and credentials, and no others', () => {
	const sets = { ALL: profiles, OLD: profiles.filter((name) => name !== 'next'), NEW: ['union', 'next'], LATER: profiles.filter((name) => name !== 'legacy'), FIRST: ['union', 'legacy'] };
	const auths = { NONE: 'none', BEARER: undefined, TOKEN: 'token', SOCKET: 'socket' };
	const table = readFileSync(new URL('../../src/routes/routes.def', import.meta.url), 'utf8');
	const lines = [...table.matchAll(/^ROUTE\((\w+),\s*"([^"]+)",\s*\w+,\s*(\w+),\s*(\w+),\s*\w+,\s*(\w+)\)/gm)];
	assert.equal(lines.length, table.match(/^ROUTE\(/gm).length);
	const used = new Set();
	for (const [, method, pattern, auth, has, operation] of lines) {
		const path = new RegExp(`^${pattern.replace(/:\w+/g, '[^/]+').replace('*', '.*')}$`);
		const row = rows.find((one) => one.method === method && path.test(one.path.replace(/\?.*/, '')));
		if (ours.includes(operation)) {
			assert.equal(row, undefined, operation);
			continue;
		}
		assert.ok(row && !used.has(row), `${method} ${pattern} is no row of the contract`);
		used.add(row);
		assert.deepEqual([...row.has].sort(), [...sets[has]].sort(), pattern);
		assert.equal(row.auth, auths[auth], pattern);
	}
	assert.deepEqual(rows.filter((row) => !used.has(row)), []);
});

for (const profile of profiles) {
	test(`the route matrix: ${profile}`, async () => {
		await askAll(rows.map(({ method, path, has, answer, body }) => ({
			method, path: `/${profile}${path}`, body, headers: keyed(), wanted: has.includes(profile) ? answer : noRoute(path),
		})));
	});

	test(`without a key nobody learns what there is: ${profile}`, async () => {
		await askAll(rows.map(({ method, path, answer, body }) => ({
			method, path: `/${profile}${path}`, body, wanted: isProtected(path) ? unauthorized : answer,
		})));
	});

	test(`no such route: ${profile}`, async () => {
		await askAll(nowhere.map(({ method, path }) => ({ method, path: `/${profile}${path}`, headers: keyed(), wanted: noRoute(path) })));
	});
}

test('the body of an unknown route is the same 13 characters below /v1', async () => {
	assert.equal((await ask('GET', '/v1/nothing')).text, '404 Not Found');
	assert.equal((await ask('GET', '/nothing')).text, 'Not Found');
});

test('HEAD is GET without a body where nothing is started, and unknown elsewhere', async () => {
	const looks = rows.filter(({ method, path, answer }) => method === 'GET' && !path.includes('/pty') && answer.status === 200);
	for (const { path } of looks) {
		const head = await ask('HEAD', path, { headers: keyed() });
		assert.equal(head.status, 200, path);
		assert.equal(head.text, '');
	}
	assert.equal((await ask('HEAD', `/v1/sandbox/${id}/pty`, { headers: keyed() })).status, 404);
	// Where the question itself starts one, HEAD is no question: asked of an id of its own, which is not there afterwards.
	for (const [profile, status] of [['union', 200], ['next', 200], ['legacy', 404], ['stable', 404], ['preview', 404]])
		assert.equal((await ask('HEAD', `/${profile}/v1/sandbox/onlyasked/running`, { headers: keyed() })).status, status, profile);
	assert.ok(!(await ask('GET', '/v1/sandbox', { headers: keyed() })).text.includes('onlyasked'));
});

test('without a prefix the dialect is the union', async () => {
	await askAll(rows.map(({ method, path, answer, body }) => ({ method, path, body, headers: keyed(), wanted: answer })));
});

test('an id of the wrong form is told before the key is asked for, whatever the rest', async () => {
	const wanted = { status: 400, code: 'invalid_request', text: 'Invalid sandbox ID format' };
	const tails = [['DELETE', ''], ['GET', '/running'], ['POST', '/exec'], ['PATCH', '/zzz'], ['GET', '/file/workspace/x']];
	await askAll(badIds.flatMap((badId) => tails.flatMap(([method, tail]) => profiles.map((profile) => ({
		method, path: `/${profile}/v1/sandbox/${badId}${tail}`, wanted,
	})))));
});

test('the key: who has it comes in, by the ways that the path knows', async () => {
	const cases = rows.filter(({ starts }) => !starts).flatMap((row) => credentials.map(({ name, header, query, opens }) => {
		const path = query ? `${row.path}${row.path.includes('?') ? '&' : '?'}${query}` : row.path;
		const may = row.auth === 'none' || opens.includes(row.auth ?? 'header');
		return { name: `${row.method} ${path} with ${name}`, method: row.method, path, body: row.body, headers: header ? { Authorization: header } : {}, wanted: may ? row.answer : unauthorized };
	}));
	await askAll(cases);
});

for (const [route, cases] of Object.entries(bodyFaults)) {
	test(`what is wrong is told in the contract's order: ${route}`, async () => {
		await askAll(cases.flatMap(({ method, path, has, body, headers, answer }) => has.map((profile) => ({
			method, path: `/${profile}${path}`, body, headers: keyed(headers), wanted: answer,
		}))));
	});
}

test('no key at all: everybody may', async () => {
	const open = await Server.start();
	try {
		for (const { method, path, answer, body } of rows.filter(({ starts }) => !starts))
			assert.equal(difference(await ask(method, path, { body, port: open.port }), answer), undefined, `${method} ${path}`);
	} finally {
		await open.stop();
	}
});

test('a listener may have a dialect of its own, a prefix wins over it', async () => {
	const ports = await Promise.all([freePort(), freePort(), freePort()]);
	const several = await Server.start({
		listen: `127.0.0.1:${ports[0]}=next,127.0.0.1:${ports[1]},127.0.0.1:${ports[2]}=legacy`,
		flags: ['--profile', 'stable'],
	});
	const status = async (port, method, path) => (await ask(method, path, { port })).status;
	const box = `/v1/sandbox/${id}`;
	try {
		assert.deepEqual(await Promise.all(ports.map((port) => status(port, 'POST', `${box}/exec`))), [404, 400, 400]);
		assert.deepEqual(await Promise.all(ports.map((port) => status(port, 'GET', `${box}/processes`))), [200, 404, 404]);
		assert.deepEqual(await Promise.all(ports.map((port) => status(port, 'POST', `${box}/tunnel/80`))), [400, 400, 404]);
		assert.deepEqual(await Promise.all(ports.map((port) => status(port, 'GET', `/next${box}/processes`))), [200, 200, 200]);
	} finally {
		await several.stop();
	}
});

test('all of it started no sandbox but where a dialect says so', async () => {
	const left = (await ask('GET', '/v1/sandbox', { headers: keyed() })).text;
	const ids = JSON.parse(left).sandboxes.map((sandbox) => sandbox.id);
	assert.ok(ids.every((name) => name === id), left);
	await ask('DELETE', `/v1/sandbox/${id}`, { headers: keyed() });
	for (const [route, cases] of Object.entries(bodyFaults))
		for (const { method, path, body, headers, answer } of cases.filter(({ has }) => has.includes('union')))
			await ask(method, path, { body, headers: keyed(headers) }), assert.ok(route && answer);
	assert.deepEqual(JSON.parse((await ask('GET', '/v1/sandbox', { headers: keyed() })).text).sandboxes, []);
	assert.ok(asked > 2000, `only ${asked} requests`);
});
