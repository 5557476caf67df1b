import { type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  type WatchedPage,
  findChromium,
  launchChromium,
  openPage,
} from '../support/browser/chromium.ts';
import { NO_FAULTS, createUi } from '../support/browser/front-end-ui.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type FrontEndFolder, olderFrontEnd } from '../support/browser/official-front-end.ts';

// A user who opens a front end from before 1.27 here for the first time sees a graph that runs.
// `official.test.ts` opens newer ones, which show templates first.

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const chromium = findChromium();
const older = ['1.4.13', 'vanilla'] as const;
const folders = new Map<string, FrontEndFolder>();
for (const name of older) folders.set(name, chromium.ok ? olderFrontEnd(name) : chromium);

const STARTER = ['ImageScaleBy', 'Note', 'ReactionDiffusion', 'SaveImage'];

const FAULTS_OF_THEIRS = [
  ...NO_FAULTS,
  {
    complaint: /404.*userdata\?dir=subgraphs%2F&/,
    why: 'the folder is made by the first save; until then v1 lists it with 404',
  },
  { complaint: /favicon\.ico/, why: 'the browser asks for an icon that these pages do not have' },
];

declare const app: any;
declare const LiteGraph: any;

describe.each(older)('the front end %s', (name) => {
  const folder = folders.get(name) ?? { ok: false, why: 'unknown' };
  const notRun = folder.ok ? '' : ` (NOT RUN: ${folder.why})`;
  if (notRun) console.warn(`the first run of front end ${name} is not tested${notRun}`);

  describe.skipIf(notRun)(`on its first visit${notRun}`, () => {
    let browser: Browser;
    let holdover: Holdover;
    beforeAll(async () => {
      browser = await launchChromium(chromium.ok ? chromium.path : '');
      const root = folder.ok ? folder.root : '';
      holdover = await startHoldover({ args: ['--front-end-root', root], upstream: 'embedded' });
    });
    afterAll(async () => {
      await browser?.close();
      await holdover?.dispose();
    });

    async function visit() {
      const options = { folder: `first-run-${name}`, allowed: FAULTS_OF_THEIRS };
      const watched = await openPage(browser, options);
      await watched.page.goto(holdover.url);
      return watched;
    }

    let starter: WatchedPage | undefined;
    /** Opened once for the tests below: each takes seconds of processor time to load. */
    async function visitStarter() {
      starter ??= await visit();
      await untilGraph(starter.page);
      return starter;
    }

    test('it opens a graph without a missing class', async () => {
      const { page, picture, complaints } = await visitStarter();
      await picture('starter');
      expect(await page.getByText(/missing node types/i).count()).toBe(0);
      await runToPicture(page);
      expect(complaints()).toEqual([]);
    });

    test('it leaves a graph of the user alone', async () => {
      const { page } = await visitStarter();
      await createUi(page).loadNote();
      expect(await createUi(page).shownTypes()).toEqual(['Note']);
    });
  });
});

async function untilGraph(page: Page): Promise<void> {
  const shown = page.waitForFunction((expected) => {
    const nodes = (globalThis as any).app?.graph?._nodes ?? [];
    const types = nodes.map(({ type }: { type: string }) => type).toSorted();
    return JSON.stringify(types) === expected;
  }, JSON.stringify(STARTER));
  await shown;
  const missing = await page.evaluate(() =>
    app.graph._nodes
      .map(({ type }: { type: string }) => type)
      .filter((type: string) => !(type in LiteGraph.registered_node_types)),
  );
  expect(missing).toEqual([]);
}

async function runToPicture(page: Page): Promise<void> {
  await page.evaluate(() => void app.queuePrompt(0));
  await page.waitForFunction(() => {
    const picture = app.graph._nodes.find(({ type }: { type: string }) => type === 'SaveImage')
      ?.imgs?.[0];
    return /filename=pattern_\d+_\.png/.test(picture?.src) && picture.naturalWidth === 512;
  });
}
