import { posix } from 'node:path';
import {
  type CodeOptions,
  type LocalFile,
  type OutputRef,
  type Program,
  type StepWriters,
  type WorkflowFile,
  stepLines,
} from './session-plan.ts';

/** Returns a session as a program for `@comfyorg/sdk`. */
export function typescriptCode(program: Program): string {
  const steps = stepLines(program, WRITERS);
  return `${head(program)}\n${steps.map((line) => `${line}\n`).join('')}`;
}

function head({ notes, steps, baseUrl }: Program): string {
  const workflows = steps.flatMap((step) => ('workflow' in step ? [step.workflow] : []));
  const waits = steps.some(({ kind }) => kind === 'pause' || kind === 'until-running');
  const refuses = steps.some(({ kind }) => kind === 'refused');
  const exact = workflows.some(({ hasExactNumbers }) => hasExactNumbers);
  return `// A v1 session as v2 calls. Usage: node session.mts [FOLDER FOR THE DOWNLOADS]
// Needs @comfyorg/sdk (npm) and Node 22.18 or newer.
// COMFY_BASE_URL: where v2 is. COMFY_API_KEY: the key for it, if it wants one.
${notes.map((note) => `// Note: ${note}\n`).join('')}
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
${waits ? "import { setTimeout as sleep } from 'node:timers/promises';\n" : ''}import { Comfy${refuses ? ', ComfyError' : ''} } from '@comfyorg/sdk';

process.env.COMFY_BASE_URL ||= ${text(baseUrl)};
const out = process.argv[2] ?? '.';
await mkdir(out, { recursive: true });
const here = (path: string) => join(import.meta.dirname, path);
const client = new Comfy(process.env.COMFY_API_KEY ? { apiKey: process.env.COMFY_API_KEY } : {});
${exact ? EXACT : ''}`;
}

/**
 * The SDK copies the graph, which would lose a raw number. It keeps an object with `toJSON`, which makes the raw
 * number later.
 */
const EXACT = `
/** Numbers a double cannot hold go out digit by digit as they are in the workflow. */
function exactly(_key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source;
  if (typeof value !== 'number' || source === undefined || String(value) === source) return value;
  return { toJSON: () => (JSON as any).rawJSON(source) };
}
`;

const WRITERS: StepWriters = {
  upload: ({ file }) => [
    `const ${file.variable} = ${assetCode(file)};`,
    `await ${file.variable}.commit();`,
  ],
  submit({ job, workflow, needsPartnerKey }, { workflows }) {
    const name = `workflow${job.replace('job', '')}`;
    const key = needsPartnerKey ? ', { apiKey: process.env.COMFY_PARTNER_API_KEY }' : '';
    return [
      ...workflowLines(name, workflow, workflows),
      `const ${job} = await client.submit(${name}${key});`,
      `console.log('${job}:', ${job}.id);`,
    ];
  },
  refused: ({ name, workflow }, { workflows }) => [
    ...workflowLines(name, workflow, workflows),
    `await client.submit(${name}).then(`,
    `  (job) => console.log('${name} is accepted now:', job.id),`,
    `  (refusal) => {`,
    `    if (!(refusal instanceof ComfyError)) throw refusal;`,
    `    console.log('${name}:', refusal.code, refusal.message);`,
    `  },`,
    `);`,
  ],
  'until-running': ({ job }) => [
    `while ((await ${job}.refresh()).status === 'queued') await sleep(200);`,
  ],
  pause: ({ seconds }) => [`await sleep(${Math.round(seconds * 1000)});`],
  cancel: ({ job }) => [`await ${job}.cancel();`],
  // Events are shown only; polling decides when a job has ended.
  wait: ({ job, ended }, { usedSocket }) => [
    ...(usedSocket
      ? [`for await (const event of ${job}.events()) console.log('${job}:', event.kind);`]
      : []),
    ...(ended === 'succeeded'
      ? [`await ${job}.result();`]
      : [`await ${job}.wait();`, `console.log('${job}:', ${job}.status);`]),
  ],
  download: ({ place, path }) => [`await ${outputCode(place)}.toFile(join(out, ${text(path)}));`],
};

/** Returns the code that reads a file. The SDK sends only its base name, so another `file_path` is given explicitly. */
function assetCode({ path, filePath, contentType }: LocalFile): string {
  if (posix.basename(path) === filePath) return `client.assets.fromFile(here(${text(path)}))`;
  const more = `{ filename: ${text(filePath)}, contentType: ${text(contentType)} }`;
  return `client.assets.fromBytes(await readFile(here(${text(path)})), ${more})`;
}

function workflowLines(
  name: string,
  workflow: WorkflowFile,
  workflows: CodeOptions['workflows'],
): string[] {
  return [
    `const ${name} = ${workflowCode(workflow, workflows)};`,
    ...workflow.inputs.map(({ node, input, from }) => {
      const value =
        from.kind === 'file'
          ? from.file.variable
          : `await client.assets.get(${outputCode(from.place)}.id)`;
      return `${name}.setInput(${text(node)}, ${text(input)}, ${value});`;
    }),
  ];
}

function workflowCode(workflow: WorkflowFile, workflows: CodeOptions['workflows']): string {
  const { path, hasExactNumbers } = workflow;
  const json =
    workflows === 'inside' ? text(workflow.text) : `await readFile(here(${text(path)}), 'utf8')`;
  if (hasExactNumbers) return `client.workflows.fromJson(JSON.parse(${json}, exactly))`;
  return workflows === 'inside'
    ? `client.workflows.fromString(${json})`
    : `await client.workflows.fromFile(here(${text(path)}))`;
}

function outputCode({ job, node, index }: OutputRef): string {
  return `${job}.getOutputs(${text(node)})[${index}]!`;
}

function text(value: string): string {
  return JSON.stringify(value);
}
