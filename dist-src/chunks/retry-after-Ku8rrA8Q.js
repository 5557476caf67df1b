// src/http/retry-after.ts
/** A day. A longer wait is of no use, and clients obey this value. */
const MAX_SECONDS = 86400;
/**
* Returns the seconds of a `Retry-After`, from 0 to a day. The header is a number, or a date, which
* is compared with the answer's own date, or with `nowMs`. `undefined`: the header is absent or has
* no meaning (`-1`, `1.5`, `soon`).
*/
function readRetryAfter(headers, nowMs) {
	const { "retry-after": given = "", date = "" } = headers;
	const statedValue = String(given).trim();
	if (/^\d+$/.test(statedValue)) return Math.min(Number(statedValue), MAX_SECONDS);
	if (!/^[a-z]{3,9}, /i.test(statedValue)) return void 0;
	const answeredAtMs = Date.parse(String(date));
	const seconds = (Date.parse(statedValue) - (Number.isNaN(answeredAtMs) ? nowMs : answeredAtMs)) / 1e3;
	return Number.isNaN(seconds) ? void 0 : Math.min(MAX_SECONDS, Math.max(0, Math.ceil(seconds)));
}
export { readRetryAfter as t };
