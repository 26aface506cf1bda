// Field cases of life cycle and tenancy that belong to no one route: what a sandbox learns of the server and of others, what a
// question costs, what is needed to begin. Each test's name begins with the number of its case.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { id as expectedId, profiles, rows } from './expected.mjs';
import { call, newId, sh, startExec } from './lib/client.mjs';
import { Server, cannotServe, tombolo, tree } from './lib/server.mjs';

const skip = cannotServe();
const KEY = 'k3y-0f-th3-s3rv3r';
const headers = { Authorization: `Bearer ${KEY}` };
let server, url;

before(async () => {
	if (skip) return;
	server = await Server.start({ env: { SANDBOX_API_KEY: KEY, AWS_SECRET_ACCESS_KEY: 'aws-s3cr3t' } });
	url = server.url;
});
after(() => server?.stop());

const ask = (path, method = 'GET', more = {}) => call(`${url}${path}`, method, { ...more, headers: { ...headers, ...more.headers } });
const inside = (id, script, more = {}) => sh(url, id, script, more, { headers });
const remove = (id) => ask(`/v1/sandbox/${id}`, 'DELETE');

/** /proc/PID/status, "" of one that has ended. */
function statusOf(pid) {
	try {
		return readFileSync(`/proc/${pid}/status`, 'utf8');
	} catch {
		return '';
	}
}
const listed = async () => (await ask('/v1/sandbox')).json.sandboxes.map((sandbox) => sandbox.id);

test('C059 no limit is asked for by silence, null, 0 or less; what is no number counts for nothing, a huge one is taken as it is', { skip }, async () => {
	const id = newId();
	for (const timeout_ms of [undefined, null, 0, -1, -1e12, 1e12, 2 ** 32 + 20, 2 ** 63, 1e300, 'abc', '20', true, [20], { ms: 20 }]) {
		const run = await inside(id, 'sleep 0.2; echo whole', { timeout_ms });
		assert.deepEqual([run.code, run.out], [0, 'whole\n'], `timeout_ms ${JSON.stringify(timeout_ms)}`);
	}
	assert.equal((await inside(id, 'sleep 60', { timeout_ms: 20 })).code, 124);
	await remove(id);
});

test('C062 neither the secrets of the server nor those of another sandbox are found in a sandbox', { skip }, async () => {
	const [id, other] = [newId(), newId()];
	const TOKEN = 't0k3n-0f-4n0th3r';
	const theirs = startExec(url, other, { argv: ['sh', '-c', 'echo "$TOKEN" >/tmp/token; echo begun; exec sleep 600'], env: { TOKEN } }, { headers });
	await theirs.saw('begun');
	// The words are put together inside, so that no command line holds one. What is mounted from the host's /usr was there before us.
	const halves = (word) => `"${word.slice(0, 5)}" "${word.slice(5)}"`;
	const look = (word) => `w() { printf %s%s ${halves(word)}; }
		grep -rslaF -D skip -f <(w) --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr --exclude-dir=dev /
		for f in /proc/[0-9]*/{cmdline,environ,maps} /proc/self/mountinfo /dev/shm/* /dev/mqueue/*; do grep -slaF -f <(w) "$f"; done; true`;
	const search = async (box, word) => (await call(`${url}/v1/sandbox/${box}/file/workspace/look`, 'PUT', { body: look(word), headers })) && (await inside(box, 'bash look')).out;
	assert.equal(await search(id, 'aws-s3cr3t'), '');
	assert.equal(await search(id, KEY), '');
	assert.equal(await search(id, TOKEN), '');
	assert.match(await search(other, TOKEN), /^\/tmp\/token\n\/proc\/\d+\/environ\n/, 'it finds what is there');
	theirs.request.destroy();
	await Promise.all([remove(id), remove(other)]);
});

