/** A v2 job as its server writes it. */
export function jobText(id: string, status: 'queued' | 'succeeded'): string {
  const link = `/api/v2/jobs/${id}`;
  return JSON.stringify({
    id,
    status,
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

/** A v2 service in nginx: takes every job, and says of each that it is in this state. */
export function jobLocations(status: 'queued' | 'succeeded'): string {
  return `
    default_type application/json;
    location = /api/v2/jobs { return 201 '${jobText('$request_id', status)}'; }
    location ~ ^/api/v2/jobs/(?<job>[0-9a-f]+)$ { return 200 '${jobText('$job', status)}'; }
    location / { return 404 '{"error":{"code":"not_found","message":"none","details":null}}'; }`;
}

/** A graph of embedded node classes, 4 KB of text, with the largest seed there is. */
export function smallGraph(): string {
  const text = {
    class_type: 'StringConcatenate',
    inputs: { string_a: words(280), string_b: 'b', delimiter: ' ' },
  };
  const graph: Record<string, unknown> = {
    '1': {
      class_type: 'ReactionDiffusion',
      inputs: { width: 64, height: 64, feed: 0.055, kill: 0.062, seed: 'SEED', steps: 20 },
    },
    '2': {
      class_type: 'ImageScale',
      inputs: {
        image: ['1', 0],
        upscale_method: 'lanczos',
        width: 512,
        height: 512,
        crop: 'disabled',
      },
    },
    '9': { class_type: 'SaveImage', inputs: { images: ['2', 0], filename_prefix: 'bench' } },
  };
  for (let id = 20; id < 29; id++) graph[id] = text;
  return JSON.stringify(graph).replace('"SEED"', '18446744073709551615');
}

function words(chars: number): string {
  return 'a quiet valley at dusk, long exposure, '.repeat(chars / 39 + 1).slice(0, chars);
}
