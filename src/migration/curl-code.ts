import {
  type CodeOptions,
  type FileInput,
  type OutputRef,
  type Plan,
  type StepWriters,
  type WorkflowFile,
  stepLines,
} from './session-plan.ts';

/** Returns a session as a bash script, which uses curl and jq. */
export function curlCode(plan: Plan, options: CodeOptions): string {
  return `${head(plan, options)}\n${stepLines(plan, options, WRITERS).join('\n')}`;
}

/**
 * Returns the functions of the script. They pass secrets through pipes, because all users can see the arguments of a
 * process.
 */
function head({ notes }: Plan, { baseUrl }: CodeOptions): string {
  return `#!/usr/bin/env bash
# A v1 session as v2 calls. Usage: bash session.sh [FOLDER FOR THE DOWNLOADS]
# COMFY_BASE_URL: where v2 is. COMFY_API_KEY: the key for it, if it wants one.
${notes.map((note) => `# Note: ${note}\n`).join('')}set -euo pipefail
mkdir -p "\${1:-.}"
out=$(cd "\${1:-.}" && pwd)
cd "$(dirname "\${BASH_SOURCE[0]}")"
base="\${COMFY_BASE_URL:-${shellInside(baseUrl)}}/api/v2"

api() {
  curl --silent --show-error --fail-with-body \\
    --config <(if [ -n "\${COMFY_API_KEY:-}" ]; then printf 'header = "Authorization: Bearer %s"\\n' "$COMFY_API_KEY"; fi) "$@"
}

json() { # a call that answers JSON; a refusal is shown
  local answer
  answer=$(api "$@") || { printf '%s\\n' "$answer" >&2; return 1; }
  printf '%s\\n' "$answer"
}

upload() { # FILE NAME TYPE: prints the asset's id
  json --form-string "content_type=$3" --form-string "file_path=$2" -F "file=@$1;type=$3" "$base/assets" | jq -er .id
}

reference() { # ASSET: prints what a workflow names it by, fit for sed
  json "$base/assets/$1" |
    jq -c '{__type: "core/ASSET", info: ({id, hash, file_path} | with_entries(select(.value != null)))}' |
    sed 's/[\\\\&|]/\\\\&/g'
}

submit() { # workflow on standard input; prints the job's id
  { printf '{"workflow":'; cat; printf '%s}' "\${extra_data:-}"; } |
    json -H 'Content-Type: application/json' --data-binary @- "$base/jobs" | jq -er .id
}

wait_for() { # JOB: prints the state it ends in
  local status
  while true; do
    status=$(json "$base/jobs/$1" | jq -r .status)
    case $status in succeeded | failed | canceled | expired) break ;; esac
    sleep 0.5
  done
  echo "$status"
}

until_running() { # JOB: goes on as soon as it no longer waits in the queue
  while [ "$(json "$base/jobs/$1" | jq -r .status)" = queued ]; do sleep 0.2; done
}

output() { # JOB NODE INDEX: prints the asset's id
  json "$base/jobs/$1" | jq -er --arg node "$2" --argjson index "$3" '[.outputs[] | select(.node_id == $node)][$index].id'
}
`;
}

const WRITERS: StepWriters = {
  upload({ file: { variable, path, filePath, contentType } }) {
    return [`${variable}=$(upload ${[path, filePath, contentType].map(shell).join(' ')})\n`];
  },
  submit({ job, workflow, needsPartnerKey }, { workflows }) {
    const { lookups, submission, text } = submissionCode(workflow, workflows);
    const partner = needsPartnerKey
      ? `extra_data=$(printf ',"extra_data":{"api_key_comfy_org":"%s"}' "\${COMFY_PARTNER_API_KEY:?is not set}")\n`
      : '';
    return [
      `${lookups}${partner}${job}=$(${submission}${text})\n${needsPartnerKey ? 'extra_data=\n' : ''}echo "${job}: $${job}"\n`,
    ];
  },
  refused({ name, workflow }, { workflows }) {
    const { lookups, submission, text } = submissionCode(workflow, workflows);
    return [
      `${lookups}if ${name}=$(${submission} 2>&1${text}); then
  echo "${name} is accepted now: $${name}"
else
  echo "${name}: $${name}"
fi
`,
    ];
  },
  'until-running': ({ job }) => [`until_running "$${job}"\n`],
  pause: ({ seconds }) => [`sleep ${seconds}\n`],
  cancel: ({ job }) => [`api -X POST "$base/jobs/$${job}/cancel" > /dev/null\n`],
  wait: ({ job, ended }) => [
    ended === 'succeeded'
      ? `test "$(wait_for "$${job}")" = succeeded\n`
      : `echo "${job}: $(wait_for "$${job}")"\n`,
  ],
  download: ({ place, path }) => [
    `api --location -o "$out"/${shell(path)} "$base/assets/$(${outputCode(place)})/content"\n`,
  ],
};

/** Returns the pipe that submits a workflow, and the lines before and after it. */
function submissionCode(workflow: WorkflowFile, workflows: CodeOptions['workflows']) {
  const read = workflows === 'inside' ? '' : ` < ${shell(workflow.path)}`;
  const heredoc = workflows === 'inside' ? ` << 'WORKFLOW'` : '';
  const text = workflows === 'inside' ? `\n${workflow.text}WORKFLOW\n` : '';
  const substitutions = workflow.inputs.map(
    ({ placeholder }, at) => ` -e "s|\\"${sedText(placeholder)}\\"|$ref_${at}|"`,
  );
  const filter = substitutions.length === 0 ? `cat${read}` : `sed${substitutions.join('')}${read}`;
  return {
    lookups: workflow.inputs.map(lookupCode).join(''),
    submission: `${filter}${heredoc} | submit`,
    text,
  };
}

function lookupCode({ from }: FileInput, at: number): string {
  const asset =
    from.kind === 'file' ? `"$${from.file.variable}"` : `"$(${outputCode(from.place)})"`;
  return `ref_${at}=$(reference ${asset})\n`;
}

function outputCode({ job, node, index }: OutputRef): string {
  return `output "$${job}" ${shell(node)} ${index}`;
}

function shell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function shellInside(text: string): string {
  return text.replaceAll(/[\\"$`}]/g, (char) => encodeURIComponent(char));
}

/**
 * Escapes a placeholder for sed. It has letters, digits and `@/._-` only (`safePath` in plan-session.ts), so only the
 * dot is special.
 */
function sedText(placeholder: string): string {
  return placeholder.replaceAll('.', '[.]');
}
