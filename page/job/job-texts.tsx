import { useState } from 'preact/hooks';
import type { JobAnswer } from '../../src/console/api-types.ts';
import { clockTime } from '../lib/format.ts';
import { Choice, CodeText, Table } from '../lib/ui.tsx';
import { CodeBlock } from '../lib/code.tsx';

/** The job as a program that uses v2. */
export function CodeTab({ id }: { readonly id: string }) {
  return (
    <section aria-label="v2 code">
      <p>
        The same job without v1: it uploads the inputs, runs the workflow as a v2 job, and downloads
        the outputs.
      </p>
      <CodeBlock
        pathFor={(language) => `holdover/api/job/code?${new URLSearchParams({ id, language })}`}
      />
    </section>
  );
}

/** The workflow as it was submitted. */
export function WorkflowTab({
  answer: { graph_json: graph, workflow_json: workflow },
}: {
  readonly answer: JobAnswer;
}) {
  const [format, setFormat] = useState<'api' | 'ui'>('api');
  const text = format === 'ui' && workflow !== null ? workflow : graph;
  return (
    <section aria-label="Workflow">
      <Choice
        label="Format"
        value={format}
        onChange={setFormat}
        options={[
          { value: 'api', text: 'API format' },
          ...(workflow === null ? [] : [{ value: 'ui' as const, text: 'Front end format' }]),
        ]}
      />
      <CodeText text={text} label="Copy the workflow" />
    </section>
  );
}

/** The messages that history has of the job. */
export function MessagesTab({ answer: { messages } }: { readonly answer: JobAnswer }) {
  if (messages.length === 0)
    return <p class="muted">History has its messages once it has ended.</p>;
  return (
    <Table label="Messages" columns={['Time', 'Message', 'Data']}>
      {messages.map(({ type, at_ms: atMs, text }, at) => (
        <tr key={at}>
          <td class="mono">{atMs === null ? '' : clockTime(atMs)}</td>
          <td class="mono">{type}</td>
          <td>{text}</td>
        </tr>
      ))}
    </Table>
  );
}
