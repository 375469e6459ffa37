// drive.mjs calls all methods of the API by the client for Node: node drive.mjs PACKAGE URL KEY
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [root, baseURL, apiKey] = process.argv.slice(2);
const { default: Anthropic } = await import(
	pathToFileURL(createRequire(root + '/x.js').resolve('@anthropic-ai/sdk')).href);
const client = new Anthropic({ baseURL, apiKey, maxRetries: 0 });
const stores = client.beta.memoryStores;
const hash = (text) => createHash('sha256').update(text).digest('hex');
const all = async (list) => { const items = []; for await (const item of list) items.push(item); return items; };
const fails = async (status, type, call) => {
	await assert.rejects(call, (e) => {
		assert.equal(e.status, status, e.message);
		assert.equal(e.error?.error?.type, type);
		assert.ok(e.requestID);
		return true;
	});
};

let store = await stores.create({ name: 'node', description: 'd', metadata: { a: '1', b: '2' } });
assert.match(store.id, /^memstore_/);
store = await stores.update(store.id, { name: 'by node', metadata: { a: null, c: '3' } });
assert.deepEqual(store.metadata, { b: '2', c: '3' });
assert.deepEqual(await stores.retrieve(store.id), store);
for (let i = 0; i < 5; i++) await stores.create({ name: `more ${i}` });
assert.equal((await all(stores.list({ limit: 2 }))).filter((s) => s.name.startsWith('more ')).length, 5);

const memory_store_id = store.id;
const memory = await stores.memories.create(store.id, { path: '/a.md', content: 'one' });
assert.equal(memory.content, null);
assert.equal(memory.content_sha256, hash('one'));
let got = await stores.memories.retrieve(memory.id, { memory_store_id });
assert.equal(got.content, 'one');
got = await stores.memories.update(memory.id, { memory_store_id, content: 'two', path: '/b/c.md', view: 'full',
	precondition: { type: 'content_sha256', content_sha256: hash('one') } });
assert.equal(got.content + got.path, 'two/b/c.md');
await fails(409, 'memory_precondition_failed_error', () => stores.memories.update(memory.id, { memory_store_id,
	content: 'x', precondition: { type: 'content_sha256', content_sha256: hash('one') } }));
await fails(409, 'memory_path_conflict_error', () => stores.memories.create(store.id, { path: '/b/c.md', content: '' }));
await fails(400, 'invalid_request_error', () => stores.memories.create(store.id, { path: '/../c.md', content: '' }));
for (let i = 0; i < 45; i++) await stores.memories.create(store.id, { path: `/many/${i}`, content: `${i}` });
assert.equal((await all(stores.memories.list(store.id, { limit: 7 }))).length, 46);
const full = await all(stores.memories.list(store.id, { path_prefix: '/many/', view: 'full' }));
assert.ok(full.length === 45 && full.every((m) => m.path === `/many/${m.content}`));
assert.deepEqual((await all(stores.memories.list(store.id, { depth: 1 }))).map((m) => m.type + m.path).sort(),
	['memory_prefix/b/', 'memory_prefix/many/']);

const versions = await all(stores.memoryVersions.list(store.id, { limit: 10 }));
assert.equal(versions.length, 47);
const first = await stores.memoryVersions.retrieve(memory.memory_version_id, { memory_store_id });
assert.equal(first.content + first.operation + first.created_by.type, 'onecreatedapi_actor');
const redacted = await stores.memoryVersions.redact(first.id, { memory_store_id });
assert.ok(redacted.redacted_at && redacted.content === null && redacted.path === null);
await fails(409, 'memory_precondition_failed_error', () => stores.memories.delete(memory.id,
	{ memory_store_id, expected_content_sha256: hash('one') }));
assert.equal((await stores.memories.delete(memory.id, { memory_store_id, expected_content_sha256: hash('two') })).type,
	'memory_deleted');
assert.deepEqual((await all(stores.memoryVersions.list(store.id, { memory_id: memory.id }))).map((v) => v.operation)
	.sort(), ['created', 'deleted', 'modified']);
await fails(404, 'not_found_error', () => stores.memories.retrieve(memory.id, { memory_store_id }));
assert.ok((await stores.archive(store.id)).archived_at);
await fails(400, 'invalid_request_error', () => stores.memories.create(store.id, { path: '/x', content: '' }));
assert.equal((await all(stores.list())).filter((s) => s.id === store.id).length, 0);
assert.equal((await all(stores.list({ include_archived: true }))).filter((s) => s.id === store.id).length, 1);
for (const beta of ['managed-agents-2026-04-01', 'agent-memory-2026-07-22']) {
	assert.equal((await stores.retrieve(store.id, { betas: [beta] })).id, store.id);
}
assert.equal((await stores.delete(store.id)).type, 'memory_store_deleted');
await fails(404, 'not_found_error', () => stores.retrieve(store.id));
console.log('all fourteen methods answered');
