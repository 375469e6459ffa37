package diff

import (
	"fmt"
	"slices"
)

// contextLines is the number of unchanged lines before and after each change.
const contextLines = 3

// maxEdits is the maximum number of differing lines for which Edits searches a shortest list of edits. Texts that
// differ in more lines are shown as completely replaced.
const maxEdits = 2000

// Edit is a run of elements that differ: a[A0:A1] became b[B0:B1].
type Edit struct{ A0, A1, B0, B1 int }

// Edits returns a shortest list of edits that turn a into b, in the order of their positions. It returns nil if a and b
// are equal. If a and b differ in very many elements, it returns a single edit that replaces everything.
func Edits(a, b []string) []Edit { return lineEdits(a, b) }

// Unified returns the difference between two texts, given as lines, in the unified format without its two header lines.
// It returns nil if the texts are equal.
func Unified(a, b []string) (out []string) {
	edits := lineEdits(a, b)
	for len(edits) > 0 {
		// Changes whose context lines overlap or touch share a hunk.
		n := 1
		for n < len(edits) && edits[n].A0-edits[n-1].A1 <= 2*contextLines {
			n++
		}
		out = appendHunk(out, a, b, edits[:n])
		edits = edits[n:]
	}
	return out
}

func appendHunk(out, a, b []string, edits []Edit) []string {
	first, last := edits[0], edits[len(edits)-1]
	before := min(contextLines, first.A0)
	after := min(contextLines, len(a)-last.A1)
	from, to := first.A0-before, last.A1+after
	out = append(out, fmt.Sprintf("@@ -%s +%s @@", lineSpan(from, to), lineSpan(first.B0-before, last.B1+after)))
	at := from
	for _, e := range edits {
		out = appendLines(out, " ", a[at:e.A0])
		out = appendLines(out, "-", a[e.A0:e.A1])
		out = appendLines(out, "+", b[e.B0:e.B1])
		at = e.A1
	}
	return appendLines(out, " ", a[at:to])
}

func appendLines(out []string, mark string, lines []string) []string {
	for _, l := range lines {
		out = append(out, mark+l)
	}
	return out
}

func lineSpan(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

// lineEdits returns a shortest list of edits from a to b (Myers, 1986).
func lineEdits(a, b []string) []Edit {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	x, y := a[head:len(a)-tail], b[head:len(b)-tail]
	if len(x) == 0 && len(y) == 0 {
		return nil
	}
	edits := shortest(x, y)
	for i := range edits {
		e := &edits[i]
		e.A0, e.A1, e.B0, e.B1 = e.A0+head, e.A1+head, e.B0+head, e.B1+head
	}
	return edits
}

func shortest(a, b []string) []Edit {
	limit := min(len(a)+len(b), maxEdits)
	v := make([]int, 2*limit+2) // furthest x on diagonal k, at index k+limit
	var trace [][]int
	for d := 0; d <= limit; d++ {
		trace = append(trace, slices.Clone(v[limit-d:limit+d+1]))
		for k := -d; k <= d; k += 2 {
			x := 0
			switch {
			case d == 0:
			case k == -d || k != d && v[k-1+limit] < v[k+1+limit]:
				x = v[k+1+limit]
			default:
				x = v[k-1+limit] + 1
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			v[k+limit] = x
			if x >= len(a) && x-k >= len(b) {
				return walkBack(trace, len(a), len(b))
			}
		}
	}
	return []Edit{{0, len(a), 0, len(b)}}
}

// walkBack follows the trace of lineEdits from its end, the point (x, y), back to the start, and returns the edits.
// trace[d] has the furthest x on each of the diagonals -d…d, as they were before step d.
func walkBack(trace [][]int, x, y int) []Edit {
	var edits []Edit
	add := func(e Edit) {
		if n := len(edits); n > 0 && edits[n-1].A0 == e.A1 && edits[n-1].B0 == e.B1 {
			edits[n-1].A0, edits[n-1].B0 = e.A0, e.B0
			return
		}
		edits = append(edits, e)
	}
	for d := len(trace) - 1; d > 0; d-- {
		at := func(k int) int { return trace[d][k+d] }
		k := x - y
		down := k == -d || k != d && at(k-1) < at(k+1)
		px := 0
		if down {
			k++
			px = at(k)
		} else {
			k--
			px = at(k)
		}
		py := px - k
		if down {
			add(Edit{px, px, py, py + 1})
		} else {
			add(Edit{px, px + 1, py, py})
		}
		x, y = px, py
	}
	slices.Reverse(edits)
	return edits
}
