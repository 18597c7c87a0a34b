// A no-op in Node: `node noop.js serve [PORT]` kept alive behind HTTP, `node noop.js fork` for one request on stdin.
'use strict';

const ANSWER = 'ok';

function serve() {
  const server = require('node:http').createServer((request, response) => {
    request.resume();
    request.on('end', () => response.end(ANSWER));
  });
  // Longer than any caller keeps an idle connection.
  server.keepAliveTimeout = 150_000;
  server.listen(Number(process.argv[3] || process.env.port || 8080), process.env.host);
  process.on('SIGTERM', () => server.close(() => process.exit(0)));
}

function fork() {
  process.stdin.resume();
  process.stdin.on('end', () => process.stdout.write(ANSWER));
}

const way = { serve, fork }[process.argv[2]];
if (way === undefined) {
  process.stderr.write('usage: node noop.js fork | node noop.js serve [PORT]\n');
  process.exit(2);
}
way();
