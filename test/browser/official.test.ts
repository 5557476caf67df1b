import { type Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  type WatchedPage,
  findChromium,
  launchChromium,
  openPage,
} from '../support/browser/chromium.ts';
import { interrupt, pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import { NO_FAULTS, REFUSED, RESTARTED, createUi } from '../support/browser/front-end-ui.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type FrontEndFolder, installFrontEnd } from '../support/browser/official-front-end.ts';
import { getJson } from '../support/clients/v1-client.ts';
import { endless, growing, loading, saying } from '../support/graphs/workflows.ts';

// ComfyUI's own browser front ends, as people install them, in a real browser. Each test goes on
// from where the one before it left the page.

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const chromium = findChromium();
const ROWS = [
  {
    version: '1.58.1',
    isNewest: true,
    upstream: 'embedded',
    inputs: /\/api\/assets\?.*tags_any=input/,
    refusal: 'Blocked last run',
  },
  {
    version: '1.49.6',
    isNewest: false,
    upstream: 'remote',
    inputs: /\/internal\/files\/input/,
    refusal: 'Missing node type',
  },
] as const;

const STARTER = ['ImageScaleBy', 'Note', 'ReactionDiffusion', 'SaveImage'];
const IDLE = { queue_running: [], queue_pending: [] };

let browser: Browser | undefined;
afterAll(() => browser?.close());

/** A server with the front end, and a page on it that complains of nothing. */
function useFrontEnd({ version, upstream }: (typeof ROWS)[number], frontEnd: FrontEndFolder) {
  let holdover: Holdover;
  let watched: WatchedPage | undefined;
  const args = ['--front-end-root', frontEnd.ok ? frontEnd.root : ''];
  /** Behind the one in front; it lives on while that one is killed. */
  let engine: Holdover | undefined;
  const start = (again: { dataDir?: string; port?: number } = {}) =>
    startHoldover({
      args: engine ? [...args, '--upstream', engine.url] : args,
      upstream: 'embedded',
      ...again,
    });

  beforeAll(async () => {
    browser ??= await launchChromium(chromium.ok ? chromium.path : '');
    if (upstream === 'remote') engine = await startHoldover({ upstream: 'embedded' });
    holdover = await start();
    const folder = `official-${version}-${upstream}`;
    watched = await openPage(browser, { folder, allowed: NO_FAULTS });
  });
  afterAll(async () => {
    await watched?.close();
    await holdover?.dispose();
    await engine?.dispose();
  });
  afterEach(() => expect(watched?.complaints()).toEqual([]));

  return {
    url: () => holdover.url,
    ui: () => createUi(watched!.page),
    watched: () => watched!,
    /** The page is then that of another browser, but for its cache of files. */
    async forget() {
      const { page } = watched!;
      await page.goto('about:blank');
      await page.context().clearCookies();
      await page.addInitScript(
        'location.host && [localStorage, sessionStorage].forEach((kept) => kept.clear())',
      );
    },
    async restart() {
      const { dataDir, port } = holdover;
      await holdover.kill9();
      holdover = await start({ dataDir, port });
    },
  };
}

for (const row of ROWS) {
  const frontEnd = chromium.ok ? await installFrontEnd(row.version) : chromium;
  const notRun = frontEnd.ok ? '' : ` (NOT RUN: ${frontEnd.why})`;
  if (notRun) console.warn(`the front end ${row.version} is not tested${notRun}`);
  const title = `the official front end ${row.version}, jobs ${row.upstream}${notRun}`;
  describe.skipIf(notRun)(title, () => testFrontEnd(row, frontEnd));
}

function testFrontEnd(row: (typeof ROWS)[number], frontEnd: FrontEndFolder): void {
  const { isNewest } = row;
  const at = useFrontEnd(row, frontEnd);
  const { url, ui, watched } = at;
  const page = () => watched().page;

  /** For the input files: some versions ask when they open, others at the first look. */
  let asked: Promise<unknown>;

  async function openWithWhatIsKept(): Promise<void> {
    asked = page().waitForRequest(row.inputs, { timeout: 0 });
    // A failure before it is awaited is that of the test.
    asked.catch(() => {});
    await ui().open(url());
    expect(await page().getByTestId('minimap-container').count()).toBe(0);
    // A browser without a graph of the user has the starter graph, and leaves one of the user alone.
    await expect.poll(() => ui().shownTypes()).toEqual(STARTER);
    await ui().loadNote();
    expect(await ui().shownTypes()).toEqual(['Note']);
    await ui().untilActive(1);
    await ui().showWorkflows();
    await page().getByText('my kept one').first().waitFor();
    expectNow(await ui().modified('workflows/another.json'));
    await watched().picture('another-browser');
    await interrupt(url());
    await ui().untilActive(0);
    await ui().showWorkflows();
  }

  if (!isNewest)
    test('saved workflows, settings and running jobs of the user are there', async () => {
      await put(url(), 'settings', { 'Comfy.TutorialCompleted': true, [MINIMAP]: false });
      await put(url(), workflowPath('my kept one'), {});
      await put(url(), workflowPath('another'), {});
      await put(url(), 'prompt', { prompt: endless() });
      await openWithWhatIsKept();
      await ui().browseTemplates();
    });

  test('it loads, is connected, has the nodes, and opens a template of ours', async () => {
    if (isNewest) await ui().open(url());
    await watched().picture('loaded');
    await ui().openTemplate('Grow a Pattern');
    await expect.poll(() => ui().shownTypes()).toEqual(STARTER);
    expect(await ui().nodeTypes()).toEqual(expect.arrayContaining(['LoadImage', ...STARTER]));
  });

  test('a run shows its progress and previews, and then its picture', async () => {
    // `front-end/templates` runs it whole.
    await ui().setValues('ReactionDiffusion', { width: 64, height: 64, steps: 40 });
    await ui().run();
    await ui().untilPreview('ReactionDiffusion');
    await watched().picture('running');
    await ui().untilPicture('SaveImage', /filename=pattern_00001_\.png/);
    await watched().picture('result');
    const heard = await ui().heard();
    expect(heard).toEqual(expect.arrayContaining(['status', 'progress_state', 'executed']));
  });

  test('a picture chosen in the dialog of its node is uploaded and used', async () => {
    await uploadInput(url(), { name: 'example.png', bytes: await pngOf() });
    await ui().load(loading('example.png', 'inverted'), 'upload');
    await ui().choose(3, { name: 'mine.png', mimeType: 'image/png', buffer: await pngOf() });
    await ui().untilPicture(3, /filename=mine\.png/);
    await ui().run();
    await ui().untilPicture(9, /filename=inverted_00001_\.png/);
    await watched().picture('uploaded');
  });

  test('a picture dropped onto it is uploaded and shown', async () => {
    await ui().drop('dropped.png', await pngOf({ r: 9, g: 99, b: 199 }));
    await ui().untilPicture('LoadImage', /filename=dropped\.png/);
    await watched().picture('dropped');
  });

  test('the output of a run is offered as an input', async () => {
    const graph = loading('inverted_00001_.png [output]', 'again');
    const found = isNewest && page().waitForResponse(/\/api\/assets\?.*hash=inverted_00001_\.png/);
    await ui().load({ ...graph, 3: { ...graph['3'], class_type: 'LoadImageOutput' } }, 'outputs');
    await expect.poll(() => ui().choices(3)).toContain('inverted_00001_.png [output]');
    await ui().run();
    await ui().untilPicture(9, /filename=again_00001_\.png/);
    // Else it says that the picture is missing.
    if (found) expect(await (await found).json()).toMatchObject({ total: 1 });
    await watched().picture('outputs');
  });

  test('a run without outputs is in the list of jobs', async () => {
    await ui().load(saying('what it says'), 'text');
    await ui().run();
    await ui().toggleJobs();
    await page()
      .getByText(/^Job #\d+$/)
      .dblclick();
    // The list of 1.49.6 passes over texts.
    if (isNewest) await page().getByRole('dialog').getByText('what it says').waitFor();
    await watched().picture('text');
    await page().keyboard.press('Escape');
    await ui().toggleJobs();
  });

  test('a run with a class that the server lacks shows what is missing', async () => {
    watched().allow(REFUSED);
    const unknown = { class_type: 'NoSuchNode', inputs: {}, _meta: { title: 'mine' } };
    await ui().load({ ...saying('x'), 1: unknown }, 'missing');
    await ui().run();
    await page().getByRole('button', { name: 'View details' }).first().click();
    for (const text of ['Missing Node Packs', 'NoSuchNode', row.refusal])
      await page().getByText(text).last().waitFor();
    await watched().picture('missing');
    await page().getByRole('button', { name: 'Toggle properties panel' }).first().click();
  });

  test('a run is cancelled by its button', async () => {
    await ui().load(endless(), 'endless');
    await ui().run();
    await ui().untilPreview('ReactionDiffusion');
    await ui().cancel();
    await expect.poll(() => ui().heard()).toContain('execution_interrupted');
    await expect.poll(() => getJson(`${url()}/queue`)).toEqual(IDLE);
    await watched().picture('cancelled');
  });

  test('workflows and settings are saved', async () => {
    const name = isNewest ? 'my kept one' : 'my other one';
    await ui().save(name);
    await expect
      .poll(() => getJson(`${url()}/${workflowPath(name)}`))
      .toMatchObject({ version: 0.4 });
    expectNow(await ui().modified(`workflows/${name}.json`));
    const isShown = (await page().getByTestId('minimap-container').count()) > 0;
    await page().getByTestId('toggle-minimap-button').click();
    await expect.poll(() => getJson(`${url()}/settings`)).toMatchObject({ [MINIMAP]: !isShown });
  });

  if (isNewest)
    test('saved workflows, settings and running jobs are there in another browser', async () => {
      await ui().run();
      await ui().untilPreview('ReactionDiffusion');
      await put(url(), workflowPath('another'), {});
      await at.forget();
      await openWithWhatIsKept();
    });

  test('it connects again after a restart, and runs', async () => {
    watched().allow(RESTARTED);
    await at.restart();
    await ui().untilConnectedAgain();
    await ui().load(growing({ steps: 2, prefix: 'later' }), 'later');
    await ui().run();
    await ui().untilPicture(9, /filename=later_00001_\.png/);
    await watched().picture('restarted');
  });

  test('files from before and after the restart are shown', async () => {
    await ui().showAssets();
    // The newest is on top.
    for (const name of ['later', 'inverted', 'pattern']) await ui().untilAsset(`${name}_00001_`);
    await watched().picture('history');
    await page().getByText('Imported').first().click();
    await asked;
    await ui().untilAsset('filename=mine.png');
    await watched().picture('imported');
  });
}

const MINIMAP = 'Comfy.Minimap.Visible';
const workflowPath = (name: string) => `userdata/${encodeURIComponent(`workflows/${name}.json`)}`;

async function put(url: string, path: string, body: object): Promise<void> {
  const answer = await fetch(`${url}/${path}`, { method: 'POST', body: JSON.stringify(body) });
  expect(answer.status).toBe(200);
}

/** A date in milliseconds that a front end holds. */
function expectNow(modified: number): void {
  expect(Math.abs(Date.now() - modified)).toBeLessThan(60_000);
}
