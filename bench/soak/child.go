package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/working"
)

// The data of each goroutine of a process: memories of its own; batches of several memories that have the same
// state; memories of a session that is deleted as a whole; memories that are purged; and a scope of working memory.
const (
	singles  = 300
	batches  = 10
	members  = 10
	sessions = 4
	purged   = 3
)

// purgeEvery is the length of a turn, in which one process may purge once. The processes take turns.
const purgeEvery = time.Minute

// purgeTries is the maximum number of attempts of a purge: an attempt gives up if another purge, or a flush, takes
// longer than the lock wait.
const purgeTries = 5

// child is one process that works until it is killed or its input ends.
type child struct {
	st         *varve.Store
	slot, life int
	processes  int
	stopped    sync.RWMutex // locked while the judge compares; read-locked during each operation
	said       sync.Mutex
	out        *bufio.Writer
}

// work is the data of one goroutine of a child.
type work struct {
	*child
	prefix string
	rng    *rand.Rand
	n      int
	purged int64 // number of the last turn in which it purged; see purgeEvery
	scope  *working.Memory
}

func runChild(ctx context.Context, slot, life, processes, goroutines int, seed uint64, dir string) error {
	st, err := varve.Open(ctx, dir, nil)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	c := &child{st: st, slot: slot, life: life, processes: processes, out: bufio.NewWriter(os.Stdout)}
	run, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	failed := make(chan error, goroutines)
	for g := range goroutines {
		w := &work{child: c, prefix: fmt.Sprintf("s%d.g%d", slot, g), rng: rand.New(rand.NewPCG(seed, uint64(g)))}
		if w.scope, err = st.Working().Open(ctx, working.Scope{Agent: "soak", Session: w.prefix}, nil); err != nil {
			stop()
			return errors.Join(err, st.Close())
		}
		wg.Go(func() {
			for _, key := range w.keys() {
				w.say("read %s %s", key, w.state(key))
			}
			for run.Err() == nil {
				w.step(g)
			}
			failed <- w.scope.Close()
		})
	}
	c.say("ready")
	c.obey(os.Stdin)
	stop()
	wg.Wait()
	for range goroutines {
		err = errors.Join(err, <-failed)
	}
	closed := st.Close()
	if errors.Is(closed, varve.ErrLocked) { // by one that purges; it is all in the log, and the judge looks for it
		fmt.Fprintf(os.Stderr, "process %d closed the store before all changes were in files: %v\n", slot, closed)
		closed = nil
	}
	return errors.Join(err, closed)
}

// obey carries out the commands of the judge until the input ends.
func (c *child) obey(in io.Reader) {
	held := false
	for lines := bufio.NewScanner(in); lines.Scan(); {
		switch lines.Text() {
		case "pause":
			c.stopped.Lock()
			held = true
			c.say("paused")
		case "go":
			held = false
			c.stopped.Unlock()
		}
	}
	if held {
		c.stopped.Unlock()
	}
}

func (c *child) say(format string, args ...any) {
	c.said.Lock()
	defer c.said.Unlock()
	fmt.Fprintf(c.out, format+"\n", args...)
	began := time.Now()
	_ = c.out.Flush() // where its reader has gone, the input ends as well
	if took := time.Since(began); took > heldMost {
		fmt.Fprintf(os.Stderr, "process %d.%d waited %v until the judge read its output\n", c.slot, c.life, took)
	}
}

// heldMost is how long a process may wait for the judge to read its output. It reports a longer wait, because it
// commits nothing meanwhile.
const heldMost = 500 * time.Millisecond

func (w *work) keys() (all []string) {
	for i := range singles {
		all = append(all, fmt.Sprintf("%s.k%d", w.prefix, i))
	}
	for i := range batches {
		all = append(all, fmt.Sprintf("%s.b%d", w.prefix, i))
	}
	for i := range sessions {
		all = append(all, fmt.Sprintf("%s.t%d", w.prefix, i))
	}
	for i := range purged {
		all = append(all, fmt.Sprintf("%s.p%d", w.prefix, i))
	}
	return append(all, w.prefix+".w")
}

