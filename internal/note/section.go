package note

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Section is a part of a note that is searched by itself: the text below a heading, or a part of that text.
type Section struct {
	// the headings above the section and its own, the outermost first; none for text before the first heading
	Headings   []string
	From, To   int // numbers of its first and last line; the first line of a note is 1
	Start, End int // offsets in bytes of its beginning and end
}

// mark is the byte order mark, with which a text may begin.
const mark = "\ufeff"

// The limits of sections.
const (
	MostCharacters = 2000 // maximum number of characters in a section, unless it is a single line
	mostHeading    = 1000 // maximum number of bytes of a heading; the rest is cut off
	// mostHeaded is the maximum number of sections that begin at headings. The text after these sections is cut only by
	// size, so that no note has more than 4096 + 16 MiB/1000 sections.
	mostHeaded = 4096
)

// CutVersion must be changed whenever Sections divides a note differently, because sections are identified by their
// numbers, and whenever their texts for search by words change. Version 2 includes the tags of front matter.
const CutVersion = 2

// Sections cuts a note into sections at its Markdown headings, and between lines where a section would have
// more than MostCharacters. A line is never cut. Blank lines at the beginning and end of a section do not
// belong to it. A note that is not text, or that has only blank lines, has no sections.
//
// Headings are those of CommonMark with # signs, and underlined ones whose text is a single line. Lines in
// fenced code and in front matter are not headings. Front matter is the part of a note between two lines of
// ---, the first of which is the first line of the note.
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

// SectionID returns the id that identifies a section in the views of sections: the section with index i in the result
// of Sections for the note at a path. The id contains a NUL, which no path contains.
func SectionID(path string, i int) string {
	n := strconv.Itoa(i)
	return path + "\x00" + strings.Repeat("0", max(0, sectionDigits-len(n))) + n
}

// sectionDigits is the number of digits of the index in a section's id, so that the ids of the sections of a
// note sort in their order.
const sectionDigits = 5

// SplitSectionID reverses SectionID; ok is false if id is not the id of a section.
func SplitSectionID(id string) (path string, i int, ok bool) {
	path, n, ok := strings.Cut(id, "\x00")
	i, err := strconv.Atoi(n)
	return path, i, ok && err == nil && i >= 0
}

// Title returns the title under which a section is searched: the path of the note without its extension, and the
// headings.
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

// cutter cuts a note into sections, line by line.
type cutter struct {
	data  []byte
	front int // offset at which the front matter ends
	list  []Section

	headings []heading
	fence    []byte // the line that began the fenced code in which the cutter is; nil outside of code

	open       bool // there is a section to which lines are added
	start      int  // offset of the first byte of the open section that is not in a blank line
	from       int
	characters int

	end, to int // offset and number of the end of its last line that is not blank
	// Place at which the open section is cut if it becomes too long: before the last line in its second half
	// that follows a blank one.
	border, borderLine, borderLeft int
	borderEnd, borderTo            int // the values of end and to before that line

	// the next line may be the text of an underlined heading: the line before it is blank, a heading, or missing
	free  bool
	blank bool // the last line was blank
}

type heading struct {
	level int
	text  string
}

// line adds line n of the note, which has the bytes from offset off to offset end. The first line has number 1.
func (c *cutter) line(off, end, n int) {
	text := bytes.TrimRight(c.data[off:end], "\r\n")
	if n == 1 {
		text = bytes.TrimPrefix(text, []byte(mark))
	}
	blank := len(bytes.TrimSpace(text)) == 0
	if off >= c.front {
		c.structure(text, end)
		c.free = c.free || blank
	}
	length := utf8.RuneCount(c.data[off:end])
	if c.open && !blank && c.characters+length > MostCharacters {
		c.split(length)
	}
	switch {
	case !blank && !c.open:
		c.open, c.start, c.from, c.characters, c.border = true, off, n, 0, 0
		if n == 1 {
			c.start += len(c.data[:end]) - len(bytes.TrimPrefix(c.data[:end], []byte(mark)))
		}
	case !blank && c.blank && c.characters >= MostCharacters/2:
		c.border, c.borderLine, c.borderLeft = off, n, 0
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

// structure examines whether a line begins or ends fenced code, or is a heading. text is the line, and next the offset
// of the line after it.
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

// head closes the open section. The next section begins below a heading with the given level and title.
func (c *cutter) head(level int, title string) {
	c.close()
	c.headings = slices.DeleteFunc(c.headings, func(h heading) bool { return h.level >= level })
	if len(title) > mostHeading {
		title = strings.ToValidUTF8(title[:mostHeading], "")
	}
	c.headings = append(c.headings, heading{level, title})
}

// close ends the open section. If no section is open, close does nothing.
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

// split ends the open section because the next line, which has length characters, does not fit into it.
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

// lineEnd returns the offset after the end of the line of data that begins at off. The newline belongs to the
// line.
func lineEnd(data []byte, off int) int {
	if i := bytes.IndexByte(data[off:], '\n'); i >= 0 {
		return off + i + 1
	}
	return len(data)
}

// FrontMatter returns the offset at which the front matter of a note ends, or 0 if the note has none.
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

// indented returns a line without its indentation. It returns false if the line has four or more spaces at its
// beginning, and so is code.
func indented(line []byte) ([]byte, bool) {
	text := bytes.TrimLeft(line, " ")
	return text, len(line)-len(text) < 4
}

// fenceOf returns the characters (the fence) with which a line begins or ends fenced code. It returns nil for any other
// line.
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

// headingOf returns the level and the text of a heading with # signs. It returns level 0 for any other line.
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

// underline returns the level of the heading that a line underlines. It returns 0 for any other line.
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

// isTitle reports whether a line can be the text of an underlined heading. A blank line, indented code, an underline
// and a heading that begins with # cannot; nor can a line that begins with one of -*+>|<`~, which may be an item of a
// list, a quotation, a row of a table, HTML or fenced code.
func isTitle(line []byte) bool {
	text, ok := indented(line)
	if level, _ := headingOf(line); !ok || len(text) == 0 || level > 0 || underline(line) > 0 {
		return false
	}
	return strings.IndexByte("-*+>|<`~", text[0]) < 0
}
