package words

import (
	"fmt"
	"iter"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/rows"
	"github.com/varve-db/varve/memstore"
)

// subject is the kind of documents that a view indexes: memories, or the sections of notes.
type subject interface {
	name() string   // name of the view
	folder() string // path of its files in the store
	first() uint64  // number of its first segment: two views have no segment number in common
	cut() int       // version of the rules by which a document is divided into rows; 0: a document is one row
	kind(*engine.Engine) *engine.Kind
	hasRows(id string) bool // reports whether a document with this id has rows

	// rows returns the rows of a document, at least one, without their lines.
	rows(w *Words, id string, doc []byte, line *index.Entry, lsn uint64) []*words.Doc
	// old returns, for each document in ids, the version whose rows are in a set, or 0 if the document has no rows in
	// the set. rowIDs has the ids of these rows; it is nil if the id of each row is the id of the document.
	old(set *words.Set, ids []string) (lsns []uint64, rowIDs [][]string, err error)
	// find returns one live row of a document, and the number of its live rows.
	find(set *words.Set, id string) (ref words.Ref, n int, err error)
	// ids yields the ids of all documents of an index that have rows.
	ids(set *index.Set) iter.Seq2[string, error]
}

// memories implements subject for the view of memories: each row is a memory.
type memories struct{}

func (memories) name() string                         { return Name }
func (memories) folder() string                       { return places.Words }
func (memories) first() uint64                        { return 1 }
func (memories) cut() int                             { return 0 }
func (memories) kind(eng *engine.Engine) *engine.Kind { return eng.Kinds().Memories }
func (memories) hasRows(string) bool                  { return true }

func (memories) rows(w *Words, id string, doc []byte, line *index.Entry, lsn uint64) []*words.Doc {
	m, err := memstore.Decode(doc,
		memstore.DecodeOptions{Limits: kind.Stored, Location: w.eng.Env().NaiveTimes, ID: id, Owned: true})
	if err != nil {
		return []*words.Doc{unread(id, line, lsn)}
	}
	d := DocOf(m, lsn, w.sources)
	d.ID = id
	return []*words.Doc{d}
}

func (memories) old(set *words.Set, ids []string) ([]uint64, [][]string, error) {
	lsns, err := set.Versions(ids)
	return lsns, nil, err
}

func (memories) find(set *words.Set, id string) (words.Ref, int, error) {
	at, _, ok, err := set.Find(id)
	if err != nil || !ok {
		return words.Ref{}, 0, err
	}
	return at, 1, nil
}

// ids yields the ids of all memories in the index, session by session.
func (memories) ids(set *index.Set) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for e, err := range set.Range(index.BySession, index.Span{}) {
			var id string
			if err == nil {
				var ok bool
				if _, id, ok = index.SplitSessionKey(string(e.Key)); !ok {
					err = fmt.Errorf("%w: the section by_session has the malformed key %s",
						errs.ErrCorrupt, human.Quote(string(e.Key)))
				}
			}
			if !yield(id, err) {
				return
			}
		}
		for e, err := range set.Range(index.Memories, index.Span{}) {
			var line index.Entry
			if err == nil {
				line, err = index.ParseLine(e.Value)
			}
			if err == nil && line.SessionID != "" {
				continue
			}
			if !yield(string(e.Key), err) {
				return
			}
		}
	}
}

// matches returns the number of rows that the view has for a document. It returns an error if these rows do not match
// the document's line in the index.
func (w *Words) matches(id string, line *index.Entry) (n int, err error) {
	k := w.of.kind(w.eng)
	at, n, err := w.of.find(w.set, id)
	if err != nil {
		return 0, err
	}
	lsn := uint64(0)
	if n > 0 {
		if lsn, err = w.set.LSN(at); err != nil {
			return 0, err
		}
	}
	if n > 0 && rows.Sorted(w.set) {
		if l, err := rows.LineOf(w.set, at); err != nil {
			return 0, err
		} else if l != lineOf(line) {
			return 0, fmt.Errorf("%w: the view's line of %s %q differs from the index", errs.ErrCorrupt, k.Noun, id)
		}
	}
	if lsn != line.Version {
		return 0, fmt.Errorf("%w: version %d of %s %q is missing", errs.ErrCorrupt, line.Version, k.Noun, id)
	}
	return n, nil
}
