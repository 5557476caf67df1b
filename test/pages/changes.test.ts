// Holdover's own page after its key, or the server, has changed.
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { findChromium, launchChromium } from '../support/browser/chromium.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { endless, flat } from '../support/graphs/workflows.ts';

const chromium = findChromium();
const notRun = chromium.ok ? '' : ` (NOT RUN: ${chromium.why})`;
if (notRun) console.warn(`changes under Holdover's own page are not tested${notRun}`);

/** The machine may be busy. */
const WITHIN_MS = 60_000;

describe.skipIf(notRun)(`Holdover's own page${notRun}`, { timeout: WITHIN_MS }, () => {
  let browser: Browser;
  let holdover: Holdover;
  /** For tests that change nothing of it that outlasts them. */
  let page: Page;
  beforeAll(async () => {
    browser = await launchChromium(chromium.ok ? chromium.path : '');
    holdover = await startHoldover({ upstream: 'embedded' });
    page = await newPage();
    page.setDefaultTimeout(WITHIN_MS / 3);
    await page.addInitScript('location.host && sessionStorage.clear()');
  });
  afterEach(async () => {
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.goto('about:blank');
  });
  afterAll(async () => {
    await browser?.close();
    await holdover?.dispose();
  });

  const newPage = () => browser.newPage({ reducedMotion: 'reduce' });
  const open = (part: string) => page.goto(`${holdover.url}#/${part}`);

  async function submit(body: object, key: string): Promise<void> {
    const init = { method: 'POST', headers: { 'X-API-Key': key }, body: JSON.stringify(body) };
    expect((await fetch(`${holdover.url}/prompt`, init)).status).toBe(200);
  }

  test('shows nothing of one key under another, not even a picture of the same name', async () => {
    const prompt = (color: number) => flat({ color, prefix: 'same-name' });
    await submit({ prompt: prompt(0xff0000), prompt_id: 'of-one' }, 'key-of-one');
    await submit({ prompt: prompt(0x0000ff), prompt_id: 'of-two' }, 'key-of-two');
    await open('jobs');
    const useKey = async (key: string): Promise<void> => {
      await page.getByRole('button', { name: /^Us(e|ing) a key$/ }).click();
      await page.locator('#key-input').fill(key);
      await page.keyboard.press('Enter');
    };
    const colorOf = async (id: string): Promise<readonly number[]> => {
      const image = page.locator('.job-row', { hasText: id }).locator('img[src^="blob:"]');
      await image.waitFor();
      return image.evaluate(async (element: HTMLImageElement) => {
        await element.decode();
        const context = document.createElement('canvas').getContext('2d');
        context?.drawImage(element, 0, 0);
        return [...(context?.getImageData(0, 0, 1, 1).data ?? [])].map((level) => level >> 7);
      });
    };
    await useKey('key-of-one');
    expect(await colorOf('of-one')).toEqual([1, 0, 0, 1]);
    await useKey('key-of-two');
    expect(await colorOf('of-two')).toEqual([0, 0, 1, 1]);
    await page.goto(`${holdover.url}#/jobs/of-two`);
    await page.getByRole('heading', { name: 'same-name' }).waitFor();
    await useKey('key-of-one');
    await page.getByRole('heading', { name: 'There is no such job' }).waitFor();
  });

  test('shows what is recorded after the server was started again', async () => {
    await open('inspector');
    const calls = page.locator('.line', { hasText: 'POST/prompt' });
    const record = async (id: string): Promise<void> => {
      await fetch(`${holdover.url}/holdover/api/traffic`);
      await submit({ prompt: flat(), prompt_id: id }, '');
    };
    await page.getByText('Recording').waitFor();
    await record('before');
    await calls.first().waitFor();
    const { dataDir, port } = holdover;
    await holdover.kill9();
    // The text read aloud may be the end of the job already.
    await page.locator('#link', { hasText: 'away' }).waitFor();
    holdover = await startHoldover({ upstream: 'embedded', dataDir, port });
    await page.locator('#link', { hasText: 'connected' }).waitFor();
    await record('after');
    await calls.nth(1).waitFor();
  });

  test('shows the end of a job that history had only after its last step', async () => {
    const page = await newPage();
    let isOver = false;
    await page.routeWebSocket('**/ws?**', (socket) => {
      const server = socket.connectToServer();
      server.onMessage((message) => {
        if (!String(message).includes('"node": null')) return socket.send(message);
        // The page has read the job by then, as the messages before told it to.
        setTimeout(() => {
          isOver = true;
          socket.send(message);
        }, 500);
      });
    });
    await page.route('**/holdover/api/job?*', async (route) => {
      const wasOver = isOver;
      const response = await route.fetch();
      const answer = (await response.json()) as { job?: object };
      const running = { ...answer.job, status: 'in_progress', ended_at_ms: null };
      const isShown = wasOver || answer.job === undefined;
      await route.fulfill({ response, json: isShown ? answer : { ...answer, job: running } });
    });
    await page.goto(`${holdover.url}#/jobs?status=failed`);
    await page.locator('#link', { hasText: 'connected' }).waitFor();
    await page.goto(`${holdover.url}#/jobs/ends`);
    await page.getByRole('heading', { name: 'There is no such job' }).waitFor();
    await submit({ prompt: flat(), prompt_id: 'ends' }, '');
    await page.locator('.facts .badge', { hasText: 'Completed' }).waitFor();
    await page.close();
  });

  test('keeps the rows of 520 waiting jobs that were read by scrolling', async () => {
    // More than one call reads.
    const { jobs: made } = await listOf(520);
    let lastAsked: readonly string[] = [];
    let refreshHeld = Promise.resolve();
    await page.route('**/holdover/api/job-list?**', async (route) => {
      const query = new URL(route.request().url()).searchParams;
      const from = Number(query.get('cursor') ?? 0);
      const to = from + Number(query.get('limit'));
      const shown = made.slice(from, to);
      lastAsked = shown.map(({ id }) => id);
      // Long enough to scroll through two parts meanwhile; the second is answered after the refresh.
      if (from === 0 && to > 100) refreshHeld = new Promise((resolve) => setTimeout(resolve, 500));
      if (from === 0 || from === 300) await refreshHeld;
      const counts = { pending: 520, in_progress: 0, completed: 0, failed: 0, cancelled: 0 };
      const next_cursor = to < made.length ? String(to) : null;
      await route.fulfill({ json: { jobs: shown, next_cursor, counts } });
    });
    await open('jobs');
    const last = page.locator('.job-row', { hasText: 'waiting-519' });
    await page.locator('.job-row').first().hover();
    await expect.poll(() => lastAsked).toHaveLength(200);
    await expect
      .poll(
        async () => {
          await page.mouse.wheel(0, 100_000);
          return last.count();
        },
        { timeout: WITHIN_MS / 2 },
      )
      .toBe(1);
    expect(await page.getByRole('table').getAttribute('aria-rowcount')).toBe('521');
    const refreshed = page.waitForResponse((answer) => answer.url().includes('limit=500'));
    await submit({ prompt: flat() }, '');
    await (await refreshed).finished();
    await expect.poll(() => lastAsked).toContain('waiting-519');
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 200)));
    expect(await last.count()).toBe(1);
  });

  /** A list of so many waiting jobs, made of one that has ended. */
  async function listOf(count: number): Promise<{ jobs: { id: string }[] }> {
    await submit({ prompt: flat(), prompt_id: 'template' }, '');
    const answer = await fetch(`${holdover.url}/holdover/api/job-list`);
    const [template] = ((await answer.json()) as { jobs: object[] }).jobs;
    const jobs = Array.from({ length: count }, (_, i) => {
      const names = { key: `k${i}`, id: `waiting-${i}`, name: `waiting-${i}` };
      const times = { started_at_ms: null, ended_at_ms: null, position: i + 1 };
      return { ...template, ...names, ...times, status: 'pending', preview: null };
    });
    return { jobs };
  }

  test('shows the answer to the last question about a job, whichever comes last', async () => {
    await submit({ prompt: endless({ seed: 3 }), prompt_id: 'asked-twice' }, '');
    await open('jobs/asked-twice');
    await page.locator('.facts .badge', { hasText: 'Running' }).waitFor();
    let release = (): void => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    let asked = 0;
    const before = await (await fetch(`${holdover.url}/holdover/api/job?id=asked-twice`)).json();
    await page.route('**/holdover/api/job?*', async (route) => {
      if (asked++ > 0) return route.continue();
      await released;
      return route.fulfill({ json: before });
    });
    await fetch(`${holdover.url}/api/jobs/asked-twice/cancel`, { method: 'POST' });
    await page.locator('.facts .badge', { hasText: 'Cancelled' }).waitFor();
    const late = page.waitForResponse('**/holdover/api/job?*');
    release();
    await (await late).finished();
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 200)));
    expect(await page.locator('.facts .badge').textContent()).toBe('Cancelled');
  });

  test('copies where the browser has no clipboard of its own', async () => {
    await submit({ prompt: flat(), prompt_id: 'copied' }, '');
    const page = await newPage();
    await page.addInitScript(() => {
      Object.defineProperty(navigator, 'clipboard', { value: undefined });
      document.addEventListener('copy', () => {
        document.title = (document.activeElement as HTMLTextAreaElement).value;
      });
    });
    await page.goto(`${holdover.url}#/jobs/copied`);
    await page.getByRole('button', { name: 'v2 code' }).click();
    await page.getByRole('button', { name: 'Copy the code' }).click();
    await page.getByText('Copied', { exact: true }).waitFor();
    expect(await page.title()).toContain('EmptyImage');
    await page.close();
  });

  test('cancels all jobs, also those that the filter hides', async () => {
    await submit({ prompt: endless({ seed: 1 }), prompt_id: 'hidden-1' }, '');
    await submit({ prompt: endless({ seed: 2 }), prompt_id: 'hidden-2' }, '');
    await open('jobs?status=completed');
    await page.getByRole('button', { name: 'Cancel all' }).click();
    await page.getByRole('button', { name: 'Cancel 2 jobs' }).click();
    const stateOf = async (id: string): Promise<string> => {
      const answer = await fetch(`${holdover.url}/holdover/api/job?id=${id}`);
      return ((await answer.json()) as { job: { status: string } }).job.status;
    };
    for (const id of ['hidden-1', 'hidden-2'])
      await expect.poll(() => stateOf(id)).toBe('cancelled');
  });

  test('goes on recording while the inspector is paused, or its entries would be lost', async () => {
    const page = await newPage();
    await page.clock.install();
    await page.goto(`${holdover.url}#/inspector`);
    await page.waitForResponse('**/holdover/api/traffic?**');
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.waitForLoadState('networkidle');
    const asked = page.waitForResponse('**/holdover/api/traffic?**');
    // Not a call as of the tests before: the server records for a while after an inspector is closed.
    const call = page.locator('.line', { hasText: 'while-paused' });
    await fetch(`${holdover.url}/history/while-paused`);
    await page.clock.fastForward(60_000);
    await asked;
    expect(await call.count()).toBe(0);
    await page.getByRole('button', { name: 'Go on' }).click();
    await call.first().waitFor();
    await page.close();
  });
});
