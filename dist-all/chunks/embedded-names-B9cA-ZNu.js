import { i as toPythonText } from "./python-json-CIUrrCh_.js";
import { B as engineFileOf, J as parseFileName } from "./object-info-dvDLu96x.js";
import { f as uploadPathOf } from "./file-headers-Di12YiA_.js";
import { i as refuse, r as ok } from "./job-api-DUOBoLDS.js";
import { n as isJsonObject, o as parseJson } from "./json-0U1hIHCx.js";
import { posix } from "node:path";
import { crc32 } from "node:zlib";
import { Transform, pipeline } from "node:stream";
// src/translate/embedded-file-names.ts
/**
* Matches a JSON string that is a path in an upload folder. A quotation mark behind a backslash
* does not begin a string.
*/
const UPLOAD_PATH_TEXT = /(?<!\\)"holdover-[0-9a-f]{16}\/(?:[^"\\]|\\.)+"/g;
const FOLDER = /^holdover-[0-9a-f]{16}\//;
/** True when the JSON text of a prompt has paths in upload folders. */
function namesUploads(promptJson) {
	return promptJson.search(UPLOAD_PATH_TEXT) >= 0;
}
/**
* Returns the JSON text of a prompt, as an engine embeds it in a file, with uploads under the names
* that the client used. Spaces keep the length unchanged. Names that are too long for it leave the
* text as it was.
*/
function withSubmittedNames(promptJson, submittedName) {
	const named = promptJson.replaceAll(UPLOAD_PATH_TEXT, (text) => {
		const uploadPath = parsed(text);
		return uploadPath === void 0 ? text : asciiJson(clientNameOf(uploadPath, submittedName));
	});
	return named.length > promptJson.length ? promptJson : named.padEnd(promptJson.length);
}
/**
* Returns the client's name of an upload. For an unknown prompt, that is the name of the upload
* itself.
*/
function clientNameOf(uploadPath, submittedName) {
	const path = uploadPath.replace(FOLDER, "");
	const nameStart = path.lastIndexOf("/") + 1;
	const decoded = path.slice(0, nameStart) + decodedName(path.slice(nameStart));
	return [
		uploadPath,
		decoded,
		path
	].map(submittedName).find((name) => name !== void 0) ?? decoded;
}
/**
* Decodes a file name. The form library of comfy-api-proxy percent-encodes all characters of it but
* letters, digits and `_.-~`, and engines do not decode it. A name with other characters was not
* encoded.
*/
function decodedName(name) {
	try {
		const decoded = decodeURIComponent(name);
		return encodedName(decoded) === name ? decoded : name;
	} catch {
		return name;
	}
}
function encodedName(name) {
	const escape = (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;
	return encodeURIComponent(name).replaceAll(/[!'()*]/g, escape);
}
function parsed(text) {
	try {
		return JSON.parse(text);
	} catch {
		return;
	}
}
/** Writes JSON as engines do, in ASCII: every kind of text chunk can hold it. */
function asciiJson(text) {
	return toPythonText(JSON.stringify(text));
}
// src/app/embedded-names.ts
/** The number of first bytes that are searched. A prompt that ends after them is not changed. */
const HEAD_BYTES = 1048576;
/**
* Returns the same service, which restores names in PNG files that an engine behind comfy-api-proxy
* has made: the embedded prompt then names uploads as its client did. No byte changes its position.
*/
function restoreEmbeddedNames({ jobs, prompts }) {
	return {
		...jobs,
		async content(caller, assetId, range) {
			const file = engineFileOf(assetId);
			if (!file || !isPngName(file) || !touchesTexts(range)) return jobs.content(caller, assetId, range);
			return restoreAnswer(await jobs.content(caller, assetId, range && fromStart(range)), range, async (promptJson) => {
				return withSubmittedNames(promptJson, await submittedNames(prompts, caller, file));
			});
		}
	};
}
function isPngName({ name }) {
	return posix.extname(name).toLowerCase() === ".png";
}
function touchesTexts(range) {
	return range === void 0 || range.start < HEAD_BYTES && range.end >= FIRST_TEXT_BYTE;
}
/** Extends a range to the start: a part of the text can be restored only from all of it. */
function fromStart({ end }) {
	return {
		start: 0,
		end: Math.max(end, 1048575)
	};
}
function restoreAnswer(answer, range, restore) {
	if (!answer.ok || answer.value.kind !== "bytes") return answer;
	const { stream: source, range: servedPart, ...contentFields } = answer.value;
	if (!range || !servedPart) return ok({
		...contentFields,
		stream: piped(source, namesRestored(restore))
	});
	if (range.start > servedPart.end) {
		source.destroy();
		return refuse(416, "range_not_satisfiable", "The file has no such part.");
	}
	const given = {
		start: range.start,
		end: Math.min(range.end, servedPart.end)
	};
	const stream = piped(piped(source, namesRestored(restore)), onlyPart(given));
	return ok({
		...contentFields,
		stream,
		range: given
	});
}
/** Pipes a stream. The end or an error of one stream ends the other. */
function piped(source, transform) {
	pipeline(source, transform, () => {});
	return transform;
}
/** Delays only the first bytes of a file, until the prompt is found or known to be absent. */
function namesRestored(restore) {
	let heldChunks = [];
	let heldBytes = 0;
	let neededBytes = FIRST_TEXT_BYTE;
	async function findPrompt() {
		const head = Buffer.concat(heldChunks ?? []);
		const textAt = findPngText(head, "prompt");
		if (typeof textAt === "number" && textAt <= HEAD_BYTES) {
			heldChunks = [head];
			neededBytes = textAt;
			return;
		}
		heldChunks = void 0;
		if (typeof textAt !== "object") return head;
		const text = pngTextAt(head, textAt);
		return namesUploads(text) ? withPngText(head, textAt, await restore(text)) : head;
	}
	return new Transform({
		transform(chunk, _encoding, done) {
			if (heldChunks === void 0) return done(null, chunk);
			heldChunks.push(chunk);
			heldBytes += chunk.length;
			if (heldBytes < neededBytes) return done();
			findPrompt().then((bytes) => done(null, bytes), done);
		},
		flush: (done) => done(null, heldChunks && Buffer.concat(heldChunks))
	});
}
/** Passes on one range of a file that is read from its first byte. */
function onlyPart({ start, end }) {
	let at = 0;
	return new Transform({ transform(chunk, _encoding, done) {
		const from = Math.max(start - at, 0);
		const to = Math.max(end + 1 - at, 0);
		at += chunk.length;
		done(null, chunk.subarray(from, to));
	} });
}
/** Returns the names by the prompt of the job. A prompt that history has dropped gives no names. */
async function submittedNames(prompts, { user }, { jobId }) {
	const row = jobId === void 0 ? void 0 : await prompts.findByJob(user, jobId);
	const names = /* @__PURE__ */ new Map();
	for (const value of row ? inputTexts(parseJson(row.graphJson)) : []) {
		const path = uploadPathOf(parseFileName(value));
		if (!names.has(path)) names.set(path, value);
	}
	return (path) => names.get(posix.join("input", path));
}
function inputTexts(graph) {
	if (!isJsonObject(graph)) return [];
	return Object.values(graph).flatMap((node) => {
		const inputs = isJsonObject(node) ? node["inputs"] : void 0;
		return (isJsonObject(inputs) ? Object.values(inputs) : []).filter((value) => typeof value === "string");
	});
}
const SIGNATURE = Buffer.from("89504e470d0a1a0a", "hex");
/** The length and type before the data of a chunk. The checksum is behind the data. */
const CHUNK_HEAD_BYTES = 8;
const CRC_BYTES = 4;
/** The specification of PNG allows no longer chunk. */
const MAX_LENGTH = 2 ** 31 - 1;
/** The first offset at which a text chunk can begin: behind the signature and `IHDR`. */
const FIRST_TEXT_BYTE = SIGNATURE.length + CHUNK_HEAD_BYTES + 13 + CRC_BYTES;
/**
* Finds a `tEXt` chunk by its keyword in the first bytes of a PNG file. Returns a number when it needs that many
* first bytes to continue. Returns `undefined` when the file is not a PNG file, has no such chunk before the pixels,
* or is damaged.
* @internal
*/
function findPngText(head, keyword) {
	const seen = Math.min(head.length, SIGNATURE.length);
	if (!SIGNATURE.subarray(0, seen).equals(head.subarray(0, seen))) return void 0;
	const key = `${keyword}\0`;
	for (let at = SIGNATURE.length;;) {
		const dataStart = at + CHUNK_HEAD_BYTES;
		if (head.length < dataStart) return dataStart;
		const length = head.readUInt32BE(at);
		const type = head.toString("latin1", at + 4, dataStart);
		if (at === SIGNATURE.length !== (type === "IHDR") || LAST_CHUNKS.has(type) || length > MAX_LENGTH) return void 0;
		const dataEnd = dataStart + length;
		const next = dataEnd + CRC_BYTES;
		if (type === "tEXt" && length >= key.length) {
			const keyEnd = dataStart + key.length;
			if (head.length < keyEnd) return keyEnd;
			if (head.toString("latin1", dataStart, keyEnd) === key) {
				if (head.length < next) return next;
				return head.readUInt32BE(dataEnd) === checksum(head, at, dataEnd) ? {
					chunkStart: at,
					start: keyEnd,
					end: dataEnd
				} : void 0;
			}
		}
		at = next;
	}
}
const LAST_CHUNKS = /* @__PURE__ */ new Set(["IDAT", "IEND"]);
/**
* Returns the text of a chunk.
* @internal
*/
function pngTextAt(head, { start, end }) {
	return head.toString("latin1", start, end);
}
/**
* Returns the bytes with another Latin-1 text of the same length, and with the matching checksum.
* @internal
*/
function withPngText(head, range, text) {
	const { chunkStart, start, end } = range;
	if (text.length !== end - start) throw new RangeError("a text in a PNG must keep its length");
	const changed = Buffer.from(head);
	changed.write(text, start, "latin1");
	changed.writeUInt32BE(checksum(changed, chunkStart, end), end);
	return changed;
}
/** The checksum covers type and data, but not the length. */
function checksum(bytes, chunkStart, dataEnd) {
	return crc32(bytes.subarray(chunkStart + 4, dataEnd));
}
export { restoreEmbeddedNames };
