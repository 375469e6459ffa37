// A long working session of two coding agents in two worktrees of one repository, and of a third in another repository,
// by real clients of the TypeScript SDK. Each step says what its answer must have, or must not have. The transcript is
// for people: to see what is said wrong, too long, or misleading.
//
//	node hour.mjs '{"root": folder with node_modules, "memctl": path, "dir": an empty folder}' > transcript
//
// The exit status is 1 if an answer is not as it must be.
import { createRequire } from 'node:module';
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const job = JSON.parse(process.argv[2]);
const require = createRequire(job.root + '/package.json');
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { ListRootsRequestSchema } = require('@modelcontextprotocol/sdk/types.js');
let countTokens = (s) => Math.ceil(s.length / 4);
try { countTokens = require('gpt-tokenizer/encoding/o200k_base').countTokens; } catch { /* about */ }

const git = (cwd, ...args) => execFileSync('git', ['-c', 'user.name=x', '-c', 'user.email=x@example.org', ...args],
  { cwd, stdio: 'pipe' });
const work = join(job.dir, 'work');
for (const repo of ['shop', 'infra']) {
  mkdirSync(join(work, repo), { recursive: true });
  git(join(work, repo), 'init', '-q');
  writeFileSync(join(work, repo, 'README'), repo + '\n');
  git(join(work, repo), 'add', '.');
  git(join(work, repo), 'commit', '-q', '-m', 'begin');
}
git(join(work, 'shop'), 'worktree', 'add', '-q', '../shop-tax', '-b', 'tax');
const store = join(job.dir, 'store');
const env = { ...process.env, XDG_STATE_HOME: join(job.dir, 'state'), VARVE_STORE: '', MEMORY_FILE_PATH: '',
  VARVE_EMBED_URL: '' };
const memctl = (...args) => execFileSync(job.memctl, [...args, '--store', store], { env, encoding: 'utf8' });
memctl('init', '-q');

let calls = 0, tokens = 0, bad = 0;
const long = [];

class Agent {
  constructor(name, cwd, o = {}) { Object.assign(this, { name, cwd, roots: o.roots, tools: o.tools ?? [] }); }
  async connect(as = this.name) {
    this.client = new Client({ name: as, version: '2.1' }, this.roots ? { capabilities: { roots: { listChanged: true } } } : {});
    if (this.roots) {
      this.client.setRequestHandler(ListRootsRequestSchema, async () => ({ roots: this.roots.map((r) => ({ uri: 'file://' + r })) }));
    }
    this.transport = new StdioClientTransport({ command: job.memctl, args: ['mcp', '--store', store, ...this.tools], env,
      cwd: this.cwd, stderr: 'pipe' });
    await this.client.connect(this.transport);
    console.log(`\n=== ${as} connects in ${this.cwd.slice(work.length + 1)}`);
    return this;
  }
  // say calls a tool. has and not are what the answer must, and must not, have; error: it must be one.
  async say(tool, args, { has = [], not = [], error = false, most = 0 } = {}) {
    const r = await this.client.callTool({ name: tool, arguments: args });
    const text = r.content.map((c) => c.text).join('\n');
    const n = countTokens(text);
    calls++;
    tokens += n + countTokens(JSON.stringify(args));
    if (n > 300) long.push(`${tool} ${n}`);
    console.log(`\n${this.name}> ${tool} ${JSON.stringify(args)}\n${r.isError ? '! ' : ''}${text}`);
    const wrong = [];
    for (const h of [].concat(has)) if (!(h instanceof RegExp ? h.test(text) : text.includes(h))) wrong.push(`lacks ${h}`);
    for (const h of [].concat(not)) if (h instanceof RegExp ? h.test(text) : text.includes(h)) wrong.push(`has ${h}`);
    if (!!r.isError !== error) wrong.push(r.isError ? 'is an error' : 'is no error');
    if (most && n > most) wrong.push(`${n} tokens, at most ${most}`);
    for (const w of wrong) { bad++; console.log(`### WRONG: ${w}`); }
    return text;
  }
  id(text) { return /\[(…?[^ \]*]+)/.exec(text)?.[1]; }
  async end() { await this.client.close(); }
}

