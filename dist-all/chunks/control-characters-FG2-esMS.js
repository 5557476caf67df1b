import { w as readTarget } from "./ledger-Bul7BDb8.js";
// src/protocol/v1.ts
/**
* v1's name of a file in an input. Its folder stands in brackets at the end, unless it is `input`.
*/
const ANNOTATED_NAME = /^(.*) \[(input|output|temp)\]$/s;
/** A longer text is not read as a name: pictures are sent as texts, too. */
const MAX_NAME_CHARS = 4096;
// src/protocol/control-characters.ts
/**
* C0, DEL and C1. A database or a C library may end a text at the first such character, and it may
* break a line of a log.
*/
const CONTROL = /\p{Cc}/u;
/**
* The same characters percent-encoded in UTF-8. `%25` is a percent sign that is encoded once more.
*/
const ENCODED = /%(?:[01][\da-f]|7f|c2%[89][\da-f])/i;
const ENCODED_AGAIN = /%(?:25)*(?:[01][\da-f]|7f|c2%(?:25)*[89][\da-f])/i;
/**
* True when a name, an id, a key or a path has a control character. `as` states how the text is
* written: plain, percent-encoded once, or percent-encoded any number of times.
*/
function hasControlCharacter(text, as = "plain") {
	if (CONTROL.test(text)) return true;
	if (as === "plain" || !text.includes("%")) return false;
	return (as === "encoded" ? ENCODED : ENCODED_AGAIN).test(text);
}
/**
* True when a text has half of a surrogate pair. No database, header or file system stores such a
* half: two different texts may become the same.
*/
function hasHalfCharacter(text) {
	return /\p{Cs}/u.test(text);
}
/** The paths of calls to partners, whose bodies and parameters are not checked. */
const PARTNER_PATHS = /^\/proxy\//;
/**
* Parameters that are file names. A file may be called `frame_%05d.png`, so they are decoded once
* only.
*/
const FILE_NAMES = /* @__PURE__ */ new Set(["filename", "subfolder"]);
/**
* True when the path of a request target, or the name or value of a parameter, has a control
* character, however often it is encoded: a proxy may decode it once more. v2 refuses one in a
* label filter with a code of its own.
*/
function targetHasControlCharacter(url) {
	const { path, query } = readTarget(url);
	if (hasControlCharacter(path, "encoded again")) return true;
	if (query === "" || PARTNER_PATHS.test(path) || !hasControlCharacter(query, "encoded again")) return false;
	return query.slice(1).split("&").some((part) => parameterHasControlCharacter(part));
}
function parameterHasControlCharacter(part) {
	const [[name] = [""]] = new URLSearchParams(`&${part}`);
	if (name.startsWith("metadata[")) return false;
	return hasControlCharacter(part, FILE_NAMES.has(name) ? "encoded" : "encoded again");
}
export { MAX_NAME_CHARS as a, ANNOTATED_NAME as i, hasHalfCharacter as n, targetHasControlCharacter as r, hasControlCharacter as t };
