// server.mjs - a real `tombolo serve` of a test's own: its own state directory, a free port, and nothing left at the end.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { call, eventually } from './client.mjs';

const top = resolve(dirname(fileURLToPath(import.meta.url)), '../../..');
export const tombolo = resolve(process.env.TOMBOLO ?? join(top, 'build/tombolo'));
const scratch = process.env.TOMBOLO_TEST_DIR ?? tmpdir();

/** A directory that is removed at the end of the test file. */
export function scratchDir(name = 'files') {
	return mkdtempSync(join(scratch, `tombolo-e2e-${name}-`));
}

/** Whether a server can be started here; otherwise the reason, for `skip`. */
export function cannotServe() {
	if (process.getuid() !== 0) return 'needs root';
	return false;
}

/** A port that was free a moment ago: for tests that need the same one twice. */
export async function freePort() {
	const probe = createServer();
	await new Promise((done) => probe.listen(0, '127.0.0.1', done));
	const { port } = probe.address();
	await new Promise((done) => probe.close(done));
	return port;
}

function allPids() {
	return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number);
}

function procText(pid, file) {
	try {
		return readFileSync(`/proc/${pid}/${file}`, 'utf8');
	} catch {
		return ''; // it ended while we looked
	}
}

/** Field N of /proc/PID/stat, counted as in proc(5). */
function statField(pid, n) {
	const stat = procText(pid, 'stat');
	return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[n - 3];
}

/** PID and everything it started, by parent; zombies included. */
export function tree(pid) {
	const children = new Map();
	for (const other of allPids()) {
		const parent = Number(statField(other, 4));
		children.set(parent, [...(children.get(parent) ?? []), other]);
	}
	const found = [];
	for (const queue = [pid]; queue.length > 0;) {
		const next = queue.shift();
		found.push(next);
		queue.push(...(children.get(next) ?? []));
	}
	return found;
}

/** {"tombolo-front": pid, ...} of a server; sandboxes' agents are not among them. */
export function programs(pid) {
	const found = {};
	for (const p of tree(pid)) {
		const name = procText(p, 'cmdline').split('\0')[0].split('/').pop();
		if (name && !(name in found)) found[name] = p;
	}
	return found;
}

export function memoryOf(pid) {
	return Number(/^VmRSS:\s+(\d+)/m.exec(procText(pid, 'status'))?.[1] ?? 0) * 1024;
}

export function fdCount(pid) {
	return readdirSync(`/proc/${pid}/fd`).length;
}

/** cgroup directories of all hierarchies whose name has TEXT, the name that a state directory gives its server, in it. */
export function cgroupsNamed(text) {
	const found = [];
	const walk = (dir, depth) => {
		let entries = [];
		try {
			entries = readdirSync(dir, { withFileTypes: true });
		} catch {
			return;
		}
		for (const entry of entries) {
			if (!entry.isDirectory()) continue;
			if (entry.name.includes(text)) found.push(join(dir, entry.name));
			else if (depth > 0) walk(join(dir, entry.name), depth - 1);
		}
	};
	walk('/sys/fs/cgroup', 3);
	return found;
}

/** Of a server that has ended and the processes that were its own: nothing runs, is mounted, or waits to be deleted. */
export function assertNothingLeft(state, pids) {
	const left = pids.filter((pid) => existsSync(`/proc/${pid}`) && statField(pid, 3) !== 'Z');
	assert.deepEqual(left.map((pid) => procText(pid, 'cmdline') || procText(pid, 'comm')), [], 'processes left behind');
	const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
	assert.deepEqual(mounts.filter((line) => line.includes(state)), [], 'mounts left behind');
	const name = join(state, 'name');
	if (existsSync(name)) assert.deepEqual(cgroupsNamed(readFileSync(name, 'utf8')), [], 'cgroups left behind');
	for (const dir of ['sandboxes', 'run', 'trash']) assert.deepEqual(entries(join(state, dir)), [], `${dir} of the state directory`);
}

const running = new Set();

// Of a test that failed: a server that lives on would keep its file from ending. This hook is the file's first one, and
// the others are to find their servers: it only sets a limit, which a file that ends does not wait for.
after(() => {
	setTimeout(() => running.forEach((server) => server.kill()), 20_000).unref();
});

