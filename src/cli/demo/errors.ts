/** An error that the user can correct. It is printed without a stack. */
export class DemoError extends Error {}

const NO_KEY =
  'The upstream needs a key, or refused this one: put it into HOLDOVER_UPSTREAM_KEY, ' +
  'or into a file for --upstream-key.';

/** Returns the error to show when the upload was refused. */
export function uploadError(status: number, answer: string): DemoError {
  if (status === 401) return new DemoError(NO_KEY);
  if (status >= 500) return new DemoError(`The upstream cannot be used now: ${reasonIn(answer)}`);
  return new DemoError(`The picture was refused with ${status}: ${reasonIn(answer)}`);
}

/** Returns the error to show when the workflow was refused. */
export function runError(
  status: number,
  { answer, workflow }: { readonly answer: string; readonly workflow: string },
): DemoError {
  if (status === 401) return new DemoError(NO_KEY);
  const classes = [...workflow.matchAll(/"class_type": "(\w+)"/g)].map(([, name = '']) => name);
  const [missingClass] = classes.filter((name) =>
    new RegExp(`\\b${name}\\b`).test(reasonIn(answer)),
  );
  if (status === 400 && missingClass !== undefined) {
    return new DemoError(
      `This upstream cannot run the demo's workflow: it has no node class ${missingClass}. ` +
        'Workflows of other node classes can run.',
    );
  }
  return new DemoError(`The workflow was refused with ${status}: ${reasonIn(answer)}`);
}

/** Returns the message of a refusal, which v1 sends as JSON or as plain text. */
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
