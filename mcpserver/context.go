package mcpserver

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/varve-db/varve"
)

// Limits of the tool context: the default number of tokens of its answer, and how many memories of each kind it
// examines.
const (
	defaultBudget = 1500
	mostPinned    = 1000
	mostRelevant  = 50
	leastRelevant = 0.3 // minimum score of a relevant memory, as a part of the best score
	mostRecent    = 1000
	contextChars  = 2000 // maximum number of characters of one memory
)

// leftOut is the last line of an answer of context from which memories were omitted. It must fit into the reserved
// tokens.
const (
	leftOut = "%d or more left out → recall, recent, or a larger budget"
	reserve = 16 // tokens
)

// budget counts the tokens that are left for an answer, and collects its lines.
type budget struct {
	left  int
	kept  int // the tokens among left that are reserved for later lines
	lines []string
}

// add adds a line to the answer if enough tokens are left. It reports whether it added the line.
func (b *budget) add(line string) bool {
	n := tokens(line) + 1
	if n > b.left-b.kept {
		return false
	}
	b.left -= n
	b.lines = append(b.lines, line)
	return true
}

// context answers a call of the tool context: with the pinned memories, those relevant to the task, and the recent
// ones, as many as fit into the budget.
func (c *memoryCall) context(ctx context.Context) (*answer, error) {
	total := c.number("budget", defaultBudget)
	b := &budget{left: total - reserve}
	shown, starred, left, above := map[string]bool{}, false, 0, ""
	show := func(m *varve.Memory, title *string) bool {
		if shown[m.ID] || m.ID == takenID {
			return true
		}
		shown[m.ID] = true
		text, isCut := cut(m.Content, contextChars)
		it := item{id: m.ID, text: text, cut: isCut, shared: c.view.Shared(m), of: *m}
		line, day := it.line(c, above)
		before := b.left
		if *title != "" {
			line = *title + "\n" + line
		}
		if !b.add(line) {
			left++
			return before-b.kept > 3*reserve // a shorter one may fit
		}
		*title, starred, above = "", starred || it.shared, day
		return true
	}
	filters := []varve.Filter{}
	if s := c.text("session"); s != "" {
		filters = append(filters, varve.InSession(s))
	}
	steps := []struct {
		title string
		kept  int // tenths of the budget that is left, for the next steps
		all   func(func(*varve.Memory) bool) error
	}{
		{"pinned:", 5, func(yield func(*varve.Memory) bool) error {
			return c.each(ctx, c.view.Memories(ctx, varve.WithTag(pinned)), mostPinned, yield)
		}},
		{"relevant:", 4, func(yield func(*varve.Memory) bool) error { return c.relevant(ctx, filters, yield) }},
		{"recent:", 0, func(yield func(*varve.Memory) bool) error {
			n := 0
			for d, err := range c.newest(ctx, period{}, nil, filters) {
				if ctx.Err() != nil || n == mostRecent {
					return ctx.Err()
				}
				if n++; err == nil && !yield(&d.m) {
					return nil
				}
			}
			return nil
		}},
	}
	for _, step := range steps {
		b.kept = b.left * step.kept / 10
		if err := step.all(func(m *varve.Memory) bool { return show(m, &step.title) }); err != nil {
			return nil, err
		}
	}
	b.left += reserve
	if starred && c.project.ID != "" {
		b.add(sharedLine)
	}
	switch {
	case len(shown) == 0:
		if !b.add("nothing is remembered yet → remember what should outlive this conversation") {
			b.add("nothing yet")
		}
	case left > 0:
		if !b.add(fmt.Sprintf(leftOut, left)) {
			b.add("more: recall")
		}
	}
	return c.linesAnswer(b.lines, nil), nil
}

// each calls yield for the memories in all, one after the other. It stops after limit memories, or when yield returns
// false. It skips memories that cannot be read.
func (c *memoryCall) each(ctx context.Context, all func(func(varve.Memory, error) bool), limit int,
	yield func(*varve.Memory) bool) error {
	n := 0
	for m, err := range all {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			if !isOne(err) {
				return err
			}
			continue
		}
		if n++; n > limit || !yield(&m) {
			return nil
		}
	}
	return nil
}

// relevant calls yield with the memories that a search for the words of the task finds, until yield returns false. It
// omits hits whose score is less than leastRelevant of the best score.
func (c *memoryCall) relevant(ctx context.Context, filters []varve.Filter, yield func(*varve.Memory) bool) error {
	task := c.text("task")
	if task, _ = cut(task, maxQuery/4); !hasWord(task) {
		return nil
	}
	q := varve.Query{Text: task, MaxRareTerms: nearWords, Limit: mostRelevant}
	hits, _, _, err := c.search(ctx, &q, "", place{}, filters)
	if err != nil {
		return err
	}
	for i := range hits {
		if hits[i].Score < leastRelevant*hits[0].Score {
			return nil
		}
		m, err := c.view.Get(ctx, hits[i].ID)
		if err == nil && !yield(&m) {
			return nil
		}
	}
	return nil
}

// tokens returns an upper estimate of the number of tokens in a text, without the tables of a tokenizer. It counts one
// token for each six letters of a word, each three digits, each sign, and each space before a digit. For a character
// of another script it counts one token less than the number of the character's bytes.
func tokens(s string) int {
	n, letters, digits := 0, 0, 0
	end := func() {
		n += (letters+5)/6 + (digits+2)/3
		letters, digits = 0, 0
	}
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
			if digits > 0 {
				end()
			}
			letters++
		case r >= '0' && r <= '9':
			if letters > 0 {
				end()
			}
			digits++
		case r == ' ':
			end()
			if i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9' {
				n++
			}
		default:
			end()
			n += max(1, size-1)
		}
		i += size
	}
	end()
	return n
}
