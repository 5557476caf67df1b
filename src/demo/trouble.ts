/** Something a person can do something about: one sentence, no stack. */
export class Trouble extends Error {
  override readonly name = 'Trouble';
}

const NO_KEY =
  'The upstream does not take this key, or wants one: put it into HOLDOVER_UPSTREAM_KEY, ' +
  'or into a file for --upstream-key.';

/** What to tell when the picture was not taken. */
export function refusedUpload(status: number, answer: string): Trouble {
  if (status === 401) return new Trouble(NO_KEY);
  if (status >= 500) return new Trouble(`The upstream cannot be used now: ${reasonIn(answer)}`);
  return new Trouble(`The picture was refused with ${status}: ${reasonIn(answer)}`);
}

/** What to tell when the workflow was not taken. */
export function refusedRun(
  status: number,
  { answer, workflow }: { readonly answer: string; readonly workflow: string },
): Trouble {
  if (status === 401) return new Trouble(NO_KEY);
  const classes = [...workflow.matchAll(/"class_type": "(\w+)"/g)].map(([, name = '']) => name);
  const [lacking] = classes.filter((name) => new RegExp(`\\b${name}\\b`).test(reasonIn(answer)));
  if (status === 400 && lacking !== undefined) {
    return new Trouble(
      `This upstream cannot run the demo's workflow: it has no node class ${lacking}. ` +
        'Workflows of classes it has will run.',
    );
  }
  return new Trouble(`The workflow was refused with ${status}: ${reasonIn(answer)}`);
}

/** v1 answers refusals in JSON with a message, or in plain text. */
function reasonIn(answer: string): string {
  try {
    const { error, message } = JSON.parse(answer) as {
      error?: { message?: string } | string;
      message?: string;
    };
    const text = typeof error === 'object' ? error.message : error;
    return text ?? message ?? answer;
  } catch {
    return answer;
  }
}
