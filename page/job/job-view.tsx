import { useEffect, useState } from 'preact/hooks';
import type { JobAnswer } from '../../src/console/api-types.ts';
import arrowLeft from 'icon:arrow-left';
import arrows from 'icon:arrow-left-right';
import ban from 'icon:ban';
import dices from 'icon:dices';
import play from 'icon:play';
import searchX from 'icon:search-x';
import { NoAnswer, useAnswer } from '../lib/answer.tsx';
import { ago, dateTime, duration } from '../lib/format.ts';
import { goTo, linkTo, route } from '../lib/route.ts';
import { Refused } from '../lib/server.ts';
import { isStep } from '../lib/socket.ts';
import { Button, Choice, CopyButton, Empty, Fact, Icon, StatusBadge } from '../lib/ui.tsx';
import { Progress, isLive, times } from '../jobs/job-row.tsx';
import { hasSeed, runAgain } from '../jobs/run.ts';
import { cancel, jobs } from '../jobs/store.ts';
import { now, onMessage } from '../state.ts';
import { CodeTab, MessagesTab, WorkflowTab } from './job-texts.tsx';
import { Overview } from './overview.tsx';

const PENDING_INTERVAL_MS = 5000;

/** The page of one job. */
export function JobView({ id }: { readonly id: string }) {
  const { answer, fault, read } = useJob(id);
  if (answer !== undefined) return <JobPage answer={answer} />;
  const allJobs = (
    <a class="button" href={linkTo('jobs')}>
      All jobs
    </a>
  );
  if (fault instanceof Refused && fault.status === 404) {
    return (
      <Empty icon={searchX} level={1} title="There is no such job">
        <p>None of your jobs has the id {id}. It may have been removed from the history.</p>
        {allJobs}
      </Empty>
    );
  }
  return (
    <NoAnswer what="job" level={1} fault={fault} onRetry={read}>
      {allJobs}
    </NoAnswer>
  );
}

/** The job, read again when it may have changed. */
function useJob(id: string) {
  const job = useAnswer<JobAnswer>(`holdover/api/job?${new URLSearchParams({ id })}`);
  const { answer, read } = job;
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
  return job;
}

const TABS = ['Overview', 'v2 code', 'Workflow', 'Messages'] as const;
type Tab = (typeof TABS)[number];

function JobPage({ answer }: { readonly answer: JobAnswer }) {
  const { job } = answer;
  const asked = route.value.query.get('tab');
  const [tab, setTab] = useState<Tab>(TABS.find((name) => name === asked) ?? 'Overview');
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
        <Button icon={ban} look="is-danger" onClick={() => void cancel([job.id])}>
          Cancel
        </Button>
      ) : (
        <>
          <Button icon={play} onClick={() => void again('same')}>
            Run again
          </Button>
          {hasSeed(graph) && (
            <Button
              icon={dices}
              label="Run again with a new seed"
              onClick={() => void again('new')}
            >
              New seed
            </Button>
          )}
        </>
      )}
    </div>
  );
}