// step makes one operation.
func (w *work) step(g int) {
	w.stopped.RLock()
	defer w.stopped.RUnlock()
	ctx := context.Background()
	single := fmt.Sprintf("%s.k%d", w.prefix, w.rng.IntN(singles))
	switch n := w.rng.IntN(1000); {
	case n < 350:
		began := time.Now()
		state := w.state(single)
		w.say("op get %d %d read %s %s", time.Since(began).Microseconds(), int64(uptime()), single, state)
	case n < 650:
		w.write("put", w.next(), func(state string) error {
			_, err := w.st.Put(ctx, memory(single, w.prefix, state))
			return err
		}, single)
	case n < 750:
		w.write("update", w.next(), func(state string) error {
			_, err := w.st.Update(ctx, single, func(m *varve.Memory) error {
				m.Content = content(state)
				return nil
			})
			if errors.Is(err, varve.ErrNotFound) {
				return errRefused
			}
			return err
		}, single)
	case n < 800:
		key := fmt.Sprintf("%s.b%d", w.prefix, w.rng.IntN(batches))
		w.write("batch", w.next(), func(state string) error {
			b := new(varve.Batch)
			for i := range members {
				b.Put(memory(member(key, i), w.prefix, state))
			}
			return w.st.Apply(ctx, b)
		}, key)
	case n < 850:
		w.write("delete", "-", func(string) error {
			err := w.st.Delete(ctx, single)
			if errors.Is(err, varve.ErrNotFound) {
				return errRefused
			}
			return err
		}, single)
	case n < 890:
		w.other("search", func() error {
			_, err := w.st.Search(ctx, varve.Query{Text: word(w.rng) + " " + word(w.rng), Limit: 10})
			return err
		})
	case n < 910:
		w.other("session", func() error {
			_, err := w.st.Sessions().Get(ctx, w.prefix)
			if errors.Is(err, varve.ErrNotFound) {
				return nil // all of it is deleted, or nothing was put yet
			}
			return err
		})
	case n < 990:
		w.write("working", w.next(), func(state string) error { return w.scope.Set(ctx, "state", content(state)) },
			w.prefix+".w")
	case n < 998:
		w.session(ctx)
	default:
		// A purge waits for the files of everything before it, and writes the archive again.
		if turn := time.Now().Unix() / int64(purgeEvery/time.Second); g == 0 && turn != w.purged &&
			int(turn)%w.processes == w.slot {
			w.purged = turn
			w.purge(ctx)
		}
	}
}

// session puts some memories into a session of their own, or, if that session exists, deletes it.
func (w *work) session(ctx context.Context) {
	name := w.prefix + ".session"
	var keys []string
	for i := range sessions {
		keys = append(keys, fmt.Sprintf("%s.t%d", w.prefix, i))
	}
	if w.state(keys[0]) != "-" {
		w.write("session", "-", func(string) error {
			_, err := w.st.Sessions().Delete(ctx, name)
			return err
		}, keys...)
		return
	}
	w.write("session", w.next(), func(state string) error {
		b := new(varve.Batch)
		for _, key := range keys {
			b.Put(memory(key, name, state))
		}
		return w.st.Apply(ctx, b)
	}, keys...)
}

// purge puts a memory, or, if the memory exists, purges it.
func (w *work) purge(ctx context.Context) {
	key := fmt.Sprintf("%s.p%d", w.prefix, w.rng.IntN(purged))
	if w.state(key) == "-" {
		w.write("put", w.next(), func(state string) error {
			_, err := w.st.Put(ctx, memory(key, w.prefix, state))
			return err
		}, key)
		return
	}
	w.write("purge", "-", func(string) error {
		for try := 1; ; try++ {
			began := time.Now()
			_, err := w.st.Admin().Purge(ctx, key)
			if !errors.Is(err, varve.ErrLocked) || try == purgeTries {
				return err
			}
			w.say("op again %d %d", time.Since(began).Microseconds(), int64(uptime()))
		}
	}, key)
}

