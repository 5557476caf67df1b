// A bare node:http origin: reads a body, answers with a job.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { jobText } from '../job.ts';
import { answer, serve } from './serve.ts';

serve(
  createServer((request, response) => {
    request.on('data', () => {});
    request.on('end', () => {
      const text = jobText(randomUUID(), 'queued');
      response.writeHead(201, {
        'Content-Type': 'application/json',
        'Content-Length': text.length,
      });
      response.end(text);
    });
  }),
);
answer(() => undefined);
