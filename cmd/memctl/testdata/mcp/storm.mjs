// The TypeScript SDK's client against servers of its own, all on one store: each
// client starts one process, then makes all its calls at once. Says how many calls
// were answered, as JSON.
import { createRequire } from 'node:module';

const job = JSON.parse(process.argv[2]); // {root, command, args, env, clients, calls}
const require = createRequire(job.root + '/package.json');
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { ResourceUpdatedNotificationSchema } = require('@modelcontextprotocol/sdk/types.js');
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
// What the last client's process does, the first one hears of.
const uri = 'memory://knowledge-graph';
const told = new Promise((resolve, reject) => {
  clients[0].setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => resolve(n.params.uri));
  setTimeout(() => reject(new Error('no update was told')), 60000).unref();
});
await clients[0].subscribeResource({ uri });
const last = clients[clients.length - 1];
await last.callTool({ name: 'create_relations', arguments: { relations: [{ from: 'a', to: 'b', relationType: 'knows' }] } });
if (await told !== uri) answers.failed.push(`an update of ${await told}`);
const read = await clients[0].readResource({ uri });
if (JSON.parse(read.contents[0].text).relations.length !== 1) answers.failed.push('the relation is not in the resource');
await clients[0].unsubscribeResource({ uri });
// The other tools: the client refuses what does not fit their schemas.
const ask = async (name, args) => {
  const r = await clients[0].callTool({ name, arguments: args });
  if (r.isError) answers.failed.push(`${name}: ${JSON.stringify(r)}`);
  return r.structuredContent;
};
const { id } = await ask('remember', { text: 'the storm is over', session: 's', category: 'c', key: 'k', tags: ['t'], ttl: 3600 });
await ask('remember', { text: 'The storm is over.', session: 's' });
await ask('recall', { query: 'storm', max_chars: 100 });
await ask('recent', { session: 's', limit: 1 });
await ask('update', { id, append: 'for today' });
await ask('history', { id });
await ask('context', { task: 'storm' });
await ask('forget', { ids: [id, 'none'] });
const graph = (await clients[0].callTool({ name: 'read_graph', arguments: {} })).structuredContent;
answers.seen = graph.entities.length;
await Promise.all(clients.map((client) => client.close()));
console.log(JSON.stringify(answers));
