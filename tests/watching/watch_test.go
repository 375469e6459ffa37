package watching

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// Another process sees each commit in order and once, including those that are made while it watches.
func TestWatch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	writer := fixture.Open(t, dir, nil)
	reader := fixture.Open(t, dir, nil)
	const n = 500
	from := reader.Admin().Stats().Durable
	go func() {
		for i := range n {
			if _, err := writer.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i), Content: fmt.Sprint("c", i)}); err != nil {
				t.Error(err)
			}
		}
		if err := writer.Delete(ctx, "k0"); err != nil {
			t.Error(err)
		}
	}()
	i := 0
	last := from
	for c, err := range reader.Watch(ctx, from) {
		if err != nil {
			t.Fatal(err)
		}
		if c.LSN < last {
			t.Fatalf("change at %d after %d", c.LSN, last)
		}
		last = c.Next
		if i == n {
			if !c.Deleted || c.ID != "k0" {
				t.Fatalf("last change: %+v", c)
			}
			break
		}
		if c.ID != fmt.Sprint("k", i) || c.Memory.Content != fmt.Sprint("c", i) || c.Memory.Version != c.LSN {
			t.Fatalf("change %d: %+v", i, c)
		}
		i++
	}
	// Continuing from where it stopped, no change comes twice.
	if _, err := writer.Put(ctx, varve.Memory{ID: "next", Content: "x"}); err != nil {
		t.Fatal(err)
	}
	for c, err := range reader.Watch(ctx, last) {
		if err != nil || c.ID != "next" {
			t.Fatalf("resumed: %+v, %v", c, err)
		}
		break
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for _, err := range reader.Watch(ended, reader.Admin().Stats().Durable) {
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
}

// A watcher that lags behind the release of the log gets an error with the position from which log and
// archive still have everything, and can continue from there.
func TestWatchTruncated(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, archive := range []int64{-1, 100 << 10} {
		st := fixture.Open(t, t.TempDir(), storetest.In(&varve.Options{SegmentSize: 64 << 10, NoBackground: true},
			storetest.Environment{System: vfs.System{ArchiveBytes: archive, SpillBytes: 64 << 10}}))
		from := st.Admin().Stats().Durable
		random := rand.New(rand.NewPCG(1, 2)) // data that zstd does not compress
		var versions []uint64
		for i := range 400 {
			text := make([]byte, 1000)
			for j := range text {
				text[j] = 'a' + byte(random.IntN(26))
			}
			m, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i), Content: string(text)})
			if err != nil {
				t.Fatal(err)
			}
			versions = append(versions, m.Version)
			if i%50 == 49 {
				if err := st.Admin().Compact(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		var gone *varve.TruncatedError
		for _, err := range st.Watch(ctx, from) {
			if !errors.As(err, &gone) || !errors.Is(err, varve.ErrTruncated) || gone.Oldest <= from {
				t.Fatalf("archive of %d: got %v", archive, err)
			}
		}
		for _, from := range []uint64{gone.Oldest, 0} {
			i, _ := slices.BinarySearch(versions, gone.Oldest)
			if i == 0 || i > 350 {
				t.Fatalf("archive of %d: the oldest is %d, before all but %d", archive, gone.Oldest, len(versions)-i)
			}
			for c, err := range st.Watch(ctx, from) {
				if err != nil || c.LSN != versions[i] {
					t.Fatalf("archive of %d, from %d: change %d at %d, %v, want %d", archive, from, i, c.LSN, err, versions[i])
				}
				if i++; i == len(versions) {
					break
				}
			}
		}
		for _, err := range st.Watch(ctx, versions[len(versions)-1]+1<<20) {
			if !errors.Is(err, varve.ErrInvalid) {
				t.Fatalf("a position behind the end: %v", err)
			}
		}
	}
}

// The log is released under a slow loop: it continues to read from the archive, and each position that
// it was given is one to continue from.
func TestWatchArchive(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), storetest.In(&varve.Options{SegmentSize: 64 << 10, NoBackground: true},
		storetest.Environment{System: vfs.System{SpillBytes: 64 << 10}}))
	from := st.Admin().Stats().Durable
	n := 0
	write := func() {
		b := new(varve.Batch)
		for range 3 {
			b.Put(varve.Memory{ID: fmt.Sprint("k", n%51), Content: fmt.Sprintf("%0900d", n)})
			n++
		}
		if err := st.Apply(ctx, b); err != nil {
			t.Fatal(err)
		}
		if n%30 == 0 {
			if err := st.Admin().Compact(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	write()
	var changes []varve.Change
	for c, err := range st.Watch(ctx, from) {
		if err != nil {
			t.Fatal(err)
		}
		if changes = append(changes, c); n < 1500 {
			write()
		}
		if len(changes) == n {
			break
		}
	}
	if first,
		err := storetest.Inner(st).Engine.Log().Past().First(storetest.Inner(st).Engine.Log().Spilled()); err != nil ||
		first > storetest.Inner(st).Engine.Log().Spilled()-(2<<20) {
		t.Fatalf("not much was released: %d of %d, %v", first, storetest.Inner(st).Engine.Log().Spilled(), err)
	}
	for i, c := range changes {
		if c.ID != fmt.Sprint("k", i%51) || c.Memory.Content != fmt.Sprintf("%0900d", i) || c.More != (i%3 < 2) ||
			c.Memory.Version != c.LSN {
			t.Fatalf("change %d: %+v", i, c)
		}
	}
	// More than is read at once.
	i := 0
	for c, err := range st.Watch(ctx, 0) {
		if err != nil || c.LSN != changes[i].LSN || c.Next != changes[i].Next || c.More != changes[i].More {
			t.Fatalf("change %d of all: %+v, %v", i, c, err)
		}
		if i++; i == n {
			break
		}
	}
	for i := 0; i < n-1; i += 250 {
		for c, err := range st.Watch(ctx, changes[i].Next) {
			if err != nil || c.LSN != changes[i+1].LSN {
				t.Fatalf("on from %d: %d, %v", i, c.LSN, err)
			}
			break
		}
		at, err := st.Admin().PositionAt(ctx, changes[i].Time)
		if err != nil || at != changes[i].LSN {
			t.Fatalf("position at the time of %d: %d, %v", i, at, err)
		}
	}
}

// Filters: a batch ends where the last change that passes ends.
func TestWatchFilters(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), nil)
	from := st.Admin().Stats().Durable
	of := func(id, session string) varve.Memory {
		return varve.Memory{ID: id, Content: "x", Metadata: map[string]any{"session_id": session}}
	}
	b := new(varve.Batch)
	b.Put(of("a", "s1"))
	b.Put(of("b", "s2"))
	b.Put(of("c", "s1"))
	b.PutAssembly(varve.Assembly{ID: "g", MemoryIDs: []string{"a"}})
	if err := st.Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"b", "c"} {
		if err := st.Delete(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	end := of("end", "s1")
	if _, err := st.Put(ctx, end); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "end"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		filters []varve.WatchFilter
		want    string
	}{
		{nil, "a+ b+ c+ g -b -c end end"},
		{[]varve.WatchFilter{varve.WatchKind("memory")}, "a+ b+ c -b -c end"},
		{[]varve.WatchFilter{varve.WatchKind("assembly")}, "g end"},
		{[]varve.WatchFilter{varve.WatchSession("s1")}, "a+ c -c end"},
		{[]varve.WatchFilter{varve.WatchSession("s1"), varve.WatchKind("assembly")}, ""},
	} {
		ended, cancel := context.WithCancel(ctx)
		var got []string
		var last varve.Change
		if c.want == "" {
			cancel()
		}
		for ch, err := range st.Watch(ended, from, c.filters...) {
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				break
			}
			s := ch.ID
			if ch.Deleted {
				s = "-" + s
			}
			if ch.More {
				s += "+"
			}
			if last.More && ch.Next < last.Next || ch.LSN < last.Next && !last.More {
				t.Errorf("%d to %d after %d to %d", ch.LSN, ch.Next, last.LSN, last.Next)
			}
			got, last = append(got, s), ch
			if len(got) == len(strings.Fields(c.want)) {
				break
			}
		}
		cancel()
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("got %q, want %q", s, c.want)
		}
	}
}

