package text

import (
	"cmp"
	"container/heap"
	"encoding/binary"
)

// most is how many candidates a Collector keeps before it gives up. With an id
// of 36 bytes and a few terms that is about 4 MB.
const most = 1 << 15

// Collector goes over texts once. It belongs to one goroutine.
type Collector struct {
	Numbers
	k      int
	most   int
	groups map[string]*group
	kept   int
	key    []byte
	gaveUp bool
}

// group are the shortest texts of one combination of counts.
type group struct {
	counts []uint32
	texts  longest
}

type candidate struct {
	id     string
	length int
}

// NewCollector makes a collector for the best k.
func (q *Query) NewCollector(k int) *Collector {
	return &Collector{Numbers: q.Numbers(), k: k, most: max(most, 4*k), groups: map[string]*group{}}
}

// Add takes in the text that c has counted.
func (l *Collector) Add(id string, c *Counter) {
	l.Numbers.Add(c)
	if !c.Found || l.gaveUp || l.k <= 0 {
		return
	}
	l.key = l.key[:0]
	for _, n := range c.Counts {
		l.key = binary.AppendUvarint(l.key, uint64(n))
	}
	g := l.groups[string(l.key)]
	if g == nil {
		g = &group{counts: append([]uint32(nil), c.Counts...)}
		l.groups[string(l.key)] = g
	}
	l.keep(g, candidate{id, c.Length})
}

func (l *Collector) keep(g *group, c candidate) {
	switch {
	case len(g.texts) < l.k:
		heap.Push(&g.texts, c)
		if l.kept++; l.kept > l.most {
			l.gaveUp, l.groups = true, nil
		}
	case compare(c, g.texts[0]) < 0:
		g.texts[0] = c
		heap.Fix(&g.texts, 0)
	}
}

// Merge takes in what another has.
func (l *Collector) Merge(o *Collector) {
	l.Numbers.Merge(o.Numbers)
	if l.gaveUp = l.gaveUp || o.gaveUp; l.gaveUp {
		l.groups = nil
		return
	}
	for key, from := range o.groups {
		g := l.groups[key]
		if g == nil {
			g = &group{counts: from.counts}
			l.groups[key] = g
		}
		for _, c := range from.texts {
			if l.keep(g, c); l.gaveUp {
				return
			}
		}
	}
}

// Top ranks what there is. ok is false when the combinations were too many: then
// only the numbers are good.
func (l *Collector) Top(s Scorer, min float64) (top *Top, ok bool) {
	if l.gaveUp {
		return nil, false
	}
	top = NewTop(l.k, min)
	for _, g := range l.groups {
		for _, c := range g.texts {
			top.Add(Hit{c.id, s.Score(g.counts, c.length)})
		}
	}
	return top, true
}

// compare orders candidates of equal counts: the shorter first, then by id.
func compare(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.length, b.length), cmp.Compare(a.id, b.id))
}

// longest is a heap with the longest text on top.
type longest []candidate

func (l longest) Len() int           { return len(l) }
func (l longest) Less(i, j int) bool { return compare(l[i], l[j]) > 0 }
func (l longest) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *longest) Push(x any)        { *l = append(*l, x.(candidate)) }
func (l *longest) Pop() any          { c := (*l)[len(*l)-1]; *l = (*l)[:len(*l)-1]; return c }