const shop = join(work, 'shop'), tax = join(work, 'shop-tax'), infra = join(work, 'infra');
const a = await new Agent('claude-code', shop, { roots: [shop] }).connect();
const b = await new Agent('cursor', tax).connect();
const c = await new Agent('codex', infra).connect();

// The first day: nothing is there, and things are told.
await a.say('context', { task: 'set up the checkout service' }, { has: 'nothing', most: 40 });
await a.say('remember', { text: 'Ada prefers short answers without emoji.', category: 'preference', scope: 'user', pin: true }, { has: 'remembered', most: 60 });
await a.say('remember', { text: 'The checkout service listens on port 8080.', key: 'checkout port', category: 'fact' });
await a.say('remember', { text: 'We chose PostgreSQL over MySQL because of row-level security.', category: 'decision', key: 'database' });
await a.say('remember', { text: 'Tests of the cart need the environment variable CART_SEED=7.', category: 'lesson', tags: ['tests', 'cart'] });
await b.say('context', { task: 'compute taxes in the checkout' }, { has: ['short answers', 'port 8080'] });
await b.say('recall', { query: 'which database do we use' }, { has: 'PostgreSQL', most: 150 });
await c.say('context', { task: 'deploy the checkout service' }, { has: 'short answers', not: ['8080', 'PostgreSQL', 'CART_SEED'] });
await c.say('recall', { query: 'checkout port' }, { has: 'nothing found', not: '8080', most: 60 });

// A correction, by the other agent.
await b.say('remember', { text: 'The checkout service listens on port 9090.', key: 'checkout port', category: 'fact' }, { has: ['replaced', '8080'] });
await a.say('recall', { query: 'on which port does checkout listen' }, { has: '9090', not: '8080' });
await a.say('history', { key: 'checkout port' }, { has: ['8080', '9090', 'cursor'] });
await a.say('undo', {}, { has: 'CART_SEED', not: '9090' });
await a.say('recall', { query: 'CART_SEED cart tests' }, { not: 'CART_SEED=7' });
await a.say('undo', {}, { has: 'CART_SEED' });
await a.say('recall', { query: 'CART_SEED cart tests' }, { has: 'CART_SEED=7' });
await b.say('update', { key: 'checkout port', old: '9090', new: '9443' }, { has: '9443' });
await b.say('undo', {}, { has: '9090' });
await a.say('recall', { query: 'checkout port' }, { has: '9090' });

// The same, said twice, and nearly the same.
await a.say('remember', { text: 'We chose PostgreSQL over MySQL because of row-level security.', category: 'decision' }, { has: ['not stored twice', 'database'], most: 60 });
const near = await b.say('remember', { text: 'We chose PostgreSQL over MySQL because of its row-level security policies.', category: 'decision' }, { has: ['near', 'forget'] });
await b.say('forget', { ids: [b.id(near)] }, { has: 'undo' });
await b.say('recall', { query: 'PostgreSQL MySQL' }, { has: 'because of row-level security', not: 'policies' });

// A contradiction without a key: the new one replaces the old one, which stays behind it.
const old = await a.say('remember', { text: 'Deployments happen on Fridays.', category: 'process' });
const now = await b.say('remember', { text: 'Deployments happen on Tuesdays, never on Fridays.', category: 'process', replaces: b.id(old) });
const both = await a.say('recall', { query: 'when do deployments happen' }, { has: ['Tuesdays'] });
if (both.includes('Deployments happen on Fridays.') && both.indexOf('Tuesdays') > both.indexOf('Deployments happen on Fridays.')) { bad++; console.log('### WRONG: the stale fact comes first'); }
await a.say('context', { task: 'plan a deployment' }, { has: 'Tuesdays' });

