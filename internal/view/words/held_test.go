package words_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	view "github.com/varve-db/varve/internal/view/words"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/query"
	"github.com/varve-db/varve/memstore"
)

// stillPut puts what nobody changes, and what is changed all the time.
func stillPut(t *testing.T, st *varve.Store, still, lively, round int) {
	t.Helper()
	b := new(varve.Batch)
	for i := range still {
		b.Put(varve.Memory{ID: fmt.Sprintf("still%04d", i),
			Content: fmt.Sprintf("calm number%d %s", i, strings.Repeat("sea ", i%9)), Timestamp: time.Unix(int64(i), 0),
			Metadata: map[string]any{"tags": []string{"still"}, "session_id": fmt.Sprint("s", i%7)}})
	}
	for i := range lively {
		b.Put(varve.Memory{ID: fmt.Sprintf("lively%02d", i), Content: fmt.Sprintf("storm round%d item%d", round, i),
			Timestamp: time.Unix(int64(i*13), 0), Metadata: map[string]any{"session_id": fmt.Sprint("s", i%7)}})
	}
	if err := st.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// sorted is the filter of an order.
func sorted(t *testing.T, key string) varve.Filter {
	t.Helper()
	o, err := memstore.ParseOrder(key, "")
	if err != nil {
		t.Fatal(err)
	}
	return varve.Sorted(o)
}

// TestHeldOverRounds: listings that have begun, and a search that is just looking, go on over rounds, merges,
// another language, a rebuild and a purge: by the same handle, another one, and a read-only one.
func TestHeldOverRounds(t *testing.T) {
	t.Parallel()
	const still, lively = 1500, 20
	for _, who := range []string{"the same", "another", "read-only"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			st := open(t, dir)
			stillPut(t, st, still, lively, 0)
			flush(t, st)
			reader := st
			switch who {
			case "another":
				reader = open(t, dir)
			case "read-only":
				var err error
				if reader, err = varve.Open(t.Context(), dir, &varve.Options{ReadOnly: true}); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = reader.Close() })
			}
			change := func(round int) {
				t.Helper()
				stillPut(t, st, 0, lively, round)
				switch round {
				case 12:
					if err := st.Admin().Compact(t.Context()); err != nil {
						t.Fatal(err)
					}
				case 14:
					if err := st.Admin().RebuildIndex(t.Context()); err != nil {
						t.Fatal(err)
					}
				case 16:
					if err := st.Admin().UpdateConfig(t.Context(),
						func(c *varve.Config) error { c.TextLanguage = "none"; return nil }); err != nil {
						t.Fatal(err)
					}
				case 18:
					if _, err := st.Put(t.Context(), varve.Memory{ID: "secret", Content: "an okapi"}); err != nil {
						t.Fatal(err)
					}
					flush(t, st)
					if _, err := st.Admin().Purge(t.Context(), "secret"); err != nil {
						t.Fatal(err)
					}
				}
				flush(t, st)
			}
			type held struct {
				name string
				next func() (varve.Memory, error, bool)
				stop func()
				ids  []string
			}
			var all []*held
			for name, filters := range map[string][]varve.Filter{
				"list": {varve.WithPrefix("still")}, "tag": {varve.WithTag("still")},
				"sorted":  {varve.WithTag("still"), sorted(t, "timestamp")},
				"session": {varve.InSession("s3"), varve.WithPrefix("still")},
			} {
				h := &held{name: name}
				h.next, h.stop = iter.Pull2(reader.Memories(t.Context(), filters...))
				defer h.stop()
				all = append(all, h)
			}
			step := func(n int) {
				t.Helper()
				for _, h := range all {
					for range n {
						m, err, ok := h.next()
						if !ok {
							break
						}
						if err != nil {
							t.Fatalf("%s: %v", h.name, err)
						}
						h.ids = append(h.ids, m.ID)
					}
				}
			}
			q := view.NewQuery(storetest.Inner(reader).Engine, func() { t.Error("the files are damaged") })
			defer q.Close()
			sessions, stop := iter.Pull2(reader.Sessions().All(t.Context()))
			defer stop()
			if _, err, _ := sessions(); err != nil {
				t.Fatal(err)
			}
			step(3)
			segment := filepath.Join(dir, folder, "0000000000000001.seg")
			before, err := os.Stat(segment)
			if err != nil || before.Size() < 100<<10 {
				t.Fatal("there is no segment that is mapped", err)
			}
			calls := 0
			if err := q.With(t.Context(), func(s *view.Snapshot) error {
				calls++
				find := func(text string) []words.Hit {
					hits, err := s.Set.Search(t.Context(), query.Parse(text, s.Analyzer), words.Filter{}, 50, 0, nil)
					if err != nil {
						t.Errorf("what a search looks at: %q: %v", text, err)
					}
					return hits
				}
				first := find("seas number7")
				for round := 1; round <= 20; round++ {
					change(round)
					step(40)
					if err := q.With(t.Context(), func(s *view.Snapshot) error { // of now: it lets go of the files of before
						hits, err := s.Set.Search(t.Context(), query.Parse(fmt.Sprintf("round%d item3 storm", round), s.Analyzer),
							words.Filter{}, 1, 0, nil)
						if err == nil && (len(hits) != 1 || hits[0].ID != "lively03") {
							err = fmt.Errorf("round %d: it finds %v", round, hits)
						}
						return err
					}); err != nil {
						t.Error(err)
					}
					if again := find("seas number7"); !slices.Equal(again, first) {
						t.Errorf("round %d: what a search looks at has changed: %v, was %v", round, again, first)
					}
					if hits := find(fmt.Sprintf("round0 item%d", round)); len(hits) < lively { // not looked at before
						t.Errorf("round %d: %v", round, hits)
					}
				}
				return nil
			}); err != nil || calls != 1 {
				t.Error(calls, err)
			}
			// which keeps what is mapped
			if now, err := os.Stat(segment); err == nil && os.SameFile(before, now) && runtime.GOOS != "windows" {
				t.Error("the segment that was looked at is still there")
			}
			step(still)
			for _, h := range all {
				want := []string{}
				for i := range still {
					if h.name != "session" || i%7 == 3 {
						want = append(want, fmt.Sprintf("still%04d", i))
					}
				}
				if !slices.Equal(h.ids, want) {
					t.Errorf("%s: %d are listed, want %d, or in another order", h.name, len(h.ids), len(want))
				}
			}
			for {
				_, err, ok := sessions()
				if err != nil {
					t.Error(err)
				}
				if !ok {
					break
				}
			}
			finds(t, reader, "round20 item3 storm", "lively03")
		})
	}
}

