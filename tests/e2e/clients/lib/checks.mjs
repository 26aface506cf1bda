// checks.mjs - what the integration programs share: BASE_URL and SANDBOX_API_KEY, a deadline for each request, a list of steps.
import assert from 'node:assert/strict';
import { WebSocket } from 'ws';

export const base = (process.env.BASE_URL ?? 'http://127.0.0.1:8787').replace(/\/+$/, '');
export const key = process.env.SANDBOX_API_KEY ?? '';

const deadline = 20_000;
const steps = [];

/** A step of the program; they run in their order, and all of them run. */
export function step(name, run) {
	steps.push({ name, run });
}

/** fetch with the key, unless HEADERS say otherwise, and with the deadline. */
export function ask(path, { method = 'GET', headers, ...more } = {}) {
	const credentials = key && !headers?.Authorization && headers?.Authorization !== null ? { Authorization: `Bearer ${key}` } : {};
	const all = { ...credentials, ...headers };
	if (all.Authorization === null) delete all.Authorization;
	return fetch(`${base}${path}`, { method, headers: all, signal: AbortSignal.timeout(deadline), ...more });
}

export const post = (path, body, headers = { 'Content-Type': 'application/json' }) =>
	ask(path, { method: 'POST', headers, body: typeof body === 'string' || body instanceof Uint8Array || body === undefined ? body : JSON.stringify(body) });

/** Asserts status, and for errors the code and a piece of the message. */
export async function expectError(response, status, code, piece = '') {
	const text = await response.text();
	assert.equal(response.status, status, text);
	const body = JSON.parse(text);
	if (code) assert.equal(body.code, code);
	assert.ok(body.error.includes(piece), `'${body.error}' has no '${piece}'`);
}

export async function expectStatus(response, ...statuses) {
	const text = await response.text();
	assert.ok(statuses.includes(response.status), `${response.status} is none of ${statuses}: ${text.slice(0, 300)}`);
	return text;
}

/** A socket, its frames, and a promise for the first frame that a test likes. */
export async function socket(path) {
	const ws = new WebSocket(`${base}${path}`.replace(/^http/, 'ws'), { headers: key ? { Authorization: `Bearer ${key}` } : {} });
	const frames = [];
	const waiters = new Set();
	const wake = () => waiters.forEach((waiter) => waiter());
	ws.on('message', (data, isBinary) => {
		frames.push(isBinary ? { bytes: data } : { json: JSON.parse(data.toString()) });
		wake();
	});
	const until = (look, what) => within(new Promise((done, failed) => {
		const waiter = () => {
			const found = look(frames);
			if (!found && ws.readyState !== WebSocket.CLOSED) return;
			waiters.delete(waiter);
			if (found) done(found);
			else failed(new Error(`closed before ${what}`));
		};
		waiters.add(waiter);
		waiter();
	}), what);
	const closed = new Promise((done) => ws.on('close', (code) => {
		done(code);
		wake();
	}));
	await within(new Promise((done, failed) => ws.on('open', done).on('error', failed)), 'the socket opens', 5000);
	return { ws, frames, until, closed };
}

export function within(promise, what, ms = deadline) {
	let timer;
	const late = new Promise((_, failed) => (timer = setTimeout(() => failed(new Error(`not within ${ms} ms: ${what}`)), ms)));
	return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Runs all steps; a line each, and 1 as the exit status if one failed. */
export async function main() {
	let failed = 0;
	for (const { name, run } of steps) {
		try {
			await run();
			console.log(`ok     ${name}`);
		} catch (error) {
			failed++;
			console.log(`NOT OK ${name}: ${error.message.split('\n').join(' | ')}`);
		}
	}
	console.log(`${steps.length - failed} passed, ${failed} failed`);
	process.exit(failed ? 1 : 0);
}
