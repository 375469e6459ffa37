package words

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/varve-db/varve/internal/words/bitset"
)

// layout has what a search must know of all rows of a part: their sessions, their lengths, and whether they adjoin
// their neighbours in the session. It is computed on first use.
//
// Nearly every row is adjacent to its neighbours. A search looks at the neighbours of each row that has a word, so the
// common case takes one bit per row; for the other rows the search calls Set.next.
type layout struct {
	joined   bitset.Set // rows whose next row is live and their neighbour
	odd      bitset.Set // rows with a neighbour that is in another part or after dead rows
	anyOdd   bool       // odd is not empty
	shared   bitset.Set // sessions (by number) that have rows in other parts, too
	nameless bool       // session 0 has no name
	sessions []byte
	lengths  []byte
}

// Kept holds what package rows has computed from a segment, or from the live rows of a segment, so that it is computed
// once.
type Kept struct {
	sync.Mutex
	Made any
}

// layoutOnce computes the layout of a part once. All sets that share the state of the part also share the layout.
type layoutOnce struct {
	once sync.Once
	lay  layout
	err  error

	linksOnce sync.Once
	links     links
	linksErr  error

	mu      sync.Mutex
	tallies map[string]tally // cached tallies, by term
	kept    Kept
}

// tally describes the live rows of a part that have a word. It has the number of these rows, the number of rows with
// the word in the name field, the length of the longest content with the word, whether a row has the word only outside
// its content, and upper bounds of how often a row has the word.
type tally struct {
	df, names int
	longest   uint32
	elsewhere bool
	times     times // set only in the result of Part.tally
}

// count adds a row that has the word to the tally. inContent is true if the content of the row has the word.
func (t *tally) count(l *layout, row uint32, inContent bool) {
	t.df++
	if inContent {
		t.longest = max(t.longest, l.length(row))
	} else {
		t.elsewhere = true
	}
}

// add adds to t the tally o of other rows.
func (t *tally) add(o tally) {
	t.df += o.df
	t.names += o.names
	t.longest, t.elsewhere = max(t.longest, o.longest), t.elsewhere || o.elsewhere
	t.times.join(&o.times)
}

// asName returns the tally for searching the word in the name field only. It counts only the rows that have the word
// in that field.
func (t *tally) asName() tally {
	return tally{df: t.names, names: t.names, elsewhere: t.names > 0, times: times{other: t.times.other}}
}

// sumOf returns the sum of the tallies of all parts.
func sumOf(parts []tally) (sum tally) {
	for _, t := range parts {
		sum.add(t)
	}
	return sum
}

// The limits of the cache of tallies. Counting a word with fewer postings is cheaper than caching its tally.
const (
	tallyLeast = 256  // the minimum number of postings
	tallyMost  = 4096 // the maximum number of words
)

func (o *layoutOnce) tallyOf(term string) (t tally, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, ok = o.tallies[term]
	return t, ok
}

func (o *layoutOnce) keep(term string, t tally) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tallies == nil || len(o.tallies) >= tallyMost {
		o.tallies = map[string]tally{}
	}
	o.tallies[term] = t
}

var errFaulted = broken("a mapped file was cut short while it was read")

func (p *Part) layout() (*layout, error) {
	o := p.laid
	o.once.Do(func() {
		o.err = errFaulted // remains if the next line panics
		o.err = o.lay.of(p)
	})
	return &o.lay, o.err
}

// session returns the number of the session of row r.
func (l *layout) session(r uint32) uint32 { return binary.LittleEndian.Uint32(l.sessions[4*r:]) }

// length returns the number of words in the content of row r.
func (l *layout) length(r uint32) uint32 { return binary.LittleEndian.Uint32(l.lengths[4*r:]) }

func (l *layout) of(p *Part) (err error) {
	if l.nameless, err = p.nameless(0); err != nil {
		return err
	}
	if l.lengths, err = p.Seg.section(secLength); err != nil {
		return err
	}
	if l.sessions, err = p.Seg.section(secSession); err != nil {
		return err
	}
	rows := p.Seg.Rows
	l.joined, l.odd = bitset.New(rows), bitset.New(rows)
	before := uint32(0)
	for r := range uint32(rows) {
		n := l.session(r)
		if int(n) >= p.Seg.Sessions {
			return broken("row %d names session %d, but the segment has %d sessions", r, n, p.Seg.Sessions)
		}
		if p.special.Has(r) {
			l.odd.Put(r)
		}
		if r > 0 && n == before && (n > 0 || !l.nameless) {
			if p.special.Has(r) || p.special.Has(r-1) || p.dead.Has(r) || p.dead.Has(r-1) {
				l.odd.Put(r)
				l.odd.Put(r - 1)
			} else {
				l.joined.Put(r - 1)
			}
		}
		before = n
	}
	l.anyOdd = slices.ContainsFunc(l.odd, func(rows uint64) bool { return rows != 0 })
	for r, k := range p.links {
		if k.hasBefore && !k.noBefore && k.before.Part != p.ID || k.hasBehind && !k.noBehind && k.behind.Part != p.ID {
			l.shared = l.shared.With(l.session(r), p.Seg.Sessions)
		}
	}
	return nil
}
