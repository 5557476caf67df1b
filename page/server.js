import { readJson } from './frames.js';

/** In this tab only; gone when it is closed. */
const KEY_PLACE = 'holdover-key';
const SHORTEST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
const ANSWER_WITHIN_MS = 20_000;

/** Where the server is: the page lies at its root, or beside it. */
const ROOT = new URL('..', import.meta.url);

/** What the server answers a caller whom it does not know. */
export class KeyNeeded extends Error {}

export function key() {
  return sessionStorage.getItem(KEY_PLACE);
}

/** @param {string | undefined} value */
export function setKey(value) {
  if (value === undefined) sessionStorage.removeItem(KEY_PLACE);
  else sessionStorage.setItem(KEY_PLACE, value);
}

/**
 * @param {string} path below the root, without a leading slash
 * @param {RequestInit} [init]
 */
export async function call(path, init = {}) {
  const given = key();
  const response = await fetch(new URL(path, ROOT), {
    ...init,
    cache: 'no-store',
    headers: {
      ...init.headers,
      'Holdover-Page': '1',
      ...(given !== null && { 'X-API-Key': given }),
    },
    signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
  });
  if (response.status === 401) throw new KeyNeeded();
  return response;
}

/** @param {string} path */
export async function getJson(path) {
  const response = await call(path);
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  return response.json();
}

/** @param {string} path */
export function address(path) {
  return new URL(path, ROOT).href;
}

/**
 * Keeps a watching WebSocket open; a lost one is tried again, less and less often.
 * @param {{
 *   prepare(): Promise<boolean>,
 *   onState(state: { is: 'open' } | { is: 'lost', againInMs: number } | { is: 'stopped' }): void,
 *   onMessage(message: { type: string, data: any }): void,
 *   onBinary(bytes: ArrayBuffer): void,
 * }} handlers `prepare`: false, and nothing is tried until `restart`
 */
export function keepConnected({ prepare, onState, onMessage, onBinary }) {
  let failures = 0;
  let attempt = 0;
  let timer = 0;
  /** @type {WebSocket | undefined} */
  let socket;

  async function connect() {
    clearTimeout(timer);
    const mine = ++attempt;
    socket?.close();
    socket = undefined;
    try {
      const may = await prepare();
      if (mine !== attempt) return;
      if (may) open(mine);
      else onState({ is: 'stopped' });
    } catch {
      if (mine === attempt) lost();
    }
  }

  function open(mine) {
    const given = key();
    const url = new URL('ws?watch=1', ROOT);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    if (given !== null) url.searchParams.set('token', given);
    const opened = new WebSocket(url);
    socket = opened;
    opened.binaryType = 'arraybuffer';
    opened.onopen = () => {
      failures = 0;
      // Pictures then say which job they are of.
      const data = { supports_preview_metadata: true };
      opened.send(JSON.stringify({ type: 'feature_flags', data }));
      onState({ is: 'open' });
    };
    opened.onmessage = ({ data }) => {
      if (mine !== attempt) return;
      if (typeof data !== 'string') return onBinary(data);
      const message = readJson(data);
      if (typeof message?.type === 'string') onMessage(message);
    };
    opened.onclose = () => {
      if (mine === attempt) lost();
    };
  }

  function lost() {
    const longestMs = Math.min(LONGEST_WAIT_MS, SHORTEST_WAIT_MS * 2 ** failures++);
    // Not all pages at the same moment.
    const againInMs = longestMs * (0.75 + Math.random() / 4);
    timer = setTimeout(connect, againInMs);
    onState({ is: 'lost', againInMs });
  }

  addEventListener('online', () => {
    if (socket?.readyState !== WebSocket.OPEN) connect();
  });
  connect();
  return { restart: connect };
}
