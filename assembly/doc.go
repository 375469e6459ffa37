// Package assembly has the type Assembly, a group of memories: its JSON form, its limits, its line in
// log and index, and its operations: changing the members, computing the composite embedding,
// activating, and merging. The package opens no file and reads no clock.
//
// # The document
//
// One assembly is one JSON object in UTF-8, indent 2, a line feed at the end:
//
//	{
//	  "assembly_id": "0198c5a1-…",                      any UTF-8, 1 to 1,024 bytes
//	  "name": "travel",                                 at most 1,024 bytes
//	  "description": "where she went",
//	  "memory_ids": [                                   the members, each once, in the order of their addition
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
//	  "assembly_schema_version": "1.8",                 set by another system; kept unchanged
//	  "created_at": "…", "updated_at": "…"              set by the store
//	}
//
// JSON members with other names are kept in their places. Numbers are written as in RFC 8785, times in RFC
// 3339, UTC, six digits (nine where there are nanoseconds).
//
// # What is read
//
// Decode also reads two forms of other systems. Form 1 lacks is_active, and activation_level is its only
// member about activation. Form 1.8 has these additional members:
//
//	id                         read only if assembly_id is missing
//	memories                   whole memory objects. Their ids are the members. The copies are stale, and
//	                           the next write removes them; see takeCopies
//	last_activated             a time in seconds, in addition to last_activation or instead of it
//
// The six named times are read in the forms of jsondoc.DecodeTime, the embeddings in those of
// jsondoc.DecodeFloats.
//
// # What is kept
//
// As in package memstore: an Assembly that was decoded keeps its text, and the text of unchanged
// fields stays the same byte for byte; named times are normalised, a vector that numpy printed
// becomes a list. There are two more exceptions. An id that occurs twice among the members is written
// once. If a document has an older name (id, last_activated) and the present name, the older one is
// removed when the value of the present one changes, since the older value would then be wrong.
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
// composite_embedding, 0 if no member has an embedding. vector_id is the number of the composite in the vector
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
