package note

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Section is a piece of a note that is searched for itself: what is below a heading, or a part of that.
type Section struct {
	Headings   []string // the heading of the section and those above it, the outermost first; none before the first
	From, To   int      // its lines, from 1
	Start, End int      // its bytes
}

// mark may begin a text: the byte order mark.
const mark = "\ufeff"

// The limits on sections.
const (
	MostCharacters = 2000 // of a section, unless it is a single line
	mostHeading    = 1000 // bytes of a heading
	// mostHeaded is how many sections headings make: those that follow are cut by their size only, so that no note has
	// more than 4096 + 16 MiB/1000 of them.
	mostHeaded = 4096
)

// CutVersion changes when Sections cuts a note otherwise, since sections are numbered, and when they get other texts
// for search by words. Version 2 has the tags of front matter.
const CutVersion = 2

// Sections cuts a note at its Markdown headings, and between lines where it would have more than MostCharacters. A
// line is never cut. Blank lines around a section do not belong to it. A note that is no text has no sections, and
// neither does one with blank lines only.
//
// Headings are those of CommonMark with # signs, and underlined ones whose text is a single line. They are none in
// fenced code and in front matter, which is what is between lines of --- where the first line of a note is one.
func Sections(data []byte) []Section {
	if !IsText(data) {
		return nil
	}
	c := cutter{data: data, front: FrontMatter(data), free: true}
	for at, line := 0, 1; at < len(data); line++ {
		end := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		c.line(at, end, line)
		at = end
	}
	c.close()
	return c.list
}

// SectionID returns the id of a section, given by its index in Sections, in views of sections. No path has a NUL.
func SectionID(path string, i int) string {
	n := strconv.Itoa(i)
	return path + "\x00" + strings.Repeat("0", max(0, sectionDigits-len(n))) + n
}

// sectionDigits makes the ids of the sections of a note sort in their order.
const sectionDigits = 5

// SplitSectionID undoes SectionID.
func SplitSectionID(id string) (path string, i int, ok bool) {
	path, n, ok := strings.Cut(id, "\x00")
	i, err := strconv.Atoi(n)
	return path, i, ok && err == nil && i >= 0
}

// Title returns what a section is called, to be searched with its text: the path of the note without its extension, and
// the headings.
func (s *Section) Title(path string) string {
	dir, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		dir, name = path[:i+1], path[i+1:]
	}
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	return strings.Join(append([]string{dir + name}, s.Headings...), "\n")
}

// cutter makes sections of lines.
type cutter struct {
	data  []byte
	front int // where the front matter ends
	list  []Section

	headings []heading
	fence    []byte // the line that begins the code that the cutter is in; nil for none

	open       bool // there is a section that lines are added to
	start      int  // its first byte that is not in a blank line
	from       int
	characters int

	end, to int // behind its last line that is not blank
	// Where it is cut if it becomes too long: before the last line that follows a blank one in its second half.
	border, borderLine, borderLeft int
	borderEnd, borderTo            int // end and to before that line

	free  bool // a heading may be underlined here: the line before is blank, a heading, or none
	blank bool // the last line was blank
}

type heading struct {
	level int
	text  string
}

// line adds a line, which begins at a byte.
func (c *cutter) line(at, end, n int) {
	text := bytes.TrimRight(c.data[at:end], "\r\n")
	if n == 1 {
		text = bytes.TrimPrefix(text, []byte(mark))
	}
	blank := len(bytes.TrimSpace(text)) == 0
	if at >= c.front {
		c.structure(text, end)
		c.free = c.free || blank
	}
	length := utf8.RuneCount(c.data[at:end])
	if c.open && !blank && c.characters+length > MostCharacters {
		c.split(length)
	}
	switch {
	case !blank && !c.open:
		c.open, c.start, c.from, c.characters, c.border = true, at, n, 0, 0
		if n == 1 {
			c.start += len(c.data[:end]) - len(bytes.TrimPrefix(c.data[:end], []byte(mark)))
		}
	case !blank && c.blank && c.characters >= MostCharacters/2:
		c.border, c.borderLine, c.borderLeft = at, n, 0
		c.borderEnd, c.borderTo = c.end, c.to
	}
	if c.open {
		c.characters += length
		c.borderLeft += length
	}
	if !blank {
		c.end, c.to = end, n
	}
	c.blank = blank
}

