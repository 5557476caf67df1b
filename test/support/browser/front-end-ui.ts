import { type Page } from 'playwright-core';
import { expect } from 'vitest';
import { type Allowed } from './chromium.ts';

/** Complaints the official front end also makes on its own server. */
export const NO_FAULTS: readonly Allowed[] = [
  {
    complaint: /userdata\/user\.css/,
    why: 'the user has no style sheet: v1 answers 404, and its page asks all the same',
  },
  {
    complaint: /404.*userdata\?dir=(workflows|subgraphs)&/,
    why: 'the folder is made by the first save; until then v1 lists it with 404',
  },
  {
    complaint: /404.*userdata\/(comfy\.templates\.json|workflows%2F\.index\.json)/,
    why: 'the file is made by the first save',
  },
  {
    complaint: /404.*filename=dropped\.png/,
    why: 'the page shows what is dropped onto it before it has sent it',
  },
  {
    complaint: /^failed: .* net::ERR_ABORTED$/,
    why: 'the page itself gave the request up, at its reload',
  },
  {
    complaint: /^console: .*TypeError: Failed to fetch/,
    why: 'what the page says of such a request; one that the server fails is complained of by itself',
  },
  {
    complaint: /ComfyApp graph accessed before initialization/,
    why: '1.49.6 says it of a call of its own',
  },
  {
    complaint: /https:\/\/api\.comfy\.org\//,
    why: 'the page asks its maker for news, which the test machine may not reach',
  },
];

/** While a run is refused. */
export const REFUSED: Allowed = {
  complaint: /\b400\b.*\/api\/prompt\b|PromptExecutionError/,
  why: 'the test runs a class that the server does not have',
};

/** While the server is away. */
export const RESTARTED: Allowed = {
  complaint:
    /TypeError: Failed to fetch|ERR_CONNECTION_(REFUSED|RESET)|ERR_EMPTY_RESPONSE|ERR_SOCKET_NOT_CONNECTED/,
  why: 'the page calls a server that was killed, until it is there again',
};

declare const app: any;

/** A place in the list of files. */
const IN_SIDEBAR = { x: 215, y: 450 } as const;
/** Half a row of that list. */
const SCROLL_PX = 150;

const NOTE = {
  last_node_id: 1,
  last_link_id: 0,
  nodes: [
    {
      id: 1,
      type: 'Note',
      pos: [50, 90],
      size: [200, 90],
      flags: {},
      order: 0,
      mode: 0,
      properties: { text: '' },
      widgets_values: ['mine'],
    },
  ],
  links: [],
  groups: [],
  config: {},
  extra: {},
  version: 0.4,
};

type File = { readonly name: string; readonly mimeType: string; readonly buffer: Buffer };

