// expected.mjs - the contract as a table: what a request must be answered, before any sandbox is started for it.
// The rows are those of API.md 0.1, the faults those of section 3 in their order. expected.test.mjs asks.

export const KEY = 'the-key';
export const id = 'expected2345expected2345';
export const profiles = ['union', 'legacy', 'stable', 'preview', 'next'];

const every = profiles;
const old = ['union', 'legacy', 'stable', 'preview'];
const first = ['union', 'legacy'];
const later = ['union', 'stable', 'preview', 'next'];
const fresh = ['union', 'next'];

const box = `/v1/sandbox/${id}`;
const json = 'application/json';
const bad = (text, status = 400, code = 'invalid_request') => ({ status, code, text });
const ok = (status = 200, type = json) => ({ status, type });
const nothing = ok(204, null);
const missing = (text) => bad(text, 404, 'not_found');

/**
 * Every row of API.md 0.1 with a request that costs no sandbox: [method, path, profiles that have it, answer, more].
 * MORE.starts: profiles in which even this request starts one. MORE.auth: none, token, socket; otherwise the header only.
 */
export const rows = [
	['GET', '/health', every, ok(), { auth: 'none' }],
	['POST', '/v1/sandbox', every, ok()],
	['DELETE', box, every, nothing],
	['GET', `${box}/running`, every, ok(), { starts: ['legacy', 'stable', 'preview'] }],
	['POST', `${box}/exec`, old, bad('Invalid JSON body')],
	['POST', `${box}/read`, first, bad('Invalid JSON body')],
	['POST', `${box}/write`, first, bad('Invalid multipart body')],
	['GET', `${box}/file/`, every, bad('file path must not be empty')],
	['PUT', `${box}/file/`, every, bad('file path must not be empty')],
	['POST', `${box}/persist?excludes=../x`, every, bad('exclude paths must not contain ".."')],
	['POST', `${box}/hydrate`, every, bad('Empty tar payload')],
	['GET', `${box}/pty`, old, bad('WebSocket upgrade required'), { auth: 'socket' }],
	['POST', `${box}/session`, old, bad('Invalid session ID format'), { body: '{"id":"a b"}' }],
	['DELETE', `${box}/session/nobody`, old, bad('session delete failed: ', 502, 'session_error'), { starts: ['legacy', 'stable', 'preview'] }],
	['POST', `${box}/mount`, every, bad('Invalid JSON body')],
	['POST', `${box}/unmount`, every, bad('Invalid JSON body')],
	['POST', `${box}/tunnel/80`, later, bad('Invalid port')],
	['DELETE', `${box}/tunnel/80`, later, bad('Invalid port')],
	['POST', `${box}/processes`, fresh, bad('Invalid JSON body')],
	['GET', `${box}/processes`, fresh, ok()],
	['GET', `${box}/processes/x`, fresh, missing('Process not found')],
	['GET', `${box}/processes/x/logs`, fresh, missing('Process not found')],
	['POST', `${box}/processes/x/kill`, fresh, missing('Process not found')],
	['POST', `${box}/terminals`, fresh, bad('Invalid JSON body')],
	['GET', `${box}/terminals`, fresh, ok()],
	['GET', `${box}/terminals/x`, fresh, missing('Terminal not found')],
	['GET', `${box}/terminals/x/connect`, fresh, missing('Terminal not found'), { auth: 'socket' }],
	['POST', `${box}/terminals/x/interrupt`, fresh, missing('Terminal not found')],
	['POST', `${box}/terminals/x/terminate`, fresh, missing('Terminal not found')],
	['GET', '/v1/pool/stats', every, ok()],
	['POST', '/v1/pool/shutdown-prewarmed', every, ok()],
	['POST', '/v1/pool/prime', every, ok()],
	['GET', '/v1/openapi.json', every, ok(), { auth: 'token' }],
	['GET', '/v1/openapi.html', every, ok(200, 'text/html; charset=utf-8'), { auth: 'token' }],
	['GET', '/v1/openapi', every, ok(200, 'text/html; charset=utf-8'), { auth: 'token' }],
].map(([method, path, has, answer, more = {}]) => ({ method, path, has, answer, ...more }));

