// Package kinds is a kind of document for tests: notes. It shows what a new kind needs (this
// package, registered before a store is opened), and tests the table of kinds: together with
// memories and assemblies, notes are put, flushed, killed, rebuilt, verified, edited, purged,
// backed up, restored and migrated.
//
// The file, notes/<name>.json, is one JSON object:
//
//	{
//	  "note_id": "n1",
//	  "text": "…",
//	  "created_at": "2026-01-01T00:00:00Z",
//	  "updated_at": "2026-01-01T00:00:00Z"
//	}
package kinds
