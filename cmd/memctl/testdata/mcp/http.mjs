// The client of the TypeScript SDK over HTTP: it connects with a token, lists the tools, remembers and recalls. The last
// argument is a JSON object {root, url, token, text}; stdout has what it found.
import { createRequire } from "node:module";
import path from "node:path";

const job = JSON.parse(process.argv[process.argv.length - 1]);
const require = createRequire(path.join(job.root, "package.json"));
const { Client } = await import(require.resolve("@modelcontextprotocol/sdk/client/index.js"));
const { StreamableHTTPClientTransport } = await import(
  require.resolve("@modelcontextprotocol/sdk/client/streamableHttp.js")
);

const client = new Client({ name: "typescript", version: "1.2.3" });
const transport = new StreamableHTTPClientTransport(new URL(job.url), {
  requestInit: { headers: { Authorization: `Bearer ${job.token}` } },
});
await client.connect(transport);
const { tools } = await client.listTools();
const remembered = await client.callTool({ name: "remember", arguments: { text: job.text } });
const recalled = await client.callTool({ name: "recall", arguments: { query: job.text } });
const resources = await client.listResources();
await client.close();
console.log(
  JSON.stringify({
    tools: tools.map((t) => t.name),
    failed: remembered.isError || recalled.isError || false,
    recalled: recalled.content[0].text,
    resources: resources.resources.map((r) => r.uri),
  }),
);
