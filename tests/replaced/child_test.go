package replaced

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/working"
)

// command is a line that the test sends to a library process.
type command struct {
	Do         string // open, put, bulk, write, mark, stop, watch, op, get, close
	N          int    // how many
	Op         string // of op: a name of operations
	Prefix     string // of open: what the ids of this process begin with
	Watch      bool   // of open: adopt edits of the files
	Background bool   // of open: flush in the background
	MustExist  bool   // of open
}

// answer is a line of output of a library process: the end of a command, an answered write, a change or
// the end of a watch.
type answer struct {
	Do       string `json:",omitempty"` // the command that has ended; "closing" and "flushing" when one begins
	Write    *write `json:",omitempty"`
	Change   string `json:",omitempty"` // the id of a change that Watch has yielded
	WatchEnd bool   `json:",omitempty"`
	Err      string `json:",omitempty"`
	Replaced bool   `json:",omitempty"`
	Unread   []string
}

// libraryProcess is a process that uses the library as an application does, told by its input.
type libraryProcess struct {
	ctx    context.Context
	dir    string
	prefix string
	st     *varve.Store

	out sync.Mutex

	mu      sync.Mutex
	changed *sync.Cond
	n       int            // of the last id
	acked   map[string]int // id: acknowledged revision
	stopped bool
	began   []int // for each writer: operations begun
	ended   []int // likewise: operations ended
	over    []bool
	writers sync.WaitGroup

	watching sync.WaitGroup
	unwatch  context.CancelFunc
}

const writerCount = 4

func libraryChild(ctx context.Context, dir string) error {
	p := &libraryProcess{ctx: ctx, dir: dir, acked: map[string]int{}, unwatch: func() {}}
	p.changed = sync.NewCond(&p.mu)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var c command
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			return err
		}
		if p.do(c) {
			return nil
		}
	}
	return in.Err()
}

func (p *libraryProcess) say(a answer) {
	b, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	p.out.Lock()
	defer p.out.Unlock()
	_, _ = os.Stdout.Write(append(b, '\n'))
}

// do executes a command and reports whether it was the last one.
func (p *libraryProcess) do(c command) (last bool) {
	end := answer{Do: c.Do}
	var err error
	switch c.Do {
	case "open":
		p.prefix = c.Prefix
		p.st, err = varve.Open(p.ctx, p.dir, &varve.Options{
			WatchFiles: c.Watch, NoBackground: !c.Background, MustExist: c.MustExist, LockWait: patience / 2,
		})
	case "put":
		for range c.N {
			p.write("put")
		}
	case "bulk":
		for n := 0; n < c.N; n += bulkSize {
			p.write("bulk")
		}
	case "write":
		p.mu.Lock()
		p.stopped = false
		p.began, p.ended, p.over = make([]int, writerCount), make([]int, writerCount), make([]bool, writerCount)
		p.mu.Unlock()
		for g := range writerCount {
			p.writers.Go(func() { p.writer(g) })
		}
	case "mark":
		p.mark(c.N)
	case "stop":
		p.mu.Lock()
		p.stopped = true
		p.mu.Unlock()
		p.writers.Wait()
	case "watch":
		p.watch()
	case "op":
		if c.Op == "flush" {
			p.say(answer{Do: "flushing"})
		}
		p.write(c.Op)
	case "get":
		end.Unread = p.unread()
	case "close":
		p.say(answer{Do: "closing"})
		err = p.st.Close()
		p.unwatch()
		p.watching.Wait()
	default:
		err = fmt.Errorf("no such command: %s", c.Do)
	}
	if err != nil {
		end.Err, end.Replaced = err.Error(), errors.Is(err, varve.ErrReplaced)
	}
	p.say(end)
	return c.Do == "close" || c.Do == "open" && err != nil
}

const bulkSize = 50

// ids returns new ids.
func (p *libraryProcess) ids(n int) (list []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range n {
		p.n++
		list = append(list, fmt.Sprintf("%s-%d", p.prefix, p.n))
	}
	return list
}

