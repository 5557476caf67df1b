const OWN = /^holdover(-[a-z]+)?$/;

/** `User-Agent` of calls that one of Holdover's own commands makes. */
export function ownAgent(command: 'demo' | 'health'): string {
  return `holdover-${command}`;
}

/** True for Holdover's own programs: a server in front of another one says just `holdover`. */
export function isOwnAgent(userAgent: string): boolean {
  return OWN.test(userAgent);
}
