import type { TrafficDetail } from '../../src/console/api-types.ts';

/**
 * The rows of docs/differences.md that a call or frame can show, and what tells it: the first line of its
 * description (`GET /view 200`, `frame executed`), its headers or its bodies.
 * @internal
 */
export const ROWS = {
  'no-client-id': /^POST \/prompt 200(?!.* cut|[^]*"client_id")/,
  'shared-ids': /^GET \/ws 101/,
  'late-sockets': /^GET \/ws 101/,
  'no-deflate': /^GET \/ws 101[^]*permessage-deflate/,
  keepalive: /^GET \/ws 101/,
  'socket-limits': /^GET \/ws 503/,
  'cancelled-before-start': /^frame execution_interrupted/,
  'sampler-previews': /^frame preview/,
  'v2-jobs': /^GET \/(queue|history) 200/,
  users: /^\w+ \/users /,
  'parallel-prompts': /^GET \/queue 200/,
  free: /^POST \/free /,
  'preview-names': /"type":\s*"temp"/,
  'current-inputs': /^frame execution_error/,
  wording: /^(frame execution_error|POST \/prompt 400)/,
  'host-paths': /^GET \/(experiment\/models|internal\/folder_paths) /,
  'unknown-class': /^GET \/object_info|^POST \/prompt 400[^]*"missing_node_type"/,
  pixels: /^GET \/view 200/,
  restart: /^GET \/(queue|history) 200/,
  'bad-input': /^\w+ (?!\/upload)\S+ 400[^]*"type":\s*"invalid_(?!prompt)/,
  'bad-upload': /^POST \/upload\/\w+ 400/,
  'unsafe-names': /^POST \/(upload|userdata)\S+ 400/,
  'duplicate-prompt-id': /^POST \/prompt 400[^]*"duplicate_prompt_id"/,
  'extra-data-null': /^POST \/prompt [^]*"extra_data":\s*null/,
  nan: /^POST [^]*[:[,]\s*-?(NaN|Infinity)\b/,
  'control-characters': /^\w+ \S+ 400[^]*"(control_character|CONTROL_CHARACTER)"/,
  'id-limits': /^POST \/prompt 200[^]*"prompt_id":\s*"(?![\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}")/,
  secrets: /^POST \/prompt [^]*"(api_key|auth_token)_comfy_org"/,
  'body-limits': /^\w+ \S+ 41[35]/,
  'queue-limits': /^POST \/prompt 503/,
  origin: /^\w+ \S+ 403[^]*"(foreign_|opaque_origin|cross_site_request)/,
  cors: /\n< access-control-allow-origin:/,
  'active-types': /\n< content-security-policy: sandbox/,
  'signed-view': /^GET \/view 302/,
  'service-trouble': /^\w+ \S+ 50[23](?![^]*"brownout")/,
  'newer-routes': /^\w+ \/(history_v2|user |job\/|global_subgraphs)/,
  'start-page': /^GET \/(workflow_)?templates/,
  userdata: /^\w+ \/(v2\/userdata|userdata|settings)/,
  'system-stats': /^GET \/system_stats /,
  'deprecation-headers': /\n< deprecation:/,
  brownout: /^\w+ \S+ 503[^]*"brownout"/,
  'display-name': /^GET \/object_info/,
  compression: /\n< content-encoding:/,
  'asset-records': /^\w+ \/(assets|tags)(?!\S+\.\w+ )/,
  logs: /^\w+ \/internal\/logs/,
  models: /^GET \/(models|embeddings)/,
  'sparse-progress': /^frame progress.* remote/,
  'sparse-previews': /^frame preview.* remote/,
  'remote-order': /^POST \/prompt 200.* remote[^]*"(number|front)":\s*[-\dt]/,
  'unknown-cache': /^frame execution_cached.* remote/,
  'remote-names': /^frame executed.* remote/,
  'remote-errors': /^frame execution_error.* remote/,
  'embedded-names': /^GET \/view 200.* remote/,
  'hosted-more-routes': /^\w+ \/(history|settings|models|users|extensions|free)\b.* hosted/,
  'hosted-errors': /^\w+ \S+ [45]\d\d.* hosted/,
  'hosted-statuses': /^\w+ \S+ [45]\d\d.* hosted/,
  'hosted-queue': /^\w+ \/(queue|prompt) \d+.* hosted/,
  'hosted-files': /^POST \/upload.* hosted/,
  'hosted-view': /^GET \/view.* hosted/,
  'hosted-jobs': /^GET \/jobs.* hosted/,
  'hosted-status-words': /^GET \/job\/.* hosted/,
  'hosted-userdata': /^\w+ \/userdata.* hosted/,
} as const satisfies { readonly [row: string]: RegExp };

/** Returns the rows of docs/differences.md that concern a call of v1 or a frame that was sent. */
export function differencesOf(detail: TrafficDetail, isRemote: boolean): readonly string[] {
  const { kind, api, direction } = detail.entry;
  if (kind === 'call' ? api !== 'v1' : kind !== 'frame' || direction !== 'out') return [];
  const text = description(detail, isRemote);
  return Object.entries(ROWS).flatMap(([row, shown]) => (shown.test(text) ? [row] : []));
}

function description(detail: TrafficDetail, isRemote: boolean): string {
  const { entry, request_headers: asked, response_headers: answered, request, response } = detail;
  const { kind, method = '', target = '', status = 0, type = '' } = entry;
  const path = target.replace(/^\/api(?=\/)/, '').replace(/\?.*/, '');
  const isHosted = target.startsWith('/api/') && asked.some(([name]) => name === 'x-api-key');
  const line = kind === 'frame' ? `frame ${type}` : `${method} ${path} ${status}`;
  return [
    `${line}${isHosted ? ' hosted' : ''}${isRemote ? ' remote' : ''}${request?.is_cut ? ' cut' : ''}`,
    ...asked.map(([name, value]) => `> ${name}: ${value}`),
    ...answered.map(([name, value]) => `< ${name}: ${value}`),
    request?.text ?? '',
    response?.text ?? '',
  ].join('\n');
}