/** What no dialect has: [method, path]. Trailing slashes and wrong methods are other routes. */
export const nowhere = [
	['GET', '/v1'],
	['GET', '/v1/'],
	['GET', '/v1/sandbox/'],
	['GET', '/v1/nothing'],
	['PUT', '/v1/sandbox'],
	['OPTIONS', '/v1/sandbox'],
	['PATCH', box],
	['POST', `${box}/running`],
	['GET', `${box}/running/`],
	['GET', `${box}/exec`],
	['POST', `${box}/exec/`],
	['GET', `${box}/file`],
	['POST', `${box}/file/workspace/x`],
	['DELETE', `${box}/file/workspace/x`],
	['GET', `${box}/persist`],
	['PUT', `${box}/hydrate`],
	['POST', `${box}/pty`],
	['GET', `${box}/session`],
	['DELETE', `${box}/session/`],
	['GET', `${box}/mount`],
	['POST', `${box}/tunnel`],
	['POST', `${box}/tunnel/`],
	['GET', `${box}/tunnel/8080`],
	['DELETE', `${box}/processes`],
	['POST', `${box}/processes/x`],
	['POST', `${box}/processes/x/interrupt`],
	['POST', `${box}/processes/x/terminate`],
	['GET', `${box}/processes/x/kill`],
	['DELETE', `${box}/terminals/x`],
	['GET', `${box}/terminals/x/interrupt`],
	['POST', `${box}/terminals/x/kill`],
	['GET', `${box}/nothing`],
	['POST', '/v1/pool/stats'],
	['GET', '/v1/pool/prime'],
	['GET', '/v1/pool'],
	['POST', '/v1/openapi.json'],
	['POST', '/health'],
	['GET', '/health/'],
	['GET', '/'],
	['GET', '/index.html'],
	['GET', '/v2/sandbox'],
].map(([method, path]) => ({ method, path }));

export const badIds = ['foo;rm', 'BAD', 'a'.repeat(129), 'a-b', 'my_box', '0', 'a1', 'ab%20c', '%61', 'a.b', '~a', 'a:b'];

/** Credentials: [name, header, query] and where they open the door. */
export const credentials = [
	['none', undefined, undefined, []],
	['the header', `Bearer ${KEY}`, undefined, ['header', 'token', 'socket']],
	['the header in small letters', `bearer ${KEY}`, undefined, ['header', 'token', 'socket']],
	['the header in capitals', `BEARER ${KEY}`, undefined, ['header', 'token', 'socket']],
	['another key', `Bearer ${KEY}x`, undefined, []],
	['a part of the key', `Bearer ${KEY.slice(0, -1)}`, undefined, []],
	['a blank too many', `Bearer  ${KEY}`, undefined, []],
	['another scheme', `Basic ${KEY}`, undefined, []],
	['no scheme', KEY, undefined, []],
	['an empty key', 'Bearer ', undefined, []],
	['the token in the query', undefined, `token=${KEY}`, ['token']],
	['a wrong token', undefined, 'token=x', []],
	['authorization in the query', undefined, `authorization=Bearer%20${KEY}`, ['socket']],
	['authorization with a plus', undefined, `authorization=Bearer+${KEY}`, ['socket']],
	['authorization without a scheme', undefined, `authorization=${KEY}`, []],
].map(([name, header, query, opens]) => ({ name, header, query, opens }));

/* ---- bodies ---- */

const text = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
const faults = (method, path, has, list) =>
	list.map(([body, answer, headers]) => ({ method, path, has, body: body === undefined ? undefined : text(body), answer, headers }));

const session = { 'Session-Id': 'a/b' };
const cwdFault = bad('cwd must resolve to a location within /workspace', 403);
const notJson = ['', ' ', '{', 'argv', "{'a':1}", '{"a":1}x', '\u0000', '[1,]', 'NaN'];
const noObject = ['null', '7', '"x"', 'true', '[]', '{}'];

const argvFaults = [
	...notJson.map((body) => [body, bad('Invalid JSON body')]),
	...noObject.map((body) => [body, bad('argv must be a non-empty array')]),
	[{ argv: [] }, bad('argv must be a non-empty array')],
	[{ argv: 'ls' }, bad('argv must be a non-empty array')],
	[{ argv: { 0: 'ls' } }, bad('argv must be a non-empty array')],
	[{ argv: null, cwd: '/tmp' }, bad('argv must be a non-empty array')],
];

