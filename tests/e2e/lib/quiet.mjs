// quiet.mjs - a worker that uses a quiet sandbox and takes the time of each call: in a thread of its own, so that what the
// test itself does with its bombs is not measured. Ends when it is told anything; answers with the times.
import assert from 'node:assert/strict';
import os from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { call, sh } from './client.mjs';

const { url, id } = workerData;
const at = `${url}/v1/sandbox/${id}`;
const times = { running: [], read: [], write: [], exec: [], kill: [] };
os.setPriority(-15); // this thread: the server is measured, and not how long its client waits for a turn

let over = false;
parentPort.once('message', () => (over = true));

async function timed(what, work) {
	const begin = performance.now();
	await work();
	times[what].push(performance.now() - begin);
}

while (!over) {
	await timed('running', async () => assert.equal((await call(`${at}/running`)).json.running, true));
	await timed('read', async () => assert.equal((await call(`${at}/file/workspace/f`)).text, 'here\n'));
	await timed('write', async () => assert.equal((await call(`${at}/file/workspace/g`, 'PUT', { body: 'x' })).status, 200));
	await timed('exec', async () => assert.equal((await sh(url, id, 'echo hi')).out, 'hi\n'));
	const { id: pid } = (await call(`${at}/processes`, 'POST', { body: '{"argv":["sleep","600"]}' })).json;
	await timed('kill', async () => assert.equal((await call(`${at}/processes/${pid}/kill`, 'POST', { body: '{"signal":9}', headers: { 'Content-Type': 'application/json' } })).status, 204));
}
parentPort.postMessage(times);
