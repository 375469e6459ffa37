package mcpserver

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/varve-db/varve/internal/timearg"
)

// period is a span of time from one time up to, but not including, another.
type period struct{ from, to time.Time } // to is the exclusive end; zero: no bound

func (p period) String() string {
	const day = time.DateOnly
	switch {
	case p.from.IsZero() && p.to.IsZero():
		return "any time"
	case p.to.IsZero():
		return "since " + p.from.Format(day)
	case p.from.IsZero():
		return "before " + p.to.Format(day)
	}
	last := p.to.Add(-1)
	if p.from.Format(day) == last.Format(day) {
		return p.from.Format(day)
	}
	return p.from.Format(day) + " to " + last.Format(day)
}

// asking are words that a question about a time may contain besides the words for the time.
var asking = strings.Fields(`a about all and any anything are at be been by can could did discuss discussed do does
	done during ever every everything for from give got had happen happened happens has have i in is it know last learn
	learned learnt list me mention mentioned my note noted notes of on our please recall remember remembered said save
	saved say see show since stored stuff tell that the there thing things this time to told us was we were what
	whatever when which while who with work worked write written wrote you your`)

var months = []string{"january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
	"november", "december"}

var numeric = regexp.MustCompile(`^\d{1,3}$|^\d{5,}$`) // numbers that are not years

// longestTime is the maximum number of words that name a time.
const longestTime = 4

// timeWords finds the words in a question that name a time: yesterday, last week, on Friday, in March, 3 days ago.
// phrase has these words, or is "" if the question names no time. span is the time. rest is the question without
// phrase and without the words in asking; if phrase is "", rest is the whole question.
func timeWords(query string, now time.Time) (phrase string, span period, rest string) {
	if strings.ContainsAny(query, `":+*`) {
		return "", period{}, query // the grammar of a search
	}
	words := strings.Fields(query)
	if len(words) > 40 {
		return "", period{}, query
	}
	for n := longestTime; n > 0 && phrase == ""; n-- {
		for i := 0; i+n <= len(words); i++ {
			text := strings.ToLower(strings.TrimRight(strings.Join(words[i:i+n], " "), "?!.,;"))
			before := ""
			if i > 0 {
				before = strings.ToLower(words[i-1])
			}
			p, ok := timeOf(text, before, now)
			if !ok {
				continue
			}
			if phrase = text; before == "since" {
				p.to, phrase = time.Time{}, "since "+text
			}
			span, words = p, slices.Delete(words, i, i+n)
			break
		}
	}
	if phrase == "" {
		return "", period{}, query
	}
	var left []string
	for _, w := range words {
		plain := strings.ToLower(strings.TrimFunc(w, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r)
		}))
		if plain != "" && !slices.Contains(asking, plain) {
			left = append(left, w)
		}
	}
	return phrase, span, strings.Join(left, " ")
}

// timeOf parses text, some words of a question, as a period. before is the word before these words. It returns false
// if the words do not name a time, or can also have another meaning.
func timeOf(text, before string, now time.Time) (period, bool) {
	now = now.Local()
	if name, year, _ := strings.Cut(text, " "); slices.Contains(months, name) || len(name) == 3 && isMonth(name) {
		switch {
		case year == "" && (before == "in" || before == "since" || before == "during" || before == "last"):
			for y := now.Year(); ; y-- {
				if s, err := timearg.Parse(name[:3]+" "+time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC).Format("2006"), now); err != nil ||
					!s.From.After(now) {
					return period{s.From, s.To}, err == nil
				}
			}
		case year == "":
			return period{}, false
		}
	}
	switch text {
	case "now", "mon", "tue", "wed", "thu", "fri", "sat", "sun":
		return period{}, false
	case "this morning", "this afternoon", "this evening", "tonight":
		text = "today"
	case "last night", "yesterday evening", "yesterday morning":
		text = "yesterday"
	case "past week", "the past week", "last 7 days":
		return period{now.AddDate(0, 0, -7), time.Time{}}, true
	}
	if numeric.MatchString(text) || len(text) == 4 && before != "in" && before != "since" && before != "during" {
		return period{}, false
	}
	s, err := timearg.Parse(text, now)
	if err != nil {
		return period{}, false
	}
	if !s.To.After(s.From) { // how long ago: that day
		if !strings.HasSuffix(text, "ago") && !strings.Contains(text, "-") {
			return period{}, false
		}
		s, err = timearg.Parse(s.From.In(now.Location()).Format(time.DateOnly), now)
	}
	return period{s.From, s.To}, err == nil
}

func isMonth(short string) bool {
	return slices.ContainsFunc(months, func(m string) bool { return m[:3] == short })
}