const execFaults = faults('POST', `${box}/exec`, old, [
	...argvFaults,
	[{ argv: [], cwd: '/tmp' }, bad('argv must be a non-empty array'), session],
	[{ argv: [{}], cwd: '/tmp' }, bad('Invalid session ID format'), session],
	[{ argv: ['ls'] }, bad('Invalid session ID format'), { 'Session-Id': 'a..b' }],
	[{ argv: ['ls'] }, bad('Invalid session ID format'), { 'Session-Id': 'x'.repeat(129) }],
	[{ argv: ['ls'] }, bad('Invalid session ID format'), { 'Session-Id': 'a b' }],
	[{ argv: [{}], cwd: '/tmp' }, cwdFault],
	[{ argv: ['ls'], cwd: '/workspacex' }, cwdFault],
	[{ argv: ['ls'], cwd: '../etc' }, cwdFault],
	[{ argv: ['ls'], cwd: '/workspace/../etc' }, cwdFault],
	[{ argv: ['ls'], cwd: '/' }, cwdFault],
	[{ argv: ['ls', {}] }, bad('argv items must be strings')],
	[{ argv: ['ls', ['a']] }, bad('argv items must be strings')],
]);

const processFaults = faults('POST', `${box}/processes`, fresh, [
	...argvFaults,
	[{ argv: [7] }, bad('argv items must be strings')],
	[{ argv: ['ls', null], timeout: -1 }, bad('argv items must be strings')],
	[{ argv: ['', 'x'], timeout: -1 }, bad('argv executable must be non-empty')],
	...[null, 0, -1, '5', true, {}].map((timeout) => [{ argv: ['ls'], timeout, cwd: '/tmp' }, bad('timeout must be a positive finite number')]),
	[{ argv: ['ls'], cwd: '/tmp', env: 7 }, cwdFault],
	...[7, null, [], 'A=1', { A: 1 }, { A: null }].map((env) => [{ argv: ['ls'], env }, bad('env must be an object of strings')]),
]);

const terminalFaults = faults('POST', `${box}/terminals`, fresh, [
	...notJson.map((body) => [body, bad('Invalid JSON body')]),
	...['null', '7', '"x"', 'true', '[]'].map((body) => [body, bad('Request body must be an object')]),
	[{}, bad('argv must be a non-empty string array')],
	[{ argv: [], cwd: 7 }, bad('argv must be a non-empty string array')],
	[{ argv: ['sh', 7], cwd: 7 }, bad('argv must be a non-empty string array')],
	[{ argv: ['sh'], cwd: 7, env: 7 }, bad('cwd must be a string')],
	...[7, null, [], 'x'].map((env) => [{ argv: ['sh'], env, cols: 0 }, bad('env must be an object')]),
	[{ argv: ['sh'], env: { A: 1 }, cols: 0 }, bad('env values must be strings')],
	...[0, -1, 1.5, '80', null].map((cols) => [{ argv: ['sh'], cols, rows: 0 }, bad('cols must be a positive integer')]),
	...[0, -1, 1.5, '24', null].map((rows) => [{ argv: ['sh'], rows }, bad('rows must be a positive integer')]),
]);

