package notes_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/notes"
	"github.com/varve-db/varve/internal/parts"
)

// looking is a Disk that calls a function each time a note that has a file is loaded.
type looking func() error

func (f looking) LookNow(context.Context, string, []string) (absent, emptied []string, err error) {
	if err := f(); err != nil {
		return nil, nil, err
	}
	return nil, nil, fs.ErrNotExist // so the file is not judged, and the next load asks again
}

// none is a function for looking that does nothing.
func none() error { return nil }

// TestOvertaken verifies that the result of a write does not change if another writer replaces or deletes the note, or
// reading its file fails, after the commit and before the write returns.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	p := parts.New(t, t.TempDir())
	other := notes.New(p.Engine, p.Committer, history.New(p.Engine), looking(none), p.Scopes)
	loads, faster := 0, none
	ns := notes.New(p.Engine, p.Committer, history.New(p.Engine), looking(func() error {
		if loads++; loads == 2 { // the first one is before the commit
			return faster()
		}
		return nil
	}), p.Scopes)
	ctx, c := t.Context(), commit.Conditions{}
	own := []byte("own")
	for what, f := range map[string]func() error{
		"replaced": func() error { _, err := other.Write(ctx, "a", []byte("of another"), c); return err },
		"deleted":  func() error { return other.Delete(ctx, "a", c) },
		"failing":  func() error { return errors.New("the file cannot be read") },
	} {
		for _, write := range []func() (notes.Info, error){
			func() (notes.Info, error) { return ns.Write(ctx, "a", own, c) },
			func() (notes.Info, error) { return ns.Update(ctx, "a", "", own, c) },
			func() (notes.Info, error) {
				i, err := ns.SetProperties(ctx, "a", notes.Properties{SessionID: what}, c)
				if i.ContentHash = sha256.Sum256(own); i.SessionID != what {
					t.Errorf("%s: the session is %q", what, i.SessionID)
				}
				return i, err
			},
		} {
			if _, err := other.Write(ctx, "a", []byte("before"), c); err != nil {
				t.Fatal(err)
			}
			p.Flush(t)
			loads, faster = 0, f
			i, err := write()
			if err != nil || i.ContentHash != sha256.Sum256(own) || i.Version == 0 {
				t.Errorf("%s: %+v, %v", what, i, err)
			}
		}
	}
}

// TestAnswers verifies that the result of a write describes what it wrote, even if other writers replace or delete the
// note at once, and that the result equals that of a later read.
func TestAnswers(t *testing.T) {
	t.Parallel()
	p := parts.New(t, t.TempDir())
	ns := notes.New(p.Engine, p.Committer, history.New(p.Engine), looking(none), p.Scopes)
	var versions sync.Map
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for n := range 40 {
				text := []byte(fmt.Sprint(g, "-", n))
				var i notes.Info
				var err error
				switch {
				case g == 0 && n%4 == 0:
					err = ns.Delete(t.Context(), "a", commit.Conditions{})
				case g%2 == 0:
					i, err = ns.Update(t.Context(), "a", "", text, commit.Conditions{})
				default:
					i, err = ns.Write(t.Context(), "a", text, commit.Conditions{})
				}
				if err != nil && !errors.Is(err, errs.ErrNotFound) {
					t.Error(err)
				}
				if err != nil || i.Path == "" {
					continue
				}
				if i.ContentHash != sha256.Sum256(text) || i.Size != int64(len(text)) {
					t.Errorf("the answer to the write of %s has %d bytes of other content", text, i.Size)
				}
				if _, twice := versions.LoadOrStore(i.Version, true); twice || i.Version == 0 {
					t.Errorf("two answers have the version %d", i.Version)
				}
			}
		})
	}
	all.Wait()
	same := func(i notes.Info, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		n, err := ns.Read(t.Context(), i.Path)
		if n.By = 0; err != nil || fmt.Sprint(n.Info) != fmt.Sprint(i) {
			t.Errorf("answered %+v, read %+v, %v", i, n.Info, err)
		}
	}
	same(ns.Write(t.Context(), "b", []byte("1"), commit.Conditions{}))
	same(ns.Write(t.Context(), "b", []byte("2"), commit.Conditions{}))
	same(ns.SetProperties(t.Context(), "b", notes.Properties{Tags: []string{"y", "x"}}, commit.Conditions{}))
	same(ns.Update(t.Context(), "b", "c", nil, commit.Conditions{}))
	same(ns.Update(t.Context(), "c", "d", []byte("3"), commit.Conditions{}))
	same(ns.Update(t.Context(), "d", "b", nil, commit.Conditions{}))
	same(ns.SetProperties(t.Context(), "b", notes.Properties{}, commit.Conditions{}))
}
