import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { entryOf, pngOf, pngText, uploadInput } from '../support/clients/client-helpers.ts';
import { postPrompt } from '../support/clients/v1-client.ts';
import { loading } from '../support/graphs/workflows.ts';
import { type Stack, notRun, openStack } from './open.ts';

// The real self-hosted server has one asset for equal bytes, whichever user sent them.

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const ALICE = { 'X-API-Key': 'alice' };
const BOB = { 'X-API-Key': 'bob' };

describe.skipIf(notRun !== '')(`names of uploads behind comfy-api-proxy${notRun}`, () => {
  let stack: Stack;

  beforeAll(async () => (stack = await openStack()));
  afterAll(() => stack?.close());

  async function pictureOf(graph: object, prefix: string): Promise<Buffer> {
    const { url } = stack.holdover;
    const { status, body } = await postPrompt(url, { prompt: graph }, { headers: BOB });
    expect([status, body.error]).toEqual([200, undefined]);
    const entry: any = await vi.waitUntil(() => entryOf(url, body.prompt_id, BOB), {
      timeout: 30_000,
    });
    expect(entry.status.status_str).toBe('success');
    const [file] = entry.outputs['9'].images;
    expect(file.filename).toMatch(prefix);
    const query = new URLSearchParams(file);
    const answer = await fetch(`${url}/view?${query}`, { headers: BOB });
    return Buffer.from(await answer.arrayBuffer());
  }

  test('a picture does not tell what another user called the same bytes, and its graph runs again', async () => {
    const { url } = stack.holdover;
    const bytes = await pngOf();
    await uploadInput(url, { bytes, name: 'secret-project-x.png' }, ALICE);
    await uploadInput(url, { bytes, name: 'holiday (é) 😀.png' }, BOB);
    const picture = await pictureOf(loading('holiday (é) 😀.png', 'made'), 'made');
    expect(picture.toString('latin1')).not.toContain('secret-project');
    const embedded = JSON.parse(pngText(picture, 'prompt') ?? '');
    expect(embedded['3'].inputs.image).toMatch(/^holdover-[0-9a-f]{16}\/[0-9a-f]{64}\.png$/);
    embedded['9'].inputs.filename_prefix = 'again';
    await pictureOf(embedded, 'again');
  });
});
