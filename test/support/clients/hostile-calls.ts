import { flat } from '../graphs/workflows.ts';

/** A call with its path exactly as written. */
export type HostileCall = {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
};

const JSON_TYPE = { 'Content-Type': 'application/json' };

const get = (path: string, headers = {}): HostileCall => ({ method: 'GET', path, headers });
const post = (path: string, body?: unknown): HostileCall => ({
  method: 'POST',
  path,
  headers: JSON_TYPE,
  body: typeof body === 'string' ? body : JSON.stringify(body ?? {}),
});

/** A form with these parts, as browsers send it. */
function form(
  path: string,
  parts: Readonly<Record<string, string | { filename: string; data: string }>>,
): HostileCall {
  const lines = Object.entries(parts).flatMap(([name, part]) => {
    const file = typeof part === 'string' ? '' : `; filename="${part.filename}"`;
    const data = typeof part === 'string' ? part : part.data;
    return ['--b', `Content-Disposition: form-data; name="${name}"${file}`, '', data];
  });
  const body = [...lines, '--b--', ''].join('\r\n');
  return {
    method: 'POST',
    path,
    headers: { 'Content-Type': 'multipart/form-data; boundary=b' },
    body,
  };
}

const IMAGE = { filename: 'a.png', data: 'no picture' };

/** A call that is refused: the summary of the answer to local clients, and to hosted ones. */
type Refused = readonly [call: HostileCall, local: string, hosted: string];

const refused = (call: HostileCall, code: string, status = 400): Refused => {
  const hosted = call.path === '/api/prompt' ? 'hosted refusal' : 'code';
  return [call, `${status} refusal ${code}`, `${status} ${hosted} ${code}`];
};

