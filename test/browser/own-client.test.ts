import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type Server, createServer } from 'node:http';
import { type AddressInfo } from 'node:net';
import { type Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { findChromium, launchChromium, openPage } from '../support/browser/chromium.ts';
import { pngOf } from '../support/clients/client-helpers.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { getJson } from '../support/clients/v1-client.ts';

// A page as people write one themselves, on a server of its own.

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const chromium = findChromium();
const notRun = chromium.ok ? '' : ` (NOT RUN: ${chromium.why})`;
if (notRun) console.warn(`web clients are not tested${notRun}`);

describe.skipIf(notRun)(`a web client on another port${notRun}`, () => {
  let browser: Browser;
  let client: Server;
  let open: Holdover;
  let closed: Holdover;
  beforeAll(async () => {
    client = await serve(new URL('own-client.html', import.meta.url));
    browser = await launchChromium(chromium.ok ? chromium.path : '');
    open = await startHoldover({ args: ['--enable-cors-header'], upstream: 'embedded' });
    closed = await startHoldover({ upstream: 'embedded' });
  });
  afterAll(async () => {
    await browser?.close();
    client?.close();
    await open?.dispose();
    await closed?.dispose();
  });

  async function visit(holdover: Holdover, folder: string) {
    const watched = await openPage(browser, { folder, allowed: [] });
    onTestFinished(() => watched.close());
    const { port } = client.address() as AddressInfo;
    await watched.page.goto(`http://127.0.0.1:${port}/?server=${holdover.url}`);
    const buffer = await pngOf();
    const picture = { name: 'own.png', mimeType: 'image/png', buffer };
    await watched.page.locator('#picture').setInputFiles(picture);
    return watched;
  }

  test('uploads, runs, sees previews and the result with --enable-cors-header', async () => {
    const { page, complaints, picture } = await visit(open, 'own-client');
    await page.getByText('connected').waitFor();
    await page.getByRole('button', { name: 'Run' }).click();
    await page.waitForFunction(isLoaded, '#preview');
    await page.waitForFunction(isLoaded, '#result');
    await picture('result');
    expect(await page.locator('#progress').textContent()).toBe('40 of 40');
    expect(await page.locator('#result').getAttribute('src')).toContain(`${open.url}/api/view?`);
    expect(await page.locator('#error').textContent()).toBe('');
    expect(complaints()).toEqual([]);
  });

  test('is refused, on HTTP and WebSocket, without the flag', async () => {
    const { page, complaints, picture } = await visit(closed, 'own-client');
    await page.getByText('no connection').waitFor();
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByText('Failed to fetch').waitFor();
    await picture('refused');
    const refused = complaints().join('\n');
    expect(refused).toMatch(/api\/upload\/image' .* has been blocked by CORS policy/);
    expect(refused).toMatch(/WebSocket connection to .* failed: .*403/);
    // Not only kept from reading the answer. Scripts are not told the status.
    expect(await getJson(`${closed.url}/internal/files/input`)).toEqual(['example.png [input]']);
    const headers = { Origin: new URL(page.url()).origin };
    expect((await fetch(`${closed.url}/api/prompt`, { headers })).status).toBe(403);
  });
});

/** Runs in the page. */
function isLoaded(selector: string): boolean {
  return (document.querySelector<HTMLImageElement>(selector)?.naturalWidth ?? 0) > 0;
}

async function serve(page: URL): Promise<Server> {
  const html = await readFile(page);
  const server = createServer((request, response) => {
    const found = request.url?.startsWith('/?');
    response.writeHead(found ? 200 : 204, { 'Content-Type': 'text/html' });
    response.end(found ? html : undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
