// scenario.mjs - a small life with a sandbox: create, exec, files, delete, health. The same steps serve two questions.
// `strictly`: all of it works. `truthfully`: each request ends within a bound, with a clear answer or a cut connection, and
// what was claimed is so; for a server that may be short of anything just now.
import assert from 'node:assert/strict';
import { call, exec, newId } from '../e2e/lib/client.mjs';

const STEP_MS = 15_000;
const content = Buffer.from(Array.from({ length: 70_000 }, (_, i) => i & 255));

class Refused extends Error {}

/** An answer that succeeds, or one that says why not. */
async function ask(...request) {
	const answer = await call(...request);
	if (answer.status < 400) return answer;
	assert.equal(typeof answer.json?.error, 'string', `${answer.status} without a reason: ${answer.text}`);
	assert.ok(answer.json.error.length > 3 && answer.json.code, answer.text);
	throw new Refused(`${answer.status} ${answer.json.error}`);
}

async function run(url, id) {
	const end = await exec(url, id, { argv: ['sh', '-c', 'echo hi; exit 3'] });
	if (end.status !== 200) {
		assert.equal(typeof end.json.error, 'string', end.text);
		throw new Refused(`${end.status} ${end.json.error}`);
	}
	if (end.error) throw new Refused(`an error event: ${end.error.error ?? JSON.stringify(end.error)}`);
	if (end.exit.reason !== 'exited') throw new Refused(`ended for '${end.exit.reason}'`);
	assert.deepEqual([end.code, end.stdout.toString()], [3, 'hi\n'], 'a command that ended by itself');
}

/** More than fits into any pipe or window on its way, both ways. */
async function bulk(url, id) {
	const stdin = 'all of it '.repeat(60_000);
	const end = await exec(url, id, { argv: ['cat'], stdin });
	if (end.status !== 200) throw new Refused(`${end.status} ${end.json.error}`);
	if (end.error) throw new Refused(`an error event: ${JSON.stringify(end.error)}`);
	if (end.exit.reason !== 'exited' || end.code !== 0) throw new Refused(`ended for '${end.exit.reason}' with ${end.code}`);
	assert.ok(end.stdout.toString() === stdin, `${end.stdout.length} of ${stdin.length} bytes behind a clean end`);
}

async function put(url, id) {
	await ask(`${url}/v1/sandbox/${id}/file/workspace/some/where`, 'PUT', { body: content });
}

async function get(url, id) {
	const answer = await fetch(`${url}/v1/sandbox/${id}/file/workspace/some/where`);
	const bytes = Buffer.from(await answer.arrayBuffer());
	if (answer.status !== 200) throw new Refused(`${answer.status} ${JSON.parse(bytes.toString()).error}`);
	assert.ok(bytes.equals(content), 'the file came back different');
}

const steps = {
	create: async (url) => assert.match((await ask(`${url}/v1/sandbox`, 'POST')).json.id, /^[a-z2-7]{24}$/),
	exec: run,
	put,
	get,
	bulk,
	again: run,
	running: (url, id) => ask(`${url}/v1/sandbox/${id}/running`),
	delete: async (url, id) => assert.equal((await ask(`${url}/v1/sandbox/${id}`, 'DELETE')).status, 204),
	health: async (url) => assert.equal((await ask(`${url}/health`)).status, 200),
};

function bounded(promise, name) {
	let timer;
	const late = new Promise((_, failed) => {
		timer = setTimeout(() => failed(new assert.AssertionError({ message: `${name}: no answer within ${STEP_MS} ms` })), STEP_MS);
	});
	return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

export async function strictly(url) {
	const id = newId();
	for (const [name, step] of Object.entries(steps)) await bounded(step(url, id), name);
}

/** Returns what was refused or cut, for whoever wants to read it; ON_ID hears of an id that may outlive its delete. */
export async function truthfully(url, onId = () => {}) {
	const id = newId();
	const refusals = [];
	for (const [name, step] of Object.entries(steps)) {
		try {
			await bounded(step(url, id), name);
		} catch (error) {
			if (error instanceof assert.AssertionError) throw error;
			refusals.push(`${name}: ${error.cause?.code ?? error.message}`);
		}
	}
	if (refusals.length > 0) onId(id);
	return refusals;
}