func memories(ids []string, rev int) iter.Seq[varve.Memory] {
	return func(yield func(varve.Memory) bool) {
		for _, id := range ids {
			if !yield(varve.Memory{ID: id, Content: text(id, rev)}) {
				return
			}
		}
	}
}

// operations are the operations of write by name: each writes ids, and returns its error.
var operations = map[string]struct {
	ids int
	do  func(ctx context.Context, st *varve.Store, ids []string) error
}{
	"put": {1, func(ctx context.Context, st *varve.Store, ids []string) error {
		_, err := st.Put(ctx, varve.Memory{ID: ids[0], Content: text(ids[0], 1)})
		return err
	}},
	"async": {1, func(ctx context.Context, st *varve.Store, ids []string) error {
		_, err := st.PutAsync(varve.Memory{ID: ids[0], Content: text(ids[0], 1)}).Wait(ctx)
		return err
	}},
	"bulk": {bulkSize, func(ctx context.Context, st *varve.Store, ids []string) error {
		b := new(varve.Batch)
		for m := range memories(ids, 1) {
			b.Put(m)
		}
		return st.Apply(ctx, b)
	}},
	"apply": {3, func(ctx context.Context, st *varve.Store, ids []string) error {
		b := new(varve.Batch)
		for m := range memories(ids, 1) {
			b.Put(m)
		}
		return st.Apply(ctx, b)
	}},
	"putall": {3, func(ctx context.Context, st *varve.Store, ids []string) error {
		_, err := st.PutAll(ctx, memories(ids, 1))
		return err
	}},
	"transact": {2, func(ctx context.Context, st *varve.Store, ids []string) error {
		return st.Transact(ctx, func(tx *varve.Tx) error {
			for m := range memories(ids, 1) {
				if _, err := tx.Put(m); err != nil {
					return err
				}
			}
			return nil
		})
	}},
	"update": {0, func(ctx context.Context, st *varve.Store, _ []string) error {
		_, err := st.Update(ctx, "base-0", func(m *varve.Memory) error {
			m.Content += "+"
			return nil
		})
		return err
	}},
	"delete": {0, func(ctx context.Context, st *varve.Store, _ []string) error { return st.Delete(ctx, "base-1") }},
	"purge": {0, func(ctx context.Context, st *varve.Store, _ []string) error {
		_, err := st.Admin().Purge(ctx, "base-2")
		return err
	}},
	"assembly": {0, func(ctx context.Context, st *varve.Store, _ []string) error {
		a := varve.Assembly{ID: "group-a", Name: "of A", MemoryIDs: []string{"base-3"}}
		_, err := st.Assemblies().Put(ctx, a, varve.AllowMissing())
		return err
	}},
	"working": {0, func(ctx context.Context, st *varve.Store, _ []string) error {
		m, err := st.Working().Open(ctx, working.Scope{Session: "a"}, nil)
		if err != nil {
			return err
		}
		return m.Set(ctx, "key", "of A")
	}},
	"config": {0, func(ctx context.Context, st *varve.Store, _ []string) error {
		return st.Admin().UpdateConfig(ctx, func(c *varve.Config) error {
			c.IndexBackupCount = new(4 + int(now()%50))
			return nil
		})
	}},
	"flush":   {0, func(ctx context.Context, st *varve.Store, _ []string) error { return st.Flush(ctx) }},
	"compact": {0, func(ctx context.Context, st *varve.Store, _ []string) error { return st.Admin().Compact(ctx) }},
	"rebuild": {0, func(ctx context.Context, st *varve.Store, _ []string) error {
		return st.Admin().RebuildIndex(ctx)
	}},
}

// operationNames returns the operations that an idle process is told to do, in a fixed order.
func operationNames() []string {
	names := slices.Sorted(maps.Keys(operations))
	return slices.DeleteFunc(names, func(s string) bool { return s == "bulk" })
}

