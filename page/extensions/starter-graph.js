import { app } from '../../scripts/app.js';

// The default graph in the bundle of a front end loads a checkpoint and samples: where the server
// has no such classes it opens red and cannot run. There this loads a graph that runs instead. It
// is never in the way of a user's own work: any other graph is loaded as it is.

const STARTER = new URL('../../templates/reaction_diffusion.json', import.meta.url);

const shipped = await shippedDefault();
const starter = await loadStarter();
if (shipped && starter) replaceDefault();

function replaceDefault() {
  const load = app.loadGraphData;
  app.loadGraphData = function (graph, ...rest) {
    const shown = isDefault(graph) && !canRun(shipped) && canRun(starter);
    return load.call(this, shown ? structuredClone(starter) : graph, ...rest);
  };
}

/** No graph stands for the default; one that was stored without a change is the default still. */
function isDefault(graph) {
  return !graph || graph === shipped || outlineOf(graph) === outlineOf(shipped);
}

function outlineOf({ nodes }) {
  const known = (nodes ?? []).map(({ id, type, widgets_values }) => [id, type, widgets_values]);
  return JSON.stringify(known.toSorted(([one], [other]) => one - other));
}

function canRun({ nodes }) {
  const types = globalThis.LiteGraph?.registered_node_types ?? {};
  return nodes.every(({ type }) => type in types);
}

/** The oldest front ends have it as a module, newer ones warn of that module. */
async function shippedDefault() {
  const { comfyAPI } = globalThis;
  if (comfyAPI) return comfyAPI.defaultGraph?.defaultGraph;
  return (await import('../../scripts/defaultGraph.js')).defaultGraph;
}

/** Before the front end shows its first graph: it waits for its extensions. */
async function loadStarter() {
  const answer = await fetch(STARTER).catch(() => undefined);
  return answer?.ok ? answer.json() : undefined;
}
