// report.mjs REPORT CHECKS_FAILED STATUS: names the tests of vitest's JSON report that passed at their second try, with
// the message of the first, and prints `N passed, N failed`.
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

const [report, checksFailed, status] = process.argv.slice(2);

function read(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    console.error(`no test report: ${error.message}`);
    return { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [] };
  }
}

const run = read(report);
for (const { name, assertionResults } of run.testResults) {
  for (const test of assertionResults) {
    if (test.status !== 'passed' || test.failureMessages.length === 0) continue;
    console.log(`passed at its second try, a defect to mend: ${relative('.', name)}: ${test.fullName}`);
    console.log(`  ${test.failureMessages[0].split(/\n.*node_modules/, 1)[0]}`);
  }
}
const skipped = run.numPendingTests + run.numTodoTests;
let failed = Number(checksFailed) + run.numFailedTests;
if (Number(status) !== 0 && failed === 0) failed = 1;
console.log(`${run.numPassedTests} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
process.exitCode = failed === 0 && run.numPassedTests > 0 ? 0 : 1;
