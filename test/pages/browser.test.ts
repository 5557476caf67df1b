import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findChromium, keepPicture, launchChromium } from '../support/browser/chromium.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { connect } from '../support/clients/v1-client.ts';
import { endless, flat, growing } from '../support/graphs/workflows.ts';

const chromium = findChromium();
const notRun = chromium.ok ? '' : ` (NOT RUN: ${chromium.why})`;
if (notRun) console.warn(`Holdover's own page is not tested in a browser${notRun}`);

const TOKEN = 'token-of-the-server';
/** The machine may be busy. */
const WITHIN_MS = 60_000;
const HOSTILE = `<img src=x onerror="document.title='taken'">`;
/** Controls that the Tab key reaches. */
const CONTROLS = 'a[href], button, input, select, summary, [tabindex="0"]';

describe.skipIf(notRun)(`Holdover's own page in Chromium${notRun}`, { timeout: WITHIN_MS }, () => {
  let browser: Browser;
  let holdover: Holdover;
  let keyed: Holdover;
  beforeAll(async () => {
    browser = await launchChromium(chromium.ok ? chromium.path : '');
    holdover = await startHoldover({ upstream: 'embedded' });
    keyed = await startHoldover({ args: ['--local-token', TOKEN], upstream: 'embedded' });
  });
  afterAll(async () => {
    await browser?.close();
    await Promise.all([holdover, keyed].map((one) => one?.dispose()));
  });

  type Visit = { readonly page: Page; readonly errors: string[]; readonly urls: string[] };

  async function visit(url: string, scheme: 'light' | 'dark' = 'light'): Promise<Visit> {
    const page = await browser.newPage({ colorScheme: scheme, reducedMotion: 'reduce' });
    page.setDefaultTimeout(WITHIN_MS / 3);
    const errors: string[] = [];
    const urls: string[] = [];
    page.on('console', (line) => line.type() === 'error' && errors.push(line.text()));
    page.on('pageerror', (error) => errors.push(String(error)));
    page.on('request', (request) => urls.push(request.url()));
    await page.goto(url);
    return { page, errors, urls };
  }

  async function submit(to: Holdover, body: object): Promise<void> {
    const headers = { 'X-API-Key': to === keyed ? TOKEN : '' };
    const answer = await fetch(`${to.url}/prompt`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    expect(answer.status).toBe(200);
  }

  const connected = (page: Page) => page.locator('#link', { hasText: 'connected' }).waitFor();
  const row = (page: Page, id: string) => page.locator('.job-row', { hasText: id });
  const state = (page: Page, id: string, word: string) =>
    row(page, id).locator('.badge', { hasText: word });
  const picture = (page: Page, id: string) => row(page, id).locator('img[src^="blob:"]');

  test("shows another client's job with progress and preview, then its thumbnail", async () => {
    const { page, errors } = await visit(holdover.url);
    await connected(page);
    const prompt = growing({ steps: 100, side: 128, prefix: 'shown' });
    await submit(holdover, { prompt, prompt_id: 'grows', client_id: 'another' });
    await row(page, 'grows').locator('progress[value]').waitFor();
    await picture(page, 'grows').waitFor();
    await row(page, 'grows')
      .getByText(/node 1 · \d+\/100/)
      .waitFor();
    await keepPicture(page, 'page/running-light');
    await state(page, 'grows', 'Completed').waitFor();
    await row(page, 'grows').getByText('shown · 2 nodes').waitFor();
    await row(page, 'grows').getByText('another').waitFor();
    await picture(page, 'grows').waitFor();
    const width = await picture(page, 'grows').evaluate((img: HTMLImageElement) =>
      img.decode().then(() => img.naturalWidth),
    );
    expect(width).toBe(128);
    expect(errors).toEqual([]);
    await page.close();
  });

  test('shows a run that began before it was opened, in the dark too', async () => {
    const prompt = growing({ steps: 3000, side: 256 });
    await submit(holdover, { prompt, prompt_id: 'early', client_id: 'another' });
    await submit(holdover, { prompt, prompt_id: 'waits', client_id: 'another' });
    const { page, errors } = await visit(`${holdover.url}/holdover`, 'dark');
    await row(page, 'early').locator('progress[value]').waitFor();
    await picture(page, 'early').waitFor();
    await row(page, 'waits').getByText('next').waitFor();
    await keepPicture(page, 'page/running-dark');
    await page.getByRole('button', { name: 'Cancel all' }).click();
    await page.getByRole('button', { name: 'Cancel 2 jobs' }).click();
    await state(page, 'early', 'Cancelled').waitFor();
    await state(page, 'waits', 'Cancelled').waitFor();
    expect(errors).toEqual([]);
    await page.close();
  });

  test('cancels a job by keyboard, and says so', async () => {
    await submit(holdover, { prompt: endless(), prompt_id: 'first' });
    await submit(holdover, { prompt: endless({ seed: 8 }), prompt_id: 'second' });
    const { page, errors } = await visit(holdover.url);
    for (const id of ['second', 'first']) {
      await row(page, id).getByRole('button', { name: 'Cancel' }).focus();
      await page.keyboard.press('Enter');
      await state(page, id, 'Cancelled').waitFor();
    }
    expect(await page.getByRole('status').textContent()).toMatch(/cancelled|have ended/i);
    expect(errors).toEqual([]);
    await page.close();
  });

  test('cancels the jobs that are selected, and no other', async () => {
    const ids = ['one', 'two', 'three'];
    for (const [seed, id] of ids.entries())
      await submit(holdover, { prompt: endless({ seed }), prompt_id: id, client_id: 'selecting' });
    const { page, errors } = await visit(`${holdover.url}/holdover#/jobs?client=selecting`);
    await row(page, 'three').waitFor();
    await page.getByRole('checkbox', { name: 'Select all jobs in the list' }).check();
    await page.getByText('3 jobs selected').waitFor();
    await row(page, 'one').getByRole('checkbox').uncheck();
    await page.getByRole('button', { name: 'Cancel 2' }).click();
    await state(page, 'two', 'Cancelled').waitFor();
    await state(page, 'three', 'Cancelled').waitFor();
    expect(await state(page, 'one', 'Running').count()).toBe(1);
    await row(page, 'one').getByRole('button', { name: 'Cancel' }).click();
    await state(page, 'one', 'Cancelled').waitFor();
    expect(errors).toEqual([]);
    await page.close();
  });

  test('filters by state, client and text, and says when nothing fits', async () => {
    await submit(holdover, { prompt: flat(), prompt_id: 'of-krita', client_id: 'krita' });
    const { page, errors } = await visit(holdover.url);
    await state(page, 'of-krita', 'Completed').waitFor();
    await page.getByLabel('Client').selectOption('krita');
    await expect.poll(() => page.locator('.job-row').count()).toBe(1);
    expect(page.url()).toContain('client=krita');
    await page.getByRole('button', { name: /^Failed/ }).click();
    await page.getByText('No job fits').waitFor();
    await page.getByRole('button', { name: 'Show all jobs' }).click();
    await page.getByPlaceholder('Name, id, client or error').fill('SHOWN');
    await expect.poll(() => page.locator('.job-row').count()).toBe(1);
    await row(page, 'grows').waitFor();
    expect(errors).toEqual([]);
    await page.close();
  });

  test('has a page for each job: graph, files, v2 code, workflow and messages', async () => {
    const { page, errors } = await visit(`${holdover.url}/holdover#/jobs/grows`);
    await page.getByRole('heading', { name: 'shown · 2 nodes' }).waitFor();
    await page.getByRole('button', { name: /Open shown_/ }).waitFor();
    const node = page.locator('.node', { hasText: 'ReactionDiffusion' });
    // Its state and its time are known after a reload too.
    await node.getByText(/#1 · done · \d/).waitFor();
    await node.click();
    await page.getByRole('region', { name: 'Node 1' }).getByText('100').waitFor();
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
    await expect.poll(() => page.url()).not.toContain('grows');
    await page.locator('.facts').getByText('Completed').waitFor();
    expect(errors).toEqual([]);
    await page.close();
  });

  test('shows v1 calls and frames beside the v2 calls and events they became', async () => {
    const { page, errors } = await visit(`${holdover.url}/holdover#/inspector`);
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
    expect(errors).toEqual([]);
    await page.close();
  });

  test('shows figures to the operator, and each client on its way out of v1', async () => {
    await fetch(`${holdover.url}/object_info`, { headers: { 'User-Agent': HOSTILE } });
    await fetch(`${holdover.url}/queue`, { headers: { 'User-Agent': 'old-script/1.0' } });
    const { page, errors } = await visit(`${holdover.url}/holdover#/server`);
    await page.getByText('healthy', { exact: true }).waitFor();
    await page.locator('canvas').first().waitFor();
    await page.goto(`${holdover.url}/holdover#/clients`);
    await page.getByRole('heading', { name: 'Leaving v1' }).waitFor();
    const old = await page.getByRole('region', { name: 'old-script/1.0' }).textContent();
    expect(old).toMatch(/ready with changes.*GET \/queue.*GET \/api\/v2\/jobs/);
    expect(await page.getByRole('region', { name: HOSTILE }).textContent()).toContain('needs v1');
    expect([await page.title(), errors]).toEqual(['Leaving v1 · Holdover', []]);
    await page.close();
  });

  test('can be used with the keyboard alone', async () => {
    const { page } = await visit(holdover.url);
    await row(page, 'grows').waitFor();
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
    // Rows come as the focus goes down the list.
    expect(reached.size).toBeGreaterThanOrEqual(wanted);
    expect(unseen).toEqual([]);
    await page.close();
  });

  test('shows what runs on a remote upstream', async () => {
    const front = await startHoldover({ upstream: 'remote' });
    try {
      const { page, errors } = await visit(front.url);
      await connected(page);
      await submit(front, {
        prompt: growing({ steps: 3000, side: 256 }),
        client_id: 'another',
      });
      await page.locator('.job-row progress[value]').waitFor();
      await page.locator('.job-row img[src^="blob:"]').waitFor();
      await page.locator('.job-row').getByRole('button', { name: 'Cancel' }).click();
      await page.locator('.job-row .badge', { hasText: 'Cancelled' }).waitFor();
      expect(errors).toEqual([]);
      await page.close();
    } finally {
      await front.dispose();
    }
  });

  test('asks for a key where one is needed, and keeps it in the tab only', async () => {
    await submit(keyed, { prompt: flat(), prompt_id: 'kept' });
    const { page, urls } = await visit(keyed.url);
    await page.getByRole('heading', { name: 'This server needs a key' }).waitFor();
    const input = page.locator('#key-locked');
    await input.fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'does not take this key' }).waitFor();
    await keepPicture(page, 'page/key');
    await page.locator('#key-locked').fill(TOKEN);
    await page.keyboard.press('Enter');
    await connected(page);
    await picture(page, 'kept').waitFor();
    await page.reload();
    await picture(page, 'kept').waitFor();
    expect(urls.filter((url) => url.includes(TOKEN))).toEqual([]);
    expect(await page.content()).not.toContain(TOKEN);
    const stored = () => [localStorage.length, document.cookie, Object.values(sessionStorage)];
    expect(await page.evaluate(stored)).toEqual([0, '', [TOKEN]]);
    expect(keyed.log()).not.toContain(TOKEN);
    await page.getByRole('button', { name: 'Using a key' }).click();
    await page.getByRole('button', { name: 'Forget the key' }).click();
    await page.getByRole('heading', { name: 'This server needs a key' }).waitFor();
    expect(await page.locator('.job-row').count()).toBe(0);
    await page.close();
  });

  test('says that the server is away, keeps what was known, and comes back by itself', async () => {
    const { page } = await visit(holdover.url);
    await connected(page);
    await row(page, 'grows').waitFor();
    await holdover.kill9();
    await page.getByRole('alert').getByText('The server is away.').waitFor();
    await row(page, 'grows').waitFor();
    const { dataDir, port } = holdover;
    holdover = await startHoldover({ upstream: 'embedded', dataDir, port });
    await page.getByRole('status').getByText('Connected again.').waitFor();
    await connected(page);
    await row(page, 'grows').waitFor();
    await page.close();
  });
});
