// An agent in the place of Claude Code or Cursor: starts the server that a configuration names, as
// those clients do, asks it to remember, kills it, starts it again and asks what it knows. Prints
// the answers and the milliseconds that they took as JSON.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const job = JSON.parse(process.argv[2]); // {root, config, text, query}
const require = createRequire(job.root + '/package.json');
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const server = JSON.parse(readFileSync(job.config)).mcpServers.memory;

const began = Date.now();
const start = async () => {
  const transport = new StdioClientTransport({ ...server, env: { ...process.env, ...server.env }, stderr: 'inherit' });
  const client = new Client({ name: 'agent', version: '1' });
  await client.connect(transport);
  return { client, transport };
};
const first = await start();
const tools = (await first.client.listTools()).tools.map((t) => t.name);
const remembered = await first.client.callTool({ name: 'remember', arguments: { text: job.text } });
process.kill(first.transport.pid, 'SIGKILL');
const second = await start();
const recalled = await second.client.callTool({ name: 'recall', arguments: { query: job.query } });
await second.client.close();
console.log(JSON.stringify({ tools, remembered, recalled, ms: Date.now() - began }));
