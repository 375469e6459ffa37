package wal

import (
	"github.com/varve-db/varve/wal/past"
)

// effects has what an entry changes besides its own key: the entry may become the newest entry of other keys, and it
// may add amounts to running totals. With the effects, the log can evaluate preconditions before the entry is applied.
type effects struct {
	keys []string
	adds []Amount
}

func (b *effects) empty() bool { return len(b.keys) == 0 && len(b.adds) == 0 }

// effectsOf returns the effects of an entry, which it gets from Machine.Also and Machine.Counts. An entry of the log
// itself has none.
func (l *FileLog) effectsOf(e *Entry) effects {
	if e.Kind < past.KindUser {
		return effects{}
	}
	return effects{keys: l.o.Machine.Also(e), adds: l.o.Machine.Counts(e)}
}

// stands records b, the effects of the group's entry at pos, so that the preconditions of later requests in the same
// group take these effects into account.
func (g *group) stands(pos LSN, b effects) {
	if b.empty() {
		return
	}
	if g.beside == nil {
		g.beside = map[LSN]effects{}
	}
	g.beside[pos] = b
	for _, key := range b.keys {
		g.latest[key] = pos
	}
	for _, a := range b.adds {
		g.totals[a.Key] += a.N
	}
}

// awaitBeside records b, the effects of the entry at pos, so that preconditions take them into account. The entry is in
// the log but not applied yet.
func (s *state) awaitBeside(pos LSN, b effects) {
	if b.empty() {
		return
	}
	for _, key := range b.keys {
		s.pending[key] = pos
	}
	for _, a := range b.adds {
		s.totals[a.Key] += a.N
	}
	s.beside[pos] = b
}

// dropBeside removes the recorded effects of the entry at pos, which is being applied. From then on
// Machine.Current includes them.
func (s *state) dropBeside(pos LSN) {
	b, ok := s.beside[pos]
	if !ok {
		return
	}
	for _, key := range b.keys {
		if s.pending[key] == pos {
			delete(s.pending, key)
		}
	}
	for _, a := range b.adds {
		if s.totals[a.Key] -= a.N; s.totals[a.Key] == 0 {
			delete(s.totals, a.Key)
		}
	}
	delete(s.beside, pos)
}

// forgetPending removes all recorded entries that are not applied yet, and their effects.
func (s *state) forgetPending() {
	s.pending, s.deleted = map[string]LSN{}, map[string]bool{}
	s.beside, s.totals = map[LSN]effects{}, map[string]uint64{}
}
