import { r as hashOf } from "./hash-DYRd5MjV.js";
import { createHash } from "node:crypto";
import sharp from "sharp";
// src/models/local/thread-model.ts
/** Thrown for an input that fits its schema but that the model cannot process. */
var InputError = class extends Error {
	name = "InputFault";
	detail;
	constructor(field, fault) {
		super(fault.msg);
		this.detail = {
			loc: ["body", field],
			...fault
		};
	}
};
// src/models/local/file-schema.ts
/** Returns the schema of an input field that takes a file. */
function fileField(what) {
	return {
		type: "string",
		description: `${what}: base64, a data: URL, or the id of an asset of yours`
	};
}
/**
* Returns the schema of the field that chooses how a file is returned. The first way is the
* default.
*/
function outputField(...ways) {
	return {
		type: "string",
		enum: [...ways],
		default: ways[0] ?? "base64",
		description: "base64: within the JSON answer; asset: stored, with its id in the answer; binary: as the body"
	};
}
/** Returns the schema of a closed input object. Fields without a default are required. */
function inputSchema(properties, optional = []) {
	return {
		type: "object",
		additionalProperties: false,
		required: Object.entries(properties).filter(([name, field]) => !("default" in field) && !optional.includes(name)).map(([name]) => name),
		properties
	};
}
/** Returns the schema of an answer in JSON: an object with these fields. */
function jsonAnswer(properties) {
	return { "application/json": {
		type: "object",
		required: Object.keys(properties),
		properties
	} };
}
/** Returns the schema of an answer with a file under `name`, as JSON and as bytes. */
function fileAnswer(name, contentTypes, facts) {
	const text = { type: "string" };
	const file = {
		type: "object",
		required: [
			"content_type",
			"size_bytes",
			...Object.keys(facts)
		],
		properties: {
			content_type: {
				type: "string",
				enum: [...contentTypes]
			},
			size_bytes: { type: "integer" },
			...facts,
			base64: text,
			asset_id: text,
			url: text,
			hash: text
		}
	};
	const bare = Object.fromEntries(contentTypes.map((type) => [type, {}]));
	return {
		...jsonAnswer({ [name]: file }),
		...bare
	};
}
/** Returns a number of an input; the schema ensures its type. */
function numberOf(input, name) {
	return input[name];
}
/** Returns a text of an input; the schema ensures its type. */
function textOf(input, name) {
	return input[name];
}
/** Returns the schema of an integer within bounds. Without a default it is required. */
const integer = numberWithin("integer");
/** Returns the schema of a number within bounds. Without a default it is required. */
const decimal = numberWithin("number");
/** Returns the schema of a choice of several words. The first is the default. */
function choice(options, description) {
	return {
		type: "string",
		enum: [...options],
		default: options[0] ?? "",
		description
	};
}
function numberWithin(type) {
	return ({ min: minimum, max: maximum, ...more }, description) => ({
		type,
		minimum,
		maximum,
		...more,
		description
	});
}
// src/models/local/picture.ts
/** The formats that are decoded. Documents that could name other files, such as SVG, are not allowed. */
const DECODABLE_FORMATS = /* @__PURE__ */ new Set([
	"jpeg",
	"png",
	"webp",
	"gif",
	"tiff",
	"heif"
]);
const MAX_PIXELS = 4e7;
/** The longest side of a picture that a model makes. */
const MAX_SIDE$1 = 4096;
/** The content types in which a picture is written. */
const IMAGE_TYPES = [
	"image/png",
	"image/jpeg",
	"image/webp"
];
/** The facts about a picture in an answer, beside its bytes. */
const IMAGE_FACTS = {
	width: { type: "integer" },
	height: { type: "integer" }
};
/** The two fields that choose how a picture is written. */
const ENCODING = {
	format: choice([
		"png",
		"jpeg",
		"webp"
	], "file format of the picture"),
	quality: integer({
		min: 1,
		max: 100,
		default: 90
	}, "of jpeg and webp")
};
/** Opens the picture of a field: upright, and its first frame only. */
async function openInputPicture(files, field) {
	const bytes = files[field] ?? /* @__PURE__ */ new Uint8Array();
	if (bytes.length === 0) return throwUnreadable(field);
	const { format, width, height } = await sharp(bytes, { limitInputPixels: false }).metadata().catch(() => throwUnreadable(field));
	if (!DECODABLE_FORMATS.has(format)) throw new InputError(field, {
		type: "unsupported_image_format",
		msg: `${format} pictures are not taken`
	});
	if (width * height > MAX_PIXELS) throw new InputError(field, {
		type: "image_too_large",
		msg: `The picture has more than ${MAX_PIXELS} pixels`,
		ctx: { max_pixels: MAX_PIXELS }
	});
	return sharp(bytes, { limitInputPixels: MAX_PIXELS }).autoOrient();
}
/** Writes a picture as the input requests. A damaged file is noticed only here. */
async function writePicture(image, input, field) {
	const format = input.format;
	const quality = input.quality;
	return await encodeImage(image.toFormat(format, format === "png" ? {} : { quality }), field);
}
/** Runs the pipeline of a picture that came from `field`. */
async function encodeImage(image, field) {
	const { data, info } = await image.toBuffer({ resolveWithObject: true }).catch(() => throwUnreadable(field));
	const { width, height, format } = info;
	return {
		kind: "file",
		bytes: data,
		contentType: `image/${format}`,
		facts: {
			width,
			height
		}
	};
}
/** Throws the error of a picture that cannot be read. */
function throwUnreadable(field) {
	throw new InputError(field, {
		type: "image_load_error",
		msg: "The picture cannot be read"
	});
}
// src/models/local/hash.ts
const ALGORITHMS = [
	"blake3",
	"sha256",
	"sha512"
];
function digestOf(name, bytes) {
	if (name === "blake3") return hashOf(bytes).replace("blake3:", "");
	return createHash(name).update(bytes).digest("hex");
}
/** Computes a fingerprint of a file or text. */
const digest = {
	model: "digest",
	title: "Digest of a file or text",
	description: "BLAKE3, SHA-256 and SHA-512 of a text (as UTF-8) or of a file.",
	files: ["data"],
	input: {
		...inputSchema({
			text: {
				type: "string",
				description: "the text"
			},
			data: fileField("the file"),
			algorithms: {
				type: "array",
				minItems: 1,
				maxItems: ALGORITHMS.length,
				items: {
					type: "string",
					enum: [...ALGORITHMS]
				},
				default: ["blake3", "sha256"]
			}
		}, ["text", "data"]),
		oneOf: [{ required: ["text"] }, { required: ["data"] }]
	},
	output: jsonAnswer({
		size_bytes: { type: "integer" },
		digests: {
			type: "object",
			additionalProperties: { type: "string" }
		}
	}),
	async compute(input, files) {
		const bytes = files.data ?? Buffer.from(textOf(input, "text"));
		const digests = input.algorithms.map((name) => [name, digestOf(name, bytes)]);
		return {
			kind: "json",
			value: {
				size_bytes: bytes.length,
				digests: Object.fromEntries(digests)
			}
		};
	}
};
const BITS = {
	/** Compares the low frequencies with their median. */
	async phash(image) {
		const size = 32;
		const low = withoutNoise(frequencies(await greyLevels(image, size, size), size));
		const sorted = low.slice(1).toSorted((a, b) => a - b);
		const median = ((sorted[30] ?? 0) + (sorted[31] ?? 0) + (sorted[32] ?? 0)) / 3;
		return low.map((value) => value > median);
	},
	/** Compares each pixel with its right neighbour. */
	async dhash(image) {
		const grey = await greyLevels(image, 9, 8);
		return Array.from({ length: 64 }, (_, i) => {
			const at = Math.floor(i / 8) * 9 + i % 8;
			return (grey[at] ?? 0) > (grey[at + 1] ?? 0);
		});
	},
	/** Compares each pixel with the average. */
	async ahash(image) {
		const grey = await greyLevels(image, 8, 8);
		const mean = grey.reduce((sum, level) => sum + level, 0) / grey.length;
		return [...grey].map((level) => level > mean);
	}
};
async function greyLevels(image, width, height) {
	return await image.flatten({ background: "#ffffff" }).resize(width, height, { fit: "fill" }).greyscale().raw().toBuffer().catch(() => throwUnreadable("image"));
}
/** Returns the lowest 8 × 8 frequencies of a square picture (DCT-II), without scale factors. */
function frequencies(grey, size) {
	const wave = (k, n) => Math.cos(Math.PI * (2 * n + 1) * k / (2 * size));
	return Array.from({ length: 64 }, (_, i) => {
		const [v, u] = [Math.floor(i / 8), i % 8];
		let sum = 0;
		for (let at = 0; at < grey.length; at++) sum += (grey[at] ?? 0) * wave(u, at % size) * wave(v, Math.floor(at / size));
		return sum;
	});
}
/**
* Rounds small values to 0: sums that cancel out are not exactly 0, and their signs mean nothing.
*/
function withoutNoise(low) {
	const least = (low[0] ?? 0) * 1e-6;
	return low.map((value) => Math.abs(value) < least ? 0 : value);
}
async function bitsOf(files, field, algorithm) {
	const bits = BITS[algorithm];
	if (bits === void 0) throw new Error(`no such hash: ${algorithm}`);
	return await bits(await openInputPicture(files, field));
}
function toHex(bits) {
	return Array.from({ length: 16 }, (_, i) => bits.slice(i * 4, i * 4 + 4)).map((nibble) => nibble.reduce((value, bit) => value * 2 + Number(bit), 0).toString(16)).join("");
}
const perceptualHash = {
	model: "perceptual-hash",
	title: "Perceptual hash of a picture",
	description: "Sixty-four bits that stay alike while a picture is scaled, recompressed or recoloured a little. With a second picture, also in how many bits the two differ.",
	files: ["image", "other"],
	input: inputSchema({
		image: fileField("the picture"),
		other: fileField("a picture to compare with"),
		algorithm: choice(Object.keys(BITS), "what the bits say")
	}, ["other"]),
	output: { "application/json": {
		type: "object",
		required: ["algorithm", "hash"],
		properties: {
			algorithm: { type: "string" },
			hash: {
				type: "string",
				pattern: "^[0-9a-f]{16}$"
			},
			other_hash: {
				type: "string",
				pattern: "^[0-9a-f]{16}$"
			},
			distance: {
				type: "integer",
				minimum: 0,
				maximum: 64
			}
		}
	} },
	async compute(input, files) {
		const algorithm = textOf(input, "algorithm");
		const bits = await bitsOf(files, "image", algorithm);
		const value = {
			algorithm,
			hash: toHex(bits)
		};
		if (files.other === void 0) return {
			kind: "json",
			value
		};
		const other = await bitsOf(files, "other", algorithm);
		const distance = bits.filter((bit, i) => bit !== other[i]).length;
		return {
			kind: "json",
			value: {
				...value,
				other_hash: toHex(other),
				distance
			}
		};
	}
};
// src/models/local/image.ts
const IMAGE_INPUT = { image: fileField("the picture") };
const IMAGE_OUTPUT_FIELDS = {
	...ENCODING,
	output: outputField("base64", "asset", "binary")
};
const IMAGE_ANSWER = fileAnswer("image", IMAGE_TYPES, IMAGE_FACTS);
/**
* Refuses a size that is too large. With `outside` the longer side follows from the picture, so the
* schema cannot bound it.
*/
async function refuseTooLarge(picture, size) {
	const { autoOrient: oriented } = await picture.metadata();
	const scale = Math.max(size.width / oriented.width, size.height / oriented.height);
	for (const side of ["width", "height"]) {
		const pixels = Math.round(oriented[side] * scale);
		if (pixels <= 4096) continue;
		throw new InputError(side, {
			type: "image_too_large",
			msg: `The ${side} would be ${pixels} pixels, more than ${MAX_SIDE$1}`,
			ctx: { [`max_${side}`]: MAX_SIDE$1 }
		});
	}
}
const imageResize = {
	model: "image-resize",
	title: "Resize a picture",
	description: "Resamples a picture to a size, cropping or padding as asked.",
	files: ["image"],
	input: inputSchema({
		...IMAGE_INPUT,
		width: integer({
			min: 1,
			max: MAX_SIDE$1
		}, "in pixels"),
		height: integer({
			min: 1,
			max: MAX_SIDE$1
		}, "in pixels"),
		fit: choice([
			"cover",
			"contain",
			"fill",
			"inside",
			"outside"
		], "when the shapes differ"),
		kernel: choice([
			"lanczos3",
			"lanczos2",
			"mitchell",
			"cubic",
			"linear",
			"nearest"
		], "resampling"),
		...IMAGE_OUTPUT_FIELDS
	}),
	output: IMAGE_ANSWER,
	async compute(input, files) {
		const [width, height] = [numberOf(input, "width"), numberOf(input, "height")];
		const fit = textOf(input, "fit");
		const picture = await openInputPicture(files, "image");
		if (fit === "outside") await refuseTooLarge(picture, {
			width,
			height
		});
		return await writePicture(picture.resize({
			width,
			height,
			fit,
			kernel: textOf(input, "kernel")
		}), input, "image");
	}
};
const imageBlur = {
	model: "image-blur",
	title: "Blur a picture",
	description: "Gaussian blur.",
	files: ["image"],
	input: inputSchema({
		...IMAGE_INPUT,
		sigma: decimal({
			min: .3,
			max: 100
		}, "standard deviation in pixels"),
		...IMAGE_OUTPUT_FIELDS
	}),
	output: IMAGE_ANSWER,
	async compute(input, files) {
		return await writePicture((await openInputPicture(files, "image")).blur(numberOf(input, "sigma")), input, "image");
	}
};
const imageQuantize = {
	model: "image-quantize",
	title: "Reduce the colours of a picture",
	description: "Chooses a palette and writes a PNG in its colours.",
	files: ["image"],
	input: inputSchema({
		...IMAGE_INPUT,
		colors: integer({
			min: 2,
			max: 256
		}, "most colours of the palette"),
		dither: decimal({
			min: 0,
			max: 1,
			default: 1
		}, "strength of the error diffusion"),
		output: outputField("base64", "asset", "binary")
	}),
	output: fileAnswer("image", ["image/png"], IMAGE_FACTS),
	async compute(input, files) {
		const image = await openInputPicture(files, "image");
		const colours = numberOf(input, "colors");
		const dither = numberOf(input, "dither");
		return await encodeImage(image.png({
			palette: true,
			colours,
			dither
		}), "image");
	}
};
// src/models/local/procedural-image.ts
const MAX_SIDE = 2048;
/** Returns a number from 0 to 1 for whole numbers, the same on every machine. */
function hashed(x, y, seed) {
	let h = seed ^ Math.imul(x, 668265261) ^ Math.imul(y, 374761393);
	h = Math.imul(h ^ h >>> 15, 2246822507);
	h = Math.imul(h ^ h >>> 13, 3266489909);
	return ((h ^ h >>> 16) >>> 0) / 4294967295;
}
const smooth = (t) => t * t * (3 - 2 * t);
function valueNoise(seed) {
	return (x, y) => {
		const [left, top] = [Math.floor(x), Math.floor(y)];
		const [u, v] = [smooth(x - left), smooth(y - top)];
		const above = hashed(left, top, seed) * (1 - u) + hashed(left + 1, top, seed) * u;
		const below = hashed(left, top + 1, seed) * (1 - u) + hashed(left + 1, top + 1, seed) * u;
		return above * (1 - v) + below * v;
	};
}
/** Adds octaves of noise, each twice as fine and half as strong. */
function fractal(seed, octaves) {
	const layers = Array.from({ length: octaves }, (_, i) => valueNoise(seed + i * 2654435761));
	return (x, y) => {
		let [sum, total] = [0, 0];
		for (const [i, layer] of layers.entries()) {
			sum += layer(x * 2 ** i, y * 2 ** i) / 2 ** i;
			total += 1 / 2 ** i;
		}
		return sum / total;
	};
}
/** Returns the distance to the nearest point, with one point in each cell. */
function cells(seed) {
	return (x, y) => {
		let nearest = 2;
		for (let i = -1; i <= 1; i++) for (let j = -1; j <= 1; j++) {
			const [cx, cy] = [Math.floor(x) + i, Math.floor(y) + j];
			const dx = cx + hashed(cx, cy, seed) - x;
			const dy = cy + hashed(cx, cy, seed ^ 1540483477) - y;
			nearest = Math.min(nearest, dx * dx + dy * dy);
		}
		return Math.min(1, Math.sqrt(nearest));
	};
}
/**
* Makes stripes that noise bends. They are a triangle wave, since sines differ between machines.
*/
function marble(seed, octaves) {
	const bend = fractal(seed, octaves);
	return (x, y) => {
		const phase = (x + 4 * bend(x, y)) % 2;
		return Math.abs(1 - phase);
	};
}
const STYLES = {
	fractal,
	noise: valueNoise,
	cells,
	marble
};
function colour(text) {
	const value = Number.parseInt(text.slice(1), 16);
	return [
		value >> 16,
		value >> 8 & 255,
		value & 255
	];
}
function paint(input) {
	const [width, height] = [numberOf(input, "width"), numberOf(input, "height")];
	const [seed, scale] = [numberOf(input, "seed"), numberOf(input, "scale")];
	const folded = seed % 2 ** 32 ^ Math.floor(seed / 2 ** 32);
	const field = (STYLES[textOf(input, "style")] ?? fractal)(folded, numberOf(input, "octaves"));
	const [from, to] = [colour(textOf(input, "from")), colour(textOf(input, "to"))];
	const pixels = Buffer.alloc(width * height * 3);
	for (let y = 0, at = 0; y < height; y++) for (let x = 0; x < width; x++, at += 3) {
		const level = field(x / scale, y / scale);
		for (const c of [
			0,
			1,
			2
		]) pixels[at + c] = from[c] + (to[c] - from[c]) * level + .5;
	}
	return pixels;
}
const HEX = {
	type: "string",
	pattern: "^#[0-9a-fA-F]{6}$"
};
const proceduralImage = {
	model: "procedural-image",
	title: "Paint a seeded pattern",
	description: "Noise, cells or marble by formula: no diffusion. The same seed, the same picture.",
	input: inputSchema({
		style: choice(Object.keys(STYLES), "the pattern"),
		width: integer({
			min: 1,
			max: MAX_SIDE,
			default: 512
		}, "in pixels"),
		height: integer({
			min: 1,
			max: MAX_SIDE,
			default: 512
		}, "in pixels"),
		seed: integer({
			min: 0,
			max: Number.MAX_SAFE_INTEGER,
			default: 0
		}, "chooses the pattern"),
		scale: integer({
			min: 1,
			max: MAX_SIDE,
			default: 64
		}, "size of the largest shapes in pixels"),
		octaves: integer({
			min: 1,
			max: 8,
			default: 5
		}, "layers of detail, of fractal and marble"),
		from: {
			...HEX,
			default: "#000000",
			description: "colour of the lowest value"
		},
		to: {
			...HEX,
			default: "#ffffff",
			description: "colour of the highest value"
		},
		...ENCODING,
		output: outputField("base64", "asset", "binary")
	}),
	output: fileAnswer("image", IMAGE_TYPES, IMAGE_FACTS),
	async compute(input) {
		const [width, height] = [numberOf(input, "width"), numberOf(input, "height")];
		return await writePicture(sharp(paint(input), { raw: {
			width,
			height,
			channels: 3
		} }), input, "style");
	}
};
// src/models/local/text.ts
const MAX_TEXT_CHARS = 2e5;
const READ_WORDS_PER_MINUTE = 230;
const TEXT = {
	type: "string",
	maxLength: MAX_TEXT_CHARS,
	description: "the text"
};
const INTEGER = { type: "integer" };
/**
* The maximum number of characters without a blank between them. The language model takes at least quadratic time to
* find words in such a text.
*/
const MAX_ASCII_RUN = 1e3;
const ENGLISH_TEXT = {
	...TEXT,
	description: `the text; at most ${MAX_ASCII_RUN} ASCII characters without a blank`
};
/** The text of an input for the language model. */
function englishText(input) {
	const text = textOf(input, "text");
	if (text.split(/\s+/).filter(({ length }) => length > MAX_ASCII_RUN).every((run) => run.replaceAll(/[^!-~]+/g, "").length <= MAX_ASCII_RUN)) return text;
	throw new InputError("text", {
		type: "value_error",
		msg: `Most ASCII characters without a blank: ${MAX_ASCII_RUN}`
	});
}
function segments(text, locale, granularity) {
	try {
		return segmentsOf(new Intl.Segmenter(locale, { granularity }), text);
	} catch {
		throw new InputError("language", {
			type: "value_error",
			msg: "Input should be a language tag"
		});
	}
}
function countWords(text, locale) {
	const counts = /* @__PURE__ */ new Map();
	for (const { segment, isWordLike } of segments(text, locale, "word")) {
		if (!isWordLike) continue;
		const word = segment.toLocaleLowerCase(locale);
		counts.set(word, (counts.get(word) ?? 0) + 1);
	}
	return counts;
}
function countSentences(text, locale) {
	let count = 0;
	for (const { segment } of segments(text, locale, "sentence")) if (segment.trim()) count++;
	return count;
}
function countCharacters(text, locale) {
	let count = 0;
	for (const _ of segments(text, locale, "grapheme")) count++;
	return count;
}
function mostFrequent(counts, limit) {
	return [...counts].map(([word, count]) => ({
		word,
		count
	})).toSorted((a, b) => b.count - a.count || (a.word < b.word ? -1 : 1)).slice(0, limit);
}
const textStatistics = {
	model: "text-statistics",
	title: "Statistics of a text",
	description: "Counts by the rules of Unicode, in any language.",
	input: inputSchema({
		text: TEXT,
		language: {
			type: "string",
			maxLength: 35,
			default: "en",
			description: "BCP 47 tag"
		},
		top: integer({
			min: 0,
			max: 100,
			default: 10
		}, "how many of the most frequent words")
	}),
	output: jsonAnswer({
		characters: INTEGER,
		bytes: INTEGER,
		words: INTEGER,
		distinct_words: INTEGER,
		sentences: INTEGER,
		lines: INTEGER,
		reading_seconds: INTEGER,
		top_words: {
			type: "array",
			items: { type: "object" }
		}
	}),
	async compute(input) {
		const [text, language] = [textOf(input, "text"), textOf(input, "language")];
		const counts = countWords(text, language);
		const words = [...counts.values()].reduce((sum, count) => sum + count, 0);
		return {
			kind: "json",
			value: {
				characters: countCharacters(text, language),
				bytes: Buffer.byteLength(text),
				words,
				distinct_words: counts.size,
				sentences: countSentences(text, language),
				lines: text === "" ? 0 : text.split(/\r\n|\r|\n/).length,
				reading_seconds: Math.ceil(words * 60 / READ_WORDS_PER_MINUTE),
				top_words: mostFrequent(counts, numberOf(input, "top"))
			}
		};
	}
};
const textSentiment = {
	model: "text-sentiment",
	title: "Sentiment of an English text",
	description: "From -1 to 1, of the whole and of each sentence, by the wink-eng-lite model.",
	input: inputSchema({ text: ENGLISH_TEXT }),
	output: jsonAnswer({
		sentiment: {
			type: "number",
			minimum: -1,
			maximum: 1
		},
		label: {
			type: "string",
			enum: [
				"positive",
				"neutral",
				"negative"
			]
		},
		sentences: {
			type: "array",
			items: { type: "object" }
		}
	}),
	async compute(input, _files, { readEnglish }) {
		const text = await readEnglish(englishText(input));
		const sentiment = text.sentiment();
		return {
			kind: "json",
			value: {
				sentiment,
				label: sentiment > 0 ? "positive" : sentiment < 0 ? "negative" : "neutral",
				sentences: text.sentences()
			}
		};
	}
};
const textTokens = {
	model: "text-tokens",
	title: "Tokens of an English text",
	description: "Tokens with part of speech and lemma, and named entities, by wink-eng-lite.",
	input: inputSchema({ text: ENGLISH_TEXT }),
	output: jsonAnswer({
		tokens: {
			type: "array",
			items: { type: "object" }
		},
		entities: {
			type: "array",
			items: { type: "object" }
		}
	}),
	async compute(input, _files, { readEnglish }) {
		const text = await readEnglish(englishText(input));
		return {
			kind: "json",
			value: {
				tokens: text.tokens(),
				entities: text.entities()
			}
		};
	}
};
/** The code units in one window: each segment costs the segmenter as much as the text around it. */
const WINDOW_CHARS = 512;
/**
* Yields the segments of a text of any length, in time in proportion to it. A thread that has to
* end ends between two segments, but never inside the engine's own loops.
* @internal
*/
function* segmentsOf(segmenter, text) {
	let chars = WINDOW_CHARS;
	for (let at = 0; at < text.length;) {
		const found = segmentsIn(segmenter, text.slice(at, at + chars));
		const certain = at + chars >= text.length && found.length < WINDOW_CHARS ? found : found.slice(0, -2);
		for (const each of certain) {
			yield each;
			at += each.segment.length;
		}
		chars = certain.length > 0 ? WINDOW_CHARS : chars * 2;
	}
}
function segmentsIn(segmenter, window) {
	const found = [];
	for (const each of segmenter.segment(window)) {
		found.push(each);
		if (found.length === WINDOW_CHARS) break;
	}
	return found;
}
// src/models/local/tone.ts
const HEADER_BYTES = 44;
const SAMPLE_BYTES = 2;
const MAX_LEVEL = 32767;
const SAMPLE_RATES = [
	44100,
	8e3,
	16e3,
	22050,
	48e3
];
/** One period of each wave, from 0 to 1, as levels from -1 to 1. */
const WAVES = {
	sine: (phase) => Math.sin(2 * Math.PI * phase),
	square: (phase) => phase < .5 ? 1 : -1,
	triangle: (phase) => 1 - 4 * Math.abs((phase + .25) % 1 - .5),
	sawtooth: (phase) => 2 * ((phase + .5) % 1) - 1
};
/** Refuses a tone above half the sample rate, which would sound as another tone or be silent. */
function refuseAboveNyquist(frequency, le) {
	if (frequency <= le) return;
	throw new InputError("frequency", {
		type: "less_than_equal",
		msg: `Input should be less than or equal to ${le}, half the sample rate`,
		ctx: { le }
	});
}
/** Makes one channel of 16-bit PCM, with the header of a WAV file. */
function synthesise(input) {
	const rate = numberOf(input, "sample_rate");
	const count = Math.round(numberOf(input, "seconds") * rate);
	const wave = WAVES[textOf(input, "wave")] ?? Math.sin;
	const step = numberOf(input, "frequency") / rate;
	const fade = Math.min(numberOf(input, "fade_ms") * rate / 1e3, count / 2);
	const loudness = numberOf(input, "volume") * MAX_LEVEL;
	const file = Buffer.alloc(HEADER_BYTES + count * SAMPLE_BYTES);
	writeHeader(file, rate);
	for (let i = 0; i < count; i++) {
		const gain = fade === 0 ? 1 : Math.min(1, i / fade, (count - 1 - i) / fade);
		const level = Math.round(wave(i * step % 1) * gain * loudness);
		file.writeInt16LE(level, HEADER_BYTES + i * SAMPLE_BYTES);
	}
	return file;
}
function writeHeader(file, rate) {
	file.write("RIFF", 0, "latin1");
	file.writeUInt32LE(file.length - 8, 4);
	file.write("WAVEfmt ", 8, "latin1");
	file.writeUInt32LE(16, 16);
	file.writeUInt16LE(1, 20);
	file.writeUInt16LE(1, 22);
	file.writeUInt32LE(rate, 24);
	file.writeUInt32LE(rate * SAMPLE_BYTES, 28);
	file.writeUInt16LE(SAMPLE_BYTES, 32);
	file.writeUInt16LE(16, 34);
	file.write("data", 36, "latin1");
	file.writeUInt32LE(file.length - HEADER_BYTES, 40);
}
// src/models/local/thread-models.ts
/** Every model that runs on a worker thread. */
const THREAD_MODELS = [
	imageResize,
	imageBlur,
	imageQuantize,
	proceduralImage,
	perceptualHash,
	digest,
	textStatistics,
	textSentiment,
	textTokens,
	{
		model: "tone",
		title: "Synthesise a tone",
		description: "A WAV file of one wave, 16 bits, one channel; by default the answer is the file.",
		input: inputSchema({
			wave: choice(Object.keys(WAVES), "shape of the wave"),
			frequency: decimal({
				min: 20,
				max: 2e4,
				default: 440
			}, "in hertz"),
			seconds: decimal({
				min: .01,
				max: 60,
				default: 1
			}, "length"),
			volume: decimal({
				min: 0,
				max: 1,
				default: .5
			}, "loudness"),
			fade_ms: integer({
				min: 0,
				max: 1e4,
				default: 10
			}, "fade at either end"),
			sample_rate: {
				type: "integer",
				enum: SAMPLE_RATES,
				default: 44100,
				description: "in hertz"
			},
			output: outputField("binary", "base64", "asset")
		}),
		output: fileAnswer("audio", ["audio/wav"], { seconds: { type: "number" } }),
		async compute(input) {
			refuseAboveNyquist(numberOf(input, "frequency"), numberOf(input, "sample_rate") / 2);
			const facts = { seconds: numberOf(input, "seconds") };
			return {
				kind: "file",
				bytes: synthesise(input),
				contentType: "audio/wav",
				facts
			};
		}
	}
];
export { integer as a, InputError as c, inputSchema as i, choice as n, numberOf as o, decimal as r, textOf as s, THREAD_MODELS as t };
