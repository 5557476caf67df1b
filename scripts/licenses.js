import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';

/** Writes the licences of the production dependencies and of further packages, whose code the build copies. */
export function writeLicenses(file, furtherFolders) {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  const production = Object.keys(packages).filter((path) => path !== '' && !packages[path].dev && existsSync(path));
  const folders = new Set([...production, ...furtherFolders]);
  writeFileSync(file, [...folders].toSorted().map(licenseIn).join('\n'));
}

function licenseIn(folder) {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file));
  const texts = files.map((file) => readFileSync(`${folder}/${file}`, 'utf8'));
  return [`== ${name} ${version} (${license})`, ...texts].join('\n\n');
}
