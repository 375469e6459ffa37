package manual

import "strings"

// page collects the lines of one page.
type page struct{ strings.Builder }

// request writes a request of roff; the arguments are quoted.
func (p *page) request(name string, args ...string) {
	p.WriteString("." + name)
	for _, arg := range args {
		p.WriteString(` "` + strings.ReplaceAll(escape(arg), `"`, `\(dq`) + `"`)
	}
	p.WriteByte('\n')
}

// line writes text, which the caller has escaped, as one line. line itself escapes only what roff interprets at the
// beginning of a line.
func (p *page) line(text string) { p.WriteString(guarded(text) + "\n") }

// text writes a text as roff. A blank line ends a paragraph; a paragraph with an indented line is an example.
func (p *page) text(text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		switch {
		case strings.HasPrefix(paragraph, "  ") || strings.Contains(paragraph, "\n  "):
			p.example(paragraph)
			continue
		case i > 0:
			p.request("PP")
		}
		for line := range strings.Lines(paragraph) {
			p.line(escape(strings.TrimSuffix(line, "\n")))
		}
	}
}

// example writes lines unchanged, in a fixed-width font.
func (p *page) example(text string) {
	p.request("PP")
	p.request("nf")
	for line := range strings.Lines(text) {
		p.line(escape(strings.TrimSuffix(line, "\n")))
	}
	p.request("fi")
}

// item writes a term with its description.
func (p *page) item(term, about string) {
	p.request("TP")
	p.line(term)
	p.line(escape(about))
}

func bold(s string) string   { return `\fB` + escape(s) + `\fR` }
func italic(s string) string { return `\fI` + escape(s) + `\fR` }

// escape replaces characters that roff interprets within a line. A plain - is a hyphen for roff, and could not be
// pasted into a shell.
var escape = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...", "→", "->", "\t", " ").Replace

// guarded returns a line in which characters that roff interprets at the beginning of a line are escaped.
func guarded(line string) string {
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		return `\&` + line
	}
	return line
}

// sentence returns s with a capital letter at the beginning and a period at the end.
func sentence(s string) string {
	s = strings.TrimSuffix(strings.TrimSpace(s), ".")
	if s == "" {
		return ""
	}
	if !strings.HasPrefix(s, "memctl ") {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return s + "."
}
