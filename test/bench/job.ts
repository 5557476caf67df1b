/** A v2 service in nginx that takes every call; each of its jobs has ended. */
export function finishedJobs(): string {
  return `
    default_type application/json;
    location = /api/v2/jobs { return 201 '${jobText('$request_id')}'; }
    location ~ ^/api/v2/jobs/(?<job>[0-9a-f]+)$ { return 200 '${jobText('$job')}'; }
    location = /prompt { return 200 '{"prompt_id":"$request_id","number":1,"node_errors":{}}'; }
    location /v1/models/ { return 201 '{"id":"$request_id","status":"queued"}'; }
    location / { return 404 '{"error":{"code":"not_found","message":"none","details":null}}'; }`;
}

function jobText(id: string): string {
  const link = `/api/v2/jobs/${id}`;
  return JSON.stringify({
    id,
    status: 'succeeded',
    created_at: '2026-01-01T00:00:00.000Z',
    started_at: null,
    completed_at: null,
    expires_at: '2027-01-01T00:00:00.000Z',
    queue_position: null,
    progress: null,
    outputs: [],
    error: null,
    urls: { self: link, events: `${link}/events`, cancel: `${link}/cancel` },
  });
}

/** A prompt of embedded node classes, 4 KB of text, with the largest seed there is. */
export function promptBody(): string {
  const text = 'a quiet valley at dusk, long exposure, '.repeat(8);
  const seeded = { width: 64, height: 64, feed: 0.055, kill: 0.062, seed: 'SEED', steps: 20 };
  const graph: Record<string, unknown> = {
    '1': { class_type: 'ReactionDiffusion', inputs: seeded },
    '9': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'bench' } },
  };
  for (let id = 20; id < 29; id++) {
    const inputs = { string_a: text, string_b: 'b', delimiter: ' ' };
    graph[id] = { class_type: 'StringConcatenate', inputs };
  }
  const body = { client_id: 'bench', prompt: graph };
  return JSON.stringify(body).replace('"SEED"', '18446744073709551615');
}
