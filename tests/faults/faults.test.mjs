// Each system call of each program fails once, and the server copes: answers stay true, the next scenario works, and
// nothing is left. injector.c does it; calls.def is the table; a dry run tells how often each program makes each call.
//
// A full round (TOMBOLO_FULL=1, in parts with PART=2/8) takes every call of every program at its first few occurrences and
// ever wider apart up to the last, at the start and while serving. Otherwise a part of it that fits FAULT_SECONDS (45),
// drawn by SEED (printed). ONLY picks cases by a pattern.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../e2e/lib/client.mjs';
import { cannotServe, scratchDir, Server, tombolo, tree } from '../e2e/lib/server.mjs';
import { randomOf } from './random.mjs';
import { strictly, truthfully } from './scenario.mjs';

const injector = process.env.FAULT_INJECTOR ?? join(dirname(tombolo), 'tests/faults/fault-injector');
const programs = ['tombolo', 'tombolo-keeper', 'tombolo-zygote', 'tombolo-agent', 'tombolo-front'];
const seconds = Number(process.env.FAULT_SECONDS ?? 45);
const full = Boolean(process.env.TOMBOLO_FULL);
const only = process.env.ONLY && new RegExp(process.env.ONLY); // of a case's name
const [part, parts] = (process.env.PART ?? '1/1').split('/').map(Number); // of a full round
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const GROUP = Number(process.env.GROUP ?? 10); // faults that one server meets while it serves
const PATIENCE_MS = 60_000;
const START_MS = 30_000; // it serves by then, or has said why not
const AGAIN_MS = 15_000; // a program that fell is back by then, whatever its backoff

/** A server below the injector: {server, said}, or {error, said} when it did not get to serve. */
async function start(options, state) {
	const said = { text: '', waiter: null };
	let late;
	const onSpawn = (child) => {
		child.stdio[4].on('data', (bytes) => {
			said.text += bytes;
			said.waiter?.();
		});
		late = setTimeout(() => tree(child.pid).reverse().forEach((pid) => process.kill(pid, 'SIGKILL')), START_MS);
	};
	try {
		return { server: await Server.start({ state, under: [injector, ...options, '--'], stdio: ['pipe'], onSpawn, heedOutput: true }), said };
	} catch (error) {
		return { error, said };
	} finally {
		clearTimeout(late);
	}
}

async function order({ server, said }, text) {
	said.text = '';
	server.child.stdio[4].write(`${text}\n`);
	await new Promise((done) => {
		said.waiter = () => said.text.includes('ordered\n') && done();
	});
}

/** [{program, name, phase, count}] of a server's life without a fault. */
async function count() {
	const run = await start(['--orders', '4']);
	if (run.error) throw run.error;
	await order(run, 'count');
	await strictly(run.server.url);
	await run.server.stop();
	return run.said.text.trim().split('\n').filter((line) => line.includes(' ')).map((line) => {
		const [program, name, phase, n] = line.split(' ');
		return { program, name, phase, count: Number(n) };
	});
}

/** 1 2 3 4 6 9 13 ... and the last. */
function occurrences(n) {
	const chosen = [];
	for (let at = 1; at < n; at = Math.max(at + 1, Math.floor(at * 1.5))) chosen.push(at);
	return [...chosen, n];
}

/** The C library's loader maps memory before a line of ours runs, and without it dies of SIGSEGV: nobody is there to say why. */
const isLoaders = ({ program, name, n, phase }) => program === 'tombolo' && name === 'mmap' && phase === 'start' && n === 1;

function casesOf(counts) {
	const errors = spawnSync(injector, ['--list'], { encoding: 'utf8' }).stdout.trim().split('\n').map((line) => line.split(' '));
	const cases = [];
	for (const { program, name, phase, count } of counts.filter(({ program }) => programs.includes(program)))
		for (const [, error] of errors.filter(([call]) => call === name))
			for (const n of occurrences(count)) cases.push({ program, name, error, n, phase });
	return cases.filter((one) => !isLoaders(one));
}

