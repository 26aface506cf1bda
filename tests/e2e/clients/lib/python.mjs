// python.mjs - the Python client (openai-agents) as the wire sees it: the requests of its HTTP library byte by byte, and its
// way to read an event stream, with all its strictness. CLIENTS.md 1.1, 1.3.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { Wire } from '../../lib/client.mjs';
import { Server } from '../../lib/server.mjs';

const agent = 'Python/3.12 aiohttp/3.12.15';

/** As json.dumps writes it: a blank behind commas and colons, ASCII only. */
export function dumps(value) {
	if (Array.isArray(value)) return `[${value.map(dumps).join(', ')}]`;
	if (value && typeof value === 'object') return `{${Object.entries(value).map(([key, item]) => `${dumps(key)}: ${dumps(item)}`).join(', ')}}`;
	return JSON.stringify(value).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** urllib.parse.quote: everything but letters, digits, `_.-~` and SAFE. */
export function quote(text, safe = '/') {
	return [...Buffer.from(text)].map((byte) => {
		const c = String.fromCharCode(byte);
		return /[A-Za-z0-9_.~-]/.test(c) || safe.includes(c) ? c : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
	}).join('');
}

/** The head of a request, its lines in the order in which the library writes them. */
export function head(method, path, { host, key, json, bytes, upgrade } = {}) {
	const body = json !== undefined ? Buffer.from(dumps(json)) : bytes;
	const lines = [`${method} ${path} HTTP/1.1`, `Host: ${host}`];
	if (key) lines.push(`Authorization: Bearer ${key}`);
	if (upgrade) lines.push('Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13', `Sec-WebSocket-Key: ${upgrade}`);
	lines.push('Accept: */*', 'Accept-Encoding: gzip, deflate', `User-Agent: ${agent}`);
	if (body) lines.push(`Content-Length: ${body.length}`, `Content-Type: application/${json !== undefined ? 'json' : 'octet-stream'}`);
	else if (method === 'POST') lines.push('Content-Length: 0', 'Content-Type: application/octet-stream');
	return { text: `${lines.join('\r\n')}\r\n\r\n`, body };
}

/** A connection that is kept alive from request to request, as the client's pool keeps it. */
export class Python {
	static async connect(port, { key, base = '' } = {}) {
		const python = new Python();
		Object.assign(python, { key, base, host: `127.0.0.1:${port}`, wire: await Wire.open(port) });
		python.wire.socket.setNoDelay(true); // as the library does
		return python;
	}

	/** Head and body are two writes there, too. */
	async send(method, path, content = {}) {
		const { text, body } = head(method, this.base + path, { host: this.host, key: this.key, ...content });
		await this.wire.send(text);
		if (body?.length) await this.wire.send(body);
	}

	async ask(method, path, content) {
		await this.send(method, path, content);
		const answer = await this.wire.response();
		const type = answer.headers['content-type'] ?? '';
		const isJson = type.startsWith('application/json');
		if (isJson) assert.equal(type, 'application/json', 'P5: the type the library insists on');
		return { ...answer, json: isJson ? JSON.parse(answer.body.toString()) : undefined };
	}

	/** What the client makes of an exec; the raw stream with it. */
	async exec(id, argv, { timeout_ms = 30_000, environment } = {}) {
		const prefix = environment ? ['env', ...Object.keys(environment).sort().map((name) => `${name}=${environment[name]}`)] : [];
		const answer = await this.ask('POST', `/v1/sandbox/${id}/exec`, { json: { argv: [...prefix, ...argv], timeout_ms } });
		assert.equal(answer.status, 200, answer.body.toString());
		return { ...execResult([answer.body]), raw: answer.body };
	}

	sh(id, command, more) {
		return this.exec(id, ['sh', '-lc', command], more);
	}

	close() {
		this.wire.close();
	}
}

/** Lines that end with CR, LF or CRLF, wherever the network cut them; each piece must be UTF-8 by itself. */
class Lines {
	rest = '';
	skipLf = false;

	*feed(bytes) {
		let text = this.rest + new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
		if (this.skipLf && text.length > this.rest.length) {
			this.skipLf = false;
			if (text.startsWith('\n')) text = text.slice(1);
		}
		let from = 0;
		for (;;) {
			const end = text.slice(from).search(/[\r\n]/);
			if (end < 0) break;
			const at = from + end;
			yield text.slice(from, at);
			from = at + (text.startsWith('\r\n', at) ? 2 : 1);
			if (text[at] === '\r' && at + 1 === text.length) this.skipLf = true;
		}
		this.rest = text.slice(from);
	}

	*end() {
		if (this.rest) yield this.rest;
		this.rest = '';
	}
}

class Events {
	reset() {
		this.name = undefined;
		this.data = [];
	}

	constructor() {
		this.reset();
	}

	/** The event that this line ends, if it does. */
	line(line) {
		if (line === '') {
			if (this.name === undefined && this.data.length === 0) return undefined;
			const event = { event: this.name || 'message', data: this.data.join('\n') };
			this.reset();
			return event;
		}
		if (line.startsWith(':')) return undefined;
		const colon = line.indexOf(':');
		const field = colon < 0 ? line : line.slice(0, colon);
		const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
		if (field === 'event') this.name = value;
		else if (field === 'data') this.data.push(value);
		return undefined;
	}
}

/** b64decode, but anything it would silently drop is a fault of the server. */
function b64decode(text) {
	assert.match(text, /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/, 'not base64 with padding');
	return Buffer.from(text, 'base64');
}

/** The result of a stream that came in these pieces. Throws what the client throws. */
export function execResult(pieces) {
	const lines = new Lines();
	const events = new Events();
	const out = { stdout: [], stderr: [] };
	const result = (code) => ({ stdout: Buffer.concat(out.stdout), stderr: Buffer.concat(out.stderr), code });
	function* all() {
		for (const piece of pieces) yield* lines.feed(piece);
		yield* lines.end();
	}
	for (const line of all()) {
		const event = events.line(line);
		if (!event) continue;
		if (event.event === 'stdout' || event.event === 'stderr') out[event.event].push(b64decode(event.data));
		else if (event.event === 'exit') {
			const { exit_code: code } = JSON.parse(event.data);
			assert.ok(Number.isInteger(code), 'exit_code is no integer');
			return result(code); // P6: it reads no further
		} else if (event.event === 'error') {
			const error = new Error(JSON.parse(event.data).error);
			error.partial = result(undefined);
			throw error;
		}
	}
	throw new Error('SSE stream ended without exit event');
}

/** The bytes of a file or an archive as the client returns them: it takes `data: {` for an envelope if it can be one. */
export function streamedPayload(body) {
	if (!body.subarray(0, 7).equals(Buffer.from('data: {'))) return body;
	const lines = new Lines();
	const events = new Events();
	const chunks = [];
	const saw = { metadata: false, chunk: false, complete: false };
	let isBinary = false;
	try {
		for (const line of [...lines.feed(body), ...lines.end()]) {
			const event = events.line(line);
			if (event?.event !== 'message' || !event.data) continue;
			const message = JSON.parse(event.data);
			if (message.type === 'metadata') isBinary = Boolean(message.isBinary);
			else if (!(message.type in saw)) continue;
			else if (!saw.metadata) throw new Error('before metadata');
			saw[message.type] = true;
			if (message.type === 'chunk') chunks.push(isBinary ? Buffer.from(message.data ?? '', 'base64') : Buffer.from(String(message.data ?? '')));
		}
	} catch {
		return body;
	}
	if (!saw.metadata || (!saw.chunk && !saw.complete)) return body;
	if (!saw.complete) throw new Error('SSE payload ended without complete event');
	return Buffer.concat(chunks);
}

/** Every way to cut BYTES in two, then one with each byte alone. */
export function* cuts(bytes) {
	for (let at = 0; at <= bytes.length; at++) yield [bytes.subarray(0, at), bytes.subarray(at)];
	yield Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
}

/** A server with KEY for a file of tests, a connection to it, and a sandbox. */
export async function serve(key) {
	const server = await Server.start({ env: { SANDBOX_API_KEY: key } });
	const python = await Python.connect(server.port, { key });
	after(async () => {
		python.close();
		await server.stop();
	});
	return { server, python, id: (await python.ask('POST', '/v1/sandbox')).json.id };
}
