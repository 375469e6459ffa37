// Forty tasks over several sessions, by a scripted client over the TypeScript SDK: what an agent has to do when it
// corrects, replaces, takes back, asks by time, changes the project, and meets a contradiction. The script does with
// each server the best that its tools allow. Prints the right answers and the tokens as JSON.
//
//	node tasks.mjs '{"root": folder with node_modules, "kind": "eight"|"four"|"reference", "command": …, "args": […],
//	  "memctl": for what a person does with the store, "dir": an empty folder}'
import { createRequire } from 'node:module';
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const job = JSON.parse(process.argv[2]);
const require = createRequire(job.root + '/package.json');
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
let countTokens = (s) => Math.ceil(s.length / 4);
try { countTokens = require('gpt-tokenizer/encoding/o200k_base').countTokens; } catch { /* about */ }

const eight = job.kind === 'eight', reference = job.kind === 'reference';
const day = (ago) => new Date(Date.now() - ago * 86400000).toISOString();
let number = 0;

// World is one task: a store, two repositories, and what was said.
class World {
  constructor() {
    this.dir = join(job.dir, String(++number));
    this.store = join(this.dir, 'store');
    this.tokens = { list: 0, calls: 0 };
    this.open = [];
    for (const repo of ['one', 'two']) {
      mkdirSync(join(this.dir, repo, '.git'), { recursive: true });
      writeFileSync(join(this.dir, repo, '.git', 'HEAD'), 'ref: refs/heads/main\n');
    }
    if (!reference) execFileSync(job.memctl, ['init', this.store, '-q']);
  }
  // person is what a person does with the store, by the command.
  person(...args) {
    if (!reference) execFileSync(job.memctl, [...args, '--store', this.store, '-q']);
  }
  async session(repo = 'one', name = 'agent') {
    const env = { ...process.env, XDG_STATE_HOME: join(this.dir, 'state'), VARVE_STORE: '', MEMORY_FILE_PATH: reference ? join(this.dir, 'memory.jsonl') : '' };
    const args = reference ? job.args : [...job.args, '--store', this.store];
    const client = new Client({ name, version: '1' });
    await client.connect(new StdioClientTransport({ command: job.command, args, env, cwd: join(this.dir, repo), stderr: 'ignore' }));
    const list = await client.listTools();
    this.tokens.list += countTokens(JSON.stringify(list.tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))));
    this.open.push(client);
    return new Agent(this, client);
  }
  async end() { await Promise.all(this.open.map((c) => c.close())); }
}

// Agent knows the tools of its server.
class Agent {
  constructor(world, client) { this.world = world; this.client = client; }
  async call(name, args) {
    const r = await this.client.callTool({ name, arguments: args });
    const text = r.content.map((c) => c.text).join('\n');
    this.world.tokens.calls += countTokens(JSON.stringify(args)) + countTokens(text);
    return { text, error: !!r.isError };
  }
  id(text) {
    if (eight) return /\[(…?[^ \]*]+)/.exec(text)?.[1];
    try { const v = JSON.parse(text); return v.id ?? v.memories?.[0]?.id; } catch { return undefined; }
  }
  // remember returns the id; of the reference server the entity.
  async remember(text, o = {}) {
    if (reference) {
      const name = o.key ?? text.split(' ').slice(0, 3).join(' ');
      const made = JSON.parse((await this.call('create_entities', { entities: [{ name, entityType: o.category ?? 'fact', observations: [text] }] })).text);
      if (made.length === 0) {
        if (o.key) { // one value
          const was = JSON.parse((await this.call('open_nodes', { names: [name] })).text).entities[0].observations;
          await this.call('delete_observations', { deletions: [{ entityName: name, observations: was }] });
        }
        await this.call('add_observations', { observations: [{ entityName: name, contents: [text] }] });
      }
      return { name, text };
    }
    const args = { text };
    for (const n of ['key', 'session', 'category', 'tags']) if (o[n]) args[n] = o[n];
    if (eight) for (const n of ['scope', 'pin', 'replaces']) if (o[n]) args[n] = o[n];
    return { id: this.id((await this.call('remember', args)).text), text };
  }
  // recall returns the text of the answer.
  async recall(query, o = {}) {
    if (!reference) return (await this.call('recall', { query, ...o })).text;
    let best = '';
    for (const q of [query, ...query.split(' ').filter((w) => w.length > 3)]) {
      best = (await this.call('search_nodes', { query: q })).text;
      if (JSON.parse(best).entities.length > 0) return best;
    }
    return best;
  }
  async correct(m, text, query) {
    if (eight) return this.call('update', { id: m?.id ?? this.id(await this.recall(query)), text });
    if (reference) {
      const e = JSON.parse(await this.recall(query)).entities[0];
      if (!e) return undefined;
      await this.call('delete_observations', { deletions: [{ entityName: e.name, observations: e.observations }] });
      return this.call('add_observations', { observations: [{ entityName: e.name, contents: [text] }] });
    }
    await this.call('forget', { ids: [m?.id ?? this.id(await this.recall(query))] });
    return this.remember(text);
  }
  async forget(m, query) {
    if (reference) {
      const e = JSON.parse(await this.recall(query)).entities[0];
      return this.call('delete_entities', { entityNames: [m?.name ?? e?.name ?? ''] });
    }
    const id = m?.id ?? this.id(await this.recall(query));
    return this.call('forget', { ids: [id] });
  }
  // undo takes back the last change; where there is no tool for it, what the agent still knows how to.
  async undo(made) {
    if (eight) return this.call('undo', {});
    if (made) return this.forget(made, made.text);
    return undefined;
  }
  async when(words) {
    if (eight) return (await this.call('recall', { query: `what happened ${words}?` })).text;
    return this.recall(`what happened ${words}?`);
  }
}

