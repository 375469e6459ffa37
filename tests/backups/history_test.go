package backups

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
)

// Every version that was written is readable as it was, over recycled segments and with a read-only
// handle.
func TestHistory(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, fixture.SmallLog)
	type was struct {
		lsn     uint64
		content string
		deleted bool
	}
	want := map[string][]was{}
	if _, err := st.Put(ctx, varve.Memory{ID: "old", Content: "never changed"}); err != nil {
		t.Fatal(err)
	}
	for i := range 400 {
		id := fmt.Sprint("k", i%7)
		if i%31 == 30 {
			if err := st.Delete(ctx, id); err != nil {
				t.Fatal(err)
			}
			want[id] = append(want[id], was{deleted: true})
		} else {
			m, err := st.Put(ctx, varve.Memory{ID: id, Content: fmt.Sprint(i, " ", strings.Repeat("x", 900))})
			if err != nil {
				t.Fatal(err)
			}
			want[id] = append(want[id], was{m.Version, m.Content, false})
		}
		if i%90 == 89 {
			if err := st.Admin().Compact(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if all, err := filepath.Glob(filepath.Join(dir, "wal", "archive", "*.zst")); err != nil || len(all) < 3 {
		t.Fatal("nothing was recycled", all, err)
	}
	ro := fixture.Open(t, dir, &varve.Options{ReadOnly: true})
	for _, h := range []*varve.Store{st, ro} {
		for id, list := range want {
			i := 0
			var before varve.Version
			for v, err := range h.History(ctx, id) {
				if err != nil || i == len(list) {
					t.Fatalf("%s, %d of %d: %v", id, i, len(list), err)
				}
				w := list[i]
				if v.Deleted != w.deleted || !w.deleted && v.LSN != w.lsn || v.Previous != before.LSN ||
					!v.Time.After(before.Time) {
					t.Fatalf("%s, %d: %+v, want %+v", id, i, v, w)
				}
				m, err := v.Decode()
				if w.deleted != errors.Is(err, varve.ErrNotFound) || m.Content != w.content ||
					!w.deleted && (m.Version != w.lsn || v.Size != int64(len(v.Document)) ||
						sha256.Sum256(v.Document) != v.ContentHash) {
					t.Fatalf("%s, %d: %v", id, i, err)
				}
				at, err := h.GetAt(ctx, id, v.LSN)
				if err != nil || at.LSN != v.LSN || string(at.Document) != string(v.Document) || !at.Time.Equal(v.Time) {
					t.Fatalf("GetAt %s@%d: %v", id, v.LSN, err)
				}
				before = v
				i++
			}
			if i != len(list) {
				t.Fatalf("%s: %d versions, want %d", id, i, len(list))
			}
		}
		for _, err := range h.History(ctx, "nobody") {
			if !errors.Is(err, varve.ErrNotFound) {
				t.Fatal(err)
			}
		}
		var none *varve.NoVersionError
		first, other := want["k1"][0].lsn, want["k2"][3].lsn
		for _, lsn := range []uint64{0, 1, first + 8, other, 1 << 40, 1<<64 - 1} {
			if _, err := h.GetAt(ctx, "k1", lsn); !errors.As(err, &none) || !errors.Is(err,
				varve.ErrNotFound) || none.Oldest != first {
				t.Fatalf("GetAt k1@%d: %v", lsn, err)
			}
		}
	}
	// Without the archive the versions in the log are listed, and the one in the file.
	if err := os.RemoveAll(filepath.Join(dir, "wal", "archive")); err != nil {
		t.Fatal(err)
	}
	n := 0
	for v, err := range st.History(ctx, "old") {
		m, derr := v.Decode()
		if n++; err != nil || derr != nil || m.Content != "never changed" || v.Time.IsZero() {
			t.Fatalf("%+v, %v, %v", v, err, derr)
		}
		if at, err := st.GetAt(ctx, "old", v.LSN); err != nil || string(at.Document) != string(v.Document) {
			t.Fatal(err)
		}
	}
	if n != 1 {
		t.Fatalf("%d versions of what the log no longer has", n)
	}
	_, err := st.GetAt(ctx, "k1", want["k1"][0].lsn)
	var gone *varve.TruncatedError
	if !errors.As(err, &gone) || !errors.Is(err, varve.ErrNotFound) || gone.Oldest == 0 {
		t.Fatalf("a version that is no longer kept: %v", err)
	}
	for v, err := range st.History(ctx, "k1") {
		if err != nil || v.Previous == 0 || v.LSN < gone.Oldest {
			t.Fatalf("%+v, %v", v, err)
		}
		break
	}
}

// A hole in the archive is reported, and the history around it too.
func TestHistoryOverAHole(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx := context.Background()
	dir, want := fixture.Aged(t)
	all, err := filepath.Glob(filepath.Join(dir, "wal", "archive", "*.zst"))
	if err != nil || len(all) < 4 {
		t.Fatal(all, err)
	}
	fixture.Alter(t, all[len(all)-1], func(b []byte) []byte { return b[:len(b)/2] })
	st := fixture.Open(t, dir, fixture.SmallLog)
	for id, w := range want {
		bad, newest := 0, varve.Version{}
		for v, err := range st.History(ctx, id) {
			if err == nil {
				newest = v
			} else if bad++; !errors.Is(err, varve.ErrCorrupt) {
				t.Fatal(err)
			}
		}
		// The newest version may be in the damaged part: its file still has it.
		at, err := st.GetAt(ctx, id, w.Version)
		if err != nil || bad != 1 || newest.LSN != w.Version || string(newest.Document) != string(at.Document) {
			t.Fatalf("%s: %d errors, newest %d, want %d: %v", id, bad, newest.LSN, w.Version, err)
		}
	}
}

// A file that rots or disappears is restored even if only the archive has its content.
func TestHealFileFromArchive(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, want := fixture.Aged(t)
	st := fixture.Open(t, dir, fixture.SmallLog)
	if err := st.Admin().UpdateConfig(ctx,
		func(c *varve.Config) error { no := false; c.AdoptDeletions = &no; return nil }); err != nil {
		t.Fatal(err)
	}
	first := storetest.Inner(st).Engine.Log().Spilled()
	n := 0
	for id, m := range want {
		if m.Version > first-3*64<<10 {
			continue
		}
		name := filepath.Join(dir, "memories", id+".json")
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		fixture.Alter(t, name, func(b []byte) []byte {
			if n%2 == 0 {
				return nil
			}
			b[len(b)/2] ^= 1
			return b
		})
		if n++; n%2 == 0 {
			if err := os.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		}
		got, err := st.Get(ctx, id)
		if err != nil || got.Content != m.Content || got.Version != m.Version {
			t.Fatalf("%s: %v", id, err)
		}
	}
	if n < 4 {
		t.Fatalf("only %d memories lie in the archive alone", n)
	}
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil || f.Severity != varve.SeverityInfo {
			t.Errorf("%v %v", f, err)
		}
	}
	fixture.Compare(t, fixture.Contents(t, st), want, true)
}
