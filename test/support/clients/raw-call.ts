import { once } from 'node:events';
import {
  type Agent,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as requestHttp,
} from 'node:http';
import { request as requestHttps } from 'node:https';

/** An answer, with nothing unpacked and no redirect followed. */
export type Called = {
  readonly status: number;
  readonly reason: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly text: string;
};

export type CallOptions = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** PEM of a certificate to trust. */
  readonly ca?: string;
  /** Has connections for many calls; without it each call has one of its own. */
  readonly agent?: Agent;
};

/** Calls with the path exactly as written: `fetch` would tidy it. */
export async function call(
  baseUrl: string,
  path: string,
  options: CallOptions = {},
): Promise<Called> {
  const { method = 'GET', headers = {}, body, ca, agent = false } = options;
  const { protocol, hostname, port } = new URL(baseUrl);
  const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) };
  const target = { hostname, port, path, method, headers: { ...length, ...headers }, agent };
  const outgoing =
    protocol === 'https:' ? requestHttps({ ...target, ...(ca && { ca }) }) : requestHttp(target);
  // An answer that comes before the body is read ends in a reset; the answer counts.
  outgoing.on('error', () => {});
  outgoing.end(body);
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const whole = Buffer.concat(chunks);
  const { statusCode: status = 0, statusMessage: reason = '' } = response;
  return { status, reason, headers: response.headers, body: whole, text: whole.toString() };
}
