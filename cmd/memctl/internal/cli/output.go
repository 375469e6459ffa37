package cli

import (
	"bufio"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// Output is stdout or stderr: everything that memctl writes to them goes through one.
// What a store holds was written by anybody, and a terminal obeys what it is sent, so
// here, and not where a text is printed, it is taken care that no control of theirs
// arrives:
//
//	Write        text for people: escaped wherever it goes
//	data(text)   a text that is asked for as it is: exact, and escaped on a terminal
//	data(jsonly) JSON: exact, and on a terminal written with \uXXXX, which is the same value
//
// What of memctl itself moves the cursor or changes the colour has methods of its own.
type Output struct {
	Stream  io.Writer // the stream
	Screen  bool      // it is a terminal
	colours bool
	prompt  bool // every Write goes out at once: stderr

	mu   sync.Mutex
	w    *bufio.Writer
	form Form
	rest []byte // of what was written: the begin of a character, or a return that a line feed may follow
}

// Form says how a control character is made harmless.
type Form int

const (
	Text Form = iota // \x1b
	JSON             // \u001b
)

func newOutput(to io.Writer, e Environment) *Output {
	_, screen := Terminal(to)
	dumb := e.Getenv == nil || e.Getenv("NO_COLOR") != "" || e.Getenv("TERM") == "dumb"
	return &Output{Stream: to, Screen: screen, colours: screen && !dumb, w: bufio.NewWriter(to)}
}

// unbuffered is a output whose every Write goes out at once.
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

// Flush leaves back only what cannot be judged before more is written.
func (p *Output) Flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.w.Flush()
}

// end writes everything out.
func (p *Output) end() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle()
	return p.w.Flush()
}

// Discard makes it drop what is written from now on: the reader has closed the pipe.
func (p *Output) Discard() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.w.Reset(io.Discard)
}

// InColour writes text in a colour, where colours are shown. It goes out with the next
// Write.
func (p *Output) InColour(colour, s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.colours {
		_ = p.put([]byte(s), Text) // the writer keeps the error
		return
	}
	p.settle()
	_, _ = p.w.WriteString(colour)
	_ = p.put([]byte(s), Text)
	p.settle()
	_, _ = p.w.WriteString("\x1b[0m")
}

// paint has colours shown, or not, whatever the stream is.
func (p *Output) paint(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.colours = on
}

// bar is for the progress bar, which moves the cursor. Nothing of a store may go there.
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

// Data is for what programs read; see output.
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

// put writes what a terminal may have of it.
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

// settle writes what was left back.
func (p *Output) settle() {
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
			out.WriteByte(' ') // between two values: a text has none that is not escaped
		case f == JSON:
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