// Times.
await a.say('remember', { text: 'The incident with the double charge happened at night.', happened: 'yesterday', category: 'incident' });
await a.say('remember', { text: 'The load test reached 900 orders a second.', happened: '3 days ago', category: 'fact' });
await a.say('recall', { query: 'what happened yesterday?' }, { has: 'double charge', not: '900 orders' });
await a.say('recent', { when: 'yesterday' }, { has: 'double charge' });
await b.say('recent', { when: 'today', writer: 'claude-code', limit: 3 }, { has: 'written or happened', not: 'Tuesdays' });
await b.say('recall', { query: 'load test', since: 'last week' }, { has: '900 orders' });
await a.say('recall', { query: 'what did I tell you in March?' }, { not: 'double charge', most: 60 });

// Slips of a model.
await a.say('recall', { question: 'port' }, { error: true, has: 'query', most: 60 });
await a.say('remember', { content: 'x' }, { error: true, has: 'text' });
await a.say('forget', { ids: ['nonsense'], session_id: 's' }, { error: true, has: 'session' });
await a.say('recall', { query: 'port', limit: '2', session: null, tags: '[]' }, { has: '9090' });
await a.say('update', { id: 'zzzzzz', text: 'x' }, { error: true });
await a.say('update', { key: 'checkout prot', text: 'The checkout service listens on port 9090.' }, { error: true });
await a.say('remember', { text: '' }, { error: true });
await a.say('recall', { query: '' }, { error: true, has: 'recent', most: 60 });
await a.say('recall', { query: 'checkout', limit: 500 }, { error: true, has: '100' });
await a.say('undo', { version: 1 }, { error: true });

// The third agent has the same key, and a fact for all.
await c.say('remember', { text: 'The checkout service of the cluster is behind port 443.', key: 'checkout port' }, { has: 'remembered', not: ['9090', '8080'] });
await c.say('recall', { query: 'checkout port' }, { has: '443', not: '9090' });
await a.say('recall', { query: 'checkout port' }, { has: '9090', not: '443' });
await c.say('remember', { text: 'Times in reports to Ada are in UTC.', scope: 'user', key: 'time zone' });
await a.say('recall', { query: 'time zone of reports' }, { has: ['UTC', '*'] });
await a.say('remember', { text: 'Times in reports of the shop are in CET.', key: 'time zone' }, { has: 'hides the shared' });
await a.say('recall', { query: 'times in reports' }, { has: 'CET', not: 'UTC' });
await c.say('recall', { query: 'times in reports' }, { has: 'UTC', not: 'CET' });

// A day's work: many small facts, and paging through them while some go.
const fact = (i) => `Step ${i} of the migration moved table t${i} to schema billing.`;
for (let i = 1; i <= 25; i++) await a.say('remember', { text: fact(i), session: 'migration', category: 'progress', tags: ['step'] }, { most: 150 });
const page = await b.say('recall', { query: 'migration table schema billing', session: 'migration', limit: 10 }, { most: 420 });
const first = page.split('\n').map((l) => b.id(l)).filter(Boolean).slice(0, 3);
await b.say('forget', { ids: first }, { has: 'forgot' });
const cursor = /cursor (.+)$/m.exec(page)?.[1];
const second = await b.say('recall', { query: 'migration table schema billing', session: 'migration', limit: 10, cursor }, {});
const third = await b.say('recall', { query: 'migration table schema billing', session: 'migration', limit: 10, cursor: /cursor (.+)$/m.exec(second)?.[1] }, {});
const steps = new Set([...(page + second + third).matchAll(/Step (\d+) /g)].map((m) => m[1]));
if (steps.size !== 25) { bad++; console.log(`### WRONG: ${steps.size} of 25 steps on three pages`); }
await b.say('undo', {}, { has: 'undeleted' });
await b.say('context', { task: 'finish the migration of the billing tables', budget: 200 }, { most: 200 });
await b.say('context', { task: 'finish the migration of the billing tables', session: 'migration' }, { most: 1500 });
await b.say('recall', { query: 'step 7' }, { has: 't7' });
await a.say('update', { id: a.id(await a.say('recall', { query: '"table t9"', limit: 1 })), append: 'It needed a lock of 3 s.', tags: ['step', 'slow'] }, { has: '3 s' });
await b.say('recall', { query: 'which step was slow', tags: ['slow'] }, { has: 't9' });

