const OWN_USER_AGENT = /^holdover(-[a-z]+)?$/;

/** `User-Agent` of calls that one of Holdover's own commands makes. */
export function ownUserAgent(command: 'demo' | 'health'): string {
  return `holdover-${command}`;
}

/** True for Holdover's own programs; a server in front of another one sends plain `holdover`. */
export function isOwnUserAgent(userAgent: string): boolean {
  return OWN_USER_AGENT.test(userAgent);
}
