// Loaded into a server: the most it writes to its connections between two turns of its event loop.
import { writeFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { isMainThread } from 'node:worker_threads';

const { COUNT_TURNS_FILE: file } = process.env;
if (isMainThread && file) {
  const most = { writes: 0, bytes: 0 };
  let turn;
  const write = Reflect.get(Socket.prototype, 'write');
  Socket.prototype.write = function counted(chunk, ...rest) {
    turn ??= begin();
    turn.writes++;
    turn.bytes += chunk.length;
    return write.call(this, chunk, ...rest);
  };
  const begin = () => {
    setImmediate(end);
    return { writes: 0, bytes: 0 };
  };
  const end = () => {
    if (turn.writes > most.writes || turn.bytes > most.bytes) {
      most.writes = Math.max(most.writes, turn.writes);
      most.bytes = Math.max(most.bytes, turn.bytes);
      writeFileSync(file, JSON.stringify(most));
    }
    turn = undefined;
  };
}
