// Package template says which text of a memory is embedded.
//
// A template is pieces with a space between them. What is in braces is replaced:
//
//	{content}              the content of the memory; every template has it, once
//	{previous}             the content of the memory before it in its session, by time and id; of a long
//	                       one the last 1,024 bytes
//	{caption}              a text, or a list of texts, of its metadata; of a long one the first 1,024 bytes
//	{speaker|author|name}  the first of these that it has
//
// A piece of which nothing in braces has a value is left out: "{speaker}:" gives no lone colon. The
// template "{content}" gives the content as it is.
//
// # Identity
//
// Vectors of one model that were made by different templates are not comparable in the way that those of
// one template are. So the template is part of the name by which a store knows its model:
//
//	nomic-embed-text                              the content alone
//	nomic-embed-text as {previous} {content}      by a template
//
// The name of a store from before there were templates says what it always did. Only the name says which
// template is in use; config.json says which one the next re-embedding takes.
//
// # What a change of the previous memory does
//
// Nothing. A vector is made of the memory before as it is at that moment. One that arrives later, changes or
// is deleted does not change the vectors of those behind it, until they change themselves or a re-embedding
// makes all vectors. Own is what a memory itself gives to its text: when that changes, it gets
// another vector.
package template
