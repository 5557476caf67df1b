// Holdover's own hub, sessions and channel over real sockets.
import { createServer } from 'node:http';
import type { WebSocket } from 'ws';
import { createPublicAddresses } from '../../../src/http/public-address.ts';
import { createDialects } from '../../../src/dialects/dialect.ts';
import { createGuard } from '../../../src/auth/guard.ts';
import { Hub } from '../../../src/sockets/hub.ts';
import { createDeprecation } from '../../../src/migration/deprecation.ts';
import { createUpgrade } from '../../../src/v1/upgrade.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { type Sending, PROGRESS, closedLoop, pictureBytes } from './closed-loop.ts';
import { answer, serve } from './serve.ts';

const hub = new Hub({
  remaining: () => 0,
  serverFlags: {},
  previewMethod: 'auto',
  now: Date.now,
});
const sockets: WebSocket[] = [];
const server = createServer();
const limits = { maxSockets: 10_000, maxSocketsPerUser: 10_000 };
const upgrade = createUpgrade({
  ...limits,
  hub: {
    count: (user) => hub.count(user),
    isClosed: () => hub.isClosed(),
    makeRoom: (needed) => hub.makeRoom(needed),
    addConnection(connection, who) {
      sockets.push(connection.ws);
      hub.addConnection(connection, who);
    },
  },
  dialects: createDialects('auto'),
  guard: createGuard({ ownHosts: 'loopback', corsOrigin: undefined }),
  authenticate: async () => ({ user: 'local' }),
  deprecation: createDeprecation({
    deprecatedAtMs: 0,
    sunsetAtMs: undefined,
    brownouts: [],
    now: Date.now,
    countCall: () => {},
  }),
  log: silentLogger(),
  addresses: createPublicAddresses(),
});
server.on('upgrade', upgrade);
serve(server);

const channel = hub.channels.open({ user: 'local', clientId: null, promptId: 'a-prompt' });
const bytes = pictureBytes();

answer(({ kind, forMs }: Sending) =>
  closedLoop(sockets, {
    forMs,
    sendAll() {
      if (kind === 'text') channel.send({ kind: 'step', progress: PROGRESS } as never, 0);
      else channel.send({ kind: 'picture', picture: pictureOf() }, 0);
    },
  }),
);

/** A new one each time, as events bring them. */
function pictureOf() {
  return { nodeId: '3', displayNodeId: '3', mime: 'image/jpeg', kind: 'sampler', bytes } as const;
}
