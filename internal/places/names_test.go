package places

import (
	"testing"

	"github.com/varve-db/varve/wal"
)

// TestNames (FAILURES 169) has names that a store uses, and similar names that only a user would choose.
func TestNames(t *testing.T) {
	const token = "4711-1a2b3c-0123456789ab"
	for rel, want := range map[string]bool{
		"config.json": true, "config.json.0123456789ab.new": true, "checkpoint": true, "moved.json": true, "letter": false, "notes.json": false,
		"memories/a.json": true, "memories/letter~aaaaaaaaaaaaaaaaaaaaaaaaaa.json": true, "memories/letter.txt": false, "memories/.hidden": false,
		"memories/Letter.json": false, "working/s1.json": true,
		"wal/00000001.wal": true, "wal/00000001.wal.new": true, "wal/4711-3.new": true, "wal/open.lock": true, "wal/shared": true, "wal/notes.new": false,
		"wal/archive/00000001.zst": true, "wal/archive/00000001.zst.new": true, "wal/archive/notes.new": false,
		"vector_index/memory_vectors.faiss": true, "vector_index/reembed": true, "vector_index/letter": false,
		"view_index/words/0000000000000001.seg": true, "view_index/words/manifest.json": true, "view_index/words/notes.seg": false,
		"tmp/index." + token: true, "tmp/index." + token + ".vectors.faiss": true, "tmp/index.html": false, "tmp/expiry." + token: true, "tmp/aged." + token: true, "tmp/" + token + "/0/1": true, "tmp/" + token + "/0/letter": false,
		"backups/memory_index.65536.json": true, "backups/letter": false, "quarantine/a.json": false,
	} {
		if got := IsName(rel, false); got != want {
			t.Errorf("%s: %v, want %v", rel, got, want)
		}
	}
	for rel, want := range map[string]bool{".": true, "memories": true, "wal/archive": true, "view_index/words": true, "tmp/" + token: true, "tmp/" + token + "/0-1": true, "sub": false, "memories/sub": false, "tmp/sub": false} {
		if got := IsName(rel, true); got != want {
			t.Errorf("%s: %v, want %v", rel, got, want)
		}
	}
	for name, want := range map[string]bool{
		"4711-3.new": true, "4711-renew.new": true, "4711-own.new": true, "4711-features.new": true, "4711-restoring.new": true, "00000001.wal.new": true, "shared.4711-2.new": true,
		"append.lock.4711-2.new": true, "moved.json.new": true, "notes.new": false, "4711.new": false, "a.4711-2.new": false, "00000001.wal": false,
	} {
		if got := wal.IsMaking(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
