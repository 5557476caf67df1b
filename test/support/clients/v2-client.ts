import { randomUUID } from 'node:crypto';

/** The calls of a v2 client, by plain fetch. */
export type V2Client = {
  submit(workflow: unknown, more?: object): Promise<{ status: number; body: any }>;
  job(id: string): Promise<{ status: number; body: any }>;
  cancel(id: string): Promise<{ status: number; body: any }>;
  /** The event stream to its end. */
  events(id: string): Promise<string>;
};

/** A v2 client at this address, with these headers on every call. */
export function v2Client(url: string, headers: Record<string, string> = {}): V2Client {
  const call = async (path: string, init: RequestInit = {}) => {
    const answer = await fetch(`${url}/api/v2${path}`, {
      ...init,
      headers: {
        'Content-Type': 'application/json',
        'Idempotency-Key': randomUUID(),
        ...headers,
      },
    });
    return { status: answer.status, body: JSON.parse(await answer.text()) };
  };
  return {
    submit: (workflow, more = {}) =>
      call('/jobs', { method: 'POST', body: JSON.stringify({ workflow, ...more }) }),
    job: (id) => call(`/jobs/${id}`),
    cancel: (id) => call(`/jobs/${id}/cancel`, { method: 'POST' }),
    async events(id) {
      const answer = await fetch(`${url}/api/v2/jobs/${id}/events`, { headers });
      return answer.ok ? await answer.text() : `${answer.status}`;
    },
  };
}
