// What npm's @huggingface/gguf finds in a GGUF file, in the words of `make_gguf dump`.
//	node tests/data/dump_gguf.mjs FOLDER-WITH-NODE_MODULES FILE...
// One file follows another, each after its name.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";

const [folder, ...files] = process.argv.slice(2);
const require = createRequire(pathToFileURL(resolve(folder) + "/"));
const { gguf } = await import(pathToFileURL(require.resolve("@huggingface/gguf")));

const ARRAY = 9, TEXT = 8, FLOATS = [6, 12], BOOL = 7;
const scratch = new DataView(new ArrayBuffer(8));

// FNV-1a of 64 bits (base/hash.h), in two halves: BigInt would take a minute for a vocabulary.
class Hash {
	hi = 0xcbf29ce4;
	lo = 0x84222325;
	byte(b) {
		this.lo = (this.lo ^ b) >>> 0;
		// times 2^40 + 0x1b3
		const lo = this.lo * 0x1b3;
		const hi = this.hi * 0x1b3 + Math.floor(lo / 2 ** 32) + ((this.lo << 8) >>> 0);
		this.lo = lo % 2 ** 32;
		this.hi = hi % 2 ** 32;
	}
	add(type, v) {
		if (type === TEXT) {
			for (const b of Buffer.from(v, "utf8")) this.byte(b);
			this.byte(0);
			return;
		}
		if (FLOATS.includes(type)) scratch.setFloat64(0, v, true);
		else scratch.setBigInt64(0, BigInt.asIntN(64, BigInt(type === BOOL ? Number(v) : v)), true);
		for (let i = 0; i < 8; i++) this.byte(scratch.getUint8(i));
	}
	text() {
		return this.hi.toString(16).padStart(8, "0") + this.lo.toString(16).padStart(8, "0");
	}
}

for (const file of files) {
	const { typedMetadata, tensorInfos, tensorDataOffset } = await gguf(file, {
		allowLocalFile: true,
		typedMetadata: true,
	});
	console.log(`file ${file}`);
	console.log(`version ${typedMetadata.version.value}`);
	for (const [key, { value, type, subType }] of Object.entries(typedMetadata)) {
		if (["version", "tensor_count", "kv_count"].includes(key)) continue;
		const isArray = type === ARRAY;
		const of = isArray ? subType : type;
		const hash = new Hash();
		for (const v of isArray ? value : [value]) hash.add(of, v);
		console.log(`key ${key} ${of}${isArray ? "[]" : ""} ${isArray ? value.length : 1} ${hash.text()}`);
	}
	for (const t of tensorInfos) {
		const dims = t.shape.map((d) => ` ${d}`).join("");
		console.log(`tensor ${t.name} ${t.dtype} ${t.offset + tensorDataOffset}${dims}`);
	}
}
