import { useEffect, useRef, useState } from 'preact/hooks';
import type { JobAnswer } from '../../src/console/api-types.ts';
import arrowLeft from 'icon:arrow-left';
import arrows from 'icon:arrow-left-right';
import ban from 'icon:ban';
import dices from 'icon:dices';
import loader from 'icon:loader-circle';
import play from 'icon:play';
import searchX from 'icon:search-x';
import unplug from 'icon:unplug';
import warning from 'icon:triangle-alert';
import { ago, dateTime, duration } from '../lib/format.ts';
import { goTo, linkTo } from '../lib/route.ts';
import { Refused, getJson } from '../lib/server.ts';
import { isStep } from '../lib/socket.ts';
import { Choice, CopyButton, Empty, Icon, StatusBadge } from '../lib/ui.tsx';
import { Progress, isLive, times } from '../jobs/job-row.tsx';
import { hasSeed, runAgain } from '../jobs/run.ts';
import { cancel, jobs } from '../jobs/store.ts';
import { connection, now, onMessage } from '../state.ts';
import { CodeTab, MessagesTab, WorkflowTab } from './job-texts.tsx';
import { Overview } from './overview.tsx';

const PENDING_INTERVAL_MS = 5000;

/** The page of one job. */
export function JobView({ id }: { readonly id: string }) {
  const [answer, setAnswer] = useState<JobAnswer>();
  const [fault, setFault] = useState<unknown>();
  const query = new URLSearchParams({ id });
  const lastRead = useRef(0);
  const read = (): void => {
    const number = ++lastRead.current;
    // An answer may come after that to a later call.
    const isLast = (): boolean => number === lastRead.current;
    getJson<JobAnswer>(`holdover/api/job?${query}`).then(
      (found) => {
        if (!isLast()) return;
        setAnswer(found);
        setFault(undefined);
      },
      (error: unknown) => isLast() && setFault(error),
    );
  };
  const isOpen = connection.value.is === 'open';
  useEffect(() => {
    if (isOpen) read();
  }, [id, isOpen]);
  useEffect(
    () =>
      onMessage((message) => {
        if (message.data['prompt_id'] === id && !isStep(message)) read();
      }),
    [id],
  );
  const isPending = answer !== undefined && answer.pending !== null;
  // No message tells that a prompt waits for another reason.
  useEffect(() => {
    if (!isPending) return undefined;
    const timer = setInterval(read, PENDING_INTERVAL_MS);
    return () => clearInterval(timer);
  }, [id, isPending]);
  // The list of jobs sees an end that no message has told.
  const listed = jobs.value.find((job) => job.id === id);
  useEffect(() => {
    if (listed !== undefined && answer !== undefined && listed.status !== answer.job.status) read();
  }, [listed?.status]);
  if (answer !== undefined) return <JobPage answer={answer} />;
  return <NoJob id={id} fault={fault} onRetry={read} />;
}

/** Shown in place of the job: it is being read, is not there, or could not be read. */
function NoJob({
  id,
  fault,
  onRetry,
}: {
  readonly id: string;
  readonly fault: unknown;
  readonly onRetry: () => void;
}) {
  if (connection.value.is === 'lost')
    return (
      <Empty icon={unplug} level={1} title="The server is away">
        <p>The job is shown as soon as it answers again.</p>
      </Empty>
    );
  if (fault === undefined) return <Empty icon={loader} level={1} title="Reading the job …" />;
  const isGone = fault instanceof Refused && fault.status === 404;
  return (
    <Empty
      icon={isGone ? searchX : warning}
      level={1}
      title={isGone ? 'There is no such job' : 'The job could not be read'}
    >
      <p>
        {isGone
          ? `None of your jobs has the id ${id}. It may have been removed from the history.`
          : String(fault)}
      </p>
      <p class="buttons">
        {!isGone && (
          <button type="button" class="button" onClick={onRetry}>
            Try again
          </button>
        )}
        <a class="button" href={linkTo('jobs')}>
          All jobs
        </a>
      </p>
    </Empty>
  );
}

const TABS = ['Overview', 'v2 code', 'Workflow', 'Messages'] as const;
type Tab = (typeof TABS)[number];

function JobPage({ answer }: { readonly answer: JobAnswer }) {
  const { job } = answer;
  const [tab, setTab] = useState<Tab>('Overview');
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
      <Facts answer={answer} />
      <Pending answer={answer} />
      {job.status === 'in_progress' && <Progress job={job} />}
      <Choice
        label="Part of the job"
        value={tab}
        onChange={setTab}
        options={TABS.map((value) => ({ value, text: value }))}
      />
      {tab === 'Overview' && <Overview answer={answer} />}
      {tab === 'v2 code' && <CodeTab id={job.id} />}
      {tab === 'Workflow' && <WorkflowTab answer={answer} />}
      {tab === 'Messages' && <MessagesTab answer={answer} />}
    </div>
  );
}

/** Why the job has not started. */
function Pending({ answer: { pending } }: { readonly answer: JobAnswer }) {
  if (pending === null) return null;
  const { text, readyz_part: part } = pending;
  return <p>{part === null ? text : `${text} /readyz reports it in ${part}.`}</p>;
}

function Facts({ answer: { job } }: { readonly answer: JobAnswer }) {
  const { waitedMs, ranMs } = times(job, isLive(job) ? now.value : 0);
  const { position } = job;
  return (
    <dl class="facts">
      <Fact name="State">
        <StatusBadge status={job.status} />
        {position !== null && (position === 1 ? ' next' : ` number ${position}`)}
      </Fact>
      {ranMs !== null && <Fact name="Ran">{duration(ranMs)}</Fact>}
      <Fact name="Waited">{duration(waitedMs)}</Fact>
      <Fact name="Submitted">
        <span title={dateTime(job.created_at_ms)}>{ago(job.created_at_ms, now.value)}</span>
      </Fact>
      <Fact name="Client">
        <bdi>{job.client_id ?? '–'}</bdi> <span class="tag">{job.api}</span>
      </Fact>
      <Fact name="Prompt id">
        <code>{job.id}</code> <CopyButton text={job.id} label="Copy the prompt id" isBare />
      </Fact>
      {job.job_id !== null && job.job_id !== job.id && (
        <Fact name="v2 job">
          <code>{job.job_id}</code> <CopyButton text={job.job_id} label="Copy the job id" isBare />
        </Fact>
      )}
    </dl>
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
            <button
              type="button"
              class="button"
              aria-label="Run again with a new seed"
              onClick={() => void again('new')}
            >
              <Icon shapes={dices} />
              <span>New seed</span>
            </button>
          )}
        </>
      )}
    </div>
  );
}
