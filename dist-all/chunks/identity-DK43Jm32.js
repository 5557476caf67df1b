import { y as loginIn } from "./ledger-Bul7BDb8.js";
import { createHmac, timingSafeEqual } from "node:crypto";
// src/auth/identity.ts
/** The user of all callers without a key. */
const LOCAL_USER = "local";
/**
* Tells users apart by an HMAC of the key that they send; the key itself stays in memory. With
* `localToken`, only holders of that token are served, all of them as the local user; others get
* `undefined`.
*/
function createIdentify(options) {
	const { secret, localToken } = options;
	return (request) => {
		const keys = keysIn(request);
		if (localToken !== void 0) return keys.some((key) => areEqualSecrets(key, localToken)) ? { user: LOCAL_USER } : void 0;
		const [key] = keys;
		return key === void 0 ? { user: LOCAL_USER } : {
			user: userIdOf(secret, key),
			credential: key
		};
	};
}
/** Authenticates a caller by its key, which the upstream must accept. */
function createAuthenticate(options) {
	return async (request) => {
		const caller = options.identify(request);
		if (caller === void 0 || !await options.acceptsCaller(caller)) return void 0;
		options.onCaller(caller);
		return caller;
	};
}
/**
* True when a request has a key, valid or not. Without a key its caller is the local user, if that
* user exists.
*/
function presentsKey(request) {
	return keysIn(request).length > 0;
}
/**
* Returns the keys in the order of their priority: `X-API-Key`, Bearer, Basic, `?token=`. An empty
* Bearer counts as absent, since some clients always send the header.
*/
function keysIn({ headers, url }) {
	const { authorization = "" } = headers;
	const header = headers["x-api-key"];
	const bearer = /^bearer\s+(\S.*)$/i.exec(authorization)?.[1]?.trim();
	return [
		Array.isArray(header) ? header[0] : header,
		bearer,
		...basicKeys(authorization),
		loginIn(url ?? "")
	].filter((key) => key !== void 0 && key !== "");
}
/**
* Returns the keys in a Basic header, which holds the key as the password, as the user name, or as
* both joined.
*/
function basicKeys(authorization) {
	const encoded = /^basic\s+(\S+)$/i.exec(authorization)?.[1];
	if (encoded === void 0) return [];
	const pair = Buffer.from(encoded, "base64").toString("utf8");
	const colon = pair.indexOf(":");
	if (colon < 0) return [pair];
	const [name, password] = [pair.slice(0, colon), pair.slice(colon + 1)];
	if (name === "" && password === "") return [];
	if (name === "" || password === "") return [name || password, pair];
	return [
		pair,
		password,
		name
	];
}
function userIdOf(secret, key) {
	return createHmac("sha256", secret).update(`user\0${key}`).digest("hex").slice(0, 32);
}
function areEqualSecrets(given, expected) {
	const digest = (text) => createHmac("sha256", "compare").update(text).digest();
	return timingSafeEqual(digest(given), digest(expected));
}
export { presentsKey as i, createAuthenticate as n, createIdentify as r, LOCAL_USER as t };
