package words_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/view/words"
	"github.com/varve-db/varve/memstore"
)

// asked counts what the view answers.
type asked struct {
	engine.Orders
	pages, counts, among, refused int
}

func (a *asked) Page(ctx context.Context, f *engine.Filters, o *memstore.Order,
	most int) ([]memstore.Place, *memstore.Place, bool, error) {
	list, at, ok, err := a.Orders.Page(ctx, f, o, most)
	a.note(&a.pages, ok)
	return list, at, ok, err
}

func (a *asked) Count(ctx context.Context, f *engine.Filters) (int64, bool, error) {
	n, ok, err := a.Orders.Count(ctx, f)
	a.note(&a.counts, ok)
	return n, ok, err
}

func (a *asked) Among(ctx context.Context, f *engine.Filters, share int) ([]string, bool, error) {
	ids, ok, err := a.Orders.Among(ctx, f, share)
	if ok {
		a.among++
	}
	return ids, ok, err
}

func (a *asked) note(n *int, ok bool) {
	if ok {
		*n++
	} else {
		a.refused++
	}
}

// listing are the ids that a store lists in an order, in pages of a size or all at once.
func listing(t *testing.T, st *varve.Store, key string, skip, size int, between func(),
	filters ...varve.Filter) (ids []string) {
	t.Helper()
	for place := ""; ; {
		o, err := memstore.ParseOrder(key, place)
		if err != nil {
			t.Fatal(err)
		}
		if place == "" {
			o.Skip = skip
		}
		n := 0
		for m, err := range st.Memories(t.Context(), append(filters, varve.Sorted(o))...) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; size > 0 && n > size {
				break
			}
			ids, place = append(ids, m.ID), o.Place()
		}
		if n <= size || size == 0 {
			return ids
		}
		if between != nil {
			between()
		}
	}
}

// TestOrders: over random histories of two handles the view says what the index and the documents say: in
// each order, with filters, in pages, of counts and of sessions.
func TestOrders(t *testing.T) {
	t.Parallel()
	n := 2
	if proofs.Long() {
		n = 20
	}
	for range n {
		seed := proofs.Seed(t, 0)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { t.Parallel(); history(t, seed) })
	}
}

var names = []string{"", "s1", "s10", "s1B", "a", "aB", "ab", `q"uote`, "back\\slash", "tab\there", "é"}