// A server dies in the middle; the client connects again.
await a.say('remember', { text: 'The tax rates come from the file rates.csv.', key: 'tax rates' });
process.kill(a.transport.pid, 'SIGKILL');
await b.say('recall', { query: 'tax rates' }, { has: 'rates.csv' });
await b.say('remember', { text: 'Rounding of taxes is per line, not per order.', category: 'decision' });
await a.connect();
await a.say('recall', { query: 'tax' }, { has: ['rates.csv', 'per line'] });
await a.say('undo', {}, { error: true, has: 'since you connected' });
await a.say('forget', { key: 'tax rates' }, { has: 'rates.csv' });
await a.say('undo', {}, { has: 'rates.csv' });
await a.end();
await a.connect('claude-desktop');
await a.say('history', { key: 'tax rates' }, { has: ['claude-code', 'rates.csv'] });
await a.say('undo', {}, { error: true });

// The agent turns to the other repository.
a.roots = [infra];
await a.client.sendRootsListChanged();
await a.say('recall', { query: 'checkout port' }, { has: ['443', 'infra'], not: '9090' });
await a.say('remember', { text: 'The cluster has three nodes.', key: 'nodes' });
await c.say('recall', { query: 'how many nodes' }, { has: 'three' });
a.roots = [shop];
await a.client.sendRootsListChanged();
await a.say('recall', { query: 'how many nodes has the cluster' }, { not: 'three nodes' });
await a.say('undo', {}, { error: true, has: 'does not see', not: 'three nodes' });
await a.say('remember', { text: 'The shop has a staging host.' });
await a.say('undo', {}, { has: 'staging' });

// A person corrects by hand what the agents know.
memctl('put', 'Standup is at 10:15.', '--key', 'standup', '-q');
await a.say('recall', { query: 'when is standup' }, { has: '10:15' });
await a.say('remember', { text: 'Standup is at 9:30.', key: 'standup', scope: 'user' }, { has: 'replaced' });
await b.say('recall', { query: 'standup' }, { has: '9:30', not: '10:15' });

// Working memory and notes, for who wants them.
const d = await new Agent('claude-code', tax, { tools: ['--tools', 'all'] }).connect();
await d.say('working_set', { session: 'tax', key: 'step', value: '3' });
await d.say('working_get', { session: 'tax' }, { has: 'step' });
await d.say('memory', { command: 'create', path: '/memories/plan.md', file_text: '# Plan\n\n1. rates\n2. rounding\n' }, { has: 'created' });
await d.say('memory', { command: 'str_replace', path: '/memories/plan.md', old_str: '2. rounding', new_str: '2. rounding (per line)' }, { has: 'per line' });
await d.say('memory', { command: 'view', path: '/memories' }, { has: 'plan.md' });
await d.say('undo', {}, { has: '/memories/plan.md' });
await d.say('forget', { key: 'no such key' }, { error: true, has: 'recall' });
await d.say('recall', { query: 'zebra quantum flamingo' }, { has: 'nothing found', most: 60 });

for (const x of [a, b, c, d]) await x.end();
console.log(`\n${calls} calls, ${tokens} tokens, ${bad} wrong; more than 300 tokens: ${long.join(', ') || 'none'}`);
console.log(memctl('verify'));
process.exit(bad > 0 ? 1 : 0);
