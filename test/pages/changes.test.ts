// What Holdover's own page shows after its key, or the server, has changed.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findChromium, launchChromium } from '../support/browser/chromium.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { flat } from '../support/graphs/workflows.ts';

const chromium = findChromium();
const notRun = chromium.ok ? '' : ` (NOT RUN: ${chromium.why})`;
if (notRun) console.warn(`changes under Holdover's own page are not tested${notRun}`);

/** The machine may be busy. */
const WITHIN_MS = 60_000;

describe.skipIf(notRun)(`Holdover's own page${notRun}`, { timeout: WITHIN_MS }, () => {
  let browser: Browser;
  let holdover: Holdover;
  beforeAll(async () => {
    browser = await launchChromium(chromium.ok ? chromium.path : '');
    holdover = await startHoldover({ upstream: 'embedded' });
  });
  afterAll(async () => {
    await browser?.close();
    await holdover?.dispose();
  });

  async function open(part: string): Promise<Page> {
    const page = await browser.newPage({ reducedMotion: 'reduce' });
    page.setDefaultTimeout(WITHIN_MS / 3);
    await page.goto(`${holdover.url}#/${part}`);
    return page;
  }

  async function submit(body: object, key: string): Promise<void> {
    const init = { method: 'POST', headers: { 'X-API-Key': key }, body: JSON.stringify(body) };
    expect((await fetch(`${holdover.url}/prompt`, init)).status).toBe(200);
  }

  test('shows nothing of one key under another, not even a picture of the same name', async () => {
    const prompt = (color: number) => flat({ color, prefix: 'same-name' });
    await submit({ prompt: prompt(0xff0000), prompt_id: 'of-one' }, 'key-of-one');
    await submit({ prompt: prompt(0x0000ff), prompt_id: 'of-two' }, 'key-of-two');
    const page = await open('jobs');
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
    await page.close();
  });
});
