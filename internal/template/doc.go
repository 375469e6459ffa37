// Package template defines which text of a memory is embedded.
//
// A template consists of parts separated by spaces. What is in braces is replaced:
//
//	{content}              the content of the memory; every template has it, once
//	{previous}             the content of the memory before it in its session, by time and id; of a long
//	                       one the last 1,024 bytes
//	{caption}              a text, or a list of texts, of its metadata; of a long one the first 1,024 bytes
//	{speaker|author|name}  the first of these that it has
//
// A part is omitted if nothing in its braces has a value: "{speaker}:" does not leave a lone colon. The
// template "{content}" results in the content itself.
//
// # Identity
//
// Vectors of one model that were made with different templates are not comparable. So the template is
// part of the name by which a store knows its model:
//
//	nomic-embed-text                              the content alone
//	nomic-embed-text as {previous} {content}      by a template
//
// The name in a store older than templates keeps its meaning. Only the name determines which template is
// in use; config.json has the one for the next re-embedding.
//
// # What a change of the previous memory does
//
// Nothing. A vector is made with the previous memory as it is at that moment. If a previous memory
// arrives later, changes or is deleted, the vectors of those after it stay, until these change
// themselves or a re-embedding makes all vectors. Own is the memory's own part of its text: when that
// changes, the memory gets another vector.
package template
