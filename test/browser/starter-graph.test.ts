import { type Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  type WatchedPage,
  findChromium,
  launchChromium,
  openPage,
} from '../support/browser/chromium.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type WebRoot, makeWebRoot } from '../support/browser/web-root.ts';

// The extension that replaces a default graph which cannot run, in the least of what all front ends
// give their extensions.

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const chromium = findChromium();
const notRun = chromium.ok ? '' : ` (NOT RUN: ${chromium.why})`;
if (notRun) console.warn(`the starter graph is not tested${notRun}`);

const DEFAULT = {
  nodes: [
    { id: 4, type: 'CheckpointLoaderSimple', pos: [26, 474], widgets_values: ['v1.ckpt'] },
    { id: 3, type: 'KSampler', pos: [863, 186], widgets_values: [1, 'randomize', 20] },
  ],
};
const OURS = ['Note', 'ReactionDiffusion', 'ImageScaleBy', 'SaveImage'];
const ALL = [...OURS, 'CheckpointLoaderSimple', 'KSampler'];
const STARTER = JSON.stringify(OURS);
const UNTOUCHED = JSON.stringify(DEFAULT.nodes.map(({ type }) => type));

const FILES = {
  'index.html': `<!doctype html><link rel="icon" href="data:,"><script type="module">
    import { app } from './scripts/app.js';
    const listed = await (await fetch('./extensions')).json();
    for (const path of listed.filter((each) => each.includes('holdover'))) await import(path);
    window.load = (...given) => app.loadGraphData(...given);
  </script>`,
  'scripts/app.js': `export const app = {
    loadGraphData(graph = (window.comfyAPI ?? window.old).defaultGraph.defaultGraph, ...rest) {
      return JSON.stringify([graph.nodes.map(({ type }) => type), rest]);
    },
  };`,
  'scripts/defaultGraph.js': 'export const { defaultGraph } = window.old.defaultGraph;',
};

describe.skipIf(notRun)(`the starter graph${notRun}`, () => {
  let browser: Browser;
  let web: WebRoot;
  let holdover: Holdover;
  beforeAll(async () => {
    web = await makeWebRoot();
    for (const [name, content] of Object.entries(FILES)) await web.write(name, content);
    holdover = await startHoldover({ args: ['--front-end-root', web.root], upstream: 'embedded' });
    browser = await launchChromium(chromium.ok ? chromium.path : '');
  });
  afterAll(async () => {
    await browser?.close();
    await holdover?.dispose();
    await web?.dispose();
  });

  const pages = new Map<string, WatchedPage>();
  /** A front end on a server with these classes; opened once: what was loaded before makes no difference. */
  async function frontEndWith(types: readonly string[], place: string): Promise<WatchedPage> {
    const key = JSON.stringify([types, place]);
    const watched = pages.get(key) ?? (await openFrontEnd(types, place));
    pages.set(key, watched);
    return watched;
  }

  async function openFrontEnd(types: readonly string[], place: string): Promise<WatchedPage> {
    const watched = await openPage(browser, { folder: 'starter-graph', allowed: [] });
    await watched.page.addInitScript(
      ([names, shipped, where]) => {
        const page = globalThis as any;
        const classes = Object.fromEntries(names.map((name) => [name, {}]));
        page.LiteGraph = { registered_node_types: classes };
        page[where] = { defaultGraph: { defaultGraph: shipped } };
      },
      [types, DEFAULT, place] as const,
    );
    await watched.page.goto(holdover.url);
    await watched.page.waitForFunction(() => (globalThis as any).load);
    return watched;
  }

  /** The classes of the graph that is loaded in the end, and what else was given along. */
  async function loaded(
    types: readonly string[],
    given: readonly unknown[],
    { place = 'comfyAPI' }: { place?: 'comfyAPI' | 'old' } = {},
  ): Promise<string> {
    const { page, complaints } = await frontEndWith(types, place);
    const shown = await page.evaluate((all) => (globalThis as any).load(...all), given);
    expect(complaints()).toEqual([]);
    return shown;
  }

  test.each([
    ['no graph', []],
    ['null', [null]],
    ['the default graph', [DEFAULT]],
    ['the default graph as it was stored', [{ nodes: DEFAULT.nodes.toReversed(), version: 0.4 }]],
  ])('takes the place of %s, where the server lacks a class', async (_, given) => {
    expect(await loaded(OURS, given)).toBe(`[${STARTER},[]]`);
    expect(await loaded([...OURS, 'KSampler'], given)).toBe(`[${STARTER},[]]`);
  });

  test('also in front ends that have their default graph as a module', async () => {
    expect(await loaded(OURS, [], { place: 'old' })).toBe(`[${STARTER},[]]`);
  });

  test('other arguments of the loader stay as they are', async () => {
    expect(await loaded(OURS, [DEFAULT, true, 'name'])).toBe(`[${STARTER},[true,"name"]]`);
  });

  test('nothing is replaced where every class is there', async () => {
    expect(await loaded(ALL, [])).toBe(`[${UNTOUCHED},[]]`);
    expect(await loaded(ALL, [DEFAULT])).toBe(`[${UNTOUCHED},[]]`);
  });

  test('nor where the starter graph could not run either', async () => {
    expect(await loaded(['Note', 'SaveImage'], [DEFAULT])).toBe(`[${UNTOUCHED},[]]`);
  });

  test('nor a graph of the user, be it the default with another value', async () => {
    const [first, second] = DEFAULT.nodes;
    const edited = { nodes: [{ ...first, widgets_values: ['mine.ckpt'] }, second] };
    expect(await loaded(OURS, [edited])).toBe(`[${UNTOUCHED},[]]`);
    expect(await loaded(OURS, [{ nodes: [{ id: 1, type: 'Mine' }] }])).toBe('[["Mine"],[]]');
  });
});
