import type { CallStore } from '../ledger/ledger.ts';
import { reportOf } from '../migration/usage-report.ts';
import type { UsageCounter } from '../migration/usage-counter.ts';
import type { ClientsAnswer } from './api-types.ts';
import { type ConsoleHandlers, requireOperator } from './console-routes.ts';

type ClientsServices = {
  readonly calls: CallStore;
  readonly usageCounter: UsageCounter;
};

/** The route for leaving v1: the clients that still call it. */
export function clientsHandlers(services: ClientsServices): ConsoleHandlers {
  return {
    async 'GET clients'({ caller, access, query }): Promise<ClientsAnswer> {
      const isAll = query.get('scope') === 'all';
      if (isAll) requireOperator(access);
      await services.usageCounter.flush();
      const rows = await services.calls.list();
      return { clients: reportOf(isAll ? rows : rows.filter(({ user }) => user === caller.user)) };
    },
  };
}
