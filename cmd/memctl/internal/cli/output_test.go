package cli

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/evil"
	"github.com/varve-db/varve/internal/diff"
	"github.com/varve-db/varve/internal/proofs"
)

// onScreen is an output that believes to be a terminal.
func onScreen(to *bytes.Buffer) *Output {
	o := newOutput(to, Environment{Getenv: func(string) string { return "" }})
	o.Screen, o.colours = true, true
	return o
}

// What a terminal is sent of a text is the same however the text was cut into writes.
func TestOutputInPieces(t *testing.T) {
	const all = evil.Name + "\r\nZoë 北京 👩\u200d👩\u200d👧\tend\x1b[31m\xe2\x80"
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
	seed := proofs.Seed(t, 0)
	r := rand.New(rand.NewPCG(seed, 0))
	runes := []rune(evil.Text + "\u0000\b\f\n\t\\\"é👩\u200d\U000e0001\U0010ffff\ue000\ufeff\u0085")
	for range 500 {
		var s []rune
		for range r.IntN(20) {
			s = append(s, runes[r.IntN(len(runes))])
		}
		v := map[string]any{string(s): []any{string(s), 1.5, nil}}
		d, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if r.IntN(2) == 0 {
			var indented bytes.Buffer
			_ = json.Indent(&indented, d, "\r", "\t") // it is JSON
			d = indented.Bytes()
		}
		var screen, pipe bytes.Buffer
		for _, o := range []*Output{onScreen(&screen), newOutput(&pipe, Environment{})} {
			w := o.Data(JSON)
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
		if what := evil.ObeyedBy(screen.String()); what != "" {
			t.Fatalf("seed %d: a terminal got %s", seed, what)
		}
		if same, err := diff.Same(d, screen.Bytes()); err != nil || !same {
			t.Fatalf("seed %d: %+q, %v, of %+q", seed, screen.Bytes(), err, d)
		}
	}
}

// Only colours that are memctl's own are colours.
func TestOutputColours(t *testing.T) {
	var b bytes.Buffer
	o := onScreen(&b)
	o.InColour(Red, "a"+Red)
	_, _ = o.WriteString(" " + Green + "\n")
	_ = o.Flush()
	if want := "\x1b[31ma\\x1b[31m\x1b[0m \\x1b[32m\n"; b.String() != want {
		t.Errorf("%+q, want %+q", b.String(), want)
	}
	b.Reset()
	o.colours = false
	o.InColour(Red, "a")
	_ = o.Flush()
	if b.String() != "a" {
		t.Errorf("%+q", b.String())
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
	for _, s := range []string{"a", "a b", "it's", "", evil.Name, "\x1b[31m'\\n\n9", "Zoë", "\u202e0"} {
		quoted := ShellQuote(s)
		if what := evil.ObeyedBy(quoted); what != "" || strings.Contains(quoted, "\n") {
			t.Errorf("%+q: %s", quoted, what)
		}
		got, err := exec.Command(bash, "-c", "printf %s "+quoted).Output()
		if err != nil || string(got) != s {
			t.Errorf("%+q becomes %+q, %v", s, got, err)
		}
	}
}