// errRefused is the error of an operation that the store refused, and that changed nothing.
var errRefused = errors.New("refused")

// write announces an operation on some keys, makes it, and reports the result.
func (w *work) write(kind, state string, do func(state string) error, keys ...string) {
	for _, key := range keys {
		w.say("begin %s %s", key, state)
	}
	began := time.Now()
	err := do(state)
	took := time.Since(began).Microseconds()
	for i, key := range keys {
		switch {
		case err == nil && i == 0:
			w.say("op %s %d %d done %s %s", kind, took, int64(uptime()), key, state)
		case err == nil:
			w.say("done %s %s", key, state)
		case errors.Is(err, errRefused):
			w.say("not %s %s", key, state)
		default: // nothing may end so while the disk works: the record does not take this line
			w.say("%s of %s: %q", kind, key, err.Error())
		}
	}
}

// other makes an operation that changes nothing.
func (w *work) other(kind string, do func() error) {
	began := time.Now()
	if err := do(); err != nil {
		w.say("%s: %q", kind, err.Error())
		return
	}
	w.say("op %s %d %d", kind, time.Since(began).Microseconds(), int64(uptime()))
}

func (w *work) next() string {
	w.n++
	return fmt.Sprintf("%s.%d.%d", w.prefix, w.life, w.n)
}

func (w *work) state(key string) string { return stateIn(context.Background(), w.st, w.scope, key) }

// stateIn returns the state of a key, which all of its memories must have.
func stateIn(ctx context.Context, st *varve.Store, scope *working.Memory, key string) string {
	last := key[strings.LastIndexByte(key, '.')+1:]
	switch last[0] {
	case 'w':
		v, found, err := scope.Get(ctx, "state")
		if err != nil {
			return "error:" + strings.ReplaceAll(err.Error(), " ", "_")
		}
		if !found {
			return "-"
		}
		text, _ := v.(string)
		return stated(text)
	case 'b':
		ids := make([]string, members)
		for i := range ids {
			ids[i] = member(key, i)
		}
		state := one(ctx, st, ids[0])
		for _, id := range ids[1:] {
			if other := one(ctx, st, id); other != state {
				return "half:" + state + "/" + other
			}
		}
		return state
	}
	return one(ctx, st, key)
}

func member(key string, i int) string { return fmt.Sprintf("%s/%d", key, i) }

func one(ctx context.Context, st *varve.Store, id string) string {
	m, err := st.Get(ctx, id)
	switch {
	case errors.Is(err, varve.ErrNotFound):
		return "-"
	case err != nil:
		return "error:" + strings.ReplaceAll(err.Error(), " ", "_")
	}
	return stated(m.Content)
}

func memory(id, session, state string) varve.Memory {
	return varve.Memory{ID: id, Content: content(state), Metadata: map[string]any{"session_id": session}}
}

// words is the vocabulary; word chooses from it with frequencies as in a language.
var words = func() (list [5000]string) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range list {
		b := make([]byte, 3+rng.IntN(7))
		for j := range b {
			b[j] = byte('a' + rng.IntN(26))
		}
		list[i] = string(b)
	}
	return list
}()

func word(rng *rand.Rand) string {
	u := rng.Float64()
	return words[int(u*u*u*float64(len(words)))]
}

// content returns a state followed by the words that are derived from it.
func content(state string) string {
	h := fnv.New64a()
	h.Write([]byte(state))
	rng := rand.New(rand.NewPCG(h.Sum64(), 3))
	var b strings.Builder
	b.WriteString(state)
	for range 20 + rng.IntN(200) {
		b.WriteByte(' ')
		b.WriteString(word(rng))
	}
	return b.String()
}

// stated returns the state in a content, or a text that begins with torn: if the content does not match that state.
func stated(text string) string {
	state, _, _ := strings.Cut(text, " ")
	if text != content(state) {
		return "torn:" + state
	}
	return state
}

// scopeOf returns the session of the working memory for a key, and reports whether the key is for working memory.
func scopeOf(key string) (string, bool) { return strings.CutSuffix(key, ".w") }
