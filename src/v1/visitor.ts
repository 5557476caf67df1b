import type { IncomingMessage } from 'node:http';

/** Longer ones say nothing more. */
const MOST_AGENT_CHARS = 200;

/** The program that calls, as it calls itself. */
export function agentOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const text = (headers['user-agent'] ?? '').replace(/[\p{Cc}\p{Cf}]/gu, ' ').trim();
  return text.slice(0, MOST_AGENT_CHARS) || '(none)';
}

/** Whether Holdover's own page calls, which is no client of v1's that anybody must move. */
export function isOwnPage({
  headers,
  url = '',
}: Pick<IncomingMessage, 'headers' | 'url'>): boolean {
  if (headers['holdover-page'] !== undefined) return true;
  return headers.upgrade !== undefined && /[?&]watch=1(&|$)/.test(url);
}
