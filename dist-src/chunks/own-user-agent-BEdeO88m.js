// src/lib/own-user-agent.ts
const OWN_USER_AGENT = /^holdover(-[a-z]+)?$/;
/** Returns the `User-Agent` for calls of Holdover's own commands. */
function ownUserAgent(command) {
	return `holdover-${command}`;
}
/** True for Holdover's own programs. A server in front of another one sends plain `holdover`. */
function isOwnUserAgent(userAgent) {
	return OWN_USER_AGENT.test(userAgent);
}
export { ownUserAgent as n, isOwnUserAgent as t };
