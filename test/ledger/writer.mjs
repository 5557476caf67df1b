// Run by the tests as a process of its own, on the built ledger: writes, and says what was acknowledged.
import { writeSync } from 'node:fs';
import { NEW_PROMPT } from '../../dist/ledger/columns.js';
import { openSqliteLedger } from '../../dist/ledger/sqlite/sqlite-ledger.js';

const [task, path, prefix] = process.argv.slice(2);
const ledger = openSqliteLedger({ path });

function prompt(key, graphJson = '{}') {
  return {
    key,
    user: 'ann',
    promptId: key,
    jobId: null,
    number: 0,
    clientId: null,
    createdAtMs: 1,
    graphJson,
    extraDataJson: '{}',
    targetsJson: '[]',
    intentJson: '{}',
    ...NEW_PROMPT,
    state: 'submitting',
  };
}

/** Synchronous, so that a line is out before anything else happens. */
function say(line) {
  writeSync(1, `${line}\n`);
}

const TASKS = {
  /** Until it is killed, eight at a time; every other one is finished too. */
  async insert() {
    const chain = async (lane) => {
      for (let i = 0; ; i += 1) {
        const key = `${prefix}-${lane}-${i}`;
        await ledger.prompts.insert(prompt(key));
        say(`inserted ${key}`);
        if (i % 2 === 1) continue;
        const outcome = { entryJson: '{}', statusWord: 'success', startedAtMs: 1, endedAtMs: 2 };
        await ledger.prompts.finish(key, outcome);
        say(`finished ${key}`);
      }
    };
    await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map(chain));
  },

  /** Holds the file until it is killed. */
  async hold() {
    await ledger.prompts.insert(prompt('held'));
    say('holding');
    setInterval(() => {}, 1000);
  },

  /** A row larger than the file may grow, among some that fit. */
  async overfill() {
    const outcome = { stored: [], refused: {} };
    const attempt = (key, graphJson) =>
      ledger.prompts.insert(prompt(key, graphJson)).then(
        () => outcome.stored.push(key),
        (error) => (outcome.refused[key] = `${error.message}: ${error.cause.message}`),
      );
    await attempt('before');
    const huge = 'x'.repeat(4 * 1024 * 1024);
    await Promise.all([attempt('beside 1'), attempt('huge', huge), attempt('beside 2')]);
    await attempt('after');
    const live = (await ledger.prompts.live()).map(({ key }) => key);
    say(JSON.stringify({ ...outcome, live }));
    await ledger.close();
  },
};

await TASKS[task]();
