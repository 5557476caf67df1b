import { f as InvalidSetting } from "./ledger-B4DYGOuk.js";
// src/config/parse-values.ts
/** Single times and amounts that tests set otherwise. */
function parseJsonObject(flag, text) {
	try {
		const value = JSON.parse(text);
		if (typeof value === "object" && value !== null) return value;
	} catch {}
	throw new InvalidSetting(`option '${flag}' must be a JSON object`);
}
const MEBIBYTE = 1048576;
const DAY_MS = 864e5;
/** Times are recorded in whole milliseconds. */
function daysInMs(days) {
	return Math.round(days * DAY_MS);
}
/** An environment variable holds several values in one text. */
function splitList(texts = []) {
	return texts.flatMap((text) => text.split(/[\s,;]+/)).filter((text) => text !== "");
}
const HOST_FORM = /^(\[[\da-f:.]+\]|[^:/?#@\s[\]*]+)(?::(\d{1,5}))?$/i;
/** Reads `HOST` and `HOST:PORT`; `undefined`: it is neither. */
function parseHost(text) {
	const [, host = "", port] = HOST_FORM.exec(text) ?? [];
	if (host === "" || Number(port ?? 1) > 65535 || !URL.canParse(`http://${host}`)) return void 0;
	return {
		hostname: new URL(`http://${host}`).hostname,
		port
	};
}
/** A text in place of an address, as it may be repeated: without what may be a login. */
function withoutLogin(text) {
	return text.replace(/^([a-z][a-z\d+.-]*:\/\/)?.*@/is, "$1").replace(/\?.*$/s, "?…");
}
export { splitList as a, parseJsonObject as i, daysInMs as n, withoutLogin as o, parseHost as r, MEBIBYTE as t };
