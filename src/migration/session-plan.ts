import type { JobStatus } from '../protocol/v2.ts';

/** A file that the client uploaded. It is stored beside the code. */
export type LocalFile = {
  readonly assetId: string;
  readonly variable: string;
  /** The path relative to the code. */
  readonly path: string;
  /** The `file_path` that v2 gets. */
  readonly filePath: string;
  readonly contentType: string;
};

/** An output of an earlier job. `index` counts the outputs of its node from 0. */
export type OutputRef = { readonly job: string; readonly node: string; readonly index: number };

/** A file that an input of a workflow names. */
export type FileInput = {
  readonly node: string;
  readonly input: string;
  readonly from:
    | { readonly kind: 'file'; readonly file: LocalFile }
    | { readonly kind: 'output'; readonly place: OutputRef };
};

/** A workflow, and the path of its file beside the code. */
export type WorkflowFile = {
  readonly path: string;
  readonly text: string;
  readonly inputs: readonly FileInput[];
  /** True when it has numbers that a double cannot hold. */
  readonly hasExactNumbers: boolean;
};

/** One step of the v2 code. */
export type Step =
  | { readonly kind: 'upload'; readonly file: LocalFile }
  | {
      readonly kind: 'submit';
      readonly job: string;
      readonly workflow: WorkflowFile;
      readonly needsPartnerKey: boolean;
    }
  /** v1 refused this workflow, and v2 refuses it too. */
  | { readonly kind: 'refused'; readonly name: string; readonly workflow: WorkflowFile }
  /** Waits until the job has left the queue. */
  | { readonly kind: 'until-running'; readonly job: string }
  | { readonly kind: 'pause'; readonly seconds: number }
  | { readonly kind: 'cancel'; readonly job: string }
  | { readonly kind: 'wait'; readonly job: string; readonly ended: JobStatus }
  | { readonly kind: 'download'; readonly place: OutputRef; readonly path: string };

type StepOf<Kind> = Step & { readonly kind: Kind };

/** A session as v2 steps, in order. */
export type Plan = {
  readonly steps: readonly Step[];
  readonly files: readonly LocalFile[];
  readonly usedSocket: boolean;
  /** Differences between the v2 code and the client's session. */
  readonly notes: readonly string[];
};

/** The places of the service, the files and the workflows. */
export type CodeOptions = {
  /** The address of the v2 service. `COMFY_BASE_URL` overrides it when the code runs. */
  readonly baseUrl: string;
  /** Workflows are in files `beside` the code, or `inside` the code. */
  readonly workflows: 'beside' | 'inside';
};

/** A session and how its code is written. */
export type Program = Plan & CodeOptions;

type StepWriter<One> = (step: One, program: Program) => readonly string[];
/** Writes a step of each kind in one language. */
export type StepWriters = { readonly [Kind in Step['kind']]: StepWriter<StepOf<Kind>> };

/** Returns the lines of all steps. */
export function stepLines(program: Program, writers: StepWriters): readonly string[] {
  return program.steps.flatMap((step) => (writers[step.kind] as StepWriter<Step>)(step, program));
}
