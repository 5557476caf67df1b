import type { refusalOf } from '../../../src/auth/guard.ts';
import {
  type Case,
  type ExpectedDifference,
  JSON_TYPE,
  badInput,
  badUpload,
  expectedDifferences,
} from './golden-differences.ts';
import { exchangesOf } from './recordings.ts';

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

const MACHINE_FACTS = [
  'system.argv ["holdover"]',
  'system.comfy_package_versions […]',
  'system.deploy_environment "holdover"',
  'system.installed_templates_version null',
  'devices[0].index 0',
];

const recorded = exchangesOf('info-routes');
const answerOf = (path: string) =>
  recorded.find(({ request }) => request.path === path)?.response.body_json;
const FOLDERS = Object.keys(answerOf('/internal/folder_paths') as object);
type ModelFolder = { readonly name: string; readonly folders: readonly string[] };
const MODEL_FOLDERS = (answerOf('/experiment/models') as readonly ModelFolder[]).map(
  ({ name, folders }, i) =>
    folders.length > 1 ? `[${i}].folders ["${name}"]` : `[${i}].folders[0] "${name}"`,
);

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

/** Scenarios without sockets. */
export const CALL_CASES: readonly Case[] = [
  {
    scenario: 'http-generic',
    args: ['--max-upload-size', '1'],
    expectedDifferences: [
      expectedDifferences(
        'start-page',
        '5 HEAD /',
        'cache-control: no-cache',
        'content-type: text/html; charset=utf-8',
      ),
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
      explained('18 GET /prompt', 'cross_site_request'),
      explained('19 POST /interrupt', 'cross_site_request'),
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
    // The start page, and what comes with packages: scripts, blueprints, templates.
    tolerances: { without: [0, 1, 16, 21, 37] },
    expectedDifferences: [
      expectedDifferences('system-stats', '2 GET /system_stats', ...MACHINE_FACTS),
      expectedDifferences('system-stats', '3 GET /api/system_stats', ...MACHINE_FACTS),
      expectedDifferences('host-paths', '13 GET /experiment/models', ...MODEL_FOLDERS),
      expectedDifferences('users', '17 GET /users', 'migrated true'),
      expectedDifferences(
        'host-paths',
        '23 GET /internal/folder_paths',
        ...FOLDERS.map((name) => `${name} absent`),
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
    ],
  },
  {
    scenario: 'compression',
    expectedDifferences: [
      '2 GET /object_info/EmptyImage',
      '3 GET /prompt',
      '4 GET /object_info/EmptyImage',
      '5 GET /prompt',
    ].map((where) => expectedDifferences('compression', where, 'content-encoding: none')),
  },
  {
    scenario: 'multi-user',
    expectedDifferences: [
      expectedDifferences('users', '0 GET /users', 'migrated true', 'users absent'),
      expectedDifferences('users', '2 POST /users', 'status 200', ' "bob_…"'),
      expectedDifferences('users', '4 GET /users', 'migrated true', 'users absent'),
      ...['5 GET /settings', '6 GET /settings'].map((where) =>
        expectedDifferences('users', where, 'status 200', JSON_TYPE, 'body {}'),
      ),
      expectedDifferences('users', '7 GET /v2/userdata', 'status 200', JSON_TYPE, 'body []'),
      expectedDifferences(
        'users',
        '8 GET /userdata?dir=x',
        'status 404',
        'body "Directory not found"',
      ),
    ],
  },
];
