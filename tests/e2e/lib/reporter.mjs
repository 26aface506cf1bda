// reporter.mjs - for `node --test`: a line a test for people, a JSON object a test for tools/test-all.
// Suites are not counted: only what asserts something is a test.
import { appendFileSync } from 'node:fs';
import { basename } from 'node:path';

const results = process.env.TOMBOLO_RESULTS;

function reason(error) {
	const cause = error?.cause ?? error;
	return String(cause?.message ?? cause).split('\n')[0];
}

export default async function* report(source) {
	for await (const { type, data } of source) {
		if (type === 'test:diagnostic' && data.message.startsWith('measured: ')) yield `        ${data.message}\n`;
		if (type === 'test:diagnostic' || (type !== 'test:pass' && type !== 'test:fail')) continue;
		const isSuite = data.details?.type === 'suite';
		if (isSuite && type === 'test:pass') continue;
		if (isSuite && data.details.error?.failureType === 'subtestsFailed') continue; // its tests were reported
		const result = data.skip !== undefined ? 'skip' : type === 'test:pass' ? 'pass' : 'fail';
		const suite = data.file ? basename(data.file).replace(/\.test\.mjs$/, '') : '';
		const name = suite ? `${suite}: ${data.name}` : data.name;
		const why = result === 'skip' ? String(data.skip) : result === 'fail' ? reason(data.details.error) : '';

		if (results) appendFileSync(results, JSON.stringify({ name, result, why }) + '\n');
		yield `${{ pass: 'ok     ', skip: 'skip   ', fail: 'NOT OK ' }[result]} ${name} (${Math.round(data.details.duration_ms)} ms)\n`;
		if (result === 'fail') {
			const cause = data.details.error?.cause ?? data.details.error;
			yield String(cause?.stack ?? cause).replace(/^/gm, '        ') + '\n';
		}
	}
}
