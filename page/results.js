import { arrange, byId, element, say } from './elements.js';
import { address, call, key } from './server.js';

const SHOWABLE = /\.(png|jpe?g|webp|gif|tiff?|avif)$/i;
const AT_ONCE = 2;
const WORDS = { completed: 'Done', failed: 'Failed', cancelled: 'Cancelled' };

/** Tells jobs apart: a client may use an id again. */
export function nameOf({ id, create_time: createdAt }) {
  return `${createdAt} ${id}`;
}

/** The list of jobs that are over, newest first; what is shown of one never changes. */
export function createResultList() {
  const list = byId('results');
  const note = byId('results-note');
  /** @type {Map<string, { item: HTMLElement, close(): void }>} */
  const tiles = new Map();
  const inTurn = createTurns();

  function keep(names) {
    for (const [name, tile] of tiles) {
      if (names.has(name)) continue;
      tile.close();
      tiles.delete(name);
    }
  }

  return {
    show(jobs) {
      const named = jobs.map((job) => [nameOf(job), job]);
      keep(new Set(named.map(([name]) => name)));
      for (const [name, job] of named) {
        if (!tiles.has(name)) tiles.set(name, createTile(job, inTurn));
      }
      arrange(
        list,
        named.flatMap(([name]) => tiles.get(name)?.item ?? []),
      );
      say(note, jobs.length === 0 ? 'None yet.' : '');
    },
    clear(text) {
      keep(new Set());
      list.replaceChildren();
      say(note, text);
    },
  };
}

/** @param {{ filename: string, subfolder: string, type: string }} file */
function viewOf({ filename, subfolder, type }, more = {}) {
  return `view?${new URLSearchParams({ filename, subfolder, type, ...more })}`;
}

function createTile(job, inTurn) {
  const file = job.preview_output;
  const state = { isOpen: true, url: '' };
  const word = WORDS[job.status] ?? job.status;
  const frame = file ? openerOf(file) : element('div', { className: 'frame' }, word);
  const item = element('li', { className: 'result' }, frame, ...captions(job, word));
  if (file && SHOWABLE.test(file.filename)) {
    void inTurn(async () => {
      if (!state.isOpen) return;
      const answer = await call(viewOf(file, { preview: 'webp;80' }));
      if (!answer.ok) return void frame.append(element('br'), '(cannot be shown)');
      state.url = URL.createObjectURL(await answer.blob());
      if (state.isOpen)
        frame.replaceChildren(element('img', { src: state.url, alt: file.filename }));
      else URL.revokeObjectURL(state.url);
    });
  }
  return {
    item,
    close() {
      state.isOpen = false;
      if (state.url) URL.revokeObjectURL(state.url);
      item.remove();
    },
  };
}

/** A link; with a key, which must not get into an address, a button that saves the file. */
function openerOf(file) {
  const { filename } = file;
  const name = element('bdi', {}, filename);
  if (key() === null) {
    const href = address(viewOf(file));
    const link = { href, target: '_blank', rel: 'noopener', className: 'frame' };
    return element('a', { ...link, ariaLabel: `Open ${filename}` }, name);
  }
  const properties = { type: 'button', className: 'frame', ariaLabel: `Save ${filename}` };
  const button = element('button', properties, name);
  button.addEventListener('click', async () => {
    const answer = await call(viewOf(file)).catch(() => undefined);
    if (!answer?.ok) return;
    const href = URL.createObjectURL(await answer.blob());
    element('a', { href, download: filename }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60_000);
  });
  return button;
}

function captions(job, word) {
  const { execution_start_time: from, execution_end_time: to = job.create_time } = job;
  const at = new Date(to);
  const took = from === undefined ? '' : `, ${((to - from) / 1000).toFixed(1)} s`;
  const time = element('time', { dateTime: at.toISOString() }, clock(at));
  const lines = [element('p', {}, `${word} `, time, took)];
  const error = job.execution_error?.exception_message;
  if (typeof error === 'string') lines.push(element('p', { className: 'bad error' }, error.trim()));
  if (job.outputs_count > 1)
    lines.push(element('p', { className: 'muted' }, `${job.outputs_count} files`));
  lines.push(element('p', { className: 'muted', title: job.id }, element('bdi', {}, job.id)));
  return lines;
}

/** @param {Date} at */
function clock(at) {
  const isToday = at.toDateString() === new Date().toDateString();
  const day = isToday ? undefined : 'short';
  return at.toLocaleString([], { dateStyle: day, timeStyle: 'short' });
}

/** Few pictures at a time: each one is drawn by the server. */
function createTurns() {
  let busy = 0;
  const waiting = [];
  async function next() {
    const work = busy < AT_ONCE ? waiting.shift() : undefined;
    if (work === undefined) return;
    busy++;
    await work().catch(() => {});
    busy--;
    void next();
  }
  return (work) => {
    waiting.push(work);
    return next();
  };
}
