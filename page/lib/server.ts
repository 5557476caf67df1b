import type { FileRef } from '../../src/protocol/v1.ts';

/** Kept in this tab only, and gone when it is closed. */
const KEY_NAME = 'holdover-key';
const ANSWER_TIMEOUT_MS = 20_000;
/** For a whole file. */
export const LOAD_TIMEOUT_MS = 600_000;

/** Where the server is: the scripts of the page are one folder below. */
export const ROOT = new URL('..', import.meta.url);

/** The server does not know the caller. */
export class KeyNeeded extends Error {}

/** The server answered with a status that is no success. */
export class Refused extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function storedKey(): string | null {
  return sessionStorage.getItem(KEY_NAME);
}

export function storeKey(value: string | null): void {
  if (value === null) sessionStorage.removeItem(KEY_NAME);
  else sessionStorage.setItem(KEY_NAME, value);
}

export function address(path: string): string {
  return new URL(path, ROOT).href;
}

type CallOptions = Omit<RequestInit, 'headers' | 'signal'> & {
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  /** The mark of calls that the usage report does not count. */
  readonly mark?: '1' | 'sample';
};

/** `path` is below the root, without a slash in front. */
export async function call(path: string, options: CallOptions = {}): Promise<Response> {
  const { headers, timeoutMs = ANSWER_TIMEOUT_MS, mark = '1', ...init } = options;
  const key = storedKey();
  const response = await fetch(address(path), {
    ...init,
    cache: 'no-store',
    headers: { ...headers, 'Holdover-Page': mark, ...(key !== null && { 'X-API-Key': key }) },
    signal: AbortSignal.timeout(timeoutMs),
  });
  if (response.status === 401) throw new KeyNeeded();
  return response;
}

export async function getJson<T>(path: string, options?: CallOptions): Promise<T> {
  return (await (await successOf(await call(path, options))).json()) as T;
}

export async function getBlob(path: string, timeoutMs?: number): Promise<Blob> {
  return (await successOf(await call(path, timeoutMs === undefined ? {} : { timeoutMs }))).blob();
}

export async function postJson(path: string, body: string | object, mark: '1' | 'sample' = '1') {
  const response = await call(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    mark,
  });
  return successOf(response);
}

/** Rejects for an answer that is no success, in the words of the server where it has some. */
export async function successOf(response: Response): Promise<Response> {
  if (response.ok) return response;
  const text = await response.text().catch(() => '');
  const error = readJson(text) as {
    error?: { message?: string; details?: string } | string;
    message?: string;
  };
  const told =
    typeof error?.error === 'string' ? error.error : (error?.error?.message ?? error?.message);
  throw new Refused(response.status, told ?? `The server answered ${response.status}.`);
}

export function readJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The address of a file as v1 names it. */
export function viewPath(file: FileRef, more: Readonly<Record<string, string>> = {}): string {
  const { filename, subfolder, type } = file;
  return `view?${new URLSearchParams({ filename, subfolder, type, ...more })}`;
}
