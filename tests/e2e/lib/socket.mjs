// socket.mjs - a WebSocket as a test wants it: every frame kept in order, waiting by what has come, refusals as answers.
import assert from 'node:assert/strict';
import { WebSocket } from 'ws';

const PATIENCE_MS = 30_000; // only a hang reaches it

export class Socket {
	/** Resolves once it is open. Rejects with a `refused` answer {status, type, json} where there is no upgrade. */
	static async open(url, { headers = {} } = {}) {
		const socket = new Socket();
		socket.frames = [];
		socket.total = 0; // bytes of output
		socket.waiters = new Set();
		socket.ws = new WebSocket(url.replace(/^http/, 'ws'), { headers, perMessageDeflate: false });
		socket.ws.on('message', (bytes, isBinary) => {
			if (isBinary) socket.total += bytes.length;
			socket.frames.push(isBinary ? { bytes } : { text: bytes.toString(), json: JSON.parse(bytes.toString()) });
			socket.wake();
		});
		socket.closed = new Promise((done) => {
			socket.ws.on('close', (code, reason) => {
				socket.end = { code, reason: reason.toString() };
				socket.wake();
				done(socket.end);
			});
		});
		await new Promise((done, failed) => {
			socket.ws.on('open', done);
			socket.ws.on('error', failed);
			socket.ws.on('unexpected-response', (request, response) => {
				const pieces = [];
				response.on('data', (bytes) => pieces.push(bytes));
				response.on('end', () => {
					const text = Buffer.concat(pieces).toString();
					const error = new Error(`refused with ${response.statusCode}: ${text}`);
					error.refused = { status: response.statusCode, type: response.headers['content-type'], text, json: parse(text) };
					failed(error);
				});
			});
		});
		socket.ws.on('error', () => {}); // told by close
		return socket;
	}

	wake() {
		for (const waiter of [...this.waiters]) waiter();
	}

	/** Resolves with LOOK's first true value, looked for again whenever a frame has come. */
	until(look, what = look.toString()) {
		return new Promise((done, failed) => {
			const waiter = (late) => {
				const found = look();
				if (!found && !this.end && !late) return;
				this.waiters.delete(waiter);
				clearTimeout(deadline);
				if (found) done(found);
				else failed(new Error(`${late ? 'waited' : `closed with ${JSON.stringify(this.end)}`} before ${what}; last: ${this.tail()}`));
			};
			const deadline = setTimeout(waiter, PATIENCE_MS, true);
			this.waiters.add(waiter);
			waiter();
		});
	}

	tail() {
		return JSON.stringify(this.frames.slice(-5).map((frame) => frame.text ?? frame.bytes.toString('latin1').slice(-300)));
	}

	/** All output so far. */
	get bytes() {
		return Buffer.concat(this.frames.filter((frame) => frame.bytes).map((frame) => frame.bytes));
	}

	get output() {
		return this.bytes.toString();
	}

	get texts() {
		return this.frames.filter((frame) => frame.json).map((frame) => frame.json);
	}

	/** Resolves once TEXT (or a match of it) is in the output, behind what earlier calls have seen. Not for megabytes. */
	async saw(text) {
		const from = this.seen ?? 0;
		const at = await this.until(() => {
			const output = this.bytes.toString('latin1').slice(from);
			if (!(text instanceof RegExp)) return output.includes(text) && { end: output.indexOf(text) + text.length, found: text };
			const match = text.exec(output);
			return match && { end: match.index + match[0].length, found: match };
		}, `output had ${text}`);
		this.seen = from + at.end;
		return at.found;
	}

	/** The first text frame of this type, or of that type after as many as were asked for before. */
	async message(type) {
		this.asked ??= new Map();
		const skip = this.asked.get(type) ?? 0;
		this.asked.set(type, skip + 1);
		return this.until(() => this.texts.filter((json) => json.type === type)[skip], `a '${type}' frame`);
	}

	/** Keys: a binary frame. */
	type(text) {
		this.ws.send(Buffer.from(text), { binary: true });
	}

	/** A control message, as JSON unless it is text already. */
	tell(message) {
		this.ws.send(typeof message === 'string' ? message : JSON.stringify(message));
	}

	/** Closes with a frame and waits for the other's. */
	async close() {
		this.ws.close(1000);
		return this.closed;
	}

	/** The connection's end without a word. */
	vanish({ reset = false } = {}) {
		if (reset) this.ws._socket.resetAndDestroy();
		else this.ws.terminate();
	}
}

function parse(text) {
	try {
		return JSON.parse(text);
	} catch {
		return undefined;
	}
}

/** The answer of a server that does not upgrade. */
export async function refusal(url, options) {
	const socket = await Socket.open(url, options).catch((error) => {
		if (error.refused) return error;
		throw error;
	});
	assert.ok(socket.refused, 'the server upgraded');
	return socket.refused;
}

/** /terminals/:tid/connect: asserts the framing (ready first, each chunk's bytes behind it, nothing else) and returns its parts. */
export function framed(frames) {
	assert.equal(frames[0]?.json?.type, 'ready', 'ready is not the first frame');
	const parts = { ready: frames[0].json, chunks: [], others: [] };
	for (let i = 1; i < frames.length; i++) {
		const { json } = frames[i];
		assert.ok(json, 'a binary frame without its chunk');
		if (json.type !== 'chunk') {
			parts.others.push(json);
			continue;
		}
		if (i + 1 === frames.length) break; // its bytes are on the way
		const { bytes } = frames[++i];
		assert.ok(bytes, 'a chunk without its bytes');
		assert.equal(bytes.length, json.byteLength);
		parts.chunks.push({ cursor: json.cursor, bytes });
	}
	parts.output = Buffer.concat(parts.chunks.map(({ bytes }) => bytes));
	return parts;
}
