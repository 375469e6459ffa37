package text

import "math"

// Query is a text as it is looked for. It does not change: several goroutines
// may use it.
type Query struct {
	terms map[string]int
	times []float64 // how often each term stands in the query
	// lengths has for the first byte of a term the lengths that there are; most
	// words of a text need no more to be passed over.
	lengths [256]uint64
	chars   bool // there are terms of scripts without spaces
}

// MaxTerms is how many different terms are looked for at once.
const MaxTerms = 1024

// Parse makes a query of a text. It has no terms when the text has no word.
func Parse(s string) *Query {
	q := &Query{terms: map[string]int{}}
	p := parser{q: q}
	tokenise([]byte(s), &p, nil)
	p.alone()
	return q
}

// Terms is the number of different terms.
func (q *Query) Terms() int { return len(q.times) }

func (q *Query) add(term string) {
	i, ok := q.terms[term]
	if !ok {
		i = len(q.times)
		q.terms[term] = i
		q.times = append(q.times, 0)
		q.lengths[term[0]] |= 1 << min(len(term), 63)
	}
	q.times[i]++
}

// parser collects the terms of a query.
type parser struct {
	q    *Query
	last string // a character that has no pair so far
}

func (p *parser) word(w []byte) {
	p.alone()
	p.q.add(string(w))
}

func (p *parser) ascii(w []byte) { p.word(folded(nil, w)) }

func (p *parser) char(pair []byte, at int) {
	p.q.chars = true
	if at > 0 {
		p.last = ""
		p.q.add(string(pair))
		return
	}
	p.alone()
	p.last = string(pair)
}

// alone takes in a character that stood alone.
func (p *parser) alone() {
	if p.last != "" {
		p.q.add(p.last)
		p.last = ""
	}
}

// Counter counts the terms of a query in texts, one after the other. It belongs
// to one goroutine.
type Counter struct {
	q      *Query
	buf    []byte
	folded []byte
	Counts []uint32 // by term, of the last text
	Length int      // words of the last text
	Found  bool     // any term
}

// NewCounter makes a counter.
func (q *Query) NewCounter() *Counter { return &Counter{q: q, Counts: make([]uint32, q.Terms())} }

// Count counts the terms in a text.
func (c *Counter) Count(b []byte) {
	clear(c.Counts)
	c.Length, c.Found = 0, false
	c.buf = tokenise(b, c, c.buf)
}

func (c *Counter) word(w []byte) {
	c.Length++
	c.term(w)
}

func (c *Counter) ascii(w []byte) {
	c.Length++
	if c.q.lengths[lower[w[0]]]&(1<<min(len(w), 63)) != 0 {
		c.folded = folded(c.folded[:0], w)
		c.term(c.folded)
	}
}

// folded appends a word of ASCII in its folded form.
func folded(dst, w []byte) []byte {
	for _, b := range w {
		dst = append(dst, lower[b])
	}
	return dst
}

func (c *Counter) char(pair []byte, at int) {
	c.Length++
	if c.q.chars {
		c.term(pair[at:])
		if at > 0 {
			c.term(pair)
		}
	}
}

func (c *Counter) term(w []byte) {
	if c.q.lengths[w[0]]&(1<<min(len(w), 63)) == 0 {
		return
	}
	if i, ok := c.q.terms[string(w)]; ok {
		c.Counts[i]++
		c.Found = true
	}
}

// Numbers is what BM25 needs to know of all texts.
type Numbers struct {
	Texts  int64
	Words  int64
	Having []int64 // texts that have a term, by term
}

// Numbers makes the numbers of no text.
func (q *Query) Numbers() Numbers { return Numbers{Having: make([]int64, q.Terms())} }

// Add takes in the text that c has counted.
func (n *Numbers) Add(c *Counter) {
	n.Texts++
	n.Words += int64(c.Length)
	if !c.Found {
		return
	}
	for i, k := range c.Counts {
		if k > 0 {
			n.Having[i]++
		}
	}
}

// Merge takes in other numbers.
func (n *Numbers) Merge(o Numbers) {
	n.Texts += o.Texts
	n.Words += o.Words
	for i, k := range o.Having {
		n.Having[i] += k
	}
}

const k1, b = 1.2, 0.75

// Scorer is the formula with the numbers in it.
type Scorer struct {
	weight []float64 // idf times (k1+1) times how often the query has the term
	avg    float64
}

// Scorer puts the numbers into the formula.
func (q *Query) Scorer(n Numbers) Scorer {
	s := Scorer{weight: make([]float64, q.Terms()), avg: 1}
	if n.Words > 0 {
		s.avg = float64(n.Words) / float64(n.Texts)
	}
	for i := range s.weight {
		df := float64(n.Having[i])
		s.weight[i] = math.Log(1+(float64(n.Texts)-df+0.5)/(df+0.5)) * (k1 + 1) * q.times[i]
	}
	return s
}

// Score is that of a text with these counts and this length.
func (s Scorer) Score(counts []uint32, length int) float64 {
	norm := k1 * (1 - b + b*float64(length)/s.avg)
	sum := 0.0
	for i, n := range counts {
		if n > 0 {
			tf := float64(n)
			sum += s.weight[i] * tf / (tf + norm)
		}
	}
	return sum
}