// TestPurgeBesideReaders: while memories are purged, one after the other, readers of the same and of other
// handles search and list without an error; what is purged is not found behind it, and no file has its words.
func TestPurgeBesideReaders(t *testing.T) {
	t.Parallel()
	still, secrets := 1500, 6
	switch {
	case proofs.Long():
		secrets = 60
	case proofs.Race():
		still, secrets = 300, 3
	}
	dir := t.TempDir()
	st := open(t, dir)
	stillPut(t, st, still, 5, 0)
	for i := range secrets {
		if _, err := st.Put(t.Context(),
			varve.Memory{ID: fmt.Sprint("secret", i), Content: fmt.Sprintf("okapi%dx calm", i),
				Metadata: map[string]any{"session_id": "s1"}}); err != nil {
			t.Fatal(err)
		}
	}
	flush(t, st)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wait sync.WaitGroup
	readers := []*varve.Store{st, open(t, dir), open(t, dir)}
	for n, r := range readers {
		wait.Go(func() {
			for i := n; ctx.Err() == nil; i++ {
				hits, err := r.Search(ctx, varve.Query{Text: fmt.Sprintf("number%d calm", i%still), Limit: 3})
				if err == nil && (len(hits) != 3 || hits[0].ID != fmt.Sprintf("still%04d", i%still)) {
					err = fmt.Errorf("%d hits, %v", len(hits), hits)
				}
				count, cerr := r.Count(ctx, varve.WithTag("still"))
				if cerr == nil && count != int64(still) {
					cerr = fmt.Errorf("%d are counted", count)
				}
				if err = errors.Join(err, cerr); err != nil && ctx.Err() == nil {
					t.Errorf("reader %d: %v", n, err)
					return
				}
			}
		})
	}
	for i := range secrets {
		id := fmt.Sprint("secret", i)
		if _, err := st.Admin().Purge(t.Context(), id); err != nil {
			t.Error(err)
		}
		for n, r := range readers {
			if hits, err := r.Search(t.Context(), varve.Query{Text: fmt.Sprintf("okapi%dx", i)}); err != nil || len(hits) > 0 {
				t.Errorf("reader %d: %s is found: %v, %v", n, id, hits, err)
			}
		}
	}
	stop()
	wait.Wait()
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() ||
			strings.Contains(path, string(filepath.Separator)+"wal"+string(filepath.Separator)) {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "okapi") || strings.Contains(string(b), "secret") {
			t.Errorf("%s has what was purged", path)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	clean(t, st)
}
