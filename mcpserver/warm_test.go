package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/graph"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/served"
	"github.com/varve-db/varve/working"
)

// entities makes a store of e0 to e1099, whose files are read by the index.
func entities(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	// A background would put some of them into the index, and Close leave the few others to the log.
	first, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	b := new(varve.Batch)
	for i := range 1100 {
		e := graph.Entity{Name: fmt.Sprint("e", i)}
		b.Put(e.Memory(time.Unix(1, int64(i)), nil))
	}
	if err := first.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The graph is read as soon as a client is there, who need not wait for it; and the
// reading ends with the session (goleak).
func TestGraphIsReadBeforeItIsAskedFor(t *testing.T) {
	t.Parallel()
	dir := entities(t)
	read, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if strings.Contains(op.Path, "memories") && strings.HasSuffix(op.Path, ".json") {
			once.Do(func() { close(read) })
			<-proceed
		}
		return nil
	})
	st := openStore(t, dir, storetest.In(&varve.Options{}, storetest.Environment{System: vfs.System{FS: fsys}}))
	connected := func(groups ...string) (*mcp.ClientSession, *mcp.ServerSession) {
		a, b := mcp.NewInMemoryTransports()
		ss, err := New(served.Only(st), Options{Groups: groups}).Connect(t.Context(), a, nil)
		if err != nil {
			t.Fatal(err)
		}
		cs, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), b, nil)
		if err != nil {
			t.Fatal(err)
		}
		return cs, ss
	}
	without, withoutServer := connected(Memory)
	select {
	case <-read:
		t.Error("it is read for a client to whom it is not offered")
	case <-time.After(50 * time.Millisecond):
	}
	with, withServer := connected(Graph)
	select {
	case <-read:
	case <-time.After(30 * time.Second):
		t.Error("it is not read before it is asked for")
	}
	for cs, ss := range map[*mcp.ClientSession]*mcp.ServerSession{without: withoutServer, with: withServer} {
		_ = cs.Close()
		_ = ss.Wait()
	}
	close(proceed)
}

// A read that fails fails the question, and leaves nothing out of the next one's answer.
func TestGraphAfterAReadThatFailed(t *testing.T) {
	t.Parallel()
	dir := entities(t)
	var healthy atomic.Bool
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if strings.Contains(op.Path, "memories/entity-e7~") && !healthy.Load() {
			return syscall.EIO
		}
		return nil
	})
	st := openStore(t, dir, storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: fsys}}))
	s := &server{host: &host{}, st: st}
	s.view = newView(st, defaultGraphBytes, func(err error) { t.Error(err) }, time.Now)
	if f, err := s.searchNodes(t.Context(), "e7"); !errors.Is(err, syscall.EIO) {
		t.Errorf("%d, %v", len(f.entities), err)
	}
	healthy.Store(true)
	if f, err := s.searchNodes(t.Context(), "e7"); err != nil || len(f.entities) != 111 {
		t.Errorf("%d, %v", len(f.entities), err)
	}
}

// Who gives up need not wait until the graph is read, nor is it read again because he did.
func TestGraphAndWhoGivesUp(t *testing.T) {
	t.Parallel()
	reads, proceed, begun := atomic.Int64{}, make(chan struct{}), make(chan struct{}, 1)
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if strings.Contains(op.Path, "memories/entity-") {
			reads.Add(1)
			select {
			case begun <- struct{}{}:
			default:
			}
			<-proceed
		}
		return nil
	})
	st := openStore(t, entities(t), storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: fsys}}))
	s := &server{host: &host{}, st: st}
	s.view = newView(st, defaultGraphBytes, func(err error) { t.Error(err) }, time.Now)
	first := make(chan error)
	go func() {
		_, err := s.readGraph(t.Context())
		first <- err
	}()
	<-begun
	ctx, giveUp := context.WithCancel(t.Context())
	giveUp()
	ended := make(chan error, 1)
	go func() {
		_, err := s.readGraph(ctx)
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits for the graph")
	}
	close(proceed)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	was := reads.Load()
	if _, err := s.readGraph(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if f, err := s.readGraph(t.Context()); err != nil || len(f.entities) != 1100 || reads.Load() != was {
		t.Errorf("%d, %v, %d reads more", len(f.entities), err, reads.Load()-was)
	}
}

// What cannot be read for now is left out of the answers, and is back in them some
// seconds after it can, though nothing was committed.
func TestGraphHasAgainWhatCanBeReadAgain(t *testing.T) {
	t.Parallel()
	var rotten atomic.Bool
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		switch {
		case !rotten.Load():
		case strings.Contains(op.Path, "memories/entity-e7~"):
			return syscall.EACCES
		case strings.HasSuffix(op.Path, ".wal"): // or it would be served from there
			return syscall.EIO
		}
		return nil
	})
	st := openStore(t, entities(t), storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: fsys}}))
	s, told, now := &server{host: &host{}, st: st}, 0, time.Now()
	s.view = newView(st, defaultGraphBytes, func(err error) { told++; t.Log(err) }, func() time.Time { return now })
	has := func(n int) {
		t.Helper()
		if f, err := s.readGraph(t.Context()); err != nil || len(f.entities) != n || told != 1 {
			t.Errorf("%d and not %d, %v, told %d times", len(f.entities), n, err, told)
		}
	}
	rotten.Store(true)
	has(1099)
	now = now.Add(between)
	has(1099)
	rotten.Store(false)
	has(1099)
	now = now.Add(between)
	has(1100)
	if len(s.view.lost) != 0 {
		t.Error(s.view.lost)
	}
}

// What is not the graph's is looked through once, and not at each question from then on.
func TestViewPassesWhatIsNotTheGraphs(t *testing.T) {
	t.Parallel()
	st, now := openStore(t, t.TempDir(), &varve.Options{NoBackground: true}), time.Now()
	s := &server{host: &host{}, st: st}
	s.view = newView(st, defaultGraphBytes, func(err error) { t.Error(err) }, func() time.Time { return now })
	ask := func(n int) {
		t.Helper()
		if f, err := s.readGraph(t.Context()); err != nil || len(f.entities) != n {
			t.Fatalf("%d and not %d, %v", len(f.entities), n, err)
		}
	}
	ask(0)
	w, err := st.Working().Open(t.Context(), working.Scope{Session: "s"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if err := w.Set(t.Context(), "k", i); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(between)
	ask(0)
	if at := st.Admin().Stats().Durable; s.view.from != at {
		t.Errorf("it goes on from %d, and the log ends at %d", s.view.from, at)
	}
	e := graph.Entity{Name: "e"}
	if _, err := st.Put(t.Context(), e.Memory(now, nil)); err != nil {
		t.Fatal(err)
	}
	ask(1)
}