// has: all that must be in an answer; no: what must not, or not before.
const judge = (text, want, no = []) => {
  const at = text.indexOf(want);
  return at >= 0 && no.every((n) => !text.includes(n) || text.indexOf(n) > at);
};
const without = (text, ...no) => no.every((n) => !text.includes(n));
const count = (text, s) => text.split(s).length - 1;

const tasks = [];
const task = (group, run) => tasks.push({ group, run });

// 1: correct a fact in a later session
for (const [old, now, query, want, stale] of [
  ['The gateway listens on port 8080', 'The gateway listens on port 9090', 'gateway port', '9090', '8080'],
  ['Ada prefers long answers with examples', 'Ada prefers short answers without examples', 'answers Ada', 'short', 'long'],
  ['Releases are tagged by Bob every Friday', 'Releases are tagged by Eve every Monday', 'Releases tagged', 'Eve', 'Bob'],
  ['The staging database is called blue', 'The staging database is called green', 'staging database', 'green', 'blue'],
  ['Invoices are rounded up to whole euros', 'Invoices are rounded to cents', 'Invoices rounded', 'cents', 'whole'],
]) {
  task('correct', async (w) => {
    await (await w.session()).remember(old);
    await (await w.session()).correct(undefined, now, query);
    return judge(await (await w.session()).recall(query), want, []) && without(await (await w.session()).recall(query), stale);
  });
}
// 2: one value for a key, whatever wrote it
for (const [key, first, second, want, stale, by] of [
  ['deploy-day', 'deploys happen on Monday', 'deploys happen on Friday', 'Friday', 'Monday', 'person'],
  ['editor', 'the editor is vim', 'the editor is helix', 'helix', 'vim', 'agent'],
  ['language', 'the user speaks German in the office', 'the user speaks English in the office', 'English', 'German', 'person'],
  ['budget', 'the budget of the year is 400', 'the budget of the year is 500', '500', '400', 'agent'],
  ['owner', 'the owner of billing is Kim', 'the owner of billing is Lee', 'Lee', 'Kim', 'other category'],
]) {
  task('replace', async (w) => {
    if (by === 'person' && !reference) w.person('put', first, '--key', key);
    else await (await w.session()).remember(first, { key, category: by === 'other category' ? 'fact' : undefined });
    await (await w.session('one', 'second')).remember(second, { key, category: by === 'other category' ? 'decision' : undefined });
    const answer = await (await w.session()).recall(second.split(' ').slice(0, 3).join(' '));
    return judge(answer, want) && without(answer, stale);
  });
}
// 3: take back
task('undo', async (w) => {
  const a = await w.session();
  await a.forget(await a.remember('the licence key is in the safe'), 'licence');
  await a.undo();
  return judge(await a.recall('licence safe'), 'in the safe');
});
task('undo', async (w) => {
  const a = await w.session();
  const m = await a.remember('the intern starts in May', { key: 'intern' });
  await a.remember('the intern starts in June', { key: 'intern' });
  await a.undo(eight ? undefined : m);
  return judge(await a.recall('intern starts'), 'May', ['June']);
});
task('undo', async (w) => {
  const a = await w.session();
  await a.remember('the parser is hand-written');
  const wrong = await a.remember('the parser is generated by a tool');
  await a.undo(wrong);
  const answer = await a.recall('parser');
  return judge(answer, 'hand-written') && without(answer, 'generated');
});
task('undo', async (w) => { // of one's own, though another has written since
  const a = await w.session(), b = await w.session('one', 'other');
  const wrong = await a.remember('the server room is on floor 3');
  await b.remember('the meeting room is on floor 5');
  await a.undo(wrong);
  const answer = await a.recall('room floor');
  return judge(answer, 'floor 5') && without(answer, 'floor 3');
});
task('undo', async (w) => {
  const a = await w.session();
  const m = await a.remember('the mascot is a heron');
  await a.correct(m, 'the mascot is a stork', 'mascot');
  await a.undo();
  return judge(await a.recall('mascot'), 'heron', ['stork']);
});
// 4: by time
for (const [ago, words, want] of [
  [1, 'yesterday', 'Ada left the team'], [0, 'today', 'the build broke'], [3, '3 days ago', 'the contract was signed'],
  [40, `in ${new Date(Date.now() - 40 * 86400000).toLocaleString('en', { month: 'long' })}`, 'the office moved'],
  [7, 'last week', 'the audit began'],
]) {
  task('time', async (w) => {
    const others = [15, 90, 200].map((n) => [n, `something else of ${n} days before`]);
    for (const [n, text] of [...others, [ago, want]]) {
      if (reference) await (await w.session()).remember(`${day(n).slice(0, 10)}: ${text}`);
      else w.person('put', text, '--timestamp', day(n));
    }
    if (eight && ago === 0) await (await w.session()).remember(want);
    const answer = await (await w.session()).when(words);
    // All but the contract and such were written today.
    return judge(answer, want) && (ago === 0 || without(answer, '90 days before', '200 days before'));
  });
}
// 5: projects
task('project', async (w) => {
  await (await w.session('one')).remember('the API key rotates monthly in this repository');
  const answer = await (await w.session('two')).recall('API key rotates');
  return without(answer, 'monthly');
});
task('project', async (w) => {
  await (await w.session('one')).remember('tests run with make check', { key: 'tests' });
  await (await w.session('two')).remember('tests run with npm test', { key: 'tests' });
  const a = await (await w.session('one')).recall('tests run'), b = await (await w.session('two')).recall('tests run');
  return judge(a, 'make check') && without(a, 'npm test') && judge(b, 'npm test') && without(b, 'make check');
});
task('project', async (w) => {
  await (await w.session('one')).remember('the user is called Ada and likes tea', { scope: 'user' });
  return judge(await (await w.session('two')).recall('user called'), 'Ada');
});
task('project', async (w) => {
  const m = await (await w.session('one')).remember('the port of the service is 7000');
  await (await w.session('two')).forget(m, 'port');
  return judge(await (await w.session('one')).recall('port service'), '7000');
});
task('project', async (w) => {
  await (await w.session('one')).remember('the linter forbids tabs');
  const said = await (await w.session('two')).call(reference ? 'create_entities' : 'remember',
    reference ? { entities: [{ name: 'linter', entityType: 'fact', observations: ['the linter forbids tabs!'] }] } : { text: 'the linter forbids tabs!' });
  return without(said.text, 'tabs"') && judge(await (await w.session('two')).recall('linter'), 'tabs!') &&
    without((await (await w.session('two')).recall('linter')).replaceAll('tabs!', ''), 'tabs');
});
// 6: contradictions: what was said last is first
for (const [first, second, query, want, stale] of [
  ['The cluster runs on nine nodes', 'The cluster runs on four nodes', 'cluster nodes', 'four', 'nine'],
  ['Support answers within two days', 'Support answers within one day', 'Support answers', 'one day', 'two days'],
  ['The logo of the firm is red', 'The logo of the firm is teal', 'logo firm', 'teal', 'red'],
  ['Backups are kept for a month', 'Backups are kept for a year', 'Backups kept', 'a year', 'a month'],
  ['The release train leaves on Tuesday', 'The release train leaves on Thursday', 'release train', 'Thursday', 'Tuesday'],
]) {
  task('contradiction', async (w) => {
    await (await w.session()).remember(first);
    await (await w.session()).remember(second);
    return judge(await (await w.session()).recall(query), want, [stale]);
  });
}
// 7: once, and nothing skipped
for (const text of ['the coffee machine is on floor two', 'merge requests need two approvals', 'the wifi password changes on Sundays']) {
  task('once', async (w) => {
    await (await w.session()).remember(text);
    await (await w.session()).remember(text);
    return count(await (await w.session()).recall(text.split(' ').slice(0, 3).join(' ')), text) === 1;
  });
}
for (const size of [3, 5]) {
  task('once', async (w) => {
    const a = await w.session();
    for (let i = 0; i < 3 * size; i++) await a.remember(`shelf number ${i} holds ${'books '.repeat(1 + i % 3)}`);
    if (reference) return count(await a.recall('shelf'), 'holds') === 3 * size;
    const seen = new Set();
    let cursor;
    do {
      const { text } = await a.call('recall', { query: 'shelf', limit: size, ...(cursor ? { cursor } : {}) });
      const found = [...text.matchAll(/shelf number (\d+) /g)].map((m) => m[1]);
      found.forEach((n) => seen.add(n));
      const ids = eight ? [...text.matchAll(/\[(…[0-9a-f]{10})/g)].map((m) => m[1]) : JSON.parse(text).memories.map((m) => m.id);
      if (ids.length > 0) await a.call('forget', { ids });
      cursor = eight ? /more: cursor (.*)/.exec(text)?.[1] : JSON.parse(text).next;
    } while (cursor);
    return seen.size === 3 * size;
  });
}
// 8: as models call
task('calls', async (w) => {
  const a = await w.session();
  const m = await a.remember('the vault is on the left', { session: 's2' });
  if (reference) return judge(await a.recall('vault'), 'left');
  await a.call('forget', { ids: [m.id], session_id: 's1' });
  return judge(await a.recall('vault'), 'left');
});
task('calls', async (w) => {
  const a = await w.session();
  await a.remember('the tram stops at the gate');
  if (reference) return judge(await a.recall('tram'), 'gate');
  return judge((await a.call('recall', { query: 'tram', limit: '5', session: null })).text, 'gate');
});
task('calls', async (w) => {
  const a = await w.session();
  const said = reference ? await a.call('create_entities', { entities: '[{"name":"x","entityType":"t","observations":["the rain is warm"]}]' })
    : await a.call('remember', { text: 'the rain is warm', tags: '["weather"]' });
  return !said.error && judge(await a.recall('rain'), 'warm');
});
task('calls', async (w) => { // by what an answer shows of an id
  await (await w.session()).remember('the door code is 1234');
  const a = await w.session();
  const m = { id: a.id(await a.recall('door code')) };
  await a.forget(reference ? undefined : m, 'door');
  return without(await a.recall('door code'), '1234');
});
task('calls', async (w) => { // what to know at the start, within a budget
  const a = await w.session();
  await a.remember('Never push to main', { pin: true });
  for (let i = 0; i < 30; i++) await a.remember(`note ${i} of the standup about ticket ${i * 7}`);
  const b = await w.session();
  const { text } = eight ? await b.call('context', { task: 'fix ticket 203', budget: 400 })
    : reference ? await b.call('read_graph', {}) : await b.call('list_memories', { limit: 30 });
  if (process.env.SHOW) console.error(countTokens(text), text);
  return judge(text, 'Never push') && judge(text, 'ticket 203') && countTokens(text) <= 400;
});

const results = { kind: job.kind, right: 0, of: tasks.length, groups: {}, wrong: [], tokens: { list: 0, calls: 0 } };
for (const [i, t] of tasks.entries()) {
  const w = new World();
  let ok = false, why = '';
  try { ok = await t.run(w); } catch (e) { why = String(e).slice(0, 200); }
  await w.end();
  const g = (results.groups[t.group] ??= [0, 0]);
  g[1]++;
  if (ok) { results.right++; g[0]++; } else results.wrong.push(`${i + 1} ${t.group} ${why}`);
  results.tokens.list += w.tokens.list;
  results.tokens.calls += w.tokens.calls;
}
console.log(JSON.stringify(results));
