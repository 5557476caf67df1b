import pause from 'icon:pause';
import play from 'icon:play';
import trash from 'icon:trash';
import x from 'icon:x';
import { plural, size } from '../lib/format.ts';
import { replaceQuery } from '../lib/route.ts';
import { Button, Choice, Icon, ScopeChoice, SearchField } from '../lib/ui.tsx';
import { session } from '../state.ts';
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
import { filter, setFilter } from './view-state.ts';

const SERVERS_TITLE =
  'Each server records what reaches it, and this page asks the one that the balancer sends it to: with sticky sessions only that one.';

const KINDS = [
  { value: 'all', text: 'All' },
  { value: 'calls', text: 'Calls' },
  { value: 'frames', text: 'Frames' },
  { value: 'events', text: 'Events' },
] as const;

type ToolbarProps = { readonly promptId: string };

/** Filters, and what is done with the whole recording. */
export function Toolbar({ promptId }: ToolbarProps) {
  return (
    <header class="toolbar">
      <div class="toolbar-row">
        <h1 tabIndex={-1}>Inspector</h1>
        <SearchField
          label="Filter the traffic"
          placeholder="Path, status, type, client or id"
          value={filter.value.text}
          onInput={(text) => setFilter({ text })}
        />
        {session.value?.is_operator === true && (
          <ScopeChoice label="Whose traffic" value={scope.value} onChange={setScope} />
        )}
        <Button
          icon={isPaused.value ? play : pause}
          aria-pressed={isPaused.value}
          onClick={togglePause}
        >
          {isPaused.value ? 'Go on' : 'Pause'}
        </Button>
        <Button
          icon={trash}
          title="Clear"
          label="Clear the list"
          onClick={() => void clearRecording()}
        />
      </div>
      <div class="toolbar-row is-filters">
        <Filters promptId={promptId} />
        <span class="recording">
          {fault.value === '' ? <Recording /> : <span class="fault">{fault.value}</span>}
        </span>
      </div>
    </header>
  );
}

function Filters({ promptId }: ToolbarProps) {
  return (
    <>
      <Choice
        label="Kind"
        value={filter.value.kind}
        onChange={(kind) => setFilter({ kind })}
        options={KINDS}
      />
      <label class="field">
        <input
          type="checkbox"
          checked={filter.value.isErrorOnly}
          onChange={(event) => setFilter({ isErrorOnly: event.currentTarget.checked })}
        />
        <span>Errors only</span>
      </label>
      {promptId !== '' && (
        <button type="button" class="chip" aria-pressed="true" onClick={() => replaceQuery({})}>
          prompt {promptId.slice(0, 13)} <Icon shapes={x} size={14} />
          <span class="hidden">Show all prompts</span>
        </button>
      )}
    </>
  );
}

/** Says whether it records, and how much of the traffic is in the list. */
function Recording() {
  const known = facts.value;
  return (
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
  );
}
