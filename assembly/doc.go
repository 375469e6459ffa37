// Package assembly has the type Assembly, a group of memories: its JSON, what may be stored, its
// line in log and index, and its operations: members, composite, activation, merging. The package
// opens no file and reads no clock.
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
// Members of other names are kept in their places. Numbers are written as in RFC 8785, times in RFC
// 3339, UTC, six digits (nine where there are nanoseconds).
//
// # What is read
//
// The forms of other systems. Form 1 has no is_active, and of activation only the level. Form 1.8
// has
//
//	id beside assembly_id      assembly_id is used; id is read if it is the only one
//	memories                   whole memory objects: their ids are the members, and the copies,
//	                           which are stale, are removed by the next write; see takeCopies
//	last_activated             seconds, beside last_activation or instead of it
//
// The six named times are read in the forms of jsondoc.DecodeTime, the embeddings in those of
// jsondoc.DecodeFloats.
//
// # What is kept
//
// As in package memstore: an Assembly that was decoded keeps its text, and the text of unchanged
// fields stays the same byte for byte; named times are normalised, a vector that numpy printed
// becomes a list. Two more exceptions: an id that occurs twice among the members is written once,
// and an older name beside the present one (id, last_activated) is removed when the present one
// changes, since its value would be wrong.
//
// # The line
//
// The line is what the log has for state and index. When it enters a table, mtime and version are
// added behind size, and members is removed:
//
//	{"filepath":"assemblies/<name>.json","created_at":"…","updated_at":"…","member_count":2,
//	 "content_hash":"sha256:<hex of the document>","size":1043,"dimension":384,"vector_id":17,
//	 "name":"travel","is_active":false,"members":["<memory id>","<memory id>"]}
//
// in one line, without the space; its times have exactly six digits. dimension is that of
// composite_embedding, 0 when there is none. vector_id is the number of the composite in the vector
// file, omitted if it equals the LSN of this frame. name is omitted when empty, is_active when
// true. members is always the last member.
//
// # Composite
//
// The store computes the composite from the members, in the commit that changes them (Composite).
// Callers cannot set vector_index_updated_at: document and vector are one commit, so Prepare writes
// the time of the commit if the composite has changed, keeps the old time if it has not, and
// removes the field if there is no composite.
//
// # Activation
//
// An activation decays by half in each half-life. This writes nothing: the present level is a
// function of the stored level, its time, and the present time (ActivationAt). Activate writes the
// decayed level plus a boost, within 0 and 1.
//
// # Lineage
//
// Merge unites assemblies. merged_from is flat: the ids of all assemblies that were ever merged
// into this one, and never its own, so there are no cycles. Their last versions are in the history.
package assembly
