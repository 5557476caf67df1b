import { steadyNow } from '../lib/steady-clock.ts';
import { type Adopter, createAdopter } from './adopt.ts';
import { type Acceptor, createAcceptor } from './accept.ts';
import { createBirth } from './birth.ts';
import { type Cancel, createCancel } from './cancel.ts';
import {
  type NoteFetched,
  type NoteJobFetched,
  createNoteFetched,
  createNoteJobFetched,
} from './fetched.ts';
import { type FollowerDeps, createFollower } from './follower.ts';
import { createFolderCheck } from './foreign-folders.ts';
import { createForget } from './forget.ts';
import type { Keyring } from './keyring.ts';
import { createLateJobs } from './late-jobs.ts';
import { createOutbox } from './outbox.ts';
import { DEFAULT_PACE, type Pace } from './pace.ts';
import { createPursuit } from './pursuit.ts';
import { createReconciler } from './reconciler.ts';
import { createAgain } from './again.ts';
import { createResend } from './resend.ts';
import { createResumption } from './resume.ts';
import { createRewriter } from './rewrite.ts';
import { createSender } from './send.ts';
import type { SharedCounter } from './submission.ts';
import { createTwins } from './twins.ts';

/** The way of prompts from their `POST` to their history, and off it. */
export type Submissions = {
  readonly acceptor: Acceptor;
  readonly cancel: Cancel['cancel'];
  readonly noteFetched: NoteFetched;
  readonly noteJobFetched: NoteJobFetched;
  /** Accepted prompts that wait for the upstream to have room. */
  readonly outboxDepth: () => number;
  readonly adopter: Adopter;
  /** Takes up what an earlier process left; once, before anybody calls. */
  resume(): Promise<void>;
  /** Resolves when the board shows what was done for this user before, here and elsewhere. */
  ready(user: string): Promise<void>;
  close(): Promise<void>;
};

type Deps = Omit<FollowerDeps, 'resend'> &
  Omit<Parameters<typeof createRewriter>[0], 'files'> &
  Omit<Parameters<typeof createFolderCheck>[0], 'files'> &
  Pick<Parameters<typeof createSender>[0], 'resend'> & {
    readonly keyring: Keyring;
    readonly needsOwner: (user: string) => boolean;
    readonly counter: SharedCounter;
    readonly outboxLimit: number;
    readonly pace: Partial<Pace>;
  };

export function openSubmissions(given: Deps): Submissions {
  const pace = { ...DEFAULT_PACE, ...given.pace };
  const follower = createFollower({ ...given, resend: (...lost) => resend(...lost) });
  const pursuit = createPursuit({ ...given, now: steadyNow });
  const { files, prompts } = given.ledger;
  const sender = createSender({ ...given, files, prompts });
  const forget = createForget({ ...given, follower });
  const again = createAgain({ ...given, sender });
  const common = { ...given, pace, follower, pursuit, sender, forget, again };
  const birth = createBirth(common);
  const lateJobs = createLateJobs({ ...common, now: steadyNow });
  const reconciler = createReconciler({ ...common, birth, lateJobs, now: steadyNow });
  const outbox = createOutbox({ ...common, birth, reconciler, limit: given.outboxLimit });
  const resend = createResend({ ...common, outbox });
  const deps = { ...common, birth, reconciler, outbox };
  const { cancel, cancelAsked } = createCancel(deps);
  const resumption = createResumption({ ...deps, cancelAsked });
  const adopter = createAdopter(deps);
  const noteFetched = createNoteFetched(given);
  const twins = createTwins({ ...deps, discover: resumption.discover });
  return {
    adopter,
    acceptor: createAcceptor({
      ...deps,
      twins,
      rewriter: createRewriter({ ...given, files }),
      refuseForeignFolders: createFolderCheck({ ...given, files }),
    }),
    cancel,
    noteFetched,
    noteJobFetched: createNoteJobFetched({ ...given, noteFetched }),
    outboxDepth: () => outbox.depth(),
    resume: () => resumption.start(),
    async ready(user) {
      await given.journal.settled(user);
      await resumption.ready(user);
    },
    async close() {
      await adopter.close();
      pursuit.close();
      await Promise.all([outbox, reconciler, lateJobs, follower].map((part) => part.close()));
      await given.journal.close();
    },
  };
}
