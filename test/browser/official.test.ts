import { type Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  type WatchedPage,
  findChromium,
  launchChromium,
  openPage,
} from '../support/browser/chromium.ts';
import { interrupt, pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import { NO_FAULTS, RESTARTED, createUi } from '../support/browser/front-end-ui.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { installFrontEnd } from '../support/browser/official-front-end.ts';
import { getJson } from '../support/clients/v1-client.ts';
import { endless, growing, loading } from '../support/graphs/workflows.ts';

// ComfyUI's own browser front end, as people install it, in a real browser. Each test goes on from
// where the one before it left the page.

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const chromium = findChromium();
const frontEnd = chromium.ok ? await installFrontEnd() : chromium;
const notRun = frontEnd.ok ? '' : ` (NOT RUN: ${frontEnd.why})`;
if (notRun) console.warn(`the official front end is not tested${notRun}`);

const IDLE = { queue_running: [], queue_pending: [] };

/** A server with the front end in front of another one, and a page on it that complains of nothing. */
function useFrontEnd() {
  let browser: Browser;
  let holdover: Holdover;
  let watched: WatchedPage;
  const args = ['--front-end-root', frontEnd.ok ? frontEnd.root : ''];
  /** Behind the one in front; it lives on while that one is killed. */
  let engine: Holdover;
  const start = (again: { dataDir?: string; port?: number } = {}) =>
    startHoldover({
      args: [...args, '--upstream', engine.url],
      upstream: 'embedded',
      ...again,
    });

  beforeAll(async () => {
    browser = await launchChromium(chromium.ok ? chromium.path : '');
    engine = await startHoldover({ upstream: 'embedded' });
    holdover = await start();
    watched = await openPage(browser, { folder: 'official', allowed: NO_FAULTS });
  });
  afterAll(async () => {
    await browser?.close();
    await holdover?.dispose();
    await engine?.dispose();
  });
  afterEach(() => expect(watched.complaints()).toEqual([]));

  return {
    url: () => holdover.url,
    ui: () => createUi(watched.page),
    watched: () => watched,
    async restart() {
      const { dataDir, port } = holdover;
      await holdover.kill9();
      holdover = await start({ dataDir, port });
    },
  };
}

describe.skipIf(notRun)(`the official front end${notRun}`, () => {
  const at = useFrontEnd();
  const { url, ui, watched } = at;

  test('it loads, is connected and has the nodes', async () => {
    await ui().open(url());
    await watched().picture('1-loaded');
    await ui().closeTemplates();
    expect(await ui().nodeTypes()).toEqual(
      expect.arrayContaining(['LoadImage', 'SaveImage', 'ReactionDiffusion']),
    );
  });

  test('a run shows its progress and previews, and then its picture', async () => {
    await ui().load(growing({ steps: 60, side: 256, prefix: 'seen' }), 'seen');
    await ui().run();
    await ui().untilPreview(1);
    await watched().picture('2-running');
    await ui().untilPicture(9, /filename=seen_00001_\.png/);
    await watched().picture('3-result');
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
    await watched().picture('4-uploaded');
  });

  test('a picture dropped onto it is uploaded and shown', async () => {
    await ui().drop('dropped.png', await pngOf({ r: 9, g: 99, b: 199 }));
    await ui().untilPicture('LoadImage', /filename=dropped\.png/);
    await watched().picture('5-dropped');
  });

  test('a run is cancelled by its button', async () => {
    await ui().load(endless(), 'endless');
    await ui().run();
    await ui().untilPreview(1);
    await ui().cancel();
    await expect.poll(() => ui().heard()).toContain('execution_interrupted');
    await expect.poll(() => getJson(`${url()}/queue`)).toEqual(IDLE);
    await watched().picture('6-cancelled');
  });

  test('saved workflows, settings and running jobs are there after a reload', async () => {
    await ui().save('my kept one');
    await ui().hideMinimap();
    await ui().run();
    await ui().untilPreview(1);
    await ui().open(url());
    expect(await watched().page.getByTestId('minimap-container').count()).toBe(0);
    await ui().untilActive(1);
    await ui().showWorkflows();
    await watched().page.getByText('my kept one').first().waitFor();
    await watched().picture('7-reloaded');
    await interrupt(url());
    await ui().untilActive(0);
  });

  test('it connects again after a restart, and runs', async () => {
    watched().allow(RESTARTED);
    await at.restart();
    await ui().untilConnectedAgain();
    await ui().load(growing({ steps: 2, prefix: 'later' }), 'later');
    await ui().run();
    await ui().untilPicture(9, /filename=later_00001_\.png/);
    await watched().picture('8-restarted');
  });

  test('runs from before and after the restart are shown', async () => {
    await ui().open(url());
    await ui().showAssets();
    for (const name of [/seen_00001_/, /inverted_00001_/, /later_00001_/]) {
      await ui().untilAsset(name);
    }
    await watched().picture('9-history');
  });
});
