import { Presets, SingleBar } from 'cli-progress';

/** The part of a graph in API format that the demo reads. */
export type Workflow = { [id: string]: { class_type: string } };

/** The part of a text frame that the demo reads. */
export type Message = {
  type: string;
  data: { node?: string | null; value?: number; max?: number; exception_message?: string };
};

/** Shows one bar for the whole run. Each node counts for one; a node with steps moves the bar at each step. */
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