/** The handles a person has on the official front end. */
export function createUi(page: Page) {
  return {
    /** Opens or reloads it, until it can be used. */
    async open(url: string) {
      await page.goto(url);
      await page.waitForFunction(() => (globalThis as any).app?.extensionManager?.setting);
      await page.getByTestId('queue-button').waitFor();
      await page.evaluate(listen);
    },
    browseTemplates: () =>
      page.evaluate(() => app.extensionManager.command.execute('Comfy.BrowseTemplates')),
    /** A newcomer is shown templates first, with pictures 320 pixels wide. */
    async openTemplate(title: string) {
      await page.waitForFunction(
        () => [...document.images].filter(({ naturalWidth }) => naturalWidth === 320).length >= 2,
      );
      await page.getByText(title).first().click();
      await page.getByRole('button', { name: 'Close dialog' }).waitFor({ state: 'detached' });
    },
    shownTypes: (): Promise<string[]> =>
      page.evaluate(() => app.graph._nodes.map(({ type }: { type: string }) => type).toSorted()),
    nodeTypes: (): Promise<string[]> =>
      page.evaluate(() => Object.keys((globalThis as any).LiteGraph.registered_node_types)),
    load: (graph: object, name: string) =>
      page.evaluate(([g, n]) => app.loadApiJson(g, n), [graph, name] as const),
    setValues: (type: string, values: Record<string, number>) =>
      page.evaluate(
        ([of, chosen]) => {
          for (const widget of app.graph.findNodesByType(of)[0].widgets)
            widget.value = chosen[widget.name] ?? widget.value;
        },
        [type, values] as const,
      ),
    run: () => page.getByTestId('queue-button').click(),
    cancel: () => page.getByRole('button', { name: 'Cancel current run' }).click(),
    heard: (): Promise<string[]> => page.evaluate(() => (globalThis as any).heard),
    /** Shows a workflow as front ends save it, of one note. */
    loadNote: () => page.evaluate((graph) => app.loadGraphData(graph), NOTE),
    untilPreview: (type: string) =>
      page.waitForFunction((of) => {
        const picture = app.graph.findNodesByType(of).at(-1)?.imgs?.[0];
        return picture?.src.startsWith('blob:') && picture.naturalWidth > 0;
      }, type),
    untilPicture: (node: number | string, address: RegExp) =>
      page.waitForFunction(
        ([idOrType, source]) => {
          const found =
            app.graph.getNodeById(idOrType) ?? app.graph.findNodesByType(idOrType).at(-1);
          const picture = found?.imgs?.[0];
          return new RegExp(source).test(picture?.src) && picture.naturalWidth > 0;
        },
        [node, address.source] as const,
      ),
    async drop(name: string, bytes: Buffer) {
      const carried = await page.evaluateHandle(
        ([fileName, content]) => {
          const transfer = new DataTransfer();
          const picture = Uint8Array.from(atob(content), (sign) => sign.charCodeAt(0));
          transfer.items.add(new File([picture], fileName, { type: 'image/png' }));
          return transfer;
        },
        [name, bytes.toString('base64')] as const,
      );
      const at = { dataTransfer: carried, clientX: 700, clientY: 500 };
      const canvas = page.locator('#graph-canvas');
      await canvas.dispatchEvent('dragover', at);
      await canvas.dispatchEvent('drop', at);
    },
    async choose(node: number, file: File) {
      const dialog = page.waitForEvent('filechooser');
      await page.evaluate((id) => {
        const { widgets } = app.graph.getNodeById(id);
        widgets.find(({ name }: { name: string }) => name === 'upload').callback();
      }, node);
      await (await dialog).setFiles(file);
    },
    async save(name: string) {
      await page.keyboard.press('Control+s');
      const field = page.getByRole('dialog').getByRole('textbox');
      await field.fill(name);
      await field.press('Enter');
      await field.waitFor({ state: 'detached' });
    },
    untilConnectedAgain: () =>
      page.waitForFunction(() => (globalThis as any).heard.includes('reconnected')),
    untilActive: (count: number) => page.getByText(`${count} active`).first().waitFor(),
    showWorkflows: () => page.getByRole('button', { name: 'Workflows (w)' }).click(),
    showAssets: () => page.getByRole('button', { name: 'Assets (a)' }).click(),
    toggleJobs: () => page.getByTestId('queue-overlay-toggle').click(),
    modified: (path: string): Promise<number> =>
      page.evaluate(
        (of) => app.extensionManager.workflow.getWorkflowByPath(of)?.lastModified,
        path,
      ),
    choices: (node: number): Promise<string[]> =>
      page.evaluate((id) => app.graph.getNodeById(id).widgets[0].options.values, node),
    /** Scrolls down to it: the list draws only the rows in view. */
    async untilAsset(file: string) {
      const pictures = page.locator(`img[src*="${file}"]`);
      const isShown = () =>
        pictures.evaluateAll((all) =>
          all.some((img) => (img as HTMLImageElement).naturalWidth > 0),
        );
      await page.mouse.move(IN_SIDEBAR.x, IN_SIDEBAR.y);
      await expect
        .poll(async () => {
          if ((await pictures.count()) === 0) await page.mouse.wheel(0, SCROLL_PX);
          return isShown();
        })
        .toBe(true);
    },
  };
}

/** Runs in the page: keeps the names of the server's messages. */
function listen(): void {
  const heard: string[] = [];
  (globalThis as any).heard = heard;
  const names = [
    'status',
    'progress',
    'progress_state',
    'executed',
    'execution_interrupted',
    'reconnected',
  ];
  for (const name of names) app.api.addEventListener(name, () => heard.push(name));
}
