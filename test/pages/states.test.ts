import type { Browser, Page, Route } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { faultsOf } from '../support/browser/axe.ts';
import { findChromium, keepPicture, launchChromium } from '../support/browser/chromium.ts';
import { uploadInput } from '../support/clients/client-helpers.ts';
import { flat, growing, loading } from '../support/graphs/workflows.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';

// Every state of Holdover's own page, on a phone in the dark and on a desk in the light: nothing that
// axe-core finds, and nothing wider than the screen. A state is reached once, and then shown on both.

const chromium = findChromium();
const notRun = chromium.ok ? '' : ` (NOT RUN: ${chromium.why})`;
if (notRun) console.warn(`the states of Holdover's own page are not tested${notRun}`);

const SCREENS = [
  { name: 'phone', width: 320, height: 640, scheme: 'dark' },
  { name: 'desk', width: 1440, height: 900, scheme: 'light' },
] as const;
const TOKEN = 'token-of-the-server';
const API = '**/holdover/api/**';
/** The first call of each try to connect. */
const SESSION = '**/holdover/api/session';
/** The machine may be busy. */
const WITHIN_MS = 120_000;

describe.skipIf(notRun)(`the states of the page${notRun}`, { timeout: WITHIN_MS }, () => {
  let browser: Browser;
  let holdover: Holdover;
  let keyed: Holdover;
  beforeAll(async () => {
    browser = await launchChromium(chromium.ok ? chromium.path : '');
    holdover = await startHoldover({ upstream: 'embedded' });
    keyed = await startHoldover({ args: ['--local-token', TOKEN], upstream: 'embedded' });
    await uploadInput(holdover.url, { name: 'broken.png', bytes: Buffer.from('no picture') });
    const loaded = loading('example.png');
    await submit({ prompt: growing({ steps: 30, prefix: 'shown' }), prompt_id: 'grown' });
    await submit({ prompt: loaded, prompt_id: 'loaded', client_id: 'krita' });
    await submit({ prompt: loading('broken.png'), prompt_id: 'broken' });
    await submit({ prompt: flat(), prompt_id: 'last' });
    await vi.waitFor(async () => expect(await statusOf('last')).toBe('completed'), 30_000);
  }, WITHIN_MS);
  afterAll(async () => {
    await browser?.close();
    await Promise.all([holdover, keyed].map((one) => one?.dispose()));
  });

  async function submit(body: object, agent = 'old-script/1.0'): Promise<void> {
    const headers = { 'User-Agent': agent };
    const init = { method: 'POST', headers, body: JSON.stringify(body) };
    expect((await fetch(`${holdover.url}/prompt`, init)).status).toBe(200);
  }

  async function statusOf(id: string): Promise<string> {
    const answer = await fetch(`${holdover.url}/holdover/api/job?id=${id}`);
    return ((await answer.json()) as { job: { status: string } }).job.status;
  }

  let page: Page;
  const urls: string[] = [];
  beforeAll(async () => {
    page = await browser.newPage({ reducedMotion: 'reduce' });
    page.on('request', (request) => urls.push(request.url()));
    page.setDefaultTimeout(WITHIN_MS / 4);
  });
  afterEach(() => page.unrouteAll());

  /** Opens a part as a new visit does. */
  async function open(part: string, server: Holdover = holdover): Promise<void> {
    await page.goto('about:blank');
    await page.goto(`${server.url}/holdover#/${part}`);
  }

  async function expectFaultless(state: string): Promise<void> {
    for (const { name, width, height, scheme } of SCREENS) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize({ width, height });
      await keepPicture(page, `states/${name}-${state}`);
      expect([name, state, await faultsOf(page)]).toEqual([name, state, []]);
      const excess = () => document.documentElement.scrollWidth - window.innerWidth;
      expect([name, state, await page.evaluate(excess)]).toEqual([name, state, 0]);
    }
  }

  test('jobs as a table, as a gallery, and none that fit', async () => {
    await open('jobs');
    await page.locator('.job-row img').first().waitFor();
    await expectFaultless('table');
    await page.getByRole('button', { name: 'Gallery' }).click();
    await page.locator('.tile img').first().waitFor();
    await expectFaultless('gallery');
    await page.getByRole('button', { name: 'Table' }).click();
    const search = page.getByPlaceholder('Name, id, client or error');
    await search.fill('no such text');
    await page.getByText('No job fits').waitFor();
    await expectFaultless('no-job-fits');
    await page.getByRole('button', { name: 'Show all jobs' }).click();
    await page.locator('.job-row').first().waitFor();
    expect(await search.inputValue()).toBe('');
  });

  test('a job with its node and its picture', async () => {
    await open('jobs/loaded');
    await page
      .locator('.node', { hasText: /done · \d/ })
      .first()
      .click();
    await page.getByText('3 nodes as a table').click();
    await page.getByRole('region', { name: 'Nodes', exact: true }).waitFor();
    await expectFaultless('job');
    await page.getByRole('button', { name: /^Open loaded_/ }).click();
    await page.locator('.viewer[open] img').waitFor();
    await expectFaultless('picture');
    await page.keyboard.press('Escape');
    for (const tab of ['v2 code', 'Workflow', 'Messages']) {
      await page.getByRole('button', { name: tab, exact: true }).click();
      await page.locator('pre, table').first().waitFor();
      await expectFaultless(tab.replace(' ', '-').toLowerCase());
    }
  });

  test('a job that failed, with its traceback, and one that is gone', async () => {
    await open('jobs/broken');
    await page.getByText('Traceback').click();
    await page.locator('.node', { hasText: 'failed here' }).waitFor();
    await expectFaultless('failed');
    await page.goto(`${holdover.url}/holdover#/jobs/nothing`);
    await page.getByRole('heading', { name: 'There is no such job' }).waitFor();
    await expectFaultless('gone');
  });

  test('the inspector with a call that is chosen, and its differences', async () => {
    await open('inspector');
    await page.getByText('Recording').waitFor();
    await fetch(`${holdover.url}/queue`);
    await page.locator('.line', { hasText: '/queue' }).getByRole('button').first().click();
    await page.getByText('v2-jobs, parallel-prompts, restart, deprecation-headers').waitFor();
    await expectFaultless('inspector');
  });

  test('clients, the v2 code of one, and how to connect one', async () => {
    await open('clients');
    await page.locator('.client').first().waitFor();
    await expectFaultless('clients');
    await page.getByRole('button', { name: 'Write its v2 code, old-script/1.0' }).click();
    await page.getByText('from comfy_sdk import Comfy').waitFor();
    expect(page.url()).toContain('jobs/loaded');
    await submit({ prompt: flat(), prompt_id: 'nameless' }, 'nameless/1.0');
    const init = { method: 'POST', body: JSON.stringify({ workflow: flat() }) };
    await fetch(`${holdover.url}/api/v2/jobs`, init);
    await open('clients');
    await page.getByRole('button', { name: 'Write its v2 code, nameless/1.0' }).click();
    await page.waitForURL(/jobs\/nameless/);
    await page.goto(`${holdover.url}/holdover#/connect`);
    await page
      .getByText(/called/)
      .first()
      .waitFor();
    await page.getByText('first-client').waitFor();
    await expectFaultless('connect');
    await page.getByRole('button', { name: 'Use a key in this page' }).click();
    await expectFaultless('key');
  });

  test.each(['jobs', 'jobs/loaded', 'clients', 'server'])(
    '%s while it is read, and not read',
    async (part) => {
      const held: Route[] = [];
      const body = '{"error":{"type":"x","message":"The disk is full."}}';
      const refuse = (route: Route) =>
        route.fulfill({ status: 500, contentType: 'application/json', body });
      let isAway = false;
      await page.route(API, (route) => {
        if (route.request().url().includes('/session')) return route.continue();
        return isAway ? refuse(route) : held.push(route);
      });
      await open(part);
      await page.getByRole('heading', { name: /^Reading the/ }).waitFor();
      // This and the error are the same elements in each part.
      if (part === 'jobs') await expectFaultless('loading');
      isAway = true;
      await Promise.all(held.splice(0).map(refuse));
      await page.getByRole('heading', { name: /could not be read/ }).waitFor();
      await page.getByText('The disk is full.').first().waitFor();
      if (part === 'jobs') await expectFaultless('error');
      // The page's own next try must not take the button away before the click.
      isAway = false;
      await page.getByRole('button', { name: 'Try again' }).click();
      await expect.poll(() => held.length).toBeGreaterThan(0);
      // Lets the held ones go on, too.
      await page.unroute(API);
      await page.locator('.job-row, .node, .client, .plot').first().waitFor();
    },
  );

  test('no job yet, a key that is needed, refused, and kept in the tab only', async () => {
    await open('jobs', keyed);
    await page.getByRole('heading', { name: 'This server needs a key' }).waitFor();
    await expectFaultless('locked');
    await page.locator('#key-locked').fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'does not take this key' }).waitFor();
    await expectFaultless('refused');
    await page.locator('#key-locked').fill(TOKEN);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'No jobs yet' }).waitFor();
    await page.locator('.empty').getByRole('button', { name: 'Run a sample' }).waitFor();
    await expectFaultless('empty');
    const headers = { 'X-API-Key': TOKEN };
    const body = JSON.stringify({ prompt: flat(), prompt_id: 'kept' });
    expect((await fetch(`${keyed.url}/prompt`, { method: 'POST', headers, body })).status).toBe(
      200,
    );
    const picture = page.locator('.job-row', { hasText: 'kept' }).locator('img[src^="blob:"]');
    await picture.waitFor();
    await page.reload();
    await picture.waitFor();
    expect(urls.filter((url) => url.includes(TOKEN))).toEqual([]);
    expect(await page.content()).not.toContain(TOKEN);
    const stored = () => [localStorage.length, document.cookie, Object.values(sessionStorage)];
    expect(await page.evaluate(stored)).toEqual([0, '', [TOKEN]]);
    expect(keyed.log()).not.toContain(TOKEN);
    await page.getByRole('button', { name: 'Using a key' }).click();
    await page.getByRole('button', { name: 'Forget the key' }).click();
    await page.getByRole('heading', { name: 'This server needs a key' }).waitFor();
    expect(await page.locator('.job-row').count()).toBe(0);
  });

  test('a server that is away, with what was known and in parts that were never open', async () => {
    await open('jobs');
    await page.locator('.job-row').first().waitFor();
    const isLoaded = () => {
      const names = performance.getEntriesByType('resource').map(({ name }) => name);
      return ['job', 'clients'].every((part) =>
        names.some((name) => name.endsWith(`/${part}-view.js`)),
      );
    };
    await page.waitForFunction(isLoaded);
    // With the files that they import.
    for (const part of ['job', 'clients'])
      await page.evaluate(`import('${holdover.url}/holdover/${part}-view.js').then(() => {})`);
    await holdover.kill9();
    try {
      await page.getByRole('alert').getByText('The server is away.').waitFor();
      await page.locator('.job-row').first().waitFor();
      await expectFaultless('away');
      for (const [part, heading] of [
        ['jobs/loaded', 'The server is away'],
        ['clients', 'The server is away'],
        ['connect', 'Connect a client'],
      ] as const) {
        await page.goto(`${holdover.url}/holdover#/${part}`);
        await page.getByRole('heading', { name: heading }).waitFor();
        // Away, clients are the same elements as a job.
        if (part !== 'clients') await expectFaultless(`away-${part.replace('/', '-')}`);
      }
      // Holds each try to connect.
      await page.route(SESSION, () => undefined);
    } finally {
      const { dataDir, port } = holdover;
      holdover = await startHoldover({ upstream: 'embedded', dataDir, port });
    }
    // The first click takes the place of the page's own next try, so that only the second one can try again.
    for (let clicks = 0; clicks < 2; clicks++) {
      const tried = page.waitForRequest(SESSION);
      await page.getByRole('button', { name: 'Try now' }).click();
      await tried;
    }
    await page.unroute(SESSION);
    await expect.poll(() => page.getByRole('alert').count()).toBe(0);
    await page.getByRole('status').getByText('Connected again.').waitFor();
    await page.goto(`${holdover.url}/holdover#/jobs`);
    await page.locator('.job-row').first().waitFor();
  });
});
