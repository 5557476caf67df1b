import { isAssetRef } from '../protocol/asset-refs.ts';
import { SecretRedactor } from '../observability/secret-redactor.ts';
import {
  type Json,
  type JsonObject,
  isJsonObject,
  entriesInOrder,
  objectInOrder,
} from '../protocol/json.ts';
import type { Graph } from '../protocol/v2.ts';
import type { Session, SessionEvent } from './session.ts';

type CleanText = (text: string) => string;

/**
 * Returns the session with all keys removed from texts of the client, also from the inputs of graphs. Keeps the
 * structure of graphs: the ids, classes and links of nodes, the names of inputs and the ids of files.
 */
export function withoutSecrets(session: Session, secrets: readonly string[]): Session {
  const redactor = new SecretRedactor(secrets);
  const clean = (text: string): string => redactor.redact(text);
  const jobs = [...session.jobs].map(([id, job]) => {
    const outputs = job.outputs.map((output) => ({ ...output, name: clean(output.name) }));
    return [id, { ...job, outputs }] as const;
  });
  return {
    ...session,
    calls: session.calls.map((call) => ({ ...call, target: clean(call.target) })),
    events: session.events.map((event) => cleanEvent(event, clean)),
    jobs: new Map(jobs),
  };
}

function cleanEvent(event: SessionEvent, clean: CleanText): SessionEvent {
  switch (event.kind) {
    case 'upload':
      return { ...event, path: clean(event.path), contentType: clean(event.contentType) };
    case 'submit':
      return { ...event, workflow: cleanGraph(event.workflow, clean) };
    case 'refused':
      return {
        ...event,
        code: clean(event.code),
        message: clean(event.message),
        workflow: event.workflow && cleanGraph(event.workflow, clean),
      };
    case 'download': {
      const rendering = event.rendering === undefined ? undefined : clean(event.rendering);
      return { ...event, filename: clean(event.filename), rendering };
    }
    case 'cancel':
      return event;
  }
}

function cleanGraph(graph: Graph, clean: CleanText): Graph {
  function cleaned(value: Json): Json {
    if (typeof value === 'string') return clean(value);
    if (Array.isArray(value)) return isLink(value) ? value : value.map(cleaned);
    if (!isJsonObject(value)) return value;
    return isAssetRef(value) ? cleanReference(value, clean) : cleanObject(value);
  }
  const cleanObject = (value: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(value).map(([key, item]) => [key, cleaned(item)]));
  const isLink = ([source]: readonly Json[]): boolean =>
    typeof source === 'string' && Object.hasOwn(graph, source);
  const nodes = entriesInOrder(graph).map(([id, node]) => {
    const { class_type } = node;
    return [id, { ...cleanObject(node), class_type }] as const;
  });
  return objectInOrder(nodes) as Graph;
}

function cleanReference(reference: JsonObject, clean: CleanText): JsonObject {
  const { info } = reference;
  if (!isJsonObject(info) || typeof info['file_path'] !== 'string') return reference;
  return { ...reference, info: { ...info, file_path: clean(info['file_path']) } };
}