/** A fair part: each call of each program is as likely as any other, however often it is made. */
function draw(cases, random) {
	const groups = groupBy(cases);
	const queue = [...groups.values()].map((group) => group.sort(() => random() - 0.5));
	const drawn = [];
	for (let round = 0; drawn.length < cases.length; round++)
		drawn.push(...queue.map((group) => group[round]).filter(Boolean).sort(() => random() - 0.5));
	return drawn;
}

const keyOf = ({ program, name, phase }) => `${program} ${name} ${phase}`;

function groupBy(cases) {
	const groups = new Map();
	for (const one of cases) groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one]);
	return groups;
}

/** Whatever fell is back within a bound. */
async function worksAgain(server) {
	let last;
	const works = () => strictly(server.url).then(() => true, (error) => ((last = error), false));
	await eventually(works, 'it works again', AGAIN_MS).catch((error) => {
		error.message += `; the last failure: ${last?.message}`;
		throw error;
	});
}

/** It said why in a sentence, and the next start finds nothing in its way. */
async function judgeEnded(error, state) {
	assert.match(error.message, /tombolo: .{10,}/, 'the server ended without a sentence');
	const next = await Server.start({ state });
	await strictly(next.url);
	await next.stop();
}

const nameOf = ({ program, name, error, n, phase }) => `${program}: ${name} ${error}, ${phase} ${n}`;

/** A fault while it starts: either it serves all the same, or it ends and says why. */
async function atStart({ program, name, error, n }) {
	const state = scratchDir('fault');
	const { server, error: ended, said } = await start(['--fail', program, name, error, String(n), '4'], state);
	try {
		if (ended) {
			await judgeEnded(ended, state);
		} else {
			await worksAgain(server);
			await server.stop();
		}
		fired += said.text.includes('fired');
	} catch (failure) {
		if (server) await server.kill();
		throw new Error(`${failure.message}\n${(server?.output ?? ended.message).slice(-3000)}`);
	} finally {
		rmSync(state, { recursive: true, force: true });
	}
}

const why = cannotServe();
const all = why ? [] : casesOf(await count());
const wanted = (full ? all.filter((_, i) => Math.floor((i * parts) / all.length) === part - 1) : draw(all, randomOf(seed)))
	.filter((one) => !only || only.test(nameOf(one)));
const began = performance.now();
const timeIsUp = (part) => !full && performance.now() - began > seconds * 1000 * part;
let done = 0;
let fired = 0;
console.log(`# faults: ${wanted.length} of ${all.length} cases${full ? '' : `, as many as fit ${seconds} s, SEED=${seed}`}`);

test('at the start', { skip: why }, async (t) => {
	for (const one of wanted.filter(({ phase }) => phase === 'start')) {
		if (timeIsUp(0.4)) break;
		done++;
		await t.test(nameOf(one), { timeout: PATIENCE_MS }, () => atStart(one));
	}
});

/** One server meets a handful of faults; what it left is told at its end. */
async function whileServing(t, cases) {
	const run = await start(['--orders', '4']);
	if (run.error) throw run.error;
	for (const one of cases) {
		if (timeIsUp(1)) break;
		done++;
		await t.test(nameOf(one), { timeout: PATIENCE_MS }, async () => {
			const from = run.server.output.length;
			await order(run, `fail ${one.program} ${one.name} ${one.error} ${one.n}`);
			try {
				await truthfully(run.server.url);
				await worksAgain(run.server);
				fired += run.said.text.includes('fired');
			} catch (failure) {
				throw new Error(`${failure.message}\n${run.said.text}${run.server.output.slice(from)}`);
			}
		});
	}
	await t.test(`nothing is left of ${cases.map(nameOf).join('; ')}`, () => run.server.stop());
}

test('while serving', { skip: why }, async (t) => {
	const serving = wanted.filter(({ phase }) => phase === 'serving');
	for (let at = 0; at < serving.length && !timeIsUp(1); at += GROUP) await whileServing(t, serving.slice(at, at + GROUP));
});

test('the faults did happen', { skip: why }, () => {
	console.log(`# faults: ${fired} of ${done} happened`);
	assert.ok(only || fired > done / 2, `only ${fired} of ${done}`);
});
