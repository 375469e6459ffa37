package wal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/errs"
)

// copied returns a closed log whose second and third segments were archived by a process that was killed before
// it recycled them, and its entries. Nothing was spilled, so a recovery reads all of the log; the position flushed is
// the end of the log.
func copied(t *testing.T) (dir string, want []Entry) {
	t.Helper()
	dir = t.TempDir()
	l, _ := open(t, dir)
	want = fill(t, l, 5)
	for n := uint64(2); n <= 3; n++ {
		if err := l.archive(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	c, err := l.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	held := mustHold(t, l)
	if err := l.SetCheckpoint(held, l.AppliedMark(), c.Spilled, [Folders]int64{}); err != nil {
		t.Fatal(err)
	}
	held.Unlock()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, want
}

func change(t *testing.T, path string, f func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b = f(b); b == nil {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var segmentDamage = map[string]func(b []byte) []byte{
	"bit in a frame": func(b []byte) []byte { b[20000] ^= 1; return b },
	"start":          func(b []byte) []byte { b[40] ^= 1; return b },
	"cut":            func(b []byte) []byte { return b[:30000] },
	"zeros":          func(b []byte) []byte { clear(b); return b },
	"deleted":        func([]byte) []byte { return nil },
}

// A damaged segment that the archive still has is restored, and no part of it is lost; the damaged file is in
// quarantine.
func TestHealFromArchive(t *testing.T) {
	t.Parallel()
	for name, damage := range segmentDamage {
		t.Run(name, func(t *testing.T) {
			dir, want := copied(t)
			change(t, segPath(dir, 2), damage)
			change(t, segPath(dir, 3), damage)
			l, m := open(t, dir)
			r := l.Report()
			if r.Healed == nil || r.HealedFrom != "wal/archive/00000002.zst" || r.Damage != nil || r.Clean {
				t.Fatalf("report %+v", r)
			}
			// The first pass ended at the damage; the last one has everything.
			if r.Replayed != len(want) || len(m.seen) < len(want) || m.seen[len(m.seen)-len(want)] != want[0].LSN {
				t.Fatalf("%d entries applied, %d replayed, want %d", len(m.seen), r.Replayed, len(want))
			}
			sameEntries(t, l, 0, want)
			aside, _ := filepath.Glob(filepath.Join(dir, "quarantine", "*.note.json"))
			n := 2
			switch name {
			case "deleted":
				n = 0
			case "zeros":
				n = 1 // identical bytes are kept once
			}
			if len(aside) != n {
				t.Fatalf("%d notes in quarantine, want %d", len(aside), n)
			}
			mustAppend(t, l, put("mnew", "x"))
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if l, _ = open(t, dir); l.Report().Healed != nil {
				t.Fatalf("healed again: %+v", l.Report())
			}
			l.Close()
		})
	}
}

// A copy that is itself damaged, or of another log, heals nothing: then the files below flushed have
// everything, as without an archive.
func TestHealNotFromABadCopy(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"damaged": func(t *testing.T, dir string) {
			change(t, copyPath(dir, 2), func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		},
		"cut": func(t *testing.T, dir string) {
			change(t, copyPath(dir, 2), func(b []byte) []byte { return b[:len(b)/2] })
		},
		"another": func(t *testing.T, dir string) {
			change(t, copyPath(dir, 2), func([]byte) []byte {
				b, err := os.ReadFile(copyPath(dir, 3))
				if err != nil {
					t.Fatal(err)
				}
				b[16] = 2
				return b
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := copied(t)
			spoil(t, dir)
			change(t, segPath(dir, 2), segmentDamage["bit in a frame"])
			before, err := os.ReadFile(segPath(dir, 2))
			if err != nil {
				t.Fatal(err)
			}
			l, _ := open(t, dir)
			defer l.Close()
			if r := l.Report(); r.Healed == nil || r.HealedFrom != "" {
				t.Fatalf("report %+v", r)
			}
			if after, err := os.ReadFile(segPath(dir, 2)); err != nil || string(after) != string(before) {
				t.Fatalf("the segment was changed: %v", err)
			}
		})
	}
}

// Damage that is found while the log is in use is read from the copy, if there is one.
func TestReadAtFromCopy(t *testing.T) {
	t.Parallel()
	dir, want := copied(t)
	l, _ := open(t, dir)
	defer l.Close()
	for _, e := range want {
		if n := l.geo.Number(e.LSN); n == 2 || n == 4 {
			flip(t, segPath(dir, n), l.geo.Offset(e.LSN)+70)
			got, err := l.ReadAt(context.Background(), e.LSN)
			if n == 2 && (err != nil || string(got.Value) != string(e.Value)) {
				t.Fatalf("%d: %v", e.LSN, err)
			}
			if n == 4 && !errors.Is(err, errs.ErrCorrupt) {
				t.Fatalf("%d without a copy: %v", e.LSN, err)
			}
		}
	}
}