test('C063 ids that hardly differ are strangers, and no mount tells of another id or of the host', { skip }, async () => {
	const long = newId(127);
	const ids = [`${long}a`, `${long}b`, long, long.slice(0, 63), long.slice(0, 64), long.slice(0, 1)];
	await Promise.all(ids.map((id) => inside(id, `echo ${id} | tee mine /tmp/mine >/dev/null`)));
	for (const id of ids) {
		const run = await inside(id, 'cat mine /tmp/mine; ls /workspace /tmp');
		assert.equal(run.out, `${id}\n${id}\n/tmp:\nmine\n\n/workspace:\nmine\n`);
		const { out } = await inside(id, 'cat /proc/self/mountinfo /proc/self/mounts /proc/self/cgroup; find / -xdev -path /usr -prune -o -print 2>/dev/null');
		assert.ok(out.includes(' / / '), 'it sees its mounts');
		for (const word of [server.state, ...ids.filter((other) => other.length > 60)]) assert.ok(!out.includes(word), `${word} is told of`);
	}
	await Promise.all(ids.map(remove));
});

test('C064 questions start nothing', { skip }, async () => {
	const id = newId();
	const box = `/v1/sandbox/${id}`;
	for (const [method, path] of [['GET', '/running'], ['GET', ''], ['GET', '/processes'], ['GET', '/processes/x/logs'], ['GET', '/terminals'], ['GET', '/terminals/x'], ['HEAD', '/file/workspace/x'], ['DELETE', '']])
		for (const prefix of ['', '/next']) await ask(`${prefix}${box}${path}`, method);
	assert.equal((await ask(`${box}/running`)).json.running, false);
	assert.deepEqual(await listed(), []);
	// The dialects whose clients count on it are another matter.
	for (const profile of ['legacy', 'stable', 'preview']) {
		assert.equal((await ask(`/${profile}${box}/running`)).json.running, true, profile);
		assert.deepEqual(await listed(), [id], profile);
		await remove(id);
	}
});

test('C065 one command and no network are enough', { skip }, async () => {
	const start = performance.now();
	const alone = await Server.start({ under: ['unshare', '--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh'] });
	try {
		const client = (...words) => promisify(execFile)('nsenter', ['--net', '-t', String(alone.pid), tombolo, ...words], { env: { ...process.env, TOMBOLO_URL: alone.url } });
		const { stdout } = await client('exec', newId(), '--', 'sh', '-c', 'echo first; tail -n +3 /proc/net/dev | wc -l');
		assert.equal(stdout, 'first\n1\n');
		assert.ok(performance.now() - start < 60_000);
	} finally {
		await alone.stop();
	}
});

test('C066 nothing of ours is in the image, and the death of what runs there is told by name', { skip }, async () => {
	const id = newId();
	const before = new Set(tree(server.pid));
	const run = startExec(url, id, ['sh', '-c', 'echo begun; exec sleep 600'], { headers });
	await run.saw('begun');
	const agent = tree(server.pid).find((pid) => /^NSpid:\t.*\t1$/m.test(statusOf(pid)) && tree(pid).some((child) => child !== pid && !before.has(child)));
	assert.ok(agent, 'pid 1 of the sandbox');
	assert.equal((await inside(id, `test -e ${readlinkSync(`/proc/${agent}/exe`)}; echo $?`)).out, '1\n');
	process.kill(agent, 'SIGKILL');
	await run.done;
	assert.equal(run.error.code, 'exec_transport_error');
	assert.match(run.error.error, /^exec failed: .{5}/);
	await remove(id);
});

/* ---- C067 ---- */

/** What a code may come with: API.md 2.1. */
const statuses = {
	unauthorized: [401], invalid_request: [400, 403], payload_too_large: [413], not_found: [404], workspace_read_not_found: [404],
	exec_transport_error: [502], process_error: [502], workspace_archive_read_error: [502], workspace_archive_write_error: [502],
	mount_error: [502], unmount_error: [502], session_error: [502], tunnel_error: [502], capacity_exceeded: [503], pool_error: [502],
};

