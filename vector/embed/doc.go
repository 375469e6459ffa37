// Package embed asks embedding services for vectors, over HTTP. Its Embedder's
// Embed is what varve.Options.Embed wants; the store itself knows nothing of it.
//
// # Protocols
//
// OpenAI's, which most servers speak:
//
//	POST <base>/v1/embeddings          Authorization: Bearer <key>, if there is one
//	{"model":"…","input":["…",…],"encoding_format":"float"[,"dimensions":512]}
//	{"data":[{"index":0,"embedding":[…]},…]}
//
// Ollama's:
//
//	POST <base>/api/embed
//	{"model":"…","input":["…",…],"truncate":true[,"dimensions":512]}
//	{"embeddings":[[…],…]}
//
// The URL decides when nothing else does: one that ends in /api or /api/embed,
// or has Ollama's port 11434 and no path, is Ollama's; all others are OpenAI's.
// /v1 and the end points themselves may be part of the URL.
//
// # Failures
//
// What may pass is tried again, after 0.5 s, 1 s, 2 s and so on, or when the
// server says (Retry-After): no connection, no answer in time, 408, 425, 429, 500,
// 502, 503, 504, 529. A batch that is refused for its size (413, or 400 and 422
// with words to that effect) is halved; a single text is cut to its first half,
// at most 8 times, unless NoTruncate is set: a model sees the beginning of what is
// too long for it, as Ollama's do by themselves. Everything else is an *Error.
//
// Redirects are not followed: they would take the texts and the key elsewhere.
// No error contains the key.
//
// # Environment
//
// FromEnv reads
//
//	VARVE_EMBED_URL         the service; nothing is asked without it
//	VARVE_EMBED_MODEL       the model's name there
//	VARVE_EMBED_KEY         the key, if the service wants one
//	VARVE_EMBED_DIMENSIONS  how many dimensions to ask for; another number is refused
//
// OPENAI_API_KEY is the key when VARVE_EMBED_KEY is not set and the service is
// OpenAI's own; it is sent nowhere else. That it is set does not make anything being sent: memories
// leave the machine only if the user names a service.
package embed
