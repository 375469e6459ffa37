package storm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/memstore"
)

// stormOptions returns options with which everything happens often: segments are left, released,
// archived and recycled within a second.
func stormOptions() *varve.Options {
	return storetest.In(&varve.Options{SegmentSize: 64 << 10},
		storetest.Environment{System: vfs.System{SpillBytes: 256 << 10, BacklogBytes: 4 << 20, ArchiveBytes: 512 << 10}})
}

// The parts of one process of a storm.
const (
	stormWorkers = 3
	stormKeys    = 8
	stormCounter = "counter"
	stormElder   = "elder" // the slot of a process that lives long and only reads
)

// stormer is one process of a storm.
type stormer struct {
	st         *varve.Store
	slot, life string
	mu         sync.Mutex
	n          int
	known      map[string]string // the state of a memory, if it is certain
	back       map[string]former // what an undo makes of it
}

// former is the state of a memory before its newest version.
type former struct {
	at    uint64 // that version
	state string
}

// knows records the state of a memory, and its version if a put of this process has just written it.
func (s *stormer) knows(key, state string, at uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, certain := s.known[key]
	if delete(s.back, key); at != 0 && certain {
		s.back[key] = former{at, was}
	}
	s.known[key] = state
}

// forget records that the state of a memory is uncertain, and returns what an undo would make of it.
func (s *stormer) forget(key string) (was former, known string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, ok = s.back[key]
	known = s.known[key]
	delete(s.known, key)
	delete(s.back, key)
	return was, known, ok
}

// undo undoes the newest version of a memory. Only assemblies may depend on that version.
func (s *stormer) undo(ctx context.Context, key string) {
	was, _, ok := s.forget(key)
	if !ok {
		s.read(key)
		return
	}
	s.say("begin %s %s", key, was.state)
	_, err := s.st.Undo(ctx, varve.UndoOptions{Position: was.at})
	for _, refusal := range []error{varve.ErrConflict, varve.ErrNotFound, varve.ErrTruncated, varve.ErrLocked} {
		if errors.Is(err, refusal) && !errors.Is(err, varve.ErrOutcomeUnknown) {
			s.say("not %s %s", key, was.state)
			return
		}
	}
	s.answered(err, "done "+key+" "+was.state, "not "+key+" "+was.state)
	if err == nil {
		s.knows(key, was.state, 0)
	}
}

// stormChild works on a store until it is killed or its input ends. Before each write it prints what it
// will do, and afterwards the result.
func stormChild(ctx context.Context, arg, dir string) error {
	var slot, life string
	var seed uint64
	if _, err := fmt.Sscanf(strings.ReplaceAll(arg, ":", " "), "%s %s %d", &slot, &life, &seed); err != nil {
		return err
	}
	st, err := varve.Open(ctx, dir, stormOptions())
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	s := &stormer{st: st, slot: slot, life: life, known: map[string]string{}, back: map[string]former{}}
	work, stop := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	var wg sync.WaitGroup
	workers := stormWorkers
	if slot == stormElder {
		workers = 0
		wg.Go(func() { s.reread(work, rand.New(rand.NewPCG(seed, 98))) })
	}
	for g := range workers {
		rng := rand.New(rand.NewPCG(seed, uint64(g)))
		wg.Go(func() {
			s.begin(g)
			for work.Err() == nil {
				s.step(g, rng)
			}
		})
	}
	wg.Go(func() { s.keep(work, dir, rand.New(rand.NewPCG(seed, 99))) })
	wg.Wait()
	if err := st.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	// A canceled wait for a lock leaves a goroutine in flock, which cannot be canceled: its descriptor
	// is closed when the holder releases the lock. The storm stops holders only for a while; a leak
	// stays.
	left := storetest.OpenBelow(dir)
	for end := time.Now().Add(time.Minute); len(left) > 0 && !slices.ContainsFunc(left, notLock) &&
		time.Now().Before(end); left = storetest.OpenBelow(dir) {
		time.Sleep(10 * time.Millisecond)
	}
	if len(left) > 0 {
		return fmt.Errorf("still open after Close: %v", left)
	}
	s.say("closed")
	return nil
}

func notLock(name string) bool { return !strings.HasSuffix(name, ".lock") }

func (s *stormer) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Printf(format+"\n", args...)
}

// begin reads what the previous process has left.
func (s *stormer) begin(g int) {
	for k := range stormKeys {
		s.read(s.key(g, k))
	}
}

func (s *stormer) key(g, k int) string {
	switch k {
	case 0:
		return fmt.Sprintf("s%s.g%d.batch", s.slot, g) // written as a batch of several
	case 6:
		return fmt.Sprintf("s%s.g%d.group", s.slot, g) // an assembly
	case 7:
		return fmt.Sprintf("s%s.g%d.note", s.slot, g)
	}
	return fmt.Sprintf("s%s.g%d.k%d", s.slot, g, k)
}

