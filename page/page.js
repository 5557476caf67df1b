import { byId, element, say } from './elements.js';
import { readPicture } from './frames.js';
import { createJobList } from './jobs.js';
import { createKeyForm } from './key-form.js';
import { createResultList, nameOf } from './results.js';
import { KeyNeeded, address, getJson, keepConnected } from './server.js';

const LIVE = 'api/jobs?status=in_progress,pending&sort_order=asc&limit=100';
const DONE = 'api/jobs?status=completed,failed,cancelled&limit=24';
const LOOK_AGAIN_MS = 15_000;
/** A busy queue changes more often than anybody can read. */
const CALM_MS = 500;
const HEALTH_WITHIN_MS = 10_000;
const WORDS = { completed: 'is done', failed: 'failed', cancelled: 'was cancelled' };
const LOST = 'Connection lost.';

const jobs = createJobList({ onChange: refreshSoon });
const results = createResultList();
const keyForm = createKeyForm({ onChange: startAnew });
/** Changes with the key: an answer to an earlier one is not shown. */
let turn = 0;
/** Jobs that were over when last looked. */
let over;
/** Whose pictures are that do not say so. */
let lastRunning;
let isConnected = false;
let isDue = false;
let isLooking = false;
const connection = keepConnected({ prepare, onState, onMessage, onBinary });

for (const line of document.querySelectorAll('.lines dd')) line.append(copyButton(line));
document.addEventListener('visibilitychange', lookAgain);
setInterval(lookAgain, LOOK_AGAIN_MS);
void showHealth();

function lookAgain() {
  if (document.hidden) return;
  void showHealth();
  if (isConnected) refreshSoon();
}

/** At once, then again as soon as it is calm if more happened meanwhile. */
async function refreshSoon() {
  isDue = true;
  if (isLooking) return;
  isLooking = true;
  while (isDue) {
    isDue = false;
    await refresh().catch((error) => error instanceof KeyNeeded && connection.restart());
    await new Promise((resolve) => setTimeout(resolve, CALM_MS));
  }
  isLooking = false;
}

async function refresh() {
  const mine = turn;
  const askedAt = performance.now();
  // In this order a job that ends meanwhile is in both answers, not in none.
  const live = await getJson(LIVE);
  const done = await getJson(DONE);
  if (mine !== turn) return;
  const isOver = ({ id, create_time: createdAt }) =>
    done.jobs.some((job) => job.id === id && job.execution_end_time >= createdAt);
  const still = live.jobs.filter((job) => !isOver(job));
  const total = live.pagination.total - (live.jobs.length - still.length);
  jobs.show(still, { total, askedAt });
  results.show(done.jobs);
  tellWhatEnded(done.jobs);
  document.title = total > 0 ? `(${total}) Holdover` : 'Holdover';
}

function tellWhatEnded(done) {
  const fresh = over === undefined ? [] : done.filter((job) => !over.has(nameOf(job)));
  over = new Set(done.map(nameOf));
  const [first] = fresh;
  if (first === undefined) return;
  const one = `Job ${first.id} ${WORDS[first.status] ?? 'has ended'}.`;
  announce(fresh.length === 1 ? one : `${fresh.length} jobs have ended.`);
}

async function prepare() {
  try {
    await refresh();
    keyForm.accepted();
    return true;
  } catch (error) {
    if (!(error instanceof KeyNeeded)) throw error;
    forgetAll('A key is needed to see this.');
    announce(keyForm.refused());
    return false;
  }
}

function startAnew() {
  forgetAll('Asking …');
  connection.restart();
}

function forgetAll(text) {
  turn++;
  over = undefined;
  lastRunning = undefined;
  document.title = 'Holdover';
  jobs.clear(text);
  results.clear(text);
}

function onState(state) {
  const wasConnected = isConnected;
  isConnected = state.is === 'open';
  if (state.is === 'open') {
    if (byId('announce').textContent === LOST) announce('Connected again.');
    showState('link', { isGood: true, text: 'connected' });
    void showHealth();
    return refreshSoon();
  }
  if (state.is === 'stopped')
    return showState('link', { isGood: false, text: 'waiting for a key' });
  const text = `${LOST} Trying again in ${Math.ceil(state.againInMs / 1000)} s.`;
  showState('link', { isGood: false, text });
  if (wasConnected) announce(LOST);
  void showHealth();
}

function onMessage({ type, data }) {
  const id = data?.prompt_id;
  const isStep = type === 'progress' || (type === 'executing' && typeof data?.node === 'string');
  if (isStep && typeof id === 'string') {
    lastRunning = id;
    const { node, value, max } = data;
    jobs.hear(id, { node, value, max });
    if (!jobs.has(id)) refreshSoon();
  } else if (type === 'status' || type.startsWith('execut')) refreshSoon();
}

function onBinary(bytes) {
  const frame = readPicture(bytes);
  const id = frame?.promptId ?? lastRunning;
  if (frame && id !== undefined) jobs.hear(id, { picture: frame.picture });
}

/** Open to everybody: it needs no key. */
async function showHealth() {
  const title = byId('title');
  try {
    const signal = AbortSignal.timeout(HEALTH_WITHIN_MS);
    const answer = await fetch(address('readyz'), { cache: 'no-store', signal });
    const { reason } = await answer.json();
    const text = answer.ok ? 'healthy' : `not healthy: ${reason}`;
    showState('health', { isGood: answer.ok, text });
    say(title, 'Holdover is running');
  } catch {
    showState('health', { isGood: false, text: 'no answer' });
    say(title, 'Holdover does not answer');
  }
}

function showState(id, { isGood, text }) {
  const target = byId(id);
  say(target, text);
  target.className = isGood ? 'good' : 'bad';
}

function announce(text) {
  say(byId('announce'), text);
}

function copyButton(line) {
  const text = line.textContent;
  const name = line.parentElement.querySelector('dt').textContent;
  const button = element('button', { type: 'button', ariaLabel: `Copy ${name}` }, 'Copy');
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(text);
      announce(`Copied: ${text}`);
    } catch {
      // Browsers lend the clipboard to secure pages only.
      getSelection()?.selectAllChildren(line.querySelector('code'));
      announce('Selected. Copy it with your keyboard.');
    }
  });
  return button;
}
