// Sandboxes are created, used and deleted again and again; clients break off, front and keeper are killed at random moments.
// At the end nothing has grown: descriptors, memory, mounts, cgroups, namespaces, processes, zombies, files.
//
// As many cycles as fit SOAK_SECONDS (40), or SOAK_CYCLES. SEED (printed) draws what happens.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually, newId, startExec } from '../e2e/lib/client.mjs';
import { cannotServe, cgroupsNamed, fdCount, memoryOf, programs, Server, tree } from '../e2e/lib/server.mjs';
import { strictly, truthfully } from '../faults/scenario.mjs';
import { randomOf } from '../faults/random.mjs';

const seconds = Number(process.env.SOAK_SECONDS ?? 40);
const cycles = Number(process.env.SOAK_CYCLES ?? 0);
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const WORKERS = 4;
const WARM_UP = 60;      // cycles until caches and pools are what they stay
const FRONT_EVERY = 60;  // cycles between two deaths of the front, about
const KEEPER_EVERY = 250;
const SETTLE_MS = 60_000;
const RSS_SLACK = 4 << 20; // and a tenth: freed memory stays with the allocator
const watched = ['tombolo', 'tombolo-keeper', 'tombolo-front'];

const why = cannotServe();
const random = randomOf(seed);
let server;

before(async () => {
	if (why) return;
	console.log(`# soak: ${cycles ? `${cycles} cycles` : `${seconds} s`}, SEED=${seed}`);
	server = await Server.start();
});

after(() => server?.stop());

// ---- what may not grow ----

function countBelow(dir) {
	return readdirSync(dir, { recursive: true }).length;
}

function namespacesOf(pids) {
	const seen = new Set();
	for (const pid of pids) {
		for (const kind of ['mnt', 'net', 'pid', 'ipc', 'uts', 'user', 'cgroup']) {
			try {
				seen.add(readlinkSync(`/proc/${pid}/ns/${kind}`));
			} catch {
				// it ended while we looked, or is a zombie
			}
		}
	}
	return seen.size;
}

/** Our own client keeps its connections for some seconds. */
function connections() {
	const port = server.port.toString(16).toUpperCase().padStart(4, '0');
	return readFileSync('/proc/net/tcp', 'utf8').match(new RegExp(`:${port} [0-9A-F]{8}:[0-9A-F]{4} 01 `, 'g'))?.length ?? 0;
}

function isZombie(pid) {
	try {
		return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
	} catch {
		return false;
	}
}

function take() {
	const pids = tree(server.pid);
	const by = programs(server.pid);
	const name = readFileSync(join(server.state, 'name'), 'utf8');
	const exact = {
		connections: connections(),
		processes: pids.length,
		zombies: pids.filter(isZombie).length,
		namespaces: namespacesOf(pids),
		cgroups: cgroupsNamed(name).map((dir) => countBelow(dir)).join(' '),
		mounts: readFileSync(`/proc/${by['tombolo-keeper']}/mountinfo`, 'utf8').split('\n').length,
		...Object.fromEntries(['sandboxes', 'run', 'trash'].map((dir) => [dir, countBelow(join(server.state, dir))])),
		...Object.fromEntries(watched.map((program) => [`descriptors of ${program}`, fdCount(by[program])])),
	};
	return { exact, rss: Object.fromEntries(watched.map((program) => [program, memoryOf(by[program])])) };
}

const isAtRest = ({ connections, zombies, sandboxes, trash }) => connections + zombies + sandboxes + trash === 0;

/** The pool is full again and the trash is empty when two looks agree with WANTED, or with each other. */
async function settle(wanted) {
	let last;
	const same = async () => {
		let now;
		try {
			now = take();
		} catch {
			return false; // a program is being replaced
		}
		const text = JSON.stringify(now.exact);
		const still = wanted ? text === JSON.stringify(wanted.exact) : text === last && isAtRest(now.exact);
		last = text;
		await new Promise((next) => setTimeout(next, 100)); // between two looks
		return still && now;
	};
	try {
		return await eventually(same, 'nothing has grown', SETTLE_MS);
	} catch (error) {
		if (wanted) assert.deepEqual(JSON.parse(last), wanted.exact);
		throw error;
	}
}

// ---- what happens ----

let kills = 0;

/** Whoever was asked while a program fell, or came back, may have been refused. */
async function kill(program) {
	const pid = programs(server.pid)[program];
	if (!pid) return;
	kills++;
	process.kill(pid, 'SIGKILL');
	await eventually(() => strictly(server.url).then(() => true, () => false), `${program} is back`, 30_000);
	kills++;
}

async function breakOff() {
	const id = newId();
	const run = startExec(server.url, id, { argv: ['sh', '-c', 'yes | head -c 3000000; sleep 600 >/dev/null 2>&1 & cat'] });
	setTimeout(() => run.request.destroy(), random() * 40); // a random moment is the point
	await run.begun.catch(() => {});
	await run.done?.catch(() => {});
	await fetch(`${server.url}/v1/sandbox/${id}`, { method: 'DELETE' }).catch(() => {});
	return id;
}

async function cycle(unsure) {
	if (random() < 0.3) {
		unsure.push(await breakOff());
		return;
	}
	const quiet = kills;
	const refusals = await truthfully(server.url, (id) => unsure.push(id));
	if (kills === quiet && quiet % 2 === 0) assert.deepEqual(refusals, [], 'refused, and nothing had fallen');
}

async function run(count, deadline, deadly) {
	const unsure = [];
	let done = 0;
	let killing = null;
	const work = async () => {
		while (done < count && performance.now() < deadline) {
			done++;
			await cycle(unsure);
			if (!deadly || killing) continue;
			const program = random() < 1 / KEEPER_EVERY ? 'tombolo-keeper' : random() < 1 / FRONT_EVERY ? 'tombolo-front' : null;
			if (program) killing = kill(program).finally(() => (killing = null));
		}
	};
	await Promise.all(Array.from({ length: WORKERS }, work));
	await killing;
	for (const id of unsure) await fetch(`${server.url}/v1/sandbox/${id}`, { method: 'DELETE' });
	return done;
}

const kernelCgroups = () => readFileSync('/proc/cgroups', 'utf8').match(/^memory\s+\d+\s+(\d+)/m)?.[1];

test('nothing grows', { skip: why }, async () => {
	await run(WARM_UP, Infinity, false);
	const first = await settle();
	console.log(`# soak: start ${JSON.stringify(first)}, the kernel's memory cgroups ${kernelCgroups()}`);

	const done = await run(cycles || Infinity, cycles ? Infinity : performance.now() + seconds * 1000, true);
	await kill('tombolo-front');
	await kill('tombolo-keeper');

	const last = await settle(first);
	console.log(`# soak: ${done} cycles, ${kills / 2} kills; end ${JSON.stringify(last.rss)}, the kernel's memory cgroups ${kernelCgroups()}`);
	for (const program of watched) {
		const bound = first.rss[program] * 1.1 + RSS_SLACK;
		assert.ok(last.rss[program] <= bound, `${program} grew from ${first.rss[program]} to ${last.rss[program]} bytes`);
	}
});
