import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { findChromium, keepPicture, launchChromium } from '../support/browser/chromium.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { connect } from '../support/clients/v1-client.ts';
import { endless, flat, growing } from '../support/graphs/workflows.ts';

const chromium = findChromium();
const notRun = chromium.ok ? '' : ` (NOT RUN: ${chromium.why})`;
if (notRun) console.warn(`Holdover's own page is not tested in a browser${notRun}`);

/** The machine may be busy. */
const WITHIN_MS = 60_000;
const HOSTILE = `<img src=x onerror="document.title='taken'">`;
/** Controls that the Tab key reaches. */
const CONTROLS = 'a[href], button, input, select, summary, [tabindex="0"]';

describe.skipIf(notRun)(`Holdover's own page in Chromium${notRun}`, { timeout: WITHIN_MS }, () => {
  let browser: Browser;
  let holdover: Holdover;
  /** One for all tests: another takes a third of what a visit does. */
  let page: Page;
  let errors: string[] = [];
  beforeAll(async () => {
    browser = await launchChromium(chromium.ok ? chromium.path : '');
    holdover = await startHoldover({ upstream: 'embedded' });
    page = await browser.newPage({ reducedMotion: 'reduce' });
    page.setDefaultTimeout(WITHIN_MS / 3);
    await page.addInitScript('location.host && localStorage.clear()');
    page.on('console', (line) => line.type() === 'error' && errors.push(line.text()));
    page.on('pageerror', (error) => errors.push(String(error)));
  });
  afterAll(async () => {
    await browser?.close();
    await holdover?.dispose();
  });
  afterEach(() => expect(errors).toEqual([]));

  /** Opens a part as a new visit does. */
  async function visit(url: string, colorScheme: 'light' | 'dark' = 'light'): Promise<void> {
    await page.goto('about:blank');
    errors = [];
    await page.emulateMedia({ colorScheme });
    await page.goto(url);
  }

  async function submit(to: Holdover, body: object): Promise<void> {
    const init = { method: 'POST', body: JSON.stringify(body) };
    expect((await fetch(`${to.url}/prompt`, init)).status).toBe(200);
  }

  const connected = () => page.locator('#link', { hasText: 'connected' }).waitFor();
  const row = (id: string) => page.locator('.job-row', { hasText: id });
  const state = (id: string, word: string) => row(id).locator('.badge', { hasText: word });
  const picture = (id: string) => row(id).locator('img[src^="blob:"]');

  test("shows another client's job with progress and preview, then its thumbnail", async () => {
    await visit(holdover.url);
    await connected();
    const prompt = growing({ steps: 60, prefix: 'shown' });
    await submit(holdover, { prompt, prompt_id: 'grows', client_id: 'another' });
    await row('grows').locator('progress[value]').waitFor();
    await picture('grows').waitFor();
    await row('grows')
      .getByText(/node 1 · \d+\/60/)
      .waitFor();
    await keepPicture(page, 'page/running-light');
    await state('grows', 'Completed').waitFor();
    await row('grows').getByText('shown · 2 nodes').waitFor();
    await row('grows').getByText('another').waitFor();
    await picture('grows').waitFor();
    const width = await picture('grows').evaluate((img: HTMLImageElement) =>
      img.decode().then(() => img.naturalWidth),
    );
    expect(width).toBe(64);
  });

  test('shows a run that began before it was opened, in the dark too', async () => {
    const prompt = endless();
    await submit(holdover, { prompt, prompt_id: 'early', client_id: 'another' });
    await submit(holdover, { prompt, prompt_id: 'waits', client_id: 'another' });
    await visit(`${holdover.url}/holdover`, 'dark');
    await row('early').locator('progress[value]').waitFor();
    await picture('early').waitFor();
    await row('waits').getByText('next').waitFor();
    await expect.poll(() => page.title()).toBe('(2) Jobs · Holdover');
    await keepPicture(page, 'page/running-dark');
    await page.getByRole('button', { name: 'Cancel all' }).click();
    await page.getByRole('button', { name: 'Cancel 2 jobs' }).click();
    await state('early', 'Cancelled').waitFor();
    await state('waits', 'Cancelled').waitFor();
  });

  test('cancels a job by keyboard, and says so', async () => {
    await submit(holdover, { prompt: endless(), prompt_id: 'first' });
    await submit(holdover, { prompt: endless({ seed: 8 }), prompt_id: 'second' });
    await visit(holdover.url);
    for (const id of ['second', 'first']) {
      await row(id).getByRole('button', { name: 'Cancel' }).focus();
      await page.keyboard.press('Enter');
      await state(id, 'Cancelled').waitFor();
    }
    expect(await page.getByRole('status').textContent()).toMatch(/cancelled|have ended/i);
  });

  test('cancels the jobs that are selected, and no other', async () => {
    const ids = ['one', 'two', 'three'];
    for (const [seed, id] of ids.entries())
      await submit(holdover, { prompt: endless({ seed }), prompt_id: id, client_id: 'selecting' });
    await visit(`${holdover.url}/holdover#/jobs?client=selecting`);
    await row('three').waitFor();
    await page.getByRole('checkbox', { name: 'Select all jobs in the list' }).check();
    await page.getByText('3 jobs selected').waitFor();
    await row('one').getByRole('checkbox').uncheck();
    await page.getByRole('button', { name: 'Cancel 2' }).click();
    await state('two', 'Cancelled').waitFor();
    await state('three', 'Cancelled').waitFor();
    expect(await state('one', 'Running').count()).toBe(1);
    await row('one').getByRole('button', { name: 'Cancel' }).click();
    await state('one', 'Cancelled').waitFor();
  });

  test('filters by state, client and text, and says when nothing fits', async () => {
    await submit(holdover, { prompt: flat(), prompt_id: 'of-krita', client_id: 'krita' });
    await visit(holdover.url);
    await state('of-krita', 'Completed').waitFor();
    await page.getByLabel('Client').selectOption('krita');
    await expect.poll(() => page.locator('.job-row').count()).toBe(1);
    expect(page.url()).toContain('client=krita');
    await page.getByRole('button', { name: /^Failed/ }).click();
    await page.getByText('No job fits').waitFor();
    await page.getByRole('button', { name: 'Show all jobs' }).click();
    await page.getByPlaceholder('Name, id, client or error').fill('SHOWN');
    await expect.poll(() => page.locator('.job-row').count()).toBe(1);
    await row('grows').waitFor();
  });

  test('has a page for each job: graph, files, v2 code, workflow and messages', async () => {
    await submit(holdover, { prompt: growing({ prefix: 'paged' }), prompt_id: 'paged' });
    await visit(`${holdover.url}/holdover#/jobs/paged`);
    await page.getByRole('heading', { name: 'paged · 2 nodes' }).waitFor();
    await page.getByRole('button', { name: /Open paged_/ }).waitFor();
    const node = page.locator('.node', { hasText: 'ReactionDiffusion' });
    // Its state and its time are known after a reload too.
    await page.reload();
    await node.getByText(/#1 · done · \d/).waitFor();
    await node.click();
    await page.getByRole('region', { name: 'Node 1' }).getByText('12', { exact: true }).waitFor();
    await keepPicture(page, 'page/job');
    await page.getByRole('button', { name: 'v2 code' }).click();
    await page.getByText('from comfy_sdk import Comfy').waitFor();
    await page.getByRole('button', { name: 'TypeScript' }).click();
    await page.getByText("from '@comfyorg/sdk'").first().waitFor();
    await page.getByRole('button', { name: 'Workflow' }).click();
    await page.getByText('"class_type": "SaveImage"').waitFor();
    await page.getByRole('button', { name: 'Messages' }).click();
    await page.getByText('execution_success').waitFor();
    await page.getByRole('button', { name: 'Run again with a new seed' }).click();
    await expect.poll(() => page.url()).not.toContain('paged');
    await page.locator('.facts').getByText('Completed').waitFor();
  });

  test('shows v1 calls and frames beside the v2 calls and events they became', async () => {
    await visit(`${holdover.url}/holdover#/inspector`);
    await page.getByText('Listening').waitFor();
    await page.getByText(/entries/).waitFor();
    const body = { prompt: flat({ color: 0x123456 }), prompt_id: 'seen', client_id: 'inspected' };
    const socket = await connect(holdover.wsUrl, { clientId: 'inspected' });
    await submit(holdover, { ...body, extra_data: { api_key_comfy_org: 'comfyui-very-secret' } });
    const line = page.locator('.line', { hasText: /POST\s*\/prompt/ });
    await line.getByText('/jobs', { exact: true }).waitFor();
    // A line shows as many frames as its width takes; how many one event became depends on the speed of the job.
    await page.locator('.line', { hasText: 'succeeded' }).getByRole('button').click();
    const detail = page.getByRole('complementary', { name: 'Details' });
    await detail.getByRole('heading', { name: 'Became in v1' }).waitFor();
    await detail.getByRole('button', { name: 'execution_success' }).waitFor();
    await line.getByRole('button').click();
    await detail.getByRole('heading', { name: 'Became in v2' }).waitFor();
    await detail.getByText('"class_type": "EmptyImage"').waitFor();
    await detail.getByText('api_key_comfy_org').waitFor();
    expect(await page.content()).not.toContain('very-secret');
    await keepPicture(page, 'page/inspector');
    await socket.close();
    await page.keyboard.press('Escape');
    await detail.waitFor({ state: 'detached' });
    for (let i = 0; i < 5; i++) await fetch(`${holdover.url}/queue`);
    const polls = page.locator('.line', { hasText: /GET\s*\/queue/ });
    await polls.getByText('× 5').waitFor();
    expect(await polls.count()).toBe(1);
    await page.getByRole('button', { name: 'All users' }).click();
    await expect.poll(() => page.locator('.line').count()).toBeGreaterThan(5);
    await polls.getByText('× 5').waitFor();
  });

  test('shows figures to the operator, and each client on its way out of v1', async () => {
    await fetch(`${holdover.url}/object_info`, { headers: { 'User-Agent': HOSTILE } });
    await fetch(`${holdover.url}/queue`, { headers: { 'User-Agent': 'old-script/1.0' } });
    await visit(`${holdover.url}/holdover#/server`);
    await page.getByText('healthy', { exact: true }).waitFor();
    await page.locator('canvas').first().waitFor();
    await page.goto(`${holdover.url}/holdover#/clients`);
    await page.getByRole('heading', { name: 'Leaving v1' }).waitFor();
    const old = await page.getByRole('region', { name: 'old-script/1.0' }).textContent();
    expect(old).toMatch(/ready with changes.*GET \/queue.*GET \/api\/v2\/jobs/);
    expect(await page.getByRole('region', { name: HOSTILE }).textContent()).toContain('needs v1');
    expect(await page.title()).toBe('Leaving v1 · Holdover');
  });

  test('can be used with the keyboard alone', async () => {
    await submit(holdover, { prompt: flat(), prompt_id: 'reached', client_id: 'keyboard' });
    await visit(`${holdover.url}#/jobs?client=keyboard`);
    await state('reached', 'Completed').waitFor();
    const wanted = await page.evaluate(
      (controls) =>
        [...document.querySelectorAll(controls)].filter(
          (element) => element.checkVisibility() && (element as HTMLElement).tabIndex >= 0,
        ).length,
      CONTROLS,
    );
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    const reached = new Set<number>();
    const unseen: string[] = [];
    for (let i = 0; i < wanted + 10; i++) {
      await page.keyboard.press('Tab');
      const at = await page.evaluate((controls) => {
        const element = document.activeElement as HTMLElement;
        const all = [...document.querySelectorAll(controls)];
        const { outlineStyle, outlineWidth } = getComputedStyle(element);
        const name = `${all.indexOf(element)} ${element.textContent}`;
        return { name, index: all.indexOf(element), outline: `${outlineStyle} ${outlineWidth}` };
      }, CONTROLS);
      if (at.index < 0) continue;
      reached.add(at.index);
      if (at.outline !== 'solid 2px') unseen.push(at.name);
    }
    expect(reached.size).toBeGreaterThanOrEqual(wanted);
    expect(unseen).toEqual([]);
  });

  test('shows what runs on a remote upstream', async () => {
    const args = ['--upstream', holdover.url];
    const front = await startHoldover({ args, upstream: 'embedded' });
    try {
      await visit(front.url);
      await connected();
      await submit(front, { prompt: endless(), client_id: 'another' });
      await page.locator('.job-row progress[value]').waitFor();
      await page.locator('.job-row img[src^="blob:"]').waitFor();
      await page.locator('.job-row').getByRole('button', { name: 'Cancel' }).click();
      await page.locator('.job-row .badge', { hasText: 'Cancelled' }).waitFor();
    } finally {
      await page.goto('about:blank');
      await front.dispose();
    }
  });
});
