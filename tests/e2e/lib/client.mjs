// client.mjs - the contract as a test speaks it: fetch for the plain parts, an independent event-stream parser for exec.
import { createParser } from 'eventsource-parser';
import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';

/** A fresh id, as any client may choose one. */
export function newId(length = 24) {
	return Array.from({ length }, () => alphabet[Math.floor(Math.random() * 32)]).join('');
}

/** Status, headers and JSON or text of an answer. */
export async function call(url, method = 'GET', { body, headers = {} } = {}) {
	const answer = await fetch(url, { method, body, headers, redirect: 'manual', ...(body instanceof ReadableStream ? { duplex: 'half' } : {}) });
	const text = await answer.text();
	let json;
	try {
		json = JSON.parse(text);
	} catch {
		json = undefined;
	}
	return { status: answer.status, type: answer.headers.get('content-type'), headers: answer.headers, text, json };
}

/** Asserts an error answer: its status, its code, the two keys, and a piece of the message. */
export function assertError(answer, status, code, piece = '') {
	assert.equal(answer.status, status, answer.text);
	assert.equal(answer.type, 'application/json');
	assert.equal(answer.json.code, code);
	assert.equal(typeof answer.json.error, 'string');
	assert.ok(answer.json.error.includes(piece), `'${answer.json.error}' does not say '${piece}'`);
	assert.deepEqual(Object.keys(answer.json).filter((key) => key !== 'hint').sort(), ['code', 'error']);
}

/** One exec over plain HTTP. Resolves when the response has begun; `done` when it has ended. */
export function startExec(base, id, request, { headers = {}, agent, path } = {}) {
	const body = typeof request === 'string' ? request : JSON.stringify(Array.isArray(request) ? { argv: request } : request);
	const run = { events: [], raw: [], stdout: [], stderr: [], exit: null, error: null };
	const waiters = [];
	const parser = createParser({
		onEvent({ event, data }) {
			const item = { event, data, at: performance.now() };
			run.events.push(item);
			if (event === 'stdout' || event === 'stderr') run[event].push((item.bytes = Buffer.from(data, 'base64')));
			else if (event === 'exit') run.exit = JSON.parse(data);
			else if (event === 'error') run.error = JSON.parse(data);
			for (const waiter of [...waiters]) waiter();
		},
	});
	run.begun = new Promise((begun, failed) => {
		run.request = http.request(`${base}${path ?? `/v1/sandbox/${id}/exec`}`, {
			method: 'POST',
			agent: agent ?? false,
			headers: { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body), ...headers },
		});
		run.request.on('error', failed);
		run.request.on('response', (response) => {
			run.response = response;
			run.status = response.statusCode;
			run.done = new Promise((done, broken) => {
				response.on('data', (bytes) => {
					run.raw.push(bytes);
					if (run.status === 200) parser.feed(bytes.toString('latin1'));
				});
				response.on('end', () => done(run));
				response.on('error', broken);
				response.on('aborted', () => broken(new Error('the response was cut')));
			});
			run.done.catch(() => {});
			begun(run);
		});
		run.request.end(body);
	});
	/** Resolves once the text has come out on stdout (or stderr). */
	run.saw = (text, stream = 'stdout') =>
		new Promise((done) => {
			const look = () => {
				if (!Buffer.concat(run[stream]).includes(text)) return;
				waiters.splice(waiters.indexOf(look), 1);
				done();
			};
			waiters.push(look);
			look();
		});
	run.begun.catch(() => {});
	return run;
}

/** Runs to the end; asserts what holds for every exec: ASCII, no CR, exactly one terminal event and it is the last. */
export async function exec(base, id, request, options) {
	const run = startExec(base, id, request, options);
	await run.begun;
	await run.done;
	const raw = Buffer.concat(run.raw);
	if (run.status !== 200) {
		const json = JSON.parse(raw.toString());
		return { status: run.status, type: run.response.headers['content-type'], json, text: raw.toString() };
	}
	assert.ok(raw.every((byte) => byte === 0x0a || (byte >= 0x20 && byte < 0x7f)), 'the stream is not plain ASCII with LF');
	const terminal = run.events.filter(({ event }) => event === 'exit' || event === 'error');
	assert.equal(terminal.length, 1, `terminal events: ${JSON.stringify(terminal)}`);
	assert.equal(run.events.at(-1), terminal[0], 'something follows the terminal event');
	return {
		status: 200,
		events: run.events,
		headers: run.response.headers,
		raw,
		chunks: { stdout: run.stdout, stderr: run.stderr },
		stdout: Buffer.concat(run.stdout),
		stderr: Buffer.concat(run.stderr),
		exit: run.exit,
		error: run.error,
		code: run.exit?.exit_code,
	};
}

