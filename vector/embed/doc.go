// Package embed requests vectors from embedding services over HTTP. Embedder.Embed can be used as varve.Options.Embed;
// the store itself does not depend on this package.
//
// # Protocols
//
// OpenAI's protocol, which most servers support:
//
//	POST <base>/v1/embeddings          Authorization: Bearer <key>, if there is one
//	{"model":"…","input":["…",…],"encoding_format":"float"[,"dimensions":512]}
//	{"data":[{"index":0,"embedding":[…]},…]}
//
// Ollama's protocol:
//
//	POST <base>/api/embed
//	{"model":"…","input":["…",…],"truncate":true[,"dimensions":512]}
//	{"embeddings":[[…],…]}
//
// If no protocol is given, the URL decides: one that ends in /api or /api/embed, or has Ollama's
// port 11434 and no path, uses Ollama's; all others use OpenAI's. /v1 and the end points themselves
// may be part of the URL.
//
// # Failures
//
// Transient failures are retried, after 0.5 s, 1 s, 2 s and so on, or when the server says
// (Retry-After): no connection, no answer in time, 408, 425, 429, 500, 502, 503, 504, 529. A batch
// that is refused for its size (413, or 400, 422 and 500 with words to that effect) is halved; a single
// text is cut to its first half, at most 8 times, unless NoTruncate is set. So a model embeds the
// beginning of a text that is too long, as Ollama's models do by themselves. Everything else is an
// *Error.
//
// Redirects are not followed: they would send the texts and the key to another server. No error
// contains the key.
//
// # Environment
//
// FromEnv reads
//
//	VARVE_EMBED_URL         the service; without it nothing is sent
//	VARVE_EMBED_MODEL       the service's name for the model
//	VARVE_EMBED_KEY         the key, if the service requires one
//	VARVE_EMBED_DIMENSIONS  how many dimensions to request; an answer with another number is refused
//
// OPENAI_API_KEY is the key when VARVE_EMBED_KEY is not set and the service is OpenAI's own; it is
// sent nowhere else. Setting it alone sends nothing: memories leave the machine only if the user
// names a service.
package embed
