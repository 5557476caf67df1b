import type { JobAnswer } from '../../src/console/api-types.ts';
import { plural } from '../lib/format.ts';
import { CodeText } from '../lib/ui.tsx';
import { isLive } from '../jobs/job-row.tsx';
import { liveJob } from '../jobs/live.ts';
import { FileList } from './files.tsx';
import { GraphView } from './graph-view.tsx';
import { useNodeRuns } from './node-runs.ts';

/** Error, pictures and graph of a job. */
export function Overview({ answer }: { readonly answer: JobAnswer }) {
  const { job, nodes, outputs, inputs, texts, error } = answer;
  const live = liveJob(job.id).value;
  const runs = useNodeRuns(answer);
  const preview = isLive(job) ? live.preview : undefined;
  const hasOutputs = outputs.length > 0 || texts.length > 0;
  const hasFiles = hasOutputs || inputs.length > 0 || preview !== undefined;
  return (
    <>
      {error !== null && <ErrorPanel error={error} />}
      <div class={hasFiles ? 'overview' : ''}>
        {hasFiles && (
          <div class="overview-files">
            {preview !== undefined && (
              <section aria-labelledby="preview-title">
                <h2 id="preview-title">Preview</h2>
                <img class="preview" src={preview} alt="The latest preview" />
              </section>
            )}
            {hasOutputs && <Outputs answer={answer} />}
            {inputs.length > 0 && (
              <section aria-labelledby="inputs-title">
                <h2 id="inputs-title">Inputs</h2>
                <FileList files={inputs} />
              </section>
            )}
          </div>
        )}
        <section aria-labelledby="graph-title">
          <h2 id="graph-title">
            Graph <small>{plural(nodes.length, 'node')}</small>
          </h2>
          <GraphView nodes={nodes} runs={runs} step={isLive(job) ? live : {}} />
        </section>
      </div>
    </>
  );
}

function Outputs({ answer: { outputs, texts } }: { readonly answer: JobAnswer }) {
  return (
    <section aria-labelledby="outputs-title">
      <h2 id="outputs-title">Outputs</h2>
      <FileList files={outputs} />
      {texts.map(({ node, text }, at) => (
        <CodeText key={`${node} ${at}`} text={text} label={`Copy the text of node ${node}`} />
      ))}
    </section>
  );
}

function ErrorPanel({ error }: { readonly error: NonNullable<JobAnswer['error']> }) {
  return (
    <section class="panel is-bad" aria-labelledby="error-title">
      <h2 id="error-title">
        {error.type} in {error.node_type} <small>node {error.node}</small>
      </h2>
      <p class="error-text">{error.message}</p>
      {error.traceback !== '' && (
        <details>
          <summary>Traceback</summary>
          <CodeText text={error.traceback} label="Copy the traceback" />
        </details>
      )}
    </section>
  );
}