export class Server {
	/** Starts one and waits until it says that it is ready. ENV and FLAGS are added; STATE may be an earlier one's.
	 * UNDER is a command that runs our command line, STDIO what it finds at descriptor 4 and above.
	 * heedOutput: a line on its output is as good as word on the ready descriptor. */
	static async start({ env = {}, flags = [], state, listen = '127.0.0.1:0', under = [], stdio = [], onSpawn = () => {}, heedOutput = false } = {}) {
		const server = new Server();
		server.state = state ?? mkdtempSync(join(scratch, 'tombolo-e2e-state-'));
		const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(TOMBOLO|SANDBOX|WARM)_/.test(name)));
		const [program, ...args] = [...under, tombolo, 'serve', '--listen', listen, '--state-dir', server.state, '--ready-fd', '3', ...flags];
		server.child = spawn(program, args, { env: { ...clean, ...env }, stdio: ['ignore', 'pipe', 'pipe', 'pipe', ...stdio] });
		running.add(server);
		onSpawn(server.child);
		server.output = '';
		server.ended = new Promise((done, failed) => {
			server.child.on('exit', (code, signal) => done({ code, signal })).on('error', failed);
		});
		server.ended.finally(() => running.delete(server)).catch(() => {});
		for (const stream of [server.child.stdout, server.child.stderr])
			stream.on('data', (bytes) => (server.output = (server.output + bytes).slice(-200_000)));

		const ready = new Promise((done) => {
			let text = '';
			server.child.stdio[3].on('data', (bytes) => {
				text += bytes;
				if (text.includes('\n')) done(text);
			});
			const heed = (bytes) => /serving on http:/.test(bytes) && done(/http:\/\/(\S+)/.exec(bytes)[1]);
			if (heedOutput) server.child.stdout.on('data', heed);
		});
		const first = await Promise.race([ready, server.ended]);
		if (typeof first !== 'string') {
			if (!state) rmSync(server.state, { recursive: true, force: true });
			throw new Error(`the server ended with ${JSON.stringify(first)}: ${server.output}`);
		}
		server.address = first.trim().split(/[\s,]/)[0].replace(/^http:\/\//, '').replace(/\/$/, '');
		server.url = `http://${server.address}`;
		server.port = Number(server.address.split(':').pop());
		return server;
	}

	get pid() {
		return this.child.pid;
	}

	/** SIGTERM, then everything it made must be gone. KEEP leaves the state directory to a next server. */
	async stop({ signal = 'SIGTERM', keep = false } = {}) {
		const mine = tree(this.pid);
		this.child.kill(signal);
		const end = await this.ended;
		assert.deepEqual(end, { code: 0, signal: null }, `the server ended badly: ${this.output.slice(-4000)}`);

		// Of a front behind its filter the leak check can say nothing but that it could not run.
		const complaint = /(AddressSanitizer|LeakSanitizer: detected|runtime error:)[^]*/.exec(this.output)?.[0];
		assert.ok(!complaint, `a sanitizer found something: ${complaint}`);

		assertNothingLeft(this.state, mine);
		if (!keep) rmSync(this.state, { recursive: true, force: true });
	}

	/**
	 * SIGKILL for one of its programs; resolves when another is there and serves. A keeper that dies costs its front, too:
	 * the old one still ends what it has, so a connection of one's own asks whether the next one is there.
	 */
	async killProgram(name) {
		const before = new Set(tree(this.pid));
		const all = (program) => tree(this.pid).filter((pid) => procText(pid, 'cmdline').split('\0')[0].endsWith(program));
		const isFresh = (program) => all(program).some((pid) => !before.has(pid));
		const [keeper] = all('tombolo-keeper');
		// The one that serves: an earlier one may still be ending what it has.
		process.kill(name === 'tombolo-keeper' ? keeper : all(name).find((pid) => Number(statField(pid, 4)) === keeper), 'SIGKILL');
		await eventually(() => isFresh(name) && isFresh('tombolo-front'), `another ${name}`, 30_000);
		await eventually(() => call(`${this.url}/health`, 'GET', { headers: { Connection: 'close' } }).then(({ status }) => status === 200, () => false), 'it serves again', 30_000);
	}

	/** Ends it the hard way, with all that it started: what a power cut would do, short of the disk. */
	async kill() {
		for (const pid of tree(this.pid).reverse()) {
			try {
				process.kill(pid, 'SIGKILL');
			} catch {
				// it was quicker
			}
		}
		await this.ended;
	}
}

function entries(dir) {
	return existsSync(dir) ? readdirSync(dir) : [];
}
