package main

import (
	"bufio"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// output is stdout or stderr: everything that memctl writes to them goes through one.
// What a store holds was written by anybody, and a terminal obeys what it is sent, so
// here, and not where a text is printed, it is taken care that no control of theirs
// arrives:
//
//	Write        text for people: escaped wherever it goes
//	data(text)   a text that is asked for as it is: exact, and escaped on a terminal
//	data(jsonly) JSON: exact, and on a terminal written with \uXXXX, which is the same value
//
// What of memctl itself moves the cursor or changes the colour has methods of its own.
type output struct {
	to      io.Writer // the stream
	screen  bool      // it is a terminal
	colours bool
	prompt  bool // every Write goes out at once: stderr

	mu   sync.Mutex
	w    *bufio.Writer
	form form
	rest []byte // of what was written: the begin of a character, or a return that a line feed may follow
}

// form says how a control character is made harmless.
type form int

const (
	text   form = iota // \x1b
	jsonly             // \u001b
)

func newOutput(to io.Writer, e environment) *output {
	_, screen := terminal(to)
	dumb := e.get == nil || e.get("NO_COLOR") != "" || e.get("TERM") == "dumb"
	return &output{to: to, screen: screen, colours: screen && !dumb, w: bufio.NewWriter(to)}
}

// unbuffered is a output whose every Write goes out at once.
func unbuffered(to io.Writer, e environment) *output {
	p := newOutput(to, e)
	p.prompt = true
	return p
}

func (p *output) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.put(b, text)
	if p.prompt && err == nil {
		err = p.w.Flush()
	}
	return len(b), err
}

func (p *output) WriteString(s string) (int, error) { return p.Write([]byte(s)) }

// Flush leaves back only what cannot be judged before more is written.
func (p *output) Flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.w.Flush()
}

// end writes everything out.
func (p *output) end() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle()
	return p.w.Flush()
}

// discard has it write nothing any more: nobody reads on.
func (p *output) discard() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.w.Reset(io.Discard)
}

// inColour writes text in a colour, where colours are shown. It goes out with the next
// Write.
func (p *output) inColour(colour, s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.colours {
		_ = p.put([]byte(s), text) // the writer keeps the error
		return
	}
	p.settle()
	_, _ = p.w.WriteString(colour)
	_ = p.put([]byte(s), text)
	p.settle()
	_, _ = p.w.WriteString("\x1b[0m")
}

// bar is for the progress bar, which moves the cursor. Nothing of a store may go there.
func (p *output) bar() io.Writer { return barWriter{p} }

type barWriter struct{ p *output }

func (b barWriter) Write(s []byte) (int, error) {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	n, err := b.p.w.Write(s)
	if err == nil {
		err = b.p.w.Flush()
	}
	return n, err
}

// data is for what programs read; see output.
func (p *output) data(f form) *dataWriter { return &dataWriter{p, f} }

type dataWriter struct {
	p    *output
	form form
}

func (d *dataWriter) Write(b []byte) (int, error) {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	if !d.p.screen {
		d.p.settle()
		return d.p.w.Write(b)
	}
	return len(b), d.p.put(b, d.form)
}

// put writes what a terminal may have of it.
func (p *output) put(b []byte, f form) error {
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

// settle writes what was left back.
func (p *output) settle() {
	_, _ = p.w.Write(p.form.harmless(p.rest)) // the writer keeps the error
	p.rest = nil
}

// undecided is how many bytes at the end cannot be judged before more comes.
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

// harmless is text of which a terminal obeys nothing but line feeds and tabs.
func (f form) harmless(b []byte) []byte {
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
		case r == utf8.RuneError && n == 1 && f == jsonly:
			out.WriteString(`\ufffd`)
		case r == utf8.RuneError && n == 1:
			escapeByte(&out, s[i])
		case r == '\n' || r == '\t' || visible(r) || r == '\u200c' || r == '\u200d': // joiners: emoji, Persian
			out.WriteString(s[i : i+n])
		case r == '\r' && f == jsonly:
			out.WriteByte(' ') // between two values: a text has none that is not escaped
		case f == jsonly:
			escapeJSON(&out, r)
		default:
			escapeRune(&out, r)
		}
	}
	return []byte(out.String())
}

// plain: ASCII without a control but line feeds and tabs.
func plain(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}
