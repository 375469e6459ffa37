// Package memstore has the type Memory: its JSON, what may be stored, and its line in the index.
// The package opens no file.
//
// # The document
//
// One memory is one JSON object in UTF-8, indent 2, a line feed at the end:
//
//	{
//	  "id": "0198c5a1-…",                               any UTF-8, 1 to 1,024 bytes
//	  "content": "prefers short answers",
//	  "embedding": [                                    float32; absent or null: none
//	    0.25,
//	    -0.5
//	  ],
//	  "timestamp": "2026-01-02T03:04:05.000006Z",       when it happened
//	  "quickrecal_score": 0.85,                         its importance, finite
//	  "quickrecal_updated": "…",                        absent: never
//	  "metadata": {
//	    "session_id": "s1"                              session_id, category, key are read from here
//	  },
//	  "access_count": 3,
//	  "last_access_time": "…",                          absent: never
//	  "hyperbolic_embedding": [ … ],                    absent or null: none
//	  "created_at": "…", "updated_at": "…",             set by the store
//	  "expires_at": "…"                                 absent: never
//	}
//
// A Memory has no field for tags: they are a member of metadata. Of metadata, the index line has only session_id.
//
// JSON members with other names are kept in their places. Numbers are written as in RFC 8785, times in RFC
// 3339, UTC, six digits (nine where there are nanoseconds).
//
// # What is read
//
// The names of older systems: text (content), significance (quickrecal_score), last_access
// (last_access_time); they are read only if the present name is missing, and are written under the
// present name. The six named times are read in the forms of jsondoc.DecodeTime, embeddings in
// those of jsondoc.DecodeFloats.
//
// # What is kept
//
// A Memory that was decoded keeps its text. Encoding compares each field with the text that it was
// decoded from; the text of an unchanged field stays the same byte for byte: 1.0 stays 1.0, null
// stays null, absent stays absent. A change within metadata leaves the rest of metadata unchanged.
// There are two exceptions: the named times are normalised to the same instant, and a vector that
// numpy printed becomes a list, with the same digits. A Memory that was not decoded has no such text.
//
// Copies share the kept text, which is never modified and not reachable through any field.
//
// # The index line
//
// The index line is what the log has for the index, without the members mtime and version, which
// are added behind size when the line enters a table:
//
//	{"filepath":"memories/<name>.json","created_at":"…","updated_at":"…","quickrecal_score":0.85,
//	 "content_hash":"sha256:<hex of the document>","size":1043,"dimension":768,"vector_id":17,
//	 "session_id":"s1","expires_at":"…"}
//
// in one line, without the space; its times have exactly six digits, so that they sort as strings;
// session_id and expires_at are omitted if the memory has none. dimension is the length of the
// embedding, 0 without one. vector_id is the FAISS id of the vector, omitted if it equals the
// version of this write, that is, if the write brought the embedding. A write that leaves the
// embedding unchanged has the id that the vector already has.
package memstore
