import { i as ANNOTATED_NAME, t as hasControlCharacter } from "./control-characters-CRFC75pz.js";
import { extname, posix } from "node:path";
import { encodeExtended } from "content-disposition";
import { lookup } from "mime-types";
// src/files/safe-name.ts
const MAX_NAME_BYTES = 255;
const MAX_FOLDER_BYTES = 1024;
/** Names that Windows gives to devices, with any extension. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;
/**
* Matches line ends, direction overrides, surrogate halves, and the character that stands for
* broken UTF-8.
*/
const UNPRINTABLE = /[\p{Cs}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffd]/u;
/** Matches a separator of either kind, and the mark of a Windows file stream. */
const PATH_LIKE = /[\\/]|::/;
const FILE_TYPES = /* @__PURE__ */ new Set([
	"input",
	"output",
	"temp"
]);
/** True when v1 has a folder with this name. */
function isFileType(type) {
	return FILE_TYPES.has(type);
}
/**
* Returns the name if every file system can hold it, and if it cannot mislead a header or a
* terminal.
*/
function safeName(name) {
	return name === "" || Buffer.byteLength(name) > MAX_NAME_BYTES || name.startsWith(".") || /[. ]$/.test(name) || DEVICE.test(name) || PATH_LIKE.test(name) || UNPRINTABLE.test(name) || hasControlCharacter(name) ? void 0 : name;
}
/** Returns the folder in one form if every part of it is a safe name; `''` is the root. */
function safeFolder(folder) {
	const resolvedFolder = withinRoot(folder);
	if (resolvedFolder === void 0 || Buffer.byteLength(folder) > MAX_FOLDER_BYTES) return void 0;
	if (resolvedFolder === "") return "";
	return resolvedFolder.split("/").every((part) => safeName(part) !== void 0) ? resolvedFolder : void 0;
}
/**
* Resolves `.` and `..` as v1 does, and drops a trailing slash. `undefined` when the result is
* outside the root.
*/
function withinRoot(folder) {
	if (folder.startsWith("/") || folder.includes("\\")) return void 0;
	const resolved = posix.normalize(folder).replace(/\/$/, "");
	if (resolved === ".." || resolved.startsWith("../")) return void 0;
	return resolved === "." ? "" : resolved;
}
/** Splits `sub/m.png [input]` into the name and the folder that it asks for. */
function parseAnnotation(value) {
	const [, name, type] = ANNOTATED_NAME.exec(value) ?? [];
	return name === void 0 ? { name: value } : {
		name,
		type
	};
}
/** Splits a path at its last slash. A name without a slash is in the folder `''`. */
function splitPath(path) {
	const slash = path.lastIndexOf("/");
	return {
		folder: path.slice(0, Math.max(slash, 0)),
		name: path.slice(slash + 1)
	};
}
/**
* Returns the path of an upload at the upstream. It is always below `input/`, since v2 chooses the
* place of other files. Only inputs may be found by their name.
*/
function uploadPathOf({ type, subfolder, filename }) {
	return posix.join("input", type === "input" ? "" : type, subfolder, filename);
}
// src/http/file-headers.ts
const UNKNOWN_TYPE = "application/octet-stream";
/** The types for which v1's table differs from the library's. */
const V1_TYPES = { ".flac": "audio/flac" };
/**
* The types that a browser may run: v1's list of five, those of newer servers, and further ones.
*/
const ACTIVE_TYPES = /^(text\/(html|html-sandboxed|javascript|css|xml|x-component)|application\/(javascript|ecmascript|xml|pdf|x-shockwave-flash)|message\/rfc822|multipart\/.*|.*\+xml)$/;
/** The extensions that v1 takes for pictures when it decides on caching. */
const PICTURE = /\.(jpe?g|png|ppm|bmp|pgm|tiff?|webp)$/;
const SVG = "image/svg+xml";
/** Returns the type that v1 derives from a file's extension, if there is one. */
function contentTypeOf(filename) {
	const extension = extname(filename).toLowerCase();
	if (extension === "") return void 0;
	return V1_TYPES[extension] ?? (lookup(extension) || void 0);
}
/**
* Returns the headers that another server may send with a file in place of this one, and no others.
* `undefined` when they would not keep a browser from running the file.
*/
function headersElsewhere(file, fetchDest) {
	const { "Content-Type": contentType = UNKNOWN_TYPE, "Content-Disposition": disposition = "" } = fileHeaders(file, fetchDest);
	if (contentType === SVG) return void 0;
	const [prefix = ""] = disposition.split("filename=", 1);
	return {
		contentType,
		disposition: `${prefix}${asciiDispositionOf(file.filename)}`
	};
}
/**
* Returns the headers for the content of a file. Content that a browser could run is sent as an
* attachment, in a sandbox. An SVG is a picture only inside an `<img>`.
*/
function fileHeaders(file, fetchDest) {
	const type = contentTypeOf(file.filename) ?? file.contentType.toLowerCase().split(";", 1)[0] ?? "";
	const disposition = dispositionOf(file.filename);
	if (!ACTIVE_TYPES.test(type)) return {
		"Content-Type": type || UNKNOWN_TYPE,
		"Content-Disposition": disposition
	};
	const isImageElement = type === SVG && fetchDest === "image";
	return {
		"Content-Type": isImageElement ? SVG : UNKNOWN_TYPE,
		"Content-Disposition": isImageElement ? disposition : `attachment; ${disposition}`,
		"Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'",
		"Cache-Control": "no-store",
		Vary: "Sec-Fetch-Dest"
	};
}
/**
* Returns v1's `filename="…"` alone, in unencoded UTF-8: old clients take everything behind the
* `=`. Node writes each character of a header as one byte.
* @internal
*/
function dispositionOf(filename) {
	return Buffer.from(`filename=${quotedOf(filename.replaceAll(/\p{Cc}/gu, "?"))}`).toString("latin1");
}
/**
* Returns the header in ASCII, for a server that takes only that. Another name is added encoded.
*/
function asciiDispositionOf(filename) {
	const printableName = filename.replaceAll(/\p{Cs}/gu, "�");
	const ascii = printableName.replaceAll(/[^\x20-\x7e]/gu, "?");
	const quoted = `filename=${quotedOf(ascii)}`;
	return ascii === printableName ? quoted : `${quoted}; filename*=${encodeExtended(printableName)}`;
}
function quotedOf(text) {
	return `"${text.replaceAll(/["\\]/g, "\\$&")}"`;
}
/**
* True when the client's copy is current (RFC 9110, 13.2.2): tags are compared weakly, and a date
* counts only without them. Not Koa's `fresh`: that one obeys the `Cache-Control: no-cache` which
* `fetch` adds whenever it is given a condition.
*/
function isCopyCurrent({ headers }, { etag, modifiedAtMs = NaN }) {
	const tags = headers["if-none-match"];
	if (tags === void 0) return Math.floor(modifiedAtMs / 1e3) * 1e3 <= Date.parse(headers["if-modified-since"] ?? "");
	const strongTag = etag.replace(/^W\//, "");
	return tags.trim() === "*" || (tags.match(/"[^"]*"/g)?.includes(strongTag) ?? false);
}
export { isCopyCurrent as a, safeFolder as c, uploadPathOf as d, withinRoot as f, headersElsewhere as i, safeName as l, contentTypeOf as n, isFileType as o, fileHeaders as r, parseAnnotation as s, PICTURE as t, splitPath as u };
