import { arrange, byId, element, say } from './elements.js';
import { call, getJson } from './server.js';

/** What the socket tells of a running job. */
/** @typedef {{ node?: string, value?: number, max?: number, picture?: Blob, heardAt: number }} Scene */
/** @typedef {{ id: string, status: string, priority: number, create_time: number }} Job */

/** Ids that an address cannot carry as a part of its own. */
const UNADDRESSABLE = /^\.{0,2}$/;

/** The list of running and queued jobs. */
export function createJobList({ onChange }) {
  const list = byId('jobs');
  const note = byId('jobs-note');
  /** @type {Map<string, ReturnType<typeof createCard>>} */
  const cards = new Map();
  /** @type {Map<string, Scene>} */
  const scenes = new Map();
  let isDue = false;

  function draw() {
    isDue = false;
    for (const [id, card] of cards) card.showScene(scenes.get(id));
  }

  function forget(id) {
    const card = cards.get(id);
    if (card === undefined) return;
    const hadFocus = card.item.contains(document.activeElement);
    card.close();
    cards.delete(id);
    if (hadFocus) byId('jobs-title').focus();
  }

  return {
    has: (/** @type {string} */ id) => cards.has(id),
    /** @param {string} id @param {Partial<Scene>} change */
    hear(id, change) {
      scenes.set(id, { ...scenes.get(id), ...change, heardAt: performance.now() });
      if (!isDue) requestAnimationFrame(draw);
      isDue = true;
    },
    /** @param {Job[]} jobs @param {{ total: number, askedAt: number }} about */
    show(jobs, { total, askedAt }) {
      const known = new Set(jobs.map(({ id }) => id));
      for (const id of cards.keys()) if (!known.has(id)) forget(id);
      for (const [id, { heardAt }] of scenes) {
        if (!known.has(id) && heardAt < askedAt) scenes.delete(id);
      }
      const sorted = jobs.toSorted(inTurn);
      let place = 0;
      for (const job of sorted) {
        if (!cards.has(job.id)) cards.set(job.id, createCard(job.id, onChange));
        cards.get(job.id)?.showJob(job, job.status === 'pending' ? ++place : 0);
      }
      arrange(
        list,
        sorted.map(({ id }) => cards.get(id)?.item ?? note),
      );
      const more = total - jobs.length;
      const rest = more > 0 ? `And ${more} more.` : '';
      say(note, jobs.length === 0 ? 'Nothing is running or queued.' : rest);
      draw();
    },
    clear(text) {
      for (const id of cards.keys()) forget(id);
      scenes.clear();
      say(note, text);
    },
  };
}

function inTurn(a, b) {
  const waits = (job) => Number(job.status === 'pending');
  return waits(a) - waits(b) || a.priority - b.priority || a.create_time - b.create_time;
}

/** One job; its parts stay the same elements as long as it lives. */
function createCard(id, onChange) {
  const state = element('p');
  const bar = element('progress', { max: 1, ariaLabel: `Progress of job ${id}`, hidden: true });
  const cancel = element('button', { type: 'button', ariaLabel: `Cancel job ${id}` }, 'Cancel');
  const picture = element('img', {
    className: 'picture',
    alt: `Preview of job ${id}`,
    hidden: true,
  });
  const name = element('p', { className: 'name' }, element('bdi', {}, id));
  const what = element('div', { className: 'what' }, name, state, bar);
  const item = element('li', { className: 'job' }, picture, what, cancel);
  let classes = {};
  let isRunning = false;
  let asked = false;
  let isEnding = false;
  /** @type {Blob | undefined} */
  let shown;

  cancel.addEventListener('click', async () => {
    if (isEnding) return;
    isEnding = true;
    // Not disabled: it would lose the focus.
    cancel.ariaDisabled = 'true';
    say(cancel, 'Cancelling …');
    const body = JSON.stringify({ job_ids: [id] });
    const headers = { 'Content-Type': 'application/json' };
    const answer = await call('api/jobs/cancel', { method: 'POST', headers, body }).catch(() => {});
    isEnding = answer?.ok === true;
    if (!isEnding) {
      cancel.ariaDisabled = null;
      say(cancel, 'Cancel');
    }
    onChange();
  });

  /** What its nodes are called, asked for once it runs. */
  async function askClasses() {
    asked = true;
    if (UNADDRESSABLE.test(id)) return;
    const detail = await getJson(`api/jobs/${encodeURIComponent(id)}`).catch(() => undefined);
    classes = detail?.workflow?.prompt ?? {};
  }

  function showPicture(blob) {
    if (blob === undefined || blob === shown) return;
    shown = blob;
    const last = picture.src;
    picture.src = URL.createObjectURL(blob);
    picture.hidden = false;
    if (last) URL.revokeObjectURL(last);
  }

  return {
    item,
    showJob(job, place) {
      isRunning = job.status !== 'pending';
      if (isRunning && !asked) void askClasses();
      bar.hidden = !isRunning;
      if (!isRunning) say(state, place === 1 ? 'Queued, next' : `Queued, number ${place}`);
    },
    /** @param {Scene | undefined} scene */
    showScene(scene) {
      if (!isRunning) return;
      const { node, value, max, picture: blob } = scene ?? {};
      const hasSteps = max !== undefined && max > 0;
      if (hasSteps) Object.assign(bar, { max, value: Math.min(value ?? 0, max) });
      else bar.removeAttribute('value');
      say(state, sentence({ node, value, max }, classes));
      showPicture(blob);
    },
    close() {
      if (picture.src) URL.revokeObjectURL(picture.src);
      item.remove();
    },
  };
}

function sentence({ node, value, max }, classes) {
  if (node === undefined) return 'Running';
  const name = Object.hasOwn(classes, node) ? classes[node]?.class_type : undefined;
  const where = name === undefined ? `node ${node}` : `${name} (node ${node})`;
  return max > 1 ? `Running ${where}: ${value} of ${max}` : `Running ${where}`;
}
