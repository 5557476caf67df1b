import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, type Page, type Request, chromium } from 'playwright-core';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
/** Not in the repository. */
const PICTURES = fileURLToPath(new URL('../../../test-output/pictures/', import.meta.url));
const KEEPS_PICTURES = process.env['HOLDOVER_TEST_PICTURES'] === '1';

/** The machine's own browser: nothing is ever downloaded. */
export function findChromium():
  | { readonly ok: true; readonly path: string }
  | { readonly ok: false; readonly why: string } {
  const named = process.env['HOLDOVER_TEST_CHROMIUM'];
  const path = (named ? [named] : PLACES).find((place) => existsSync(place));
  if (path) return { ok: true, path };
  return { ok: false, why: `no Chromium at ${named ?? PLACES.join(', ')}` };
}

/**
 * Chromium reads the last list of this flag alone: first Playwright's own list, then two pages that the address bar of
 * each window loads, which no test sees, and a process for a page that no test opens. The pages take two thirds of a
 * second of processor time a window.
 */
const DISABLED_FEATURES = [
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsUpgrades',
  'HttpsFirstBalancedModeAutoEnable',
  'LensOverlay',
  'MediaRouter',
  'PaintHolding',
  'ThirdPartyStoragePartitioning',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'OptimizationHints',
  'NetworkTimeServiceQuerying',
  'AimEnabled',
  'PreconnectToSearch',
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'SpareRendererForSitePerProcess',
];

export function launchChromium(executablePath: string): Promise<Browser> {
  // Chromium's sandbox refuses to run as root.
  const sandbox = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const args = [...sandbox, `--disable-features=${DISABLED_FEATURES.join(',')}`];
  return chromium.launch({ executablePath, args });
}

/** With `HOLDOVER_TEST_PICTURES=1` keeps what a page looks like, for people: no test reads it. */
export async function keepPicture(page: Page, name: string): Promise<void> {
  if (KEEPS_PICTURES) await page.screenshot({ path: join(PICTURES, `${name}.png`) });
}

/** A complaint that is no fault of the server, and why it is none. */
export type Allowed = { readonly complaint: RegExp; readonly why: string };

/** A page that keeps what its console, its scripts and its requests complain about. */
export type WatchedPage = {
  readonly page: Page;
  /** Every complaint so far that nothing allows. */
  readonly complaints: () => readonly string[];
  /** Something is about to happen of which complaints are no faults. */
  readonly allow: (allowed: Allowed) => void;
  /** `keepPicture` under the folder's and the step's name. */
  readonly picture: (step: string) => Promise<void>;
  readonly close: () => Promise<void>;
};

export async function openPage(
  browser: Browser,
  options: { readonly folder: string; readonly allowed: readonly Allowed[] },
): Promise<WatchedPage> {
  const context = await browser.newContext({
    viewport: { width: 1120, height: 700 },
    // Motion takes a sixth of the processor time of an official front end.
    reducedMotion: 'reduce',
  });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const complaints = watch(page);
  const allowed = [...options.allowed];
  const isAllowed = (text: string) => allowed.some(({ complaint }) => complaint.test(text));
  return {
    page,
    complaints: () => complaints.filter((text) => !isAllowed(text)),
    allow: (another) => void allowed.push(another),
    picture: (step) => keepPicture(page, join(options.folder, step)),
    close: () => context.close(),
  };
}

function watch(page: Page): readonly string[] {
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() !== 'error') return;
    complaints.push(`console: ${message.text()} (${message.location().url})`);
  });
  page.on('pageerror', (error) => complaints.push(`thrown: ${error.stack ?? error.message}`));
  const answered = new WeakSet<Request>();
  page.on('requestfailed', (request) => {
    // An answer whose body the page does not read is thrown away, which counts as failed.
    if (answered.has(request)) return;
    complaints.push(`failed: ${request.method()} ${request.url()} ${request.failure()?.errorText}`);
  });
  page.on('response', (response) => {
    answered.add(response.request());
    if (response.status() < 400) return;
    const { method, url } = { method: response.request().method(), url: response.url() };
    complaints.push(`answered: ${response.status()} ${method} ${url}`);
  });
  return complaints;
}
