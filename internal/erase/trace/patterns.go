package trace

import "slices"

// patterns are sequences of at least two bytes each that are searched for in files. A single pass over a file finds all
// of them. The zero value has none.
type patterns struct {
	all  map[string]bool
	lens map[[2]byte][]int // lengths of the patterns with the same first two bytes, ascending
	// A bit for the first two bytes of each pattern, so that most places are skipped without the map.
	may [1 << 10]uint64
}

func (p *patterns) add(b []byte) {
	if p.all == nil {
		p.all, p.lens = map[string]bool{}, map[[2]byte][]int{}
	}
	p.all[string(b)] = true
	first := [2]byte(b)
	if at, found := slices.BinarySearch(p.lens[first], len(b)); !found {
		p.lens[first] = slices.Insert(p.lens[first], at, len(b))
	}
	word, bit := bitOfTwo(first)
	p.may[word] |= bit
}

// bitOfTwo returns the bit of patterns.may that stands for these two bytes: the index of the word in may, and the mask
// of the bit in that word.
func bitOfTwo(two [2]byte) (word int, bit uint64) {
	n := int(two[0])<<8 | int(two[1])
	return n / 64, 1 << (n % 64)
}

// foundIn reports whether b contains one of the patterns.
func (p *patterns) foundIn(b []byte) bool {
	if len(p.all) == 0 {
		return false
	}
	for ; len(b) >= 2; b = b[1:] {
		first := [2]byte(b)
		if word, bit := bitOfTwo(first); p.may[word]&bit == 0 {
			continue
		}
		for _, n := range p.lens[first] {
			if n > len(b) {
				break
			}
			if p.all[string(b[:n])] {
				return true
			}
		}
	}
	return false
}

// names is a set of file names. Its methods test whether a text begins with one of them.
type names struct {
	all  map[string]bool
	lens []int // lengths of the names, ascending
}

func (ns *names) add(name string) {
	if ns.all == nil {
		ns.all = map[string]bool{}
	}
	ns.all[name] = true
	if at, found := slices.BinarySearch(ns.lens, len(name)); !found {
		ns.lens = slices.Insert(ns.lens, at, len(name))
	}
}

// at yields the length of each name with which text begins.
func (ns *names) at(text string, yield func(n int) bool) {
	for _, n := range ns.lens {
		if n > len(text) {
			return
		}
		if ns.all[text[:n]] && !yield(n) {
			return
		}
	}
}

// begin reports whether text begins with one of the names.
func (ns *names) begin(text string) (found bool) {
	ns.at(text, func(int) bool { found = true; return false })
	return found
}
