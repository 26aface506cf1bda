// The vendor's two integration scripts, CLIENTS.md section 4: whole programs that know a URL and perhaps a key.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Server } from '../lib/server.mjs';

const servers = {};

before(async () => {
	servers.open = await Server.start({ env: { SANDBOX_API_KEY: '' } });
	servers.locked = await Server.start({ env: { SANDBOX_API_KEY: 'integration-key' } });
});

after(async () => {
	await servers.open?.stop();
	await servers.locked?.stop();
});

/** Runs a program to its end; what it printed is the reason of a failure. */
async function run(program, base, key) {
	const child = spawn(process.execPath, [fileURLToPath(new URL(program, import.meta.url))], {
		env: { ...process.env, BASE_URL: base, SANDBOX_API_KEY: key },
		stdio: ['ignore', 'pipe', 'pipe'],
	});
	let output = '';
	for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (output += bytes));
	const code = await new Promise((done) => child.on('close', done));
	return { code, output, failed: output.split('\n').filter((line) => line.startsWith('NOT OK')) };
}

for (const [name, key] of [['open', ''], ['locked', 'integration-key']]) {
	const how = key ? 'with a key' : 'without a key';

	for (const prefix of ['', '/stable', '/'])
		test(`the stable script passes against ${prefix || 'the bare URL'} ${how}`, async () => {
			const { code, output, failed } = await run('upstream-stable.mjs', servers[name].url + prefix, key);
			assert.deepEqual(failed, []);
			assert.equal(code, 0, output);
		});

	test(`the next script passes against /next ${how}`, async () => {
		const { code, output, failed } = await run('upstream-next.mjs', `${servers[name].url}/next`, key);
		assert.deepEqual(failed, []);
		assert.equal(code, 0, output);
	});

	test(`the next script against the bare URL ${how}: only what is gone and the document differ`, async () => {
		const { failed } = await run('upstream-next.mjs', servers[name].url, key);
		assert.deepEqual(failed.map((line) => /^NOT OK (\d+)/.exec(line)?.[1]), ['3', '4'], failed.join('\n'));
	});
}

describe('a wrong key', () => {
	test('neither script gets anywhere', async () => {
		for (const program of ['upstream-stable.mjs', 'upstream-next.mjs']) {
			const { code, failed } = await run(program, servers.locked.url, 'other');
			assert.equal(code, 1);
			assert.ok(failed.length > 5);
		}
	});
});
