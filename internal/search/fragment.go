package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/query"
	"github.com/varve-db/varve/memstore"
)

// MostFragment is the maximum of Query.Fragment, in bytes.
const MostFragment = 1 << 16

// mostSearched is the maximum number of bytes of a content that are searched for its best fragment.
const mostSearched = 1 << 20

// fragmentOf returns a piece of the content of at most size bytes. It is the first piece that has the most different
// words of the query. If no piece has any of these words, it is the beginning of the content.
func fragmentOf(content string, q *query.Query, an *analyzer.Analyzer, size int) *memstore.Fragment {
	var marks []query.Mark
	if q != nil {
		marks = q.Marks(query.Content, content[:min(len(content), mostSearched)], an)
	}
	if len(content) <= size {
		return marked(content, 0, len(content), marks)
	}
	first, last := bestWindow(marks, size)
	from, to := 0, size
	if last > first && marks[last-1].To-marks[first].From <= size {
		spare := size - (marks[last-1].To - marks[first].From)
		from = max(0, marks[first].From-spare/2)
		to = min(len(content), from+size)
		from = max(0, to-size)
		from = begins(content, from, marks[first].From)
		to = ends(content, max(to, marks[last-1].To), marks[last-1].To)
	} else {
		to = ends(content, to, 0)
	}
	return marked(content, from, to, marks)
}

// bestWindow returns the first run of marks, no longer than size bytes, that has the most different words. If several
// runs have equally many, it returns the one with the most marks.
func bestWindow(marks []query.Mark, size int) (first, last int) {
	has := map[int]int{}
	words, best := 0, 0
	for i, j := 0, 0; j < len(marks); j++ {
		if has[marks[j].Word]++; has[marks[j].Word] == 1 {
			words++
		}
		for i < j && marks[j].To-marks[i].From > size {
			if has[marks[i].Word]--; has[marks[i].Word] == 0 {
				words--
			}
			i++
		}
		if n := words<<16 + j - i; n > best || last == 0 {
			first, last, best = i, j+1, n
		}
	}
	return first, last
}

// begins returns the beginning of a piece of s: the offset of the first word that begins at or after the offset cut
// and before limit. If no word begins there, begins returns cut, moved forward to the start of a character. The result
// is at most limit.
func begins(s string, cut, limit int) int {
	if cut == 0 || cut >= limit {
		return min(cut, limit)
	}
	for cut < limit && !utf8.RuneStart(s[cut]) {
		cut++
	}
	if i := strings.IndexFunc(s[cut-1:limit], unicode.IsSpace); i >= 0 {
		_, n := utf8.DecodeRuneInString(s[cut-1+i:])
		cut += i - 1 + n
	}
	return cut
}

// ends returns the end of a piece of s: an offset, at most cut, that does not divide a word. It is the end of the last
// word of s[start:cut] that is not divided. If there is no such word, it is cut, moved back to the start of a
// character. If cut is not before the end of s, ends returns the length of s.
func ends(s string, cut, start int) int {
	if cut >= len(s) {
		return len(s)
	}
	for cut > start && !utf8.RuneStart(s[cut]) {
		cut--
	}
	if i := strings.LastIndexFunc(s[start:cut], unicode.IsSpace); i > 0 && !unicode.IsSpace(rune(s[cut])) {
		cut = start + i
	}
	return cut
}

func marked(content string, from, to int, marks []query.Mark) *memstore.Fragment {
	text := content[from:to]
	trimmed := strings.TrimLeftFunc(text, unicode.IsSpace)
	from += len(text) - len(trimmed)
	text = strings.TrimRightFunc(trimmed, unicode.IsSpace)
	f := &memstore.Fragment{Text: text, From: from,
		Cut: from+len(text) < len(strings.TrimRightFunc(content, unicode.IsSpace)), Marks: [][2]int{}}
	for _, m := range marks {
		if m.From >= from && m.To <= from+len(text) {
			f.Marks = append(f.Marks, [2]int{m.From - from, m.To - from})
		}
	}
	return f
}
