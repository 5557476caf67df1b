import { useEffect, useState } from 'preact/hooks';
import type {
  CodeAnswer,
  JobAnswer,
  JobFile,
  JobInput,
  NodeStateWord,
} from '../../src/console/api-types.ts';
import arrowLeft from 'icon:arrow-left';
import arrows from 'icon:arrow-left-right';
import ban from 'icon:ban';
import dices from 'icon:dices';
import download from 'icon:download';
import loader from 'icon:loader-circle';
import play from 'icon:play';
import searchX from 'icon:search-x';
import external from 'icon:external-link';
import { clockTime, dateTime, duration } from '../lib/format.ts';
import { Thumbnail, isPicture, saveFile } from '../lib/pictures.tsx';
import { goTo, linkTo } from '../lib/route.ts';
import { Refused, address, getJson, storedKey, viewPath } from '../lib/server.ts';
import { Choice, CopyButton, Empty, Icon } from '../lib/ui.tsx';
import { JobState, isLive, times } from '../jobs/job-row.tsx';
import { liveJob } from '../jobs/live.ts';
import { hasSeed, runAgain } from '../jobs/run.ts';
import { cancel, jobs } from '../jobs/store.ts';
import { connection, now, onMessage, tellError } from '../state.ts';
import { GraphView } from './graph-view.tsx';
import { useNodeTimes } from './node-times.ts';

export function JobView({ id }: { readonly id: string }) {
  const [answer, setAnswer] = useState<JobAnswer>();
  const [fault, setFault] = useState<unknown>();
  const query = new URLSearchParams({ id });
  const read = (): void => {
    getJson<JobAnswer>(`holdover/api/job?${query}`).then(
      (found) => {
        setAnswer(found);
        setFault(undefined);
      },
      (error: unknown) => setFault(error),
    );
  };
  const isOpen = connection.value.is === 'open';
  useEffect(() => {
    if (isOpen) read();
  }, [id, isOpen]);
  useEffect(
    () =>
      onMessage(({ type, data }) => {
        const isStep = type === 'progress' || type === 'progress_state' || type === 'executing';
        if (data['prompt_id'] === id && !isStep) read();
      }),
    [id],
  );
  // The list of jobs sees an end that no message has told.
  const listed = jobs.value.find((job) => job.id === id);
  useEffect(() => {
    if (listed !== undefined && answer !== undefined && listed.status !== answer.job.status) read();
  }, [listed?.status]);
  if (answer !== undefined) return <JobPage answer={answer} />;
  if (fault === undefined) return <Empty icon={loader} title="Reading the job …" />;
  const isGone = fault instanceof Refused && fault.status === 404;
  return (
    <Empty icon={searchX} title={isGone ? 'There is no such job' : 'The job could not be read'}>
      <p>
        {isGone
          ? `None of your jobs has the id ${id}. It may have been removed from the history.`
          : String(fault)}
      </p>
      <a class="button" href={linkTo('jobs')}>
        All jobs
      </a>
    </Empty>
  );
}

const TABS = ['Overview', 'v2 code', 'Workflow', 'Messages'] as const;
type Tab = (typeof TABS)[number];

function JobPage({ answer }: { readonly answer: JobAnswer }) {
  const { job } = answer;
  const [tab, setTab] = useState<Tab>('Overview');
  const { waitedMs, ranMs } = times(job, isLive(job) ? now.value : 0);
  return (
    <div class="view page job-page">
      <a class="back" href={linkTo('jobs')}>
        <Icon shapes={arrowLeft} />
        Jobs
      </a>
      <div class="title-row">
        <h1 tabIndex={-1}>
          <bdi>{job.name}</bdi>
        </h1>
        <Actions answer={answer} />
      </div>
      <dl class="facts">
        <Fact name="State">
          <JobState job={{ ...job, error: null }} />
        </Fact>
        <Fact name="Submitted">{dateTime(job.created_at_ms)}</Fact>
        <Fact name="Waited">{duration(waitedMs)}</Fact>
        <Fact name="Ran">{ranMs === null ? '–' : duration(ranMs)}</Fact>
        <Fact name="Client">
          <bdi>{job.client_id ?? '–'}</bdi> <span class="tag">{job.api}</span>
        </Fact>
        <Fact name="Prompt id">
          <code>{job.id}</code>
        </Fact>
        {job.job_id !== null && job.job_id !== job.id && (
          <Fact name="v2 job">
            <code>{job.job_id}</code>
          </Fact>
        )}
      </dl>
      <Choice
        label="Part of the job"
        value={tab}
        onChange={setTab}
        options={TABS.map((value) => ({ value, text: value }))}
      />
      {tab === 'Overview' && <Overview answer={answer} />}
      {tab === 'v2 code' && <Code id={job.id} />}
      {tab === 'Workflow' && <Workflow answer={answer} />}
      {tab === 'Messages' && <Messages answer={answer} />}
    </div>
  );
}

