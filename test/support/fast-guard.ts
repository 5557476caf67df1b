/** Set up for each fast test: starting a process or opening a port fails it, whatever module does so. */
const { ChildProcess } = process.getBuiltinModule('node:child_process');
const { Server } = process.getBuiltinModule('node:net');

function refuse(what: string): () => never {
  return () => {
    throw new Error(`a fast test must not ${what} (test/fast-tests.ts tells which tests are fast)`);
  };
}

Object.assign(ChildProcess.prototype, { spawn: refuse('start a process') });
Object.assign(Server.prototype, { listen: refuse('open a port') });
