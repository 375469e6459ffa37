package counts

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// Evictions chooses the memories to delete when a limit is reached. It has a list of candidates for the store, and one
// for each session whose limit was reached. It makes a list by reading all lines of the index. The list has the first
// 64th of the memories in the order of eviction, but at least leastQueue memories: so one reading of the index is
// enough for that many evictions. A list stays exact until all its candidates are used: no memory outside the list
// comes before the last candidate in the list.
type Evictions struct {
	mu     sync.Mutex
	policy string
	lists  map[string]*queue // lists of candidates by session; "" is the store's
	taken  map[string]bool   // ids claimed by commits of this process that are in progress
	turns  turns
}

type queue struct {
	list []Candidate
	most int // wanted length of the list, which may grow to twice that
}

// Candidate is a memory that may be evicted, that is, deleted to make room.
type Candidate struct {
	ID      string
	Version wal.LSN
	updated time.Time
	score   float64
}

// before compares two candidates by the order of eviction. The result is negative if a is evicted before b.
func (x *Evictions) before(a, b *Candidate) int {
	if x.policy == settings.AtLimitEvictLowest {
		if c := cmp.Compare(a.score, b.score); c != 0 {
			return c
		}
	}
	return cmp.Or(a.updated.Compare(b.updated), cmp.Compare(a.Version, b.Version), cmp.Compare(a.ID, b.ID))
}

const (
	leastQueue = 64
	queueShare = 64
	mostQueues = 64
)

// Next claims the first candidate of a session ("" for the whole store) for which spared returns false. No other commit
// can claim this candidate until the caller calls Release. c is nil if no candidate is free; then busy reports whether
// another commit of this process has claimed a candidate that would be suitable.
func (x *Evictions) Next(ctx context.Context, cs *Counts, session string,
	spared func(id string) bool) (c *Candidate, busy bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p := LimitsOf(cs.engine.Settings().Now()); p != nil && p.At != x.policy {
		x.policy, x.lists = p.At, nil
	}
	for _, fresh := range []bool{false, true} {
		q := x.lists[session]
		if q == nil || fresh {
			if q, err = x.fill(ctx, cs, session, len(x.taken)+1000); err != nil {
				return nil, false, err
			}
			fresh = true
		}
		busy = false
		for _, c := range q.list {
			switch {
			case spared(c.ID):
			case x.taken[c.ID]:
				busy = true
			default:
				if x.taken == nil {
					x.taken = map[string]bool{}
				}
				x.taken[c.ID] = true
				return &c, false, nil
			}
		}
		if fresh {
			break
		}
	}
	return nil, busy, nil
}

// Stays reports whether the memory with this id is never deleted to make room.
func Stays(id string) bool { return id == memstore.TakeOverID }

// remove removes a candidate from all lists.
func (x *Evictions) remove(c *Candidate) {
	for _, q := range x.lists {
		at, ok := slices.BinarySearchFunc(q.list, *c, func(a, b Candidate) int { return x.before(&a, &b) })
		if ok { // most candidates are near the front, so the elements before it are moved
			copy(q.list[1:at+1], q.list[:at])
			q.list = q.list[1:]
		}
	}
}

// Release ends the claims of a commit on its candidates. If drop is true, Release removes the candidates from the
// lists: the commit has deleted them or found that they have changed. If drop is false, the candidates stay in the
// lists and can be claimed again.
func (x *Evictions) Release(taken []Candidate, drop bool) {
	if len(taken) == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range taken {
		delete(x.taken, taken[i].ID)
		if drop {
			x.remove(&taken[i])
		}
	}
}

// feed adds a memory that was just written to the lists of candidates in which the memory comes before the last
// candidate.
func (x *Evictions) feed(id string, line *index.Entry) {
	if Stays(id) {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	c := Candidate{id, line.Version, line.UpdatedAt, line.Score}
	for _, session := range []string{"", line.SessionID} {
		q := x.lists[session]
		if q != nil && len(q.list) > 0 && x.before(&c, &q.list[len(q.list)-1]) < 0 {
			at, there := slices.BinarySearchFunc(q.list, c, func(a, b Candidate) int { return x.before(&a, &b) })
			if !there {
				q.list = slices.Insert(q.list, at, c)
				if len(q.list) > 2*q.most { // a memory that is rewritten often is in the list once per version
					q.list = slices.Clone(q.list[:q.most])
				}
			}
		}
		if line.SessionID == "" {
			break
		}
	}
}

// reset discards all lists of candidates.
func (x *Evictions) reset() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lists = nil
}

// fill rebuilds the list of candidates of a session ("" for the whole store). The new list has at least minLen
// candidates, if that many exist.
func (x *Evictions) fill(ctx context.Context, cs *Counts, session string, minLen int) (*queue, error) {
	f := engine.Filters{Expired: true}
	n := cs.engine.State().Live(kind.Memories.Letter)
	if session != "" {
		f.Session, n = &session, leastQueue*queueShare
	}
	most := max(int(n/queueShare), leastQueue, minLen)
	var list []Candidate // the list, which grows to twice the wanted length, and then is sorted and cut
	trim := func(to int) {
		slices.SortFunc(list, func(a, b Candidate) int { return x.before(&a, &b) })
		list = slices.Clone(list[:min(len(list), to)])
	}
	for l, err := range cs.engine.Lines(ctx, cs.engine.Kinds().Memories, f) {
		if errors.Is(err, errs.ErrCorrupt) {
			continue // verify reports the damage
		}
		if err != nil {
			return nil, err
		}
		if Stays(l.ID) {
			continue
		}
		if list = append(list, Candidate{l.ID, l.Line.Version, l.Line.UpdatedAt, l.Line.Score}); len(list) >= 2*most {
			trim(most)
		}
	}
	trim(most)
	if x.lists == nil || len(x.lists) >= mostQueues {
		x.lists = map[string]*queue{}
	}
	q := &queue{list, most}
	x.lists[session] = q
	return q, nil
}
