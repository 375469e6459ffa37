package wal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/scratch"

	"go.uber.org/goleak"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(scratch.Around(m)) }

// model is a process's Machine: the newest version of each key. Methods that it does not need do nothing; tests
// embed model to override them.
type model struct {
	mu   sync.Mutex
	at   map[string]LSN
	val  map[string]string
	seen []LSN
}

func (m *model) options(dir string) Options {
	return Options{
		FS: vfs.OS(), Dir: dir, SegmentSize: 64 << 10, Create: true, UUID: [16]byte{1, 2, 3},
		Machine: m,
	}
}

func (m *model) Begin(context.Context, Start) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at == nil {
		m.at, m.val = map[string]LSN{}, map[string]string{}
	}
	return nil
}

func (m *model) Apply(entries []Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range entries {
		m.seen = append(m.seen, e.LSN)
		key := string([]byte(e.Key))
		if e.Delete {
			delete(m.at, key)
			delete(m.val, key)
			continue
		}
		m.at[key], m.val[key] = e.LSN, string(e.Value)
	}
	return nil
}

func (m *model) Current(key string) (LSN, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at[key], nil
}

func (m *model) Agrees(Mark, func(LSN) (uint64, bool)) error { return nil }
func (m *model) Deletion(string) LSN                         { return 0 }
func (m *model) Unchanged(Precondition) bool                 { return false }
func (m *model) Also(*Entry) []string                        { return nil }
func (m *model) Counts(*Entry) []Amount                      { return nil }

func open(t testing.TB, dir string, change ...func(*Options)) (*FileLog, *model) {
	t.Helper()
	m := &model{}
	o := m.options(dir)
	for _, c := range change {
		c(&o)
	}
	l, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return l, m
}

// openIn opens a log in a new folder, and closes it when the test ends.
func openIn(t testing.TB) (l *FileLog, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "s")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, _ = open(t, dir)
	t.Cleanup(func() { _ = l.Close() })
	return l, dir
}

func put(key, value string) *Batch {
	return &Batch{Entries: []Entry{{Key: key, Kind: 16, Value: []byte(value)}}}
}

// together appends batches in one group, led by the first: like those that queue while a sync of this process
// is running. It returns the error of each.
func together(t testing.TB, l *FileLog, batches ...*Batch) []error {
	t.Helper()
	ctx := context.Background()
	l.q.syncBegins(2 * groupEnough)
	var list []*request
	led := make(chan struct{})
	for i, b := range batches {
		r, err := l.request(b)
		if err != nil {
			t.Fatal(err)
		}
		lead, err := l.q.add(r)
		if err != nil || lead != (i == 0) {
			t.Fatal(i, lead, err)
		}
		list = append(list, r)
		if !lead {
			continue
		}
		go func() {
			l.lead(ctx, r)
			close(led)
		}()
		for waits := false; !waits; time.Sleep(time.Millisecond) {
			select {
			case <-led:
				t.Fatal("the leader waits for nobody while a sync is under way")
			default:
			}
			l.q.mu.Lock()
			waits = l.q.enough != nil
			l.q.mu.Unlock()
		}
	}
	l.q.syncEnds(2 * groupEnough)
	<-led
	var errs []error
	for i, r := range list {
		if i > 0 {
			select {
			case w := <-r.wake:
				if w != wakeDone {
					t.Fatalf("%d was not in the leader's group: %d", i, w)
				}
			default:
				t.Fatalf("%d was not in the leader's group", i)
			}
		}
		_, err := r.answer()
		errs = append(errs, err)
	}
	return errs
}

func mustAppend(t testing.TB, l *FileLog, b *Batch) LSN {
	t.Helper()
	lsn, err := l.Append(context.Background(), b)
	if err != nil {
		t.Fatal(err)
	}
	return lsn
}

func TestAppendAndReopen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, m := open(t, dir)
	if !l.Report().Created {
		t.Fatalf("report: %+v", l.Report())
	}
	want := map[string]string{}
	for i := range 3000 { // several segments
		k, v := fmt.Sprintf("mkey%d", i%700), fmt.Sprintf("value %d", i)
		mustAppend(t, l, put(k, v))
		want[k] = v
	}
	mustAppend(t, l, &Batch{Entries: []Entry{{Key: "mkey1", Kind: 17, Delete: true}}})
	delete(want, "mkey1")
	check := func(m *model) {
		t.Helper()
		if len(m.val) != len(want) {
			t.Fatalf("%d keys, want %d", len(m.val), len(want))
		}
		for k, v := range want {
			if m.val[k] != v {
				t.Fatalf("%s is %q, want %q", k, m.val[k], v)
			}
		}
	}
	check(m)
	e, err := l.ReadAt(context.Background(), m.at["mkey7"])
	if err != nil || string(e.Value) != want["mkey7"] || e.Key != "mkey7" {
		t.Fatalf("ReadAt: %+v, %v", e, err)
	}
	n := 0
	for e, err := range l.Scan(context.Background(), l.state.from.Load()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.LSN != m.seen[n] {
			t.Fatalf("Scan: entry %d is %d, applied was %d", n, e.LSN, m.seen[n])
		}
		n++
	}
	if n != 3001 {
		t.Fatalf("Scan: %d entries", n)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, m = open(t, dir)
	defer l.Close()
	if r := l.Report(); !r.Recovered || r.Created || r.TornTail != nil || r.Damage != nil {
		t.Fatalf("report: %+v", r)
	}
	check(m)
}

