package state

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/wal/past"
	"github.com/varve-db/varve/writer"
)

// WriterKey is the key of all log entries that explain the numbers of writers. All of them have the same key, so that
// each can be committed on the condition that the one before it is still the newest: the explanations are in the order
// of the log.
const WriterKey = "u"

// writers has the explanations of writer numbers that are in log entries after the index, and the numbers that were
// issued to this handle.
type writers struct {
	mu   sync.Mutex
	list writer.Table
	own  map[writer.Writer]uint32
	last atomic.Pointer[writer.Writer] // the writer that OwnWriter returned last, with its number
}

func (ws *writers) begin() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.list = writer.Table{}
}

func (ws *writers) apply(e *wal.Entry, line []byte) error {
	w, err := writer.Parse(line)
	if err != nil {
		return fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	w.Since = e.LSN
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.list.Add(w)
	ws.last.Store(nil)
	// A number that was issued again, because its explanation was lost, no longer belongs to this handle.
	for described, number := range ws.own {
		if number == w.Number {
			delete(ws.own, described)
		}
	}
	if e.Own {
		if ws.own == nil {
			ws.own = map[writer.Writer]uint32{}
		}
		ws.own[w.Described()] = w.Number
	}
	return nil
}

// drop drops the explanations whose entries are below pos, because a new index covers these entries. These
// explanations are in wal/writers then.
func (ws *writers) drop(pos uint64) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.list.Drop(pos)
}

// Writers returns the descriptions of writers that are in the part of the log that the current index does not cover, in
// the order of the log.
func (s *State) Writers() []writer.Writer {
	s.writers.mu.Lock()
	defer s.writers.mu.Unlock()
	return slices.Clone(s.writers.list.All())
}

// Writer returns the writer that the number of a writer stands for in the log entry at position version. ok is false
// if the Writers do not explain the number.
func (s *State) Writer(number uint32, version uint64) (writer.Writer, bool) {
	s.writers.mu.Lock()
	defer s.writers.mu.Unlock()
	return s.writers.list.Of(number, version)
}

// NewestWriter returns the writer whose number was explained last; the zero Writer if none is known.
func (s *State) NewestWriter() (writer.Writer, error) {
	below := s.from.Load() // read before the list: what a newer set covers is in the file by then
	s.writers.mu.Lock()
	list := s.writers.list.All()
	if n := len(list); n > 0 {
		w := list[n-1]
		s.writers.mu.Unlock()
		return w, nil
	}
	s.writers.mu.Unlock()
	if s.Explained == nil {
		return writer.Writer{}, nil
	}
	return s.Explained(max(below, s.from.Load()))
}

// WriterIn returns the writer that a log entry of the key WriterKey explains.
func WriterIn(e *wal.Entry) (writer.Writer, error) {
	view, err := Check(e)
	if err != nil {
		return writer.Writer{}, err
	}
	w, err := writer.Parse(view.Line)
	w.Since = e.LSN
	return w, err
}

// PastWriters yields the explanations of writer numbers that log and archive have below a position. It skips
// entries that are damaged or missing.
func PastWriters(ctx context.Context, past *past.Log, to wal.LSN, yield func(w writer.Writer)) error {
	first, err := past.First(to)
	if err != nil || first >= to {
		return ctx.Err()
	}
	is := func(key []byte) bool { return string(key) == WriterKey }
	for e, err := range past.EntriesOf(ctx, wal.Mark{LSN: first}, to, is) {
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			continue
		}
		if w, err := WriterIn(&e); err == nil {
			yield(w)
		}
	}
	return ctx.Err()
}

// OwnWriter returns the number that was issued to this handle for a writer with this description, 0 if there
// is none.
func (s *State) OwnWriter(described *writer.Writer) uint32 {
	if last := s.writers.last.Load(); last != nil && last.Described() == *described {
		return last.Number
	}
	s.writers.mu.Lock()
	defer s.writers.mu.Unlock()
	n := s.writers.own[*described]
	if n != 0 {
		w := *described
		w.Number = n
		s.writers.last.Store(&w)
	}
	return n
}
