package watching

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

// churnOptions returns options with which a segment is recycled every moment.
func churnOptions() *varve.Options {
	return storetest.In(&varve.Options{SegmentSize: 64 << 10},
		storetest.Environment{System: vfs.System{SpillBytes: 64 << 10, BacklogBytes: 4 << 20, ArchiveBytes: 256 << 20}})
}

// churn writes, one commit after the other, and prints what was acknowledged: batches of three,
// deletions, single puts, and sometimes a whole new index.
func churn(ctx context.Context, name, dir string) error {
	st, err := varve.Open(ctx, dir, churnOptions())
	if err != nil {
		return err
	}
	for i := range 150 {
		id := fmt.Sprintf("%s.%d", name, i)
		switch {
		case i%5 == 1:
			b := new(varve.Batch)
			for j := range 3 {
				b.Put(varve.Memory{ID: fmt.Sprintf("%s.%d", id, j), Content: strings.Repeat(id+" ", 100)})
			}
			if err := st.Apply(ctx, b); err != nil {
				return err
			}
			fmt.Println("batch", id)
		case i%7 == 3:
			before := fmt.Sprintf("%s.%d", name, i-1)
			if err := st.Delete(ctx, before); err == nil {
				fmt.Println("delete", before)
			} else if !errors.Is(err, varve.ErrNotFound) {
				return err
			}
		default:
			m, err := st.Put(ctx, varve.Memory{ID: id, Content: strings.Repeat(id+" ", 100)})
			if err != nil {
				return err
			}
			fmt.Println("put", id, m.Version)
		}
		if i%20 == 19 {
			if err := st.Admin().Compact(ctx); err != nil {
				return err
			}
		}
	}
	return st.Close()
}

// seenChange is the part of a change that is compared.
type seenChange struct {
	lsn, next uint64
	id        string
	deleted   bool
	more      bool
}

// watchUntil follows the store up to the memory "end". After every n changes it continues with another
// loop, on the handle that again returns.
func watchUntil(ctx context.Context, st *varve.Store, from uint64, n int, again func() *varve.Store,
	first func()) (list []seenChange, err error) {
	for {
		left := n
		for c, err := range st.Watch(ctx, from) {
			if err != nil {
				return list, err
			}
			if !c.Deleted && c.ID != "end" && !strings.HasPrefix(c.ID,
				strings.SplitN(strings.TrimSpace(c.Memory.Content), " ", 2)[0]) {
				return list, fmt.Errorf("%s holds %.30q", c.ID, c.Memory.Content)
			}
			list = append(list, seenChange{c.LSN, c.Next, c.ID, c.Deleted, c.More})
			if len(list) == 1 {
				first()
			}
			if c.ID == "end" {
				return list, nil
			}
			from = c.Next
			if left--; left == 0 {
				break
			}
		}
		st = again()
	}
}

