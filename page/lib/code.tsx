import { useState } from 'preact/hooks';
import download from 'icon:download';
import type { CodeAnswer } from '../../src/console/api-types.ts';
import { saveBlob } from './pictures.tsx';
import { useAnswer } from './answer.tsx';
import { messageOf } from './server.ts';
import { Button, Choice, CodeText } from './ui.tsx';

const LANGUAGES = [
  { value: 'python', text: 'Python' },
  { value: 'typescript', text: 'TypeScript' },
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
  const { answer: last, fault } = useAnswer<CodeAnswer>(pathFor(language));
  const answer = last?.language === language ? last : undefined;
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
      {fault !== undefined && (
        <p class="fault" role="alert">
          {messageOf(fault)}
        </p>
      )}
      {answer === undefined ? (
        fault === undefined && <p class="muted">Writing …</p>
      ) : (
        <>
          {answer.files.length > 0 && (
            <p>
              It reads these files beside it: <code>{answer.files.join(', ')}</code>.
            </p>
          )}
          <CodeText text={answer.code} label="Copy the code">
            <Button
              icon={download}
              look="is-small"
              label={`Save ${answer.file}`}
              title={`Save ${answer.file}`}
              onClick={() => saveBlob(new Blob([answer.code]), answer.file)}
            />
          </CodeText>
        </>
      )}
    </>
  );
}
