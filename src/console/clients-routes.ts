import type { CallStore, PromptRow, PromptStore } from '../ledger/ledger.ts';
import type { PublicAddresses } from '../http/public-address.ts';
import { reportOf } from '../migration/usage-report.ts';
import type { UsageCounter } from '../migration/usage-counter.ts';
import { V1Error, plainError } from '../dialects/errors.ts';
import type { JobApi } from '../protocol/job-api.ts';
import type { ClientsAnswer } from './api-types.ts';
import { type ConsoleHandlers, requireOperator } from './console-routes.ts';
import { readLanguage, writeCode } from './job-code.ts';

type ClientsServices = {
  readonly calls: Pick<CallStore, 'list'>;
  readonly usageCounter: Pick<UsageCounter, 'flush'>;
  readonly prompts: Pick<PromptStore, 'outlines' | 'get'>;
  readonly jobs: Pick<JobApi, 'get' | 'asset'>;
  readonly addresses: Pick<PublicAddresses, 'of'>;
};

/** The number of prompts whose rows are read to find those of a client. */
const MAX_READ = 400;
/** The maximum number of workflows in the code of a client. */
const MAX_WORKFLOWS = 5;

/** The routes for leaving v1: the clients that still call it, and the v2 code for what each did. */
export function clientsHandlers(services: ClientsServices): ConsoleHandlers {
  return {
    async 'GET clients'({ caller, access, query }): Promise<ClientsAnswer> {
      const isAll = query.get('scope') === 'all';
      if (isAll) requireOperator(access);
      await services.usageCounter.flush();
      const rows = await services.calls.list();
      return { clients: reportOf(isAll ? rows : rows.filter(({ user }) => user === caller.user)) };
    },
    async 'GET clients/code'({ ctx, caller, query }) {
      const language = readLanguage(query);
      const rows = await promptsOf(
        services.prompts,
        caller.user,
        new Set(query.getAll('client_id')),
      );
      if (rows.length === 0) {
        const message = 'History has no prompt of this client.';
        throw new V1Error(404, plainError('not_found', message));
      }
      const baseUrl = services.addresses.of(ctx.req)?.base ?? '';
      return writeCode(services, { caller, rows, language, baseUrl });
    },
  };
}

/**
 * Returns the latest prompts of a client, one for each workflow, in the order of their submission.
 */
async function promptsOf(
  prompts: ClientsServices['prompts'],
  user: string,
  clientIds: ReadonlySet<string>,
): Promise<readonly PromptRow[]> {
  const found = new Map<string, PromptRow>();
  const newest = (await prompts.outlines(user)).slice(-MAX_READ).toReversed();
  for (const { key } of newest) {
    if (found.size === MAX_WORKFLOWS) break;
    const row = await prompts.get(key);
    if (row === undefined || !clientIds.has(row.clientId ?? '')) continue;
    const classes = [...row.graphJson.matchAll(/"class_type":"([^"]*)"/g)].map(([, name]) => name);
    const shape = classes.join();
    if (!found.has(shape)) found.set(shape, row);
  }
  return [...found.values()].toReversed();
}
