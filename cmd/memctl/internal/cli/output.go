package cli

import (
	"bufio"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// Output is stdout or stderr: memctl writes to them only through an Output. The contents of a store may come from
// anyone, and a terminal executes control sequences. So Output, and not the code that prints a text, ensures that no
// control character of stored text reaches a terminal:
//
//	Write        readable text: always escaped
//	Data(Text)   a text that was requested unchanged: exact, and escaped on a terminal
//	Data(JSON)   JSON: exact, and on a terminal with \uXXXX, which is the same value
//
// Output of memctl itself that moves the cursor or changes the color has its own methods.
type Output struct {
	Stream  io.Writer // the underlying stream
	Screen  bool      // the stream is a terminal
	colours bool
	prompt  bool // the Output is stderr: every Write is flushed at once

	mu   sync.Mutex
	w    *bufio.Writer
	form Form
	rest []byte // bytes held back: the beginning of a character, or a return that a line feed may follow
}

// Form is the way in which control characters are escaped.
type Form int

const (
	Text Form = iota // escapes such as \x1b
	JSON             // escapes such as \u001b
)

func newOutput(to io.Writer, e Environment) *Output {
	_, screen := Terminal(to)
	dumb := e.Getenv == nil || e.Getenv("NO_COLOR") != "" || e.Getenv("TERM") == "dumb"
	return &Output{Stream: to, Screen: screen, colours: screen && !dumb, w: bufio.NewWriter(to)}
}

// unbuffered returns an Output that flushes every Write at once.
func unbuffered(to io.Writer, e Environment) *Output {
	p := newOutput(to, e)
	p.prompt = true
	return p
}

func (p *Output) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.put(b, Text)
	if p.prompt && err == nil {
		err = p.w.Flush()
	}
	return len(b), err
}

func (p *Output) WriteString(s string) (int, error) { return p.Write([]byte(s)) }

// Flush writes all output, except bytes whose escaping depends on the next bytes.
func (p *Output) Flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.w.Flush()
}

// end writes all output, including the bytes that were held back.
func (p *Output) end() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle()
	return p.w.Flush()
}

// Discard drops all later output, because the reader has closed the pipe.
func (p *Output) Discard() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.w.Reset(io.Discard)
}

// InColour writes text in a color, if colors are shown. The text is flushed with the next Write.
func (p *Output) InColour(colour, s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.colours {
		_ = p.put([]byte(s), Text) // the writer records the error
		return
	}
	p.settle()
	_, _ = p.w.WriteString(colour)
	_ = p.put([]byte(s), Text)
	p.settle()
	_, _ = p.w.WriteString("\x1b[0m")
}

// paint turns colors on if enable is true, and off otherwise, no matter whether the stream is a terminal.
func (p *Output) paint(enable bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.colours = enable
}

// bar returns a writer for the progress bar, which moves the cursor. Text of a store must not be
// written to it.
func (p *Output) bar() io.Writer { return barWriter{p} }

type barWriter struct{ p *Output }

func (b barWriter) Write(s []byte) (int, error) {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	n, err := b.p.w.Write(s)
	if err == nil {
		err = b.p.w.Flush()
	}
	return n, err
}

// Data returns a writer for output that programs read, in the given form; see Output.
func (p *Output) Data(f Form) *dataWriter { return &dataWriter{p, f} }

type dataWriter struct {
	p    *Output
	form Form
}

func (d *dataWriter) Write(b []byte) (int, error) {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	if !d.p.Screen {
		d.p.settle()
		return d.p.w.Write(b)
	}
	return len(b), d.p.put(b, d.form)
}

// put writes b, escaped for a terminal.
func (p *Output) put(b []byte, f Form) error {
	if f != p.form {
		p.settle()
		p.form = f
	}
	if len(p.rest) > 0 {
		b = append(p.rest, b...)
		p.rest = nil
	}
	whole := len(b) - undecided(b)
	p.rest = append([]byte(nil), b[whole:]...)
	_, err := p.w.Write(f.harmless(b[:whole]))
	return err
}

// settle writes the bytes that were held back, unchanged, because no more bytes follow.
func (p *Output) settle() {
	_, _ = p.w.Write(p.form.harmless(p.rest)) // the writer records the error
	p.rest = nil
}

// undecided returns the number of bytes at the end of b whose escaping depends on the bytes that follow.
func undecided(b []byte) int {
	if len(b) > 0 && b[len(b)-1] == '\r' {
		return 1
	}
	for n := 1; n <= min(utf8.UTFMax-1, len(b)); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// harmless returns b with everything escaped that a terminal would execute, except line feeds and tabs.
func (f Form) harmless(b []byte) []byte {
	if plain(b) {
		return b
	}
	s := string(b)
	var out strings.Builder
	out.Grow(len(s) + 16)
	for i, n := 0, 0; i < len(s); i += n {
		var r rune
		r, n = utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\r' && strings.HasPrefix(s[i:], "\r\n"):
			out.WriteString("\r\n")
			n = 2
		case r == utf8.RuneError && n == 1 && f == JSON:
			out.WriteString(`\ufffd`)
		case r == utf8.RuneError && n == 1:
			escapeByte(&out, s[i])
		case r == '\n' || r == '\t' || visible(r) || r == '\u200c' || r == '\u200d': // joiners: emoji, Persian
			out.WriteString(s[i : i+n])
		case r == '\r' && f == JSON:
			out.WriteByte(' ') // between two values: in a string it would be escaped
		case f == JSON:
			escapeJSON(&out, r)
		default:
			escapeRune(&out, r)
		}
	}
	return []byte(out.String())
}

// plain reports whether b is ASCII without control characters other than line feeds and tabs.
func plain(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}
