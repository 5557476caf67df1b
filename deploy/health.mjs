// The image's health check: exit code 0 while the process is healthy. It reads the same variables as the process.
//   node health.mjs          the server answers
//   node health.mjs worker   Redis answers, and the worker is connected to it
const { HOLDOVER_PORT: port = '8188', HOLDOVER_TLS_CERTFILE: certificate } = process.env;

process.exit((await (process.argv[2] === 'worker' ? isWorkerConnected() : doesServerAnswer())) ? 0 : 1);

function doesServerAnswer() {
  // The server asks itself; its certificate has the name by which others call it.
  if (certificate) process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  const url = `${certificate ? 'https' : 'http'}://127.0.0.1:${port}/healthz`;
  const headers = { 'User-Agent': 'holdover-health' };
  return fetch(url, { headers }).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** A worker has no port. Redis lists its clients: this check and the worker have the same address. */
async function isWorkerConnected() {
  const { Redis } = await import('ioredis');
  const redis = new Redis(process.env.HOLDOVER_LEDGER ?? '', { maxRetriesPerRequest: 0 });
  redis.on('error', () => {});
  try {
    const own = addressOf(await redis.client('INFO'));
    const clients = String(await redis.client('LIST')).trim().split('\n');
    return clients.filter((client) => addressOf(client) === own).length > 1;
  } catch {
    return false;
  }
}

function addressOf(client) {
  return /(?:^| )addr=(\S+):\d+ /.exec(client)?.[1];
}