/** Calls below `/api` that are refused. */
export const REFUSED_CALLS: readonly Refused[] = [
  refused(post('/api/prompt', '{'), 'invalid_json'),
  refused(post('/api/prompt', 'null'), 'no_prompt'),
  refused(post('/api/prompt', '[]'), 'no_prompt'),
  refused(post('/api/prompt', {}), 'no_prompt'),
  refused(post('/api/prompt', { prompt: {} }), 'prompt_no_outputs'),
  refused(post('/api/prompt', { prompt: [] }), 'prompt_no_outputs'),
  refused(post('/api/prompt', { prompt: null }), 'invalid_prompt'),
  refused(post('/api/prompt', { prompt: { 1: {} } }), 'missing_node_type'),
  refused(post('/api/prompt', { prompt: { nodes: [], links: [] } }), 'invalid_prompt'),
  refused(
    post('/api/prompt', { prompt: { 1: { class_type: 'Nope', inputs: {} } } }),
    'missing_node_type',
  ),
  refused(
    post('/api/prompt', { prompt: { 9: { class_type: 'SaveImage', inputs: {} } } }),
    'prompt_outputs_failed_validation',
  ),
  refused(post('/api/prompt', { prompt: flat(), number: 'x' }), 'invalid_prompt'),
  refused(post('/api/prompt', { prompt: flat(), prompt_id: 'a/b' }), 'invalid_prompt_id'),
  refused(post('/api/prompt', { prompt: flat(), client_id: 'x'.repeat(200) }), 'invalid_client_id'),
  refused(post('/api/prompt', { prompt: flat(), extra_data: [] }), 'invalid_prompt'),
  refused(
    post('/api/prompt', { prompt: flat(), partial_execution_targets: ['77'] }),
    'prompt_no_outputs',
  ),
  refused(
    { ...post('/api/prompt', {}), headers: { ...JSON_TYPE, 'Content-Encoding': 'br' } },
    'unsupported_encoding',
    415,
  ),
  [
    post('/api/prompt', `{"prompt":${'['.repeat(300)}${']'.repeat(300)}}`),
    '413 text: Maximum JSON depth 200 exceeded.',
    '413 hosted refusal payload_too_large',
  ],
  refused(post('/api/queue', '{'), 'invalid_json'),
  refused(post('/api/queue', '[]'), 'invalid_request'),
  refused(post('/api/queue', { delete: 5 }), 'invalid_request'),
  refused(post('/api/queue', { delete: ['a\u0000b'] }), 'control_character'),
  refused(post('/api/history', '{'), 'invalid_json'),
  refused(post('/api/history', { delete: 7 }), 'invalid_request'),
  refused(post('/api/interrupt', '[]'), 'invalid_request'),
  refused(post('/api/free', ''), 'invalid_json'),
  refused(get('/api/history?max_items=x'), 'invalid_request'),
  refused(get('/api/history_v2?offset=x'), 'invalid_request'),
  refused(get('/api/history_v2/none'), 'not_found', 404),
  [
    get('/api/jobs?status=x'),
    '400 error: Invalid status value(s): x. Valid values: pending, in_progress, completed, failed, cancelled',
    '400 code invalid_request',
  ],
  [
    get('/api/jobs?limit=0'),
    '400 error: limit must be a positive integer',
    '400 code invalid_request',
  ],
  [
    get('/api/jobs?sort_by=x'),
    "400 error: sort_by must be 'created_at' or 'execution_duration'",
    '400 code invalid_request',
  ],
  [get('/api/jobs?output_type=x'), '400 error: Unknown output_type: x', '400 code invalid_request'],
  [get('/api/jobs/none'), '404 error: Job not found', '404 code not_found'],
  refused(get('/api/job/none/status'), 'not_found', 404),
  [post('/api/jobs/cancel', '[]'), '400 error: job_ids must be a list', '400 code invalid_request'],
  [get('/api/view'), '404 empty', '400 code invalid_request'],
  [get('/api/view?filename='), '400 empty', '400 code invalid_request'],
  [get('/api/view?filename=a..b.png'), '400 empty', '400 code invalid_request'],
  [get('/api/view?filename=none.png'), '404 empty', '404 code not_found'],
  [get('/api/view?filename=none.png&type=x'), '400 empty', '400 code invalid_request'],
  [get('/api/view?filename=none.png&preview=webp;101'), '404 empty', '404 code not_found'],
  refused(get('/api/view?filename=%00.png'), 'control_character'),
  [get('/api/view_metadata/loras?filename=x'), '404 empty', '404 code not_found'],
  refused(
    { method: 'POST', path: '/api/upload/image', headers: JSON_TYPE, body: '{}' },
    'invalid_upload',
  ),
  refused(form('/api/upload/image', { other: 'x' }), 'invalid_upload'),
  refused(form('/api/upload/image', { image: 'x' }), 'invalid_upload'),
  refused(form('/api/upload/image', { image: IMAGE, type: 'x' }), 'invalid_upload'),
  refused(form('/api/upload/mask', { image: IMAGE }), 'invalid_upload'),
  refused(form('/api/upload/mask', { image: IMAGE, original_ref: '{' }), 'invalid_upload'),
  [get('/api/models/none'), '404 empty', '404 code not_found'],
  [get('/api/experiment/models/none'), '404 empty', '404 code not_found'],
  [get('/api/userdata'), '400 text: Directory not provided', '400 text: Directory not provided'],
  [get('/api/userdata?dir=../x'), '403 text: Invalid directory', '403 text: Invalid directory'],
  [get('/api/userdata?dir=none'), '404 text: Directory not found', '404 text: Directory not found'],
  [get('/api/userdata/none.json'), '404 empty', '404 text: There is no such file.'],
  [
    get('/api/userdata/con.txt'),
    '400 refusal invalid_name',
    '400 text: This is no name for a file.',
  ],
  [
    get('/api/userdata/..%2Fx'),
    '403 empty',
    '403 text: This path leads out of the folder of the user.',
  ],
  [
    { method: 'DELETE', path: '/api/userdata/none.json' },
    '404 empty',
    '404 text: There is no such file.',
  ],
  [
    { method: 'POST', path: '/api/userdata/none.json/move/b.json' },
    '404 empty',
    '404 text: There is no such file.',
  ],
  [get('/api/v2/userdata?path=none'), '404 text: Requested path not found', '404 code not_found'],
  refused(post('/api/settings', '[]'), 'invalid_settings'),
  [post('/api/users', {}), '400 error: username not provided', '400 code invalid_request'],
  [get('/api/none'), '404 empty', '404 code not_found'],
  [get('/api/interrupt'), '404 empty', '404 code not_found'],
  [
    { method: 'PUT', path: '/api/prompt' },
    '405 text: 405: Method Not Allowed',
    '405 code method_not_allowed',
  ],
  [
    { method: 'POST', path: '/api/none' },
    '405 text: 405: Method Not Allowed',
    '405 code method_not_allowed',
  ],
  [
    get('/api/ws'),
    '400 text: This path speaks WebSocket: the request has no upgrade header.',
    '400 code invalid_request',
  ],
  [
    get('/api/prompt', { Origin: 'http://elsewhere.example' }),
    '403 refusal foreign_origin',
    '403 code foreign_origin',
  ],
  [
    get('/api/prompt', { Host: 'elsewhere.example' }),
    '403 refusal foreign_host',
    '403 code foreign_host',
  ],
  refused(get('/api/queue?x=%00'), 'control_character'),
  [get('/api/v2/jobs/none'), '404 v2 not_found', '404 v2 not_found'],
  [get('/api/v2/none'), '404 v2 not_found', '404 v2 not_found'],
];