function Fact({
  name,
  children,
}: {
  readonly name: string;
  readonly children: preact.ComponentChildren;
}) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Actions({ answer: { job, graph_json: graph } }: { readonly answer: JobAnswer }) {
  const again = async (seed: 'same' | 'new'): Promise<void> => {
    const promptId = await runAgain(job.id, { seed });
    if (promptId !== undefined) goTo(linkTo('jobs', promptId));
  };
  return (
    <div class="buttons">
      <a class="button" href={linkTo('inspector', undefined, { prompt: job.id })}>
        <Icon shapes={arrows} />
        <span>Inspect</span>
      </a>
      {isLive(job) ? (
        <button type="button" class="button is-danger" onClick={() => void cancel([job.id])}>
          <Icon shapes={ban} />
          <span>Cancel</span>
        </button>
      ) : (
        <>
          <button type="button" class="button" onClick={() => void again('same')}>
            <Icon shapes={play} />
            <span>Run again</span>
          </button>
          {hasSeed(graph) && (
            <button type="button" class="button" onClick={() => void again('new')}>
              <Icon shapes={dices} />
              <span>With a new seed</span>
            </button>
          )}
        </>
      )}
    </div>
  );
}

function Overview({ answer }: { readonly answer: JobAnswer }) {
  const { job, nodes, outputs, inputs, texts, error } = answer;
  const live = liveJob(job.id).value;
  const nodeTimes = useNodeTimes(job.id);
  const states = new Map<string, NodeStateWord>();
  if (isLive(job)) {
    for (const [node, state] of Object.entries(live.states ?? {}))
      states.set(node, state === 'finished' ? 'done' : 'running');
  }
  const isCompared = inputs.some(isPicture) && outputs.some(isPicture);
  return (
    <>
      {error !== null && (
        <section class="panel is-bad" aria-labelledby="error-title">
          <h2 id="error-title">
            {error.type} in {error.node_type} <small>node {error.node}</small>
          </h2>
          <p class="error-text">{error.message}</p>
          {error.traceback !== '' && (
            <details>
              <summary>Traceback</summary>
              <pre>{error.traceback}</pre>
            </details>
          )}
        </section>
      )}
      {live.preview !== undefined && isLive(job) && (
        <section aria-labelledby="preview-title">
          <h2 id="preview-title">Preview</h2>
          <img class="preview" src={live.preview} alt="The latest preview" />
        </section>
      )}
      {(outputs.length > 0 || texts.length > 0) && (
        <section aria-labelledby="outputs-title">
          <h2 id="outputs-title">Outputs</h2>
          {isCompared && (
            <Compare inputs={inputs.filter(isPicture)} outputs={outputs.filter(isPicture)} />
          )}
          <ul class="files">
            {outputs.map((file) => (
              <File key={`${file.node} ${file.subfolder} ${file.filename}`} file={file} />
            ))}
          </ul>
          {texts.map(({ node, text }, at) => (
            <div class="code" key={`${node} ${at}`}>
              <pre>{text}</pre>
              <CopyButton text={text} label={`Copy the text of node ${node}`} />
            </div>
          ))}
        </section>
      )}
      {inputs.length > 0 && (
        <section aria-labelledby="inputs-title">
          <h2 id="inputs-title">Inputs</h2>
          <ul class="files">
            {inputs.map((file) => (
              <File key={`${file.node} ${file.input}`} file={file} />
            ))}
          </ul>
        </section>
      )}
      <section aria-labelledby="graph-title">
        <h2 id="graph-title">Graph</h2>
        <GraphView nodes={nodes} states={states} times={nodeTimes} />
      </section>
    </>
  );
}

