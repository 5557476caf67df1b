import { useState } from 'preact/hooks';
import type { JobFile, JobInput } from '../../src/console/api-types.ts';
import { DialogButton } from '../lib/dialog.tsx';
import { Thumbnail } from '../lib/pictures.tsx';

type CompareProps = {
  readonly inputs: readonly JobInput[];
  readonly outputs: readonly JobFile[];
};

/** An input and an output on top of each other, with a border to move. */
export function Compare(props: CompareProps) {
  return (
    <DialogButton
      look="is-small"
      text="Compare with the input"
      label="Input and output"
      dialogClass="viewer"
    >
      <Comparison {...props} />
    </DialogButton>
  );
}

function Comparison({ inputs, outputs }: CompareProps) {
  const [share, setShare] = useState(50);
  const [inputAt, setInputAt] = useState(0);
  const [outputAt, setOutputAt] = useState(0);
  const input = inputs[inputAt] ?? inputs[0];
  const output = outputs[outputAt] ?? outputs[0];
  if (input === undefined || output === undefined) return null;
  return (
    <figure class="compare">
      <div class="compare-pictures">
        <Thumbnail of={input} full />
        <div class="compare-over" style={{ clipPath: `inset(0 0 0 ${share}%)` }}>
          <Thumbnail of={output} full />
        </div>
        <span class="compare-border" style={{ left: `${share}%` }} aria-hidden="true" />
      </div>
      <input
        type="range"
        min="0"
        max="100"
        value={share}
        aria-label="Border between input and output"
        onInput={(event) => setShare(Number(event.currentTarget.value))}
      />
      <figcaption>
        <FileChoice label="Input" files={inputs} value={inputAt} onChange={setInputAt} />
        <FileChoice label="Output" files={outputs} value={outputAt} onChange={setOutputAt} />
      </figcaption>
    </figure>
  );
}

function FileChoice({
  label,
  files,
  value,
  onChange,
}: {
  readonly label: string;
  readonly files: readonly (JobFile | JobInput)[];
  readonly value: number;
  readonly onChange: (at: number) => void;
}) {
  if (files.length === 1) {
    return (
      <span class="file-name" title={files[0]?.filename}>
        <small>{label}</small>
        <bdi>{files[0]?.filename}</bdi>
      </span>
    );
  }
  return (
    <label class="file-name">
      <small>{label}</small>
      <select value={value} onChange={(event) => onChange(Number(event.currentTarget.value))}>
        {files.map(({ filename }, at) => (
          <option key={at} value={at}>
            {filename}
          </option>
        ))}
      </select>
    </label>
  );
}
