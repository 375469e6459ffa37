// Command locomo measures how well search finds answers. It puts the conversations of LoCoMo (long-term
// conversational memory; locomo10.json, which is not part of this project) into a store, one memory for each
// turn, and searches for its questions. It prints for how many questions a turn that contains the answer is
// among the first hits.
//
//	go run ./locomo -data locomo10.json [-dir DIR] [-top 10] [-speaker] [-by words] [-language en] [-every 1] [-vectors FILE] [-template T] [-ranks]
//
// It always searches by words, and also by meaning if VARVE_EMBED_URL and VARVE_EMBED_MODEL name a service
// (see package vector/embed; vector/embed/testdata/model/server.cjs is one that needs no network). Each
// question is searched for twice: in all conversations, and in the conversation that it is about. MRR (mean
// reciprocal rank) is the mean of 1/rank of the first turn of the evidence, 0 if none is among the first hits.
//
// The content of a memory is the text of the turn or, with -speaker, "speaker: text". The id is
// <conversation>/<turn>; session, speaker and time are in the metadata.
package main
