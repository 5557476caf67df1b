import { useEffect, useState } from 'preact/hooks';
import download from 'icon:download';
import type { CodeAnswer } from '../../src/console/api-types.ts';
import { saveBlob } from './pictures.tsx';
import { getJson } from './server.ts';
import { Choice, CopyButton, Icon } from './ui.tsx';

const LANGUAGES = [
  { value: 'python', text: 'Python' },
  { value: 'typescript', text: 'TypeScript' },
  { value: 'curl', text: 'curl' },
] as const;
const LANGUAGE_NAME = 'holdover-language';

function lastLanguage(): CodeAnswer['language'] {
  const stored = localStorage.getItem(LANGUAGE_NAME);
  return LANGUAGES.find(({ value }) => value === stored)?.value ?? 'python';
}

/** v2 code that the server writes, in the language that is chosen. */
export function CodeBlock({
  pathFor,
}: {
  readonly pathFor: (language: CodeAnswer['language']) => string;
}) {
  const [language, setLanguage] = useState(lastLanguage);
  const [answer, setAnswer] = useState<CodeAnswer>();
  const [fault, setFault] = useState('');
  const path = pathFor(language);
  useEffect(() => {
    let isCurrent = true;
    setAnswer(undefined);
    setFault('');
    getJson<CodeAnswer>(path).then(
      (found) => isCurrent && setAnswer(found),
      (error: unknown) =>
        isCurrent && setFault(error instanceof Error ? error.message : String(error)),
    );
    return () => void (isCurrent = false);
  }, [path]);
  return (
    <>
      <Choice
        label="Language"
        value={language}
        onChange={(value) => {
          setLanguage(value);
          localStorage.setItem(LANGUAGE_NAME, value);
        }}
        options={LANGUAGES}
      />
      {fault !== '' && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
      {answer === undefined ? (
        fault === '' && <p class="muted">Writing …</p>
      ) : (
        <>
          {answer.files.length > 0 && (
            <p>
              It reads these files beside it: <code>{answer.files.join(', ')}</code>.
            </p>
          )}
          <div class="code">
            <pre tabIndex={0}>{answer.code}</pre>
            <div class="code-buttons">
              <button
                type="button"
                class="button is-small"
                aria-label={`Save ${answer.file}`}
                title={`Save ${answer.file}`}
                onClick={() => saveBlob(new Blob([answer.code]), answer.file)}
              >
                <Icon shapes={download} />
              </button>
              <CopyButton text={answer.code} label="Copy the code" />
            </div>
          </div>
        </>
      )}
    </>
  );
}
