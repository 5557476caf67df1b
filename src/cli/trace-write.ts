import { createWriteStream } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { CODE_FILES, type Language, codeOf } from '../migration/session-code.ts';
import type { LocalFile, Plan } from '../migration/session-plan.ts';
import type { V1Call } from '../migration/session.ts';
import type { SessionRecorder } from '../migration/session-recorder.ts';

/** The code of a recorded session. */
export type SessionCode = {
  readonly plan: Plan;
  readonly languages: readonly Language[];
  readonly baseUrl: string;
};

type OutputFolder = {
  readonly dir: string;
  readonly sessionRecorder: SessionRecorder;
  readonly calls: readonly V1Call[];
};

/** Writes the code into a folder, with its workflows and input files. */
export async function writeCode(
  code: SessionCode,
  { dir, sessionRecorder, calls }: OutputFolder,
): Promise<void> {
  const { plan, baseUrl } = code;
  await mkdir(dir, { recursive: true });
  const writeText = async (name: string, text: string): Promise<void> => {
    await writeFile(join(dir, name), text);
    process.stderr.write(`wrote ${join(dir, name)}\n`);
  };
  for (const step of plan.steps)
    if ('workflow' in step) await writeText(step.workflow.path, step.workflow.text);
  for (const file of plan.files) await downloadInput(file, join(dir, file.path), sessionRecorder);
  await writeText('calls.json', `${JSON.stringify(calls, null, 2)}\n`);
  for (const language of code.languages) {
    await writeText(CODE_FILES[language], codeOf(language, plan, { baseUrl, workflows: 'beside' }));
  }
}

/** Prints the code with its workflows inside it. It still needs the files that the script uploaded. */
export function printCode({ plan, languages, baseUrl }: SessionCode): void {
  for (const language of languages) {
    const title = languages.length > 1 ? `==> ${CODE_FILES[language]} <==\n` : '';
    const code = codeOf(language, plan, { baseUrl, workflows: 'inside' });
    process.stdout.write(`${title}${code}\n`);
  }
  if (plan.files.length === 0) return;
  const files = plan.files.map(({ path }) => path).join(', ');
  process.stderr.write(`The code reads ${files}: give --out DIR to write them.\n`);
}

/** Returns a table of the v1 calls of a session and their v2 calls. Equal calls in a row share a line with a count. */
export function callTable(calls: readonly V1Call[]): string {
  const rows: { text: string; times: number }[] = [];
  for (const { method, target, status, v2 } of calls) {
    const call = `${method} ${target.split('?', 1)[0] ?? target}`.padEnd(24);
    const text = `  ${call} ${status} → ${v2.join(', ') || '(answered by Holdover itself)'}`;
    const last = rows.at(-1);
    if (last?.text === text) last.times++;
    else rows.push({ text, times: 1 });
  }
  const lines = rows.map(({ text, times }) =>
    times === 1 ? `${text}\n` : `${text} (${times} times)\n`,
  );
  return `\nWhat each v1 call became in v2:\n${lines.join('')}`;
}

async function downloadInput(
  { assetId, path }: LocalFile,
  target: string,
  sessionRecorder: SessionRecorder,
): Promise<void> {
  const content = await sessionRecorder.content(assetId);
  let found = content?.ok ? content.value : undefined;
  if (found?.kind === 'redirect') {
    const opened = await found.open?.();
    found = opened?.ok ? opened.value : undefined;
  }
  if (found?.kind !== 'bytes') {
    return void process.stderr.write(
      `The bytes of ${path} are gone: put the file there yourself.\n`,
    );
  }
  await mkdir(dirname(target), { recursive: true });
  await pipeline(found.stream, createWriteStream(target));
  process.stderr.write(`wrote ${target}\n`);
}
