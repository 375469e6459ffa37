package index

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/varve-db/varve/index/table"
)

// Change describes the newest version of a document that has changed since the index was written.
type Change struct {
	Section int // section of the document's kind: Memories, Assemblies, Notes, or one that AddDocuments has returned
	ID      string
	Version uint64 // LSN of the frame that wrote the version
	Deleted bool
	// Finished is the complete index line of the version, if the caller has it; otherwise nil.
	Finished []byte
	// Members are the ids of the members of an assembly; its index line records only how many there are.
	Members []string
}

// Changes are the changes, of documents of all kinds, that WriteDelta or WriteBase merges into an index file.
type Changes struct {
	// List may be in any order. Of two changes of one id the newer is used.
	List []Change
	// Line appends the index line of a change that is not a deletion and has no Finished. WriteDelta or WriteBase
	// calls it once for each such change, in the order of the index.
	Line func(dst []byte, c Change) ([]byte, error)
}

// lineEdits iterates over the changes of a section, in key order, as edits of an index file.
type lineEdits struct {
	ch   *Changes
	list []sortedChange
	now  *Change // the change that Next returned last
	key  []byte
	line []byte
}

type sortedChange struct {
	enc string // the id of that change as the table encodes it
	i   int
}

func newLineEdits(ch *Changes, sec int) (*lineEdits, error) {
	e := &lineEdits{ch: ch}
	for i := range ch.List {
		if ch.List[i].Section != sec {
			continue
		}
		enc, err := table.EncodeKey(ch.List[i].ID)
		if err != nil {
			return nil, err
		}
		e.list = append(e.list, sortedChange{enc, i})
	}
	slices.SortFunc(e.list, func(a, b sortedChange) int {
		return cmp.Or(cmp.Compare(a.enc, b.enc), cmp.Compare(ch.List[b.i].Version, ch.List[a.i].Version))
	})
	e.list = slices.CompactFunc(e.list, func(a, b sortedChange) bool { return a.enc == b.enc })
	return e, nil
}

func (e *lineEdits) Next() (key, value []byte, ok bool, err error) {
	if len(e.list) == 0 {
		return nil, nil, false, nil
	}
	e.now = &e.ch.List[e.list[0].i]
	c := *e.now
	e.key = append(e.key[:0], e.list[0].enc...)
	e.list = e.list[1:]
	if c.Deleted {
		e.line = AppendTombstone(e.line[:0], c.Version)
		return e.key, e.line, true, nil
	}
	line := c.Finished
	if line == nil {
		if e.line, err = e.ch.Line(e.line[:0], c); err != nil {
			return nil, nil, false, fmt.Errorf("index line of %q, version %d: %w", c.ID, c.Version, err)
		}
		line = e.line
	}
	if IsTombstone(line) {
		return nil, nil, false, fmt.Errorf("index line of %q, version %d: %w: unexpected tombstone", c.ID, c.Version, errLine)
	}
	return e.key, line, true, nil
}

// pairEdits iterates over the key pairs to add and remove in a section, in key order, as edits of an index
// file.
type pairEdits struct {
	list []pairEdit
	key  []byte
}

type pairEdit struct {
	enc  string
	live bool
}

func newPairEdits(list []pairEdit) *pairEdits {
	slices.SortFunc(list, func(a, b pairEdit) int { return cmp.Compare(a.enc, b.enc) })
	return &pairEdits{list: list}
}

func (e *pairEdits) Next() (key, value []byte, ok bool, err error) {
	if len(e.list) == 0 {
		return nil, nil, false, nil
	}
	p := e.list[0]
	e.list = e.list[1:]
	e.key = append(e.key[:0], p.enc...)
	if p.live {
		return e.key, livePair, true, nil
	}
	return e.key, deadPair, true, nil
}
