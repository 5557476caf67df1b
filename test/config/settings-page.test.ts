import { expect, test } from 'vitest';
import { OPTIONS } from '../../src/config/flags.ts';
import { settingsPage } from './settings-page.ts';

// `npm run settings` writes the page.
test('docs/settings.md shows every setting as the option table has it', async () => {
  await expect(settingsPage(OPTIONS)).toMatchFileSnapshot('../../docs/settings.md');
});

test('a setting that no section names is an error', () => {
  const [first] = OPTIONS;
  const unknown = Object.assign(Object.create(first ?? null), { name: () => 'undocumented' });
  expect(() => settingsPage([...OPTIONS, unknown])).toThrow('undocumented');
});
