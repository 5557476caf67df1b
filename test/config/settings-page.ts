import type { Option } from 'commander';

type Section = {
  readonly title: string;
  /** Names of flags, without dashes. */
  readonly flags: readonly string[];
  /** Facts that the help of the flags has no room for. */
  readonly notes: readonly string[];
};

const SECTIONS: readonly Section[] = [
  {
    title: 'Address and callers',
    flags: [
      'listen',
      'port',
      'local-token',
      'allow-insecure-bind',
      'enable-cors-header',
      'tls-keyfile',
      'tls-certfile',
      'public-url',
      'trust-proxy',
      'allowed-hosts',
      'max-sockets',
      'shutdown-delay',
    ],
    notes: [
      'Holdover binds an address other than loopback only with `--local-token` or `--allow-insecure-bind`.',
      '`--public-url`, `--trust-proxy` and `--allowed-hosts` are for a proxy in front: [proxies.md](proxies.md).',
      'One user may have half of `--max-sockets`.',
    ],
  },
  {
    title: 'Data',
    flags: [
      'data-dir',
      'ledger',
      'files',
      's3-endpoint',
      'start-anew',
      'disk-budget',
      'retention-days',
      'input-directory',
      'output-directory',
    ],
    notes: [
      'The files in `--data-dir`, and the use of `--start-anew`: [operating.md](operating.md#data-folder). A ledger in Redis: [scaling.md](scaling.md).',
      'Files in a bucket, and where its credentials come from: [operating.md](operating.md#files-in-a-bucket).',
      '`--disk-budget` limits the stored files; in front of a remote service these are copies of uploads.',
      '`--input-directory` and `--output-directory`: [local-files.md](local-files.md#shared-folders).',
    ],
  },
  {
    title: 'Jobs of the embedded engine',
    flags: ['concurrency', 'queue-limit', 'job-timeout', 'job-memory'],
    notes: ['`--concurrency 0` requires a ledger in Redis; workers then run all jobs.'],
  },
  {
    title: 'Request bodies',
    flags: ['max-upload-size'],
    notes: ['All limits: [operating.md](operating.md#limits).'],
  },
  {
    title: 'What clients see',
    flags: ['dialect', 'view', 'preview-method', 'front-end-root'],
    notes: [
      "`--dialect`: [dialects.md](dialects.md). `--front-end-root`: [front-ends.md](front-ends.md); Holdover's own page moves to `/holdover`.",
      '`--view` and `--preview-method`: rows `signed-view` and `sampler-previews` of [differences.md](differences.md).',
    ],
  },
  {
    title: 'In front of a service',
    flags: ['upstream', 'upstream-key', 'upstream-assets', 'upstream-redirects', 'object-info'],
    notes: [
      'Keys, node definitions and the differences between services: [upstreams.md](upstreams.md).',
      '`HOLDOVER_UPSTREAM_KEY` contains the key itself, `--upstream-key` names a file with it.',
      '`--upstream-assets`: `object` (`core/ASSET`), `string` (the path of the upload), or `auto`, which begins with `object` and tries `string` once it is refused.',
    ],
  },
  {
    title: 'The end of v1',
    flags: ['sunset', 'brownout'],
    notes: ['See [migrating.md](migrating.md).'],
  },
  {
    title: 'Model router',
    flags: ['model-keys'],
    notes: ['See [model-router.md](model-router.md).'],
  },
  {
    title: 'Log',
    flags: ['log-level'],
    notes: ['Fields and events: [operating.md](operating.md#log).'],
  },
];

const HEAD = `# Settings

Each flag has an environment variable: \`--data-dir\` is \`HOLDOVER_DATA_DIR\`. A flag on the command line overrides its
variable. A list in the environment is one text with spaces. Each other command (\`backup\`, \`restore\`, \`check\`,
\`import\`, \`report\`, \`trace\`, \`convert\`, \`worker\`) has its own \`--help\`.

This page is generated from the option table in \`src/config\`: run \`npm run settings\` after a change there.
`;

/** The text of `docs/settings.md`. Throws when a flag is in no section or in two. */
export function settingsPage(options: readonly Option[]): string {
  const shown = options.filter(({ hidden }) => !hidden);
  const placed = SECTIONS.flatMap(({ flags }) => flags);
  const astray = shown.filter(
    (option) => placed.filter((name) => name === option.name()).length !== 1,
  );
  if (astray.length > 0) {
    throw new Error(`no section, or two: ${astray.map((option) => option.name()).join(', ')}`);
  }
  return [HEAD, ...SECTIONS.map((section) => sectionText(section, shown))].join('\n');
}

function sectionText({ title, flags, notes }: Section, options: readonly Option[]): string {
  const rows = flags.flatMap((name) => options.filter((option) => option.name() === name));
  return [
    `## ${title}`,
    '',
    '| Flag | Default | Meaning |',
    '|---|---|---|',
    ...rows.map(rowText),
    '',
    ...notes.map((note) => `- ${note}`),
    '',
  ].join('\n');
}

function rowText(option: Option): string {
  const { flags, defaultValue, argChoices, description } = option;
  const [, help = ''] = /^(.*?)(?: \(env: \w+.*\))?$/.exec(description) ?? [];
  const choices = argChoices ? `; one of ${argChoices.map(code).join(', ')}` : '';
  const cells = [
    code(flags),
    defaultValue === undefined ? '–' : code(String(defaultValue)),
    help.replaceAll('|', '\\|') + choices,
  ];
  return `| ${cells.join(' | ')} |`;
}

function code(text: string): string {
  return `\`${text}\``;
}
