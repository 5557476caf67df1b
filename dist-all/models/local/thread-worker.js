import { c as InputError, t as THREAD_MODELS } from "../../chunks/thread-models-ynkzDHQs.js";
// src/models/local/english.ts
/** Loads wink-nlp with its small English model for the first text, and keeps it. */
function createEnglish() {
	let loading;
	const loadOnce = () => loading ??= load().catch((error) => {
		loading = void 0;
		throw error;
	});
	return async (text) => {
		const { nlp, its } = await loadOnce();
		const doc = nlp.readDoc(text);
		return {
			sentiment: () => Number(doc.out(its.sentiment)),
			sentences: () => collect(doc.sentences()).map((sentence) => ({
				text: sentence.out(),
				sentiment: Number(sentence.out(its.sentiment))
			})),
			tokens: () => collect(doc.tokens()).map((token) => ({
				text: token.out(),
				type: String(token.out(its.type)),
				pos: String(token.out(its.pos)),
				lemma: String(token.out(its.lemma))
			})),
			entities: () => doc.entities().out(its.detail).map(({ value, type }) => ({
				text: value,
				type
			}))
		};
	};
}
async function load() {
	const [{ default: winkNLP }, { default: model }] = await Promise.all([import("wink-nlp"), import("wink-eng-lite-web-model")]);
	const nlp = winkNLP(model);
	return {
		nlp,
		its: nlp.its
	};
}
function collect(items) {
	const all = [];
	items.each((item) => void all.push(item));
	return all;
}
// src/models/local/thread-worker.ts
const context = { readEnglish: createEnglish() };
/** Runs one model. An input that it cannot process is returned as a value. */
async function runTask({ model, input, files }) {
	const def = THREAD_MODELS.find((each) => each.model === model);
	if (def === void 0) throw new Error(`no model ${model}`);
	try {
		const allFiles = {
			...decodeFiles(input, def.files ?? [], files),
			...files
		};
		return toTaskEnd(await def.compute(input, allFiles, context), input);
	} catch (error) {
		if (error instanceof InputError) return {
			kind: "invalid",
			detail: [error.detail]
		};
		throw error;
	}
}
/** Decodes the files that are inside the input. */
function decodeFiles(input, fields, assets) {
	const decodedFiles = fields.flatMap((field) => {
		const text = input[field];
		return typeof text === "string" && !(field in assets) ? [[field, decode(field, text)]] : [];
	});
	return Object.fromEntries(decodedFiles);
}
function decode(field, text) {
	const comma = text.startsWith("data:") ? text.indexOf(",") : -1;
	const isBase64 = comma < 0 ? !text.startsWith("data:") : text.slice(0, comma).endsWith(";base64");
	const base64 = text.slice(comma + 1).replaceAll(/\s+/g, "");
	if (isBase64 && isCompleteBase64(base64)) return Buffer.from(base64, "base64");
	throw new InputError(field, {
		type: "base64_decode",
		msg: "Input should be base64, a base64 data: URL, or the id of an asset"
	});
}
/**
* Returns true for complete base64: four characters are three bytes, and one alone at the end is invalid.
*/
function isCompleteBase64(base64) {
	const chars = /^[A-Za-z0-9+/_-]*(?=={0,2}$)/.exec(base64)?.[0].length;
	return chars !== void 0 && chars % 4 !== 1;
}
/** Returns the result as the input requests it. This thread does not make assets. */
function toTaskEnd(product, input) {
	if (product.kind === "json") return answer(product.value);
	const { bytes, contentType, facts } = product;
	if (input.output === "binary") return {
		kind: "answer",
		contentType,
		body: bytes
	};
	if (input.output === "asset") return product;
	const name = contentType.split("/", 1)[0] ?? "file";
	const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
	return answer({ [name]: {
		content_type: contentType,
		size_bytes: bytes.length,
		...facts,
		base64
	} });
}
function answer(value) {
	return {
		kind: "answer",
		contentType: "application/json",
		body: Buffer.from(JSON.stringify(value))
	};
}
export { runTask };
