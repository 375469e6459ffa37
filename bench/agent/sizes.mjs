// Bytes and tokens of tools/list and of a recall with ten hits, by the tokenizer o200k_base of npm's gpt-tokenizer.
//
//	node sizes.mjs '{"root": folder with node_modules, "command": …, "args": […], "store": an empty folder, "memctl": …}'
import { createRequire } from 'node:module';
import { execFileSync } from 'node:child_process';

const job = JSON.parse(process.argv[2]);
const require = createRequire(job.root + '/package.json');
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { countTokens } = require('gpt-tokenizer/encoding/o200k_base');

const facts = [ // of about 35 tokens each
  'The payment service retries failed webhooks five times with exponential backoff, then parks them in the dead-letter queue, where the support team sees them on its board and can send them once more by hand',
  'Webhooks of the payment service are signed with HMAC-SHA256; the secret rotates every ninety days, lives in the vault of the platform team, and both the old and the new one are accepted for a week',
  'Ada decided that the payment service keeps PostgreSQL, because the team knows it well, the load is a tenth of what it can take, and the migration to DynamoDB would take a whole quarter of the year',
  'The payment service must answer within 300 ms at the 99th percentile, or the checkout page shows its own fallback to the customer, which costs about two orders in a hundred according to the experiment in spring',
  'Refunds in the payment service need two approvals above 500 euros; below that the support team may refund on its own account, but writes the reason into the ticket so that the auditors find it',
  'The staging copy of the payment service uses the sandbox of the bank, whose test cards expire at the end of each calendar year; the new numbers are in the shared folder of the quality team',
  'Deployments of the payment service happen on Tuesday mornings only, never on the last three working days of a month, and need the green light of the person who is on call that week',
  'The payment service logs no card numbers; a linter rule in the build fails when a log call contains a field whose name has card in it, and the rule has a test of its own',
  'Bob owns the payment service since October; before him Eve did, who still answers questions about the reconciliation job and the contract with the bank, but does not review changes any more',
  'The reconciliation job of the payment service runs at four in the morning, compares the ledger with the report of the bank, and opens a ticket for each difference of more than one cent',
];
execFileSync(job.memctl, ['init', job.store, '-q']);
const client = new Client({ name: 'sizes', version: '1' });
await client.connect(new StdioClientTransport({ command: job.command, args: [...job.args, '--store', job.store], stderr: 'ignore' }));
for (const [i, text] of facts.entries()) {
  await client.callTool({ name: 'remember', arguments: { text, category: i % 2 ? 'fact' : 'decision', session: 'payments' } });
}
const list = await client.listTools();
const tools = JSON.stringify(list.tools);
const recall = await client.callTool({ name: 'recall', arguments: { query: 'payment service', limit: 10 } });
const text = recall.content.map((c) => c.text).join('\n');
const hits = facts.filter((f) => text.includes(f)).length;
const own = facts.reduce((n, f) => n + countTokens(f), 0);
console.log(JSON.stringify({
  tools: list.tools.length, listBytes: Buffer.byteLength(tools), listTokens: countTokens(tools), instructions: countTokens(client.getInstructions() ?? ''),
  hits, recallBytes: Buffer.byteLength(text), recallTokens: countTokens(text), structuredBytes: Buffer.byteLength(JSON.stringify(recall.structuredContent ?? '')) - 2,
  factTokens: own, ratio: +(countTokens(text) / own).toFixed(3),
}));
await client.close();
