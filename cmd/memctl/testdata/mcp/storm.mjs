// The TypeScript SDK's client against servers of its own, all on one store: each
// client starts one process, then makes all its calls at once. Says how many calls
// were answered, as JSON.
import { createRequire } from 'node:module';

const job = JSON.parse(process.argv[2]); // {root, command, args, env, clients, calls}
const require = createRequire(job.root + '/package.json');
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');

const clients = await Promise.all(Array.from({ length: job.clients }, async () => {
  const client = new Client({ name: 'storm', version: '1' });
  await client.connect(new StdioClientTransport({ command: job.command, args: job.args, env: { ...process.env, ...job.env }, stderr: 'inherit' }), { timeout: 300000 });
  return client;
}));
const answers = { acknowledged: [], failed: [] };
await Promise.all(clients.flatMap((client, c) => Array.from({ length: job.calls }, async (_, i) => {
  const name = `client ${c} call ${i}`;
  try {
    // callTool holds the structured content against the tool's output schema once the tools are listed.
    if (i === 0) await client.listTools();
    const r = await client.callTool({ name: 'create_entities', arguments: { entities: [{ name, entityType: 'storm', observations: [name] }] } }, undefined, { timeout: 300000 });
    if (r.isError || r.structuredContent.entities.length !== 1) throw new Error(JSON.stringify(r));
    answers.acknowledged.push(name);
  } catch (e) {
    answers.failed.push(`${name}: ${e}`);
  }
})));
const graph = (await clients[0].callTool({ name: 'read_graph', arguments: {} })).structuredContent;
answers.seen = graph.entities.length;
await Promise.all(clients.map((client) => client.close()));
console.log(JSON.stringify(answers));
