// The warm pool: API.md 3.28, SEMANTICS 7.2 and 7.3, field cases C051, C060, C061.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { assertError, call, eventually, exec, newId, sh } from './lib/client.mjs';
import { programs, Server, tree } from './lib/server.mjs';

const TARGET = 4;
let server, url;

before(async () => {
	server = await Server.start({ env: { WARM_POOL_TARGET: String(TARGET), WARM_POOL_SCALE_BATCH_SIZE: 'no number', SECRET_OF_SERVER: 'x' } });
	url = server.url;
});

after(() => server?.stop());

const stats = async (base = url, prefix = '') => (await call(`${base}${prefix}/v1/pool/stats`)).json;
const warm = (count, base = url) => eventually(async () => (await stats(base)).warm === count, `${count} are warm`);
const remove = (id, base = url) => call(`${base}/v1/sandbox/${id}`, 'DELETE');
const runs = (state) => readdirSync(join(state, 'sandboxes'));

test('the pool fills to its target and says so', async () => {
	await warm(TARGET);
	assert.deepEqual(await stats(), {
		warm: TARGET, assigned: 0, total: TARGET,
		config: { warmTarget: TARGET, refreshInterval: 10000, maxInstances: 0, scaleBatchSize: 5 },
		maxInstances: 1000,
	});
});

test('the settings of the stable dialect are told there and in the union only', async () => {
	for (const [profile, count] of [['union', 4], ['legacy', 2], ['stable', 4], ['preview', 2], ['next', 2]])
		assert.equal(Object.keys((await stats(url, `/${profile}`)).config).length, count, profile);
});

test('a first command takes one of the pool, and a successor is made', async () => {
	await warm(TARGET);
	const before = new Set(runs(server.state));
	const id = newId();
	assert.equal((await sh(url, id, 'echo hi')).out, 'hi\n');
	const { instanceId } = (await call(`${url}/v1/sandbox/${id}/running`)).json;
	assert.ok(before.has(instanceId), 'it was made before it was asked for');
	assert.equal((await stats()).assigned, 1);
	await warm(TARGET);
	assert.equal((await stats()).total, TARGET + 1);
	await remove(id);
	assert.equal((await stats()).assigned, 0);
	assert.ok(!runs(server.state).includes(instanceId), 'it did not return to the pool');
});

test('concurrent first requests of one id get one sandbox', async () => {
	await warm(TARGET);
	const id = newId();
	const seen = await Promise.all(Array.from({ length: 10 }, () => sh(url, id, 'readlink /proc/self/ns/mnt')));
	assert.equal(new Set(seen.map((run) => run.out)).size, 1);
	await remove(id);
});

test('another instance type than the default gets its own limits from the pool', async () => {
	await warm(TARGET);
	const { id } = (await call(`${url}/v1/sandbox`, 'POST', { body: '{"instance":"lite"}' })).json;
	await sh(url, id, 'true');
	const { limits, instance } = (await call(`${url}/v1/sandbox/${id}`)).json;
	assert.equal(instance, 'lite');
	const other = newId();
	await sh(url, other, 'true');
	const standard = (await call(`${url}/v1/sandbox/${other}`)).json;
	assert.ok(limits.memory_bytes < standard.limits.memory_bytes);
	// Asked from the kernel: more than the small type has, less than the default.
	const eat = `python3 -c "b = bytearray(${Math.floor(limits.memory_bytes * 1.2)}); print(len(b))"`;
	assert.notEqual((await sh(url, id, eat)).code, 0);
	assert.equal((await sh(url, other, eat)).code, 0);
	await Promise.all([remove(id), remove(other)]);
});

test('more at once than the pool has are made while the client waits', async () => {
	await warm(TARGET);
	const ids = Array.from({ length: TARGET * 3 }, () => newId());
	const out = await Promise.all(ids.map((id) => sh(url, id, 'cat /proc/sys/kernel/domainname')));
	assert.equal(new Set(out.map((run) => run.out)).size, ids.length);
	await Promise.all(ids.map((id) => remove(id)));
	await warm(TARGET);
	assert.equal(runs(server.state).length, TARGET);
});

