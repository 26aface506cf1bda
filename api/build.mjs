// build.mjs OUT_DIR - makes the explorer: one page without a request to anybody but this server, the same gzipped, the
// Content-Security-Policy that holds it to that, and an ETag. Everything it needs is in node_modules (see tools/setup).
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2];
const swagger = (name) => readFileSync(join(here, 'node_modules/swagger-ui-dist', name), 'utf8');
const own = (name) => readFileSync(join(here, name), 'utf8');

/** Text as it may stand inside <script> or <style>: nothing in it can end the element. */
const inline = (text) => text.replace(/^\/\/[#@] sourceMappingURL=.*$/gm, '').replace(/<\/(script|style)/gi, '<\\/$1').trim();

const parts = {
	'swagger-ui.css': inline(swagger('swagger-ui.css')),
	'page.css': inline(own('page.css')),
	'swagger-ui-bundle.js': inline(swagger('swagger-ui-bundle.js')),
	'page.js': inline(own('page.js')),
};
// The replacement is a function: "$&" in minified code would mean something otherwise.
const page = own('page.html').replace(/\/\* ([\w.-]+) \*\//g, (all, name) => parts[name] ?? all);

const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const policy = [
	"default-src 'none'",
	`script-src ${['swagger-ui-bundle.js', 'page.js'].map((name) => hash(parts[name])).join(' ')}`,
	"style-src 'unsafe-inline'",
	'img-src data:',
	"connect-src 'self'",
	"base-uri 'none'",
	"form-action 'none'",
	"frame-ancestors 'none'",
].join('; ');

mkdirSync(out, { recursive: true });
writeFileSync(join(out, 'openapi.html'), page);
writeFileSync(join(out, 'openapi.html.gz'), gzipSync(page, { level: 9 }));
writeFileSync(
	join(out, 'openapi_headers.h'),
	`/* Made by api/build.mjs. */\n#define OPENAPI_PAGE_POLICY ${JSON.stringify(policy)}\n` +
		`#define OPENAPI_PAGE_TAG "${createHash('sha256').update(page).digest('hex').slice(0, 32)}"\n`,
);
