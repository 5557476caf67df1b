import { NodeFailure } from "../nodes/node.js";
import { t as LosslessNumber } from "./json-0U1hIHCx.js";
// src/nodes/tensor.ts
/** Returns a black picture. Its memory is reserved within the job's limit. */
const newImage = (context, { batch, height, width, channels }) => ({
	kind: "image",
	batch,
	height,
	width,
	channels,
	data: allocate(context, [
		batch,
		height,
		width,
		channels
	])
});
/**
* Returns a picture of bytes, as files hold them. Its floats are computed on first use: a picture
* that is only loaded, scaled as bytes and saved does not need them.
*/
const byteImage = (context, { batch, height, width, channels }, bytes) => {
	context.reserve(byteImageSize(bytes));
	let data;
	return Object.defineProperty({
		kind: "image",
		batch,
		height,
		width,
		channels,
		get data() {
			data ??= levelsOf(bytes);
			return data;
		}
	}, "bytes", { value: bytes });
};
/** Returns the memory of such a picture: its bytes, and its floats when they are read. */
const byteImageSize = ({ length }) => length * (1 + Float32Array.BYTES_PER_ELEMENT);
/** Returns an empty mask. Its memory is reserved within the job's limit. */
const newMask = (context, { batch, height, width }) => ({
	kind: "mask",
	batch,
	height,
	width,
	data: allocate(context, [
		batch,
		height,
		width
	])
});
/** Allocates. Sizes that come through links were not checked before. */
const allocate = (context, sizes) => {
	const negative = sizes.find((size) => size < 0);
	if (negative !== void 0) throw new NodeFailure("RuntimeError", `A size is negative: ${negative} of ${sizes.join(" × ")}`);
	const length = sizes.reduce((product, size) => product * size, 1);
	context.reserve(length * Float32Array.BYTES_PER_ELEMENT);
	return new Float32Array(length);
};
/** Returns one picture of a batch as a view: a write to it changes the batch. */
const frameOf = (value, index) => {
	const size = value.data.length / value.batch;
	return value.data.subarray(index * size, (index + 1) * size);
};
/**
* Converts levels as v1 does for saving: multiplies by 255 in single precision, clips, cuts off the
* fraction.
* @internal
*/
const quantise = (values) => {
	const bytes = new Uint8Array(values.length);
	for (let i = 0; i < values.length; i++) {
		const level = Math.fround(values[i] * 255);
		bytes[i] = level >= 255 ? 255 : level > 0 ? level : 0;
	}
	return bytes;
};
/** Returns the bytes of one picture of the batch as v1 saves them: height × width × channels. */
const toBytes = (image, batchIndex) => {
	if (image.bytes === void 0) return quantise(frameOf(image, batchIndex));
	const size = image.bytes.length / image.batch;
	return image.bytes.subarray(batchIndex * size, (batchIndex + 1) * size);
};
/** Returns the level of a byte as v1 loads it: one 255th in single precision. */
const levelOf = (byte) => Math.fround(byte / 255);
const levelsOf = (bytes) => {
	const levels = new Float32Array(bytes.length);
	fromBytes(bytes, levels);
	return levels;
};
/** Writes bytes as v1's float levels into a tensor. */
const fromBytes = (bytes, target) => {
	const levels = Float32Array.from({ length: 256 }, (_, byte) => byte / 255);
	for (let i = 0; i < bytes.length; i++) target[i] = levels[bytes[i]];
};
/** Rounds half to even, as v1 does with sizes. */
const roundHalfEven = (value) => {
	const floor = Math.floor(value);
	const rest = value - floor;
	return rest > .5 || rest === .5 && floor % 2 !== 0 ? floor + 1 : floor;
};
/**
* Returns the picture with that many channels. Missing ones are added as opaque (1), as v1 pads
* alpha.
*/
const fillAlpha = (context, image, channels) => {
	if (image.channels >= channels) return image;
	const filled = newImage(context, {
		...image,
		channels
	});
	filled.data.fill(1);
	const pixels = image.data.length / image.channels;
	for (let i = 0; i < pixels; i++) for (let c = 0; c < image.channels; c++) filled.data[i * channels + c] = image.data[i * image.channels + c];
	return filled;
};
/** Visits the rows of all pictures of a batch. Between two rows a job can be stopped. */
const eachRow = (context, { batch, height }, act) => {
	for (let row = 0; row < batch * height; row++) {
		context.check();
		act(row);
	}
};
// src/protocol/python-json-text.ts
const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const BACKSLASH = 92;
/**
* Turns compact JSON into the text that Python's `json.dumps` writes: a space after each `,` and
* `:`, and characters outside ASCII as `\uXXXX`. Programs without a JSON parser search v1's answers
* for texts such as `"queue_remaining": 0`.
*/
function toPythonText(compact) {
	return new PythonTextWriter().write(compact);
}
/** Does this for a text that comes in pieces, which may end anywhere. */
var PythonTextWriter = class {
	#isInString = false;
	/** True when the last piece ended in a backslash that escapes the next character. */
	#isEscaped = false;
	write(piece) {
		let spaced = "";
		let from = 0;
		for (let i = 0; i < piece.length; i++) if (this.#isInString) i = this.#endOfString(piece, i);
		else {
			const code = piece.charCodeAt(i);
			if (code === QUOTE) this.#isInString = true;
			else if (code === COMMA || code === COLON) {
				spaced += `${piece.slice(from, i + 1)} `;
				from = i + 1;
			}
		}
		return inAscii(spaced + piece.slice(from));
	}
	/** Returns the position of the quote that ends the string at `start`, or the end of the piece. */
	#endOfString(piece, start) {
		for (let end = piece.indexOf("\"", start);; end = piece.indexOf("\"", end + 1)) {
			const at = end < 0 ? piece.length : end;
			let slashes = 0;
			while (at - slashes > start && piece.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes++;
			const reachesStart = at - slashes === start;
			const isEscaped = (slashes + (reachesStart && this.#isEscaped ? 1 : 0)) % 2 === 1;
			if (end >= 0 && isEscaped) continue;
			this.#isEscaped = end < 0 && isEscaped;
			this.#isInString = end < 0;
			return at;
		}
	}
};
function inAscii(text) {
	return text.replaceAll(/[\u0080-\uffff]/g, escapeUnit);
}
/** Writes one UTF-16 unit as a JSON escape. */
function escapeUnit(unit) {
	return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
// src/protocol/python-json.ts
/**
* Returns the text that Python's `json.dumps` writes and v1 puts into saved files: `, ` and `: `
* between items, characters outside ASCII as `\uXXXX`, numbers as they were read.
*/
function pythonJson(value) {
	if (typeof value === "string") return asciiString(value);
	if (typeof value === "number") return pythonNumber(value);
	if (value === null || typeof value === "boolean") return String(value);
	if (value instanceof LosslessNumber) return value.toString();
	if (isArray(value)) return `[${value.map(pythonJson).join(", ")}]`;
	return `{${Object.entries(value).map(([key, item]) => `${asciiString(key)}: ${pythonJson(item)}`).join(", ")}}`;
}
/** Returns a FLOAT as Python's `str()` shows it: `3.0`, `1e+16`, `1e-05`, `nan`. */
function pythonFloat(value) {
	if (Number.isNaN(value)) return "nan";
	if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
	if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
	const magnitude = Math.abs(value);
	if (magnitude >= 0x2386f26fc10000 || magnitude < 1e-4) return pythonExponent(value);
	return Number.isInteger(value) ? `${value}.0` : String(value);
}
function pythonExponent(value) {
	return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
}
/**
* Writes a number. One that reads as an integer shows no fraction; v1 would keep `5.0`, while
* Holdover reads it as 5.
*/
function pythonNumber(value) {
	return Number.isSafeInteger(value) ? String(value) : pythonFloat(value);
}
function asciiString(text) {
	return JSON.stringify(text).replaceAll(/[\u0080-\uffff]/g, escapeUnit);
}
function isArray(value) {
	return Array.isArray(value);
}
export { byteImage as a, fillAlpha as c, levelOf as d, newImage as f, toBytes as h, toPythonText as i, frameOf as l, roundHalfEven as m, pythonJson as n, byteImageSize as o, newMask as p, PythonTextWriter as r, eachRow as s, pythonFloat as t, fromBytes as u };
