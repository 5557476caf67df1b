import { type ClientGroup, type Socket, cameAfter } from './client-group.ts';
import { type GroupJob, deliveryOf } from './frame-rules.ts';

/** A binary frame: what kind, of which job when that can be told, and the width of a PNG. */
type Binary =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'result'; readonly width: number }
  | { readonly kind: 'preview'; readonly type: 1 | 4; readonly promptId: string | undefined };

function binariesOf({ recorder }: Socket): Binary[] {
  return recorder.frames.flatMap((frame) =>
    frame.kind === 'binary' ? [binaryOf(frame.bytes)] : [],
  );
}

function binaryOf(bytes: Buffer): Binary {
  const type = bytes.readUInt32BE(0);
  if (type === 3) {
    return { kind: 'text', text: bytes.subarray(8 + bytes.readUInt32BE(4)).toString() };
  }
  const metadataBytes = type === 4 ? bytes.readUInt32BE(4) : 0;
  const image = bytes.subarray(8 + metadataBytes);
  if (image.subarray(1, 4).toString() === 'PNG')
    return { kind: 'result', width: image.readUInt32BE(16) };
  const metadata = type === 4 ? JSON.parse(bytes.subarray(8, 8 + metadataBytes).toString()) : {};
  return { kind: 'preview', type: type === 4 ? 4 : 1, promptId: metadata.prompt_id };
}

/** A socket that was there from before the job until after its end. */
function wasThere(socket: Socket, job: GroupJob): boolean {
  return socket.closedAt === Infinity && !cameAfter(socket, job);
}

/** Where the TEXT messages and the socket-only pictures went that should not, and the other way round. */
export function misplaced(group: ClientGroup): string[] {
  return group.sockets.flatMap((socket) => {
    const binaries = binariesOf(socket);
    return group.jobs.flatMap((job) => {
      const times = timesOf(binaries, job);
      const isOfUser = job.user === socket.caller.user;
      // The original sends TEXT to every socket; ours stays with the user.
      const isMeant = job.kind === 'sized' ? isOfUser : deliveryOf(socket, job) !== 'nothing';
      const allowed = wasThere(socket, job) ? [Number(isMeant)] : [0, Number(isMeant)];
      if (times === undefined || allowed.includes(times)) return [];
      return [`${socket.name} gets ${job.kind} ${job.number} ${times} times`];
    });
  });
}

function timesOf(binaries: readonly Binary[], { kind, size }: GroupJob): number | undefined {
  if (kind === 'sized') {
    return binaries.filter((one) => one.kind === 'text' && one.text.startsWith(`width: ${size},`))
      .length;
  }
  if (kind !== 'streamed') return undefined;
  return binaries.filter((one) => one.kind === 'result' && one.width === size).length;
}

function wants(socket: Socket, job: GroupJob): boolean {
  return socket.caller.form === 'hosted' || socket.negotiated || job.asksForPreviews;
}

/** Where the previews of samplers went that should not, and the other way round. */
export function mispreviewed(group: ClientGroup): string[] {
  return group.sockets.flatMap((socket) => {
    const previews = binariesOf(socket).filter((one) => one.kind === 'preview');
    const wanted = group.jobs.filter(
      (job) => job.kind === 'grown' && deliveryOf(socket, job) !== 'nothing' && wants(socket, job),
    );
    const isSure = wanted.some((job) => wasThere(socket, job));
    const foreign = previews.filter(
      ({ promptId }) =>
        promptId !== undefined &&
        !group.jobs.some(
          (job) => job.promptId === promptId && deliveryOf(socket, job) === 'everything',
        ),
    );
    const faults = {
      'gets previews it did not ask for': wanted.length === 0 && previews.length > 0,
      'gets no previews': isSure && previews.length === 0,
      'gets previews with metadata it did not negotiate':
        !socket.negotiated && previews.some(({ type }) => type === 4),
      'gets metadata of prompts that are not its own': foreign.length > 0,
    };
    return Object.entries(faults).flatMap(([fault, isSo]) =>
      isSo ? [`${socket.name} ${fault}`] : [],
    );
  });
}
