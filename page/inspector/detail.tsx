import { useEffect, useState } from 'preact/hooks';
import type { TrafficBody, TrafficDetail } from '../../src/console/api-types.ts';
import close from 'icon:x';
import { clockTime, duration, size } from '../lib/format.ts';
import { linkTo } from '../lib/route.ts';
import { Button, CodeText, Fact } from '../lib/ui.tsx';
import { session } from '../state.ts';
import { differencesOf } from './differences.ts';
import { type NamedEntry, entryDetail } from './store.ts';
import { EntryTitle, isCall } from './entry.tsx';
import { Picture } from './picture.tsx';

type RelationsProps = {
  readonly entry: NamedEntry;
  readonly became: readonly NamedEntry[];
  readonly cause: NamedEntry | undefined;
  /** The entries that share its row; only itself where there is no other. */
  readonly joined: readonly NamedEntry[];
  readonly onChoose: (name: string) => void;
};

/** One entry with its headers, bodies and differences, and the entries it became. */
export function Detail({
  onClose,
  ...relations
}: RelationsProps & { readonly onClose: () => void }) {
  const { entry } = relations;
  const { detail, isGone } = useDetail(entry);
  return (
    <aside class="detail" aria-label="Details">
      <header>
        <h2>
          <EntryTitle entry={entry} />
        </h2>
        <Button
          icon={close}
          look="is-icon"
          title="Close"
          label="Close the details"
          onClick={onClose}
        />
      </header>
      <Facts entry={entry} />
      <Relations {...relations} />
      {isGone && <p class="muted">Its bodies are gone: newer entries took their memory.</p>}
      {entry.picture !== undefined && <Picture entry={entry} />}
      {detail !== undefined && <Bodies detail={detail} />}
    </aside>
  );
}

/** Reads the headers and bodies of an entry; `isGone`: the server has them no more. */
function useDetail(entry: NamedEntry) {
  const [last, setLast] = useState<TrafficDetail>();
  const [isGone, setGone] = useState(false);
  useEffect(() => {
    let isCurrent = true;
    setGone(false);
    entryDetail(entry).then(
      (found) => isCurrent && setLast(found),
      () => isCurrent && setGone(true),
    );
    return () => void (isCurrent = false);
  }, [entry.name, entry.revision]);
  return { detail: last?.entry.id === entry.id ? last : undefined, isGone };
}

function Facts({ entry }: { readonly entry: NamedEntry }) {
  const bytes = entry.bytes ?? entry.response_bytes;
  return (
    <dl class="detail-facts">
      <Fact name="Time">{clockTime(entry.at_ms)}</Fact>
      {entry.ms !== null && entry.ms > 0 && <Fact name="Took">{duration(entry.ms)}</Fact>}
      {entry.status !== undefined && <Fact name="Status">{entry.status}</Fact>}
      {bytes !== undefined && <Fact name="Size">{size(bytes)}</Fact>}
      {entry.agent !== undefined && <Fact name="Client">{entry.agent}</Fact>}
      {entry.sid !== undefined && <Fact name="Socket">{entry.sid}</Fact>}
      {entry.job_id !== null && <Fact name="v2 job">{entry.job_id}</Fact>}
      {entry.prompt_id !== null && (
        <Fact name="Prompt">
          <a href={linkTo('jobs', entry.prompt_id)}>{entry.prompt_id}</a>
        </Fact>
      )}
    </dl>
  );
}

function Relations({ entry, became, cause, joined, onChoose }: RelationsProps) {
  return (
    <>
      {cause !== undefined && (
        <Related
          title={entry.kind === 'frame' ? 'Comes from' : 'Asked for by'}
          list={[cause]}
          onChoose={onChoose}
        />
      )}
      {became.length > 0 && (
        <Related
          title={entry.kind === 'call' ? 'Became in v2' : 'Became in v1'}
          list={became}
          onChoose={onChoose}
        />
      )}
      {joined.length > 1 && <Joined list={joined} shown={entry} onChoose={onChoose} />}
    </>
  );
}

const MAX_RELATED = 40;

