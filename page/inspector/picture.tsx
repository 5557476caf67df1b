import { useEffect, useState } from 'preact/hooks';
import { type NamedEntry, askServer, entryQuery } from './store.ts';

/** The picture in a frame or an answer, fetched with the key of the page. */
export function Picture({ entry }: { readonly entry: NamedEntry }) {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    let made: string | undefined;
    let isCurrent = true;
    setUrl(undefined);
    void askServer(`holdover/api/traffic/picture?${entryQuery(entry)}`)
      .then(async (response) => {
        if (!response.ok || !isCurrent) return;
        const bytes = await response.arrayBuffer();
        made = URL.createObjectURL(new Blob([bytes], { type: entry.picture ?? '' }));
        if (isCurrent) setUrl(made);
      })
      .catch(() => {});
    return () => {
      isCurrent = false;
      if (made !== undefined) URL.revokeObjectURL(made);
    };
  }, [entry.name]);
  return url === undefined ? null : <img class="preview" src={url} alt="The picture in it" />;
}
