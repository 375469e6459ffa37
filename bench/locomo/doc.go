// Command locomo puts the conversations of LoCoMo (long-term conversational
// memory; locomo10.json, which is not part of this project) into a store, one
// memory a turn, and asks its questions: for how many is a turn that holds the
// answer among the first hits?
//
//	go run ./locomo -data locomo10.json [-dir DIR] [-top 10] [-speaker] [-by words] [-language en] [-every 1] [-vectors FILE] [-template T] [-ranks]
//
// By words always; by meaning when VARVE_EMBED_URL and VARVE_EMBED_MODEL name a
// service (see package vector/embed; vector/embed/testdata/model/server.cjs is
// one that needs no network). Each question is asked twice: of all
// conversations, and of the one that it is about. MRR is the mean of 1/the place of the first turn of
// the evidence, 0 where it is not among the first hits.
//
// A memory's content is the text of the turn, with -speaker "speaker: text". Its
// id is <conversation>/<turn>; session, speaker and time stand in the metadata.
package main
