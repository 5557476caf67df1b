import { mkdir } from 'node:fs/promises';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findChromium, launchChromium } from '../support/browser/chromium.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';

const chromium = findChromium();
const notRun = chromium.ok ? '' : ` (NOT RUN: ${chromium.why})`;
if (notRun) console.warn(`The page of the report is not tested in a browser${notRun}`);

const SHOTS = new URL('../../test-output/page/', import.meta.url).pathname;
const HOSTILE = `<img src=x onerror="document.title='taken'">`;

describe.skipIf(notRun)(`The report in Chromium${notRun}`, { timeout: 120_000 }, () => {
  let browser: Browser;
  let holdover: Holdover;
  beforeAll(async () => {
    browser = await launchChromium(chromium.ok ? chromium.path : '');
    await mkdir(SHOTS, { recursive: true });
    holdover = await startHoldover({ upstream: 'embedded' });
  });
  afterAll(async () => {
    await browser?.close();
    await holdover?.dispose();
  });

  test('shows each client with its calls and verdict; a hostile user agent is a text', async () => {
    const agents = { 'old-script/1.0': '/queue', [HOSTILE]: '/object_info' };
    for (const [agent, path] of Object.entries(agents)) {
      await fetch(holdover.url + path, { headers: { 'User-Agent': agent } });
    }
    const page = await browser.newPage();
    const errors: string[] = [];
    page.on('console', (line) => line.type() === 'error' && errors.push(line.text()));
    page.on('pageerror', (error) => errors.push(String(error)));
    await page.goto(`${holdover.url}/holdover`);
    await page.getByRole('link', { name: 'Who still needs v1' }).click();
    await page.locator('#announce', { hasText: '2 clients have called v1.' }).waitFor();
    const old = await page.getByRole('region', { name: 'old-script/1.0' }).textContent();
    expect(old).toMatch(/ready with changes.*GET \/queue.*GET \/api\/v2\/jobs/);
    expect(await page.getByRole('region', { name: HOSTILE }).textContent()).toContain('needs v1');
    await page.screenshot({ path: `${SHOTS}report.png`, fullPage: true });
    expect([await page.title(), errors]).toEqual(['Who still needs v1 · Holdover', []]);
    await page.close();
  });
});