func (s *stormer) read(key string) {
	state := ""
	// A batch whose answer was not received may become durable between two reads.
	for tries := 0; tries == 0 || tries < stormKeys && strings.HasPrefix(state, "half:"); tries++ {
		state = storetest.OneState(key, statesIn(s.st))
	}
	s.say("read %s %s", key, state)
}

func (s *stormer) step(g int, rng *rand.Rand) {
	key := s.key(g, rng.IntN(stormKeys))
	ctx := context.Background()
	if rng.IntN(6) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(2000))*time.Microsecond)
		defer cancel()
	}
	size := rng.IntN(200)
	if rng.IntN(10) == 0 {
		size = rng.IntN(6000)
	}
	if rng.IntN(30) == 0 {
		_, _ = s.st.Get(ctx, editedID(rng.IntN(stormEdited))) // so that saves by hand are found
	}
	switch rng.IntN(10) {
	case 0, 1, 2:
		s.read(key)
	case 3:
		s.count(ctx)
	case 4:
		s.write(ctx, key, "-", 0, rng)
	case 5:
		s.undo(ctx, key)
	default:
		s.mu.Lock()
		s.n++
		state := fmt.Sprintf("%s.%s.%d", s.slot, s.life, s.n)
		s.mu.Unlock()
		s.write(ctx, key, state, size, rng)
	}
}

func (s *stormer) write(ctx context.Context, key, state string, size int, rng *rand.Rand) {
	_, was, _ := s.forget(key)
	s.say("begin %s %s", key, state)
	var err error
	var m varve.Memory
	ids := storetest.MemberIDs(key)
	switch async := rng.IntN(4) == 0; {
	case len(ids) > 1:
		b := new(varve.Batch)
		for _, id := range ids {
			if state == "-" {
				b.Delete(id)
			} else {
				b.Put(varve.Memory{ID: id, Content: storetest.Content(state, size)})
			}
		}
		err = s.st.Apply(ctx, b)
	case storetest.IsGroup(key) && state != "-":
		_, err = s.st.Assemblies().Put(ctx, s.group(key, storetest.Content(state, size)), varve.AllowMissing())
	case storetest.IsNote(key) && state != "-":
		var info varve.NoteInfo
		info, err = s.st.Notes().Write(ctx, storetest.NotePath(key), []byte(storetest.Content(state, size)))
		m.Version = info.Version
	case state == "-":
		switch {
		case storetest.IsGroup(key):
			err = s.st.Assemblies().Delete(ctx, key)
		case storetest.IsNote(key):
			err = s.st.Notes().Delete(ctx, storetest.NotePath(key))
		default:
			err = s.st.Delete(ctx, key)
		}
		if errors.Is(err, varve.ErrNotFound) {
			s.say("not %s -", key) // one without an answer may still take effect
			s.say("read %s -", key)
			return
		}
	case async:
		m, err = s.st.PutAsync(varve.Memory{ID: key, Content: storetest.Content(state, size),
			Embedding: storetest.Vector(key, state), Metadata: labels(key)}).Wait(context.Background())
	default:
		m, err = s.st.Put(ctx,
			varve.Memory{ID: key, Content: storetest.Content(state, size), Embedding: storetest.Vector(key, state),
				Metadata: labels(key)})
	}
	s.answered(err, "done "+key+" "+state, "not "+key+" "+state)
	if err == nil && len(ids) == 1 && !storetest.IsGroup(key) {
		if was != "" {
			s.knows(key, was, 0)
		}
		s.knows(key, state, m.Version)
	}
}

// group returns an assembly of memories that the same goroutine writes.
func (s *stormer) group(key, description string) varve.Assembly {
	own := strings.TrimSuffix(key, "group")
	return varve.Assembly{ID: key, Name: key, Description: description,
		MemoryIDs: []string{own + "k1", own + "k2", own + "k3"}}
}

// answered prints the result of an operation; nothing if its outcome is unknown.
func (s *stormer) answered(err error, done, not string) {
	switch {
	case err == nil:
		s.say("%s", done)
	case errors.Is(err, varve.ErrOutcomeUnknown):
	case errors.Is(err, context.DeadlineExceeded):
		s.say("%s", not)
	default:
		s.say("%s: %v", not, err) // a line that the record ignores
	}
}

// count increments the counter that all processes share.
func (s *stormer) count(ctx context.Context) {
	s.say("counting")
	n := 0
	_, err := s.st.Update(ctx, stormCounter, func(m *varve.Memory) error {
		if _, err := fmt.Sscanf(m.Content, "%d", &n); err != nil {
			return err
		}
		n++
		m.Content = fmt.Sprint(n)
		return nil
	})
	s.answered(err, fmt.Sprint("counted ", n), "uncounted")
}

// reread reads again and again what others write, like a long-lived reader.
func (s *stormer) reread(ctx context.Context, rng *rand.Rand) {
	other := &stormer{slot: fmt.Sprint(rng.IntN(8))}
	get := statesIn(s.st)
	for ctx.Err() == nil {
		key := other.key(rng.IntN(stormWorkers), 1+rng.IntN(stormKeys-1))
		if state := get(key); strings.Contains(state, ":") {
			s.say("reader: %s is %q", key, state)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(rng.IntN(3000)) * time.Microsecond):
		}
	}
}