// structure looks whether a line, behind which the next one begins at a byte, begins or ends code, or is a heading.
func (c *cutter) structure(text []byte, next int) {
	free := c.free
	c.free = false
	if f := fenceOf(text); c.fence != nil {
		if f != nil && f[0] == c.fence[0] && len(f) >= len(c.fence) && len(bytes.TrimSpace(text)) == len(f) {
			c.fence = nil
		}
		return
	} else if f != nil {
		c.fence = f
		return
	}
	level, title := headingOf(text)
	if level == 0 && free && isTitle(text) {
		level, title = underline(c.data[next:lineEnd(c.data, next)]), string(bytes.TrimSpace(text))
	}
	if c.free = level > 0; level > 0 && len(c.list) < mostHeaded {
		c.head(level, title)
	}
}

// head begins a section with a heading.
func (c *cutter) head(level int, title string) {
	c.close()
	c.headings = slices.DeleteFunc(c.headings, func(h heading) bool { return h.level >= level })
	if len(title) > mostHeading {
		title = strings.ToValidUTF8(title[:mostHeading], "")
	}
	c.headings = append(c.headings, heading{level, title})
}

// close ends the open section.
func (c *cutter) close() {
	if !c.open {
		return
	}
	c.open = false
	s := Section{From: c.from, To: c.to, Start: c.start, End: c.end}
	for _, h := range c.headings {
		s.Headings = append(s.Headings, h.text)
	}
	c.list = append(c.list, s)
}

// split ends the open section because a line of so many characters does not fit into it.
func (c *cutter) split(length int) {
	if c.border > 0 {
		end, to := c.end, c.to
		c.end, c.to = c.borderEnd, c.borderTo
		c.close()
		c.open, c.start, c.from, c.characters, c.border = true, c.border, c.borderLine, c.borderLeft, 0
		c.end, c.to = end, to
	}
	if c.characters+length > MostCharacters {
		c.close()
	}
}

// lineEnd returns where the line ends that begins at a byte.
func lineEnd(data []byte, at int) int {
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(data)
}

// FrontMatter returns where the front matter of a note ends, 0 for none.
func FrontMatter(data []byte) int {
	is := func(line []byte, text string) bool { return string(bytes.TrimRight(line, " \t\r\n")) == text }
	at := lineEnd(data, 0)
	if !is(bytes.TrimPrefix(data[:at], []byte(mark)), "---") {
		return 0
	}
	for at < len(data) {
		end := lineEnd(data, at)
		if is(data[at:end], "---") || is(data[at:end], "...") {
			return end
		}
		at = end
	}
	return 0
}

// indented returns a line without its indentation, and false if that makes it code.
func indented(line []byte) ([]byte, bool) {
	text := bytes.TrimLeft(line, " ")
	return text, len(line)-len(text) < 4
}

// fenceOf returns the mark with which a line begins or ends code; nil for another line.
func fenceOf(line []byte) []byte {
	text, ok := indented(line)
	if !ok || len(text) < 3 || text[0] != '`' && text[0] != '~' {
		return nil
	}
	n := len(text) - len(bytes.TrimLeft(text, string(text[:1])))
	if n < 3 || text[0] == '`' && bytes.IndexByte(text[n:], '`') >= 0 {
		return nil
	}
	return text[:n]
}

// headingOf returns the level and the text of a heading with # signs; 0 for another line.
func headingOf(line []byte) (level int, title string) {
	text, ok := indented(line)
	rest := bytes.TrimLeft(text, "#")
	level = len(text) - len(rest)
	if !ok || level == 0 || level > 6 || len(rest) > 0 && rest[0] != ' ' && rest[0] != '\t' {
		return 0, ""
	}
	rest = bytes.TrimSpace(rest)
	if cut := bytes.TrimRight(rest, "#"); len(cut) == 0 || cut[len(cut)-1] == ' ' || cut[len(cut)-1] == '\t' {
		rest = bytes.TrimSpace(cut)
	}
	return level, string(rest)
}

// underline returns the level of the heading that a line underlines; 0 for another line.
func underline(line []byte) int {
	text, ok := indented(line)
	text = bytes.TrimRight(text, " \t\r\n")
	switch {
	case !ok || len(text) < 3:
		return 0
	case len(bytes.Trim(text, "=")) == 0:
		return 1
	case len(bytes.Trim(text, "-")) == 0:
		return 2
	}
	return 0
}

// isTitle reports whether a line can be the text of an underlined heading: it is no item of a list, no quotation, no
// row of a table and no heading.
func isTitle(line []byte) bool {
	text, ok := indented(line)
	if level, _ := headingOf(line); !ok || len(text) == 0 || level > 0 || underline(line) > 0 {
		return false
	}
	return strings.IndexByte("-*+>|<`~", text[0]) < 0
}