const options = { endpoint: 'http://s3.invalid' };
const mount = (more) => ({ bucket: 'b', mountPath: '/m', ...more, options: { ...options, ...more.options } });
const mountFaults = [
	...faults('POST', `${box}/mount`, later, [
		...notJson.map((body) => [body, bad('Invalid JSON body')]),
		...noObject.map((body) => [body, bad('mountPath must be a non-empty string')]),
		...[null, '', 7, {}].map((bucket) => [{ bucket, mountPath: 7 }, bad('bucket must be a non-empty string')]),
		...[undefined, null, '', 7].map((mountPath) => [{ bucket: 'b', mountPath, options: 7 }, bad('mountPath must be a non-empty string')]),
		[{ mountPath: 'relative', options: {} }, bad('mountPath must be an absolute path (start with /)')],
		...[undefined, null, [], 7, 'x'].map((value) => [{ mountPath: '/m', options: value, binding: 7 }, bad('options must be an object')]),
		...[null, 7, {}].map((endpoint) => [{ mountPath: '/m', options: { endpoint }, binding: 7 }, bad('options.endpoint must be a string when provided')]),
		...[null, 7].map((binding) => [mount({ binding }), bad('binding must be a string when provided')]),
		[mount({ binding: '' }), bad('binding must be a non-empty string when provided')],
		[mount({ binding: 'B', options: { s3fsOptions: 1 } }), bad('Provide either binding or options.endpoint, not both')],
		...[1, {}, [1], null].map((s3fsOptions) => [mount({ options: { s3fsOptions, readOnly: 1 } }), bad('options.s3fsOptions must be an array of strings when provided')]),
		[mount({ options: { readOnly: 'yes', prefix: 1 } }), bad('readOnly')],
		[mount({ options: { prefix: 1, credentialProxy: 1 } }), bad('prefix')],
		[mount({ options: { credentialProxy: 1, credentials: 1 } }), bad('credentialProxy')],
		...[null, 7, {}, { accessKeyId: 'a' }, { secretAccessKey: 's' }, { accessKeyId: 1, secretAccessKey: 's' }].map((value) => [mount({ options: { credentials: value } }), bad('credentials')]),
		[{ mountPath: '/m', options }, bad('bucket must be a non-empty string for remote mounts')],
		[{ bucket: 'b', mountPath: '/m', options: {} }, bad('binding must be a non-empty string for R2 binding mounts')],
	]),
	...faults('POST', `${box}/mount`, ['legacy'], [
		[{}, bad('bucket must be a non-empty string')],
		[{ bucket: 'b', mountPath: '/m', options: {} }, bad('endpoint must be a non-empty string')],
		[{ bucket: 'b', binding: 'B', mountPath: '/m', options: {} }, bad('endpoint must be a non-empty string')],
	]),
	...faults('POST', `${box}/unmount`, every, [
		...notJson.map((body) => [body, bad('Invalid JSON body')]),
		...noObject.map((body) => [body, bad('mountPath must be a non-empty string')]),
		[{ mountPath: 'm' }, bad('absolute path')],
		...['/', '//', '/.', '/a/..', '/a/../../'].map((mountPath) => [{ mountPath }, bad('mountPath must not resolve to / (filesystem root)')]),
		[{ mountPath: '/a/./b c/../x y/' }, bad('unmount failed: No active mount found at path: /a/x y', 502, 'unmount_error')],
	]),
];

const ports = ['0', '80', '1023', '65536', '3000', '3e3', '0xBB8', '8080.5', '-8080', 'abc', 'NaN', '8080x'];
const tunnelFaults = [
	...ports.flatMap((port) => faults('POST', `${box}/tunnel/${port}`, later, [['{', bad('Invalid port')]])),
	...ports.flatMap((port) => faults('DELETE', `${box}/tunnel/${port}`, later, [[undefined, bad('Invalid port')]])),
	...['8080', '1024', '65535', '0x1F90', '8.08e3'].flatMap((port) => faults('DELETE', `${box}/tunnel/${port}`, later, [[undefined, nothing]])),
	...faults('POST', `${box}/tunnel/8080`, later, [
		['{', bad('Invalid JSON body')],
		...[null, 7, true, {}].map((name) => [{ name }, bad('name must be a string when provided')]),
		...['', 'a'.repeat(64)].map((name) => [{ name }, bad('1\u201363 characters')]),
		...['A', '-a', 'a-', 'a.b', 'a_b', 'a b', '\u00e9'].map((name) => [{ name }, bad('valid DNS label')]),
	]),
];

const sessionFaults = faults('POST', `${box}/session`, old, ['', 'a b', 'a/b', 'a..b', 'x'.repeat(129), '\u00e9']
	.filter((name) => name)
	.map((name) => [{ id: name }, bad('Invalid session ID format')]));

const readFaults = faults('POST', `${box}/read`, first, [
	...notJson.map((body) => [body, bad('Invalid JSON body')]),
	...noObject.map((body) => [body, bad('path must be a non-empty string')]),
	...[null, '', 7, []].map((path) => [{ path }, bad('path must be a non-empty string'), session]),
	...['/etc/passwd', '../etc', '/workspace/../x', '/workspacex', '/'].map((path) => [{ path }, bad('within /workspace', 403), session]),
	[{ path: 'a' }, bad('Invalid session ID format'), session],
]);

