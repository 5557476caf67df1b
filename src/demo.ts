import { demoCommand } from './cli/demo.ts';

await demoCommand(process.argv.slice(2));
