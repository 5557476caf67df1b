import { NodeFailure, OutOfMemory } from "../nodes/node.js";
import { a as byteImage, c as fillAlpha, d as levelOf$1, f as newImage, h as toBytes, l as frameOf, m as roundHalfEven, n as pythonJson, p as newMask, s as eachRow, t as pythonFloat, u as fromBytes } from "./python-json-ZZa01XnG.js";
import { t as packageUrl } from "./package-url-DJPOFjBU.js";
import { n as isJsonObject, t as LosslessNumber } from "./json-CIUMQIEJ.js";
import { posix } from "node:path";
import { readFileSync } from "node:fs";
import { LRUCache } from "lru-cache";
import { randomInt } from "node:crypto";
import { promisify } from "node:util";
import { constants as constants$1, crc32, deflate, deflateSync } from "node:zlib";
import { setImmediate } from "node:timers/promises";
import { constants as constants$2 } from "node:buffer";
import { Script, createContext } from "node:vm";
// src/nodes/image/region.ts
/**
* Returns the part of `0..length` that a span names, as v1 reads it: positions below 0 count from
* the end, the rest is cut off.
*/
const spanWithin = (length, { start, end }) => {
	const place = (position) => Math.min(length, Math.max(0, position < 0 ? position + length : position));
	return {
		start: place(start),
		end: Math.max(place(start), place(end))
	};
};
/** Returns a mask as a picture of one channel that shares its data. */
const asPicture = (mask) => ({
	...mask,
	kind: "image",
	channels: 1
});
/** Returns a picture of one channel as a mask that shares its data. */
const asMask = ({ batch, height, width, data }) => ({
	kind: "mask",
	batch,
	height,
	width,
	data
});
/** Returns a mask in the three channels of a picture. */
const greyPicture = (context, mask) => {
	const image = newImage(context, {
		...mask,
		channels: 3
	});
	for (let i = 0; i < mask.data.length; i++) {
		if (i % mask.width === 0) context.check();
		image.data.fill(mask.data[i], i * 3, i * 3 + 3);
	}
	return image;
};
/**
* Refuses a second picture with fewer channels: v1 drops the alpha of the second when the first has
* none, but fails in the opposite case.
*/
const requireChannels = ([firstName, first], [secondName, second]) => {
	if (first.channels <= second.channels) return;
	const message = `${firstName} has ${`${first.channels} channels but ${secondName} only ${second.channels}`}; join an alpha channel to ${secondName} first`;
	throw new NodeFailure("RuntimeError", message);
};
/**
* Cuts the region out of every picture of the batch. v1 returns pictures without pixels, on which
* every later node fails; here that is refused.
*/
const cutOut = (context, image, { columns, rows }) => {
	const [width, height] = [columns.end - columns.start, rows.end - rows.start];
	if (width < 1 || height < 1) {
		const pixels = `${image.width} × ${image.height} pixels`;
		throw new NodeFailure("ValueError", `Nothing of the ${pixels} lies in the wanted region`);
	}
	const part = newImage(context, {
		...image,
		width,
		height
	});
	eachRow(context, part, (row) => {
		const from = ((Math.floor(row / height) * image.height + rows.start + row % height) * image.width + columns.start) * image.channels;
		const pixels = image.data.subarray(from, from + width * image.channels);
		part.data.set(pixels, row * width * image.channels);
	});
	return part;
};
/** Copies every picture of `source` into the same picture of `target`, where it must fit. */
const place = (context, target, source, at) => {
	const length = source.width * source.channels;
	eachRow(context, source, (row) => {
		const line = Math.floor(row / source.height) * target.height + at.y + row % source.height;
		const pixels = source.data.subarray(row * length, (row + 1) * length);
		target.data.set(pixels, (line * target.width + at.x) * target.channels);
	});
};
/**
* Visits the rows of `target` that `source` covers when its corner is at `at`; there may be none.
* v1 fails on negative offsets; here they cut off the other edge.
*/
const eachCoveredRow = (context, { target, source, at }, act) => {
	const inTarget = {
		x: Math.max(0, at.x),
		y: Math.max(0, at.y)
	};
	const inSource = {
		x: Math.max(0, -at.x),
		y: Math.max(0, -at.y)
	};
	const width = Math.min(target.width - inTarget.x, source.width - inSource.x);
	const height = Math.min(target.height - inTarget.y, source.height - inSource.y);
	eachRow(context, {
		batch: target.batch,
		height
	}, (row) => {
		const [frame, line] = [Math.floor(row / height), row % height];
		const to = pixelAt(target, frame, {
			x: inTarget.x,
			y: inTarget.y + line
		});
		const above = {
			x: inSource.x,
			y: inSource.y + line
		};
		act({
			width,
			to,
			from: (upper) => pixelAt(upper, frame % upper.batch, above)
		});
	});
};
const pixelAt = ({ height, width }, frame, { x, y }) => (frame * height + y) * width + x;
/** A place in a picture. */
const OFFSET = ["INT", {
	default: 0,
	min: 0,
	max: 16384,
	step: 1
}];
/** A side of a picture. */
const SIDE$1 = ["INT", {
	default: 512,
	min: 1,
	max: 16384,
	step: 1
}];
/** Returns a copy to draw on. */
const copyOf = (context, image) => {
	const copy = newImage(context, image);
	copy.data.set(image.data);
	return copy;
};
// src/nodes/resample/linear.ts
const { fround: fround$5 } = Math;
const position = (i, scale) => fround$5(scale * (i + .5) - .5);
const newAxis = (taps, target) => ({
	taps,
	indices: new Int32Array(target * taps),
	weights: new Float32Array(target * taps)
});
/** Returns two taps: straight lines between pixel centres. */
const linearAxis = (source, target) => {
	const scale = fround$5(source / target);
	const axis = newAxis(2, target);
	for (let i = 0; i < target; i++) {
		const at = Math.max(0, position(i, scale));
		const first = Math.min(Math.floor(at), source - 1);
		const share = Math.min(fround$5(at - first), 1);
		axis.indices.set([Math.min(first + 1, source - 1), first], i * 2);
		axis.weights.set([share, 1 - share], i * 2);
	}
	return axis;
};
const CUBIC_STEPS = [
	0,
	-1,
	1,
	2
];
/** Returns four taps: cubic convolution. */
const cubicAxis = (source, target) => {
	const scale = fround$5(source / target);
	const axis = newAxis(4, target);
	for (let i = 0; i < target; i++) {
		const at = position(i, scale);
		const first = Math.floor(at);
		const share = fround$5(at - first);
		const weights = [
			innerWeight(share),
			outerWeight(share + 1),
			innerWeight(1 - share),
			outerWeight(fround$5(1 - share) + 1)
		];
		for (const [tap, step] of CUBIC_STEPS.entries()) {
			axis.indices[i * 4 + tap] = Math.min(Math.max(first + step, 0), source - 1);
			axis.weights[i * 4 + tap] = weights[tap];
		}
	}
	return axis;
};
/**
* Returns the weight of cubic convolution (Keys) with a = -0.75, for distances below 1. Every
* rounding counts.
*/
const innerWeight = (distance) => {
	const x = fround$5(distance);
	return fround$5(fround$5(fround$5(1.25 * x - 2.25) * x) * x) + 1;
};
/** Returns the weight for distances from 1 to 2. */
const outerWeight = (distance) => {
	const x = fround$5(distance);
	return fround$5(fround$5(fround$5(-.75 * x + 3.75) * x - 6) * x) + 3;
};
/** Above this sum of target sides the original uses its separable loop for colour pictures. */
const SMALL_SIDES = 128;
const separably = (tapper) => (context, image, size) => {
	const wide = newImage(context, {
		...image,
		width: size.width
	});
	const scaled = newImage(context, {
		...image,
		...size
	});
	stretchRows(context, wide, image, tapper(image.width, size.width));
	mixRows(context, scaled, wide, tapper(image.height, size.height));
	return scaled;
};
const stretchRows = (context, wide, image, { taps, indices, weights }) => {
	const { channels, data } = image;
	eachRow(context, image, (row) => {
		const from = row * image.width * channels;
		const to = row * wide.width * channels;
		for (let x = 0; x < wide.width; x++) for (let c = 0; c < channels; c++) {
			let sum = 0;
			for (let tap = x * taps; tap < (x + 1) * taps; tap++) {
				const value = data[from + indices[tap] * channels + c];
				sum = fround$5(value * weights[tap] + sum);
			}
			wide.data[to + x * channels + c] = sum;
		}
	});
};
const mixRows = (context, scaled, wide, { taps, indices, weights }) => {
	const length = wide.width * wide.channels;
	eachRow(context, scaled, (row) => {
		const top = Math.floor(row / scaled.height) * wide.height;
		const target = scaled.data.subarray(row * length, (row + 1) * length);
		const first = row % scaled.height * taps;
		for (let tap = first; tap < first + taps; tap++) {
			const weight = weights[tap];
			const from = (top + indices[tap]) * length;
			for (let i = 0; i < length; i++) target[i] = wide.data[from + i] * weight + target[i];
		}
	});
};
/**
* Sums all four corners at once, with products of weights: the original's loop for small or RGBA
* targets.
*/
const byCorners = (context, image, size) => {
	const scaled = newImage(context, {
		...image,
		...size
	});
	const columns = linearAxis(image.width, size.width);
	const rows = linearAxis(image.height, size.height);
	const { channels, data, width } = image;
	eachRow(context, scaled, (row) => {
		const y = row % scaled.height * 2;
		const top = Math.floor(row / scaled.height) * image.height;
		const [lower, upper] = [rows.indices[y], rows.indices[y + 1]];
		const [down, up] = [rows.weights[y], rows.weights[y + 1]];
		for (let x = 0; x < scaled.width; x++) {
			const [right, left] = [columns.indices[x * 2], columns.indices[x * 2 + 1]];
			const [east, west] = [columns.weights[x * 2], columns.weights[x * 2 + 1]];
			for (let c = 0; c < channels; c++) {
				const at = (line, column) => data[((top + line) * width + column) * channels + c];
				let sum = fround$5(at(upper, right) * fround$5(up * east));
				sum = fround$5(at(upper, left) * fround$5(up * west) + sum);
				sum = fround$5(at(lower, left) * fround$5(down * west) + sum);
				sum = fround$5(at(lower, right) * fround$5(down * east) + sum);
				scaled.data[(row * scaled.width + x) * channels + c] = sum;
			}
		}
	});
	return scaled;
};
const linearly = separably(linearAxis);
/**
* Interpolates linearly between the four nearest pixels, without antialiasing (v1's `bilinear`).
*/
const resampleBilinear = (context, image, size) => size.width + size.height <= SMALL_SIDES || image.channels > 3 ? byCorners(context, image, size) : linearly(context, image, size);
/**
* Uses cubic convolution over the sixteen nearest pixels, without antialiasing (v1's `bicubic`).
*/
const resampleBicubic = separably(cubicAxis);
// src/nodes/resample/lanczos-taps.ts
const LOBES = 3;
const PRECISION = 2 ** 22;
/** A cache: the frames of a batch, both sides of a square, and successive jobs scale alike. */
const known = new LRUCache({ max: 16 });
/** Returns a windowed sinc, which is wider when the picture shrinks. */
const lanczosTaps = (source, target) => {
	const name = `${source} ${target}`;
	const taps = known.get(name) ?? makeTaps(source, target);
	known.set(name, taps);
	return taps;
};
const makeTaps = (source, target) => {
	const scale = source / target;
	const stretch = Math.max(1, scale);
	const windows = Array.from({ length: target }, (_unused, i) => {
		const centre = (i + .5) * scale;
		return {
			centre,
			start: Math.max(0, Math.trunc(centre - LOBES * stretch + .5)),
			end: Math.min(source, Math.trunc(centre + LOBES * stretch + .5))
		};
	});
	const reach = windows.reduce((most, { start, end }) => Math.max(most, end - start), 1);
	const first = new Int32Array(target);
	const weights = new Int32Array(target * reach);
	for (const [i, { centre, start, end }] of windows.entries()) {
		const raw = Array.from({ length: end - start }, (_unused, x) => lanczos((x + start - centre + .5) / stretch));
		const sum = raw.reduce((total, weight) => total + weight, 0);
		first[i] = Math.max(0, end - reach);
		const skipped = start - first[i];
		for (const [k, weight] of raw.entries()) {
			const fixed = Math.round(Math.abs(weight / sum) * PRECISION) * Math.sign(weight / sum);
			weights[i * reach + skipped + k] = fixed;
		}
	}
	return {
		first,
		weights,
		reach
	};
};
const lanczos = (x) => x >= -3 && x < LOBES ? sinc(x) * sinc(x / LOBES) : 0;
const sinc = (x) => x === 0 ? 1 : Math.sin(x * Math.PI) / (x * Math.PI);
const PAGE = 65536;
/** The maximum size of such a memory. */
const MAX_MEMORY_BYTES = 2 ** 31;
const { Module, Memory, Instance, CompileError } = globalThis.WebAssembly;
let compiled;
/**
* Opens a memory of this many bytes. `undefined`: the processor has no vector instructions, or the
* memory cannot be allocated.
*/
const openPixels = (length) => {
	compiled ??= compile();
	if (compiled === "none" || length > MAX_MEMORY_BYTES) return void 0;
	const memory = new Memory({ initial: Math.ceil(length / PAGE) });
	const { exports } = new Instance(compiled, { env: { memory } });
	return {
		code: exports,
		bytes: new Uint8Array(memory.buffer)
	};
};
/**
* Returns consecutive addresses, each with space for one block before it and one behind its end.
*/
const layOut = (lengths) => {
	let end = 16;
	const places = Object.entries(lengths).map(([name, length]) => {
		const at = end;
		end = Math.ceil((at + length + 32) / 16) * 16;
		return [name, at];
	});
	return {
		at: Object.fromEntries(places),
		end
	};
};
/** Compiles the module. Processors without vector instructions refuse it. */
const compile = () => {
	try {
		return new Module(readFileSync(packageUrl("dist/nodes/pixels.wasm")));
	} catch (error) {
		if (error instanceof CompileError) return "none";
		throw error;
	}
};
// src/nodes/resample/lanczos-vectors.ts
const MAX_CHANNELS = 4;
/** The number of weights that are used at a time. */
const STEP = 4;
/** Scales one picture as `scalePlainly` does. `undefined`: that function has to do it. */
const scaleWithVectors = (context, source, size) => {
	const { channels } = source;
	if (channels > MAX_CHANNELS) return void 0;
	const length = size.width * channels;
	const across = tapsOf(source.width, size.width);
	const down = tapsOf(source.height, size.height);
	const weights = across ? inSteps(across) : /* @__PURE__ */ new Int32Array();
	const { at, end } = layOut({
		/** A row of the source. */
		line: (source.width + STEP) * channels,
		/** The picture at its new width. */
		wide: source.height * length,
		/** A row of the target. */
		row: length,
		masks: 64,
		firsts: across?.first.byteLength ?? 0,
		across: weights.byteLength,
		down: down?.weights.byteLength ?? 0
	});
	const memory = openPixels(end);
	if (!memory) return void 0;
	context.reserve(source.height * length + size.height * length);
	const work = {
		...memory,
		context,
		at
	};
	if (across) widen(work, source, {
		first: across.first,
		weights,
		width: size.width
	});
	else memory.bytes.set(source.data, at.wide);
	const data = down ? lower(work, down, {
		length,
		height: size.height
	}) : memory.bytes.slice(at.wide, at.wide + source.height * length);
	return {
		...size,
		channels,
		data
	};
};
const tapsOf = (source, target) => source === target ? void 0 : lanczosTaps(source, target);
/** Returns the weights of each position, filled with zeros to a whole number of steps. */
const inSteps = ({ weights, reach, first }) => {
	const padded = Math.ceil(reach / STEP) * STEP;
	const result = new Int32Array(first.length * padded);
	for (let i = 0; i < first.length; i++) result.set(weights.subarray(i * reach, (i + 1) * reach), i * padded);
	return result;
};
/** Returns where the channels of each of four pixels are in sixteen bytes; zero for none. */
const masksOf = (channels) => Uint8Array.from({ length: 64 }, (_unused, i) => {
	const [pixel, lane] = [Math.floor(i / 16), i % 16];
	return lane % 4 === 0 && lane / 4 < channels ? pixel * channels + lane / 4 : 128;
});
const widen = ({ context, code, bytes, at }, { data, width, height, channels }, to) => {
	bytes.set(masksOf(channels), at.masks);
	bytes.set(bytesOf(to.first), at.firsts);
	bytes.set(bytesOf(to.weights), at.across);
	const reach = to.weights.length / to.width;
	const length = width * channels;
	for (let y = 0; y < height; y++) {
		context.check();
		bytes.set(data.subarray(y * length, (y + 1) * length), at.line);
		const target = at.wide + y * to.width * channels;
		code.line(at.line, target, at.firsts, at.across, reach, channels, to.width, at.masks);
	}
};
const lower = ({ context, code, bytes, at }, { first, weights, reach }, { length, height }) => {
	bytes.set(bytesOf(weights), at.down);
	const data = new Uint8Array(length * height);
	for (let y = 0; y < height; y++) {
		context.check();
		const from = at.wide + first[y] * length;
		code.columns(from, at.row, at.down + y * reach * 4, reach, length);
		data.set(bytes.subarray(at.row, at.row + length), y * length);
	}
	return data;
};
const bytesOf = ({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength);
// src/nodes/resample/lanczos.ts
/**
* Scales bytes with a windowed sinc, which is wider when the picture shrinks. v1's `lanczos`
* converts to bytes for it, too.
*/
const resampleLanczos = (context, image, size) => {
	const { batch, channels, height, width } = image;
	const frames = Array.from({ length: batch }, (_, index) => {
		const source = {
			width,
			height,
			channels,
			data: toBytes(image, index)
		};
		return resize(context, source, size).data;
	});
	const bytes = frames.length === 1 && frames[0] ? frames[0] : Buffer.concat(frames);
	return byteImage(context, {
		batch,
		channels,
		...size
	}, bytes);
};
const resize = (context, source, size) => {
	if (source.width === size.width && source.height === size.height) return source;
	if (source.channels !== 4) return scale(context, source, size);
	const scaled = scale(context, {
		...source,
		data: premultiplied(source.data)
	}, size);
	return {
		...scaled,
		data: unpremultiplied(scaled.data)
	};
};
const scale = (context, source, size) => scaleWithVectors(context, source, size) ?? scalePlainly(context, source, size);
/** Multiplies colours by alpha before scaling, so that hidden colours do not spread. */
const premultiplied = (data) => {
	const result = data.slice();
	for (let i = 0; i < data.length; i++) {
		const product = data[i] * data[i | 3] + 128;
		if ((i & 3) !== 3) result[i] = (product >> 8) + product >> 8;
	}
	return result;
};
const unpremultiplied = (data) => {
	const result = data.slice();
	for (let i = 0; i < data.length; i++) {
		const alpha = data[i | 3];
		if ((i & 3) !== 3 && alpha !== 0) result[i] = Math.min(255, Math.floor(255 * data[i] / alpha));
	}
	return result;
};
/**
* Scales one picture, columns first. Used when the processor has no vector instructions.
* @internal
*/
const scalePlainly = (context, source, size) => {
	const wide = resized(context, source, {
		...size,
		height: source.height
	});
	return resized(context, wide, size);
};
/** Scales one picture along the one side that differs. */
const resized = (context, source, { width, height }) => {
	const { channels } = source;
	const isAcross = source.width !== width;
	if (!isAcross && source.height === height) return source;
	const { first, weights, reach } = isAcross ? lanczosTaps(source.width, width) : lanczosTaps(source.height, height);
	const step = isAcross ? channels : width * channels;
	context.reserve(width * height * channels);
	const data = new Uint8ClampedArray(width * height * channels);
	for (let y = 0, to = 0; y < height; y++) {
		context.check();
		for (let i = 0; i < width * channels; i++, to++) {
			const place = isAcross ? Math.floor(i / channels) : y;
			let at = (isAcross ? y * source.width * channels + i % channels : i) + first[place] * step;
			let sum = PRECISION / 2;
			for (let k = place * reach; k < (place + 1) * reach; k++, at += step) sum = sum + Math.imul(source.data[at], weights[k]) | 0;
			data[to] = sum >> 22;
		}
	}
	return {
		width,
		height,
		channels,
		data: new Uint8Array(data.buffer)
	};
};
// src/nodes/resample/resample.ts
/** Makes every target pixel the mean of the whole source pixels that it touches (v1's `area`). */
const resampleArea = (context, image, size) => {
	const scaled = newImage(context, {
		...image,
		...size
	});
	const columns = windows(image.width, size.width);
	const rows = windows(image.height, size.height);
	const { channels } = image;
	eachRow(context, scaled, (row) => {
		const top = Math.floor(row / size.height) * image.height;
		const { start, end } = rows[row % size.height];
		const height = end - start;
		for (let i = 0; i < size.width * channels; i++) {
			const column = columns[Math.floor(i / channels)];
			const width = column.end - column.start;
			const first = ((top + start) * image.width + column.start) * channels + i % channels;
			let sum = 0;
			for (let y = 0, line = first; y < height; y++, line += image.width * channels) for (let at = line; at < line + width * channels; at += channels) sum = Math.fround(sum + image.data[at]);
			scaled.data[row * size.width * channels + i] = Math.fround(sum / height) / width;
		}
	});
	return scaled;
};
const windows = (source, target) => Array.from({ length: target }, (_, i) => ({
	start: Math.floor(i * source / target),
	end: Math.ceil((i + 1) * source / target)
}));
/** Makes every target pixel the source pixel in which its centre is (v1's `nearest-exact`). */
const resampleNearest = (context, image, size) => {
	const scaled = newImage(context, {
		...image,
		...size
	});
	const columns = nearestIndices(image.width, size.width);
	const rows = nearestIndices(image.height, size.height);
	const { channels } = image;
	eachRow(context, scaled, (row) => {
		const sourceRow = Math.floor(row / size.height) * image.height + rows[row % size.height];
		for (let x = 0; x < size.width; x++) {
			const from = (sourceRow * image.width + columns[x]) * channels;
			const to = (row * size.width + x) * channels;
			for (let c = 0; c < channels; c++) scaled.data[to + c] = image.data[from + c];
		}
	});
	return scaled;
};
/**
* Returns the indexes in single precision: at half-way points the rounding decides which pixel is
* taken.
*/
const nearestIndices = (source, target) => {
	const scale = Math.fround(source / target);
	return Int32Array.from({ length: target }, (_, i) => Math.min(source - 1, Math.floor(Math.fround((i + .5) * scale))));
};
const RESAMPLERS = {
	"nearest-exact": resampleNearest,
	bilinear: resampleBilinear,
	area: resampleArea,
	bicubic: resampleBicubic,
	lanczos: resampleLanczos
};
/** v1's methods, in the order in which its nodes list them. */
const RESAMPLE_METHODS = Object.keys(RESAMPLERS);
/** Returns the method of that name. In v1, unknown words can reach the node through links. */
const resampleMethod = (word) => {
	if (Object.hasOwn(RESAMPLERS, word)) return word;
	throw new NodeFailure("NotImplementedError", `Unknown resampling method: ${word}`);
};
/**
* Scales a picture to exactly that size as v1 does. If asked, it is first cut to the new
* proportions.
*/
const upscale = (context, image, options) => {
	const { width, height } = options;
	if (!(width >= 1 && height >= 1)) {
		const message = `Cannot scale to ${width} × ${height}: both sides must be at least 1`;
		throw new NodeFailure("RuntimeError", message);
	}
	const source = options.crop === "center" ? cropToAspect(context, image, options) : image;
	return RESAMPLERS[options.method](context, source, options);
};
/** Returns a picture in the size of another one; the same object if it has that size. */
const fitted = (context, image, { width, height }, fit) => image.width === width && image.height === height ? image : upscale(context, image, {
	...fit,
	width,
	height
});
/** Does what `fitted` does, for masks. */
const fittedMask = (context, mask, size, fit) => asMask(fitted(context, asPicture(mask), size, fit));
const cropToAspect = (context, image, { width, height }) => {
	const [before, after] = [image.width / image.height, width / height];
	const x = before > after ? roundHalfEven((image.width - image.width * (after / before)) / 2) : 0;
	const y = before < after ? roundHalfEven((image.height - image.height * (before / after)) / 2) : 0;
	if (x === 0 && y === 0) return image;
	return cutOut(context, image, {
		columns: {
			start: x,
			end: image.width - x
		},
		rows: {
			start: y,
			end: image.height - y
		}
	});
};
// src/nodes/typed-node.ts
/**
* A node that gets its inputs with their declared types. v1 lets a value of another type into an
* input and fails only at run time.
*/
function typedNode(def) {
	const required = Object.entries(def.required);
	const optional = Object.entries(def.optional ?? {});
	return {
		...def,
		run(given, context) {
			const present = optional.filter(([name]) => (given[name] ?? null) !== null);
			const values = [...required, ...present].map(([name, [type]]) => [name, readerOf(type)(name, given[name])]);
			return def.run(Object.fromEntries(values), context, given);
		}
	};
}
/** Returns the entry that an input names. In v1, other words can come through a link. */
function entryOf(table, name, failure) {
	if (Object.hasOwn(table, name)) return table[name];
	throw new NodeFailure(failure[0], `${failure[1]} ${name}`);
}
const isKind = (kind) => (value) => typeof value === "object" && value !== null && value.kind === kind;
const reader = (isRight, expected) => (name, value) => isRight(value) ? value : wrong(name, expected, value);
const readText = reader((value) => typeof value === "string", "a text");
/** How the values of each type are read. Choices and all other types are texts. */
const READERS = {
	IMAGE: reader(isKind("image"), "an image"),
	MASK: reader(isKind("mask"), "a mask"),
	BOOLEAN: reader((value) => typeof value === "boolean", "true or false"),
	/** Cuts off the fraction, as v1's `int()` does. */
	INT(name, value) {
		if (typeof value === "bigint") return Number(value);
		return typeof value === "number" && Number.isFinite(value) ? Math.trunc(value) : wrong(name, "a whole number", value);
	},
	FLOAT(name, value) {
		if (typeof value === "bigint") return Number(value);
		return typeof value === "number" ? value : wrong(name, "a number", value);
	}
};
function readerOf(type) {
	return typeof type === "string" && Object.hasOwn(READERS, type) ? READERS[type] : readText;
}
function wrong(name, expected, value) {
	throw new NodeFailure("TypeError", `${name}: expected ${expected}, got ${describe(value)}`);
}
function describe(value) {
	if (value === void 0 || value === null) return "nothing";
	if (typeof value === "string") return `the text ${JSON.stringify(value.slice(0, 80))}`;
	if (typeof value !== "object") return `the ${typeof value} ${String(value)}`;
	return typeof value.kind === "string" ? `a ${value.kind}` : "a list or an object";
}
// src/nodes/image/basic.ts
const LEGACY = { pythonModule: "nodes" };
const EXTRAS = {
	...LEGACY,
	pythonModule: "comfy_extras.nodes_images"
};
const emptyImage = typedNode({
	...LEGACY,
	name: "EmptyImage",
	isBriefWhenSmall: true,
	category: "image",
	required: {
		width: SIDE$1,
		height: SIDE$1,
		batch_size: ["INT", {
			default: 1,
			min: 1,
			max: 4096
		}],
		color: ["INT", {
			default: 0,
			min: 0,
			max: 16777215,
			step: 1,
			display: "color"
		}]
	},
	outputs: [{ type: "IMAGE" }],
	run({ width, height, batch_size: batch, color: colour }, context) {
		const image = newImage(context, {
			batch,
			height,
			width,
			channels: 3
		});
		const levels = [
			16,
			8,
			0
		].map((shift) => levelOf$1(colour >> shift & 255));
		for (let i = 0; i < image.data.length; i++) image.data[i] = levels[i % 3];
		return { outputs: [image] };
	}
});
const getImageSize = typedNode({
	...EXTRAS,
	name: "GetImageSize",
	displayName: "Get Image Size",
	description: "Tells how wide and how high a picture is, and how many pictures the batch holds.",
	category: "image",
	required: { image: ["IMAGE"] },
	hidden: { unique_id: "UNIQUE_ID" },
	outputs: [
		{
			type: "INT",
			name: "width"
		},
		{
			type: "INT",
			name: "height"
		},
		{
			type: "INT",
			name: "batch_size"
		}
	],
	run({ image: { width, height, batch } }, context) {
		context.text(`width: ${width}, height: ${height}\n batch size: ${batch}`);
		return { outputs: [
			width,
			height,
			batch
		] };
	}
});
const imageBatch = typedNode({
	...LEGACY,
	name: "ImageBatch",
	displayName: "Batch Images",
	category: "image",
	required: {
		image1: ["IMAGE"],
		image2: ["IMAGE"]
	},
	outputs: [{ type: "IMAGE" }],
	run({ image1, image2 }, context) {
		const channels = Math.max(image1.channels, image2.channels);
		const first = fillAlpha(context, image1, channels);
		const second = fillAlpha(context, image2, channels);
		const level = fitted(context, second, first, {
			method: "bilinear",
			crop: "center"
		});
		return { outputs: [concatenate(context, first, level)] };
	}
});
const concatenate = (context, first, second) => {
	const joined = newImage(context, {
		...first,
		batch: first.batch + second.batch
	});
	joined.data.set(first.data, 0);
	joined.data.set(second.data, first.data.length);
	return joined;
};
/** The nodes that make, measure and stack pictures. */
const BASIC_NODES = [
	emptyImage,
	getImageSize,
	imageBatch,
	typedNode({
		...EXTRAS,
		name: "RepeatImageBatch",
		category: "image/batch",
		required: {
			image: ["IMAGE"],
			amount: ["INT", {
				default: 1,
				min: 1,
				max: 4096
			}]
		},
		outputs: [{ type: "IMAGE" }],
		run({ image, amount }, context) {
			const repeated = newImage(context, {
				...image,
				batch: image.batch * amount
			});
			for (let i = 0; i < amount; i++) repeated.data.set(image.data, i * image.data.length);
			return { outputs: [repeated] };
		}
	}),
	typedNode({
		...EXTRAS,
		name: "ImageFromBatch",
		category: "image/batch",
		required: {
			image: ["IMAGE"],
			batch_index: ["INT", {
				default: 0,
				min: 0,
				max: 4095
			}],
			length: ["INT", {
				default: 1,
				min: 1,
				max: 4096
			}]
		},
		outputs: [{ type: "IMAGE" }],
		run({ image, batch_index: index, length }, context) {
			const first = Math.min(image.batch - 1, index);
			const batch = Math.min(image.batch - first, length);
			const taken = newImage(context, {
				...image,
				batch
			});
			for (let i = 0; i < batch; i++) frameOf(taken, i).set(frameOf(image, first + i));
			return { outputs: [taken] };
		}
	})
];
// src/nodes/image/compose-porter-duff.ts
const { fround: fround$4, max, min } = Math;
const clip$1 = (value) => min(1, max(0, value));
const complement = (alpha) => fround$4(1 - alpha);
const product = (one, other) => fround$4(one * other);
const sum = (one, other) => fround$4(one + other);
/** Returns the coverage of both layers together, counting the shared part once. */
const union = (one, other) => fround$4(sum(one, other) - product(one, other));
/** Returns the level of each layer where the other one is not. */
const disjoint = (source, destination, coverage) => sum(product(complement(coverage.destination), source), product(complement(coverage.source), destination));
const overlay$1 = (source, destination, coverage) => {
	if (2 * destination < coverage.destination) return product(fround$4(2 * source), destination);
	const shades = fround$4(2 * fround$4(coverage.destination - source));
	const both = product(coverage.source, coverage.destination);
	return fround$4(both - product(shades, fround$4(coverage.source - destination)));
};
/**
* The Porter–Duff operators and blend modes under their usual names, in single precision
* throughout.
*/
const MODES = {
	ADD: {
		alpha: (s, d) => clip$1(sum(s, d)),
		level: (s, d) => clip$1(sum(s, d))
	},
	CLEAR: {
		alpha: () => 0,
		level: () => 0
	},
	DARKEN: {
		alpha: union,
		level: (s, d, coverage) => sum(disjoint(s, d, coverage), min(s, d))
	},
	DST: {
		alpha: (_s, d) => d,
		level: (_s, d) => d
	},
	DST_ATOP: {
		alpha: (s) => s,
		level: (s, d, { source, destination }) => sum(product(source, d), product(complement(destination), s))
	},
	DST_IN: {
		alpha: product,
		level: (_s, d, { source }) => product(d, source)
	},
	DST_OUT: {
		alpha: (s, d) => product(complement(s), d),
		level: (_s, d, { source }) => product(complement(source), d)
	},
	DST_OVER: {
		alpha: (s, d) => sum(d, product(complement(d), s)),
		level: (s, d, { destination }) => sum(d, product(complement(destination), s))
	},
	LIGHTEN: {
		alpha: union,
		level: (s, d, coverage) => sum(disjoint(s, d, coverage), max(s, d))
	},
	MULTIPLY: {
		alpha: product,
		level: product
	},
	OVERLAY: {
		alpha: union,
		level: overlay$1
	},
	SCREEN: {
		alpha: union,
		level: union
	},
	SRC: {
		alpha: (s) => s,
		level: (s) => s
	},
	SRC_ATOP: {
		alpha: (_s, d) => d,
		level: (s, d, { source, destination }) => sum(product(destination, s), product(complement(source), d))
	},
	SRC_IN: {
		alpha: product,
		level: (s, _d, { destination }) => product(s, destination)
	},
	SRC_OUT: {
		alpha: (s, d) => product(complement(d), s),
		level: (s, _d, { destination }) => product(complement(destination), s)
	},
	SRC_OVER: {
		alpha: (s, d) => sum(s, product(complement(s), d)),
		level: (s, d, { source }) => sum(s, product(complement(source), d))
	},
	XOR: {
		alpha: (s, d) => sum(product(complement(d), s), product(complement(s), d)),
		level: disjoint
	}
};
/** The names in v1's order. */
const MODE_NAMES = Object.keys(MODES);
/** Below this coverage a pixel has no colour. */
const LEAST_ALPHA = fround$4(1e-5);
/** Composes two pictures whose masks say where they are transparent. */
const porterDuffImageComposite = typedNode({
	name: "PorterDuffImageComposite",
	displayName: "Porter-Duff Image Composite",
	category: "mask/compositing",
	pythonModule: "comfy_extras.nodes_compositing",
	style: "v3",
	required: {
		source: ["IMAGE", {}],
		source_alpha: ["MASK", {}],
		destination: ["IMAGE", {}],
		destination_alpha: ["MASK", {}],
		mode: ["COMBO", {
			default: "DST",
			multiselect: false,
			options: MODE_NAMES
		}]
	},
	outputs: [{ type: "IMAGE" }, { type: "MASK" }],
	run({ destination, ...inputs }, context) {
		const mode = entryOf(MODES, inputs.mode, ["KeyError", "There is no compositing mode"]);
		requireSameChannels(inputs.source, destination);
		const source = fitted(context, inputs.source, destination, FIT);
		const sourceMask = fittedMask(context, inputs.source_alpha, destination, FIT);
		const mask = fittedMask(context, inputs.destination_alpha, destination, FIT);
		const batch = Math.min(...[
			source,
			sourceMask,
			destination,
			mask
		].map((one) => one.batch));
		const image = newImage(context, {
			...destination,
			batch
		});
		const alpha = newMask(context, image);
		const { channels, width } = image;
		const [upper, lower] = [source.data, destination.data];
		const cover = {
			source: 0,
			destination: 0
		};
		for (let pixel = 0; pixel < alpha.data.length; pixel++) {
			if (pixel % width === 0) context.check();
			cover.source = fround$4(1 - sourceMask.data[pixel]);
			cover.destination = fround$4(1 - mask.data[pixel]);
			const covered = mode.alpha(cover.source, cover.destination);
			alpha.data[pixel] = 1 - covered;
			if (covered <= LEAST_ALPHA) continue;
			for (let i = pixel * channels; i < (pixel + 1) * channels; i++) {
				const above = fround$4(upper[i] * cover.source);
				const below = fround$4(lower[i] * cover.destination);
				const level = fround$4(mode.level(above, below, cover) / covered);
				image.data[i] = Math.min(1, Math.max(0, level));
			}
		}
		return { outputs: [image, alpha] };
	}
});
const requireSameChannels = (source, destination) => {
	if (source.channels === destination.channels) return;
	const counts = `source has ${source.channels} channels, destination ${destination.channels}`;
	throw new NodeFailure("AssertionError", `${counts}: they must have as many`);
};
/** v1 scales everything to the destination picture, bicubic, and keeps the middle. */
const FIT = {
	method: "bicubic",
	crop: "center"
};
// src/nodes/image/compose.ts
const { fround: fround$3 } = Math;
const imageCompositeMasked = typedNode({
	name: "ImageCompositeMasked",
	category: "image",
	pythonModule: "comfy_extras.nodes_mask",
	required: {
		destination: ["IMAGE"],
		source: ["IMAGE"],
		x: OFFSET,
		y: OFFSET,
		resize_source: ["BOOLEAN", { default: false }]
	},
	optional: { mask: ["MASK"] },
	outputs: [{ type: "IMAGE" }],
	run({ destination, source: given, x, y, resize_source: isResized, mask }, context) {
		requireChannels(["destination", destination], ["source", given]);
		const source = isResized ? fitted(context, given, destination, STRETCHED) : given;
		const result = copyOf(context, destination);
		const fittingMask = mask && fittedMask(context, mask, source, STRETCHED);
		composite(context, result, {
			source,
			at: {
				x,
				y
			},
			mask: fittingMask
		});
		return { outputs: [result] };
	}
});
/** Pictures and masks are stretched to the sides of the other one. */
const STRETCHED = {
	method: "bilinear",
	crop: "disabled"
};
/**
* Composes batches. A source or mask batch that is shorter than the target repeats; surplus
* pictures are ignored.
*/
const composite = (context, target, { source, at, mask }) => {
	eachCoveredRow(context, {
		target,
		source,
		at
	}, (row) => {
		let to = row.to * target.channels;
		let from = row.from(source) * source.channels;
		const maskFrom = mask ? row.from(mask) : 0;
		for (let x = 0; x < row.width; x++, to += target.channels, from += source.channels) {
			const share = mask ? mask.data[maskFrom + x] : 1;
			const rest = fround$3(1 - share);
			for (let c = 0; c < target.channels; c++) {
				const below = fround$3(rest * target.data[to + c]);
				target.data[to + c] = fround$3(share * source.data[from + c]) + below;
			}
		}
	});
};
const COMPOSITING = {
	category: "mask/compositing",
	pythonModule: "comfy_extras.nodes_compositing",
	style: "v3"
};
/** The nodes that lay pictures over one another, or handle their transparency. */
const COMPOSE_NODES = [
	imageCompositeMasked,
	porterDuffImageComposite,
	typedNode({
		...COMPOSITING,
		name: "JoinImageWithAlpha",
		displayName: "Join Image with Alpha",
		required: {
			image: ["IMAGE", {}],
			alpha: ["MASK", {}]
		},
		outputs: [{ type: "IMAGE" }],
		run({ image, alpha }, context) {
			const mask = fittedMask(context, alpha, image, STRETCHED);
			const colours = Math.min(3, image.channels);
			const batch = Math.min(image.batch, mask.batch);
			const joined = newImage(context, {
				...image,
				batch,
				channels: colours + 1
			});
			for (let i = 0, to = 0; to < joined.data.length; i++) {
				if (i % image.width === 0) context.check();
				const from = i * image.channels;
				for (let c = 0; c < colours; c++) joined.data[to++] = image.data[from + c];
				joined.data[to++] = 1 - mask.data[i];
			}
			return { outputs: [joined] };
		}
	}),
	typedNode({
		...COMPOSITING,
		name: "SplitImageWithAlpha",
		displayName: "Split Image with Alpha",
		required: { image: ["IMAGE", {}] },
		outputs: [{ type: "IMAGE" }, { type: "MASK" }],
		run({ image }, context) {
			const { channels, data } = image;
			const colours = Math.min(3, channels);
			const opaque = newImage(context, {
				...image,
				channels: colours
			});
			const mask = newMask(context, image);
			for (let i = 0, to = 0; i < mask.data.length; i++) {
				if (i % image.width === 0) context.check();
				for (let c = 0; c < colours; c++) opaque.data[to++] = data[i * channels + c];
				if (channels > 3) mask.data[i] = 1 - data[i * channels + 3];
			}
			return { outputs: [opaque, mask] };
		}
	})
];
// src/nodes/filters/palette.ts
const MOST_COLOURS = 65536;
/** Cuts the colours by the median, in the way of the original's imaging library. */
const medianCut = (pixels, wanted) => {
	const histogram = histogramOf(pixels);
	const root = {
		colours: Int32Array.from(histogram.colours.keys()),
		pixels: pixels.length / 3
	};
	splitBoxes(root, histogram, wanted);
	return averages(pixels, histogram, leavesOf(root));
};
const histogramOf = (pixels) => {
	for (let shift = 0;; shift++) {
		const histogram = countColours(pixels, shift);
		if (histogram.colours.length <= MOST_COLOURS) return histogram;
	}
};
const colourAt = (pixels, i, shift) => pixels[i] >> shift << 16 | pixels[i + 1] >> shift << 8 | pixels[i + 2] >> shift;
const countColours = (pixels, shift) => {
	const sorted = new Int32Array(pixels.length / 3);
	for (let i = 0; i < sorted.length; i++) sorted[i] = colourAt(pixels, i * 3, shift);
	sorted.sort();
	const firsts = [];
	for (let i = 0; i < sorted.length; i++) if (sorted[i] !== sorted[i - 1]) firsts.push(i);
	return {
		shift,
		colours: Int32Array.from(firsts, (first) => sorted[first]),
		counts: Float64Array.from(firsts, (first, i) => (firsts[i + 1] ?? sorted.length) - first)
	};
};
/**
* Cuts the fullest box again and again, until there are enough boxes or each has a single colour.
*/
const splitBoxes = (root, histogram, wanted) => {
	const heap = [root];
	for (let boxes = 1; boxes < wanted; boxes++) {
		let fullest = takeFullest(heap);
		while (fullest && fullest.colours.length === 1) fullest = takeFullest(heap);
		if (!fullest) return;
		fullest.children = cut(fullest, histogram);
		for (const child of fullest.children) addBox(heap, child);
	}
};
/** Adds a box to a binary heap. The order of two equally full boxes decides the palette. */
const addBox = (heap, box) => {
	let place = heap.length;
	while (place > 0) {
		const above = place - 1 >> 1;
		if (box.pixels <= heap[above].pixels) break;
		heap[place] = heap[above];
		place = above;
	}
	heap[place] = box;
};
const takeFullest = (heap) => {
	const fullest = heap[0];
	const last = heap.pop();
	if (heap.length === 0 || !last) return fullest;
	let place = 0;
	for (;;) {
		let below = place * 2 + 1;
		if (below >= heap.length) break;
		const next = heap[below + 1];
		if (next && heap[below].pixels < next.pixels) below++;
		if (last.pixels > heap[below].pixels) break;
		heap[place] = heap[below];
		place = below;
	}
	heap[place] = last;
	return fullest;
};
/** The shift and weight of red, green and blue: the axis that looks longest to the eye is cut. */
const AXES = [
	{
		shift: 16,
		weight: 77
	},
	{
		shift: 8,
		weight: 150
	},
	{
		shift: 0,
		weight: 29
	}
];
const cut = (box, histogram) => {
	const lengths = AXES.map(({ shift, weight }) => weight * spread(box, histogram, shift));
	const axis = AXES[lengths.indexOf(Math.max(...lengths))] ?? AXES[0];
	const level = cutLevel(box, histogram, axis.shift);
	const isUpper = (entry) => levelOf(histogram, entry, axis.shift) >= level;
	const upper = box.colours.filter(isUpper);
	const lower = box.colours.filter((entry) => !isUpper(entry));
	const upperPixels = upper.reduce((sum, entry) => sum + histogram.counts[entry], 0);
	return [{
		colours: upper,
		pixels: upperPixels
	}, {
		colours: lower,
		pixels: box.pixels - upperPixels
	}];
};
const levelOf = (histogram, entry, shift) => histogram.colours[entry] >> shift & 255;
const spread = (box, histogram, shift) => {
	let [low, high] = [255, 0];
	for (const entry of box.colours) {
		const level = levelOf(histogram, entry, shift);
		if (level < low) low = level;
		if (level > high) high = level;
	}
	return high - low;
};
/**
* Returns the level from which colours belong to the upper half. It goes down until half the pixels
* are passed.
*/
const cutLevel = (box, histogram, shift) => {
	const counts = /* @__PURE__ */ new Float64Array(256);
	for (const entry of box.colours) {
		const level = levelOf(histogram, entry, shift);
		counts[level] = counts[level] + histogram.counts[entry];
	}
	const lowest = counts.findIndex((count) => count > 0);
	let passed = 0;
	for (let level = 255; level > lowest; level--) {
		passed += counts[level];
		if (passed * 2 > box.pixels) return level;
	}
	return lowest + 1;
};
const leavesOf = (box) => box.children?.flatMap(leavesOf) ?? [box];
const averages = (pixels, histogram, boxes) => {
	const boxOf = /* @__PURE__ */ new Map();
	for (const [index, box] of boxes.entries()) for (const entry of box.colours) boxOf.set(histogram.colours[entry], index);
	const sums = new Float64Array(boxes.length * 3);
	for (let i = 0; i < pixels.length; i += 3) {
		const box = boxOf.get(colourAt(pixels, i, histogram.shift));
		for (let c = 0; c < 3; c++) sums[box * 3 + c] = sums[box * 3 + c] + pixels[i + c];
	}
	const data = Uint8Array.from(sums, (sum, i) => Math.floor(.5 + sum / boxes[Math.floor(i / 3)].pixels));
	return {
		size: boxes.length,
		data
	};
};
/**
* Finds the nearest palette entry by the six highest bits of each channel, as the original does.
*/
const nearestIn = (palette) => {
	const known = (/* @__PURE__ */ new Int16Array(262144)).fill(-1);
	return (red, green, blue) => {
		const slot = red >> 2 << 12 | green >> 2 << 6 | blue >> 2;
		const found = known[slot];
		if (found >= 0) return found;
		return known[slot] = search(palette, red & 252, green & 252, blue & 252);
	};
};
const search = ({ size, data }, red, green, blue) => {
	let [best, least] = [0, Infinity];
	for (let i = 0; i < size; i++) {
		const [r, g, b] = [
			data[i * 3] - red,
			data[i * 3 + 1] - green,
			data[i * 3 + 2] - blue
		];
		const distance = r * r + g * g + b * b;
		if (distance < least) [best, least] = [i, distance];
	}
	return best;
};
// src/nodes/filters/quantize.ts
const plain = (context, { width, height, data }, palette) => {
	const nearest = nearestIn(palette);
	const result = new Uint8Array(data.length);
	for (let y = 0; y < height; y++) {
		context.check();
		for (let i = y * width * 3; i < (y + 1) * width * 3; i += 3) {
			const entry = nearest(data[i], data[i + 1], data[i + 2]);
			for (let c = 0; c < 3; c++) result[i + c] = palette.data[entry * 3 + c];
		}
	}
	return result;
};
const clip = (level) => Math.min(255, Math.max(0, level));
/** Dithers by Floyd–Steinberg in whole sixteenths, left to right on every row. */
const diffused = (context, { width, height, data }, palette) => {
	const nearest = nearestIn(palette);
	const result = new Uint8Array(data.length);
	const below = new Int32Array((width + 1) * 3);
	for (let y = 0; y < height; y++) {
		context.check();
		const state = {
			right: [
				0,
				0,
				0
			],
			corner: [
				0,
				0,
				0
			],
			last: [
				0,
				0,
				0
			]
		};
		for (let x = 0; x < width; x++) {
			const i = (y * width + x) * 3;
			const level = (c) => clip(data[i + c] + Math.trunc((state.right[c] + below[(x + 1) * 3 + c]) / 16));
			const wanted = [
				level(0),
				level(1),
				level(2)
			];
			const entry = nearest(...wanted);
			for (let c = 0; c < 3; c++) {
				const taken = palette.data[entry * 3 + c];
				const error = wanted[c] - taken;
				result[i + c] = taken;
				below[x * 3 + c] = error * 3 + state.corner[c];
				state.corner[c] = error * 5 + state.last[c];
				state.last[c] = error;
				state.right[c] = error * 7;
			}
		}
		below.set([
			state.corner[2],
			state.last[2],
			state.last[2]
		], width * 3);
	}
	return result;
};
/** Dithers in order: a repeating pattern of offsets is added before the nearest colour is taken. */
const ordered = (side) => (context, picture, palette) => {
	const { width, data } = picture;
	const pattern = bayer(side).map((value) => value * (512 / palette.size) + .5);
	const shifted = data.map((level, i) => {
		const pixel = Math.floor(i / 3);
		const [x, y] = [pixel % width, Math.floor(pixel / width)];
		return Math.trunc(clip(Math.fround(level + pattern[y % side * side + x % side])));
	});
	return plain(context, {
		...picture,
		data: shifted
	}, palette);
};
/** Returns the Bayer matrix of that side, with values around zero, built by doubling. */
const bayer = (side) => {
	if (side === 1) return /* @__PURE__ */ new Float32Array(1);
	const half = side / 2;
	const smaller = bayer(half);
	const cells = side * side;
	return Float32Array.from({ length: cells }, (_, i) => {
		const [x, y] = [i % side, Math.floor(i / side)];
		const offset = [
			-1.5,
			.5,
			1.5,
			-.5
		][Number(y >= half) * 2 + Number(x >= half)];
		return (cells * smaller[y % half * half + x % half] + offset) / cells;
	});
};
const DITHERERS = {
	none: plain,
	"floyd-steinberg": diffused,
	"bayer-2": ordered(2),
	"bayer-4": ordered(4),
	"bayer-8": ordered(8),
	"bayer-16": ordered(16)
};
/** Cuts off fractions without clipping first: above 1 the byte wraps, as in the original's cast. */
const truncateToBytes = (levels) => {
	const bytes = new Uint8Array(levels.length);
	for (let i = 0; i < levels.length; i++) bytes[i] = Math.fround(levels[i] * 255);
	return bytes;
};
/** Reduces the number of colours. */
const imageQuantize = typedNode({
	name: "ImageQuantize",
	category: "image/postprocessing",
	pythonModule: "comfy_extras.nodes_post_processing",
	style: "v3",
	required: {
		image: ["IMAGE", {}],
		colors: ["INT", {
			default: 256,
			min: 1,
			max: 256,
			step: 1
		}],
		dither: ["COMBO", {
			multiselect: false,
			options: Object.keys(DITHERERS)
		}]
	},
	outputs: [{ type: "IMAGE" }],
	run({ image, colors: colours, dither: word }, context) {
		const dither = entryOf(DITHERERS, word, ["ValueError", "Unknown dithering:"]);
		if (image.channels !== 3) throw new NodeFailure("ValueError", `ImageQuantize needs 3 channels, got ${image.channels}`);
		const result = newImage(context, image);
		for (let index = 0; index < image.batch; index++) {
			const data = truncateToBytes(frameOf(image, index));
			const picture = {
				width: image.width,
				height: image.height,
				data
			};
			fromBytes(dither(context, picture, medianCut(data, colours)), frameOf(result, index));
		}
		return { outputs: [result] };
	}
});
// src/nodes/filters/convolve.ts
const { fround: fround$2 } = Math;
const LANES = 8;
const STREAMS = 4;
const BLOCK = 16;
/**
* Returns a sum in single precision, in the order of the original's vector code: first the values
* that do not fill eight lanes, then lane by lane. Its last bit decides if white stays white when
* saved.
*/
const sumInLanes = (values) => {
	const rows = Math.floor(values.length / LANES);
	let sum = 0;
	for (let i = rows * LANES; i < values.length; i++) sum = fround$2(sum + values[i]);
	for (let lane = 0; lane < LANES; lane++) {
		const column = values.filter((_, i) => i % LANES === lane && i < rows * LANES);
		sum = fround$2(sum + sumOfColumn(column));
	}
	return sum;
};
/**
* Sums one lane: four interleaved streams of blocks of sixteen. The remaining values join the first
* stream.
*/
const sumOfColumn = (column) => {
	const even = Math.floor(column.length / STREAMS) * STREAMS;
	const [open, closed] = [new Float32Array(STREAMS), new Float32Array(STREAMS)];
	for (let i = 0; i < even; i++) {
		const stream = i % STREAMS;
		open[stream] = open[stream] + column[i];
		if (Math.floor(i / STREAMS) % BLOCK !== 15) continue;
		closed[stream] = closed[stream] + open[stream];
		open[stream] = 0;
	}
	const streams = open.map((value, i) => value + closed[i]);
	for (const rest of column.subarray(even)) streams[0] = streams[0] + rest;
	return streams.reduce((sum, value) => fround$2(sum + value));
};
/**
* Returns v1's Gaussian. Distances run from -1 to 1 over the whole kernel, so sigma is in units of
* the radius.
*/
const gaussian = (radius, sigma) => {
	const side = 2 * radius + 1;
	const places = placesOf(side);
	const width = fround$2(2 * sigma * sigma);
	const weights = new Float32Array(side * side);
	for (let i = 0; i < weights.length; i++) {
		const [x, y] = [places[i % side], places[Math.floor(i / side)]];
		const distance = fround$2(Math.sqrt(fround$2(fround$2(x * x) + fround$2(y * y))));
		weights[i] = Math.exp(fround$2(-fround$2(distance * distance) / width));
	}
	const sum = sumInLanes(weights);
	const profile = Float64Array.from(places, (x) => Math.exp(-(x * x) / width));
	return {
		side,
		weights: weights.map((weight) => weight / sum),
		profile,
		gain: 1 / sum,
		own: 0
	};
};
/** Returns places evenly from -1 to 1, each half counted from its own end. */
const placesOf = (side) => {
	const step = fround$2(2 / (side - 1));
	return Float32Array.from({ length: side }, (_, i) => i < side / 2 ? fround$2(step * i) - 1 : 1 - fround$2(step * (side - 1 - i)));
};
/** Returns the kernel that adds `alpha` times ten of the part that blurring removes. */
const sharpening = (blur, alpha) => {
	const strength = fround$2(-alpha * 10);
	const weights = blur.weights.map((weight) => weight * strength);
	const sum = sumInLanes(weights);
	const centre = (weights.length - 1) / 2;
	weights[centre] = fround$2(fround$2(weights[centre] - sum) + 1);
	return {
		...blur,
		weights,
		gain: blur.gain * strength,
		own: 1 - sum
	};
};
/**
* Up to this many products (about two seconds) every weight is applied; above, rows and columns
* separately.
*/
const DIRECT_PRODUCTS = 1e9;
/**
* Weighs the neighbourhood of every pixel. It is mirrored at the borders, without repeating the
* edge pixel.
*/
const convolve = (context, image, kernel) => {
	const radius = (kernel.side - 1) / 2;
	if (radius >= image.width || radius >= image.height) {
		const message = `A radius of ${radius} needs ${`a picture larger than ${radius} pixels on both sides`}; this one is ${`${image.width} × ${image.height}`}`;
		throw new NodeFailure("RuntimeError", message);
	}
	return image.data.length * kernel.weights.length <= DIRECT_PRODUCTS ? convolveDirectly(context, image, kernel) : convolveSeparably(context, image, kernel);
};
/**
* Makes every product in the original's order: equal to the last bit.
* @internal
*/
const convolveDirectly = (context, image, kernel) => {
	const result = newImage(context, image);
	eachRow(context, image, (row) => convolveRow(image, result, kernel, row));
	return result;
};
const convolveRow = (image, result, kernel, row) => {
	const { width, height, channels } = image;
	const radius = (kernel.side - 1) / 2;
	const top = Math.floor(row / height) * height;
	const target = result.data.subarray(row * width * channels, (row + 1) * width * channels);
	const line = new Float32Array((width + 2 * radius) * channels);
	for (let ky = 0; ky < kernel.side; ky++) {
		const y = reflect(row % height + ky - radius, height);
		mirrorLine(image, line, (top + y) * width * channels, radius);
		for (let kx = 0; kx < kernel.side; kx++) {
			const weight = kernel.weights[ky * kernel.side + kx];
			const shift = kx * channels;
			for (let i = 0; i < target.length; i++) target[i] = line[i + shift] * weight + target[i];
		}
	}
};
const reflect = (i, length) => {
	if (i < 0) return -i;
	return i < length ? i : 2 * (length - 1) - i;
};
const mirrorLine = ({ width, channels, data }, line, from, radius) => {
	line.set(data.subarray(from, from + width * channels), radius * channels);
	for (let x = 1; x <= radius; x++) for (let c = 0; c < channels; c++) {
		line[(radius - x) * channels + c] = data[from + x * channels + c];
		line[(radius + width - 1 + x) * channels + c] = data[from + (width - 1 - x) * channels + c];
	}
};
/**
* Convolves rows, then columns: the same picture except for rounding, with a fraction of the work.
* White is forced to the result of the direct way; otherwise plain white would fall by one level
* when saved.
* @internal
*/
const convolveSeparably = (context, image, kernel) => {
	const wide = newImage(context, image);
	const result = newImage(context, image);
	const flat = kernel.profile.reduce((sum, weight) => sum + weight, 0) ** 2;
	const white = kernel.weights.reduce((sum, weight) => Math.fround(sum + weight), 0);
	const parts = {
		...kernel,
		gain: (white - kernel.own) / flat
	};
	eachRow(context, image, (row) => blurAcross(image, wide, parts, row));
	eachRow(context, image, (row) => blurDown([image, wide], result, parts, row));
	return result;
};
const blurAcross = (image, result, kernel, row) => {
	const radius = (kernel.side - 1) / 2;
	const { width, channels } = image;
	const line = new Float32Array((width + 2 * radius) * channels);
	mirrorLine(image, line, row * width * channels, radius);
	for (let i = 0; i < width * channels; i++) {
		let sum = 0;
		for (let k = 0; k < kernel.side; k++) sum += line[i + k * channels] * kernel.profile[k];
		result.data[row * width * channels + i] = sum;
	}
};
const blurDown = ([image, wide], result, kernel, row) => {
	const radius = (kernel.side - 1) / 2;
	const length = image.width * image.channels;
	const top = Math.floor(row / image.height) * image.height;
	const sums = new Float64Array(length);
	for (let k = 0; k < kernel.side; k++) {
		const from = (top + reflect(row % image.height + k - radius, image.height)) * length;
		const weight = kernel.profile[k];
		for (let i = 0; i < length; i++) sums[i] = sums[i] + wide.data[from + i] * weight;
	}
	for (let i = 0; i < length; i++) {
		const itself = kernel.own * image.data[row * length + i];
		result.data[row * length + i] = sums[i] * kernel.gain + itself;
	}
};
// src/nodes/filters/filter-nodes.ts
const POSTPROCESSING = {
	category: "image/postprocessing",
	pythonModule: "comfy_extras.nodes_post_processing",
	style: "v3",
	outputs: [{ type: "IMAGE" }]
};
const { fround: fround$1 } = Math;
const screen = (a, b) => fround$1(1 - fround$1(fround$1(1 - a) * fround$1(1 - b)));
const overlay = (a, b) => a <= .5 ? fround$1(fround$1(2 * a) * b) : fround$1(1 - fround$1(fround$1(2 * fround$1(1 - a)) * fround$1(1 - b)));
const softLight = (a, b) => {
	const slope = fround$1(fround$1(2 * b) - 1);
	if (b > .5) return fround$1(a + fround$1(slope * fround$1(softLightCurve(a) - a)));
	return fround$1(a - fround$1(fround$1(fround$1(1 - fround$1(2 * b)) * a) * fround$1(1 - a)));
};
const softLightCurve = (a) => a <= .25 ? fround$1(fround$1(fround$1(fround$1(fround$1(16 * a) - 12) * a) + 4) * a) : fround$1(Math.sqrt(a));
/** v1's blend modes in its order. `difference` is signed; values below 0 are cut off. */
const MIXES = {
	normal: (_a, b) => b,
	multiply: (a, b) => fround$1(a * b),
	screen,
	overlay,
	soft_light: softLight,
	difference: (a, b) => fround$1(a - b)
};
const requireSameBatch = (first, second) => {
	const [a, b] = [first.batch, second.batch];
	if (a === b || a === 1 || b === 1) return Math.max(a, b);
	throw new NodeFailure("RuntimeError", `Cannot blend a batch of ${a} with a batch of ${b}`);
};
const blend = (context, [first, second], mix, factor) => {
	const result = newImage(context, {
		...first,
		batch: requireSameBatch(first, second)
	});
	const [keep, take] = [fround$1(1 - factor), fround$1(factor)];
	const length = first.width * first.channels;
	eachRow(context, result, (row) => {
		const [line, frame] = [row % result.height, Math.floor(row / result.height)];
		const a = (frame % first.batch * first.height + line) * length;
		const b = (frame % second.batch * second.height + line) * second.width * second.channels;
		for (let i = 0; i < length; i++) {
			const channel = i % first.channels;
			const one = first.data[a + i];
			const other = second.data[b + (i - channel) / first.channels * second.channels + channel];
			const level = fround$1(one * keep) + fround$1(mix(one, other) * take);
			result.data[row * length + i] = Math.min(Math.max(level, 0), 1);
		}
	});
	return result;
};
/** Mixes two pictures. */
const imageBlend = typedNode({
	...POSTPROCESSING,
	name: "ImageBlend",
	required: {
		image1: ["IMAGE", {}],
		image2: ["IMAGE", {}],
		blend_factor: ["FLOAT", {
			default: .5,
			min: 0,
			max: 1,
			step: .01
		}],
		blend_mode: ["COMBO", {
			multiselect: false,
			options: Object.keys(MIXES)
		}]
	},
	run({ image1: first, image2, blend_factor: factor, blend_mode: mode }, context) {
		const mix = entryOf(MIXES, mode, ["ValueError", "Unsupported blend mode:"]);
		requireChannels(["image1", first], ["image2", image2]);
		const second = fitted(context, image2, first, {
			method: "bicubic",
			crop: "center"
		});
		return { outputs: [blend(context, [first, second], mix, factor)] };
	}
});
/** Blurs with a Gaussian kernel. */
const imageBlur = typedNode({
	...POSTPROCESSING,
	name: "ImageBlur",
	required: {
		image: ["IMAGE", {}],
		blur_radius: ["INT", {
			default: 1,
			min: 1,
			max: 31,
			step: 1
		}],
		sigma: ["FLOAT", {
			default: 1,
			min: .1,
			max: 10,
			step: .1
		}]
	},
	run({ image, blur_radius: radius, sigma }, context) {
		if (radius === 0) return { outputs: [image] };
		return { outputs: [convolve(context, image, gaussian(radius, sigma))] };
	}
});
/** Sharpens: adds the difference between the picture and its blur, and clips. */
const imageSharpen = typedNode({
	...POSTPROCESSING,
	name: "ImageSharpen",
	required: {
		image: ["IMAGE", {}],
		sharpen_radius: ["INT", {
			default: 1,
			min: 1,
			max: 31,
			step: 1
		}],
		sigma: ["FLOAT", {
			default: 1,
			min: .1,
			max: 10,
			step: .01
		}],
		alpha: ["FLOAT", {
			default: 1,
			min: 0,
			max: 5,
			step: .01
		}]
	},
	run({ image, sharpen_radius: radius, sigma, alpha }, context) {
		if (radius === 0) return { outputs: [image] };
		const result = convolve(context, image, sharpening(gaussian(radius, sigma), alpha));
		for (let i = 0; i < result.data.length; i++) result.data[i] = Math.min(Math.max(result.data[i], 0), 1);
		return { outputs: [result] };
	}
});
/** The nodes that change a picture's colours and keep its size. */
const FILTER_NODES = [
	typedNode({
		name: "ImageInvert",
		displayName: "Invert Image",
		category: "image",
		pythonModule: "nodes",
		required: { image: ["IMAGE"] },
		outputs: [{ type: "IMAGE" }],
		run({ image }, context) {
			const inverted = newImage(context, image);
			for (let i = 0; i < image.data.length; i++) inverted.data[i] = 1 - image.data[i];
			return { outputs: [inverted] };
		}
	}),
	imageBlend,
	imageBlur,
	imageSharpen,
	imageQuantize
];
// src/nodes/codecs/png-chunks.ts
const SIGNATURE = Buffer.from("89504e470d0a1a0a", "hex");
function isPng(bytes) {
	return bytes.length > SIGNATURE.length && SIGNATURE.equals(bytes.subarray(0, SIGNATURE.length));
}
/**
* Returns the chunks of a PNG file in order. An incomplete last chunk is returned as far as it
* goes.
*/
function readPngChunks(bytes) {
	const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
	const chunks = [];
	let at = SIGNATURE.length;
	while (at + 8 <= bytes.length) {
		const end = at + 8 + view.getUint32(at);
		const type = Buffer.from(bytes.subarray(at + 4, at + 8)).toString("latin1");
		chunks.push({
			type,
			data: bytes.subarray(at + 8, end)
		});
		if (type === "IEND") break;
		at = end + 4;
	}
	return chunks;
}
/** Writes a PNG file of these chunks, with their checksums. */
function writePng(chunks) {
	return Buffer.concat([SIGNATURE, ...chunks.flatMap(chunkParts)]);
}
/** Returns a chunk with a key, a zero byte and a text, as in `tEXt`. */
function textChunk(type, key, text) {
	return {
		type,
		data: Buffer.from(`${key}\0${text}`, "latin1")
	};
}
function chunkParts({ type, data }) {
	const head = Buffer.alloc(8);
	head.writeUInt32BE(data.length);
	head.write(type, 4, "latin1");
	const tail = Buffer.alloc(4);
	tail.writeUInt32BE(crc32(data, crc32(head.subarray(4))));
	return [
		head,
		data,
		tail
	];
}
// src/nodes/codecs/decode-still.ts
/** The most pixels that one file may decode to, all its frames together. */
const MAX_PIXELS = 67108864;
/** Refuses a size above the limit before anything is decoded. */
function refuseTooManyPixels(pixels) {
	if (pixels > MAX_PIXELS) throw new OutOfMemory(`the image has ${pixels} pixels, more than the ${MAX_PIXELS} that are decoded`);
}
/**
* Returns the pixels with an alpha value each, opaque where the picture has none; or without alpha.
*/
function pixelsWith(wanted, { bytes, channels }) {
	if (channels === wanted) return bytes;
	const pixels = new Uint8Array(bytes.length / channels * wanted).fill(255);
	for (let from = 0, to = 0; from < bytes.length; from += channels, to += wanted) {
		pixels[to] = bytes[from];
		pixels[to + 1] = bytes[from + 1];
		pixels[to + 2] = bytes[from + 2];
	}
	return pixels;
}
/**
* v1 loads an incomplete file as far as it goes, and applies no colour profile. The pixels are
* counted below.
*/
const OPTIONS = {
	failOn: "none",
	ignoreIcc: true,
	limitInputPixels: false
};
/** Decodes an ordinary still image: any format sharp reads, Exif orientation applied. */
async function decodeStill(bytes) {
	const { default: sharp } = await import("sharp");
	const image = sharp(completed(bytes), OPTIONS);
	const { width, height, hasAlpha, space } = await image.metadata();
	refuseTooManyPixels(width * height);
	if (space === "cmyk") return decodeInks(image.autoOrient());
	const upright = image.autoOrient();
	const { data, info } = await (hasAlpha ? upright.ensureAlpha() : upright.removeAlpha()).raw().toBuffer({ resolveWithObject: true });
	return {
		width: info.width,
		height: info.height,
		hasAlpha: hasAlpha && !hasColourKey(bytes),
		channels: hasAlpha ? 4 : 3,
		bytes: data
	};
}
/** Converts CMYK as v1 does: by arithmetic, without a colour profile. */
async function decodeInks(image) {
	const { data, info } = await image.pipelineColourspace("cmyk").toColourspace("cmyk").raw().toBuffer({ resolveWithObject: true });
	const bytes = new Uint8Array(info.width * info.height * 3);
	for (let i = 0, from = 0; i < bytes.length; i += 3, from += info.channels) {
		const light = 255 - (data[from + 3] ?? 0);
		for (let ink = 0; ink < 3; ink++) {
			const product = (data[from + ink] ?? 0) * light + 128;
			bytes[i + ink] = light - ((product >> 8) + product >> 8);
		}
	}
	return {
		width: info.width,
		height: info.height,
		hasAlpha: false,
		channels: 3,
		bytes
	};
}
/** Decodes an animation. sharp stacks its composed frames into one tall picture. */
async function decodePages(bytes) {
	const { default: sharp } = await import("sharp");
	const image = sharp(bytes, {
		...OPTIONS,
		animated: true
	});
	const { width, height, pageHeight = height } = await image.metadata();
	refuseTooManyPixels(width * height);
	const data = await image.ensureAlpha().raw().toBuffer();
	const hasAlpha = hasTransparentPixel(data);
	const size = width * pageHeight * 4;
	return Array.from({ length: Math.floor(height / pageHeight) }, (_, i) => ({
		width,
		height: pageHeight,
		hasAlpha,
		channels: 4,
		bytes: data.subarray(i * size, (i + 1) * size)
	}));
}
/** Completes a PNG that was cut off. Otherwise the decoder would not return its rows. */
function completed(bytes) {
	const chunks = isPng(bytes) ? readPngChunks(bytes) : [];
	if (chunks.length === 0 || chunks.at(-1)?.type === "IEND") return bytes;
	return writePng([...chunks, {
		type: "IEND",
		data: /* @__PURE__ */ new Uint8Array()
	}]);
}
/**
* True for a grey or RGB PNG whose tRNS names one transparent colour: v1 sees no alpha band there.
*/
function hasColourKey(bytes) {
	const colourType = isPng(bytes) ? bytes[25] : void 0;
	return colourType === 0 || colourType === 2;
}
/** True when a pixel is transparent. GIF and animated WEBP always decode to four channels. */
function hasTransparentPixel(rgba) {
	for (let i = 3; i < rgba.length; i += 4) if (rgba[i] !== 255) return true;
	return false;
}
/** The length of the header that holds the sizes in OS/2 files. */
const OS2_HEADER_BYTES = 12;
/** Decodes a Windows bitmap, which sharp cannot. */
async function decodeBmp(bytes) {
	const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
	const [columns, rows] = view.getUint32(14, true) === OS2_HEADER_BYTES ? [view.getUint16(18, true), view.getUint16(20, true)] : [view.getUint32(18, true), Math.abs(view.getInt32(22, true))];
	refuseTooManyPixels(columns * rows);
	const { decode } = await import("@cwasm/nsbmp");
	const { width, height, data } = decode(bytes);
	return {
		width,
		height,
		hasAlpha: false,
		channels: 4,
		bytes: new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
	};
}
// src/nodes/codecs/decode.ts
/**
* The formats are recognised by content, never by name. SVG is left out on purpose: v1 does not
* accept it as an image.
*/
const SIGNATURES = [
	["png", /^\x89PNG\r\n/],
	["jpeg", /^\xff\xd8\xff/],
	["webp", /^RIFF[^]{4}WEBP/],
	["gif", /^GIF8[79]a/],
	["bmp", /^BM/],
	["tiff", /^(II\*\0|MM\0\*)/],
	["avif", /^[^]{4}ftypavi[fs]/]
];
/** Returns the format of a picture that can be decoded. A document or an SVG has none. */
function pictureFormatOf(bytes) {
	const head = Buffer.from(bytes.subarray(0, 16)).toString("latin1");
	return SIGNATURES.find(([, pattern]) => pattern.test(head))?.[0];
}
/** Decodes the first picture of a file, upright. */
function decodeFirst(file) {
	return identified(file, async (format) => format === "bmp" ? decodeBmp(file.bytes) : decodeStill(file.bytes));
}
/** Decodes every frame of a file in order, those of animations composed; a still file has one. */
function decodeFrames(file) {
	return identified(file, async (format) => {
		if (format === "bmp") return [await decodeBmp(file.bytes)];
		if (format === "png" && isApng(file.bytes)) return decodeApng(file.bytes);
		if (format === "gif" || format === "webp") return decodeAnimation(file.bytes);
		return [await decodeStill(file.bytes)];
	});
}
async function decodeAnimation(bytes) {
	const { default: sharp } = await import("sharp");
	const { pages = 1 } = await sharp(bytes).metadata();
	return pages > 1 ? decodePages(bytes) : [await decodeStill(bytes)];
}
async function identified(file, decode) {
	const format = pictureFormatOf(file.bytes);
	if (format === void 0) throw unidentified(file);
	try {
		return await decode(format);
	} catch (error) {
		throw error instanceof OutOfMemory ? error : unidentified(file, { cause: error });
	}
}
/** Returns v1's error for a file that is not an image. */
function unidentified(file, options) {
	return new NodeFailure("PIL.UnidentifiedImageError", `cannot identify image file '${file.name}'`, options);
}
const DISPOSE = {
	none: 0,
	background: 1,
	previous: 2
};
const BLEND_OVER = 1;
/** True for an animated PNG file. */
function isApng(bytes) {
	return isPng(bytes) && readPngChunks(bytes).some(({ type }) => type === "acTL");
}
/** Returns the composed frames of an animated PNG. sharp sees only its first picture. */
async function decodeApng(bytes) {
	const chunks = readPngChunks(bytes);
	const header = chunks[0]?.data ?? /* @__PURE__ */ new Uint8Array();
	const { width, height } = sizeAt(header, 0);
	const frames = readFrames(chunks);
	if (frames.length === 0) return [await decodeStill(bytes)];
	refuseTooManyPixels(width * height * frames.length);
	const shared = chunks.filter(({ type }) => type === "PLTE" || type === "tRNS");
	let canvas = new Uint8Array(width * height * 4);
	const pictures = [];
	for (const frame of frames) {
		const source = await decodeStill(frameFile(header, shared, frame));
		const shown = drawFrame(canvas, width, frame, pixelsWith(4, source));
		pictures.push({
			width,
			height,
			hasAlpha: source.hasAlpha,
			channels: 4,
			bytes: opaqueUnlessAlpha(shown, source)
		});
		canvas = disposeFrame(canvas, shown, width, frame);
	}
	return pictures;
}
/**
* Reads the frames. An IDAT before the first fcTL is not a frame, but the still picture for viewers
* without animation.
*/
function readFrames(chunks) {
	const frames = [];
	for (const { type, data } of chunks) if (type === "fcTL") frames.push(readControl(data));
	else if (type === "IDAT") frames.at(-1)?.parts.push(data);
	else if (type === "fdAT") frames.at(-1)?.parts.push(data.subarray(4));
	return frames.filter(({ parts }) => parts.length > 0);
}
function readControl(data) {
	const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
	return {
		...sizeAt(data, 4),
		left: view.getUint32(12),
		top: view.getUint32(16),
		dispose: view.getUint8(24),
		blend: view.getUint8(25),
		parts: []
	};
}
function sizeAt(data, offset) {
	const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
	return {
		width: view.getUint32(offset),
		height: view.getUint32(offset + 4)
	};
}
/** Returns the frame as a PNG file of its own, so that the ordinary decoder can read it. */
function frameFile(header, shared, frame) {
	const own = Buffer.from(header);
	own.writeUInt32BE(frame.width, 0);
	own.writeUInt32BE(frame.height, 4);
	const data = {
		type: "IDAT",
		data: Buffer.concat(frame.parts)
	};
	return writePng([
		{
			type: "IHDR",
			data: own
		},
		...shared,
		data,
		{
			type: "IEND",
			data: Buffer.alloc(0)
		}
	]);
}
function drawFrame(canvas, canvasWidth, frame, rgba) {
	const result = canvas.slice();
	for (let y = 0; y < frame.height; y++) {
		const from = y * frame.width * 4;
		const row = rgba.subarray(from, from + frame.width * 4);
		const at = ((frame.top + y) * canvasWidth + frame.left) * 4;
		if (frame.blend === BLEND_OVER) blendRow(result.subarray(at, at + row.length), row);
		else result.set(row, at);
	}
	return result;
}
function blendRow(under, over) {
	for (let i = 0; i < over.length; i += 4) {
		const alpha = (over[i + 3] ?? 0) / 255;
		const below = (under[i + 3] ?? 0) / 255 * (1 - alpha);
		const total = alpha + below;
		for (let c = i; c < i + 3; c++) if (total > 0) under[c] = Math.round(((over[c] ?? 0) * alpha + (under[c] ?? 0) * below) / total);
		under[i + 3] = Math.round(total * 255);
	}
}
function disposeFrame(before, shown, canvasWidth, frame) {
	if (frame.dispose === DISPOSE.previous) return before;
	if (frame.dispose !== DISPOSE.background) return shown;
	const result = shown.slice();
	for (let y = 0; y < frame.height; y++) {
		const at = ((frame.top + y) * canvasWidth + frame.left) * 4;
		result.fill(0, at, at + frame.width * 4);
	}
	return result;
}
/** Makes a picture without an alpha channel opaque: areas that no frame has covered are black. */
function opaqueUnlessAlpha(shown, source) {
	if (source.hasAlpha) return shown;
	const result = shown.slice();
	for (let i = 3; i < result.length; i += 4) result[i] = 255;
	return result;
}
// src/nodes/image/load.ts
/** v1's mask for a file without alpha, whatever the size of the picture. */
const NO_MASK = {
	height: 64,
	width: 64
};
const CHANNELS$2 = [
	"alpha",
	"red",
	"green",
	"blue"
];
/** The offset of each channel in the four bytes of a decoded pixel. */
const BYTE_OF = {
	red: 0,
	green: 1,
	blue: 2,
	alpha: 3
};
/** The files that a user may choose are added when `/object_info` is answered for that user. */
const UPLOADED = [[], { image_upload: true }];
const LOADS = {
	pythonModule: "nodes",
	fileInputs: ["image"]
};
/** The nodes that read image files. */
const LOAD_NODES = [
	typedNode({
		...LOADS,
		name: "LoadImage",
		displayName: "Load Image",
		category: "image",
		required: { image: UPLOADED },
		outputs: [{ type: "IMAGE" }, { type: "MASK" }],
		run: loadImage
	}),
	typedNode({
		...LOADS,
		name: "LoadImageMask",
		displayName: "Load Image (as Mask)",
		category: "mask",
		required: {
			image: UPLOADED,
			channel: [CHANNELS$2]
		},
		outputs: [{ type: "MASK" }],
		run: loadImageMask
	}),
	typedNode({
		...LOADS,
		name: "LoadImageOutput",
		displayName: "Load Image (from Outputs)",
		description: "Reads back a picture that an earlier run saved.",
		category: "image",
		required: { image: ["COMBO", {
			image_upload: true,
			image_folder: "output",
			remote: {
				route: "/internal/files/output",
				refresh_button: true,
				control_after_refresh: "first"
			}
		}] },
		outputs: [{ type: "IMAGE" }, { type: "MASK" }],
		experimental: true,
		run: loadImage
	})
];
async function loadImage({ image }, context) {
	const pictures = sameSize(await decodeFrames(await readImage(image, context)));
	context.check();
	return { outputs: [toImage(context, pictures), toMask(context, pictures)] };
}
/**
* Loads a mask. Unlike LoadImage it takes one frame only, and a file without alpha gives an opaque
* mask of its size.
*/
async function loadImageMask({ image, channel }, context) {
	const picture = await decodeFirst(await readImage(image, context));
	const { width, height } = picture;
	context.check();
	const mask = newMask(context, {
		batch: 1,
		height,
		width
	});
	copyChannel(pixelsWith(4, picture), mask.data, {
		offset: BYTE_OF[channel] ?? 0,
		inverted: channel === "alpha"
	});
	return { outputs: [mask] };
}
async function readImage(name, context) {
	return {
		name,
		bytes: await context.readFile(name)
	};
}
/** Drops frames with another size than the first, as v1 does. */
function sameSize(pictures) {
	const first = pictures[0];
	return pictures.filter(({ width, height }) => width === first?.width && height === first.height);
}
function toImage(context, pictures) {
	const { width = 0, height = 0 } = pictures[0] ?? {};
	const frames = pictures.map((picture) => pixelsWith(3, picture));
	const bytes = frames.length === 1 && frames[0] ? frames[0] : Buffer.concat(frames);
	return byteImage(context, {
		batch: pictures.length,
		height,
		width,
		channels: 3
	}, bytes);
}
function toMask(context, pictures) {
	const hasAlpha = pictures.some((picture) => picture.hasAlpha);
	const { width, height } = hasAlpha && pictures[0] ? pictures[0] : NO_MASK;
	const mask = newMask(context, {
		batch: pictures.length,
		height,
		width
	});
	if (!hasAlpha) return mask;
	for (const [i, picture] of pictures.entries()) copyChannel(pixelsWith(4, picture), frameOf(mask, i), {
		offset: 3,
		inverted: true
	});
	return mask;
}
function copyChannel(rgba, target, { offset, inverted }) {
	const levels = levelTable().map((level) => inverted ? 1 - level : level);
	for (let i = 0; i < target.length; i++) target[i] = levels[rgba[i * 4 + offset] ?? 0] ?? 0;
}
function levelTable() {
	return Float32Array.from({ length: 256 }, (_, byte) => levelOf$1(byte));
}
// src/nodes/image/mask-composite.ts
/** Rounds a level before the logical operations as v1 does: half to even. */
const isSet = (level) => Math.abs(level) > .5;
const OPERATIONS = /* @__PURE__ */ new Map([
	["multiply", (destination, source) => destination * source],
	["add", (destination, source) => destination + source],
	["subtract", (destination, source) => destination - source],
	["and", (destination, source) => Number(isSet(destination) && isSet(source))],
	["or", (destination, source) => Number(isSet(destination) || isSet(source))],
	["xor", (destination, source) => Number(isSet(destination) !== isSet(source))]
]);
/** Combines a mask with another one that is laid over a part of it. */
const maskComposite = typedNode({
	name: "MaskComposite",
	category: "mask",
	pythonModule: "comfy_extras.nodes_mask",
	required: {
		destination: ["MASK"],
		source: ["MASK"],
		x: OFFSET,
		y: OFFSET,
		operation: [[...OPERATIONS.keys()]]
	},
	outputs: [{ type: "MASK" }],
	run({ source, x, y, ...inputs }, context) {
		const destination = asMask(copyOf(context, asPicture(inputs.destination)));
		const operation = OPERATIONS.get(inputs.operation) ?? ((level) => level);
		fittingBatches(destination, source);
		const { data } = destination;
		eachCoveredRow(context, {
			target: destination,
			source,
			at: {
				x,
				y
			}
		}, ({ width, to, from: fromIn }) => {
			const from = fromIn(source);
			for (let i = 0; i < width; i++) data[to + i] = operation(data[to + i], source.data[from + i]);
		});
		for (let i = 0; i < data.length; i++) data[i] = Math.min(1, Math.max(0, data[i]));
		return { outputs: [destination] };
	}
});
const fittingBatches = (destination, source) => {
	if (source.batch === 1 || source.batch === destination.batch) return;
	const counts = `${source.batch} masks over ${destination.batch}`;
	throw new NodeFailure("RuntimeError", `Cannot lay ${counts}: there must be one, or as many`);
};
// src/nodes/image/mask-grow.ts
/** Grows or shrinks the area of a mask, pixel by pixel. */
const growMask = typedNode({
	name: "GrowMask",
	category: "mask",
	pythonModule: "comfy_extras.nodes_mask",
	required: {
		mask: ["MASK"],
		expand: ["INT", {
			default: 0,
			min: -16384,
			max: 16384,
			step: 1
		}],
		tapered_corners: ["BOOLEAN", { default: true }]
	},
	outputs: [{ type: "MASK" }],
	run({ mask, expand, tapered_corners: isTapered }, context) {
		const grown = newMask(context, mask);
		const sign = expand < 0 ? -1 : 1;
		for (let i = 0; i < mask.data.length; i++) grown.data[i] = sign * mask.data[i];
		const across = newMask(context, {
			...mask,
			batch: 1
		}).data;
		const next = newMask(context, {
			...mask,
			batch: 1
		}).data;
		for (let i = 0; i < mask.batch; i++) {
			const levels = frameOf(grown, i);
			for (let step = 0; step < Math.abs(expand); step++) {
				spreadAcross(context, {
					...mask,
					data: levels
				}, across);
				spreadDown(context, {
					...mask,
					data: across
				}, isTapered ? levels : across, next);
				if (sameLevels(levels, next)) break;
				levels.set(next);
			}
		}
		for (let i = 0; i < grown.data.length; i++) grown.data[i] = sign * grown.data[i];
		return { outputs: [grown] };
	}
});
const spreadAcross = (context, { data, width, height }, target) => {
	for (let y = 0; y < height; y++) {
		context.check();
		const [first, last] = [y * width, (y + 1) * width - 1];
		let before = data[first];
		for (let i = first; i <= last; i++) {
			const here = data[i];
			const after = i < last ? data[i + 1] : here;
			const highest = before > here ? before : here;
			target[i] = after > highest ? after : highest;
			before = here;
		}
	}
};
const spreadDown = (context, { data: across, width, height }, vertical, target) => {
	for (let y = 0; y < height; y++) {
		context.check();
		const up = y > 0 ? -width : 0;
		const down = y < height - 1 ? width : 0;
		for (let i = y * width; i < (y + 1) * width; i++) {
			const [above, below] = [vertical[i + up], vertical[i + down]];
			const highest = above > below ? above : below;
			const here = across[i];
			target[i] = here > highest ? here : highest;
		}
	}
};
const sameLevels = (one, other) => {
	for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false;
	return true;
};
// src/nodes/image/mask.ts
const { fround } = Math;
const COMMON$2 = {
	category: "mask",
	pythonModule: "comfy_extras.nodes_mask"
};
const TO_MASK = {
	...COMMON$2,
	outputs: [{ type: "MASK" }]
};
/** Fades a mask out towards its edges. */
const featherMask = typedNode({
	...TO_MASK,
	name: "FeatherMask",
	required: {
		mask: ["MASK"],
		left: OFFSET,
		top: OFFSET,
		right: OFFSET,
		bottom: OFFSET
	},
	run({ mask, ...feathers }, context) {
		const { width, height } = mask;
		const [left, right] = [rampUp(width, feathers.left), rampDown(width, feathers.right)];
		const [top, bottom] = [rampUp(height, feathers.top), rampDown(height, feathers.bottom)];
		const feathered = newMask(context, mask);
		for (let row = 0; row < mask.batch * height; row++) {
			context.check();
			const [down, up] = [top[row % height], bottom[row % height]];
			for (let x = 0, i = row * width; x < width; x++, i++) {
				const once = fround(mask.data[i] * left[x]);
				const twice = fround(once * right[x]);
				feathered.data[i] = fround(twice * down) * up;
			}
		}
		return { outputs: [feathered] };
	}
});
/**
* Returns factors that grow from the first position on. A feather longer than the mask is cut to
* its length.
*/
const rampUp = (length, feather) => {
	const size = Math.min(length, feather);
	return Float32Array.from({ length }, (_, i) => i < size ? (i + 1) / size : 1);
};
/**
* Returns the factors from the far end, as v1 counts there: the smallest falls on position 0 (which
* is as far from the end as 0 is from 0), the next one on the last position.
*/
const rampDown = (length, feather) => {
	const size = Math.min(length, feather);
	const factors = new Float32Array(length).fill(1);
	for (let i = 0; i < size; i++) factors[i === 0 ? 0 : length - i] = (i + 1) / size;
	return factors;
};
const CHANNELS$1 = [
	"red",
	"green",
	"blue",
	"alpha"
];
const imageToMask = typedNode({
	...TO_MASK,
	name: "ImageToMask",
	displayName: "Convert Image to Mask",
	required: {
		image: ["IMAGE"],
		channel: [CHANNELS$1]
	},
	run({ image, channel: word }, context) {
		const channel = CHANNELS$1.findIndex((name) => name === word);
		if (channel < 0) throw new NodeFailure("ValueError", `There is no channel ${word}`);
		if (channel >= image.channels) {
			const message = `The image has ${image.channels} channels, so there is no ${word} to take`;
			throw new NodeFailure("IndexError", message);
		}
		const mask = newMask(context, image);
		for (let i = 0, from = channel; i < mask.data.length; i++, from += image.channels) {
			if (i % mask.width === 0) context.check();
			mask.data[i] = image.data[from];
		}
		return { outputs: [mask] };
	}
});
const maskToImage = typedNode({
	...COMMON$2,
	name: "MaskToImage",
	displayName: "Convert Mask to Image",
	required: { mask: ["MASK"] },
	outputs: [{ type: "IMAGE" }],
	run: ({ mask }, context) => ({ outputs: [greyPicture(context, mask)] })
});
const imageColorToMask = typedNode({
	...TO_MASK,
	name: "ImageColorToMask",
	required: {
		image: ["IMAGE"],
		color: ["INT", {
			default: 0,
			min: 0,
			max: 16777215,
			step: 1,
			display: "color"
		}]
	},
	run({ image: { data, channels, ...shape }, color: colour }, context) {
		const mask = newMask(context, shape);
		const level = (index) => byteOf(data[index]);
		for (let i = 0, from = 0; i < mask.data.length; i++, from += channels) {
			if (i % mask.width === 0) context.check();
			const found = level(from) * 65536 + level(from + 1) * 256 + level(from + 2);
			mask.data[i] = found === colour ? 1 : 0;
		}
		return { outputs: [mask] };
	}
});
/** Returns a byte. v1 rounds here, while saving cuts off. */
const byteOf = (level) => roundHalfEven(fround(Math.min(1, Math.max(0, level)) * 255));
const solidMask = typedNode({
	...TO_MASK,
	name: "SolidMask",
	required: {
		value: ["FLOAT", {
			default: 1,
			min: 0,
			max: 1,
			step: .01
		}],
		width: SIDE$1,
		height: SIDE$1
	},
	run({ value, width, height }, context) {
		if (width < 1 || height < 1) throw new NodeFailure("RuntimeError", `There is no mask of ${width} × ${height} pixels`);
		const mask = newMask(context, {
			batch: 1,
			width,
			height
		});
		mask.data.fill(value);
		return { outputs: [mask] };
	}
});
const eachLevel = (context, mask, change) => {
	const changed = newMask(context, mask);
	for (let i = 0; i < mask.data.length; i++) {
		if (i % mask.width === 0) context.check();
		changed.data[i] = change(mask.data[i]);
	}
	return changed;
};
const invertMask = typedNode({
	...TO_MASK,
	name: "InvertMask",
	required: { mask: ["MASK"] },
	run: ({ mask }, context) => ({ outputs: [eachLevel(context, mask, (level) => 1 - level)] })
});
const thresholdMask = typedNode({
	...TO_MASK,
	name: "ThresholdMask",
	required: {
		mask: ["MASK"],
		value: ["FLOAT", {
			default: .5,
			min: 0,
			max: 1,
			step: .01
		}]
	},
	run({ mask, value }, context) {
		const least = fround(value);
		return { outputs: [eachLevel(context, mask, (level) => level > least ? 1 : 0)] };
	}
});
/** The nodes that make, change or convert masks. */
const MASK_NODES = [
	imageToMask,
	maskToImage,
	imageColorToMask,
	solidMask,
	invertMask,
	typedNode({
		...TO_MASK,
		name: "CropMask",
		required: {
			mask: ["MASK"],
			x: OFFSET,
			y: OFFSET,
			width: SIDE$1,
			height: SIDE$1
		},
		run({ mask, x, y, width, height }, context) {
			const columns = spanWithin(mask.width, {
				start: x,
				end: x + width
			});
			const rows = spanWithin(mask.height, {
				start: y,
				end: y + height
			});
			return { outputs: [asMask(cutOut(context, asPicture(mask), {
				columns,
				rows
			}))] };
		}
	}),
	maskComposite,
	featherMask,
	growMask,
	thresholdMask
];
// src/nodes/primitive.ts
/** v1's bounds, which a double cannot hold. */
const LONG_RANGE = {
	min: new LosslessNumber("-9223372036854775807"),
	max: new LosslessNumber("9223372036854775807")
};
/** The nodes that pass on one literal. */
const PRIMITIVE_NODES = [
	[
		"PrimitiveString",
		"String",
		"STRING",
		{ multiline: false }
	],
	[
		"PrimitiveStringMultiline",
		"String (Multiline)",
		"STRING",
		{ multiline: true }
	],
	[
		"PrimitiveInt",
		"Int",
		"INT",
		{
			...LONG_RANGE,
			control_after_generate: true
		}
	],
	[
		"PrimitiveFloat",
		"Float",
		"FLOAT",
		LONG_RANGE
	],
	[
		"PrimitiveBoolean",
		"Boolean",
		"BOOLEAN",
		{}
	]
].map(([name, displayName, type, options]) => ({
	name,
	displayName,
	category: "utils/primitive",
	pythonModule: "comfy_extras.nodes_primitive",
	style: "v3",
	required: { value: [type, options] },
	outputs: [{ type }],
	run: (inputs) => ({ outputs: [inputs["value"] ?? null] })
}));
// src/nodes/reaction/field.ts
/**
* The grown substance spreads half as fast as the fed one, which takes its neighbours' mean in
* every time step.
*/
const GROWN_SPREAD = .5;
/** Smaller values become 0: spreading would lead to numbers that are slow to compute with. */
const LEAST_GROWN = 1e-12;
/** The number of cells for each seed spot. */
const CELLS_PER_SPOT = 2048;
const LEAST_SPOTS = 4;
/** Returns two fields without any of the grown substance, one for every other time step. */
const emptyFields = (context, size) => {
	const cells = (size.width + 2) * (size.height + 2);
	const length = cells * Float32Array.BYTES_PER_ELEMENT;
	const { at, end } = layOut({
		fed: length,
		grown: length,
		nextFed: length,
		nextGrown: length
	});
	context.reserve(end);
	const memory = openPixels(end);
	const emptyField = (fedAt, grownAt) => ({
		...size,
		fed: cellsAt(memory, fedAt, cells).fill(1),
		grown: cellsAt(memory, grownAt, cells),
		...memory && { vectors: {
			code: memory.code,
			fed: fedAt,
			grown: grownAt
		} }
	});
	return [emptyField(at.fed, at.grown), emptyField(at.nextFed, at.nextGrown)];
};
const cellsAt = (memory, at, cells) => memory ? new Float32Array(memory.bytes.buffer, at, cells) : new Float32Array(cells);
/** Adds round spots of the grown substance, in proportion to the area. */
const addSpots = (field, random) => {
	const spots = Math.max(LEAST_SPOTS, Math.round(field.width * field.height / CELLS_PER_SPOT));
	for (let spot = 0; spot < spots; spot++) addSpot(field, random);
};
const addSpot = ({ width, height, fed, grown }, random) => {
	const x = Math.floor(random() * width);
	const y = Math.floor(random() * height);
	const radius = 2 + Math.floor(random() * 5);
	const level = .25 + random() / 4;
	const span = 2 * radius + 1;
	for (let i = 0; i < span * span; i++) {
		const [dx, dy] = [i % span - radius, Math.floor(i / span) - radius];
		if (dx * dx + dy * dy > radius * radius) continue;
		const cell = ((y + dy + height) % height + 1) * (width + 2) + (x + dx + width) % width + 1;
		fed[cell] = .5;
		grown[cell] = level;
	}
};
/** Makes the border repeat the opposite edges. */
const wrap = (cells, { width, height }) => {
	const stride = width + 2;
	for (let row = 1; row <= height; row++) {
		cells[row * stride] = cells[row * stride + width];
		cells[row * stride + width + 1] = cells[row * stride + 1];
	}
	cells.copyWithin(0, height * stride, (height + 1) * stride);
	cells.copyWithin((height + 1) * stride, stride, 2 * stride);
};
/**
* Computes one time step of the Gray–Scott equations, from one field into another of the same size.
*/
const react = (context, from, to, rates) => {
	wrap(from.fed, from);
	wrap(from.grown, from);
	for (let row = 1; row <= from.height; row++) {
		context.check();
		reactRow(from, to, rates, row);
	}
};
const reactRow = (from, to, rates, row) => {
	const [source, target] = [from.vectors, to.vectors];
	if (!source || !target) return reactPlainly(from, to, rates, row);
	const stride = (from.width + 2) * Float32Array.BYTES_PER_ELEMENT;
	const first = row * stride;
	source.code.react(source.fed + first, source.grown + first, target.fed + first, target.grown + first, stride, from.width, rates.feed, keptOf(rates));
};
/** Returns the part of the grown substance that neither spreads nor is removed. */
const keptOf = ({ feed, kill }) => .5 - feed - kill;
/**
* Computes one row. In the mean of the neighbours each side counts a fifth, each corner a
* twentieth. Sums of columns and middle cells are reused, so that every cell is read once for each
* row. Levels are kept between 0 and 1, so that no rates can make the field diverge.
*/
const reactPlainly = ({ width, fed, grown }, to, rates, row) => {
	const stride = width + 2;
	const { feed } = rates;
	const kept = keptOf(rates);
	const first = row * stride;
	let uWest = fed[first];
	let u = fed[first + 1];
	let uWestPair = aboveAndBelow(fed, first, stride);
	let uPair = aboveAndBelow(fed, first + 1, stride);
	let vWest = grown[first];
	let v = grown[first + 1];
	let vWestPair = aboveAndBelow(grown, first, stride);
	let vPair = aboveAndBelow(grown, first + 1, stride);
	for (let i = first + 1; i <= first + width; i++) {
		const uEast = fed[i + 1];
		const uEastPair = fed[i + 1 - stride] + fed[i + 1 + stride];
		const vEast = grown[i + 1];
		const vEastPair = grown[i + 1 - stride] + grown[i + 1 + stride];
		const uAround = .2 * (uWest + uEast + uPair) + .05 * (uWestPair + uEastPair);
		const vAround = .2 * (vWest + vEast + vPair) + .05 * (vWestPair + vEastPair);
		const reaction = u * v * v;
		const nextU = uAround - reaction + feed * (1 - u);
		const nextV = GROWN_SPREAD * vAround + reaction + kept * v;
		to.fed[i] = nextU < 0 ? 0 : nextU > 1 ? 1 : nextU;
		to.grown[i] = nextV < LEAST_GROWN ? 0 : nextV > 1 ? 1 : nextV;
		uWest = u;
		u = uEast;
		uWestPair = uPair;
		uPair = uEastPair;
		vWest = v;
		v = vEast;
		vWestPair = vPair;
		vPair = vEastPair;
	}
};
const aboveAndBelow = (cells, i, stride) => cells[i - stride] + cells[i + stride];
// src/nodes/reaction/reaction-diffusion.ts
/** The colours from empty to fully grown: night blue, violet, teal, sand, cream. */
const PALETTE = [
	[
		.043,
		.047,
		.145
	],
	[
		.208,
		.141,
		.431
	],
	[
		.086,
		.443,
		.541
	],
	[
		.447,
		.741,
		.541
	],
	[
		.953,
		.831,
		.478
	],
	[
		.996,
		.961,
		.878
	]
];
/** A concentration that few patterns exceed. It gets the last colour. */
const FULLY_GROWN = .36;
/** Colours the picture by the concentration at each place. */
const paintField = (context, { width, height, grown }, image) => {
	for (let y = 0; y < height; y++) {
		context.check();
		for (let x = 0; x < width; x++) {
			const level = grown[(y + 1) * (width + 2) + x + 1];
			paintPixel(image.data, (y * width + x) * 3, level / FULLY_GROWN);
		}
	}
};
const paintPixel = (pixels, at, share) => {
	const place = Math.min(1, share) * (PALETTE.length - 1);
	const stop = Math.min(PALETTE.length - 2, Math.floor(place));
	const [low, high] = [PALETTE[stop] ?? PALETTE[0], PALETTE[stop + 1] ?? PALETTE[0]];
	for (let c = 0; c < 3; c++) {
		const dark = low[c];
		pixels[at + c] = dark + (high[c] - dark) * (place - stop);
	}
};
/** The side of the box into which v1 scales previews, up as well as down. */
const PREVIEW_BOX = 512;
/** Returns the first picture as a preview, as v1 makes it. */
const previewOf = async (image) => {
	const { default: sharp } = await import("sharp");
	const { width, height } = image;
	const factor = PREVIEW_BOX / Math.max(width, height);
	return await sharp(toBytes(image, 0), { raw: {
		width,
		height,
		channels: 3
	} }).resize({
		width: Math.max(1, roundHalfEven(width * factor)),
		height: Math.max(1, roundHalfEven(height * factor)),
		fit: "fill",
		kernel: "linear"
	}).jpeg({ quality: 95 }).toBuffer();
};
const GOLDEN_GAMMA = 11400714819323198485n;
/**
* SplitMix64 (Steele, Lea, Flood 2014). Every one of the 2^64 seeds starts a sequence of its own,
* evenly spread from 0 up to, but not including, 1.
* @internal
*/
const splitMix64 = (seed) => {
	let state = BigInt.asUintN(64, seed);
	return () => {
		state = BigInt.asUintN(64, state + GOLDEN_GAMMA);
		let mixed = BigInt.asUintN(64, (state ^ state >> 30n) * 13787848793156543929n);
		mixed = BigInt.asUintN(64, (mixed ^ mixed >> 27n) * 10723151780598845931n);
		return Number((mixed ^ mixed >> 31n) >> 11n) / 2 ** 53;
	};
};
/**
* The time steps of the simulation in one step of the node. Even, so that a step ends in the field
* in which it began.
*/
const TURNS_PER_STEP = 16;
/** Four previews a second are enough to watch, and each has to be encoded and sent. */
const PREVIEW_INTERVAL_MS = 250;
const SIDE = ["INT", {
	default: 256,
	min: 64,
	max: 2048,
	step: 8
}];
const SEED = {
	default: 0,
	min: 0,
	max: new LosslessNumber("18446744073709551615"),
	control_after_generate: true
};
/**
* A generator that behaves like a sampler: a picture that grows step by step from a seed. `now` is
* in milliseconds and decides which steps have a preview.
* @internal
*/
const createReactionDiffusion = (now) => typedNode({
	name: "ReactionDiffusion",
	displayName: "Reaction–Diffusion",
	description: "Grows a Gray–Scott pattern from a seed, step by step, with previews. Feed and kill choose the kind of pattern.",
	category: "holdover",
	pythonModule: "holdover",
	required: {
		width: SIDE,
		height: SIDE,
		seed: ["INT", SEED],
		steps: ["INT", {
			default: 100,
			min: 1,
			max: 1e4
		}],
		feed: ["FLOAT", {
			default: .055,
			min: 0,
			max: .1,
			step: .001
		}],
		kill: ["FLOAT", {
			default: .062,
			min: 0,
			max: .1,
			step: .001
		}]
	},
	outputs: [{ type: "IMAGE" }],
	async run({ width, height, steps, seed, ...rates }, context, given) {
		for (const [name, value] of Object.entries({
			width,
			height,
			steps
		})) if (value < 1) throw new NodeFailure("ValueError", `${name} must be at least 1, not ${value}`);
		const [field, spare] = emptyFields(context, {
			width,
			height
		});
		const whole = typeof given["seed"] === "bigint" ? given["seed"] : BigInt(seed);
		addSpots(field, splitMix64(whole));
		const image = newImage(context, {
			width,
			height,
			batch: 1,
			channels: 3
		});
		await grow(context, {
			field,
			spare,
			rates,
			steps,
			image,
			now
		});
		return { outputs: [image] };
	}
});
const grow = async (context, growth) => {
	const { field, steps, image, now } = growth;
	let lastPreviewAtMs = now();
	for (let step = 1; step <= steps; step++) {
		context.check();
		growStep(context, growth);
		if (now() - lastPreviewAtMs >= PREVIEW_INTERVAL_MS || step === steps) {
			lastPreviewAtMs = now();
			paintField(context, field, image);
			context.preview(await previewOf(image), "image/jpeg", "sampler");
		}
		context.progress(step, steps);
		await setImmediate();
	}
};
const growStep = (context, { field, spare, rates }) => {
	for (let turn = 0; turn < TURNS_PER_STEP; turn += 2) {
		react(context, field, spare, rates);
		react(context, spare, field, rates);
	}
};
/** The nodes that make pictures from numbers only. */
const GENERATOR_NODES = [createReactionDiffusion(() => performance.now())];
// src/nodes/image/save-path.ts
/** The longest file name that common file systems accept. */
const MAX_NAME_BYTES = 255;
/** The letters of the random part of a preview's name in v1. */
const PREVIEW_LETTERS = "abcdefghijklmnopqrstupvxyz";
/** Resolves a `filename_prefix` as v1 does. Refuses one that leads out of the output folder. */
function savePath(prefix, facts) {
	const path = posix.normalize(fillPrefix(prefix, facts)).replace(/(?<=.)\/+$/, "");
	const { dir, base } = splitPath(path);
	if (path.startsWith("/") || dir.split("/")[0] === ".." || path.includes("\0")) throw new NodeFailure("Exception", `filename_prefix leads outside the output folder: ${prefix}`);
	return {
		subfolder: dir,
		stem: base
	};
}
/** Returns the name of one file. Refuses names that a file system would not accept. */
function fileName(stem, counter, extension) {
	const name = `${stem}_${String(counter).padStart(5, "0")}_.${extension}`;
	if (Buffer.byteLength(name) > MAX_NAME_BYTES) throw new NodeFailure("OSError", `[Errno 36] File name too long: '${name}'`);
	return name;
}
/**
* Returns the prefix of a preview's name. It is random, so that a browser never shows an older
* preview.
*/
function previewPrefix(pick = (below) => randomInt(below)) {
	return `ComfyUI_temp_${Array.from({ length: 5 }, () => PREVIEW_LETTERS[pick(26)]).join("")}`;
}
/**
* Fills in the placeholders that v1 fills in on the server. `%batch_num%` is filled for each
* picture.
*/
function fillPrefix(prefix, { width, height, now }) {
	return [
		["%width%", width],
		["%height%", height],
		["%year%", now.getFullYear()],
		["%month%", now.getMonth() + 1],
		["%day%", now.getDate()],
		["%hour%", now.getHours()],
		["%minute%", now.getMinutes()],
		["%second%", now.getSeconds()]
	].reduce((text, [name, value]) => text.replaceAll(name, padded$1(name, value)), prefix);
}
function padded$1(name, value) {
	return name === "%width%" || name === "%height%" ? String(value) : String(value).padStart(2, "0");
}
function splitPath(path) {
	const slash = path.lastIndexOf("/");
	return {
		dir: path.slice(0, Math.max(0, slash)),
		base: path.slice(slash + 1)
	};
}
// src/nodes/codecs/encode-png.ts
/** The number of channels that v1 writes for each number of channels of a picture. */
const CHANNELS = {
	2: 2,
	3: 3,
	4: 4
};
/** The chunks that are kept. sharp adds a resolution that v1 does not write. */
const KEPT_CHUNKS = [
	"IHDR",
	"IDAT",
	"IEND"
];
/**
* Returns v1's metadata for every saved file, in its order: the prompt, then each `extra_pnginfo`
* entry.
*/
function metadataTexts(context) {
	const prompt = context.promptText === null ? [] : [{
		key: "prompt",
		text: context.promptText
	}];
	const extra = Object.entries(context.extraPngInfo ?? {});
	return [...prompt, ...extra.map(([key, value]) => ({
		key,
		text: pythonJson(value)
	}))];
}
/** Encodes one picture of a batch as a PNG file, with `tEXt` chunks before the pixels. */
async function encodePng(images, index, options) {
	const [header, ...rest] = await encodeChunks(images, index, options.compressionLevel);
	const texts = options.texts.map(({ key, text }) => textChunk("tEXt", latin1Key(key), text));
	return writePng([
		...header ? [header] : [],
		...texts,
		...rest
	]);
}
/** Returns header, pixels and end of one picture of a batch. */
async function encodeChunks(images, index, compressionLevel) {
	const { width, height } = images;
	if (width < 1 || height < 1) throw new NodeFailure("ValueError", "cannot write empty image");
	const raw = {
		width,
		height,
		channels: savedChannels(images)
	};
	const bytes = toBytes(images, index);
	const packed = await packPixels({
		bytes,
		...raw
	}, compressionLevel);
	if (packed) return packed;
	const { default: sharp } = await import("sharp");
	return readPngChunks(await sharp(bytes, { raw }).toColourspace(raw.channels === 2 ? "b-w" : "srgb").png({
		compressionLevel,
		adaptiveFiltering: true
	}).toBuffer()).filter(({ type }) => KEPT_CHUNKS.includes(type));
}
/** Returns the pixel layout for saving. v1 fails on the same layouts. */
function savedChannels({ channels }) {
	const known = CHANNELS[channels];
	if (known !== void 0) return known;
	throw new NodeFailure("TypeError", `Cannot handle this data type: (1, 1, ${channels}), |u1`);
}
/** Returns a keyword of a PNG text chunk. v1 fails on the same keywords. */
function latin1Key(key) {
	if (Buffer.from(key, "latin1").toString("latin1") === key && !key.includes("\0")) return key;
	throw new NodeFailure("UnicodeEncodeError", `extra_pnginfo has a key that a PNG file cannot hold: ${key}`);
}
/** PNG's number of each layout: grey with alpha, colours, colours with alpha. */
const COLOUR_TYPE = {
	2: 4,
	3: 2,
	4: 6
};
/** PNG's filter that stores the difference to the mean of the pixels to the left and above. */
const AVERAGE = 3;
/**
* Searches only for repeats of the previous byte, which is a quarter of the work for filtered rows.
*/
const RUNS = {
	strategy: constants$1.Z_RLE,
	memLevel: 9
};
const SAMPLE = {
	pieces: 8,
	bytes: 8192
};
/** A smaller picture is packed at once: to choose or start a packer takes longer. */
const SMALL_BYTES = SAMPLE.pieces * SAMPLE.bytes;
/** A search for repeats is used when it packs the sample to less than this share. */
const WORTH_SEARCHING = .8;
const deflated = promisify(deflate);
/**
* Returns header, pixels and end of a small or photograph-like picture. `undefined` when sharp's
* search for repeats packs better.
* @internal
*/
async function packPixels(pixels, compressionLevel) {
	if (pixels.bytes.length <= SMALL_BYTES) return chunksOf$1(pixels, deflateSync(rowsPlainly(pixels), { level: compressionLevel }));
	const rows = rowsWithVectors(pixels) ?? rowsPlainly(pixels);
	if (repeatsItself(rows, compressionLevel)) return void 0;
	const chunkSize = Math.max(1024, rows.length >> 2);
	return chunksOf$1(pixels, await deflated(rows, {
		...RUNS,
		chunkSize
	}));
}
function chunksOf$1(pixels, data) {
	return [
		{
			type: "IHDR",
			data: headerOf(pixels)
		},
		{
			type: "IDAT",
			data
		},
		{
			type: "IEND",
			data: /* @__PURE__ */ new Uint8Array()
		}
	];
}
function headerOf({ width, height, channels }) {
	const header = Buffer.alloc(13);
	header.writeUInt32BE(width, 0);
	header.writeUInt32BE(height, 4);
	header[8] = 8;
	header[9] = COLOUR_TYPE[channels];
	return header;
}
/**
* Returns the filtered rows of a picture, each behind the number of its filter.
* @internal
*/
function rowsWithVectors(pixels) {
	const { bytes, width, height, channels } = pixels;
	const stride = width * channels;
	const { at, end } = layOut({
		row: stride,
		above: stride,
		target: stride
	});
	const memory = openPixels(end);
	if (!memory) return void 0;
	const rows = new Uint8Array(height * (stride + 1));
	let { row, above } = at;
	for (let y = 0; y < height; y++) {
		const begin = y * (stride + 1);
		memory.bytes.set(bytes.subarray(y * stride, (y + 1) * stride), row);
		memory.code.averages(row, above, at.target, channels, stride);
		rows[begin] = AVERAGE;
		rows.set(memory.bytes.subarray(at.target, at.target + stride), begin + 1);
		[row, above] = [above, row];
	}
	return rows;
}
/**
* Returns the same rows without vector instructions.
* @internal
*/
function rowsPlainly({ bytes, width, height, channels }) {
	const stride = width * channels;
	const rows = new Uint8Array(height * (stride + 1));
	let above = new Uint8Array(stride);
	for (let y = 0; y < height; y++) {
		const row = bytes.subarray(y * stride, (y + 1) * stride);
		const target = rows.subarray(y * (stride + 1), (y + 1) * (stride + 1));
		target[0] = AVERAGE;
		averageRow(row, above, {
			target,
			channels
		});
		above = row;
	}
	return rows;
}
function averageRow(row, above, { target, channels }) {
	for (let i = 0; i < channels; i++) target[i + 1] = row[i] - (above[i] >> 1);
	for (let left = 0, i = channels; i < row.length; i++, left++) {
		const mean = row[left] + above[i] >> 1;
		target[i + 1] = row[i] - mean;
	}
}
/** True for drawings, texts and tiles: some pieces from all over the picture repeat themselves. */
function repeatsItself(rows, level) {
	const step = Math.floor(rows.length / SAMPLE.pieces);
	const pieces = Array.from({ length: SAMPLE.pieces }, (_, i) => rows.subarray(i * step, Math.min(i * step + SAMPLE.bytes, (i + 1) * step)));
	const sample = Buffer.concat(pieces);
	return deflateSync(sample, { level }).length < deflateSync(sample, RUNS).length * WORTH_SEARCHING;
}
// src/nodes/codecs/encode-apng.ts
/** The most milliseconds that an APNG frame can last with a denominator of 1000. */
const MAX_SHORT = 65535;
const END = {
	type: "IEND",
	data: /* @__PURE__ */ new Uint8Array()
};
/**
* Encodes an animated PNG that repeats for ever. Its texts are in `comf` chunks behind the pixels,
* as v1 writes them.
*/
async function encodeApng(images, context, options) {
	const frames = [];
	let header = [];
	for (let i = 0; i < images.batch; i++) {
		context.check();
		const chunks = await encodeChunks(images, i, options.compressionLevel);
		header = chunks.slice(0, 1);
		addFrame(frames, {
			pixels: chunks.filter(({ type }) => type === "IDAT"),
			durationMs: options.durationMs
		});
	}
	const texts = options.texts.map(({ key, text }) => textChunk("comf", latin1Key(key), text));
	return writePng([
		...header,
		...animationChunks(images, frames),
		...texts,
		END
	]);
}
/**
* Adds a frame. As with v1's writer, a picture that equals the previous one makes that one last
* longer.
*/
function addFrame(frames, frame) {
	const last = frames.at(-1);
	const bytes = ({ pixels }) => Buffer.concat(pixels.map(({ data }) => data));
	if (!last || !bytes(last).equals(bytes(frame))) frames.push(frame);
	else frames[frames.length - 1] = {
		...last,
		durationMs: last.durationMs + frame.durationMs
	};
}
/** Returns the animation chunks. As with v1's writer, a single picture is an ordinary PNG. */
function animationChunks(images, frames) {
	if (frames.length === 1) return frames.flatMap(({ pixels }) => pixels);
	let sequence = 0;
	const chunks = [{
		type: "acTL",
		data: integers(frames.length, 0)
	}];
	for (const [i, { pixels, durationMs }] of frames.entries()) {
		chunks.push(frameControl(images, sequence++, durationMs));
		for (const part of pixels) chunks.push(i === 0 ? part : {
			type: "fdAT",
			data: Buffer.concat([integers(sequence++), part.data])
		});
	}
	return chunks;
}
function frameControl({ width, height }, sequence, durationMs) {
	const delay = Buffer.alloc(6);
	const long = durationMs > MAX_SHORT;
	delay.writeUInt16BE(long ? Math.round(durationMs / 1e3) : durationMs, 0);
	delay.writeUInt16BE(long ? 1 : 1e3, 2);
	return {
		type: "fcTL",
		data: Buffer.concat([integers(sequence, width, height, 0, 0), delay])
	};
}
function integers(...values) {
	const bytes = Buffer.alloc(values.length * 4);
	for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, i * 4);
	return bytes;
}
// src/nodes/codecs/encode-webp.ts
/**
* The first Exif tag that v1 uses for its texts: the prompt is Model, the others go from Make
* downwards.
*/
const FIRST_TAG = 272;
/** The type number of an ASCII value in an Exif directory. */
const ASCII = 2;
const ENTRY_BYTES = 12;
/**
* A placeholder for the time of each frame: sharp accepts 11 to 65,535 ms, but v1's frame rates
* lead to 1 ms to 100 seconds.
*/
const ENCODED_DELAY_MS = 100;
/**
* The place of a frame's duration in its chunk: three bytes behind the head and the frame's
* rectangle.
*/
const DURATION_AT = 20;
/**
* The header before the directory: a marker, then byte order, magic number and offset. Offsets
* count from the byte order.
*/
const EXIF_HEAD = Buffer.from("4578696600004d4d002a00000008", "hex");
/**
* Encodes an animated WEBP that repeats for ever. Its texts are in Exif tags, as v1 writes them.
*/
async function encodeWebp(images, options) {
	const { width, height, batch } = images;
	const { durationMs, lossless, quality, effort, texts } = options;
	const pixels = Buffer.concat(Array.from({ length: batch }, (_, i) => toBytes(images, i)));
	const raw = {
		width,
		height: height * batch,
		channels: savedChannels(images),
		pageHeight: height
	};
	const delay = Array.from({ length: batch }, () => ENCODED_DELAY_MS);
	const { default: sharp } = await import("sharp");
	const webp = sharp(pixels, {
		raw,
		limitInputPixels: false
	}).webp({
		lossless,
		quality: Math.max(1, quality),
		effort,
		delay,
		loop: 0
	});
	if (texts.length === 0) return withDuration(await webp.toBuffer(), durationMs);
	return withDuration(replaceExif(await webp.withExif({ IFD0: { Model: "x" } }).toBuffer(), exifBlock(texts)), durationMs);
}
/** Sets the durations. The encoder joins equal frames: one of them lasts as long as all. */
function withDuration(file, durationMs) {
	for (let at = 12; at + 8 <= file.length; at += 8 + padded(file.readUInt32LE(at + 4))) {
		if (file.toString("latin1", at, at + 4) !== "ANMF") continue;
		const frames = Math.round(file.readUIntLE(at + DURATION_AT, 3) / ENCODED_DELAY_MS);
		file.writeUIntLE(Math.min(frames * durationMs, 16777215), at + DURATION_AT, 3);
	}
	return file;
}
/**
* Returns an Exif block of ASCII tags, big-endian, written as v1's writer does.
* @internal
*/
function exifBlock(texts) {
	const values = texts.map(({ key, text }, i) => ({
		tag: FIRST_TAG - i,
		data: asciiValue(key, text)
	}));
	values.sort((a, b) => a.tag - b.tag);
	const count = Buffer.alloc(2);
	count.writeUInt16BE(values.length);
	const entries = [];
	const tail = [];
	let offset = 10 + values.length * ENTRY_BYTES + 4;
	for (const { tag, data } of values) {
		const inline = data.length <= 4;
		entries.push(exifEntry(tag, data, inline ? void 0 : offset));
		if (inline) continue;
		tail.push(data, Buffer.alloc(data.length % 2));
		offset += padded(data.length);
	}
	const noNextDirectory = Buffer.alloc(4);
	return Buffer.concat([
		EXIF_HEAD,
		count,
		...entries,
		noNextDirectory,
		...tail
	]);
}
/**
* Returns a directory entry. A value of up to four bytes is stored in it, a longer one at an
* offset.
*/
function exifEntry(tag, data, offset) {
	const entry = Buffer.alloc(ENTRY_BYTES);
	entry.writeUInt16BE(tag);
	entry.writeUInt16BE(ASCII, 2);
	entry.writeUInt32BE(data.length, 4);
	if (offset === void 0) data.copy(entry, 8);
	else entry.writeUInt32BE(offset, 8);
	return entry;
}
function asciiValue(key, text) {
	return Buffer.from(`${key}:${text}\0`.replaceAll(/[^\0-\u007f]/g, "?"), "latin1");
}
/** Replaces the payload of the EXIF chunk of a WEBP file. */
function replaceExif(file, exif) {
	const at = findChunk(file, "EXIF");
	const head = Buffer.alloc(8);
	head.write("EXIF", "latin1");
	head.writeUInt32LE(exif.length, 4);
	const oldEnd = at + 8 + padded(file.readUInt32LE(at + 4));
	const padding = Buffer.alloc(exif.length % 2);
	const result = Buffer.concat([
		file.subarray(0, at),
		head,
		exif,
		padding,
		file.subarray(oldEnd)
	]);
	result.writeUInt32LE(result.length - 8, 4);
	return result;
}
function findChunk(file, type) {
	let at = 12;
	while (file.toString("latin1", at, at + 4) !== type) at += 8 + padded(file.readUInt32LE(at + 4));
	return at;
}
function padded(length) {
	return length + length % 2;
}
// src/nodes/image/save.ts
/** v1's zlib levels: files that stay are compressed more than previews. */
const COMPRESSION = {
	saved: 4,
	preview: 1
};
/** The inputs and properties of all nodes that write pictures. Their files contain the prompt. */
const SAVES = {
	hidden: {
		prompt: "PROMPT",
		extra_pnginfo: "EXTRA_PNGINFO"
	},
	outputs: [],
	outputNode: true,
	isBriefWhenSmall: true
};
const PREFIX = ["STRING", { default: "ComfyUI" }];
/** The nodes that write still pictures. */
const SAVE_NODES = [
	typedNode({
		name: "SaveImage",
		displayName: "Save Image",
		description: "Keeps pictures as PNG files among the outputs.",
		category: "image",
		pythonModule: "nodes",
		required: {
			images: ["IMAGE", {}],
			filename_prefix: PREFIX
		},
		...SAVES,
		run: ({ images, filename_prefix: prefix }, context) => saveStills(images, context, {
			prefix,
			temp: false
		})
	}),
	typedNode({
		name: "PreviewImage",
		displayName: "Preview Image",
		description: "Shows pictures without keeping them.",
		category: "image",
		pythonModule: "nodes",
		required: { images: ["IMAGE"] },
		...SAVES,
		run: ({ images }, context) => preview(images, context)
	}),
	typedNode({
		name: "MaskPreview",
		description: "Shows masks as grey pictures without keeping them.",
		category: "mask",
		pythonModule: "comfy_extras.nodes_mask",
		required: { mask: ["MASK"] },
		...SAVES,
		run: ({ mask }, context) => preview(greyPicture(context, mask), context)
	}),
	typedNode({
		name: "SaveImageWebsocket",
		category: "api/image",
		pythonModule: "custom_nodes.websocket_image_save",
		required: { images: ["IMAGE"] },
		outputs: [],
		outputNode: true,
		alwaysRuns: true,
		run: sendImages
	})
];
function preview(images, context) {
	return saveStills(images, context, {
		prefix: previewPrefix(),
		temp: true,
		isNewPrefix: true
	});
}
async function saveStills(images, context, to) {
	const { width, height, batch } = images;
	if (batch < 1) throw new NodeFailure("IndexError", "There is no picture in the batch");
	const { subfolder, stem } = savePath(to.prefix, {
		width,
		height,
		now: /* @__PURE__ */ new Date()
	});
	const compressionLevel = to.temp ? COMPRESSION.preview : COMPRESSION.saved;
	const texts = metadataTexts(context);
	const items = [];
	let counter = 0;
	for (let i = 0; i < images.batch; i++) {
		context.check();
		counter++;
		if (!to.isNewPrefix) counter = Math.max(counter, await context.nextCounter({
			temp: to.temp,
			subfolder
		}, stem));
		const name = fileName(stem.replaceAll("%batch_num%", String(i)), counter, "png");
		const bytes = await encodePng(images, i, {
			compressionLevel,
			texts
		});
		items.push(await context.save({
			bytes,
			name,
			subfolder,
			contentType: "image/png",
			temp: to.temp
		}));
	}
	return {
		outputs: [],
		ui: { images: items }
	};
}
/** Sends pictures, each with the progress message of its own step. v1 counts the steps from 0. */
async function sendImages({ images }, context) {
	for (let i = 0; i < images.batch; i++) {
		const bytes = await encodePng(images, i, {
			compressionLevel: COMPRESSION.saved,
			texts: []
		});
		await context.save({
			bytes,
			name: fileName(`ComfyUI_websocket_${context.nodeId}`, i + 1, "png"),
			subfolder: "",
			contentType: "image/png",
			temp: true,
			websocket: true
		});
		context.progress(i, images.batch);
	}
	return { outputs: [] };
}
const ANIMATED_INPUTS = {
	images: ["IMAGE"],
	filename_prefix: PREFIX,
	fps: ["FLOAT", {
		default: 6,
		min: .01,
		max: 1e3,
		step: .01
	}]
};
/** The effort of the WEBP encoder for each value of v1's `method`. */
const EFFORT = {
	default: 4,
	fastest: 0,
	slowest: 6
};
const ANIMATION = {
	...SAVES,
	category: "image/animation",
	pythonModule: "comfy_extras.nodes_images"
};
/** The nodes that write a batch as one animated picture. */
const SAVE_ANIMATED_NODES = [typedNode({
	...ANIMATION,
	name: "SaveAnimatedWEBP",
	required: {
		...ANIMATED_INPUTS,
		lossless: ["BOOLEAN", { default: true }],
		quality: ["INT", {
			default: 80,
			min: 0,
			max: 100
		}],
		method: [Object.keys(EFFORT)]
	},
	async run({ images, fps, lossless, quality, method, filename_prefix: prefix }, context) {
		const effort = EFFORT[method] ?? 4;
		return saveAnimation(context, {
			images,
			prefix,
			bytes: await encodeWebp(images, {
				durationMs: frameMs(fps),
				texts: metadataTexts(context),
				lossless,
				quality,
				effort
			}),
			extension: "webp"
		});
	}
}), typedNode({
	...ANIMATION,
	name: "SaveAnimatedPNG",
	required: {
		...ANIMATED_INPUTS,
		compress_level: ["INT", {
			default: 4,
			min: 0,
			max: 9
		}]
	},
	async run({ images, fps, compress_level: compressionLevel, filename_prefix: prefix }, context) {
		return saveAnimation(context, {
			images,
			prefix,
			bytes: await encodeApng(images, context, {
				durationMs: frameMs(fps),
				texts: metadataTexts(context),
				compressionLevel
			}),
			extension: "png"
		});
	}
})];
/** Saves an animation. v1 leaves `%batch_num%` unchanged here, since there is one file. */
async function saveAnimation(context, { images, prefix, bytes, extension }) {
	const { subfolder, stem } = savePath(prefix, {
		...images,
		now: /* @__PURE__ */ new Date()
	});
	const name = fileName(stem, await context.nextCounter({
		temp: false,
		subfolder
	}, stem), extension);
	const contentType = `image/${extension}`;
	return {
		outputs: [],
		ui: {
			images: [await context.save({
				bytes,
				name,
				subfolder,
				contentType,
				temp: false
			})],
			animated: [true]
		}
	};
}
function frameMs(fps) {
	return Math.trunc(1e3 / fps);
}
// src/nodes/image/scale.ts
const COMMON$1 = {
	category: "image/upscaling",
	outputs: [{ type: "IMAGE" }]
};
const imageScale = typedNode({
	...COMMON$1,
	name: "ImageScale",
	displayName: "Upscale Image",
	pythonModule: "nodes",
	required: {
		image: ["IMAGE"],
		upscale_method: [RESAMPLE_METHODS],
		width: ["INT", {
			default: 512,
			min: 0,
			max: 16384,
			step: 1
		}],
		height: ["INT", {
			default: 512,
			min: 0,
			max: 16384,
			step: 1
		}],
		crop: [["disabled", "center"]]
	},
	run({ image, upscale_method: word, width, height, crop: side }, context) {
		const method = resampleMethod(word);
		const crop = side === "center" ? "center" : "disabled";
		if (width === 0 && height === 0) return { outputs: [image] };
		const size = missingSide(image, {
			width,
			height
		});
		return { outputs: [upscale(context, image, {
			...size,
			method,
			crop
		})] };
	}
});
/** Returns both sides. A side of 0 follows from the other one and the picture's proportions. */
const missingSide = (image, { width, height }) => ({
	width: width || Math.max(1, roundHalfEven(image.width * height / image.height)),
	height: height || Math.max(1, roundHalfEven(image.height * width / image.width))
});
/** Returns both sides times a factor, each rounded separately. */
const scaledSize = (image, factor) => ({
	width: roundHalfEven(image.width * factor),
	height: roundHalfEven(image.height * factor)
});
/** Scales to a size by the method that the inputs name. */
const scaleTo = (context, { image, upscale_method: word }, size) => {
	const method = resampleMethod(word);
	return { outputs: [upscale(context, image, {
		...size,
		method,
		crop: "disabled"
	})] };
};
const imageScaleBy = typedNode({
	...COMMON$1,
	name: "ImageScaleBy",
	displayName: "Upscale Image By",
	pythonModule: "nodes",
	required: {
		image: ["IMAGE"],
		upscale_method: [RESAMPLE_METHODS],
		scale_by: ["FLOAT", {
			default: 1,
			min: .01,
			max: 8,
			step: .01
		}]
	},
	run: (inputs, context) => scaleTo(context, inputs, scaledSize(inputs.image, inputs.scale_by))
});
const imageScaleToTotalPixels = typedNode({
	...COMMON$1,
	name: "ImageScaleToTotalPixels",
	pythonModule: "comfy_extras.nodes_post_processing",
	style: "v3",
	required: {
		image: ["IMAGE", {}],
		upscale_method: ["COMBO", {
			multiselect: false,
			options: RESAMPLE_METHODS
		}],
		megapixels: ["FLOAT", {
			default: 1,
			min: .01,
			max: 16,
			step: .01
		}]
	},
	run(inputs, context) {
		const { image, megapixels } = inputs;
		const factor = Math.sqrt(Math.trunc(megapixels * 1024 * 1024) / (image.width * image.height));
		return scaleTo(context, inputs, scaledSize(image, factor));
	}
});
const imageScaleToMaxDimension = typedNode({
	...COMMON$1,
	name: "ImageScaleToMaxDimension",
	pythonModule: "comfy_extras.nodes_images",
	required: {
		image: ["IMAGE"],
		upscale_method: [[
			"area",
			"lanczos",
			"bilinear",
			"nearest-exact",
			"bilinear",
			"bicubic"
		]],
		largest_size: ["INT", {
			default: 512,
			min: 0,
			max: 16384,
			step: 1
		}]
	},
	run: (inputs, context) => scaleTo(context, inputs, fittedSize(inputs.image, inputs.largest_size))
});
const fittedSize = ({ width, height }, largest) => ({
	width: width >= height ? largest : roundHalfEven(width / height * largest),
	height: height >= width ? largest : roundHalfEven(height / width * largest)
});
/** The nodes that change a picture's size by resampling. */
const SCALE_NODES = [
	imageScale,
	imageScaleBy,
	imageScaleToTotalPixels,
	imageScaleToMaxDimension
];
// src/nodes/text/pieces.ts
/** The characters that are processed between two checks of the stop flag. */
const CHUNK_CHARS = 65536;
/** The maximum number of separate pieces. More pieces are joined. */
const MAX_PIECES = 4096;
/** Reserves the memory of a text before it is built. Throws `OutOfMemory`. */
function reserveText(context, chars) {
	context.reserve(chars * 2);
	refuseLongerThanAny(chars);
}
/** Builds a text piece by piece. The memory of each piece is reserved when it is added. */
function createTextPieces(context) {
	const blocks = [];
	const pieces = [];
	let chars = 0;
	const join = () => {
		blocks.push(pieces.join(""));
		pieces.length = 0;
	};
	return {
		add(piece) {
			chars += piece.length;
			context.reserve(piece.length * 2);
			refuseLongerThanAny(chars);
			pieces.push(piece);
			if (pieces.length >= MAX_PIECES) join();
		},
		text() {
			join();
			return blocks.join("");
		}
	};
}
/** Yields a text in pieces that split no character. */
function* chunksOf(text, context) {
	for (let from = 0; from < text.length;) {
		context.check();
		const to = Math.min(text.length, from + CHUNK_CHARS);
		const end = isInsidePair(text, to) ? to + 1 : to;
		yield text.slice(from, end);
		from = end;
	}
}
/** Counts characters as Python does. */
function countChars(text, context) {
	let count = 0;
	for (const chunk of chunksOf(text, context)) count += charsIn(chunk);
	return count;
}
/** Returns the offset of the character with this number, which must not be beyond the end. */
function offsetOf(text, chars, context) {
	let offset = 0;
	let left = chars;
	for (const chunk of chunksOf(text, context)) {
		const inChunk = charsIn(chunk);
		if (inChunk > left) return offset + offsetIn(chunk, left);
		left -= inChunk;
		offset += chunk.length;
	}
	return offset;
}
/** True when an index is between the halves of a surrogate pair. */
function isInsidePair(text, at) {
	const [before, after] = [text.charCodeAt(at - 1), text.charCodeAt(at)];
	return before >= 55296 && before < 56320 && after >= 56320 && after < 57344;
}
function charsIn(chunk) {
	let pairs = 0;
	for (let at = 1; at < chunk.length; at++) if (isInsidePair(chunk, at)) pairs++;
	return chunk.length - pairs;
}
function offsetIn(chunk, chars) {
	let offset = 0;
	for (let i = 0; i < chars; i++) offset += isInsidePair(chunk, offset + 1) ? 2 : 1;
	return offset;
}
function refuseLongerThanAny(chars) {
	if (chars <= constants$2.MAX_STRING_LENGTH) return;
	throw new OutOfMemory(`Allocation of a text of ${chars} characters failed: no text can have more than ${constants$2.MAX_STRING_LENGTH}`);
}
// src/nodes/text/case.ts
/**
* Matches the letter whose lower case depends on its neighbours, and the characters that are
* skipped between them.
*/
const DEPENDS = /^[\u03a3\p{Case_Ignorable}]$/u;
const CASED = /\p{Cased}+/gu;
const ENDS_CASED = /\p{Cased}$/u;
function upperCase(text, context) {
	const pieces = createTextPieces(context);
	for (const chunk of chunksOf(text, context)) pieces.add(chunk.toUpperCase());
	return pieces.text();
}
function lowerCase(text, context) {
	const pieces = createTextPieces(context);
	for (const chunk of caseChunksOf(text, context)) pieces.add(chunk.toLowerCase());
	return pieces.text();
}
/** Returns the text with its first character in upper case and all others in lower case. */
function capitalCase(text, context) {
	const first = firstChar(text);
	const pieces = createTextPieces(context);
	pieces.add(first.toUpperCase());
	pieces.add(lowerCase(text.slice(first.length), context));
	return pieces.text();
}
/** Returns the text with a capital at the start of every run of letters. */
function titleCase(text, context) {
	const pieces = createTextPieces(context);
	let isInRun = false;
	for (const chunk of caseChunksOf(text, context)) {
		const goesOn = isInRun;
		pieces.add(chunk.replaceAll(CASED, (run, at) => goesOn && at === 0 ? run.toLowerCase() : capitalised(run)));
		isInRun = ENDS_CASED.test(chunk.slice(-2));
	}
	return pieces.text();
}
function capitalised(run) {
	const first = firstChar(run);
	return first.toUpperCase() + run.slice(first.length).toLowerCase();
}
function firstChar(text) {
	return text.slice(0, isInsidePair(text, 1) ? 2 : 1);
}
/**
* Yields the text in pieces whose lower case is that of the whole: a sigma depends on its
* neighbours, so it is never cut from them.
*/
function* caseChunksOf(text, context) {
	for (let from = 0; from < text.length;) {
		context.check();
		const to = cutNear(text, from);
		yield text.slice(from, to);
		from = to;
	}
}
function cutNear(text, from) {
	const aim = from + CHUNK_CHARS;
	if (aim >= text.length) return text.length;
	for (let cut = aim; cut > from; cut--) if (mayCut(text, cut)) return cut;
	for (let cut = aim + 1; cut < text.length; cut++) if (mayCut(text, cut)) return cut;
	return text.length;
}
function mayCut(text, at) {
	if (isInsidePair(text, at)) return false;
	const before = text.slice(isInsidePair(text, at - 1) ? at - 2 : at - 1, at);
	return !DEPENDS.test(before) && !DEPENDS.test(firstChar(text.slice(at, at + 2)));
}
// src/nodes/text/text-node.ts
/** The declaration of an input in nearly every text node. */
const MULTILINE = ["STRING", { multiline: true }];
/**
* The grace period: a running regular expression, or a loop inside V8, does not check the stop
* flag.
*/
const TEXT_STOP_GRACE_MS = 500;
/** The members that all text nodes share. */
const TEXT = {
	category: "utils/string",
	pythonModule: "comfy_extras.nodes_string",
	style: "v3",
	outputs: [{ type: "STRING" }],
	stopGraceMs: TEXT_STOP_GRACE_MS
};
/** The node that shows any input as text. */
const PREVIEW_ANY = {
	name: "PreviewAny",
	displayName: "Preview Any",
	category: "utils",
	pythonModule: "comfy_extras.nodes_preview_any",
	required: { source: ["*", {}] },
	outputs: [],
	outputNode: true,
	stopGraceMs: TEXT_STOP_GRACE_MS,
	run: (inputs, context) => ({
		outputs: [],
		ui: { text: [withinRoom(shown(inputs["source"] ?? null, context), context)] }
	})
};
/** Returns the text up to the limit: every reader of the job gets it. */
function withinRoom(text, context) {
	const room = context.reserveShown(text.length);
	if (room >= text.length) return text;
	return `${text.slice(0, isInsidePair(text, room) ? room - 1 : room)}… (shortened from ${text.length} characters)`;
}
/** Returns plain values as Python's `str()` shows them, others as JSON. */
function shown(value, context) {
	if (value === null) return "None";
	if (typeof value === "boolean") return value ? "True" : "False";
	if (typeof value === "number" && isFloat(value, context)) return pythonFloat(value);
	if (typeof value !== "object") return String(value);
	return isPixels(value) ? sizeOf(value) : pythonJson(value);
}
/** True for a FLOAT. A whole number may be one: only the type of its output tells. */
function isFloat(value, context) {
	return context.inputTypes?.["source"] === "FLOAT" || !Number.isInteger(value);
}
/**
* True for pixels. An input of type `*` also accepts a literal object or array, which arrives as it
* is in the workflow.
*/
function isPixels(value) {
	return isJsonObject(value) && value.data instanceof Float32Array;
}
/** Returns the size of a picture. v1 prints its numbers, but the size says more. */
function sizeOf({ kind, batch, height, width }) {
	return `${kind} ${width}×${height}, batch of ${batch}`;
}
// src/nodes/text/regex.ts
/** Matches every part of a Python pattern that may have to be rewritten. The rest is copied. */
const TOKEN = /(\(\?(?:>|\(|[a-zA-Z-]+[:)])|[*+?]\+|\{\d+(?:,\d*)?\}\+)|\\([^])|\[(\^?)(\]?(?:\\[^]|[^\]\\])*)\]|\(\?P<|\(\?P=(\w+)\)|\(\?#[^)]*\)|\{(\d*)(,?)(\d*)\}|[.^${}\]]/g;
/** Adds the flags at the start of a pattern (`(?i)`) to those that are switched on. */
function pythonPattern(pattern, flags) {
	const inline = /^\(\?([aimsu]+)\)/.exec(pattern);
	const letters = inline?.[1] ?? "";
	return {
		source: pattern.slice(inline?.[0].length ?? 0),
		dotall: flags.dotall || letters.includes("s"),
		multiline: flags.multiline || letters.includes("m"),
		caseInsensitive: flags.caseInsensitive || letters.includes("i")
	};
}
/** Returns the pattern as another engine writes it. */
function translate(source, dialect) {
	return source.replaceAll(TOKEN, (token, foreign, escaped, negated, body, backref, low, comma, high) => {
		if (foreign !== void 0) throw unsupported(token);
		if (escaped !== void 0) return dialect.escape(String(escaped));
		if (body !== void 0) return `[${String(negated)}${classBody(String(body), dialect)}]`;
		if (backref !== void 0) return dialect.namedReference(String(backref));
		if (low !== void 0) return repetition(token, String(low), `${String(comma)}${String(high)}`);
		if (token.startsWith("(?#")) return "";
		return token === "(?P<" ? dialect.namedGroup : single(token, dialect);
	});
}
/**
* Returns an escaped literal. Python allows any escaped punctuation, JavaScript only its own
* syntax.
*/
function literal(escaped) {
	return /[\w^$\\.*+?()[\]{}|/-]/.test(escaped) && escaped !== "_" ? escapedSyntax(escaped) : escaped;
}
/**
* Refuses groups and repetitions that Python has and JavaScript lacks: they must not be read as
* another pattern.
*/
function unsupported(token) {
	return new NodeFailure("NotImplementedError", `regular expressions with ${token} are not supported here`);
}
function single(token, { anchors }) {
	return token === "." || token === "^" || token === "$" ? anchors[token] : `\\${token}`;
}
/** Returns a repetition. `{,3}` counts from 0; braces without a count are literal. */
function repetition(token, low, rest) {
	if (low === "" && !/^,\d/.test(rest)) return token.replaceAll(/[{}]/g, "\\$&");
	return `{${low || "0"}${rest}}`;
}
function classBody(body, dialect) {
	return (body.startsWith("]") ? `\\${body}` : body).replaceAll(/\\([^])|[^]/g, (char, letter) => letter === void 0 ? dialect.classChar(char) : dialect.classEscape(letter));
}
/**
* Returns an escaped character. A dash may be escaped inside a class only; its code is allowed
* anywhere.
*/
function escapedSyntax(char) {
	return char === "-" ? "\\x2d" : `\\${char}`;
}
/** The Python escapes outside a class that JavaScript lacks, or that it limits to ASCII. */
const ESCAPES = {
	A: "(?<![^])",
	Z: "(?![^])",
	a: "\\x07",
	d: "\\p{Nd}",
	D: "\\P{Nd}",
	w: "[\\p{L}\\p{N}_]",
	W: "[^\\p{L}\\p{N}_]",
	b: "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))",
	B: "(?:(?<=[\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_]))"
};
/** The same escapes inside `[…]`. */
const CLASS_ESCAPES = {
	a: "\\x07",
	d: "\\p{Nd}",
	D: "\\P{Nd}",
	w: "\\p{L}\\p{N}_",
	W: "\\p{C}\\p{M}\\p{S}\\p{Z}\\p{Pd}\\p{Ps}\\p{Pe}\\p{Pi}\\p{Pf}\\p{Po}‿⁀⁔︳︴﹍-﹏＿"
};
/**
* Returns JavaScript's own engine, which backtracks: fast for most patterns, too slow for some.
* Throws SyntaxError for a wrong pattern.
*/
function backtrackingEngine(pattern, text) {
	const regex = regexOf(pattern);
	return { next(from) {
		regex.lastIndex = from;
		const match = regex.exec(text);
		return match ? {
			index: match.index,
			groups: match,
			named: match.groups ?? {}
		} : void 0;
	} };
}
function regexOf({ source, caseInsensitive, dotall, multiline }) {
	const flags = `gu${caseInsensitive ? "i" : ""}${dotall ? "s" : ""}`;
	return new RegExp(translate(source, dialectOf({
		dotall,
		multiline
	})), flags);
}
/**
* Returns how JavaScript writes the pattern. Python's only line end is `\n`, and its `$` also
* matches before a last one.
*/
function dialectOf({ dotall, multiline }) {
	return {
		escape: (letter) => ESCAPES[letter] ?? literal(letter),
		classEscape: (letter) => CLASS_ESCAPES[letter] ?? literal(letter),
		classChar: (char) => char,
		anchors: {
			".": dotall ? "." : "[^\\n]",
			"^": multiline ? "(?<![^\\n])" : "^",
			$: multiline ? "(?![^\\n])" : "(?=\\n?(?![^]))"
		},
		namedGroup: "(?<",
		namedReference: (name) => `\\k<${name}>`
	};
}
// src/nodes/text/search.ts
const SEARCH_LIMITS = {
	quickMs: 500,
	slowMs: 5e3,
	totalMs: 6e4
};
const MS_PER_CHAR = 1 / 1e4;
/** The matches that are kept at a time, and the groups of all of them. */
const BATCH = 1e3;
const BATCH_GROUPS = 1e4;
/** How long matches are collected between two checks of the job's stop flag. */
const SLICE_MS = 50;
/** The number of matches between two reads of the clock. */
const MATCHES_PER_CLOCK_READ = 64;
/**
* Finds the matches of a Python pattern in a text, some at a time. JavaScript's own engine has a
* short time for each match. After that an engine continues that is linear in the text. When it
* cannot match the pattern or the text, JavaScript's engine has a longer time, and its end is a
* `TimeoutError`. Throws SyntaxError for a wrong pattern.
*/
async function* searchText(search, context, limits = SEARCH_LIMITS) {
	const { text, most } = search;
	const timed = limitsFor(text, limits);
	const endMs = performance.now() + timed.totalMs;
	let attempt = openFirst(search, timed);
	let from = 0;
	for (let left = most; left > 0 && from <= text.length;) {
		context.check();
		const batch = [];
		const place = {
			text,
			from,
			wanted: Math.min(left, BATCH)
		};
		const outcome = gather(batch, attempt, place);
		if (outcome === "overdue") attempt = await openNext(attempt, search, timed);
		left = outcome === "over" ? 0 : left - batch.length;
		from = indexAfter(batch.at(-1), place);
		yield batch;
		if (left > 0 && performance.now() > endMs) throw tooSlow(search);
	}
}
function limitsFor(text, { quickMs, slowMs, totalMs }) {
	const moreMs = text.length * MS_PER_CHAR;
	return {
		quickMs: quickMs + moreMs,
		slowMs: slowMs + moreMs,
		totalMs: totalMs + moreMs
	};
}
function openFirst({ pattern: source, flags, text }, limits) {
	const pattern = runTimed(() => pythonPattern(source, flags), limits.slowMs);
	return {
		kind: "first",
		pattern,
		engine: runTimed(() => backtrackingEngine(pattern, text), limits.slowMs),
		limitMs: limits.quickMs
	};
}
async function openNext({ kind, pattern, engine }, search, limits) {
	if (kind === "last") throw tooSlow(search);
	const linear = await openLinear(pattern, search, limits);
	if (linear) return {
		kind: "last",
		pattern,
		engine: linear,
		limitMs: limits.totalMs
	};
	return {
		kind: "last",
		pattern,
		engine,
		limitMs: limits.slowMs
	};
}
function gather(batch, { engine, limitMs }, span) {
	try {
		return runWithDeadline(() => fill(batch, engine, span), limitMs);
	} catch (error) {
		if (error instanceof DeadlineExceeded) return "overdue";
		throw error;
	}
}
/** Collects matches for a limited time. The matches so far count even after an interruption. */
function fill(batch, engine, span) {
	const untilMs = performance.now() + SLICE_MS;
	for (let at = span.from; batch.length < span.wanted; at = indexAfter(batch.at(-1), span)) {
		const match = at <= span.text.length ? engine.next(at) : void 0;
		if (!match) return "over";
		batch.push(match);
		if (batch.length * match.groups.length >= BATCH_GROUPS) return "more";
		if (batch.length % MATCHES_PER_CLOCK_READ === 0 && performance.now() > untilMs) return "more";
	}
	return "more";
}
/** Returns the index to search from after a match; after an empty match, one character on. */
function indexAfter(match, { text, from }) {
	if (!match) return from;
	const length = match.groups[0]?.length ?? 0;
	if (length > 0) return match.index + length;
	return match.index + ((text.codePointAt(match.index) ?? 0) > 65535 ? 2 : 1);
}
/** Opens the linear engine. It is loaded on demand, since most patterns never need it. */
async function openLinear(pattern, { text, wanted }, { slowMs }) {
	const { linearEngine } = await import("./linear-CVZ-EqBZ.js");
	return runTimed(() => linearEngine(pattern, {
		text,
		wanted
	}), slowMs);
}
/** Runs a task within a time limit: a pattern may be so long that to read it takes too long. */
function runTimed(task, limitMs) {
	try {
		return runWithDeadline(task, limitMs);
	} catch (error) {
		if (!(error instanceof DeadlineExceeded)) throw error;
		throw new NodeFailure("TimeoutError", "this regular expression is too complex", { cause: error });
	}
}
function tooSlow({ pattern, text }) {
	const shown = pattern.length > 80 ? `${pattern.slice(0, 80)}…` : pattern;
	return new NodeFailure("TimeoutError", `the regular expression ${shown} takes too long on this text of ${text.length} characters; only patterns without lookaround, backreferences and large counts can be matched in linear time`);
}
/** Thrown when a task took too long, or needed more stack than exists. */
var DeadlineExceeded = class extends Error {
	name = "DeadlineExceeded";
};
let runner;
/**
* Runs a synchronous task. Throws `DeadlineExceeded` when it is not over after `limitMs`, whatever
* it is doing. Node's `vm` can end a running regular expression; nothing else in this thread can.
*/
function runWithDeadline(task, limitMs) {
	const { script, context } = runner ??= openRunner();
	context["task"] = task;
	try {
		return script.runInContext(context, { timeout: Math.max(1, Math.ceil(limitMs)) });
	} catch (error) {
		throw isOverdue(error) ? new DeadlineExceeded("the time is over", { cause: error }) : error;
	} finally {
		context["task"] = void 0;
	}
}
function openRunner() {
	return {
		script: new Script("task()"),
		context: createContext({ task: void 0 })
	};
}
/** V8 keeps the backtracking state of a regular expression on a separate, limited stack. */
function isOverdue(error) {
	const { code, message } = error;
	if (code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return true;
	return error instanceof RangeError && /call stack/.test(String(message));
}
// src/nodes/text/pattern.ts
const SWITCHES = {
	case_insensitive: ["BOOLEAN", { default: true }],
	multiline: ["BOOLEAN", { default: false }],
	dotall: ["BOOLEAN", { default: false }]
};
const EXTRACT = {
	"First Match": {
		most: 1,
		pick: ({ groups }) => groups[0] ?? ""
	},
	"All Matches": {
		most: Infinity,
		pick: ({ groups }) => (groups.length > 1 ? groups[1] : groups[0]) ?? ""
	},
	"First Group": {
		most: 1,
		pick: ({ groups }, group) => groups.length > group ? groups[group] ?? null : ""
	},
	"All Groups": {
		most: Infinity,
		pick: ({ groups }, group) => groups.length > Math.max(1, group) ? groups[group] ?? "" : void 0
	}
};
/** The text nodes that take a Python regular expression. */
const TEXT_PATTERN_NODES = [
	typedNode({
		...TEXT,
		name: "RegexMatch",
		displayName: "Regex Match",
		required: {
			string: MULTILINE,
			regex_pattern: MULTILINE,
			...SWITCHES
		},
		outputs: [{
			type: "BOOLEAN",
			name: "matches"
		}],
		run: async (inputs, context) => ({ outputs: [await matches(inputs, context)] })
	}),
	typedNode({
		...TEXT,
		name: "RegexExtract",
		displayName: "Regex Extract",
		required: {
			string: MULTILINE,
			regex_pattern: MULTILINE,
			mode: ["COMBO", {
				multiselect: false,
				options: Object.keys(EXTRACT)
			}],
			...SWITCHES,
			group_index: ["INT", {
				default: 1,
				min: 0,
				max: 100
			}]
		},
		run: async (inputs, context) => ({ outputs: [await extract(inputs, context)] })
	}),
	typedNode({
		...TEXT,
		name: "RegexReplace",
		displayName: "Regex Replace",
		description: "Replaces what a regular expression finds.",
		required: {
			string: MULTILINE,
			regex_pattern: MULTILINE,
			replace: MULTILINE
		},
		optional: {
			...SWITCHES,
			count: ["INT", {
				default: 0,
				min: 0,
				max: 100
			}]
		},
		run: async (inputs, context) => ({ outputs: [await replaceMatches(inputs, context)] })
	})
];
async function matches(inputs, context) {
	const search = searchOf(inputs, {
		most: 1,
		wanted: "whether"
	});
	for await (const found of findNothingIfWrong(searchText(search, context))) if (found.length > 0) return true;
	return false;
}
/** Extracts. Several matches are joined by newlines. */
async function extract(inputs, context) {
	const mode = EXTRACT[inputs.mode];
	if (!mode) return "";
	const search = searchOf(inputs, {
		most: mode.most,
		wanted: "matches"
	});
	const pieces = createTextPieces(context);
	let isFirst = true;
	for await (const found of findNothingIfWrong(searchText(search, context))) for (const match of found) {
		const picked = mode.pick(match, inputs.group_index);
		if (mode.most === 1) return picked === void 0 ? "" : picked;
		if (typeof picked !== "string") continue;
		if (!isFirst) pieces.add("\n");
		pieces.add(picked);
		isFirst = false;
	}
	return pieces.text();
}
/** Yields no match for a pattern that does not compile, as v1 does. */
async function* findNothingIfWrong(found) {
	try {
		yield* found;
	} catch (error) {
		if (!(error instanceof SyntaxError)) throw error;
	}
}
async function replaceMatches(inputs, context) {
	try {
		return await replaced(inputs, context);
	} catch (error) {
		if (!(error instanceof SyntaxError)) throw error;
		throw new NodeFailure("re.error", error.message, { cause: error });
	}
}
async function replaced(inputs, context) {
	const { count = 0, replace: source } = inputs;
	const search = searchOf(inputs, {
		most: count > 0 ? count : Infinity,
		wanted: "matches"
	});
	const pieces = createTextPieces(context);
	let template;
	let at = 0;
	for await (const found of searchText(search, context)) for (const match of found) {
		template ??= parseTemplate(source);
		pieces.add(search.text.slice(at, match.index));
		for (const text of templateTexts(template, match)) pieces.add(text);
		at = match.index + (match.groups[0]?.length ?? 0);
	}
	if (template === void 0) await checkTemplate(parseTemplate(source), search, context);
	pieces.add(search.text.slice(at));
	return pieces.text();
}
/**
* Checks the replacement. Python reads it before the search, so a group that the pattern lacks is
* an error even without a match.
*/
async function checkTemplate(template, { pattern, flags }, context) {
	if (template.every((part) => "text" in part)) return;
	const probe = {
		pattern: `${pattern}|`,
		flags,
		text: "",
		most: 1,
		wanted: "matches"
	};
	for await (const found of searchText(probe, context)) for (const match of found) for (const _ of templateTexts(template, match));
}
function searchOf({ string: text, regex_pattern: pattern, ...switches }, { most, wanted }) {
	const { case_insensitive: caseInsensitive = true, multiline = false, dotall = false } = switches;
	return {
		pattern,
		flags: {
			caseInsensitive,
			multiline,
			dotall
		},
		text,
		most,
		wanted
	};
}
function parseTemplate(template) {
	const parts = [];
	let at = 0;
	for (const token of template.matchAll(/\\(?:g<(\w+)>|([1-9]\d?)|([^]))/g)) {
		const [whole, named, numbered, letter] = token;
		parts.push({ text: template.slice(at, token.index) });
		parts.push(letter === void 0 ? {
			group: String(named ?? numbered),
			position: token.index + (named ? 3 : 1)
		} : { text: templateEscape(letter) });
		at = token.index + whole.length;
	}
	return [...parts, { text: template.slice(at) }].filter((part) => !("text" in part) || part.text !== "");
}
/** Yields the replacement texts of a match. Throws SyntaxError for a group that the match lacks. */
function* templateTexts(template, match) {
	for (const part of template) yield "text" in part ? part.text : groupText(part, match);
}
function groupText({ group, position }, { groups, named }) {
	const isNumber = /^\d+$/.test(group);
	if (isNumber && Number(group) >= groups.length) throw new SyntaxError(`invalid group reference ${group} at position ${position}`);
	if (!isNumber && !Object.hasOwn(named, group)) throw new NodeFailure("IndexError", `unknown group name '${group}'`);
	return (isNumber ? groups[Number(group)] : named[group]) ?? "";
}
function templateEscape(letter) {
	const known = {
		n: "\n",
		t: "	",
		r: "\r",
		"\\": "\\",
		a: "\x07",
		f: "\f",
		v: "\v",
		"0": "\0"
	};
	if (known[letter] !== void 0) return known[letter];
	if (/[a-zA-Z]/.test(letter)) throw new SyntaxError(`bad escape \\${letter}`);
	return `\\${letter}`;
}
// src/nodes/text/text-nodes.ts
const TRIM = {
	Both: (text, context) => trimEnd(trimStart(text, context), context),
	Left: trimStart,
	Right: trimEnd
};
const CASE = {
	UPPERCASE: upperCase,
	lowercase: lowerCase,
	Capitalize: capitalCase,
	"Title Case": titleCase
};
const COMPARE = {
	"Starts With": (a, b) => a.startsWith(b),
	"Ends With": (a, b) => a.endsWith(b),
	Equal: (a, b) => a === b
};
/** The nodes that make texts from texts. Characters are code points, as in Python. */
const TEXT_NODES = [
	typedNode({
		...TEXT,
		name: "StringConcatenate",
		displayName: "Concatenate",
		required: {
			string_a: MULTILINE,
			string_b: MULTILINE,
			delimiter: ["STRING", {
				default: "",
				multiline: false
			}]
		},
		run({ string_a: a, string_b: b, delimiter }, context) {
			reserveText(context, a.length + delimiter.length + b.length);
			return { outputs: [[a, b].join(delimiter)] };
		}
	}),
	typedNode({
		...TEXT,
		name: "StringSubstring",
		displayName: "Substring",
		required: {
			string: MULTILINE,
			start: ["INT", {}],
			end: ["INT", {}]
		},
		run({ string, ...bounds }, context) {
			const chars = countChars(string, context);
			const place = (index) => Math.min(chars, index < 0 ? Math.max(0, chars + index) : index);
			const [start, end] = [place(bounds.start), place(bounds.end)];
			if (start >= end) return { outputs: [""] };
			const from = offsetOf(string, start, context);
			const to = offsetOf(string, end, context);
			reserveText(context, to - from);
			return { outputs: [string.slice(from, to)] };
		}
	}),
	typedNode({
		...TEXT,
		name: "StringLength",
		displayName: "Length",
		required: { string: MULTILINE },
		outputs: [{
			type: "INT",
			name: "length"
		}],
		run: ({ string }, context) => ({ outputs: [countChars(string, context)] })
	}),
	typedNode({
		...TEXT,
		name: "CaseConverter",
		displayName: "Case Converter",
		required: {
			string: MULTILINE,
			mode: options(CASE)
		},
		run: ({ string, mode }, context) => ({ outputs: [chosen(mode, CASE)?.(string, context) ?? string] })
	}),
	typedNode({
		...TEXT,
		name: "StringTrim",
		displayName: "Trim",
		required: {
			string: MULTILINE,
			mode: options(TRIM)
		},
		run: ({ string, mode }, context) => ({ outputs: [chosen(mode, TRIM)?.(string, context) ?? string] })
	}),
	typedNode({
		...TEXT,
		name: "StringReplace",
		displayName: "Replace",
		required: {
			string: MULTILINE,
			find: MULTILINE,
			replace: MULTILINE
		},
		run: ({ string, find, replace }, context) => ({ outputs: [find === "" ? insertAroundAll(string, replace, context) : replaceAll(string, {
			find,
			replace
		}, context)] })
	}),
	typedNode({
		...TEXT,
		name: "StringContains",
		displayName: "Contains",
		required: {
			string: MULTILINE,
			substring: MULTILINE,
			case_sensitive: ["BOOLEAN", { default: true }]
		},
		outputs: [{
			type: "BOOLEAN",
			name: "contains"
		}],
		run({ string, substring: wanted, case_sensitive: isExact }, context) {
			const [value, find] = isExact ? [string, wanted] : lowered([string, wanted], context);
			return { outputs: [find === "" || createFinder(value, find, context)(0) >= 0] };
		}
	}),
	typedNode({
		...TEXT,
		name: "StringCompare",
		displayName: "Compare",
		required: {
			string_a: MULTILINE,
			string_b: MULTILINE,
			mode: options(COMPARE),
			case_sensitive: ["BOOLEAN", { default: true }]
		},
		outputs: [{ type: "BOOLEAN" }],
		run({ string_a: one, string_b: other, mode, case_sensitive: isExact }, context) {
			const [a, b] = isExact ? [one, other] : lowered([one, other], context);
			return { outputs: [chosen(mode, COMPARE)?.(a, b) ?? false] };
		}
	}),
	...TEXT_PATTERN_NODES,
	PREVIEW_ANY
];
function options(table) {
	return ["COMBO", {
		multiselect: false,
		options: Object.keys(table)
	}];
}
function lowered([one, other], context) {
	return [lowerCase(one, context), lowerCase(other, context)];
}
/** Returns the entry of the mode. v1 accepts any text as a mode. */
function chosen(mode, table) {
	return Object.hasOwn(table, mode) ? table[mode] : void 0;
}
/**
* Inserts a text before, between and behind all characters, which is how Python replaces an empty
* text.
*/
function insertAroundAll(value, between, context) {
	const places = countChars(value, context) + 1;
	reserveText(context, value.length + places * between.length);
	const pieces = [];
	for (const chunk of chunksOf(value, context)) pieces.push(["", ...Array.from(chunk)].join(between));
	return [...pieces, between].join("");
}
function replaceAll(value, { find, replace }, context) {
	const next = createFinder(value, find, context);
	let count = 0;
	for (let at = next(0); at >= 0; at = next(at + find.length)) count++;
	if (count === 0) return value;
	reserveText(context, value.length + count * (replace.length - find.length));
	const pieces = createTextPieces(NO_RESERVATION);
	let from = 0;
	for (let at = next(0); at >= 0; at = next(from)) {
		pieces.add(value.slice(from, at));
		pieces.add(replace);
		from = at + find.length;
	}
	pieces.add(value.slice(from));
	return pieces.text();
}
/** Used for a text whose memory is already reserved. */
const NO_RESERVATION = { reserve: () => {} };
function trimStart(value, context) {
	let from = 0;
	while (from < value.length && isWhite(value.charAt(from))) if (++from % 65536 === 0) context.check();
	return trimmed(value, from, value.length, context);
}
function trimEnd(value, context) {
	let to = value.length;
	while (to > 0 && isWhite(value.charAt(to - 1))) if (--to % 65536 === 0) context.check();
	return trimmed(value, 0, to, context);
}
function trimmed(value, from, to, context) {
	if (to - from === value.length) return value;
	reserveText(context, to - from);
	return value.slice(from, to);
}
/** True for white space. Python also counts the four separators of ASCII. */
function isWhite(char) {
	return /\p{White_Space}/u.test(char) || char >= "" && char <= "";
}
/**
* Searches for `find` in a text by the algorithm of Knuth, Morris and Pratt, which reads each
* character of the text at most twice. `String.prototype.indexOf` compares every character of one
* text with every character of the other when both repeat themselves, and nothing can end it
* meanwhile.
* @internal
*/
function createFinder(text, find, context) {
	context.reserve(find.length * Int32Array.BYTES_PER_ELEMENT);
	const borders = bordersOf(find, context);
	return (from) => {
		let matched = 0;
		for (let at = from; at < text.length; at++) {
			if (at % 65536 === 0) context.check();
			const code = text.charCodeAt(at);
			while (matched > 0 && code !== find.charCodeAt(matched)) matched = borders[matched - 1] ?? 0;
			if (code === find.charCodeAt(matched)) matched++;
			if (matched === find.length) return at + 1 - matched;
		}
		return -1;
	};
}
/**
* Returns, for each beginning of a text, the length of the longest shorter beginning with which it
* ends.
*/
function bordersOf(find, context) {
	const borders = new Int32Array(find.length);
	let length = 0;
	for (let at = 1; at < find.length; at++) {
		if (at % 65536 === 0) context.check();
		const code = find.charCodeAt(at);
		while (length > 0 && code !== find.charCodeAt(length)) length = borders[length - 1] ?? 0;
		if (code === find.charCodeAt(length)) length++;
		borders[at] = length;
	}
	return borders;
}
// src/nodes/image/transform-stitch.ts
const COLOURS = {
	white: [
		1,
		1,
		1
	],
	black: [
		0,
		0,
		0
	],
	red: [
		1,
		0,
		0
	],
	green: [
		0,
		1,
		0
	],
	blue: [
		0,
		0,
		1
	]
};
/** Joins two pictures side by side. */
const imageStitch = typedNode({
	name: "ImageStitch",
	displayName: "Image Stitch",
	description: "Puts the second picture beside the first one, with a coloured gap if wanted.",
	category: "image/transform",
	pythonModule: "comfy_extras.nodes_images",
	required: {
		image1: ["IMAGE"],
		direction: [[
			"right",
			"down",
			"left",
			"up"
		], { default: "right" }],
		match_image_size: ["BOOLEAN", { default: true }],
		spacing_width: ["INT", {
			default: 0,
			min: 0,
			max: 1024,
			step: 2
		}],
		spacing_color: [Object.keys(COLOURS), { default: "white" }]
	},
	optional: { image2: ["IMAGE"] },
	outputs: [{ type: "IMAGE" }],
	run({ image1: given, image2: other, direction, ...inputs }, context) {
		if (!other) return { outputs: [given] };
		const along = direction === "left" || direction === "right" ? "width" : "height";
		const colour = entryOf(COLOURS, inputs.spacing_color, ["KeyError", "There is no spacing colour"]);
		const batch = Math.max(given.batch, other.batch);
		const pair = [repeatLast(context, given, batch), repeatLast(context, other, batch)];
		const [first, second] = inputs.match_image_size ? matchSize(context, pair, along) : padAcross(context, pair, {
			along,
			colour
		});
		const channels = Math.max(first.channels, second.channels);
		const one = fillAlpha(context, first, channels);
		const two = fillAlpha(context, second, channels);
		const gap = Math.max(0, Math.ceil(inputs.spacing_width / 2) * 2);
		return { outputs: [join$1(context, direction === "left" || direction === "up" ? [two, one] : [one, two], {
			along,
			gap,
			colour
		})] };
	}
});
/** Repeats the last picture of the shorter batch. */
const repeatLast = (context, image, batch) => {
	if (image.batch === batch) return image;
	const longer = newImage(context, {
		...image,
		batch
	});
	longer.data.set(image.data);
	for (let i = image.batch; i < batch; i++) frameOf(longer, i).set(frameOf(image, image.batch - 1));
	return longer;
};
/** Scales the second picture to the height (or width) of the first, with its proportions. */
const matchSize = (context, [first, second], along) => {
	const ratio = second.width / second.height;
	const size = along === "width" ? {
		width: Math.trunc(first.height * ratio),
		height: first.height
	} : {
		width: first.width,
		height: Math.trunc(first.width / ratio)
	};
	return [first, upscale(context, second, {
		...size,
		method: "lanczos",
		crop: "disabled"
	})];
};
/**
* Puts the smaller picture into the middle. The borders are white for a white gap, and black for
* all others.
*/
const padAcross = (context, [first, second], stitch) => {
	const across = stitch.along === "width" ? "height" : "width";
	const wanted = Math.max(first[across], second[across]);
	const padded = (image) => {
		if (image[across] === wanted) return image;
		const result = newImage(context, {
			...image,
			[across]: wanted
		});
		result.data.fill(Math.min(...stitch.colour));
		const before = Math.floor((wanted - image[across]) / 2);
		place(context, result, image, across === "height" ? {
			x: 0,
			y: before
		} : {
			x: before,
			y: 0
		});
		return result;
	};
	return [padded(first), padded(second)];
};
const join$1 = (context, [first, second], { along, gap, colour }) => {
	const length = first[along] + gap + second[along];
	const joined = newImage(context, {
		...first,
		[along]: length
	});
	if (gap > 0) paint(context, joined, colour);
	place(context, joined, first, {
		x: 0,
		y: 0
	});
	const behind = first[along] + gap;
	place(context, joined, second, along === "width" ? {
		x: behind,
		y: 0
	} : {
		x: 0,
		y: behind
	});
	return joined;
};
/** Fills a picture with a colour, opaque if it has alpha. */
const paint = (context, image, colour) => {
	const pixel = Float32Array.from({ length: image.channels }, (_, c) => colour[c] ?? 1);
	const row = new Float32Array(image.width * image.channels);
	for (let x = 0; x < image.width; x++) row.set(pixel, x * image.channels);
	eachRow(context, image, (y) => image.data.set(row, y * row.length));
};
// src/nodes/image/transform.ts
const COMMON = {
	category: "image/transform",
	pythonModule: "comfy_extras.nodes_images",
	outputs: [{ type: "IMAGE" }]
};
const EDGE = ["INT", {
	default: 0,
	min: 0,
	max: 16384,
	step: 8
}];
const imagePadForOutpaint = typedNode({
	name: "ImagePadForOutpaint",
	displayName: "Pad Image for Outpainting",
	category: "image",
	pythonModule: "nodes",
	required: {
		image: ["IMAGE"],
		left: EDGE,
		top: EDGE,
		right: EDGE,
		bottom: EDGE,
		feathering: ["INT", {
			default: 40,
			min: 0,
			max: 16384,
			step: 1
		}]
	},
	outputs: [{ type: "IMAGE" }, { type: "MASK" }],
	run({ image, feathering, ...margins }, context) {
		if (Math.min(...Object.values(margins)) < 0) throw new NodeFailure("RuntimeError", "left, top, right and bottom cannot be below 0");
		return { outputs: [padInGrey(context, image, margins), outpaintMask(context, image, margins, feathering)] };
	}
});
/** Pads in grey. Alpha, if there is any, becomes grey in the margins like the other channels. */
const padInGrey = (context, image, margins) => {
	const { left, top, right, bottom } = margins;
	const [width, height] = [image.width + left + right, image.height + top + bottom];
	const padded = newImage(context, {
		...image,
		width,
		height
	});
	padded.data.fill(.5);
	place(context, padded, image, {
		x: left,
		y: top
	});
	return padded;
};
/**
* Returns one mask for all pictures: 1 in the margins, and falling off inside the padded edges
* only.
*/
const outpaintMask = (context, image, { left, top, right, bottom }, feathering) => {
	const [width, height] = [image.width + left + right, image.height + top + bottom];
	const mask = newMask(context, {
		batch: 1,
		width,
		height
	});
	mask.data.fill(1);
	const reach = feathering * 2 < Math.min(image.width, image.height) ? feathering : 0;
	const across = edgeDistances(image.width, left, right);
	const down = edgeDistances(image.height, top, bottom);
	for (let y = 0; y < image.height; y++) {
		context.check();
		const start = (top + y) * width + left;
		for (let x = 0; x < image.width; x++) {
			const distance = Math.min(across[x], down[y]);
			const level = distance >= reach ? 0 : (reach - distance) / reach;
			mask.data[start + x] = level * level;
		}
	}
	return mask;
};
/**
* Returns the distance of each position from the padded ends. An end without padding is infinitely
* far.
*/
const edgeDistances = (length, before, after) => Float64Array.from({ length }, (_, i) => Math.min(before === 0 ? Infinity : i, after === 0 ? Infinity : length - i));
/** The nodes that put a picture on a larger area. */
const PAD_NODES = [imagePadForOutpaint, typedNode({
	...COMMON,
	name: "ResizeAndPadImage",
	required: {
		image: ["IMAGE"],
		target_width: SIDE$1,
		target_height: SIDE$1,
		padding_color: [["white", "black"]],
		interpolation: [[
			"area",
			"bicubic",
			"nearest-exact",
			"bilinear",
			"lanczos"
		]]
	},
	run({ image, target_width: width, target_height: height, ...inputs }, context) {
		const method = resampleMethod(inputs.interpolation);
		const factor = Math.min(width / image.width, height / image.height);
		const size = {
			width: Math.trunc(image.width * factor),
			height: Math.trunc(image.height * factor)
		};
		const source = upscale(context, image, {
			...size,
			method,
			crop: "disabled"
		});
		const padded = newImage(context, {
			...image,
			width,
			height
		});
		if (inputs.padding_color !== "black") padded.data.fill(1);
		const x = Math.floor((width - size.width) / 2);
		const y = Math.floor((height - size.height) / 2);
		place(context, padded, source, {
			x,
			y
		});
		return { outputs: [padded] };
	}
})];
const imageCrop = typedNode({
	...COMMON,
	name: "ImageCrop",
	displayName: "Image Crop",
	required: {
		image: ["IMAGE"],
		width: SIDE$1,
		height: SIDE$1,
		x: OFFSET,
		y: OFFSET
	},
	run({ image, width, height, ...corner }, context) {
		const x = Math.min(corner.x, image.width - 1);
		const y = Math.min(corner.y, image.height - 1);
		const columns = spanWithin(image.width, {
			start: x,
			end: x + width
		});
		const rows = spanWithin(image.height, {
			start: y,
			end: y + height
		});
		return { outputs: [cutOut(context, image, {
			columns,
			rows
		})] };
	}
});
const FLIPS = /* @__PURE__ */ new Map([["x-axis: vertically", ({ width, height }) => [
	(height - 1) * width,
	1,
	-width
]], ["y-axis: horizontally", ({ width }) => [
	width - 1,
	-1,
	width
]]]);
/** The rotations, clockwise. */
const ROTATIONS = /* @__PURE__ */ new Map([
	["none", ({ width }) => [
		0,
		1,
		width
	]],
	["90 degrees", ({ width, height }) => [
		(height - 1) * width,
		-width,
		1
	]],
	["180 degrees", ({ width, height }) => [
		height * width - 1,
		-1,
		-width
	]],
	["270 degrees", ({ width }) => [
		width - 1,
		width,
		-1
	]]
]);
/**
* Rearranges a picture. Other words can come through a link only; they leave the picture unchanged,
* as in v1.
*/
const rearrange = (context, image, size, walk) => {
	if (!walk) return image;
	const [origin, perColumn, perRow] = walk;
	const result = newImage(context, {
		...image,
		width: size.width,
		height: size.height
	});
	const pixels = image.width * image.height;
	const { channels, data } = image;
	const step = perColumn * channels;
	eachRow(context, result, (row) => {
		let from = (Math.floor(row / result.height) * pixels + origin + row % result.height * perRow) * channels;
		let to = row * result.width * channels;
		for (let x = 0; x < result.width; x++, from += step) for (let c = 0; c < channels; c++) result.data[to++] = data[from + c];
	});
	return result;
};
/** The nodes that cut, turn, pad or join pictures. */
const TRANSFORM_NODES = [
	imageCrop,
	typedNode({
		...COMMON,
		name: "ImageFlip",
		required: {
			image: ["IMAGE"],
			flip_method: [[...FLIPS.keys()]]
		},
		run({ image, flip_method: method }, context) {
			return { outputs: [rearrange(context, image, image, FLIPS.get(method)?.(image))] };
		}
	}),
	typedNode({
		...COMMON,
		name: "ImageRotate",
		required: {
			image: ["IMAGE"],
			rotation: [[...ROTATIONS.keys()]]
		},
		run({ image, rotation }, context) {
			const { width, height } = image;
			return { outputs: [rearrange(context, image, rotation === "90 degrees" || rotation === "270 degrees" ? {
				width: height,
				height: width
			} : image, ROTATIONS.get(rotation)?.(image))] };
		}
	}),
	...PAD_NODES,
	imageStitch
];
// src/nodes/library.ts
/** Every node class this server runs, by its v1 name. */
const ALL_NODES = new Map([
	...SAVE_NODES,
	...LOAD_NODES,
	...SAVE_ANIMATED_NODES,
	...BASIC_NODES,
	...SCALE_NODES,
	...FILTER_NODES,
	...TRANSFORM_NODES,
	...COMPOSE_NODES,
	...MASK_NODES,
	...PRIMITIVE_NODES,
	...TEXT_NODES,
	...GENERATOR_NODES
].map((def) => [def.name, def]));
export { decodeBmp as a, readPngChunks as c, pictureFormatOf as i, writePng as l, literal as n, decodeInks as o, translate as r, isPng as s, ALL_NODES as t };
