// Every text a client can send is shown on Holdover's own pages as text, and never acted upon.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { findChromium, launchChromium } from '../support/browser/chromium.ts';
import { NOT_A_PICTURE, uploadInput } from '../support/clients/client-helpers.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { endless, flat, loading } from '../support/graphs/workflows.ts';

const chromium = findChromium();
const notRun = chromium.ok ? '' : ` (NOT RUN: ${chromium.why})`;
if (notRun) console.warn(`script injection is not tested in a browser${notRun}`);

/** The machine may be busy. */
const WITHIN_MS = 90_000;

/** A text that runs as a script, out of an element, an attribute, a template or an address. */
function hostile(where: string): string {
  return `${where} "><img src=x onerror=taken('${where}')><script>taken('${where}')</script>'{{version}}`;
}

/** Ids of prompts have no slash. */
function hostileId(where: string): string {
  return hostile(where).replaceAll('/', '');
}

/** Names of files keep fewer characters: no slash, no quote, no colon. */
function hostileName(where: string, extension: string): string {
  return `${where} <img src=x onerror=taken(1)>${extension}`;
}

const SCRIPT = `<script>taken('file')</script><img src=x onerror="taken('file')">`;
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" onload="taken('svg')"><script>taken('svg')</script></svg>`;

describe.skipIf(notRun)(`texts of clients in Chromium${notRun}`, { timeout: WITHIN_MS }, () => {
  let browser: Browser;
  let server: Holdover;
  /** The policy of the pages is a second wall: without it the first one has to hold alone. */
  let unguarded: Visitor;
  let guarded: Visitor;

  beforeAll(async () => {
    browser = await launchChromium(chromium.ok ? chromium.path : '');
    server = await startHoldover({ upstream: 'embedded' });
    unguarded = await createVisitor({ bypassCSP: true });
    guarded = await createVisitor({ bypassCSP: false });
  }, WITHIN_MS);
  beforeEach(async () => {
    for (const { page, taken } of [unguarded, guarded]) {
      await page.goto('about:blank');
      taken.length = 0;
    }
  });
  afterAll(async () => {
    await browser?.close();
    await server?.dispose();
  });

  type Visitor = {
    readonly page: Page;
    readonly taken: string[];
    /** Opens the path; true when the page shows its content. */
    readonly open: (path: string) => Promise<boolean>;
  };

  async function createVisitor({ bypassCSP }: { bypassCSP: boolean }): Promise<Visitor> {
    const context = await browser.newContext({
      bypassCSP,
      acceptDownloads: false,
      reducedMotion: 'reduce',
    });
    const taken: string[] = [];
    await context.exposeFunction('taken', (where: unknown) => void taken.push(String(where)));
    const page = await context.newPage();
    page.setDefaultTimeout(WITHIN_MS / 3);
    page.on('dialog', (dialog) => {
      taken.push('dialog');
      void dialog.dismiss();
    });
    const open = async (path: string) => {
      // A file to be saved, or an answer without a body, ends the navigation.
      const answer = await page.goto(`${server.url}${path}`).catch(() => null);
      return answer !== null;
    };
    return { page, taken, open };
  }

  /** Elements and attributes that only a text could have brought. */
  function foreign(page: Page): Promise<string[]> {
    return page.evaluate(() => {
      const found: string[] = [];
      for (const each of document.querySelectorAll('*')) {
        const src = each.getAttribute('src') ?? '';
        const isOwn = /^(\.\.\/)?holdover\/[\w-]+\.js$/.test(src);
        if (each.localName === 'script' && !isOwn) found.push(each.outerHTML.slice(0, 200));
        if (/^(iframe|object|embed|base)$/.test(each.localName))
          found.push(each.outerHTML.slice(0, 200));
        for (const { name, value } of each.attributes) {
          if (name.startsWith('on') || /^\s*javascript:/i.test(value))
            found.push(each.outerHTML.slice(0, 200));
          if (name === 'src' && value === 'x') found.push(each.outerHTML.slice(0, 200));
        }
      }
      return found;
    });
  }

  const textOf = (page: Page): Promise<string> => page.evaluate(() => document.body.innerText);

  async function accepted(body: object): Promise<void> {
    expect(await postPrompt(server.url, body)).toMatchObject({ status: 200 });
  }

  test('the page of jobs and results', async () => {
    const names = {
      id: hostileId('prompt'),
      running: hostileId('running'),
      failing: hostileId('failing'),
      node: hostile('node'),
    };
    const { url, wsUrl } = server;
    // Prefixes keep what a file name may have: a slash would make a folder of it.
    const prefix = hostileName('prefix', '');
    await accepted({
      prompt: flat({ prefix }),
      prompt_id: names.id,
      client_id: hostile('client'),
    });
    const broken = await uploadInput(url, {
      bytes: NOT_A_PICTURE,
      name: hostileName('upload', '.png'),
    });
    await accepted({ prompt: loading(broken.name), prompt_id: names.failing });
    await accepted({
      prompt: flat({ prefix: 'named' }),
      extra_data: {
        extra_pnginfo: { workflow: { id: hostile('workflow'), name: hostile('workflow') } },
      },
    });
    await fetch(`${url}/api/v2/jobs`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({
        workflow: flat({ prefix: 'labelled' }),
        metadata: { name: hostile('job') },
      }),
    });
    const { 1: node, 9: save } = endless() as { [id: string]: object };
    const socket = await connect(wsUrl, { clientId: hostile('socket') });
    await accepted({
      prompt: {
        [names.node]: { ...node, _meta: { title: hostile('title') } },
        '9': { ...save, inputs: { images: [names.node, 0], filename_prefix: 'x' } },
      },
      prompt_id: names.running,
      client_id: hostile('socket'),
    });
    const over = async () => Object.keys(await getJson(`${url}/history`)).length;
    await expect.poll(over, { timeout: WITHIN_MS / 3 }).toBeGreaterThanOrEqual(4);

    const { page, taken, open } = unguarded;
    for (const path of ['/', '/holdover']) {
      await open(path);
      const row = (id: string) => page.locator('.job-row', { hasText: id });
      await row(names.running).locator('progress[value]').waitFor();
      await row(names.running).getByText(names.node).waitFor();
      await row(names.id).locator('img[src^="blob:"]').waitFor();
      const text = await textOf(page);
      // It is there to be seen, so that it could have been acted upon.
      for (const each of Object.values(names)) expect(text).toContain(each);
      expect(text).toContain(`cannot identify image file '${hostileName('upload', '.png')}'`);
      for (const each of [hostile('client'), hostile('socket'), hostile('workflow')])
        expect(text).toContain(each);
      expect(await page.locator(`.job-row img[alt*="prefix <img"]`).count()).toBe(1);
      expect(await foreign(page)).toEqual([]);
      expect(taken).toEqual([]);
    }
    await fetch(`${url}/interrupt`, { method: 'POST' });
    await socket.close();
  });

  test('the report of who calls v1', async () => {
    const { url } = server;
    const headers = { 'User-Agent': hostile('agent').replaceAll('{', '(') };
    await postPrompt(url, { prompt: flat(), client_id: hostile('reported') }, { headers });
    await fetch(`${url}/history/${encodeURIComponent(hostile('path'))}`, { headers });
    await fetch(`${url}/view?filename=${encodeURIComponent(hostile('query'))}`, { headers });
    const { page, taken, open } = unguarded;
    await open('/holdover#/clients');
    await page.locator('.client > header', { hasText: 'agent ">' }).waitFor();
    expect(await textOf(page)).toContain(hostile('reported'));
    expect(await foreign(page)).toEqual([]);
    expect(taken).toEqual([]);
  });

  test('the policy alone holds as well', async () => {
    const { page, taken, open } = guarded;
    await open('/holdover');
    const violated = page.waitForEvent('console', {
      predicate: (line) => line.text().includes('Content Security Policy'),
    });
    // As if a text had been taken for HTML.
    await page.evaluate(() => {
      document.body.insertAdjacentHTML('beforeend', `<img src=x onerror="taken('inline')">`);
    });
    await violated;
    expect(taken).toEqual([]);
  });

  test('files of clients, opened at their addresses, run nothing', async () => {
    const { url } = server;
    const paths: string[] = [];
    for (const [name, bytes] of [
      ['page.html', SCRIPT],
      ['page.htm', SCRIPT],
      ['page.xhtml', `<html xmlns="http://www.w3.org/1999/xhtml">${SCRIPT}</html>`],
      ['picture.svg', SVG],
      ['data.xml', `<x:script xmlns:x="http://www.w3.org/1999/xhtml">taken('xml')</x:script>`],
      ['nameless', SCRIPT],
      ['text.txt', SCRIPT],
      ['picture.png', SCRIPT],
      ['model.js', `taken('js')`],
    ] as const) {
      const made = await uploadInput(url, { bytes: Buffer.from(bytes), name });
      paths.push(`/view?${new URLSearchParams({ filename: made.name, type: 'input' })}`);
      const put = await fetch(`${url}/userdata/${encodeURIComponent(`workflows/${name}`)}`, {
        method: 'POST',
        body: bytes,
      });
      expect(put.status).toBe(200);
      paths.push(`/userdata/${encodeURIComponent(`workflows/${name}`)}`);
    }
    const { taken, open } = guarded;
    for (const path of paths) {
      await open(path);
      expect([path, taken]).toEqual([path, []]);
    }
  });

  test('addresses that do not exist repeat nothing that runs', async () => {
    const text = encodeURIComponent(`<script>taken('address')</script>`);
    const paths = [
      '/',
      '/holdover/',
      '/history/',
      '/api/jobs/',
      '/object_info/',
      '/userdata/',
      '/api/v2/jobs/',
    ];
    const queries = [
      `/view?filename=${text}`,
      `/?${text}`,
      `/holdover?x=${text}`,
      `/history?max_items=${text}`,
    ];
    const { page, taken, open } = unguarded;
    for (const path of [...paths.map((before) => `${before}${text}`), ...queries]) {
      const isShown = await open(path);
      expect([path, taken]).toEqual([path, []]);
      if (isShown) expect([path, await foreign(page)]).toEqual([path, []]);
    }
  });
});