// keep does what a process does besides writing.
func (s *stormer) keep(ctx context.Context, dir string, rng *rand.Rand) {
	for ctx.Err() == nil {
		var err error
		what := ""
		switch rng.IntN(13) {
		case 0:
			what, err = "flush", s.st.Flush(ctx)
		case 1:
			what, err = "compact", s.st.Admin().Compact(ctx)
		case 2:
			what = "list"
			for _, e := range s.st.Memories(ctx) {
				if e != nil && !ofEditor(e.Error()) {
					err = errors.Join(err, e)
				}
			}
		case 3:
			what = "history"
			for _, e := range s.st.History(ctx, s.key(rng.IntN(stormWorkers), 1)) {
				if e != nil && !errors.Is(e, varve.ErrNotFound) && !errors.Is(e, varve.ErrTruncated) {
					err = errors.Join(err, e)
				}
			}
		case 4:
			what = "verify"
			for f, e := range s.st.Admin().Verify(ctx, varve.VerifyOptions{}) {
				err = errors.Join(err, e)
				if f.Severity != varve.SeverityInfo && !ofEditor(f.Path) {
					err = errors.Join(err, fmt.Errorf("%+v", f))
				}
			}
		case 5:
			what, err = "read-only handle", s.look(ctx, dir)
		case 6:
			what = "health"
			if h := s.st.Health(ctx); !h.OK {
				err = errors.Join(h.Problems...)
			}
		case 7:
			what = "search"
			_, err = s.st.Search(ctx, varve.Query{Vector: storetest.Vector("s.k1", "any"), Limit: 5})
		case 9:
			what = "sorted list"
			names := memstore.OrderNames()
			o, oerr := memstore.ParseOrder(names[rng.IntN(len(names))], "")
			err = oerr
			for _, e := range s.st.Memories(ctx, varve.Sorted(o)) {
				if e != nil && !ofEditor(e.Error()) {
					err = errors.Join(err, e)
				}
			}
		case 11:
			what = "search by words and filters"
			err = s.words(ctx, rng)
		case 12:
			if rng.IntN(8) == 0 { // all of the words are rebuilt
				what, err = "language", s.st.Admin().UpdateConfig(ctx, func(c *varve.Config) error {
					c.TextLanguage = []string{"en", "none", "de"}[rng.IntN(3)]
					return nil
				})
			}
		case 10:
			what = "sessions"
			for _, e := range s.st.Sessions().All(ctx) {
				err = errors.Join(err, e)
			}
		case 8:
			what = "list assemblies"
			for _, e := range s.st.Assemblies().All(ctx) {
				err = errors.Join(err, e)
			}
		}
		if err != nil && ctx.Err() == nil {
			s.say("%s: %q", what, err.Error())
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(rng.IntN(60)) * time.Millisecond):
		}
	}
}

// labels returns the metadata that filters use.
func labels(key string) map[string]any {
	slot, _, _ := strings.Cut(key, ".")
	return map[string]any{"category": slot, "tags": []string{"storm", slot}, "key": key, "session_id": slot}
}

// words searches by words, and lists by labels: every result has the label.
func (s *stormer) words(ctx context.Context, rng *rand.Rand) error {
	slot := fmt.Sprint("s", rng.IntN(8))
	bad := func(m *varve.Memory, err error) error {
		switch {
		case err != nil && ofEditor(err.Error()):
			return nil
		case err == nil && m.Metadata["category"] != slot:
			return fmt.Errorf("with category %s %s is found: %v", slot, m.ID, m.Metadata)
		}
		return err
	}
	hits, err := s.st.Search(ctx, varve.Query{Text: "tag:storm", Limit: 50}, varve.InCategory(slot))
	if err != nil && ofEditor(err.Error()) {
		err = nil
	}
	for _, h := range hits {
		err = errors.Join(err, bad(&h.Memory, nil))
	}
	o, oerr := memstore.ParseOrder("-timestamp", "")
	err = errors.Join(err, oerr)
	for _, filter := range []varve.Filter{varve.WithTag(slot), varve.InCategory(slot)} {
		for m, e := range s.st.Memories(ctx, filter, varve.Sorted(o)) {
			err = errors.Join(err, bad(&m, e))
		}
		_, e := s.st.Count(ctx, filter)
		err = errors.Join(err, e)
	}
	return err
}

// look reads through a read-only handle.
func (s *stormer) look(ctx context.Context, dir string) error {
	st, err := varve.Open(ctx, dir, &varve.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	for range 5 {
		if state := storetest.StateOf(st.Get(ctx, s.key(0, 1))); strings.Contains(state, ":") && ctx.Err() == nil {
			err = errors.New(state)
		}
	}
	return errors.Join(err, st.Close())
}

func backupDir(dir string, n int) string {
	return filepath.Join(filepath.Dir(dir), fmt.Sprint("backup-", n))
}
