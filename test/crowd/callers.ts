/** A caller in one form: which server it was written for, and as whom it is served. */
export type Caller = {
  readonly user: string;
  readonly form: 'local' | 'hosted';
  /** On every HTTP call. */
  readonly headers: Readonly<Record<string, string>>;
  /** Before every path but `/ws`. */
  readonly prefix: '' | '/api';
  /** Of `/ws`, besides the client id. */
  readonly socketQuery: string;
  readonly socketHeaders: Readonly<Record<string, string>>;
};

const LOCAL = { form: 'local', prefix: '', socketQuery: '' } as const;

/** A script for the original server: no key anywhere. */
export const keyless: Caller = { ...LOCAL, user: 'local', headers: {}, socketHeaders: {} };

/** open-webui without a key: it always sends the header. */
export const emptyBearer: Caller = withHeader(keyless.user, 'Authorization', 'Bearer ');

/** Dify, open-webui and others: `Authorization: Bearer`, on the socket as well. */
export function bearer(key: string): Caller {
  return withHeader(key, 'Authorization', `Bearer ${key}`);
}

/** n8n: `X-API-Key` on paths without `/api`. */
export function bareKey(key: string): Caller {
  return withHeader(key, 'X-API-Key', key);
}

/** A sample of the hosted documentation, or the hosted front end. */
export function hosted(key: string): Caller {
  return {
    user: key,
    form: 'hosted',
    headers: { 'X-API-Key': key },
    prefix: '/api',
    socketQuery: `token=${key}`,
    socketHeaders: {},
  };
}

function withHeader(user: string, name: string, value: string): Caller {
  const headers = { [name]: value };
  return { ...LOCAL, user, headers, socketHeaders: headers };
}

/** All callers of one server. */
export type Callers = {
  readonly keyless: Caller;
  readonly emptyBearer: Caller;
  readonly sample: Caller;
  readonly bearer: (key: string) => Caller;
  readonly bareKey: (key: string) => Caller;
  readonly hosted: (key: string) => Caller;
};

const sample = hosted('sample-key');

export const BY_KEY: Callers = { keyless, emptyBearer, sample, bearer, bareKey, hosted };
