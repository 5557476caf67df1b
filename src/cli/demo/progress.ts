import { Presets, SingleBar } from 'cli-progress';

/** A graph in API format, as far as the demo reads it. */
export type Workflow = { [id: string]: { class_type: string } };

/** A text frame of the socket, as far as the demo reads it. */
export type Message = {
  type: string;
  data: { node?: string | null; value?: number; max?: number; exception_message?: string };
};

/** One bar for the whole run; a node counts for one, a node with steps moves it step by step. */
export function createProgress(workflow: Workflow): (message: Message) => void {
  const total = Object.keys(workflow).length;
  const bar = new SingleBar(
    {
      format: '  {bar} {percentage}%  {label}',
      noTTYOutput: true,
      notTTYSchedule: 500,
      hideCursor: true,
    },
    Presets.shades_classic,
  );
  let started = 0;
  return ({ type, data }) => {
    if (type === 'execution_start') bar.start(total, 0, { label: 'started' });
    if (type === 'executing' && data.node) {
      bar.update(started++, { label: workflow[data.node]?.class_type });
    } else if (type === 'progress') {
      const label = `${workflow[data.node ?? '']?.class_type} ${data.value}/${data.max}`;
      bar.update(started - 1 + (data.value ?? 0) / (data.max ?? 1), { label });
    } else if (type === 'execution_success') {
      bar.update(total, { label: 'done' });
    } else if (type === 'executing') {
      bar.stop();
    }
  };
}