// Closing a store ends the loops over it, also from within one.
func TestWatchClose(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st, err := varve.Open(ctx, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	from := st.Admin().Stats().Durable
	for range 3 {
		if _, err := st.Put(ctx, varve.Memory{Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	waits := make(chan error)
	for range 2 { // both sleep
		end := st.Admin().Stats().Durable
		go func() {
			for _, err := range st.Watch(ctx, end) {
				waits <- err
			}
		}()
	}
	n := 0
	for _, err := range st.Watch(ctx, from) {
		switch n++; {
		case n == 1:
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
		case n <= 3: // were read before
			if err != nil {
				t.Fatal(err)
			}
		case !errors.Is(err, varve.ErrClosed):
			t.Fatal(err)
		}
	}
	if n != 4 {
		t.Errorf("%d turns", n)
	}
	for range 2 {
		if err := <-waits; !errors.Is(err, varve.ErrClosed) {
			t.Error(err)
		}
	}
}

// openSegments counts the files of the log that are open through its file system.
type openSegments struct{ atomic.Int64 }

func (n *openSegments) fs() vfs.FS {
	return wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
		err := call()
		if filepath.Ext(op.Path) != ".wal" {
			return err
		}
		switch op.Kind {
		case wrap.Open, wrap.Create:
			if err == nil {
				n.Add(1)
			}
		case wrap.Close:
			n.Add(-1)
		}
		return err
	})
}

// A process that only reads does not keep recycled segments open.
func TestReleasedFilesAreClosed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	var segments openSegments
	o := func(fsys vfs.FS) *varve.Options {
		return storetest.In(&varve.Options{SegmentSize: 64 << 10, NoBackground: true},
			storetest.Environment{System: vfs.System{FS: fsys, SpillBytes: 64 << 10}})
	}
	writer, reader := fixture.Open(t, dir, o(nil)), fixture.Open(t, dir, o(segments.fs()))
	most := int64(0)
	for i := range 600 {
		if _, err := writer.Put(ctx, varve.Memory{ID: fmt.Sprint(i % 20), Content: fmt.Sprintf("%01000d", i)}); err != nil {
			t.Fatal(err)
		}
		if i%30 == 29 {
			if err := writer.Admin().Compact(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := reader.Get(ctx, fmt.Sprint(i%20)); err != nil {
			t.Fatal(err)
		}
		most = max(most, segments.Load())
	}
	if most > 4 || most == 0 {
		t.Errorf("%d segments open at once", most)
	}
}

// FromNow begins after all earlier commits.
func TestWatchFromNow(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, t.TempDir(), nil)
	if _, err := st.Put(t.Context(), varve.Memory{ID: "before", Content: "x"}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { // it is not known when the loop below begins
		for i := 0; ; i++ {
			if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("after", i), Content: "x"}); err != nil {
				done <- err
				return
			}
		}
	}()
	for c, err := range st.Watch(t.Context(), varve.FromNow) {
		if err != nil || !strings.HasPrefix(c.ID, "after") {
			t.Errorf("the first change is of %q, %v", c.ID, err)
		}
		break
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