function File({ file }: { readonly file: JobFile | JobInput }) {
  const { filename, subfolder } = file;
  const path = viewPath(file);
  const save = (): void => void saveFile(path, filename).catch(tellError);
  const picture = <Thumbnail of={file} quality={85} />;
  return (
    <li class="file">
      {/* An address carries no key. */}
      {storedKey() === null ? (
        <a href={address(path)} target="_blank" rel="noopener" aria-label={`Open ${filename}`}>
          {picture}
          <Icon shapes={external} />
        </a>
      ) : (
        <button type="button" aria-label={`Save ${filename}`} onClick={save}>
          {picture}
        </button>
      )}
      <span class="file-name" title={filename}>
        <bdi>{subfolder === '' ? filename : `${subfolder}/${filename}`}</bdi>
        <small>node {file.node}</small>
      </span>
      <button
        type="button"
        class="button is-icon"
        title="Download"
        aria-label={`Download ${filename}`}
        onClick={save}
      >
        <Icon shapes={download} />
      </button>
    </li>
  );
}

/** Two pictures on top of each other, with a border to move. */
function Compare({
  inputs,
  outputs,
}: {
  readonly inputs: readonly JobInput[];
  readonly outputs: readonly JobFile[];
}) {
  const [isOpen, setOpen] = useState(false);
  const [share, setShare] = useState(50);
  const [input] = inputs;
  const [output] = outputs;
  if (input === undefined || output === undefined) return null;
  if (!isOpen) {
    return (
      <button type="button" class="button is-small" onClick={() => setOpen(true)}>
        Compare with the input
      </button>
    );
  }
  return (
    <figure class="compare">
      <div class="compare-pictures">
        <Thumbnail of={input} full />
        <div class="compare-over" style={{ clipPath: `inset(0 0 0 ${share}%)` }}>
          <Thumbnail of={output} full />
        </div>
        <span class="compare-border" style={{ left: `${share}%` }} aria-hidden="true" />
      </div>
      <label>
        <span>{input.filename}</span>
        <input
          type="range"
          min="0"
          max="100"
          value={share}
          aria-label="Border between input and output"
          onInput={(event) => setShare(Number(event.currentTarget.value))}
        />
        <span>{output.filename}</span>
      </label>
    </figure>
  );
}

const LANGUAGES = [
  { value: 'python', text: 'Python' },
  { value: 'typescript', text: 'TypeScript' },
  { value: 'curl', text: 'curl' },
] as const;

/** The job as a program that uses v2. */
function Code({ id }: { readonly id: string }) {
  const [language, setLanguage] = useState<CodeAnswer['language']>('python');
  const [answer, setAnswer] = useState<CodeAnswer>();
  useEffect(() => {
    setAnswer(undefined);
    getJson<CodeAnswer>(`holdover/api/job/code?${new URLSearchParams({ id, language })}`).then(
      setAnswer,
      tellError,
    );
  }, [id, language]);
  return (
    <section aria-label="v2 code">
      <p>
        The same job without v1: it uploads the inputs, runs the workflow as a v2 job, and downloads
        the outputs.
        {answer !== undefined && answer.files.length > 0 && (
          <>
            {' '}
            It reads these files beside it: <code>{answer.files.join(', ')}</code>.
          </>
        )}
      </p>
      <Choice label="Language" value={language} onChange={setLanguage} options={LANGUAGES} />
      {answer === undefined ? (
        <p class="muted">Writing …</p>
      ) : (
        <div class="code">
          <pre tabIndex={0}>{answer.code}</pre>
          <CopyButton text={answer.code} label="Copy the code" />
        </div>
      )}
    </section>
  );
}

function Workflow({
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
      <div class="code">
        <pre tabIndex={0}>{text}</pre>
        <CopyButton text={text} label="Copy the workflow" />
      </div>
    </section>
  );
}

function Messages({ answer: { messages } }: { readonly answer: JobAnswer }) {
  if (messages.length === 0)
    return <p class="muted">History has its messages once it has ended.</p>;
  return (
    <table class="plain-table">
      <thead>
        <tr>
          <th>Time</th>
          <th>Message</th>
          <th>Data</th>
        </tr>
      </thead>
      <tbody>
        {messages.map(({ type, at_ms: atMs, text }, at) => (
          <tr key={at}>
            <td class="mono">{atMs === null ? '' : clockTime(atMs)}</td>
            <td class="mono">{type}</td>
            <td>{text}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
