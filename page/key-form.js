import { byId, say } from './elements.js';
import { key, setKey } from './server.js';

const OPEN_TO_ALL =
  'Shown are the jobs sent without a key. With a key you see the jobs sent with it.';

/** Asks for a key where one is needed, and lets people look at another key's jobs. */
export function createKeyForm({ onChange }) {
  const details = /** @type {HTMLDetailsElement} */ (byId('key'));
  const input = /** @type {HTMLInputElement} */ (byId('key-input'));
  const note = byId('key-note');
  const forget = byId('key-forget');

  byId('key-form').addEventListener('submit', (event) => {
    event.preventDefault();
    const given = input.value.trim();
    // A header carries nothing else.
    if (!/^[\x21-\x7e]+$/.test(given))
      return say(note, 'A key is made of visible ASCII characters.');
    input.value = '';
    change(given);
  });
  forget.addEventListener('click', () => {
    input.focus();
    change(undefined);
  });

  function change(given) {
    setKey(given);
    show();
    onChange();
  }

  function show() {
    const isUsed = key() !== null;
    forget.hidden = !isUsed;
    say(byId('key-summary'), isUsed ? 'Using a key' : 'Use a key');
    say(note, isUsed ? 'Shown are the jobs sent with this key.' : OPEN_TO_ALL);
  }

  show();
  return {
    accepted: show,
    /** Returns what there is to say about it. */
    refused() {
      const text =
        key() === null
          ? 'This server needs a key to show its jobs.'
          : 'The server does not take this key.';
      say(note, text);
      say(byId('key-summary'), 'A key is needed');
      details.open = true;
      return text;
    },
  };
}
