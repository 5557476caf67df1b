import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import loader from 'icon:loader-circle';
import unplug from 'icon:unplug';
import { connection } from '../state.ts';
import { Empty } from './ui.tsx';

const loads: (() => Promise<unknown>)[] = [];

/** A part of the page whose script is loaded when it is first shown, or by `loadParts`. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | undefined;
  const loadOnce = async (): Promise<ComponentType<P>> => (loaded ??= await load());
  loads.push(loadOnce);
  return (props) => {
    const [Part, setPart] = useState<ComponentType<P> | undefined>(() => loaded);
    const [hasFailed, setFailed] = useState(false);
    const isOpen = connection.value.is === 'open';
    useEffect(() => {
      if (Part !== undefined) return;
      setFailed(false);
      loadOnce().then(
        (part) => setPart(() => part),
        () => setFailed(true),
      );
    }, [isOpen]);
    if (Part !== undefined) return <Part {...props} />;
    if (hasFailed) {
      return (
        <Empty icon={unplug} level={1} title="This part of the page could not be loaded">
          <p>It is loaded as soon as the server answers.</p>
        </Empty>
      );
    }
    return <Empty icon={loader} level={1} title="Loading …" />;
  };
}

/** Loads all parts, so that they are there when the server is away later. */
export function loadParts(): void {
  for (const load of loads) void load().catch(() => {});
}
