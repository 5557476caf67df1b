import download from 'icon:download';
import pause from 'icon:pause';
import play from 'icon:play';
import search from 'icon:search';
import trash from 'icon:trash';
import x from 'icon:x';
import { plural, size } from '../lib/format.ts';
import { saveBlob } from '../lib/pictures.tsx';
import { replaceQuery } from '../lib/route.ts';
import { Choice, Icon } from '../lib/ui.tsx';
import { session, tellError } from '../state.ts';
import { harOf } from './har.ts';
import {
  clearRecording,
  entries,
  facts,
  fault,
  isPaused,
  scope,
  setScope,
  togglePause,
} from './store.ts';
import { filter } from './view-state.ts';

const SERVERS_TITLE =
  'Each server records what reaches it, and this page asks the one that the balancer sends it to: with sticky sessions only that one.';

/** Filters, and what is done with the whole recording. */
export function Toolbar({ promptId }: { readonly promptId: string }) {
  const known = facts.value;
  const { kind, text, isErrorOnly } = filter.value;
  const exportHar = async (): Promise<void> => {
    saveBlob(await harOf(), 'holdover.har');
  };
  return (
    <header class="toolbar">
      <div class="toolbar-row">
        <h1 tabIndex={-1}>Inspector</h1>
        <label class="search">
          <Icon shapes={search} />
          <span class="hidden">Filter the traffic</span>
          <input
            type="search"
            placeholder="Path, status, type, client or id"
            value={text}
            onInput={(event) =>
              (filter.value = { ...filter.peek(), text: event.currentTarget.value })
            }
          />
        </label>
        {session.value?.is_operator === true && (
          <Choice
            label="Whose traffic"
            value={scope.value}
            onChange={setScope}
            options={[
              { value: 'own', text: 'Mine' },
              { value: 'all', text: 'All users' },
            ]}
          />
        )}
        <button type="button" class="button" aria-pressed={isPaused.value} onClick={togglePause}>
          <Icon shapes={isPaused.value ? play : pause} />
          <span>{isPaused.value ? 'Go on' : 'Pause'}</span>
        </button>
        <button
          type="button"
          class="button"
          title="Clear"
          aria-label="Clear the list"
          onClick={() => void clearRecording()}
        >
          <Icon shapes={trash} />
        </button>
        <button
          type="button"
          class="button"
          title="Export as HAR"
          aria-label="Export as HAR"
          onClick={() => void exportHar().catch(tellError)}
        >
          <Icon shapes={download} />
          <span>HAR</span>
        </button>
      </div>
      <div class="toolbar-row is-filters">
        <Choice
          label="Kind"
          value={kind}
          onChange={(value) => (filter.value = { ...filter.peek(), kind: value })}
          options={[
            { value: 'all', text: 'All' },
            { value: 'calls', text: 'Calls' },
            { value: 'frames', text: 'Frames' },
            { value: 'events', text: 'Events' },
          ]}
        />
        <label class="field">
          <input
            type="checkbox"
            checked={isErrorOnly}
            onChange={(event) =>
              (filter.value = { ...filter.peek(), isErrorOnly: event.currentTarget.checked })
            }
          />
          <span>Errors only</span>
        </label>
        {promptId !== '' && (
          <button type="button" class="chip" aria-pressed="true" onClick={() => replaceQuery({})}>
            prompt {promptId.slice(0, 13)} <Icon shapes={x} size={14} />
            <span class="hidden">Show all prompts</span>
          </button>
        )}
        <span class="recording">
          {fault.value !== '' ? (
            <span class="fault">{fault.value}</span>
          ) : (
            <>
              <span class={`dot ${isPaused.value ? '' : 'is-recording'}`} aria-hidden="true" />
              {isPaused.value ? 'Paused' : 'Recording'} while this is open
              {known !== undefined &&
                ` · ${plural(entries.value.size, 'entry').replace('entrys', 'entries')} · ${size(known.memoryBytes)}`}
              {known !== undefined && known.dropped > 0 && ` · ${known.dropped} older ones dropped`}
              {known !== undefined && known.servers > known.answered && (
                <span title={SERVERS_TITLE}>
                  {' '}
                  · only what reaches {known.answered} of {known.servers} servers
                </span>
              )}
            </>
          )}
        </span>
      </div>
    </header>
  );
}
