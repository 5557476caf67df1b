import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import loader from 'icon:loader-circle';
import warning from 'icon:triangle-alert';
import { Empty } from './ui.tsx';

/** A part of the page whose script is loaded when it is first shown. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | undefined;
  return (props) => {
    const [Part, setPart] = useState<ComponentType<P> | undefined>(() => loaded);
    const [hasFailed, setFailed] = useState(false);
    useEffect(() => {
      if (loaded !== undefined) return;
      load().then(
        (part) => {
          loaded = part;
          setPart(() => part);
        },
        () => setFailed(true),
      );
    }, []);
    if (Part !== undefined) return <Part {...props} />;
    if (hasFailed)
      return <Empty icon={warning} title="This part of the page could not be loaded" />;
    return <Empty icon={loader} title="Loading …" />;
  };
}
