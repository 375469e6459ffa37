package mcpserver

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/graph"
	"github.com/varve-db/varve/internal/project"
)

// In an answer, a memory is one line of at most its content and headRoom characters:
//
//	[…a1b2c3d4e5 · 2026-11-20 · decision] the content, with ↵ for the end of a line
//
// The line begins with the id, or its ending, by which another call names the memory. A * after it means that
// the memory is in the part that all projects share. The day is the one on which the event happened, or on
// which the memory was written. It is omitted if it is the day of the line above, since it takes as many tokens
// as five words. The category and the key follow, if there is room.
const headRoom = 40

func head(m *varve.Memory, starred bool, zone *time.Location) string {
	return headBehind("", m, starred, zone)
}

// headBehind returns the same text as head, but without the day if that is prevDay, the day of the previous line.
func headBehind(prevDay string, m *varve.Memory, starred bool, zone *time.Location) string {
	var b strings.Builder
	b.WriteByte('[')
	b.WriteString(oneLine(project.Ending(m.ID)))
	if starred {
		b.WriteByte('*')
	}
	if day := dayOf(m).In(zone).Format(time.DateOnly); day != prevDay {
		b.WriteString(" · ")
		b.WriteString(day)
	}
	label := strings.Trim(m.Category()+"/"+m.Key(), "/")
	const around = 5 // characters of the separator and the end
	if room := headRoom - utf8.RuneCountInString(b.String()) - around; label != "" && room > 3 {
		if utf8.RuneCountInString(label) > room && m.Category() != "" {
			label = m.Category()
		}
		if _, isCut := cut(label, room); isCut {
			short, _ := cut(label, room-1)
			label = short + "…"
		}
		b.WriteString(" · ")
		b.WriteString(oneLine(label))
	}
	b.WriteString("] ")
	return b.String()
}

// dayOf returns the time at which the event of a memory happened. If that time is unknown, it returns the time at which
// the memory was written.
func dayOf(m *varve.Memory) time.Time {
	if m.Timestamp.IsZero() {
		return m.UpdatedAt
	}
	return m.Timestamp
}

// oneLine returns a text with its line breaks replaced, so that no part of a memory looks like another line of
// the answer.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n\v\f\u0085\u2028\u2029") {
		return s
	}
	return strings.NewReplacer("\r\n", "↵", "\n", "↵", "\r", "↵", "\v", "↵", "\f", "↵", "\u0085", "↵", "\u2028", "↵",
		"\u2029", "↵").Replace(s)
}

// line returns the line of an answer that shows the item, and the day of that line. prevDay is the day of the
// previous line.
func (i *item) line(c *memoryCall, prevDay string) (l, day string) {
	zone := c.now.Location()
	l = headBehind(prevDay, &i.of, i.shared && c.project.ID != "", zone) + oneLine(i.text)
	if i.cut {
		l += " …"
	}
	if i.why != "" {
		l += " (" + i.why + ")"
	}
	return l, dayOf(&i.of).In(zone).Format(time.DateOnly)
}

// sharedLine is the line of an answer that explains the star after an id to the model.
const sharedLine = "* shared part, not of this project alone"

// lines returns the lines of an answer for a page of memories.
func (p *page) lines(c *memoryCall) (all []string) {
	starred, day := false, ""
	for i := range p.items {
		var l string
		l, day = p.items[i].line(c, day)
		all = append(all, l)
		starred = starred || p.items[i].shared
	}
	if starred && c.project.ID != "" {
		all = append(all, sharedLine)
	}
	if p.next != "" {
		all = append(all, "more: cursor "+p.next)
	}
	return all
}

// newestFirst sorts memories by the time at which they were last written, the newest first.
func newestFirst(all []varve.Memory) {
	slices.SortFunc(all, func(a, b varve.Memory) int {
		if c := b.UpdatedAt.Compare(a.UpdatedAt); c != 0 {
			return c
		}
		return strings.Compare(b.ID, a.ID)
	})
}

// ofGraph reports whether the memory with this id belongs to the tools of the group graph or records an import. Tools
// of other groups must not change such a memory.
func ofGraph(id string) bool { return graph.IsID(id) || id == takenID }

// age returns a text for the time from at to now, in whole minutes, hours or days; "just now" for less than a minute.
func age(now, at time.Time) string {
	d := now.Sub(at)
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return plural(int(d.Minutes()), "minute")
	case d < 48*time.Hour:
		return plural(int(d.Hours()), "hour")
	}
	return plural(int(d.Hours()/24), "day")
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}
