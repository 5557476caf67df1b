import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import loader from 'icon:loader-circle';
import unplug from 'icon:unplug';
import warning from 'icon:triangle-alert';
import { connection } from '../state.ts';
import { getJson, messageOf } from './server.ts';
import { Button, Empty } from './ui.tsx';

/** The answer of the server to a path: read while it is there, again with each `read`, and every so often. */
export function useAnswer<T>(path: string, everyMs?: number) {
  const [answer, setAnswer] = useState<T>();
  const [fault, setFault] = useState<unknown>();
  const [attempt, setAttempt] = useState(0);
  const isOpen = connection.value.is === 'open';
  useEffect(() => {
    if (!isOpen) return undefined;
    // An answer may come after that to a later call.
    let last = 0;
    const read = (): void => {
      const number = ++last;
      getJson<T>(path).then(
        (found) => {
          if (number !== last) return;
          setAnswer(() => found);
          setFault(undefined);
        },
        (error: unknown) => number === last && setFault(error),
      );
    };
    read();
    const timer = everyMs && setInterval(() => !document.hidden && read(), everyMs);
    return () => {
      last = 0;
      clearInterval(timer);
    };
  }, [path, isOpen, attempt]);
  return { answer, fault, read: () => setAttempt((known) => known + 1) };
}

/** Shown in place of an answer: it is being read, or could not be read. */
export function NoAnswer({
  what,
  fault,
  level = 2,
  onRetry,
  children,
}: {
  readonly what: string;
  readonly fault: unknown;
  readonly level?: 1 | 2;
  readonly onRetry: () => void;
  /** Beside the button that tries again. */
  readonly children?: ComponentChildren;
}) {
  if (connection.value.is === 'lost')
    return (
      <Empty icon={unplug} level={level} title="The server is away">
        <p>The {what} will be here as soon as it answers again.</p>
      </Empty>
    );
  if (fault === undefined)
    return <Empty icon={loader} level={level} title={`Reading the ${what} …`} />;
  return (
    <Empty icon={warning} level={level} title={`The ${what} could not be read`}>
      <p>{messageOf(fault)}</p>
      <p class="buttons">
        <Button onClick={onRetry}>Try again</Button>
        {children}
      </p>
    </Empty>
  );
}
