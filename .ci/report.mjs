// Reads vitest's JSON reports.
//   report.mjs failed-files REPORT MOST                 the files with failures, a line each; none when there are more than MOST
//   report.mjs sum REPORT SECOND CHECKS_FAILED STATUS   prints `N passed, N failed`; SECOND: of the files that ran again, or empty
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

const [command, ...args] = process.argv.slice(2);

function read(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    console.error(`no test report: ${error.message}`);
    return { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [] };
  }
}

const failedFiles = (run) =>
  [...new Set(run.testResults.filter(({ status }) => status === 'failed').map(({ name }) => name))];

function printFailedFiles([report, most]) {
  const files = failedFiles(read(report));
  if (files.length <= Number(most)) for (const file of files) console.log(relative('.', file));
}

function printSum([report, second, checksFailed, status]) {
  const first = read(report);
  const last = second ? read(second) : first;
  const mended = second ? Math.max(0, first.numFailedTests - last.numFailedTests) : 0;
  const passed = first.numPassedTests + mended;
  const skipped = first.numPendingTests + first.numTodoTests;
  let failed = Number(checksFailed) + last.numFailedTests;
  if (Number(status) !== 0 && failed === 0) failed = 1;
  if (second) console.log(`${mended} tests failed beside others and passed alone: ${failedFiles(first).map((file) => relative('.', file)).join(', ')}`);
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
}

({ 'failed-files': printFailedFiles, sum: printSum })[command](args);
