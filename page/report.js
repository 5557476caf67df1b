import { byId, element, say } from './elements.js';
import { KeyNeeded, getJson } from './server.js';

const announce = byId('announce');

show().catch((error) => {
  say(
    announce,
    error instanceof KeyNeeded
      ? 'A key is needed: give it on the page that shows what runs.'
      : `The report could not be loaded. ${error.message}`,
  );
});

async function show() {
  const { clients } = await getJson('holdover/report.json');
  byId('clients').append(...clients.map(section));
  const count = clients.length === 1 ? 'One client has' : `${clients.length} clients have`;
  say(announce, clients.length === 0 ? 'Nobody has called v1 so far.' : `${count} called v1.`);
}

function section(client, i) {
  const title = element('h2', { id: `client-${i}`, textContent: titleOf(client) });
  const made = element(
    'section',
    {},
    title,
    element('p', {}, element('strong', { textContent: client.verdict })),
    reasons([...client.because, ...notesOn(client.routes)]),
    facts(client),
    table(client.routes, title.id),
  );
  made.setAttribute('aria-labelledby', title.id);
  return made;
}

function titleOf({ agent, socket_agents: socketAgents }) {
  return socketAgents.length === 0 ? agent : `${agent}, sockets by ${socketAgents.join(', ')}`;
}

/** What is lost even where v2 does the same. */
function notesOn(routes) {
  return routes
    .filter(({ fit, lacks }) => fit === 'same' && lacks !== null)
    .map(({ route, lacks }) => `${route}, unless it needs ${lacks}`);
}

function reasons(because) {
  return element('ul', {}, ...because.map((reason) => element('li', { textContent: reason })));
}

function facts({ user, client_ids: ids, first_seen: first, last_seen: last }) {
  const pairs = [
    ['User', user],
    ['Client id', ids.length === 0 ? 'none' : ids.join(', ')],
    ['First seen', timeOf(first)],
    ['Last seen', timeOf(last)],
  ];
  const rows = pairs.map(([name, value]) =>
    element('div', {}, element('dt', { textContent: name }), element('dd', {}, value)),
  );
  return element('dl', { className: 'facts' }, ...rows);
}

function table(routes, labelId) {
  const names = ['v1 call', 'Times', 'Last seen', 'v2 call'];
  const head = names.map((name) => element('th', { scope: 'col', textContent: name }));
  const rows = routes.map(({ route, calls, last_seen: last, v2 }) =>
    element(
      'tr',
      {},
      element('td', {}, element('code', { textContent: route })),
      element('td', { textContent: String(calls) }),
      element('td', {}, timeOf(last)),
      element('td', {}, v2 === null ? 'none' : element('code', { textContent: v2 })),
    ),
  );
  const made = element(
    'table',
    { className: 'calls' },
    element('thead', {}, element('tr', {}, ...head)),
    element('tbody', {}, ...rows),
  );
  made.setAttribute('aria-labelledby', labelId);
  return element('div', { className: 'wide' }, made);
}

function timeOf(text) {
  return element('time', { dateTime: text, textContent: new Date(text).toLocaleString() });
}
