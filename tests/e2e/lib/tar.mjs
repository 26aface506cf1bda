// tar.mjs - archives made and read by hand, so that hostile ones can be made too.

const block = 512;

function octal(value, width) {
	return value.toString(8).padStart(width - 1, '0') + '\0';
}

/** One header. Anything may be overridden, also with nonsense; `raw` are bytes to put at offsets. */
export function header({ name, mode = 0o644, size = 0, mtime = 1_700_000_000, type = '0', link = '', magic = 'ustar\x0000', raw = {} }) {
	const bytes = Buffer.alloc(block);
	const put = (at, text) => Buffer.from(text, 'latin1').copy(bytes, at);
	Buffer.from(name).copy(bytes, 0, 0, 100);
	put(100, octal(mode, 8));
	put(108, octal(0, 8));
	put(116, octal(0, 8));
	put(124, typeof size === 'string' ? size : octal(size, 12));
	put(136, octal(mtime, 12));
	put(156, type);
	Buffer.from(link).copy(bytes, 157, 0, 100);
	put(257, magic);
	for (const [at, value] of Object.entries(raw)) Buffer.from(value).copy(bytes, Number(at));
	put(148, '        ');
	put(148, octal(bytes.reduce((sum, byte) => sum + byte, 0), 7) + ' ');
	return bytes;
}

function padded(data) {
	const rest = data.length % block;
	return rest ? Buffer.concat([data, Buffer.alloc(block - rest)]) : data;
}

/** Members, each {name, data, ...header}, as parts of an archive without its end. */
export function members(list) {
	return Buffer.concat(
		list.flatMap(({ data = '', ...rest }) => {
			const bytes = Buffer.from(data);
			return [header({ size: bytes.length, ...rest }), padded(bytes)];
		}),
	);
}

export function tar(list) {
	return Buffer.concat([members(list), Buffer.alloc(2 * block)]);
}

/** A pax record with its own length in front. */
export function pax(key, value) {
	const body = Buffer.concat([Buffer.from(` ${key}=`), Buffer.from(value), Buffer.from('\n')]);
	let length = body.length + 1;
	while (String(length).length + body.length !== length) length = String(length).length + body.length;
	return Buffer.concat([Buffer.from(String(length)), body]);
}

/** What a strict client makes of an archive: a list of members; throws at whatever both published clients refuse. */
export function read(bytes) {
	const list = [];
	const seen = new Set();
	let over = {};
	for (let at = 0; ; ) {
		const head = bytes.subarray(at, at + block);
		if (head.length < block) throw new Error('the archive has no end');
		if (head.every((byte) => byte === 0)) {
			if (!bytes.subarray(at).every((byte) => byte === 0) || bytes.length - at < 2 * block) throw new Error('a bad end');
			return list;
		}
		const text = (from, width) => head.subarray(from, from + width).toString('latin1').split('\0')[0];
		const sum = head.reduce((total, byte, i) => total + (i >= 148 && i < 156 ? 32 : byte), 0);
		if (parseInt(text(148, 8), 8) !== sum) throw new Error('a wrong checksum');
		if (head[124] & 0x80) throw new Error('a number that is not octal');
		const size = parseInt(text(124, 12), 8) || 0;
		const data = bytes.subarray(at + block, at + block + size);
		if (data.length < size) throw new Error('a cut member');
		at += block + Math.ceil(size / block) * block;
		const type = text(156, 1) || '0';
		if (type === 'x') {
			for (let rest = data; rest.length; ) {
				const length = parseInt(rest.toString('latin1'), 10);
				const record = rest.subarray(String(length).length + 1, length - 1);
				const key = record.subarray(0, record.indexOf('=')).toString();
				if (key !== 'path' && key !== 'linkpath') throw new Error(`a pax record '${key}'`);
				over[key] = Buffer.from(record.subarray(key.length + 1));
				rest = rest.subarray(length);
			}
			continue;
		}
		if (!'025'.includes(type)) throw new Error(`a member of type '${type}'`);
		const prefix = text(345, 155);
		const plain = Buffer.from((prefix ? `${prefix}/` : '') + text(0, 100), 'latin1');
		const name = over.path ?? plain;
		const key = name.toString('latin1');
		if (seen.has(key)) throw new Error(`'${key}' comes twice`);
		seen.add(key);
		if (!key.startsWith('./')) throw new Error(`'${key}' does not begin with ./`);
		list.push({ name: name.toString(), bytes: name, type, mode: parseInt(text(100, 8), 8), mtime: parseInt(text(136, 12), 8), link: (over.linkpath ?? Buffer.from(text(157, 100), 'latin1')).toString(), data });
		over = {};
	}
}
