package writer

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestFit(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain":         {"claude-code", "claude-code"},
		"not ASCII":     {"Zoë 你好", "Zoë 你好"},
		"controls":      {"a\x1b[31mb\n\x00", `a\u001b[31mb\u000a\u0000`},
		"right to left": {"a\u202eb", `a\u202eb`},
		"invalid":       {"a\xffb", "a\ufffdb"},
		"2 KB":          {strings.Repeat("x", 2048), strings.Repeat("x", MostName-len(Mark)) + Mark},
		"2 KB of NUL":   {strings.Repeat("\x00", 2048), strings.Repeat(`\u0000`, (MostName-len(Mark))/6) + Mark},
		"256 bytes":     {strings.Repeat("x", MostName), strings.Repeat("x", MostName)},
		"257 bytes":     {strings.Repeat("x", MostName+1), strings.Repeat("x", MostName-len(Mark)) + Mark},
		"wide":          {strings.Repeat("你", 100), strings.Repeat("你", (MostName-len(Mark))/3) + Mark},
	} {
		w := Writer{Agent: c.in}
		w.Fit()
		if w.Agent != c.want {
			t.Errorf("%s: %q, want %q", name, w.Agent, c.want)
		}
		if len(w.Agent) > MostName || !utf8.ValidString(w.Agent) {
			t.Errorf("%s: %d bytes", name, len(w.Agent))
		}
		again := w
		again.Fit()
		if again != w {
			t.Errorf("%s: fitted twice it is %q", name, again.Agent)
		}
	}
}

// What Line has written Parse reads as the same description.
func TestLine(t *testing.T) {
	w := Writer{Number: 7, Program: "memctl put", Host: "h", PID: 12, Started: time.Now(), Agent: `"quoted" \ <b>`,
		Session: "s", Client: strings.Repeat("\n", 3000), ClientVersion: "1", Token: "t"}
	w.Fit()
	line, err := w.Line()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Parse(line); err != nil || got != w {
		t.Errorf("%+v, want %+v, %v", got, w, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"number":1,"program":"memctl put","pid":3,"started":"2026-01-02T03:04:05.000006Z"}`))
	f.Add([]byte(`{"number":4294967295,"agent":"\u0000","started":"0000-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"number":4294967296}`))
	f.Add([]byte(`{"number":1,"pid":-1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := Parse(b)
		if err != nil {
			return
		}
		line, err := w.Line()
		if err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if again, err := Parse(line); err != nil || again != w {
			t.Fatalf("%+v is written and read as %+v, %v", w, again, err)
		}
		if s := w.String(); strings.ContainsFunc(s, special) {
			t.Fatalf("%q", s)
		}
	})
}

func TestRow(t *testing.T) {
	store, other := [16]byte{1}, [16]byte{2}
	w := Writer{Number: 3, Since: 4096, Agent: "a b\nc"}
	w.Fit()
	row, err := AppendRow(nil, store, &w)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := ParseRow(row, store); !ok || got != w {
		t.Errorf("%+v, %v", got, ok)
	}
	if _, ok := ParseRow(row, other); ok {
		t.Error("a line of another store is accepted")
	}
	for n := range row {
		if _, ok := ParseRow(row[:n], store); ok {
			t.Errorf("a line that ends after %d bytes is accepted", n)
		}
	}
	for range 1000 {
		bad := []byte(string(row))
		bad[rand.IntN(len(bad))] ^= 1 << rand.IntN(8)
		if _, ok := ParseRow(bad, store); ok {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// A number that was issued again names each writer for the versions of its own.
func TestTable(t *testing.T) {
	var tab Table
	for _, w := range []Writer{{Number: 1, Since: 10, Agent: "a"}, {Number: 2, Since: 20, Agent: "b"},
		{Number: 1, Since: 30, Agent: "c"}, {Number: 2, Since: 20, Agent: "b"}} {
		tab.Add(w)
	}
	if len(tab.All()) != 3 {
		t.Errorf("%d writers", len(tab.All()))
	}
	set := tab.Where(func(w *Writer) bool { return w.Is("a") || w.Is("b") })
	for _, c := range []struct {
		number  uint32
		version uint64
		agent   string
		in      bool
	}{{1, 9, "", false}, {1, 10, "a", true}, {1, 29, "a", true}, {1, 31, "c", false}, {2, 15, "", false},
		{2, 99, "b", true}, {3, 99, "", false}, {0, 99, "", false}} {
		w, ok := tab.Of(c.number, c.version)
		if w.Agent != c.agent || ok != (c.agent != "") {
			t.Errorf("writer %d of version %d: %q, %v", c.number, c.version, w.Agent, ok)
		}
		if in := set.Has(c.number, c.version); in != c.in {
			t.Errorf("writer %d of version %d: in the set %v", c.number, c.version, in)
		}
	}
}
