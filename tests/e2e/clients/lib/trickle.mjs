// trickle.mjs - a proxy that hands on every byte of an answer alone: what a bad network may do to a stream at worst.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/** Listens before PORT. Each byte of the server leaves in a packet of its own; the client's bytes pass as they come. */
export async function trickle(port) {
	const sockets = new Set();
	const proxy = createServer((client) => {
		const server = connect(port, '127.0.0.1');
		for (const socket of [client, server]) {
			sockets.add(socket.setNoDelay(true));
			socket.on('error', () => {}).on('close', () => {
				sockets.delete(socket);
				client.destroy();
				server.destroy();
			});
		}
		client.pipe(server);
		pass(server, client).catch(() => client.destroy());
	});
	proxy.listen(0, '127.0.0.1');
	await once(proxy, 'listening');
	return {
		url: `http://127.0.0.1:${proxy.address().port}`,
		async close() {
			for (const socket of sockets) socket.destroy();
			proxy.close();
			await once(proxy, 'close');
		},
	};
}

/** Writes that go out alone: the next one waits until the loop has let the last one leave. */
async function pass(server, client) {
	for await (const bytes of server) {
		for (const byte of bytes) {
			if (!client.write(Buffer.of(byte))) await once(client, 'drain');
			await new Promise((next) => setImmediate(next));
		}
	}
	client.end();
}
