package page

import (
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/diff"
	"github.com/varve-db/varve/internal/human"
)

// difference is the difference between two versions of a memory.
type difference struct {
	Text    []span // spans of the two texts; nil: the texts are equal
	Members []member
}

// span is a part of a text that is in both versions, or in only one of them.
type span struct {
	Text string
	What string // "": in both versions; "ins" or "del": in one of them; "cut": Text is omitted
}

// member is a JSON member whose values in two documents differ.
type member struct{ Name, From, To string }

// Limits of a comparison: the number of words above which a text is compared by lines; the number of bytes of
// an equal part that are shown before and after a change; and the number of bytes of a difference that are
// shown.
const (
	mostWords   = 20_000
	nearChange  = 200
	mostCompare = 1 << 20
)

// compare returns the difference between two versions of a memory.
func compare(old, now *varve.Memory) *difference {
	d := &difference{Text: compareText(old.Content, now.Content)}
	add := func(name, from, to string) {
		if from != to {
			d.Members = append(d.Members, member{visible(name), visible(human.Head(from, nearChange)),
				visible(human.Head(to, nearChange))})
		}
	}
	names := sortedNames(old.Metadata)
	for _, name := range sortedNames(now.Metadata) {
		if _, both := old.Metadata[name]; !both {
			names = append(names, name)
		}
	}
	for _, name := range names {
		from, to := "", ""
		if v, ok := old.Metadata[name]; ok {
			from = valueText(v)
		}
		if v, ok := now.Metadata[name]; ok {
			to = valueText(v)
		}
		add(name, from, to)
	}
	add("happened", timeText(old.Timestamp), timeText(now.Timestamp))
	add("expires", timeText(old.ExpiresAt), timeText(now.ExpiresAt))
	add("importance", strconv.FormatFloat(old.QuickRecalScore, 'g', 4, 64),
		strconv.FormatFloat(now.QuickRecalScore, 'g', 4, 64))
	add("accesses", strconv.FormatInt(old.AccessCount, 10), strconv.FormatInt(now.AccessCount, 10))
	if !sameVector(old.Embedding, now.Embedding) {
		add("embedding", vectorText(old.Embedding, "before"), vectorText(now.Embedding, "changed"))
	}
	return d
}

func sameVector(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func vectorText(v []float32, which string) string {
	if len(v) == 0 {
		return ""
	}
	return strconv.Itoa(len(v)) + " dimensions, " + which
}

// compareText returns the difference between two texts as spans. It compares the texts word by word, or line by line if
// they have more than mostWords words. It returns nil if the texts are equal.
func compareText(old, now string) (spans []span) {
	if old == now {
		return nil
	}
	if len(old) > mostCompare || len(now) > mostCompare {
		return []span{{"the texts are too long to be compared on this page: use memctl diff", "cut"}}
	}
	a, b := words(old), words(now)
	if len(a)+len(b) > mostWords {
		a, b = strings.SplitAfter(old, "\n"), strings.SplitAfter(now, "\n")
	}
	at := 0
	edits := diff.Edits(a, b)
	for i, e := range edits {
		spans = appendSame(spans, strings.Join(a[at:e.A0], ""), i > 0, true)
		if e.A1 > e.A0 {
			spans = append(spans, span{visible(strings.Join(a[e.A0:e.A1], "")), "del"})
		}
		if e.B1 > e.B0 {
			spans = append(spans, span{visible(strings.Join(b[e.B0:e.B1], "")), "ins"})
		}
		at = e.A1
	}
	return appendSame(spans, strings.Join(a[at:], ""), true, false)
}

// appendSame appends to spans a part s that is equal in both texts. Of a long part it keeps only the bytes near a
// change, and replaces the rest by a span of the kind "cut". changeBefore and changeAfter report whether there is a
// change before and after the part.
func appendSame(spans []span, s string, changeBefore, changeAfter bool) []span {
	if s == "" {
		return spans
	}
	head, tail := 0, 0
	if changeBefore {
		head = nearChange
	}
	if changeAfter {
		tail = nearChange
	}
	if len(s) <= head+tail+nearChange {
		return append(spans, span{visible(s), ""})
	}
	h, t := human.Head(s, head), human.Tail(s, tail)
	if h != "" {
		spans = append(spans, span{visible(h), ""})
	}
	spans = append(spans, span{human.Bytes(int64(len(s)-len(h)-len(t))) + " unchanged", "cut"})
	if t != "" {
		spans = append(spans, span{visible(t), ""})
	}
	return spans
}

// words splits a text into parts for the comparison: words, white space, line ends, and single other characters.
// Together the parts are the whole text.
func words(s string) (list []string) {
	begin, last := 0, 0
	for i, r := range s {
		class := 3
		switch {
		case r == '\n':
			class = 4 + i%2 // each line end is one of its own
		case unicode.IsSpace(r):
			class = 2
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
			class = 1
		}
		if i > begin && (class != last || class == 3) {
			list = append(list, s[begin:i])
			begin = i
		}
		last = class
	}
	if begin < len(s) {
		list = append(list, s[begin:])
	}
	return list
}

// compared is the template data of the view that compares two versions of a memory or a note.
type compared struct {
	ID         string
	From, To   varve.Version
	Difference *difference
	Newest     bool // To is the newest version
	Note       bool
}

func (p *Page) diff(r *request) (*view, error) {
	id := r.get("id")
	from, to, err := r.span()
	if err != nil {
		return nil, err
	}
	d := &compared{ID: id}
	var sides [2]varve.Memory
	for i, n := range []uint64{from, to} {
		v, err := r.st.GetAt(r.ctx, id, n)
		if err != nil {
			return nil, err
		}
		if !v.Deleted {
			if sides[i], err = v.Decode(); err != nil {
				return nil, err
			}
		}
		v.Document = nil
		if i == 0 {
			d.From = v
		} else {
			d.To = v
		}
	}
	d.Difference = compare(&sides[0], &sides[1])
	return &view{template: "diff", title: "Difference", data: d}, nil
}

// span returns the numbers of the two versions that the request asks to compare.
func (r *request) span() (from, to uint64, err error) {
	if from, err = strconv.ParseUint(r.get("from"), 10, 64); err == nil {
		to, err = strconv.ParseUint(r.get("to"), 10, 64)
	}
	if err != nil {
		err = &refusal{http.StatusBadRequest, "the link does not have the numbers of two versions",
			"open the history again"}
	}
	return from, to, err
}
