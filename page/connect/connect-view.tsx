import { CopyButton } from '../lib/ui.tsx';
import { session } from '../state.ts';

/** How a client is pointed at this server. */
export function ConnectView() {
  const base = session.value?.address ?? '';
  const socket = base.replace(/^http/, 'ws');
  const token = session.value?.needs_token === true;
  const host = base.replace(/^https?:\/\//, '');
  const lines = [
    { name: 'Scripts with a server_address', text: host },
    { name: 'SDKs with a base URL', text: base },
    { name: 'Clients of the hosted service', text: `${base}/api` },
    {
      name: 'WebSocket',
      text: `${socket}/ws?clientId=YOUR_CLIENT_ID${token ? '&token=YOUR_TOKEN' : ''}`,
    },
    { name: 'v2 API', text: `${base}/api/v2` },
  ];
  const header = token ? " -H 'X-API-Key: YOUR_TOKEN'" : '';
  return (
    <div class="view page">
      <h1 tabIndex={-1}>Connect a client</h1>
      <p>
        Give an existing client this address and change nothing else. It gets the messages, files
        and errors it knows.
      </p>
      <dl class="lines">
        {lines.map(({ name, text }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <code>{text}</code>
              <CopyButton text={text} label={`Copy ${text}`} />
            </dd>
          </div>
        ))}
      </dl>
      <h2>Try it</h2>
      <div class="code">
        <pre>{`curl${header} ${base}/system_stats`}</pre>
        <CopyButton text={`curl${header} ${base}/system_stats`} label="Copy the command" />
      </div>
      <h2>Keys</h2>
      <p>
        {token
          ? 'This server asks for its token: in X-API-Key, Authorization: Bearer, or ?token= of the socket.'
          : 'Each key (X-API-Key, Bearer, Basic, or ?token=) is a user with a queue, history and files of its own. Callers without a key share one user.'}
      </p>
    </div>
  );
}