func history(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	dir := t.TempDir()
	now := time.Date(2026, 1, 1, 0, 0, 0, 123_456_000, time.UTC)
	var at atomic.Int64 // now, as the stores have it
	clock := func() time.Time { return time.Unix(0, at.Load()).UTC() }
	pass := func(d time.Duration) { now = now.Add(d); at.Store(now.UnixNano()) }
	pass(0)
	options := &varve.Options{NoBackground: true, Clock: clock, SegmentSize: 64 << 10}
	var all asked
	reopen := func() *varve.Store {
		st, err := varve.Open(t.Context(), dir, options)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	stores := []*varve.Store{reopen(), reopen()}
	defer func() {
		for _, st := range stores {
			_ = st.Close()
		}
	}()
	must := func(err error) {
		t.Helper()
		if err != nil && !errors.Is(err, varve.ErrNotFound) {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	written := func(id string) varve.Memory {
		m := varve.Memory{ID: id, Content: strings.Repeat("x", 1+r.IntN(20)), QuickRecalScore: float64(r.IntN(7)) / 4,
			Metadata: map[string]any{}}
		if s := names[r.IntN(len(names))]; s != "" {
			m.Metadata["session_id"] = s
		}
		if r.IntN(3) > 0 {
			m.Timestamp = now.Add(time.Duration(r.IntN(200)-100) * 7 * time.Hour)
		}
		if r.IntN(4) == 0 {
			m.ExpiresAt = now.Add(time.Duration(1+r.IntN(40)) * time.Hour)
		}
		if r.IntN(2) == 0 {
			m.Metadata["category"] = []string{"red", "blue"}[r.IntN(2)]
		}
		return m
	}
	any := func() string { return fmt.Sprintf("%c-%d", 'a'+r.IntN(3), r.IntN(25)) }
	for n := 0; n < 60 || all.counts < 10 && n < 600; n++ { // of 60 steps of a seed one in fifty has fewer counts
		st := stores[r.IntN(2)]
		switch r.IntN(20) {
		case 0:
			must(st.Admin().Compact(t.Context()))
		case 1:
			_, err := st.Admin().Purge(t.Context(), any())
			must(err)
		case 2:
			must(st.Admin().RebuildIndex(t.Context()))
		case 3:
			must(os.RemoveAll(filepath.Join(dir, folder)))
		case 4:
			i := r.IntN(2)
			must(stores[i].Close())
			stores[i] = reopen()
		case 5:
			_, err := st.Sessions().Delete(t.Context(), names[1+r.IntN(len(names)-1)])
			must(err)
		case 6, 7:
			pass(time.Duration(r.IntN(12)) * time.Hour)
		case 8, 9, 10:
			must(st.Flush(t.Context()))
		case 11, 12:
			must(st.Delete(t.Context(), any()))
		default:
			b := new(varve.Batch)
			for range 1 + r.IntN(20) {
				b.Put(written(any()))
			}
			if r.IntN(10) == 0 {
				pass(-time.Hour) // a clock may be put back
			}
			pass(time.Duration(r.IntN(3)) * time.Microsecond)
			must(st.Apply(t.Context(), b))
		}
		compare(t, r, seed, stores[r.IntN(2)], now, &all)
	}
	// Pages do not shift while others write, later than all before.
	pass(1000 * time.Hour)
	was := listing(t, stores[0], "-updated", 0, 0, nil)
	n := 0
	pages := listing(t, stores[0], "-updated", 0, 3, func() {
		pass(time.Second)
		n++
		_, err := stores[1].Put(t.Context(), written(fmt.Sprint("new-", n)))
		must(err)
		if n%4 == 0 {
			must(stores[1].Flush(t.Context()))
		}
	})
	if !slices.Equal(pages, was) {
		t.Errorf("seed %d: pages while others write: %q, at once %q", seed, pages, was)
	}
	if all.pages < 100 || all.counts < 10 || all.refused > all.pages {
		t.Errorf("seed %d: the view gave %d pages and %d counts, and did not %d times", seed, all.pages, all.counts,
			all.refused)
	}
	must(stores[0].Flush(t.Context()))
	for f, err := range stores[0].Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		t.Errorf("seed %d: %+v, %v", seed, f, err)
	}
}

// compare compares what the view says with what the index and the documents say.
func compare(t *testing.T, r *rand.Rand, seed uint64, st *varve.Store, now time.Time, all *asked) {
	t.Helper()
	eng := storetest.Inner(st).Engine
	orders := eng.Tune().Orders.(*words.Orders)
	defer func() { eng.Tune().Orders = orders }()
	all.Orders = orders

	var filters []varve.Filter
	var what []string
	filter := func(one int, name string, f varve.Filter) {
		if r.IntN(one) == 0 {
			filters, what = append(filters, f), append(what, name)
		}
	}
	day := now.Add(time.Duration(r.IntN(200)-100) * 5 * time.Hour).Add(time.Duration(r.IntN(3)) * time.Nanosecond)
	filter(4, "session", varve.InSession(names[r.IntN(len(names))]))
	filter(6, "since", varve.Since(day))
	filter(6, "until", varve.Until(day.Add(100*time.Hour)))
	filter(6, "created", varve.Created(day, day.Add(200*time.Hour)))
	filter(6, "updated", varve.Updated(day, time.Time{}))
	filter(8, "updated exactly", varve.Updated(now.Add(time.Duration(r.IntN(3)-1)*time.Nanosecond), time.Time{}))
	filter(8, "prefix", varve.WithPrefix("b"))
	filter(8, "category", varve.InCategory("red"))

	eng.Tune().Orders = nil
	type one struct {
		line varve.Line
		time int64
	}
	lines := map[string]one{}
	sessions := map[string]varve.Session{}
	for l, err := range st.Admin().Lines(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		lines[l.ID] = one{line: l}
		if s, ok := sessions[l.Session]; l.Session != "" {
			if !ok || l.CreatedAt.Before(s.First) {
				s.First = l.CreatedAt
			}
			if !ok || l.UpdatedAt.After(s.Last) {
				s.Last = l.UpdatedAt
			}
			s.ID, s.Memories, s.Bytes = l.Session, s.Memories+1, s.Bytes+l.Size
			sessions[l.Session] = s
		}
	}
	var ids []string
	for m, err := range st.Memories(t.Context(), filters...) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.ID)
		l := lines[m.ID]
		l.time = m.Timestamp.UnixMicro()
		lines[m.ID] = l
	}
	for _, key := range memstore.OrderNames() {
		by := func(a, b string) int {
			l, o := lines[a], lines[b]
			c := 0
			switch key {
			case "timestamp":
				c = cmp.Compare(l.time, o.time)
			case "created":
				c = l.line.CreatedAt.Compare(o.line.CreatedAt)
			case "updated":
				c = l.line.UpdatedAt.Compare(o.line.UpdatedAt)
			case "score":
				c = cmp.Compare(l.line.Score, o.line.Score)
			case "size":
				c = cmp.Compare(l.line.Size, o.line.Size)
			}
			return cmp.Or(c, strings.Compare(a, b))
		}
		slices.SortFunc(ids, by)
		if r.IntN(2) == 0 {
			key = "-" + key
			slices.Reverse(ids)
		}
		size, skip := r.IntN(20), r.IntN(5)*r.IntN(2)
		want := ids[min(skip, len(ids)):]
		eng.Tune().Orders = nil
		if got := listing(t, st, key, skip, size, nil, filters...); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %s of %s without the view, %d skipped, pages of %d: %q, want %q", seed, key, what, skip, size,
				got, want)
		}
		eng.Tune().Orders = all
		if got := listing(t, st, key, skip, size, nil, filters...); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %s of %s, %d skipped, pages of %d: %q, want %q", seed, key, what, skip, size, got, want)
		}
		if slices.Contains(what, "since") || slices.Contains(what, "until") || slices.Contains(what, "category") {
			continue
		}
		o, err := memstore.ParseOrder(key, "")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for l, err := range st.Admin().Lines(t.Context(), append(filters, varve.Sorted(o))...) {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, l.ID); l != lines[l.ID].line {
				t.Fatalf("seed %d: the line %+v, want %+v", seed, l, lines[l.ID].line)
			}
		}
		if !slices.Equal(got, ids) {
			t.Fatalf("seed %d: lines by %s of %s: %q, want %q", seed, key, what, got, ids)
		}
	}
	if n, err := st.Count(t.Context(), filters...); err != nil || n != int64(len(ids)) {
		t.Fatalf("seed %d: %d of %s are counted (%v), want %d", seed, n, what, err, len(ids))
	}
	var got []string
	for s, err := range st.Sessions().All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, s.ID); s != sessions[s.ID] {
			t.Fatalf("seed %d: the session %+v, want %+v", seed, s, sessions[s.ID])
		}
	}
	_, ok, err := orders.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all.note(&all.pages, ok)
	want := []string{}
	for id := range sessions {
		want = append(want, id)
	}
	slices.SortFunc(want, func(a, b string) int { return strings.Compare(sessionKey(t, a), sessionKey(t, b)) })
	if !slices.Equal(got, want) && len(want) > 0 {
		t.Fatalf("seed %d: the sessions %q, want %q", seed, got, want)
	}
}

// sessionKey is what the index sorts a session by.
func sessionKey(t *testing.T, id string) string {
	t.Helper()
	key, err := words.SessionKey(id)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
