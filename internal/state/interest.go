package state

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/wal"
)

// Some commits depend on all documents that match a condition: deleting an entity of a graph also deletes the relations
// that begin or end there, and a document in a folder may be created only if no other one is in its way. No version of
// a key expresses that no further match exists at the commit. An Interest provides such a version: the key 'e' + the
// number of the Interest has as its version the position of the newest matching document that this process has seen put
// since the Interest began. Also adds this key to entries that other processes have appended, as it adds the key of the
// membership.
//
// Unlike a membership, an Interest is not a function of the state: it begins when a caller asks for it, and differs
// between processes. That is enough for a precondition, which one process both makes and evaluates: it means "unchanged
// since I looked".

// Interests is the first byte of every key that Interest.Key returns, which distinguishes these keys from
// those of documents.
const Interests = 'e'

// Interest watches for puts of documents of one kind that match a condition. It has the position of the newest such
// put.
type Interest struct {
	kind    *kind.Kind
	key     string
	byID    bool // matches does not need the document
	matches atomic.Pointer[func(id string, doc []byte) bool]
	newest  atomic.Uint64
}

// Key returns the key that preconditions use for the Interest. The version of this key is the result of Newest.
func (i *Interest) Key() string { return i.key }

// Newest returns the position of the newest put that matched the condition of the Interest. As long as no put has
// matched, it returns a number that is the position of no log entry.
func (i *Interest) Newest() wal.LSN { return i.newest.Load() }

// Match replaces the condition by the function matches. Several goroutines may call matches at the same time, while
// the log is locked. So matches must be quick, and must not keep doc. If the document is compressed, doc is nil.
func (i *Interest) Match(matches func(id string, doc []byte) bool) { i.matches.Store(&matches) }

// Matches reports whether a log entry puts a document that matches the condition of the Interest.
func (i *Interest) Matches(e *wal.Entry) bool {
	return len(of([]*Interest{i}, e)) > 0
}

// interests are all Interests of this process; usually there are none.
type interests struct {
	mu    sync.Mutex
	last  uint64
	epoch uint64
	list  atomic.Pointer[[]*Interest]
}

// Observe begins an Interest in the documents of kind k for which matches returns true; see Interest.Match. An entry
// that was read from the log before this call, and is not applied yet, does not have the key of the Interest until it
// is applied. So a caller that uses the key in a precondition must first find out whether such an entry matches (wal's
// AnyAhead).
func (s *State) Observe(k *kind.Kind, matches func(id string, doc []byte) bool) *Interest {
	return s.observe(k, matches, false)
}

// ObserveIDs is like Observe, for a condition on the ids of documents. It costs less than a condition on documents.
func (s *State) ObserveIDs(k *kind.Kind, matches func(id string) bool) *Interest {
	return s.observe(k, func(id string, _ []byte) bool { return matches(id) }, true)
}

func (s *State) observe(k *kind.Kind, matches func(id string, doc []byte) bool, byID bool) *Interest {
	in := &s.interests
	in.mu.Lock()
	defer in.mu.Unlock()
	in.last++
	i := &Interest{kind: k, key: string(binary.BigEndian.AppendUint64([]byte{Interests}, in.last)), byID: byID}
	i.Match(matches)
	i.newest.Store(unseen | in.epoch)
	list := append(slices.Clone(in.all()), i)
	in.list.Store(&list)
	return i
}

// Unobserve ends an Interest.
func (s *State) Unobserve(i *Interest) {
	in := &s.interests
	in.mu.Lock()
	defer in.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(in.all()), func(o *Interest) bool { return o == i })
	in.list.Store(&list)
}

func (set *interests) all() []*Interest {
	if list := set.list.Load(); list != nil {
		return *list
	}
	return nil
}

// current returns the position of the newest put for the Interest with the given key. It returns 0 if the Interest
// has ended.
func (set *interests) current(key string) wal.LSN {
	for _, i := range set.all() {
		if i.key == key {
			return i.Newest()
		}
	}
	return 0
}

// note records e, a log entry that is being applied, in all Interests that match e. note may be called twice for
// the same entry.
func (set *interests) note(e *wal.Entry) {
	for _, i := range of(set.all(), e) {
		if now := i.newest.Load(); now >= unseen || e.LSN > now {
			i.newest.Store(e.LSN)
		}
	}
}

// unseen is a bit in the versions that begin assigns. No position of a log entry has this bit.
const unseen = 1 << 62

// begin assigns a new version to every Interest when State begins again from an index, because it is unknown which
// documents were put meanwhile. epoch is a number that is different for each call.
func (set *interests) begin(epoch uint64) {
	set.mu.Lock()
	defer set.mu.Unlock()
	set.epoch = epoch
	for _, i := range set.all() {
		i.newest.Store(unseen | epoch)
	}
}

// keys returns the keys of the Interests that match a log entry. The entry is not applied yet.
func (set *interests) keys(e *wal.Entry) (keys []string) {
	for _, i := range of(set.all(), e) {
		keys = append(keys, i.key)
	}
	return keys
}

// of returns the Interests in all that match the document which the log entry e puts. It returns nothing for a
// deletion. It ignores an entry that cannot be read, because Apply reports such an entry.
func of(all []*Interest, e *wal.Entry) (of []*Interest) {
	if e.Delete {
		return nil
	}
	var doc []byte
	read := false
	for _, i := range all {
		if !isOf(e, i.kind) || len(e.Key) < 2 {
			continue
		}
		if !i.byID && !read {
			v, err := Read(e)
			if err != nil {
				return of
			}
			if plain, ok := v.Plain(); ok {
				doc = plain
			}
			read = true
		}
		if (*i.matches.Load())(e.Key[1:], doc) {
			of = append(of, i)
		}
	}
	return of
}