test('shutdown-prewarmed ends the idle ones and leaves the others, prime makes them again', async () => {
	await warm(TARGET);
	const id = newId();
	await sh(url, id, 'echo mine > /workspace/mine');
	assert.deepEqual((await call(`${url}/v1/pool/shutdown-prewarmed`, 'POST')).json, { ok: true });
	const { warm: left, assigned } = await stats();
	assert.deepEqual([left, assigned], [0, 1]);
	await eventually(() => runs(server.state).length === 1, 'only the assigned one is left');
	assert.equal((await sh(url, id, 'cat mine')).out, 'mine\n');
	assert.deepEqual((await call(`${url}/v1/pool/prime`, 'POST', { body: 'ignored' })).json, { ok: true });
	await warm(TARGET);
	await remove(id);
});

test('C060: nothing of a former sandbox is in those that come from the pool', async () => {
	const places = ['/workspace', '/tmp', '/dev/shm', '/var/tmp', '$HOME', '/run'];
	const mark = 'marker-of-the-former-tenant';
	const leave = places.map((place) => `echo ${mark} > "${place}/${mark}" 2>/dev/null;`).join(' ');
	const ipc = `python3 -c "
import ctypes, socket, os, time
libc = ctypes.CDLL(None)
libc.shmget(0x544f4d42, 4096, 0o1666)
s = socket.socket(socket.AF_UNIX); s.bind('\\0${mark}'); s.listen()
if os.fork() == 0: time.sleep(600)
" </dev/null >/dev/null 2>&1`;
	const former = newId();
	await sh(url, former, `${leave} ${ipc}`);
	assert.match((await sh(url, former, `cat /proc/net/unix /proc/sysvipc/shm; ls /tmp`)).out, new RegExp(mark));
	await remove(former);
	const look = `ls -aR ${places.join(' ')} 2>/dev/null; cat /proc/net/unix /proc/keys 2>/dev/null; tail -n +2 /proc/sysvipc/shm /proc/sysvipc/msg /proc/sysvipc/sem; ls /dev/mqueue 2>/dev/null; ps -ef 2>/dev/null; true`;
	for (let round = 0; round < 5; round++) {
		const ids = Array.from({ length: 10 }, () => newId());
		const seen = await Promise.all(ids.map((id) => sh(url, id, look)));
		for (const run of seen) {
			assert.ok(!run.out.includes(mark), run.out);
			assert.ok(!run.out.includes('1414483266'), 'a shared memory segment is left'); // 0x544f4d42
		}
		await Promise.all(ids.map((id) => remove(id)));
	}
});

const facts = [
	'env | sort', 'umask', 'ulimit -a', 'id', 'pwd', 'cat /proc/self/oom_score_adj', 'cat /proc/self/limits', 'grep -E "^(Umask|Uid|Gid|Groups|Sig[^Q]|Shd|Cap|NoNewPrivs|Seccomp)" /proc/self/status',
	'hostname', 'cat /proc/self/mountinfo | cut -d" " -f4- | sort', 'ls -lan --time-style=+ /workspace /tmp /dev /run', 'cat /proc/self/attr/current 2>/dev/null; ls -l /proc/self/fd | wc -l', 'nice', 'ulimit -S -a; ulimit -H -a', 'cat /proc/sys/kernel/hostname', 'ps -eo comm= | sort',
];

test('C061: a warm sandbox is as a cold one, apart from ids', async () => {
	const cold = await Server.start({ env: { TMPDIR: '/nowhere', HOME: '/root' } });
	try {
		await warm(TARGET);
		const [a, b] = [newId(), newId()];
		for (const fact of facts) {
			const [here, there] = await Promise.all([exec(url, a, ['bash', '-c', fact]), exec(cold.url, b, ['bash', '-c', fact])]);
			const plain = (run) => run.stdout.toString().replace(/[0-9a-f]{8}-[0-9a-f-]{27}|-[0-9a-f]{16}(?=\/\/deleted)|devpts\S*|\b(master|slave):\d+|gid=\d+|overlay \S+|\d+:\d+/g, '*');
			assert.equal(plain(here), plain(there), fact);
		}
		await remove(a);
		await remove(b, cold.url);
	} finally {
		await cold.stop();
	}
});

