// Package assembly holds the type Assembly, a group of memories: its JSON, what
// may be stored, the line that log and index keep of it, and what can be done
// with it: members, composite, activation, merging. It opens no file and asks no
// clock.
//
// # The document
//
// One assembly is one JSON object in UTF-8, indent 2, a line feed at the end:
//
//	{
//	  "assembly_id": "0198c5a1-…",                      any UTF-8, 1 to 1,024 bytes
//	  "name": "travel",                                 at most 1,024 bytes
//	  "description": "where she went",
//	  "memory_ids": [                                   the members, each once, in the order in which they came
//	    "0198c5a0-…"
//	  ],
//	  "composite_embedding": [ … ],                     float32, length 1; absent or null: none
//	  "hyperbolic_embedding": [ … ],                    absent or null: none
//	  "emotion_profile": { … },
//	  "keywords": [ … ], "tags": [ … ], "topics": [ … ],  strings; tags and topics absent: none
//	  "creation_time": "2026-01-02T03:04:05.000006Z",
//	  "last_access_time": "…",                          absent: never
//	  "access_count": 3,
//	  "activation_level": 0.85,                         as of last_activation
//	  "last_activation": "…",                           absent: never
//	  "activation_count": 2,
//	  "is_active": true,                                absent or null: true
//	  "merged_from": [ … ],                             ids of assemblies; absent: none
//	  "vector_index_updated_at": "…",                   absent: no composite
//	  "assembly_schema_version": "1.8",                 another system's; kept
//	  "created_at": "…", "updated_at": "…"              set by the store
//	}
//
// Members of other names are kept where they stand. Numbers are written as in
// RFC 8785, times in RFC 3339, UTC, six digits (nine where there are nanoseconds).
//
// # What is read
//
// The forms of other systems. Form 1 has no is_active and nothing of
// activation but the level. Form 1.8 has
//
//	id beside assembly_id      assembly_id counts; id is read where it stands alone
//	memories                   whole memory objects: their ids are the members, and the copies,
//	                           which are stale, go with the next write; see takeCopies
//	last_activated             seconds, beside last_activation or instead of it
//
// The six named times come in the forms of docfile.DecodeTime, the embeddings
// in those of docfile.DecodeFloats.
//
// # What is kept
//
// As in package memstore: an Assembly that was decoded remembers its text, and
// what a field does not change stays byte for byte; named times are normalised,
// a vector that numpy printed becomes a list. Two more: an id that stands twice
// among the members is written once, and an older name beside the present one
// (id, last_activated) goes when the present one changes, since it would lie.
//
// # The line
//
// What the log carries for state and index. mtime and version are added behind
// size when the line enters a table, and members is taken off:
//
//	{"filepath":"assemblies/<name>.json","created_at":"…","updated_at":"…","member_count":2,
//	 "content_hash":"sha256:<hex of the document>","size":1043,"dimension":384,"vector_id":17,
//	 "name":"travel","is_active":false,"members":["<memory id>","<memory id>"]}
//
// in one line, without the space; its times have exactly six digits. dimension
// is that of composite_embedding, 0 when there is none. vector_id is the number
// of the composite in the vector file, left out when it is that of this frame.
// name is left out when empty, is_active when true. members is always the last.
//
// # Composite
//
// The composite is made of the members by the store, in the commit that changes
// them (Composite). vector_index_updated_at is not for a caller to set: document
// and vector are one commit, so Prepare writes its time when the composite is
// another one than before, keeps it when it is the same, and drops it when there
// is none.
//
// # Activation
//
// An activation fades by half in each half-life. Nothing is written for that:
// the level now is a function of the stored level, its time, and the clock
// (ActivationAt). Activate writes the level that is left and a boost, within 0
// and 1.
//
// # Lineage
//
// Merge unites assemblies. merged_from is flat: the ids of all that ever went
// into this one, and never its own, so there is no cycle to follow. Their last
// versions are in the history.
package assembly
