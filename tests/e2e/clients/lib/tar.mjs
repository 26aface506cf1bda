// tar.mjs - a look into an archive that is ours to judge, not to unpack: names, types and bytes, `path` and `linkpath` of pax.

function text(block, from, to) {
	const field = block.subarray(from, to);
	const end = field.indexOf(0);
	return field.subarray(0, end < 0 ? field.length : end).toString();
}

function paxRecords(bytes) {
	const found = {};
	for (let at = 0; at < bytes.length;) {
		const blank = bytes.indexOf(0x20, at);
		const length = Number(bytes.subarray(at, blank).toString());
		const [, name, value] = /^([^=]*)=([^]*)\n$/.exec(bytes.subarray(blank + 1, at + length).toString());
		found[name] = value;
		at += length;
	}
	return found;
}

/** [{name, type, mode, link, bytes}] of a ustar archive. */
export function entries(archive) {
	const found = [];
	let pax = {};
	for (let at = 0; at + 512 <= archive.length;) {
		const header = archive.subarray(at, at + 512);
		if (header.every((byte) => byte === 0)) break;
		const size = parseInt(text(header, 124, 136), 8);
		const bytes = archive.subarray(at + 512, at + 512 + size);
		const type = String.fromCharCode(header[156]);
		at += 512 + Math.ceil(size / 512) * 512;
		if (type === 'x') {
			pax = paxRecords(bytes);
			continue;
		}
		const prefix = text(header, 345, 500);
		const name = pax.path ?? (prefix ? `${prefix}/` : '') + text(header, 0, 100);
		found.push({ name, type, mode: parseInt(text(header, 100, 108), 8), link: pax.linkpath ?? text(header, 157, 257), bytes });
		pax = {};
	}
	return found;
}

/** An archive of plain files and directories, as a client with its own tar writer would send it. */
export function pack(files) {
	const blocks = [];
	for (const [name, content] of Object.entries(files)) {
		const bytes = Buffer.from(content);
		const header = Buffer.alloc(512);
		header.write(name, 0);
		header.write(name.endsWith('/') ? '0000755\0' : '0000644\0', 100);
		header.write('0000000\0', 108);
		header.write('0000000\0', 116);
		header.write(`${bytes.length.toString(8).padStart(11, '0')}\0`, 124);
		header.write('00000000000\0', 136);
		header.write('        ', 148);
		header.write(name.endsWith('/') ? '5' : '0', 156);
		header.write('ustar\x0000', 257);
		header.write(`${header.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, '0')}\0 `, 148);
		blocks.push(header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512));
	}
	return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}
