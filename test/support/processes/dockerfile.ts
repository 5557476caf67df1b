/** One instruction of a Dockerfile: its word, its `--flags`, and the rest as written. */
export type Instruction = {
  readonly word: Word;
  readonly flags: Readonly<Record<string, string>>;
  readonly rest: string;
};

/** From one `FROM` to the next. */
export type Stage = {
  readonly name: string;
  readonly base: string;
  readonly steps: readonly Instruction[];
};

const WORDS = [
  'FROM',
  'WORKDIR',
  'COPY',
  'RUN',
  'ENV',
  'USER',
  'VOLUME',
  'EXPOSE',
  'HEALTHCHECK',
  'ENTRYPOINT',
  'CMD',
] as const;
type Word = (typeof WORDS)[number];

/** Reads what our Dockerfile uses of the format; anything else is an error, never skipped. */
export function readDockerfile(text: string): readonly Stage[] {
  const stages: { name: string; base: string; steps: Instruction[] }[] = [];
  for (const line of logicalLines(text)) {
    const instruction = readInstruction(line);
    if (instruction.word !== 'FROM') {
      stages.at(-1)?.steps.push(instruction);
      continue;
    }
    const [, base = '', name = String(stages.length)] =
      /^(\S+)(?: AS (\S+))?$/i.exec(instruction.rest) ?? [];
    stages.push({ name, base, steps: [] });
  }
  return stages;
}

/** The arguments of an instruction in its JSON form. */
export function argumentsOf({ word, rest }: Instruction): readonly string[] {
  if (!rest.startsWith('[')) throw new Error(`${word} is not in its exec form: ${rest}`);
  return JSON.parse(rest) as string[];
}

/** Which files of the context a `.dockerignore` lets through; only literal paths and a lone `*`. */
export function readDockerignore(text: string): (path: string) => boolean {
  const patterns = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const rules = patterns.map((pattern) => {
    const admits = pattern.startsWith('!');
    const path = admits ? pattern.slice(1) : pattern;
    if (/[*?[\\]/.test(path) && path !== '*') throw new Error(`cannot read ${pattern}`);
    return { admits, covers: (file: string) => path === '*' || isIn(path, file) };
  });
  return (file) => rules.findLast(({ covers }) => covers(file))?.admits ?? true;
}

function isIn(folder: string, file: string): boolean {
  return file === folder || file.startsWith(`${folder}/`);
}

function logicalLines(text: string): readonly string[] {
  const lines = text.split('\n').filter((line) => !/^\s*#/.test(line));
  return lines
    .join('\n')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

function readInstruction(line: string): Instruction {
  const [, word = '', marks = '', rest = ''] = /^(\w+)((?:\s+--\S+)*)\s+(.*)$/.exec(line) ?? [];
  const known = WORDS.find((each) => each === word.toUpperCase());
  if (known === undefined) throw new Error(`cannot read this line of the Dockerfile: ${line}`);
  const flags = [...marks.matchAll(/--([\w-]+)=(\S+)/g)].map(([, name, value]) => [name, value]);
  return { word: known, flags: Object.fromEntries(flags), rest };
}