func TestPreconditions(t *testing.T) {
	t.Parallel()
	l, _ := open(t, t.TempDir())
	defer l.Close()
	ctx := context.Background()
	v1 := mustAppend(t, l, put("mk", "1"))
	b := put("mk", "2")
	b.Preconditions = []Precondition{{Key: "mk", LSN: 0}}
	var conflict *ConflictError
	if _, err := l.Append(ctx, b); !errors.As(err, &conflict) || !errors.Is(err, errs.ErrConflict) || conflict.Found != v1 {
		t.Fatalf("absent: %v", err)
	}
	b.Preconditions[0].LSN = v1
	v2 := mustAppend(t, l, b)
	if _, err := l.Append(ctx, b); !errors.As(err, &conflict) || conflict.Found != v2 {
		t.Fatalf("stale: %v", err)
	}
	b.Preconditions = []Precondition{{LSN: v2}}
	if _, err := l.Append(ctx, b); !errors.Is(err, errs.ErrConflict) {
		t.Fatalf("log position: %v", err)
	}
	b.Preconditions[0].LSN = l.Applied()
	mustAppend(t, l, b)
}

// Several handles act as several processes: each has its own locks.
func TestHandlesTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const handles, each = 4, 200
	var wg sync.WaitGroup
	logs := make([]*FileLog, handles)
	models := make([]*model, handles)
	for i := range logs {
		logs[i], models[i] = open(t, dir)
		defer logs[i].Close()
	}
	for i, l := range logs {
		for g := range 4 {
			wg.Go(func() {
				for n := range each {
					key := "mcounter"
					for {
						m := models[i]
						if err := l.CatchUp(context.Background()); err != nil {
							t.Error(err)
							return
						}
						m.mu.Lock()
						at, val := m.at[key], m.val[key]
						m.mu.Unlock()
						var v uint64
						if val != "" {
							v = binary.BigEndian.Uint64([]byte(val))
						}
						b := put(key, string(binary.BigEndian.AppendUint64(nil, v+1)))
						b.Preconditions = []Precondition{{Key: key, LSN: at}}
						_, err := l.Append(context.Background(), b)
						if err == nil {
							break
						}
						if !errors.Is(err, errs.ErrConflict) {
							t.Error(err)
							return
						}
					}
					mustAppend(t, l, put(fmt.Sprintf("mh%dg%dn%d", i, g, n), "x"))
				}
			})
		}
	}
	wg.Wait()
	for i, l := range logs {
		if err := l.CatchUp(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := binary.BigEndian.Uint64([]byte(models[i].val["mcounter"])); got != handles*4*each {
			t.Fatalf("handle %d: counter %d, want %d", i, got, handles*4*each)
		}
		if len(models[i].val) != handles*4*each+1 {
			t.Fatalf("handle %d: %d keys", i, len(models[i].val))
		}
		for j, lsn := range models[i].seen {
			if lsn != models[0].seen[j] {
				t.Fatalf("handle %d applied another order", i)
			}
		}
	}
}

func TestReadOnlyFollows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	mustAppend(t, l, put("ma", "1"))
	ro, m := open(t, dir, func(o *Options) { o.ReadOnly = true })
	defer ro.Close()
	if m.val["ma"] != "1" {
		t.Fatalf("read-only handle has %v", m.val)
	}
	mustAppend(t, l, put("mb", "2"))
	if err := ro.CatchUp(context.Background()); err != nil {
		t.Fatal(err)
	}
	if m.val["mb"] != "2" {
		t.Fatalf("read-only handle has %v", m.val)
	}
	if _, err := ro.Append(context.Background(), put("mc", "3")); !errors.Is(err, errs.ErrReadOnly) {
		t.Fatalf("append: %v", err)
	}
	l.Close()
}

func TestBatchTooLarge(t *testing.T) {
	t.Parallel()
	l, m := open(t, t.TempDir())
	defer l.Close()
	big := string(make([]byte, 33<<10))
	if _, err := l.Append(context.Background(), put("mk", big)); !errors.Is(err, errs.ErrTooLarge) {
		t.Fatalf("one: %v", err)
	}
	b := &Batch{}
	for i := range 40 {
		b.Entries = append(b.Entries, Entry{Key: fmt.Sprint("m", i), Kind: 16, Value: make([]byte, 1000)})
	}
	if _, err := l.Append(context.Background(), b); !errors.Is(err, errs.ErrBatchTooLarge) {
		t.Fatalf("many: %v", err)
	}
	b.Entries = b.Entries[:29]
	mustAppend(t, l, b)
	if len(m.val) != 29 {
		t.Fatalf("%d keys", len(m.val))
	}
}

func BenchmarkAppend1(b *testing.B) {
	l, _ := open(b, b.TempDir(), func(o *Options) { o.SegmentSize = 64 << 20 })
	defer l.Close()
	v := string(make([]byte, 1000))
	for b.Loop() {
		mustAppend(b, l, put("mkey", v))
	}
}

func BenchmarkAppend64(b *testing.B) {
	l, _ := open(b, b.TempDir(), func(o *Options) { o.SegmentSize = 64 << 20 })
	defer l.Close()
	v := string(make([]byte, 1000))
	b.SetParallelism(32)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			mustAppend(b, l, put("mkey", v))
		}
	})
}
