import type { refusalOf } from '../../../src/auth/guard.ts';
import {
  type Case,
  type ExpectedDifference,
  JSON_TYPE,
  badInput,
  badUpload,
  expectedDifferences,
} from './golden-differences.ts';

const CORS = [
  'access-control-allow-methods: POST, GET, DELETE, PUT, PATCH, OPTIONS',
  'access-control-allow-headers: Content-Type, Authorization, X-API-Key, Comfy-User, Range, ' +
    'Idempotency-Key, If-None-Match, Last-Event-ID, Comfy-Usage-Source, User-Agent, ' +
    'X-Comfy-Router-Fallback-Provider, X-Service-Router-Fallback-Provider',
];
const CORS_ON_ERROR = [
  'access-control-allow-origin: *',
  ...CORS,
  'access-control-allow-credentials: true',
];

const MACHINE_FACTS = ['system.argv ["holdover"]', 'devices[0].index 0'];

const MODEL_FOLDERS: readonly string[] = [
  '[0].folders ["checkpoints"]',
  '[1].folders ["loras"]',
  '[2].folders ["vae"]',
  '[3].folders ["text_encoders"]',
  '[4].folders ["diffusion_models"]',
  '[5].folders[0] "clip_vision"',
  '[6].folders[0] "style_models"',
  '[7].folders[0] "embeddings"',
  '[8].folders[0] "diffusers"',
  '[9].folders[0] "vae_approx"',
  '[10].folders ["controlnet"]',
  '[11].folders[0] "gligen"',
  '[12].folders[0] "upscale_models"',
  '[13].folders[0] "hypernetworks"',
  '[14].folders[0] "photomaker"',
  '[15].folders[0] "classifiers"',
  '[16].folders[0] "model_patches"',
  '[17].folders[0] "audio_encoders"',
];

const PATH_FOLDERS: readonly string[] = [
  'checkpoints',
  'configs',
  'loras',
  'vae',
  'text_encoders',
  'diffusion_models',
  'clip_vision',
  'style_models',
  'embeddings',
  'diffusers',
  'vae_approx',
  'controlnet',
  'gligen',
  'upscale_models',
  'custom_nodes',
  'hypernetworks',
  'photomaker',
  'classifiers',
  'model_patches',
  'audio_encoders',
];

type Rule = Parameters<typeof refusalOf>[0];

/** The original refuses too, without a word. */
const explained = (where: string, rule: Rule): ExpectedDifference =>
  expectedDifferences('origin', where, `body error ${rule}`, JSON_TYPE);

/** The original lets an empty answer through. */
const closed = (where: string, rule: Rule): ExpectedDifference =>
  expectedDifferences('origin', where, 'status 403', `body error ${rule}`, JSON_TYPE);

/** The original answers JSON, of which nothing is left. */
const closedJson = (where: string): ExpectedDifference =>
  expectedDifferences(
    'origin',
    where,
    'status 403',
    'error {…}',
    'exec_info absent',
    'node_errors {}',
  );

const empty = (where: string): ExpectedDifference =>
  expectedDifferences('newer-routes', where, 'status 200', JSON_TYPE, 'body {}');

/** Scenarios without sockets. */
export const CALL_CASES: readonly Case[] = [
  {
    scenario: 'http-generic',
    args: ['--max-upload-size', '1'],
    expectedDifferences: [
      expectedDifferences('start-page', '5 HEAD /', 'content-type: text/html; charset=utf-8'),
    ],
  },
  {
    scenario: 'cors-mode',
    args: ['--enable-cors-header'],
    expectedDifferences: [
      ...[
        '0 GET /prompt',
        '1 OPTIONS /prompt',
        '2 OPTIONS /nope',
        '3 GET /nope',
        '5 POST /interrupt',
        '7 POST /prompt',
      ].map((where) => expectedDifferences('cors', where, ...CORS)),
      expectedDifferences('cors', '4 PUT /prompt', ...CORS_ON_ERROR),
      expectedDifferences('cors', '6 POST /prompt', ...CORS_ON_ERROR),
      badInput('6 POST /prompt'),
    ],
  },
  {
    scenario: 'origin-check',
    expectedDifferences: [
      explained('2 GET /prompt', 'foreign_origin'),
      explained('3 POST /interrupt', 'foreign_origin'),
      explained('4 GET /prompt', 'foreign_origin'),
      explained('5 POST /interrupt', 'foreign_origin'),
      explained('6 GET /prompt', 'foreign_origin'),
      explained('7 POST /interrupt', 'foreign_origin'),
      closed('9 POST /interrupt', 'opaque_origin'),
      closedJson('10 GET /prompt'),
      closed('11 POST /interrupt', 'foreign_origin'),
      closedJson('14 GET /prompt'),
      closed('15 POST /interrupt', 'foreign_host'),
      closedJson('18 GET /prompt'),
      closed('19 POST /interrupt', 'cross_site_request'),
      explained('20 OPTIONS /prompt', 'foreign_origin'),
      explained('21 GET /ws?clientId=x', 'foreign_origin'),
    ],
  },
  {
    scenario: 'mask-upload',
    expectedDifferences: [
      ...['13', '15', '16', '20'].map((n) =>
        expectedDifferences(
          'bad-upload',
          `${n} POST /upload/mask`,
          'error {…}',
          'name absent',
          'node_errors {}',
          'status 400',
          'subfolder absent',
          'type absent',
        ),
      ),
      ...['17', '18', '19'].map((n) => badUpload(`${n} POST /upload/mask`)),
    ],
  },
  {
    scenario: 'info-routes',
    // The start page and the address of its own source.
    tolerances: { without: [0, 1] },
    expectedDifferences: [
      expectedDifferences('system-stats', '2 GET /system_stats', ...MACHINE_FACTS),
      expectedDifferences('system-stats', '3 GET /api/system_stats', ...MACHINE_FACTS),
      expectedDifferences('host-paths', '13 GET /experiment/models', ...MODEL_FOLDERS),
      expectedDifferences('users', '17 GET /users', 'migrated true'),
      empty('21 GET /global_subgraphs'),
      empty('22 GET /node_replacements'),
      expectedDifferences(
        'host-paths',
        '23 GET /internal/folder_paths',
        ...PATH_FOLDERS.map((name) => `${name} absent`),
      ),
      expectedDifferences(
        'newer-routes',
        '33 GET /api/jobs',
        'status 200',
        JSON_TYPE,
        'body {"jobs": [], "pagination": {"offset": 0, "limit": 200, "total": 0, "has_more": false}}',
      ),
      expectedDifferences(
        'newer-routes',
        '34 GET /api/job/x/status',
        JSON_TYPE,
        'body error not_found',
      ),
    ],
  },
  {
    scenario: 'userdata',
    expectedDifferences: [
      expectedDifferences('users', '0 GET /users', 'migrated true'),
      badInput('9 POST /settings'),
      expectedDifferences('userdata', '14 GET /v2/userdata', ' []'),
      expectedDifferences('userdata', '32 GET /v2/userdata', ' […]'),
      expectedDifferences(
        'userdata',
        '39 POST /userdata/workflows%2Fc.json/move/..%2Fz.json',
        'status 403',
        'content-type: none',
        'body ""',
      ),
    ],
  },
];
