package state

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/wal"
)

// Some decide by all documents of a sort of their own: who deletes an entity of a graph also deletes
// the relations that begin or end there, and a document in a folder is created where no other one is in
// its way. That there is not one more of these by then is no version of any key. It is made one: 'e' +
// the number of an Interest has as its version the position of the newest document that this process
// has seen put, since the interest began, of which it says that it concerns it. What others have
// appended is laid over this key by Also, as it is over the membership's.
//
// Unlike a membership this is no function of the state: it begins when somebody asks for it, and
// two processes have different ones. That is enough for a precondition, which is made and judged by
// one process: it says "the same as when I looked".

// Interests is the first byte of the keys that stand for them.
const Interests = 'e'

// Interest notes which documents of a kind are put.
type Interest struct {
	kind    *kind.Kind
	key     string
	matches atomic.Pointer[func(id string, doc []byte) bool]
	newest  atomic.Uint64
}

// Key is the key that stands for it.
func (i *Interest) Key() string { return i.key }

// Newest is the version of that key.
func (i *Interest) Newest() wal.LSN { return i.newest.Load() }

// Match changes what concerns it. The function may be called by any goroutine, several at a time,
// with the log locked: it must be quick, and keep nothing of the document. doc is nil where the
// document is compressed.
func (i *Interest) Match(matches func(id string, doc []byte) bool) { i.matches.Store(&matches) }

// interests are all of a process; mostly there are none.
type interests struct {
	mu    sync.Mutex
	last  uint64
	epoch uint64
	list  atomic.Pointer[[]*Interest]
}

// Observe begins one in the documents of a kind. What was read of the log before and is not applied yet
// may go unnoticed: its key says something only of looks from where the log's tail is now.
func (s *State) Observe(k *kind.Kind, matches func(id string, doc []byte) bool) *Interest {
	in := &s.interests
	in.mu.Lock()
	defer in.mu.Unlock()
	in.last++
	i := &Interest{kind: k, key: string(binary.BigEndian.AppendUint64([]byte{Interests}, in.last))}
	i.Match(matches)
	i.newest.Store(unseen | in.epoch)
	list := append(slices.Clone(in.all()), i)
	in.list.Store(&list)
	return i
}

// Unobserve ends it.
func (s *State) Unobserve(i *Interest) {
	in := &s.interests
	in.mu.Lock()
	defer in.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(in.all()), func(o *Interest) bool { return o == i })
	in.list.Store(&list)
}

func (in *interests) all() []*Interest {
	if list := in.list.Load(); list != nil {
		return *list
	}
	return nil
}

// current is Current of such a key; 0 where the interest has ended.
func (in *interests) current(key string) wal.LSN {
	for _, i := range in.all() {
		if i.key == key {
			return i.Newest()
		}
	}
	return 0
}

// note notes an entry that is being applied; it may be once more.
func (in *interests) note(e *wal.Entry) {
	for _, i := range in.of(e) {
		if now := i.newest.Load(); now >= unseen || e.LSN > now {
			i.newest.Store(e.LSN)
		}
	}
}

// unseen marks the versions that begin gives, which no entry has.
const unseen = 1 << 62

// begin says of everything that it is another version: what was put meanwhile is unknown.
func (in *interests) begin(epoch uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.epoch = epoch
	for _, i := range in.all() {
		i.newest.Store(unseen | epoch)
	}
}

// keys are those that a pending entry is to be laid over.
func (in *interests) keys(e *wal.Entry) (keys []string) {
	for _, i := range in.of(e) {
		keys = append(keys, i.key)
	}
	return keys
}

// of are those that a document that is put concerns. What cannot be read Apply tells.
func (in *interests) of(e *wal.Entry) (of []*Interest) {
	all := in.all()
	if e.Delete || !slices.ContainsFunc(all, func(i *Interest) bool { return isOf(e, i.kind) }) {
		return nil
	}
	v, err := Read(e)
	if err != nil {
		return nil
	}
	doc, plain := v.Plain()
	if !plain {
		doc = nil
	}
	for _, i := range all {
		if isOf(e, i.kind) && (*i.matches.Load())(e.Key[1:], doc) {
			of = append(of, i)
		}
	}
	return of
}