const form = (...parts) => [
	parts.map(([name, value, more = '']) => `--B\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`).join('') + '--B--\r\n',
	{ 'Content-Type': 'multipart/form-data; boundary=B' },
];
const file = ['file', 'bytes', '; filename="f"'];
const writeFaults = [
	['', {}, bad('Invalid multipart body')],
	['x', { 'Content-Type': 'text/plain' }, bad('Invalid multipart body')],
	['x', { 'Content-Type': 'multipart/form-data' }, bad('Invalid multipart body')],
	['--A\r\n\r\n', { 'Content-Type': 'multipart/form-data; boundary=B' }, bad('Invalid multipart body')],
	[...form(file), bad('path')],
	[...form(['path', ''], file), bad('path')],
	[...form(['path', 'a']), bad('file')],
	[...form(['path', '/etc/x'], file), bad('within /workspace', 403)],
	[...form(file, ['path', '../x']), bad('within /workspace', 403)],
].map(([body, headers, answer]) => ({ method: 'POST', path: `${box}/write`, has: first, body, headers, answer }));

const outside = ['tmp/secret', 'etc/passwd', 'workspacex', 'workspace/../tmp/secret', 'workspace/%2e%2e/tmp/x', 'workspace/%2E%2E/x', 'workspace%2F..%2Fetc', '%2e%2e%2fetc'];
const fileFaults = ['GET', 'PUT'].flatMap((method) => [
	...outside.flatMap((path) => faults(method, `${box}/file/${path}`, every, [[method === 'PUT' ? 'x' : undefined, bad('path must resolve to a location within /workspace', 403)]])),
	...faults(method, `${box}/file/workspace/a%00b`, every, [[method === 'PUT' ? 'x' : undefined, bad('')]]),
	...faults(method, `${box}/file/workspace/a`, old, [[method === 'PUT' ? 'x' : undefined, bad('Invalid session ID format'), session]]),
	...faults(method, `${box}/file/tmp/a`, old, [[method === 'PUT' ? 'x' : undefined, bad('within /workspace', 403), session]]),
]);

const archiveFaults = [
	...['../secret', '..', 'a,../b', 'a..b', '%2e%2e'].flatMap((excludes) => faults('POST', `${box}/persist?excludes=${excludes}`, every, [[undefined, bad('exclude paths must not contain ".."')]])),
	...faults('POST', `${box}/hydrate`, every, [['', bad('Empty tar payload')]]),
];

const upgrade = { Connection: 'Upgrade', Upgrade: 'websocket' };
const socketFaults = [
	...['cols=abc', 'rows=xyz', 'cols=80&rows=1x', 'cols=0x', 'cols=1,5'].flatMap((query) => faults('GET', `${box}/pty?${query}`, ['union', 'legacy', 'stable', 'preview'], [[undefined, bad('cols and rows must be valid numbers'), upgrade]])),
	...faults('GET', `${box}/pty?cols=80`, ['preview'], [[undefined, bad('terminalId query parameter or Terminal-Id header required'), upgrade]]),
	...['a%2Fb', 'a..b', 'a%20b', 'x'.repeat(129)].flatMap((name) => faults('GET', `${box}/pty?terminalId=${name}`, ['union', 'preview'], [[undefined, bad('Invalid terminal ID format'), upgrade]])),
	...['a%2Fb', 'a..b', 'x'.repeat(129)].flatMap((name) => faults('GET', `${box}/pty?session=${name}`, ['union', 'legacy', 'stable'], [[undefined, bad('Invalid session ID format'), upgrade]])),
	...faults('GET', `${box}/pty?cols=80`, old.slice(0, 3), [[undefined, bad('WebSocket upgrade required'), upgrade]]),
	...faults('GET', `${box}/terminals/x/connect?cols=0`, fresh, [[undefined, missing('Terminal not found'), upgrade]]),
];

export const bodyFaults = {
	exec: execFaults,
	processes: processFaults,
	terminals: terminalFaults,
	'mount and unmount': mountFaults,
	tunnel: tunnelFaults,
	session: sessionFaults,
	read: readFaults,
	write: writeFaults,
	file: fileFaults,
	'persist and hydrate': archiveFaults,
	'pty and connect': socketFaults,
};
