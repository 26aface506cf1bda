// tickers.mjs - programs that write the same to a file and to their output, and clients that follow the latter through any
// number of cuts, by cursor. In the end both must be equal.
import assert from 'node:assert/strict';
import http from 'node:http';
import { WebSocket } from 'ws';
import { call } from './client.mjs';

/** Writes a line at a time to FILE and to stdout until there is a file `stop`; then ends with 7. */
const program = (file, end) => `
	$| = 1;
	open(my $f, ">", "${file}") or die; binmode $f; select((select($f), $| = 1)[0]);
	for (my $i = 0; ! -e "stop"; $i++) {
		my $line = sprintf("%06d %s", $i, "abcdefghijklmnopqrstuvwxyz" x (1 + $i % 5));
		print $f "$line${end}"; print "$line\\n";
		select(undef, undef, undef, 0.1);
	}
	exit 7;`;

/** What both kinds have in common: it goes on where it was cut. */
class Followed {
	static async start(url, id, name) {
		const stream = new this();
		Object.assign(stream, { url, id, name, pieces: [], returns: 0, longest: 0, truncated: 0, ends: 0, given: false });
		stream.at = `${url}/v1/sandbox/${id}`;
		stream.fileUrl = `${stream.at}/file/workspace/${name}`;
		await stream.launch();
		return stream;
	}

	async launch() {
		const answer = await call(`${this.at}/${this.kind}`, 'POST', { body: JSON.stringify({ argv: ['perl', '-e', program(this.name, this.lineEnd)] }) });
		assert.equal(answer.status, 200, answer.text);
		this.handle = answer.json.id;
	}

	bytes() {
		return Buffer.concat(this.pieces);
	}

	/** Until its end has come. */
	async follow() {
		while (!this.exit && !this.given) {
			await this.once();
			this.returns++;
			if (!this.exit) this.cutAt ??= performance.now();
		}
	}

	/** The next bytes after a cut: how long was it silent? */
	took(bytes) {
		if (this.cutAt) this.longest = Math.max(this.longest, performance.now() - this.cutAt);
		this.cutAt = null;
		this.pieces.push(bytes);
	}

	ended(exit) {
		this.exit = exit;
		this.ends++;
	}

	abandon() {
		this.given = true;
		this.cut?.();
	}
}

export class Ticker extends Followed {
	kind = 'processes';
	lineEnd = '\\n';

	once() {
		return new Promise((done) => {
			const since = this.cursor ? `&since=${encodeURIComponent(this.cursor)}` : '';
			const request = http.get(`${this.at}/processes/${this.handle}/logs?follow=true${since}`, { agent: false }, (response) => {
				let text = '';
				response.on('data', (bytes) => {
					text += bytes.toString('latin1');
					for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
						if (response.statusCode !== 200) continue;
						const frame = text.slice(0, end);
						if (frame.startsWith('data: ')) this.event(JSON.parse(frame.slice(6)));
					}
				});
				response.on('end', () => {
					// Anything but a stream would be the loss of one.
					if (response.statusCode !== 200) this.ended({ status: response.statusCode, text });
				});
				response.on('close', done);
			});
			this.cut = () => request.destroy();
			request.on('error', () => {});
			request.on('close', done);
		});
	}

	event(event) {
		if (event.cursor) this.cursor = event.cursor;
		if (event.type === 'stdout') this.took(Buffer.from(event.data, 'base64'));
		else if (event.type === 'truncated') this.truncated++;
		else if (event.type === 'terminal') this.ended(event.exit ?? event.error);
	}
}

export class Typist extends Followed {
	kind = 'terminals';
	lineEnd = '\\r\\n'; // as a terminal shows it

	once() {
		return new Promise((done) => {
			const since = this.cursor ? `?cursor=${encodeURIComponent(this.cursor)}` : '';
			const socket = new WebSocket(`${this.at.replace(/^http/, 'ws')}/terminals/${this.handle}/connect${since}`, { perMessageDeflate: false });
			let next;
			socket.on('message', (bytes, isBinary) => {
				if (isBinary) {
					// A cursor counts once its bytes are here.
					this.took(bytes);
					this.cursor = next;
					return;
				}
				const message = JSON.parse(bytes.toString());
				if (message.type === 'chunk') next = message.cursor;
				else if (message.type === 'truncated') this.truncated++;
				else if (message.type === 'exit') this.ended(message.exit);
			});
			socket.on('unexpected-response', (request, response) => {
				this.ended({ status: response.statusCode });
				request.destroy();
				done();
			});
			this.cut = () => socket.terminate();
			socket.on('error', () => {});
			socket.on('close', done);
		});
	}
}

/** Cuts COUNT times one of STREAMS, evenly spread over some time that does not matter. */
export async function cutAtRandom(streams, count) {
	for (let i = 0; i < count; i++) {
		streams[Math.floor(Math.random() * streams.length)].cut?.();
		await new Promise((next) => setTimeout(next, 20 + Math.random() * 40));
	}
}
