import { useEffect, useState } from 'preact/hooks';
import { onMessage } from '../state.ts';

/** How long each node of a job has run, as far as the page has seen it. */
export function useNodeTimes(id: string): ReadonlyMap<string, number> {
  const [times, setTimes] = useState<ReadonlyMap<string, number>>(new Map());
  useEffect(() => {
    let current: { readonly node: string; readonly sinceMs: number } | undefined;
    const end = (): void => {
      if (current === undefined) return;
      const { node, sinceMs } = current;
      const ranMs = performance.now() - sinceMs;
      current = undefined;
      setTimes((known) => new Map([...known, [node, ranMs]]));
    };
    return onMessage(({ type, data }) => {
      if (data['prompt_id'] !== id) return;
      if (type !== 'executing' && !type.startsWith('execution_')) return;
      end();
      const { node } = data;
      if (type === 'executing' && typeof node === 'string')
        current = { node, sinceMs: performance.now() };
    });
  }, [id]);
  return times;
}
