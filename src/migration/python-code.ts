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

const INDENT = '    ';

/**
 * Returns a session as a program for `comfy-sdk`. Integers of Python have any length, so workflows need no special
 * code.
 */
export function pythonCode(program: Program): string {
  const steps = stepLines(program, WRITERS);
  const body = steps.length === 0 ? ['pass'] : steps;
  return `${head(program)}${body.map((line) => `${INDENT}${line}\n`).join('')}`;
}

function head({ notes, steps, baseUrl, workflows }: Program): string {
  const inside = steps.flatMap((step) =>
    'workflow' in step && workflows === 'inside' ? [workflowConstant(step.workflow)] : [],
  );
  const waits = steps.some(({ kind }) => kind === 'pause' || kind === 'until-running');
  const refuses = steps.some(({ kind }) => kind === 'refused');
  return `"""A v1 session as v2 calls. Usage: python3 session.py [FOLDER FOR THE DOWNLOADS]

Needs comfy-sdk (PyPI). COMFY_BASE_URL: where v2 is. COMFY_API_KEY: the key for it, if it wants one.
"""
${notes.map((note) => `# Note: ${note}\n`).join('')}
import os
import sys
${waits ? 'import time\n' : ''}from pathlib import Path

from comfy_sdk import Comfy${refuses ? ', ComfyError' : ''}

HERE = Path(__file__).resolve().parent
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
OUT.mkdir(parents=True, exist_ok=True)
os.environ.setdefault("COMFY_BASE_URL", ${text(baseUrl)})
${inside.join('')}
with Comfy() as client:
`;
}

const WRITERS: StepWriters = {
  upload: ({ file }) => [`${file.variable} = ${assetCode(file)}`, `${file.variable}.commit()`],
  submit({ job, workflow, needsPartnerKey }, { workflows }) {
    const key = needsPartnerKey ? ', api_key=os.environ["COMFY_PARTNER_API_KEY"]' : '';
    return [
      ...workflowLines(workflow, workflows),
      `${job} = client.submit(workflow${key})`,
      `print("${job}:", ${job}.id)`,
    ];
  },
  refused: ({ name, workflow }, { workflows }) => [
    ...workflowLines(workflow, workflows),
    'try:',
    `${INDENT}print("${name} is accepted now:", client.submit(workflow).id)`,
    'except ComfyError as refusal:',
    `${INDENT}print("${name}:", refusal.code, refusal)`,
  ],
  'until-running': ({ job }) => [
    `while ${job}.refresh().status == "queued":`,
    `${INDENT}time.sleep(0.2)`,
  ],
  pause: ({ seconds }) => [`time.sleep(${seconds})`],
  cancel: ({ job }) => [`${job}.cancel()`],
  // Events are shown only; polling decides when a job has ended.
  wait: ({ job, ended }, { usedSocket }) => [
    ...(usedSocket
      ? [`for event in ${job}.events():`, `${INDENT}print("${job}:", type(event).__name__)`]
      : []),
    ended === 'succeeded' ? `${job}.result()` : `print("${job}:", ${job}.wait().status)`,
  ],
  download: ({ place, path }) => [`${outputCode(place)}.to_file(OUT / ${text(path)})`],
};

/** Returns the code that reads a file. The SDK sends only its base name, so another `file_path` is given explicitly. */
function assetCode({ path, filePath, contentType }: LocalFile): string {
  if (posix.basename(path) === filePath) return `client.assets.from_file(HERE / ${text(path)})`;
  const more = `filename=${text(filePath)}, content_type=${text(contentType)}`;
  return `client.assets.from_bytes((HERE / ${text(path)}).read_bytes(), ${more})`;
}

function workflowLines(workflow: WorkflowFile, workflows: CodeOptions['workflows']): string[] {
  const source =
    workflows === 'inside'
      ? `from_str(${nameOf(workflow)})`
      : `from_file(HERE / ${text(workflow.path)})`;
  return [
    `workflow = client.workflows.${source}`,
    ...workflow.inputs.map(({ node, input, from }) => {
      const value =
        from.kind === 'file'
          ? from.file.variable
          : `client.assets.get(${outputCode(from.place)}.id)`;
      return `workflow.set_input(${text(node)}, ${text(input)}, ${value})`;
    }),
  ];
}

function outputCode({ job, node, index }: OutputRef): string {
  return `${job}.get_outputs(${text(node)})[${index}]`;
}

/** Returns a workflow as a raw text in triple quotes. JSON never contains three quotes in a row. */
function workflowConstant(workflow: WorkflowFile): string {
  return `\n${nameOf(workflow)} = r"""${workflow.text}"""\n`;
}

function nameOf({ path }: WorkflowFile): string {
  return path
    .replace(/\.json$/, '')
    .replaceAll('-', '_')
    .toUpperCase();
}

function text(value: string): string {
  return JSON.stringify(value);
}