// write executes an operation and reports its answer, with the times around it. It returns whether the
// answer was an error.
func (p *libraryProcess) write(op string) (failed bool) {
	o := operations[op]
	ids := p.ids(o.ids)
	return p.answered(write{Op: op, IDs: ids, Rev: 1}, func(ctx context.Context) error { return o.do(ctx, p.st, ids) })
}

// rewrite updates the memory of a writer to a new revision.
func (p *libraryProcess) rewrite(id string, rev int) (failed bool) {
	return p.answered(write{Op: "rewrite", IDs: []string{id}, Rev: rev}, func(ctx context.Context) error {
		_, err := p.st.Update(ctx, id, func(m *varve.Memory) error {
			m.Content = text(id, rev)
			return nil
		})
		if errors.Is(err, varve.ErrNotFound) && rev == 1 {
			_, err = p.st.Put(ctx, varve.Memory{ID: id, Content: text(id, rev)})
		}
		return err
	})
}

func (p *libraryProcess) answered(w write, do func(ctx context.Context) error) (failed bool) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	w.Begin = now()
	err := do(ctx)
	w.End = now()
	if err != nil {
		w.Err, w.Replaced = err.Error(), errors.Is(err, varve.ErrReplaced)
	} else {
		p.mu.Lock()
		for _, id := range w.IDs {
			p.acked[id] = w.Rev
		}
		p.mu.Unlock()
	}
	p.say(answer{Write: &w})
	return err != nil
}

// writerMost is the maximum number of writes of a process whose writers are not stopped.
const writerMost = 3000

// writer writes until it is stopped, or until three consecutive answers were errors.
func (p *libraryProcess) writer(g int) {
	own := fmt.Sprintf("%s-own-%d-%d", p.prefix, g, now())
	kinds := []string{"put", "rewrite", "apply", "async", "rewrite", "transact", "putall"}
	for i, errs, rev := 0, 0, 0; ; i++ {
		p.mu.Lock()
		if p.stopped || errs == 3 || i == writerMost {
			p.over[g] = true
			p.changed.Broadcast()
			p.mu.Unlock()
			return
		}
		p.began[g]++
		p.mu.Unlock()
		var failed bool
		if kind := kinds[(i+g)%len(kinds)]; kind == "rewrite" {
			rev++
			failed = p.rewrite(own, rev)
		} else {
			failed = p.write(kind)
		}
		if errs++; !failed {
			errs = 0
		}
		p.mu.Lock()
		p.ended[g]++
		p.changed.Broadcast()
		p.mu.Unlock()
	}
}

// mark blocks until each writer has completed n operations that it began after the call, or has ended.
func (p *libraryProcess) mark(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from := slices.Clone(p.began)
	for g := range p.began {
		for !p.over[g] && p.ended[g] < from[g]+n {
			p.changed.Wait()
		}
	}
}

func (p *libraryProcess) watch() {
	ctx, cancel := context.WithCancel(p.ctx)
	p.unwatch = cancel
	from := p.st.Admin().Stats().Durable
	p.watching.Go(func() {
		for c, err := range p.st.Watch(ctx, from) {
			if err != nil {
				p.say(answer{WatchEnd: true, Err: err.Error(), Replaced: errors.Is(err, varve.ErrReplaced)})
				return
			}
			p.say(answer{Change: c.ID})
		}
	})
}

// unread returns the acknowledged memories that cannot be read, with the reasons.
func (p *libraryProcess) unread() (list []string) {
	p.mu.Lock()
	acked := maps.Clone(p.acked)
	p.mu.Unlock()
	for id, rev := range acked {
		ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
		m, err := p.st.Get(ctx, id)
		cancel()
		if err != nil || revision(id, m.Content) < rev {
			list = append(list, fmt.Sprintf("%s: %q, %v", id, m.Content, err))
		}
	}
	slices.Sort(list)
	return list
}
