import { mkdir } from 'node:fs/promises';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findChromium, launchChromium } from '../support/browser/chromium.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { endless, flat, growing } from '../support/graphs/workflows.ts';

const chromium = findChromium();
const notRun = chromium.ok ? '' : ` (NOT RUN: ${chromium.why})`;
if (notRun) console.warn(`Holdover's own page is not tested in a browser${notRun}`);

const SHOTS = new URL('../../test-output/page/', import.meta.url).pathname;
const TOKEN = 'token-of-the-server';
/** The machine may be busy. */
const WITHIN_MS = 60_000;
const HOSTILE = `<img src=x onerror="document.title='taken'">`;

describe.skipIf(notRun)(`Holdover's own page in Chromium${notRun}`, { timeout: WITHIN_MS }, () => {
  let browser: Browser;
  let holdover: Holdover;
  let keyed: Holdover;
  beforeAll(async () => {
    browser = await launchChromium(chromium.ok ? chromium.path : '');
    await mkdir(SHOTS, { recursive: true });
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
  const job = (page: Page, id: string) => page.locator('.job', { hasText: id });
  const result = (page: Page, id: string) => page.locator('.result', { hasText: id });

  test("shows another client's job with progress and preview, then its thumbnail", async () => {
    const { page, errors } = await visit(holdover.url);
    await connected(page);
    await page.locator('#health', { hasText: /^healthy$/ }).waitFor();
    const prompt = growing({ steps: 400, side: 128, prefix: 'shown' });
    await submit(holdover, { prompt, prompt_id: 'grows', client_id: 'another' });
    await job(page, 'grows').locator('progress[value]').waitFor();
    await job(page, 'grows').locator('img[src^="blob:"]').waitFor();
    // The page asks for the class names when it sees the run: until they come it shows the id.
    await job(page, 'grows')
      .getByText(/ReactionDiffusion.*\d+ of \d+/)
      .waitFor();
    await page.screenshot({ path: `${SHOTS}running-light.png`, fullPage: true });
    await result(page, 'grows').locator('img[src^="blob:"]').waitFor();
    expect(await page.locator('.job').count()).toBe(0);
    const width = await result(page, 'grows')
      .locator('img')
      .evaluate((img: HTMLImageElement) => img.decode().then(() => img.naturalWidth));
    expect(width).toBe(128);
    expect(errors).toEqual([]);
    await page.close();
  });

  test('shows a run that began before it was opened, in the dark too', async () => {
    const prompt = growing({ steps: 3000, side: 256 });
    await submit(holdover, { prompt, prompt_id: 'early', client_id: 'another' });
    await submit(holdover, { prompt, prompt_id: 'waits', client_id: 'another' });
    const { page, errors } = await visit(`${holdover.url}/holdover`, 'dark');
    await job(page, 'early').locator('progress[value]').waitFor();
    await job(page, 'early').locator('img[src^="blob:"]').waitFor();
    await job(page, 'waits').getByText('Queued, next').waitFor();
    await page.screenshot({ path: `${SHOTS}running-dark.png`, fullPage: true });
    for (const id of ['waits', 'early']) {
      await page.getByRole('button', { name: `Cancel job ${id}` }).click();
    }
    await page.getByText('Nothing is running or queued.').waitFor();
    expect(errors).toEqual([]);
    await page.close();
  });

  test('cancels a job by keyboard, and says so', async () => {
    await submit(holdover, { prompt: endless(), prompt_id: 'first' });
    await submit(holdover, { prompt: endless({ seed: 8 }), prompt_id: 'second' });
    const { page, errors } = await visit(holdover.url);
    for (const id of ['second', 'first']) {
      const button = page.getByRole('button', { name: `Cancel job ${id}` });
      await button.focus();
      await page.keyboard.press('Enter');
      await result(page, id)
        .getByText(/^Cancelled \d/)
        .waitFor();
    }
    await page.getByText('Nothing is running or queued.').waitFor();
    expect(await page.getByRole('status').textContent()).toMatch(/was cancelled|have ended/);
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('jobs-title');
    expect(errors).toEqual([]);
    await page.close();
  });

  test('shows ids and errors that are markup as text', async () => {
    await submit(holdover, { prompt: flat(), prompt_id: HOSTILE });
    const { page, errors } = await visit(holdover.url);
    await result(page, HOSTILE).locator('img[src^="blob:"]').waitFor();
    expect(await page.locator('img[src="x"]').count()).toBe(0);
    expect(await page.title()).toBe('Holdover');
    expect(errors).toEqual([]);
    await page.close();
  });

  test('can be used with the keyboard alone', async () => {
    const { page } = await visit(holdover.url);
    await result(page, 'grows').waitFor();
    await page.locator('#key-summary').press('Enter');
    const wanted = await page.evaluate(
      () =>
        [...document.querySelectorAll('a, button, input, summary')].filter(
          (element) => element.getClientRects().length > 0,
        ).length,
    );
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    const reached = new Set<number>();
    const unseen: string[] = [];
    for (let i = 0; i < wanted + 10; i++) {
      await page.keyboard.press('Tab');
      const at = await page.evaluate(() => {
        const element = document.activeElement as HTMLElement;
        const all = [...document.querySelectorAll('a, button, input, summary')];
        const { outlineStyle, outlineWidth } = getComputedStyle(element);
        const name = `${all.indexOf(element)} ${element.textContent}`;
        return { name, index: all.indexOf(element), outline: `${outlineStyle} ${outlineWidth}` };
      });
      if (at.index < 0) continue;
      // A link's text goes when its picture comes.
      reached.add(at.index);
      if (at.outline !== 'solid 3px') unseen.push(at.name);
    }
    expect(reached.size).toBe(wanted);
    expect(unseen).toEqual([]);
    await page.close();
  });

  test.each(['light', 'dark'] as const)('is readable: contrast of 4.5 in %s', async (scheme) => {
    const { page } = await visit(holdover.url, scheme);
    await result(page, 'grows').waitFor();
    await page.locator('#key-summary').press('Enter');
    expect(await page.evaluate(lowestContrast)).toBeGreaterThanOrEqual(4.5);
    await page.screenshot({ path: `${SHOTS}idle-${scheme}.png`, fullPage: true });
    await page.close();
  });

  test('fits a narrow screen', async () => {
    const { page } = await visit(holdover.url);
    await page.setViewportSize({ width: 320, height: 640 });
    await result(page, 'grows').waitFor();
    const isWide = () => document.documentElement.scrollWidth > window.innerWidth;
    expect(await page.evaluate(isWide)).toBe(false);
    await page.screenshot({ path: `${SHOTS}narrow.png`, fullPage: true });
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
      await page.locator('.job progress[value]').waitFor();
      await page.locator('.job img[src^="blob:"]').waitFor();
      await page.getByRole('button', { name: 'Cancel job' }).click();
      await page
        .locator('.result')
        .getByText(/^Cancelled \d/)
        .waitFor();
      await page.locator('#health', { hasText: /^healthy$/ }).waitFor();
      expect(errors).toEqual([]);
      await page.close();
    } finally {
      await front.dispose();
    }
  });

  test('asks for a key where one is needed, and keeps it in the tab only', async () => {
    await submit(keyed, { prompt: flat(), prompt_id: 'kept' });
    const { page, urls } = await visit(keyed.url);
    const input = page.getByLabel('API key or token');
    await page.getByRole('status').getByText('needs a key').waitFor();
    await input.fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('status').getByText('does not take this key').waitFor();
    await page.screenshot({ path: `${SHOTS}key.png`, fullPage: true });
    await input.fill(TOKEN);
    await page.keyboard.press('Enter');
    await connected(page);
    await result(page, 'kept').locator('img[src^="blob:"]').waitFor();
    await page.reload();
    await result(page, 'kept').locator('img[src^="blob:"]').waitFor();
    expect(urls.filter((url) => url.includes(TOKEN))).toEqual([]);
    expect(await page.content()).not.toContain(TOKEN);
    const stored = () => [localStorage.length, document.cookie, Object.values(sessionStorage)];
    expect(await page.evaluate(stored)).toEqual([0, '', [TOKEN]]);
    expect(keyed.log()).not.toContain(TOKEN);
    await page.getByText('Using a key').click();
    await page.getByRole('button', { name: 'Forget the key' }).click();
    await page.getByRole('status').getByText('needs a key').waitFor();
    expect(await page.locator('.result').count()).toBe(0);
    await page.close();
  });

  test('says that the connection is lost, and comes back by itself', async () => {
    const { page } = await visit(holdover.url);
    await connected(page);
    await holdover.kill9();
    await page.getByRole('status').getByText('Connection lost.').waitFor();
    await page.getByText('Holdover does not answer').waitFor();
    const { dataDir, port } = holdover;
    holdover = await startHoldover({ upstream: 'embedded', dataDir, port });
    await page.getByRole('status').getByText('Connected again.').waitFor();
    await page.getByText('Holdover is running').waitFor();
    await result(page, 'grows').waitFor();
    await page.close();
  });
});

/** Of all texts on the page, the worst relation of colour and background (WCAG). */
function lowestContrast(): number {
  const parse = (color: string) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = (color: string) => {
    const [r = 0, g = 0, b = 0] = parse(color).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element: Element | null): string => {
    if (element === null) return 'rgb(255, 255, 255)';
    const color = getComputedStyle(element).backgroundColor;
    return parse(color)[3] === 0 ? behind(element.parentElement) : color;
  };
  const texts = [...document.body.querySelectorAll('*')].filter(
    (element) =>
      element.getClientRects().length > 0 &&
      [...element.childNodes].some((node) => node.nodeType === 3 && node.nodeValue?.trim()),
  );
  const ratios = texts.map((element) => {
    const pair = [luminance(getComputedStyle(element).color), luminance(behind(element))];
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
  });
  return Math.min(...ratios);
}
