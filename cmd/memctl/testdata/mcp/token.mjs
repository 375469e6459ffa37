// Adds the token in VARVE_TOKEN to each request of a program that has no option for headers. It is loaded by
// node --import. The program is one of @modelcontextprotocol/conformance, which sends by fetch, undici and http.request.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import http from 'node:http';

const token = 'Bearer ' + process.env.VARVE_TOKEN;

// The dispatcher of the package undici is that of fetch, too.
const undici = createRequire(pathToFileURL(process.argv[1]))('undici');
const list = headers => {
  if (Array.isArray(headers)) return headers;
  return [...(headers?.[Symbol.iterator] ? headers : Object.entries(headers ?? {}))].flat();
};
undici.setGlobalDispatcher(new undici.Agent().compose(next => (options, handler) =>
  next({ ...options, headers: [...list(options.headers), 'authorization', token] }, handler)));

const { request } = http;
http.request = (...args) => {
  const r = request(...args);
  r.setHeader('authorization', token);
  return r;
};
