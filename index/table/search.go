package table

import "math"

// found is the place of a key's line in the file, or the place at which the line would be inserted.
type found struct {
	start, end int // bounds of the line, with its newline; equal if the key is absent
	probes     int // number of lines read, for benchmarks
}

// find searches section sec for the encoded key k.
func (t *Table) find(sec int, k []byte) (found, error) {
	s := &t.sections[sec]
	lo, hi := int(s.start), int(s.end)
	if lo == hi {
		return found{start: lo, end: lo}, nil
	}
	e, err := t.edge(sec)
	if err != nil {
		return found{}, err
	}
	// The first and last keys are used for the first estimate only. Their positions are not used, so that every result
	// comes from the loop.
	below, above := e.first, e.last
	_, pLo := compareLine(below, k)
	_, pHi := compareLine(above, k)
	mean := (hi - lo) / int(s.lines)
	f := found{}
	steps, bad, at, before := 0, 0, -1, 0
	for lo < hi {
		n := hi - lo
		mid := lo + n/2
		p := min(pLo, pHi)
		interpolated := n > 4*mean && p > at && bad < 4
		if interpolated {
			if steps&1 == 0 {
				before = n
			}
			mid = lo + aim(fraction(k, below, above, p), n, mean, steps&1 == 1)
			steps++
		}
		start, end, err := t.line(mid, lo, hi)
		if err != nil {
			return found{}, err
		}
		f.probes++
		line := t.data[start+1 : end]
		order, shared := compareLine(line, k)
		switch {
		case order == 0:
			f.start, f.end = start, end
			return f, nil
		case order < 0:
			lo, below, pLo = end, line, shared
		default:
			hi, above, pHi = start, line, shared
		}
		if interpolated && steps&1 == 0 && hi-lo > before/8 {
			// The keys are not evenly distributed: bisect until the range has a longer common prefix.
			at, bad = p, bad+1
		}
	}
	f.start, f.end = lo, lo
	return f, nil
}

// aim returns the offset at which to look next in a range of n bytes. frac is the estimated position of the key in the
// range, from 0 to 1. mean is the mean length of a line. If beyond is true, aim moves the offset away from the nearer
// end, by about one standard deviation of an estimate among evenly distributed keys. So the next line found is
// probably on the other side of the key, and the range narrows from both sides.
func aim(frac float64, n, mean int, beyond bool) int {
	at := int(frac * float64(n))
	if beyond {
		near := min(at, n-at)
		margin := int(float64(mean) * (1 + math.Sqrt(float64(near)/float64(mean))))
		if at <= n/2 {
			at += margin
		} else {
			at -= margin
		}
	}
	return max(0, min(at, n-1))
}

// edge returns the first and last key of a section that is not empty.
func (t *Table) edge(sec int) (*edge, error) {
	if e := t.edges[sec].Load(); e != nil {
		return e, nil
	}
	lo, hi := int(t.sections[sec].start), int(t.sections[sec].end)
	_, end, err := t.line(lo, lo, hi)
	if err != nil {
		return nil, err
	}
	start, last, err := t.line(hi-1, lo, hi)
	if err != nil {
		return nil, err
	}
	e := &edge{first: t.data[lo+1 : end], last: t.data[start+1 : last]}
	t.edges[sec].Store(e)
	return e, nil
}

// seek finds the first line in [from, hi) whose key is not below k. It searches with doubling steps, which is
// cheap if the line is near.
func (t *Table) seek(k []byte, from, hi int) (found, error) {
	lo, f := from, found{}
	for step := 1; lo < hi; step *= 2 {
		at := min(from+step-1, hi-1)
		if at < lo {
			continue
		}
		start, end, err := t.line(at, lo, hi)
		if err != nil {
			return f, err
		}
		f.probes++
		order, _ := compareLine(t.data[start+1:end], k)
		if order == 0 {
			f.start, f.end = start, end
			return f, nil
		}
		if order > 0 {
			hi = start
			break
		}
		lo = end
	}
	for lo < hi {
		start, end, err := t.line(lo+(hi-lo)/2, lo, hi)
		if err != nil {
			return f, err
		}
		f.probes++
		switch order, _ := compareLine(t.data[start+1:end], k); {
		case order == 0:
			f.start, f.end = start, end
			return f, nil
		case order < 0:
			lo = end
		default:
			hi = start
		}
	}
	f.start, f.end = lo, lo
	return f, nil
}