test('C051: 200 creations at once of which half the clients leave: none is owned by nobody', async () => {
	const before = new Set(tree(server.pid));
	await warm(TARGET);
	const ids = Array.from({ length: 200 }, () => newId());
	await Promise.all(ids.map((id, i) => new Promise((done) => {
		const request = http.request(`${url}/v1/sandbox/${id}/file/workspace/x`, { method: 'PUT', headers: { 'Content-Length': 1 } }, (answer) => {
			answer.resume().on('end', done).on('error', done);
		});
		request.on('error', done);
		request.end('x');
		if (i % 2) request.on('finish', () => setImmediate(() => request.destroy()));
	})));
	const listed = () => call(`${url}/v1/sandbox`).then((answer) => answer.json.sandboxes.map((box) => box.id));
	// Whoever was asked for is there, or nothing of it is: the list, the directories and the numbers agree.
	await eventually(async () => {
		const list = await listed(), now = await stats();
		return now.assigned === list.length && now.warm === TARGET && runs(server.state).length === list.length + TARGET;
	}, 'list, numbers and directories agree', 20000);
	for (const id of await listed()) assert.ok(ids.includes(id));
	await Promise.all(ids.map((id) => remove(id)));
	assert.deepEqual(await listed(), []);
	await eventually(() => runs(server.state).length === TARGET, 'all are gone');
	await eventually(() => tree(server.pid).filter((pid) => !before.has(pid)).length < 2 * TARGET + 8, 'no agents are left');
});

test('a full host: 503 with the numbers, and a place that becomes free is used', async () => {
	const small = await Server.start({ env: { WARM_POOL_TARGET: '2', WARM_POOL_MAX_INSTANCES: '3', WARM_POOL_REFRESH_INTERVAL: '200' } });
	try {
		await warm(2, small.url);
		assert.equal((await stats(small.url)).maxInstances, 3);
		const ids = [newId(), newId(), newId()];
		for (const id of ids) assert.equal((await sh(small.url, id, 'echo hi')).out, 'hi\n');
		const refused = await exec(small.url, newId(), ['true']);
		assertError(refused, 503, 'capacity_exceeded', 'instance limit reached (3/3)');
		assert.deepEqual(await stats(small.url).then(({ warm: w, assigned, total }) => [w, assigned, total]), [0, 3, 3]);
		await remove(ids[0], small.url);
		await warm(1, small.url);
		await remove(ids[1], small.url);
		await warm(2, small.url);
		assert.equal((await sh(small.url, newId(), 'echo hi')).out, 'hi\n');
	} finally {
		await small.stop();
	}
});

test('a warm one that dies is dropped and made again', async () => {
	await warm(TARGET);
	const victim = runs(server.state)[0];
	const pid = Number(/^pid (\d+)$/m.exec(readFileSync(join(server.state, 'sandboxes', victim, 'record'), 'utf8'))[1]);
	process.kill(pid, 'SIGKILL');
	await eventually(async () => !runs(server.state).includes(victim), 'the dead one is gone');
	await warm(TARGET);
	assert.equal((await sh(url, newId(), 'echo hi')).out, 'hi\n');
});

test('a keeper that is killed loses no claim and hands out no used one', async () => {
	await warm(TARGET);
	const id = newId();
	await sh(url, id, 'echo used > /workspace/used');
	const old = programs(server.pid);
	process.kill(old['tombolo-keeper'], 'SIGKILL');
	await eventually(() => !existsSync(`/proc/${old['tombolo-front']}`), 'the old front has ended', 20000);
	await eventually(async () => (await sh(url, id, 'cat /workspace/used').catch(() => ({}))).out === 'used\n', 'the claimed one lives on', 20000);
	// fetch may still hold a connection to the front that ends.
	await eventually(async () => (await stats().catch(() => ({}))).warm === TARGET, 'the pool is full again');
	const others = await Promise.all(Array.from({ length: TARGET + 2 }, () => sh(url, newId(), 'ls /workspace')));
	for (const run of others) assert.equal(run.out, '');
	for (const { id: old } of (await call(`${url}/v1/sandbox`)).json.sandboxes) await remove(old);
});
