import { effect, signal } from '@preact/signals';
import type { SessionAnswer } from '../src/console/api-types.ts';
import { KeyNeeded, getJson, messageOf, storeKey, storedKey } from './lib/server.ts';
import { type SocketMessage, WatchingSocket } from './lib/socket.ts';

/** State of the connection to the server. */
export type Connection =
  | { readonly is: 'connecting' }
  | { readonly is: 'open' }
  | { readonly is: 'lost'; readonly retryAtMs: number }
  /** The server wants a key, or does not take the one it got. */
  | { readonly is: 'locked'; readonly wasRefused: boolean };

export const connection = signal<Connection>({ is: 'connecting' });
export const session = signal<SessionAnswer | undefined>(undefined);
export const hasKey = signal(storedKey() !== null);
/** Changes with the key: what was shown of another user is dropped. */
export const identity = signal(0);
/** Read aloud by screen readers. */
export const announcement = signal('');
/** A short message at the edge of the page. */
export const toast = signal<{ readonly text: string; readonly kind: 'good' | 'bad' } | undefined>(
  undefined,
);
/** The time that relative times refer to. */
export const now = signal(Date.now());

const TICK_MS = 1000;
const TOAST_MS = 5000;

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, TICK_MS);

let toastTimer: ReturnType<typeof setTimeout> | undefined;

export function tell(text: string, kind: 'good' | 'bad' = 'good'): void {
  toast.value = { text, kind };
  announcement.value = text;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (toast.value = undefined), TOAST_MS);
}

/** Tells what went wrong, in the words of the server. */
export function tellError(error: unknown): void {
  if (error instanceof KeyNeeded) return lock();
  tell(messageOf(error), 'bad');
}

type PictureListener = (promptId: string | undefined, picture: () => Blob) => void;
const messageListeners = new Set<(message: SocketMessage) => void>();
const pictureListeners = new Set<PictureListener>();

/** Returns a function that ends it. */
export function onMessage(listener: (message: SocketMessage) => void): () => void {
  messageListeners.add(listener);
  return () => void messageListeners.delete(listener);
}

export function onPicture(listener: PictureListener): () => void {
  pictureListeners.add(listener);
  return () => void pictureListeners.delete(listener);
}

let socket: WatchingSocket | undefined;

export function start(): void {
  socket = new WatchingSocket({
    async prepare() {
      try {
        session.value = await getJson<SessionAnswer>('holdover/api/session');
        return true;
      } catch (error) {
        if (error instanceof KeyNeeded) return false;
        throw error;
      }
    },
    onOpen: () => (connection.value = { is: 'open' }),
    onLost: (retryInMs) => (connection.value = { is: 'lost', retryAtMs: Date.now() + retryInMs }),
    onStopped: () => lock(),
    onMessage: (message) => messageListeners.forEach((listener) => listener(message)),
    onPicture: (promptId, picture) =>
      pictureListeners.forEach((listener) => listener(promptId, picture)),
  });
}

function lock(): void {
  connection.value = { is: 'locked', wasRefused: storedKey() !== null };
  session.value = undefined;
}

export function useKey(key: string | null): void {
  storeKey(key);
  hasKey.value = key !== null;
  identity.value++;
  session.value = undefined;
  connection.value = { is: 'connecting' };
  socket?.restart();
}

export function reconnect(): void {
  socket?.restart();
}

let wasOpen = false;
effect(() => {
  const { is } = connection.value;
  if (is === 'lost' && wasOpen) announcement.value = 'Connection lost.';
  if (is === 'open' && announcement.peek() === 'Connection lost.')
    announcement.value = 'Connected again.';
  if (is === 'locked') announcement.value = 'A key is needed.';
  wasOpen = is === 'open';
});
