import { demoCommand } from './cli/demo.ts';

void demoCommand(process.argv.slice(2));
