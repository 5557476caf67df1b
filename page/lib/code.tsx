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
        <Code answer={answer} />
      )}
    </>
  );
}

function Code({ answer: { code, file, files } }: { readonly answer: CodeAnswer }) {
  return (
    <>
      {files.length > 0 && (
        <p>
          It reads these files beside it: <code>{files.join(', ')}</code>.
        </p>
      )}
      <CodeText text={code} label="Copy the code">
        <Button
          icon={download}
          look="is-small"
          label={`Save ${file}`}
          title={`Save ${file}`}
          onClick={() => saveBlob(new Blob([code]), file)}
        />
      </CodeText>
    </>
  );
}
