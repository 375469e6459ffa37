package index

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/varve-db/varve/index/table"
)

// Change is the newest version of a memory or an assembly that changed.
type Change struct {
	Section int // Memories or Assemblies
	ID      string
	Version uint64 // the LSN of the frame that wrote it
	Deleted bool
	// Finished is the line of the version, if the caller has it; otherwise nil.
	Finished []byte
	// Members are the members of an assembly; the line has their number.
	Members []string
}

// Changes are the changes that WriteBase or WriteDelta applies to a set.
type Changes struct {
	// List may be in any order. If it has two changes of one id, the newer one is used.
	List []Change
	// Line appends the finished line of a change that is not a deletion and has no Finished. It is called once for each,
	// in the order of the table.
	Line func(dst []byte, c Change) ([]byte, error)
}

// lineEdits iterates over the changes of a section, sorted, as edits of a table.
type lineEdits struct {
	ch   *Changes
	list []sortedChange
	now  *Change // the change that Next returned last
	key  []byte
	line []byte
}

type sortedChange struct {
	enc string // the id as the table encodes it
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

// pairEdits iterates over the pairs to add and remove.
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
