// Makes the text of its definitions anew for every request, as the v1 server does.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { answer, serve } from './serve.ts';

const definitions: unknown = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'));
serve(
  createServer((_request, response) => {
    const text = Buffer.from(JSON.stringify(definitions));
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': text.length });
    response.end(text);
  }),
);
answer(() => undefined);