function Related({
  title,
  list,
  onChoose,
}: {
  readonly title: string;
  readonly list: readonly NamedEntry[];
  readonly onChoose: (name: string) => void;
}) {
  const more = list.length - MAX_RELATED;
  return (
    <section class="related">
      <h3>{title}</h3>
      <ul>
        {list.slice(0, MAX_RELATED).map((one) => (
          <li key={one.name}>
            <button type="button" onClick={() => onChoose(one.name)}>
              <EntryTitle entry={one} />
            </button>
          </li>
        ))}
      </ul>
      {more > 0 && <p class="muted">and {more} more</p>}
    </section>
  );
}

/** The same call with the same answer, or steps of a run: each can be looked at. */
function Joined({
  list,
  shown,
  onChoose,
}: {
  readonly list: readonly NamedEntry[];
  readonly shown: NamedEntry;
  readonly onChoose: (name: string) => void;
}) {
  return (
    <details class="related">
      <summary>
        {shown.kind === 'frame' || shown.kind === 'v2_event'
          ? `One of ${list.length} steps`
          : `Asked ${list.length} times with the same answer`}
      </summary>
      <ul class="times">
        {list.slice(-MAX_RELATED).map((one) => (
          <li key={one.name}>
            <button
              type="button"
              class="mono"
              aria-pressed={one.name === shown.name}
              onClick={() => onChoose(one.name)}
            >
              {clockTime(one.at_ms)} {one.text}
            </button>
          </li>
        ))}
      </ul>
    </details>
  );
}

function Bodies({ detail }: { readonly detail: TrafficDetail }) {
  const { entry } = detail;
  const hasPicture = entry.picture !== undefined;
  const rows = differencesOf(detail, session.value?.upstream_kind === 'remote');
  return (
    <>
      {rows.length > 0 && (
        <section>
          <h3>
            May differ from the original <small>rows of docs/differences.md</small>
          </h3>
          <p class="mono">{rows.join(', ')}</p>
        </section>
      )}
      <Body
        title={isCall(entry) ? 'Request' : 'Frame'}
        body={detail.request}
        hasPicture={hasPicture}
      />
      <Body
        title={isCall(entry) ? 'Answer' : entry.kind === 'frame' ? 'Frame' : 'Event'}
        body={detail.response}
        hasPicture={hasPicture}
      />
      <Headers title="Request headers" list={detail.request_headers} />
      <Headers title="Answer headers" list={detail.response_headers} />
    </>
  );
}

function Body({
  title,
  body,
  hasPicture,
}: {
  readonly title: string;
  readonly body: TrafficBody | null;
  /** It is shown as one. */
  readonly hasPicture: boolean;
}) {
  if (body === null) return null;
  const text = body.text === null ? undefined : pretty(body);
  return (
    <section>
      <h3>
        {title}{' '}
        <small>
          {[body.content_type.split(';')[0], size(body.bytes), body.is_cut ? 'its beginning' : '']
            .filter((word) => word)
            .join(' · ')}
        </small>
      </h3>
      {text === undefined ? (
        !hasPicture && <p class="muted">{body.note ?? 'Not a text.'}</p>
      ) : (
        <CodeText text={text} label={`Copy the ${title.toLowerCase()}`} />
      )}
    </section>
  );
}

const MAX_PRETTY_CHARS = 200_000;

/** Indented where it is JSON whose numbers survive it. */
function pretty({ text, is_cut: isCut }: TrafficBody): string {
  const given = text ?? '';
  if (isCut || given.length > MAX_PRETTY_CHARS || !/^\s*[[{]/.test(given) || /\d{16}/.test(given))
    return given;
  try {
    return JSON.stringify(JSON.parse(given), null, 2);
  } catch {
    return given;
  }
}

function Headers({
  title,
  list,
}: {
  readonly title: string;
  readonly list: TrafficDetail['request_headers'];
}) {
  if (list.length === 0) return null;
  return (
    <details class="headers">
      <summary>
        {title} <small>{list.length}</small>
      </summary>
      <dl>
        {list.map(([name, value], at) => (
          <Fact key={at} name={name}>
            {value}
          </Fact>
        ))}
      </dl>
    </details>
  );
}
