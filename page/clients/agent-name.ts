/** Browsers by their word in a `User-Agent`; the ones that name another too come first. */
const BROWSERS = ['Edg', 'OPR', 'Firefox', 'HeadlessChrome', 'Chrome', 'Version'] as const;
const NAMES: Readonly<Record<string, string>> = {
  Edg: 'Edge',
  OPR: 'Opera',
  HeadlessChrome: 'Chrome',
  Version: 'Safari',
};

/** A short name of a program: `Firefox 140 in a browser page` for what takes three lines, else its own words. */
export function nameOf(agent: string): string {
  if (!agent.startsWith('Mozilla/')) return agent;
  for (const word of BROWSERS) {
    const version = new RegExp(`\\b${word}/(\\d+)`).exec(agent)?.[1];
    if (version !== undefined) return `A page in ${NAMES[word] ?? word} ${version}`;
  }
  return agent;
}
