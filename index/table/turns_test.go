package table

import (
	"fmt"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs/crash"
)

// A table is written in pieces, between which commits get their turn: both for changed and for copied
// lines.
func TestTurns(t *testing.T) {
	const entries = 20_000
	fsys := crash.New().Process("test")
	if err := fsys.Mkdir("/t", 0o700); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for i := range entries {
		all[fmt.Sprintf("k%06d", i)] = value
	}
	plan := edits(t, all)
	n := proofs.Turns(t, func() {
		if _, err := WriteBase(Empty(testSchema(), 0), target(fsys, "/t", 8), plan); err != nil {
			t.Error(err)
		}
	})
	if n < entries/16/2 {
		t.Errorf("%d turns in %d changes, want some %d", n, entries, entries/16)
	}
	s, err := Load(fsys, "/t", testSchema(), Want{Store: store}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	blocks := int64(len(s.base.data) / blockSize)
	plan = edits(t, map[string]string{"k1": value})
	n = proofs.Turns(t, func() {
		if _, err := WriteBase(s, target(fsys, "/t", 16), plan); err != nil {
			t.Error(err)
		}
	})
	if blocks < 10 || n < blocks/2 {
		t.Errorf("%d turns in %d blocks", n, blocks)
	}
}
