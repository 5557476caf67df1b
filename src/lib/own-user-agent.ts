const OWN_USER_AGENT = /^holdover(-[a-z]+)?$/;

/** Returns the `User-Agent` for calls of Holdover's own commands. */
export function ownUserAgent(command: 'demo' | 'health'): string {
  return `holdover-${command}`;
}

/** True for Holdover's own programs. A server in front of another one sends plain `holdover`. */
export function isOwnUserAgent(userAgent: string): boolean {
  return OWN_USER_AGENT.test(userAgent);
}
