import { readFile } from 'node:fs/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { hashOf } from '../../src/lib/hash.ts';
import { startHoldover } from '../support/processes/holdover.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { loading } from '../support/graphs/workflows.ts';
import { runFolder } from '../support/graphs/v1-folders.ts';

// The original's input folder holds `example.png` from the start, and front ends name it in every
// new LoadImage.

type Headers = { readonly [name: string]: string };

const WAITING = { timeout: 15_000 };
const EXAMPLE = new URL('../../fixtures/inputs/example.png', import.meta.url);

const holdover = useHoldover({ upstream: 'embedded' });

let users = 0;
const newUser = (): Headers => ({ 'X-API-Key': `example-user-${users++}` });

async function json(path: string, headers: Headers, at = holdover): Promise<any> {
  return (await fetch(`${at.url}${path}`, { headers })).json();
}

async function listed(headers: Headers, at = holdover): Promise<string[]> {
  const names = (await json('/internal/files/input', headers, at)) as readonly string[];
  return names.map((name) => name.replace(/ \[input\]$/, ''));
}

async function view(headers: Headers): Promise<Buffer> {
  const path = '/view?filename=example.png&type=input';
  return Buffer.from(await (await fetch(`${holdover.url}${path}`, { headers })).arrayBuffer());
}

async function upload(headers: Headers, bytes: Buffer, fields: Headers = {}): Promise<string> {
  const body = new FormData();
  body.set('image', new File([new Uint8Array(bytes)], 'example.png'));
  for (const [name, value] of Object.entries(fields)) body.set(name, value);
  const response = await fetch(`${holdover.url}/upload/image`, { method: 'POST', headers, body });
  return ((await response.json()) as { name: string }).name;
}

async function run(headers: Headers, prefix: string): Promise<Buffer> {
  const body = JSON.stringify({ prompt: loading('example.png', prefix) });
  const answer = await fetch(`${holdover.url}/prompt`, { method: 'POST', headers, body });
  const { prompt_id: id } = (await answer.json()) as { prompt_id: string };
  await expect
    .poll(async () => (await json(`/history/${id}`, headers))[id]?.status.status_str, WAITING)
    .toBe('success');
  const path = `/view?filename=${prefix}_00001_.png`;
  return Buffer.from(await (await fetch(`${holdover.url}${path}`, { headers })).arrayBuffer());
}

describe('every user has an example.png', () => {
  test('in the lists of inputs, and as the choice of a new LoadImage', async () => {
    const user = newUser();
    expect(await listed(user)).toEqual(['example.png']);
    const one = await json('/object_info/LoadImage', user);
    const { LoadImage, LoadImageMask } = await json('/object_info', user);
    for (const info of [one.LoadImage, LoadImage, LoadImageMask]) {
      expect(info.input.required.image[0]).toEqual(['example.png']);
    }
  });

  test('to look at, and to run without an upload', async () => {
    const user = newUser();
    expect(await view(user)).toEqual(await readFile(EXAMPLE));
    expect((await run(user, 'inverted')).subarray(1, 4).toString()).toBe('PNG');
    expect(await listed(user)).toEqual(['example.png']);
  });

  test('to run before it was looked at, twice at the same time', async () => {
    const user = newUser();
    const [one, other] = await Promise.all([run(user, 'one'), run(user, 'other')]);
    expect(Math.min(one.length, other.length)).toBeGreaterThan(10_000);
    expect(await listed(user)).toEqual(['example.png']);
  });

  test('that no mere list of inputs stores', async () => {
    const user = newUser();
    await json('/object_info', user);
    await listed(user);
    const stored = async (): Promise<number> => {
      const path = `/api/v2/assets/by-hash/${hashOf(await readFile(EXAMPLE))}`;
      return (await fetch(`${holdover.url}${path}`, { method: 'HEAD', headers: user })).status;
    };
    expect(await stored()).toBe(404);
    await view(user);
    expect(await stored()).toBe(200);
  });
});

describe('an upload of that name', () => {
  const other = Buffer.from('other bytes');

  test('gets another name, as in the original', async () => {
    const user = newUser();
    expect(await upload(user, other)).toBe('example (1).png');
    expect(await view(user)).toEqual(await readFile(EXAMPLE));
    expect(await listed(user)).toEqual(['example (1).png', 'example.png']);
  });

  test('has the name when it has the same bytes', async () => {
    const user = newUser();
    expect(await upload(user, await readFile(EXAMPLE))).toBe('example.png');
    expect(await listed(user)).toEqual(['example.png']);
  });

  test('takes its place with overwrite, for its user alone', async () => {
    const [user, neighbour] = [newUser(), newUser()];
    expect(await upload(user, other, { overwrite: 'true' })).toBe('example.png');
    expect(await view(user)).toEqual(other);
    expect(await listed(user)).toEqual(['example.png']);
    expect(await view(neighbour)).toEqual(await readFile(EXAMPLE));
  });
});

test('it is neither an output nor in a subfolder', async () => {
  const user = newUser();
  for (const query of ['type=output', 'type=temp', 'type=input&subfolder=a']) {
    const answer = await fetch(`${holdover.url}/view?filename=example.png&${query}`, {
      headers: user,
    });
    expect([query, answer.status]).toEqual([query, 404]);
  }
});

test('a plain input folder is what its owner makes it; others have the example', async () => {
  const shared = await startHoldover({
    args: ['--input-directory', await runFolder('inputs')],
    upstream: 'embedded',
  });
  onTestFinished(() => shared.dispose());
  expect(await listed({}, shared)).toEqual([]);
  expect((await fetch(`${shared.url}/view?filename=example.png&type=input`)).status).toBe(404);
  expect(await listed(newUser(), shared)).toEqual(['example.png']);
});

test('in front of a remote service the inputs are what was uploaded', async () => {
  const pair = await startHoldover({ upstream: 'remote' });
  onTestFinished(() => pair.dispose());
  expect(await listed({}, pair)).toEqual([]);
});