const junk = [
	'', ' ', '\0', '{', '{}', '[]', 'null', '7', '-0', '"x"', '{"argv":', '{"argv":{}}', '{"argv":["\\ud800"]}', '{"argv":["a\\u0000b"],"cwd":"a\\u0000"}', '{"a\\u0000b":1}',
	'{"argv":["true"],"cwd":"/"}', '{"argv":[""],"timeout":1e999}', '{"path":"\\u0000"}', '{"path":"/etc/shadow"}', '{"mountPath":"/","bucket":"","options":[]}',
	'{"id":"../x"}', '{"name":"-"}', '<html>', '--B\r\n', '['.repeat(5000), `{"argv":["${'x'.repeat(3000)}`, '\xff\xfe', '\u00e9', '{"signal":"KILL"}', '{"cols":-1,"argv":["sh"]}',
	'{"argv":["/no/such"]}', '{"bucket":"b","mountPath":"/m","options":{"endpoint":"http://s3.invalid"}}',
];

test('C067 whatever is wrong, each route answers {error, code} with a code that is published and a status that agrees', { skip }, async () => {
	const published = (await ask('/v1/openapi.json')).json.components.schemas.ErrorResponse.properties.code.enum;
	for (const code of Object.keys(statuses)) assert.ok(published.includes(code), code);
	const box = newId();
	const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
	const wrong = [], seen = new Set();
	let refused = 0;
	const one = (method, path, body, more) => new Promise((done, failed) => {
		const request = http.request({ host: '127.0.0.1', port: server.port, agent, method, path, headers: { ...headers, ...more, ...(method === 'GET' ? {} : { 'Content-Length': body.length }) } }, (answer) => {
			const pieces = [];
			answer.on('data', (piece) => pieces.push(piece)).on('error', failed).on('end', () => {
				const text = Buffer.concat(pieces).toString('latin1'), type = answer.headers['content-type'];
				if (answer.statusCode < 400) return done();
				refused++;
				try {
					const json = JSON.parse(text);
					seen.add(json.code);
					assert.equal(type, 'application/json');
					assert.deepEqual(Object.keys(json).filter((key) => key !== 'hint').sort(), ['code', 'error']);
					assert.ok(json.error.length > 5 && published.includes(json.code) && statuses[json.code].includes(answer.statusCode));
				} catch (error) {
					wrong.push(`${method} ${path} ${JSON.stringify(body.toString('latin1')).slice(0, 80)}: ${answer.statusCode} ${text.slice(0, 120)} (${error.message.slice(0, 60)})`);
				}
				done();
			});
		});
		request.on('error', failed);
		request.end(method === 'GET' ? undefined : body);
	});
	for (const [i, row] of rows.entries()) {
		await Promise.all(junk.map((text, n) => {
			const path = row.path.replaceAll(expectedId, box);
			const query = ['', 'cols=x', 'since=%00', 'excludes=..', 'authorization=x', '%', '=&&='][n % 7];
			const more = [{}, { 'Session-Id': 'a b' }, { 'Content-Type': 'multipart/form-data' }, { 'Content-Type': 'application/json', Range: 'bytes=9-1' }, { Authorization: 'Bearer x' }][n % 5];
			// A dialect that has the route: elsewhere it is the 404 of an unknown one, which is no JSON.
			const profile = row.has[(i + n) % row.has.length];
			return one(row.method, `/${profile}${path}${path.includes('?') ? '&' : '?'}${query}`, Buffer.from(text, 'latin1'), more);
		}));
	}
	agent.destroy();
	await remove(box);
	assert.deepEqual(wrong, []);
	assert.ok(refused > 400 && seen.size >= 8, `${refused} refusals, ${[...seen]}`);
	assert.ok(profiles.length === 5 && rows.length >= 30);
});