// Processes write, and recycle the log every moment; one of them is killed. Of three watchers one keeps
// up, one begins to read when everything was released long ago, and one starts again and again with
// another handle. All see the same: each acknowledged change once, in the order of the commits, each
// batch complete.
func TestWatchProcesses(t *testing.T) {
	proofs.ManyProcesses(t, "several processes")
	ctx := context.Background()
	dir := t.TempDir()
	var segments openSegments
	o := churnOptions()
	storetest.Of(o).System.FS = segments.fs()
	st := fixture.Open(t, dir, o)
	from := st.Admin().Stats().Durable
	if _, err := st.Put(ctx, varve.Memory{ID: "begin", Content: "begin"}); err != nil {
		t.Fatal(err)
	}
	type result struct {
		list []seenChange
		err  error
	}
	var results [3]chan result
	done := make(chan struct{})
	reader := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	for i := range results {
		results[i] = make(chan result, 1)
		n, first, handle := -1, func() {}, reader
		again := func() *varve.Store { return reader }
		switch i {
		case 1:
			first = func() { <-done }
		case 2:
			n, handle = 41, st
			k := 0
			again = func() *varve.Store {
				k++
				if k%2 == 0 {
					return st
				}
				return reader
			}
		}
		go func() {
			list, err := watchUntil(ctx, handle, from, n, again, first)
			results[i] <- result{list, err}
		}()
	}
	want := map[string]uint64{"+begin": 0}
	batches := map[string]bool{}
	lines := make(chan string)
	running := 0
	begin := func(name string, kill int) {
		running++
		cmd, out := storetest.Start(t, "churn:"+name, dir)
		go func() {
			for n := 0; ; n++ {
				line, err := out.ReadString('\n')
				if err != nil {
					break
				}
				lines <- line
				if n == kill {
					_ = cmd.Process.Kill()
				}
			}
			if err := cmd.Wait(); err != nil && kill < 0 {
				t.Errorf("%s: %v", name, err)
			}
			lines <- ""
		}()
	}
	for i := range 3 {
		begin(fmt.Sprint("p", i), []int{-1, -1, 40}[i])
	}
	for later := true; running > 0; {
		line := <-lines
		if line == "" {
			if running--; later {
				later = false
				begin("late", -1)
			}
			continue
		}
		sc := bufio.NewScanner(strings.NewReader(line))
		sc.Split(bufio.ScanWords)
		var words []string
		for sc.Scan() {
			words = append(words, sc.Text())
		}
		switch words[0] {
		case "put":
			var v uint64
			if _, err := fmt.Sscan(words[2], &v); err != nil {
				t.Fatal(err)
			}
			want["+"+words[1]] = v
		case "delete":
			want["-"+words[1]] = 0
		case "batch":
			batches[words[1]] = true
			for j := range 3 {
				want[fmt.Sprintf("+%s.%d", words[1], j)] = 0
			}
		}
	}
	if err := st.Admin().Compact(ctx); err != nil {
		t.Fatal(err)
	}
	// a watcher and the archive may read one each
	if first,
		err := storetest.Inner(st).Engine.Log().Past().First(storetest.Inner(st).Engine.Log().Spilled()); err != nil ||
		segments.Load() > 4+2 {
		t.Errorf("first %d of %d, %d segments open, %v", first, storetest.Inner(st).Engine.Log().Spilled(), segments.Load(),
			err)
	}
	if names, err := storetest.Inner(st).Engine.Env().FS.ReadDir(dir + "/wal"); err != nil || len(names) > 25 {
		t.Fatalf("the log was not released: %q, %v", names, err)
	}
	close(done)
	if _, err := st.Put(ctx, varve.Memory{ID: "end", Content: "end"}); err != nil {
		t.Fatal(err)
	}
	var all []seenChange
	for i := range results {
		r := <-results[i]
		if r.err != nil {
			t.Fatalf("watcher %d, after %d changes: %v", i, len(r.list), r.err)
		}
		if i == 0 {
			all = r.list
			continue
		}
		for j := range max(len(all), len(r.list)) {
			if j >= len(all) || j >= len(r.list) || all[j] != r.list[j] {
				t.Fatalf("watcher %d sees something else at %d of %d and %d: %+v, %+v", i, j, len(r.list), len(all),
					r.list[min(j, len(r.list)-1)], all[min(j, len(all)-1)])
			}
		}
	}
	last := seenChange{next: from}
	for i, c := range all {
		if c.lsn < last.next || c.next <= c.lsn {
			t.Fatalf("change %d at %d after %d to %d", i, c.lsn, last.lsn, last.next)
		}
		sign := "+"
		if c.deleted {
			sign = "-"
		}
		v, ok := want[sign+c.id]
		if ok && v != 0 && v != c.lsn {
			t.Errorf("%s is version %d, seen at %d", c.id, v, c.lsn)
		}
		delete(want, sign+c.id)
		if parts := strings.Split(c.id, "."); len(parts) == 3 { // of a batch: whole, in order
			if c.more != (parts[2] < "2") || parts[2] > "0" && !last.more {
				t.Fatalf("change %d, %+v, after %+v", i, c, last)
			}
		} else if c.more || last.more {
			t.Fatalf("change %d, %+v, after %+v", i, c, last)
		}
		last = c
	}
	for id := range want {
		t.Errorf("%s was acknowledged and not seen", id)
	}
	t.Logf("%d changes, %d batches, over %d bytes of log", len(all), len(batches), last.next-from)
}
