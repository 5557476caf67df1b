import type { Ledger, PromptRow } from '../ledger/ledger.ts';
import type { Logger } from '../telemetry.ts';
import { type JsonObject, parseJson } from '../wire/json.ts';
import type { JobApi } from '../wire/jobs.ts';
import type { Graph } from '../wire/v2.ts';
import { KEY_LABEL } from './accept.ts';
import type { Follower } from './follower.ts';

type Deps = {
  readonly jobs: JobApi;
  readonly ledger: Ledger;
  readonly follower: Follower;
  readonly log: Logger;
};

/** After a restart: prompts with a job are followed again, the others are settled one way or the other. */
export async function resumePrompts(deps: Deps): Promise<void> {
  const rows = await deps.ledger.prompts.live();
  for (const row of rows) await resume(deps, row);
  if (rows.length > 0) deps.log.info({ prompts: rows.length }, 'live prompts taken up again');
}

async function resume(deps: Deps, row: PromptRow): Promise<void> {
  if (row.jobId !== null) return follow(deps, row, row.jobId);
  const found = await deps.jobs.list(
    { user: row.user },
    { metadata: { [KEY_LABEL]: row.key }, limit: 1 },
  );
  const job = found.ok ? found.value.jobs[0] : undefined;
  // No client was told of it, so nobody waits for it.
  if (job === undefined) return deps.ledger.prompts.remove(row.key);
  const promptId = row.promptId === row.key ? job.id : row.promptId;
  const { graphJson, targetsJson } = row;
  await deps.ledger.prompts.attach(row.key, { promptId, jobId: job.id, graphJson, targetsJson });
  follow(deps, { ...row, promptId }, job.id);
}

function follow({ follower }: Deps, row: PromptRow, jobId: string): void {
  const prompt = follower.adopt(
    {
      key: row.key,
      promptId: row.promptId,
      jobId,
      number: row.number,
      clientId: row.clientId,
      createdAtMs: row.createdAtMs,
      graph: parseJson(row.graphJson) as Graph,
      extraData: parseJson(row.extraDataJson) as JsonObject,
      targets: parseJson(row.targetsJson) as readonly string[],
    },
    { user: row.user },
  );
  follower.follow(prompt);
}
