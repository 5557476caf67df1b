import type { Holdover } from '../support/processes/holdover.ts';
import { scrape } from '../support/processes/scrape.ts';
import { getJson } from '../support/clients/v1-client.ts';
import { type Load, readFiles } from './load.ts';

const READERS = 8;

/** The errors of a load that is over; empty when every prompt is accounted for. */
export async function accountingErrors(
  holdover: Holdover,
  load: Load,
  expected: number,
): Promise<readonly string[]> {
  const { sent } = load;
  const counted = sent.length === expected ? [] : [`${sent.length} of ${expected} were accepted`];
  return [
    ...load.problems,
    ...counted,
    ...sent.flatMap(endsMissing),
    ...(await historyErrors(holdover, load)),
    ...(await fileErrors(holdover, load)),
    ...(await metricErrors(holdover, sent.length)),
  ];
}

/** Exactly one end, the right one, and v1's last word once. */
function endsMissing({ prefix, promptId, end, countingSocket }: Load['sent'][number]): string[] {
  const { ends, closings } = countingSocket.framesOf(promptId);
  if (closings === 1 && ends.length === 1 && ends[0] === end) return [];
  return [`${prefix}: heard ${ends.join(' ') || 'no end'}, and the last word ${closings} times`];
}

/** Each user's history has that user's prompts, each once, and no others; the queue has none. */
async function historyErrors({ url }: Holdover, { sent }: Load): Promise<string[]> {
  const problems: string[] = [];
  for (const key of new Set(sent.map((prompt) => prompt.key))) {
    const headers = { 'X-API-Key': key };
    const theirs = sent.filter((prompt) => prompt.key === key).map(({ promptId }) => promptId);
    const kept = Object.keys(await getJson(`${url}/history`, headers));
    const queue = await getJson(`${url}/queue`, headers);
    const missing = theirs.filter((id) => !kept.includes(id));
    const left = queue.queue_running.length + queue.queue_pending.length;
    if (missing.length + left === 0 && kept.length === theirs.length) continue;
    problems.push(
      `${key}: ${kept.length} entries of ${theirs.length}, ${missing.length} missing, ${left} left`,
    );
  }
  return problems;
}

/** Reads all files again after the load; its errors. */
async function fileErrors({ url }: Holdover, { sent }: Load): Promise<string[]> {
  const problems: string[] = [];
  for (let at = 0; at < sent.length; at += READERS) {
    const some = sent.slice(at, at + READERS).map((prompt) => readFiles(url, prompt));
    problems.push(...(await Promise.all(some)).flat());
  }
  return problems;
}

/** The server's own counts agree. */
async function metricErrors({ url }: Holdover, expected: number): Promise<string[]> {
  const { of } = await scrape(url);
  const ended = ['success', 'error', 'non_retryable_error', 'cancelled']
    .map((word) => of(`holdover_jobs_ended_total{outcome="${word}"}`))
    .reduce((sum, count) => sum + count, 0);
  const live = ['waiting', 'queued', 'running', 'ending']
    .map((state) => of(`holdover_jobs{state="${state}"}`))
    .reduce((sum, count) => sum + count, 0);
  return ended === expected && live === 0 ? [] : [`/metrics: ${ended} ended, ${live} live`];
}