/** `sh -c SCRIPT`, and the three results most tests look at. */
export async function sh(base, id, script, more = {}, options) {
	const run = await exec(base, id, { argv: ['sh', '-c', script], ...more }, options);
	return { ...run, out: run.stdout?.toString(), err: run.stderr?.toString() };
}

/** Raw bytes on a connection of one's own. */
export class Wire {
	static async open(port) {
		const wire = new Wire();
		wire.socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
		wire.bytes = Buffer.alloc(0);
		wire.waiters = [];
		wire.closed = new Promise((done) => wire.socket.on('close', done));
		wire.ended = false;
		wire.socket.on('data', (bytes) => {
			wire.bytes = Buffer.concat([wire.bytes, bytes]);
			wire.wake();
		});
		wire.socket.on('end', () => {
			wire.ended = true;
			wire.wake();
		});
		wire.socket.on('error', () => {
			wire.ended = true;
			wire.wake();
		});
		await new Promise((done, failed) => wire.socket.once('connect', done).once('error', failed));
		return wire;
	}

	wake() {
		for (const waiter of [...this.waiters]) waiter();
	}

	send(bytes) {
		return new Promise((done) => this.socket.write(bytes, () => done()));
	}

	/** Half-closes: the server sees the end of the request, we still read. */
	finish() {
		this.socket.end();
	}

	close() {
		this.socket.destroy();
	}

	until(test) {
		return new Promise((done, failed) => {
			const look = () => {
				const found = test(this.bytes);
				if (!found && !this.ended) return;
				this.waiters.splice(this.waiters.indexOf(look), 1);
				if (found) done(found);
				else failed(new Error(`the server closed after ${JSON.stringify(this.bytes.toString('latin1').slice(0, 500))}`));
			};
			this.waiters.push(look);
			look();
		});
	}

	/** The next whole response (Content-Length or chunked), taken from what has come. */
	async response({ head = false } = {}) {
		const found = await this.until((bytes) => parseResponse(bytes, head));
		this.bytes = this.bytes.subarray(found.used);
		return found;
	}

	/** Everything until the server closes. */
	async rest() {
		await new Promise((done) => {
			const look = () => {
				if (!this.ended) return;
				this.waiters.splice(this.waiters.indexOf(look), 1);
				done();
			};
			this.waiters.push(look);
			look();
		});
		return this.bytes;
	}
}

function parseResponse(bytes, isHead) {
	const blank = bytes.indexOf('\r\n\r\n');
	if (blank < 0) return null;
	const [line, ...rows] = bytes.subarray(0, blank).toString('latin1').split('\r\n');
	const status = Number(line.split(' ')[1]);
	const headers = Object.fromEntries(rows.map((row) => [row.slice(0, row.indexOf(':')).toLowerCase(), row.slice(row.indexOf(':') + 1).trim()]));
	let at = blank + 4;
	if (isHead || status === 204 || status === 304 || (status >= 100 && status < 200)) return { status, headers, body: Buffer.alloc(0), used: at };
	if (headers['transfer-encoding'] === 'chunked') {
		const pieces = [];
		for (;;) {
			const end = bytes.indexOf('\r\n', at);
			if (end < 0) return null;
			const size = parseInt(bytes.subarray(at, end).toString('latin1'), 16);
			at = end + 2;
			if (bytes.length < at + size + 2) return null;
			pieces.push(bytes.subarray(at, at + size));
			at += size + 2;
			if (size === 0) return { status, headers, body: Buffer.concat(pieces), used: at };
		}
	}
	const length = Number(headers['content-length'] ?? 0);
	if (bytes.length < at + length) return null;
	return { status, headers, body: bytes.subarray(at, at + length), used: at + length };
}

/** Polls for a state that no event announces. Bounded; between two looks it yields to the event loop only. */
export async function eventually(look, what, ms = 5000) {
	const deadline = performance.now() + ms;
	for (;;) {
		const value = await look();
		if (value) return value;
		assert.ok(performance.now() < deadline, `never came true: ${what}`);
		await new Promise((next) => setTimeout(next, 10));
	}
}
